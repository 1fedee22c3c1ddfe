// SPDX-License-Identifier: MIT OR Apache-2.0
//! What comes over the network.

use punctual_serve::Access;
use punctual_serve::fuzzing::Query;

use super::{text, texts};
use crate::Target;

/// What stands behind a question mark; what was read is what is written again.
pub const QUERY: Target = Target {
    name: "query",
    seeds: || {
        texts(&[
            "suite=demo&state=finished&from=2026-01-01&limit=20",
            "run=r1&run=2+R3%2Cr1&seed=&before=r9",
        ])
    },
    run: |bytes| {
        let query = Query::parse(&text(bytes));
        let is_read = query.filter().is_ok() && query.limit().is_ok() && query.before().is_ok();
        let again = Query::parse(&query.with("one", "more"));
        assert_eq!(again.value("one"), Some("more"));
        let [again, plain] = [again, query.clone()].map(|one| Query::parse(&one.without("one")));
        assert_eq!(again, plain);
        query.runs().is_ok_and(|runs| runs.len() <= 100) && is_read
    },
};

/// A request's `Host` in the first line, and its `Authorization` in the second.
pub const ACCESS: Target = Target {
    name: "access",
    seeds: || {
        texts(&[
            "localhost:8128\nBearer open sesame",
            "[::1]:8128\nBasic YW5uOm9wZW4gc2VzYW1l",
        ])
    },
    run: |bytes| {
        let text = text(bytes);
        let (host, given) = text.split_once('\n').unwrap_or((&text, ""));
        let local = Access::Local.check(Some(host), Some(given)).is_ok();
        let by_token = Access::Token("open sesame".into());
        let by_token = by_token.check(Some(host), Some(given)).is_ok();
        local || by_token
    },
};
