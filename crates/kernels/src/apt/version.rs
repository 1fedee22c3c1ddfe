// SPDX-License-Identifier: MIT OR Apache-2.0
//! The order of Debian's versions.

use std::cmp::Ordering;

/// Compares versions as Debian does (deb-version(7)): epoch, upstream version, revision.
pub(crate) fn compare(a: &str, b: &str) -> Ordering {
    let (a_epoch, a_upstream, a_revision) = split_version(a);
    let (b_epoch, b_upstream, b_revision) = split_version(b);
    a_epoch
        .cmp(&b_epoch)
        .then_with(|| compare_parts(a_upstream, b_upstream))
        .then_with(|| compare_parts(a_revision, b_revision))
}

fn split_version(version: &str) -> (u64, &str, &str) {
    let (epoch, rest) = version.split_once(':').unwrap_or(("0", version));
    let (upstream, revision) = rest.rsplit_once('-').unwrap_or((rest, "0"));
    (epoch.parse().unwrap_or(0), upstream, revision)
}

/// Compares parts in which texts and numbers take turns; `~` sorts before the end, the end before
/// letters, letters before everything else.
fn compare_parts(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let (a_text, a_rest) = split_at(a, |c| c.is_ascii_digit());
        let (b_text, b_rest) = split_at(b, |c| c.is_ascii_digit());
        let (a_number, a_rest) = split_at(a_rest, |c| !c.is_ascii_digit());
        let (b_number, b_rest) = split_at(b_rest, |c| !c.is_ascii_digit());
        let order =
            compare_texts(a_text, b_text).then_with(|| number(a_number).cmp(&number(b_number)));
        if order.is_ne() {
            return order;
        }
        (a, b) = (a_rest, b_rest);
    }
    Ordering::Equal
}

fn split_at(text: &str, end: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(end).unwrap_or(text.len()))
}

fn number(digits: &str) -> u64 {
    digits.parse().unwrap_or(0)
}

fn compare_texts(a: &str, b: &str) -> Ordering {
    let rank = |text: &str, index: usize| match text.as_bytes().get(index) {
        Some(b'~') => -1,
        None => 0,
        Some(letter) if letter.is_ascii_alphabetic() => i32::from(*letter),
        Some(other) => 256 + i32::from(*other),
    };
    (0..a.len().max(b.len()))
        .map(|index| rank(a, index).cmp(&rank(b, index)))
        .find(|order| order.is_ne())
        .unwrap_or(Ordering::Equal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_dpkg_orders_them() {
        let ordered = [
            "1.0~rc1-1",
            "1.0-1~deb12u1",
            "1.0-1",
            "1.0-1+b1",
            "1.0-2",
            "1.0a-1",
            "1.0+x-1",
            "6.1.170-3",
            "6.12.9-1",
            "6.12.107-1~deb12u1",
            "6.12.107-1",
            "1:0.1-1",
        ];
        for (i, a) in ordered.iter().enumerate() {
            for (j, b) in ordered.iter().enumerate() {
                assert_eq!(compare(a, b), i.cmp(&j), "{a} and {b}");
            }
        }
        assert_eq!(compare("1.0", "1.0-0"), Ordering::Equal);
        assert_eq!(compare("1.01", "1.1"), Ordering::Equal);
    }
}
