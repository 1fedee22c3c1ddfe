// SPDX-License-Identifier: MIT OR Apache-2.0
//! `punctual published`: the content of the documents that the suites repeat.

use anyhow::Result;
use clap::Args;
use punctual_published::{Document, figures};
use punctual_runner::{Error, documents};
use serde_json::{Value, json};

use crate::{ExitStatus, output};

/// Print the figures of the documents that the suites repeat
#[derive(Debug, Args)]
pub struct Published {
    /// Only that of this suite
    suite: Option<String>,
    /// Print JSON: each number with its section, machine, load, unit and quotation
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    _store: super::NoStoreArgs,
}

impl Published {
    /// Runs the command.
    pub fn run(self) -> Result<ExitStatus> {
        let mut documents = documents::all()?;
        if let Some(suite) = &self.suite {
            let known: Vec<&str> = documents.iter().map(|one| one.suite.as_str()).collect();
            if !known.contains(&suite.as_str()) {
                return Err(Error::unknown("published document of suite", suite, &known).into());
            }
            documents.retain(|one| one.suite == *suite);
        }
        if self.json {
            let all: Vec<Value> = documents.iter().map(as_json).collect();
            output::print_json(&json!({ "schema": "punctual.published/1", "documents": all }))?;
        } else {
            output::print(&punctual_report::documents_text(
                &documents,
                output::width(),
            ))?;
        }
        Ok(ExitStatus::Done)
    }
}

/// The document as in its file, and all numbers of its tables one by one.
fn as_json(document: &Document) -> Value {
    let mut value = serde_json::to_value(document).expect("a document is plain data");
    value["figures"] = serde_json::to_value(figures(document)).expect("figures are plain data");
    value
}
