// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of an address behind the question mark.

use std::str::FromStr as _;

use punctual_model::run::State;
use punctual_runner::run_names::number;
use punctual_store::Filter;

/// The default length of a list of runs.
const USUAL: usize = 50;

/// The most runs in a list.
const MOST_LISTED: usize = 500;

/// The most runs side by side.
const MOST_SHOWN: usize = 100;

/// Names and values. If a name occurs twice, its last value counts, except for runs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses a query. Form fields that were left empty are dropped.
    pub fn parse(text: &str) -> Self {
        let pairs = form_urlencoded::parse(text.as_bytes());
        let pairs = pairs.map(|(name, value)| (name.into_owned(), value.trim().to_owned()));
        Self(pairs.filter(|(_, value)| !value.is_empty()).collect())
    }

    /// The value of a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        let mut values = self.0.iter().rev();
        let found = values.find(|(own, _)| own == name);
        found.map(|(_, value)| value.as_str())
    }

    /// The value of a name, as an owned text.
    fn owned(&self, name: &str) -> Option<String> {
        self.value(name).map(str::to_owned)
    }

    /// The filter for the runs that are wanted.
    pub fn filter(&self) -> Result<Filter, String> {
        let state = self.value("state").map(State::from_str).transpose();
        Ok(Filter {
            suite: self.owned("suite"),
            subject: self.owned("subject"),
            kernel: self.owned("kernel"),
            bench: self.owned("bench"),
            host: self.owned("host"),
            probe: self.owned("probe"),
            state: state?,
            from: self.owned("from"),
            until: self.owned("until"),
        })
    }

    /// The length of a list of runs.
    pub fn limit(&self) -> Result<usize, String> {
        let Some(text) = self.value("limit") else {
            return Ok(USUAL);
        };
        let number = text.parse().ok().filter(|n| (1..=MOST_LISTED).contains(n));
        number.ok_or_else(|| format!("limit: expected 1 to {MOST_LISTED}, found \"{text}\""))
    }

    /// The ids of the named runs: `r3` or `3`, several in one value, or one in each.
    pub fn runs(&self) -> Result<Vec<String>, String> {
        let named = self.0.iter().filter(|(name, _)| name == "run");
        let named = named.flat_map(|(_, value)| value.split([' ', ',']));
        let mut runs: Vec<String> = Vec::new();
        for name in named.filter(|name| !name.is_empty()) {
            let wrong = || format!("run: expected r3 or 3, found \"{name}\"");
            let number = number(name).ok_or_else(wrong)?;
            let id = format!("r{number}");
            if !runs.contains(&id) {
                runs.push(id);
            }
        }
        if runs.len() > MOST_SHOWN {
            return Err(format!(
                "expected {MOST_SHOWN} runs at most, found {}",
                runs.len()
            ));
        }
        Ok(runs)
    }

    /// The same query, with another value for a name.
    pub fn with(&self, name: &str, value: &str) -> String {
        let kept = self.0.iter().filter(|(own, _)| own != name);
        let mut text = form_urlencoded::Serializer::new(String::new());
        text.extend_pairs(kept);
        text.append_pair(name, value).finish()
    }

    /// The same query, without a name.
    pub fn without(&self, name: &str) -> String {
        let kept = self.0.iter().filter(|(own, _)| own != name);
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_named_in_any_way_and_each_once() {
        let runs = |text: &str| Query::parse(text).runs();
        assert_eq!(runs("run=r1&run=2+R3,r1").unwrap(), ["r1", "r2", "r3"]);
        assert!(runs("run=r1'%20OR%201").is_err() && runs("run=-1").is_err());
        let many: Vec<String> = (0..101).map(|n| format!("run={n}")).collect();
        assert!(runs(&many.join("&")).is_err());
    }

    #[test]
    fn what_is_said_is_kept_and_what_is_empty_is_not() {
        let query = Query::parse("kernel=a%26b&suite=&state=failed&kernel=c+d");
        assert_eq!(query.value("kernel"), Some("c d"));
        assert_eq!(query.value("suite"), None);
        assert_eq!(query.filter().unwrap().state, Some(State::Failed));
        assert!(Query::parse("state=happy").filter().is_err());
        assert_eq!(query.with("kernel", "<&>"), "state=failed&kernel=%3C%26%3E");
        for wrong in ["limit=0", "limit=501", "limit=x"] {
            assert!(Query::parse(wrong).limit().is_err());
        }
    }
}
