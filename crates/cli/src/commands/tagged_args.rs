// SPDX-License-Identifier: MIT OR Apache-2.0
//! The tags of a Linux repository as a line of releases: options that `series` and `kernel series`
//! share.

use anyhow::Result;
use clap::Args;
use punctual_kernels::build::{self, BuildError, Order, Tagged};

use super::build_args::{BuildArgs, made};
use super::catalog;
use super::places::places;
use crate::UsageError;
use crate::output::say;

/// Which releases: of a line, or of a repository's tags.
#[derive(Debug, Args)]
pub struct TaggedArgs {
    /// The releases are the tags of this git repository of Linux: a kernel of each is built,
    /// once, and called NAME@VERSION. Punctual fetches nothing, and changes no file of it
    #[arg(long, value_name = "DIR")]
    source: Option<String>,
    /// Only tags that match this pattern, as `git tag --list` takes it: 'v6.13*' (may be repeated)
    #[arg(long, value_name = "PATTERN")]
    tags: Vec<String>,
    #[command(flatten)]
    build: BuildArgs,
    /// NAME of the tags' kernels [default: after directory and configuration]
    #[arg(long = "id", value_name = "NAME")]
    name: Option<String>,
    /// Leave out releases before this version (6.12.90, v6.13-rc1)
    #[arg(long, value_name = "VERSION")]
    since: Option<String>,
    /// Leave out releases after this version
    #[arg(long, value_name = "VERSION")]
    until: Option<String>,
}

impl TaggedArgs {
    /// The tags as releases, the oldest first; `None` if no repository is named.
    pub fn tagged(&self) -> Result<Option<Vec<Tagged>>> {
        let Some(order) = self.order() else {
            // A line's name stands in place of --source, which nothing can require then.
            if self.build.is_some() || !self.tags.is_empty() || self.name.is_some() {
                let wrong = "--tags, --id, --config, --set and --full are for kernels that are \
                             built: name the repository whose tags they are (--source DIR)";
                return Err(UsageError(wrong.into()).into());
            }
            return Ok(None);
        };
        if self.since.is_none() && self.tags.is_empty() {
            let wrong = "--source: expected --since or --tags: a kernel of each tag is built";
            return Err(UsageError(wrong.into()).into());
        }
        let (since, until) = (self.since.as_deref(), self.until.as_deref());
        let say = &mut |message: &str| say!("{message}");
        let tags = build::tags(&order.source, &self.tags, since, until, say)?;
        let kernels = catalog()?;
        let name = self
            .name
            .clone()
            .unwrap_or_else(|| build::line_name(&kernels, &order));
        Ok(Some(build::tagged(&kernels, &name, tags)))
    }

    /// The order for building each tag; `None` if no repository is named.
    fn order(&self) -> Option<Order> {
        let order = |source: &String| self.build.clone().order(source.clone());
        self.source.as_ref().map(order)
    }

    /// Builds the kernel of a tag, unless it exists. The inner error is the reason why this tag has
    /// no kernel. `None` if Ctrl-C has ended it.
    pub fn build(&self, one: &Tagged) -> Result<Option<Result<(), BuildError>>> {
        let Some(mut order) = self.order() else {
            return Ok(Some(Ok(())));
        };
        order.id = Some(one.id.clone());
        // One of this name is of this repository, and of what the tag was before.
        order.replace = true;
        order.tag = Some(one.tag.clone());
        match made(&order) {
            Ok(built) => Ok(built.map(|_| Ok(()))),
            Err(error) => match error.downcast::<BuildError>() {
                Ok(error) if error.is_of_tag() => Ok(Some(Err(error))),
                Ok(error) => Err(error.into()),
                Err(error) => Err(error),
            },
        }
    }

    /// The requested releases of a line.
    pub fn between<T>(&self, mut all: Vec<T>, id: impl Fn(&T) -> &str) -> Result<Vec<T>> {
        let ids: Vec<&str> = all.iter().map(id).collect();
        let place = |version: &Option<String>, option| {
            let version = version.as_deref();
            version.map(|one| places(&ids, one, option)).transpose()
        };
        let from = place(&self.since, "--since")?.map_or(0, |places| places[0]);
        let to = place(&self.until, "--until")?;
        let to = to.map_or(ids.len(), |places| places[places.len() - 1] + 1);
        if from >= to {
            let wrong = "--since is later than --until: no release is left";
            return Err(UsageError(wrong.into()).into());
        }
        all.truncate(to);
        Ok(all.split_off(from))
    }

    /// The words that ask for the same kernels; empty if no repository is named.
    pub fn words(&self) -> Vec<String> {
        let Some(source) = &self.source else {
            return Vec::new();
        };
        let mut words = vec!["--source".to_owned(), source.clone()];
        words.extend(self.build.words());
        words
    }
}
