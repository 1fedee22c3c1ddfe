// SPDX-License-Identifier: MIT OR Apache-2.0
//! Published documents, and claims.

use std::path::Path;

use punctual_published::{parse, parse_claims};

use super::{text, texts};
use crate::Target;

/// A document with its numbers and quotations.
pub const PUBLISHED: Target = Target {
    name: "published",
    seeds: || {
        texts(&[
            include_str!("../../../published/linux-journal.toml"),
            include_str!("../../../published/patch-review.toml"),
        ])
    },
    run: |bytes| parse(Path::new("fuzz.toml"), &text(bytes)).is_ok(),
};

/// Claims of virtual time.
pub const CLAIMS: Target = Target {
    name: "claims",
    seeds: || texts(&[include_str!("../../../claims/docs.toml")]),
    run: |bytes| parse_claims(Path::new("fuzz.toml"), &text(bytes)).is_ok(),
};
