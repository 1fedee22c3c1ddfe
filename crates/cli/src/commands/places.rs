// SPDX-License-Identifier: MIT OR Apache-2.0
//! Finds kernels in a row by the words that users have for them.

use anyhow::Result;

use crate::UsageError;

/// The indices of the kernels that a word names: by an id, by a version, or by the upstream part of
/// one. Never empty.
pub fn places(ids: &[&str], word: &str, option: &str) -> Result<Vec<usize>> {
    let is_it = |id: &str| {
        let version = id.split_once('@').map(|(_, version)| version);
        let upstream = version.and_then(|version| version.rsplit_once('-'));
        id == word || version == Some(word) || upstream.is_some_and(|(one, _)| one == word)
    };
    let found: Vec<usize> = (0..ids.len()).filter(|at| is_it(ids[*at])).collect();
    if !found.is_empty() {
        return Ok(found);
    }
    let known = ids
        .iter()
        .map(|id| id.split_once('@').map_or(*id, |(_, version)| version));
    let known: Vec<&str> = known.collect();
    let known = known.join(", ");
    Err(UsageError(format!("{option}: expected one of {known}, found {word}")).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_is_named_by_id_by_version_and_by_its_upstream_part() {
        let ids = ["k@6.12.43-1~bpo12+1", "k@6.12.44-1", "k@6.12.44-2", "mine"];
        let found = |word| places(&ids, word, "--good").ok();
        assert_eq!(found("6.12.43"), Some(vec![0]));
        assert_eq!(found("6.12.44"), Some(vec![1, 2]));
        assert_eq!(found("6.12.44-2"), Some(vec![2]));
        assert_eq!(found("k@6.12.44-1"), Some(vec![1]));
        assert_eq!(found("mine"), Some(vec![3]));
        let unknown = places(&ids, "6.12.4", "--good").unwrap_err().to_string();
        assert!(
            unknown.starts_with("--good: expected one of 6.12.43-1~"),
            "{unknown}"
        );
    }
}
