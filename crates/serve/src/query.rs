// SPDX-License-Identifier: MIT OR Apache-2.0
//! The part of an address behind the question mark.

use std::str::FromStr as _;

use punctual_model::run::State;
use punctual_runner::run_names::number;
use punctual_runner::times;
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

    /// The value of a name that is a time, as the store has times.
    fn time(&self, name: &str) -> Result<Option<String>, String> {
        let text = self.value(name);
        text.map(|text| times::parse(name, text)).transpose()
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
            from: self.time("from")?,
            until: self.time("until")?,
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

    /// The id of the run before which a list goes on.
    pub fn before(&self) -> Result<Option<String>, String> {
        let Some(text) = self.value("before") else {
            return Ok(None);
        };
        let wrong = || format!("before: expected r3 or 3, found \"{text}\"");
        let number = number(text).ok_or_else(wrong)?;
        Ok(Some(format!("r{number}")))
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

    #[test]
    fn times_and_the_run_before_are_those_of_the_command_line() {
        let filter = |text: &str| Query::parse(text).filter();
        let found = filter("from=2026-05-01T12:00%2B02:00&until=2026-06").unwrap();
        assert_eq!(found.from.as_deref(), Some("2026-05-01T10:00:00Z"));
        assert_eq!(found.until.as_deref(), Some("2026-06"));
        let wrong = "until: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
                     \"soon\"";
        assert_eq!(filter("until=soon"), Err(wrong.to_owned()));
        assert!(filter("from=2026-13-45").is_err());
        let before = |text: &str| Query::parse(text).before();
        assert_eq!(before("before=12"), Ok(Some("r12".to_owned())));
        assert_eq!(before("before="), Ok(None));
        let wrong = "before: expected r3 or 3, found \"zzz\"";
        assert_eq!(before("before=zzz"), Err(wrong.to_owned()));
    }
}
