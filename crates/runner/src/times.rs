// SPDX-License-Identifier: MIT OR Apache-2.0
//! The form of times by which runs are chosen.

use jiff::Timestamp;
use jiff::civil::DateTime;

/// A time as the store has it: RFC 3339, UTC. A year or a month is its first part. `name` is what
/// the user gave it for.
///
/// # Errors
/// If it is no time.
pub fn parse(name: &str, text: &str) -> Result<String, String> {
    const FORM: &str = "%Y-%m-%dT%H:%M:%SZ";
    let begins = |rest: &str| format!("{text}{rest}").parse::<DateTime>().is_ok();
    // With an offset it is a moment; without one it is in UTC.
    if let Ok(moment) = text.parse::<Timestamp>() {
        Ok(moment.strftime(FORM).to_string())
    } else if let Ok(time) = text.parse::<DateTime>() {
        Ok(time.strftime(FORM).to_string())
    } else if begins("-01") || begins("-01-01") {
        Ok(text.to_owned())
    } else {
        Err(format!(
            "{name}: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \"{text}\""
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_in_utc_and_can_be_taken_from_a_list_of_runs() {
        for (text, expected) in [
            ("2026", "2026"),
            ("2026-05", "2026-05"),
            ("2026-05-01", "2026-05-01T00:00:00Z"),
            ("2026-05-01T12:00", "2026-05-01T12:00:00Z"),
            ("2026-05-01 12:00:07", "2026-05-01T12:00:07Z"),
            ("2026-05-01T12:00:07Z", "2026-05-01T12:00:07Z"),
            ("2026-05-01T12:00+02:00", "2026-05-01T10:00:00Z"),
        ] {
            let parsed = parse("--from", text);
            assert_eq!(parsed.as_deref(), Ok(expected), "{text}");
        }
        for text in ["yesterday", "2026-13-45", "2026-13", "12:00", ""] {
            let expected = format!(
                "--from: expected a time such as 2026-05-01 or 2026-05-01T12:00 (UTC), found \
                 \"{text}\""
            );
            assert_eq!(parse("--from", text), Err(expected));
        }
    }
}
