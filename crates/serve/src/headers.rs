// SPDX-License-Identifier: MIT OR Apache-2.0
//! The headers that each answer has: what a browser may do with it.

use std::sync::LazyLock;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use hyper::header::{self, HeaderName};
use punctual_report::shell::style;
use sha2::{Digest as _, Sha256};

/// All of them, each with its value.
pub fn of_each_answer() -> [(HeaderName, &'static str); 5] {
    [
        (header::CONTENT_SECURITY_POLICY, policy()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        // Kept, but asked for again each time: runs go on, and are removed.
        (header::CACHE_CONTROL, "private, no-cache"),
    ]
}

/// The content policy: a browser may show a page with its own style, and send its forms here.
fn policy() -> &'static str {
    static POLICY: LazyLock<String> = LazyLock::new(|| {
        let sum = BASE64_STANDARD.encode(Sha256::digest(style()));
        format!(
            "default-src 'none'; style-src 'sha256-{sum}'; form-action 'self'; base-uri 'none'; \
             frame-ancestors 'none'"
        )
    });
    &POLICY
}
