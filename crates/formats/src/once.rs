// SPDX-License-Identifier: MIT OR Apache-2.0
//! JSON without repetitions. JSON itself allows two values for one key, and a reader would
//! silently take one of them.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A value in which no object has a key twice.
pub struct Once;

impl<'de> Deserialize<'de> for Once {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Once)
    }
}

impl<'de> Visitor<'de> for Once {
    type Value = Self;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E>(self, _: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        while all.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Self, A::Error> {
        let mut seen = HashSet::new();
        while let Some(key) = all.next_key::<String>()? {
            if seen.contains(&key) {
                return Err(A::Error::custom(format_args!("\"{key}\" is there twice")));
            }
            seen.insert(key);
            all.next_value::<Self>()?;
        }
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_there_once_however_deep_and_however_written() {
        let is_sound = |text: &str| serde_json::from_str::<Once>(text).map(drop);
        assert!(is_sound("{\"a\": [1, -2, 0.5, null, true, \"x\"], \"b\": {\"a\": {}}}").is_ok());
        for twice in [
            "{\"0\": 1, \"1\": 2, \"0\": 3}",
            "[{\"a\": {\"b\": 1, \"b\": 1}}]",
            "{\"0\": 1, \"\\u0030\": 2}",
        ] {
            let error = is_sound(twice).unwrap_err().to_string();
            assert!(error.contains("is there twice"), "{error}");
        }
    }
}
