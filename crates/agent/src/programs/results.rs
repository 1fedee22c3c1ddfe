// SPDX-License-Identifier: MIT OR Apache-2.0
//! Facts about themselves and the machine that programs of rt-tests write into their JSON files.

use std::fs;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use punctual_formats::cyclictest_json::Results;

/// The version of rt-tests whose form is used.
pub const VERSION: &str = "2.40";

/// Returns the results, except those of threads, of a program that was started by this command
/// line at that moment, and ends now.
pub fn now(command: &str, started: Timestamp) -> Results {
    let date = |time: Timestamp| {
        let zoned = time.to_zoned(TimeZone::UTC);
        jiff::fmt::rfc2822::to_string(&zoned).unwrap_or_default()
    };
    let of_kernel = |name: &str| {
        let text = fs::read_to_string(format!("/proc/sys/kernel/{name}"));
        text.unwrap_or_default().trim().to_owned()
    };
    let version = of_kernel("version");
    Results {
        command: command.to_owned(),
        version: VERSION.into(),
        start: date(started),
        end: date(Timestamp::now()),
        return_code: 0,
        realtime: version.contains("PREEMPT_RT"),
        system: [
            of_kernel("ostype"),
            of_kernel("hostname"),
            of_kernel("osrelease"),
            version,
            std::env::consts::ARCH.into(),
        ],
        ..Results::default()
    }
}
