//! Finds duplicate keys: parsers disagree about which of the values counts.

use std::collections::HashSet;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Whether an object of a JSON text has a duplicate key. `false` if the text is not JSON.
pub fn repeats_a_key(json: &[u8]) -> bool {
    let error = serde_json::from_slice::<UniqueKeysValue>(json).err();
    error.is_some_and(|error| error.to_string().starts_with(REPEATED))
}

const REPEATED: &str = "duplicate key";

/// Any value without duplicate keys.
struct UniqueKeysValue;

impl<'de> Deserialize<'de> for UniqueKeysValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(UniqueVisitor)
    }
}

struct UniqueVisitor;

impl<'de> Visitor<'de> for UniqueVisitor {
    type Value = UniqueKeysValue;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<UniqueKeysValue, A::Error> {
        let mut known: HashSet<String> = HashSet::new();
        while let Some(key) = map.next_key::<String>()? {
            // With exact numbers, a number is a map of one key, whose value is its digits.
            if !known.insert(key) {
                return Err(A::Error::custom(REPEATED));
            }
            map.next_value::<UniqueKeysValue>()?;
        }
        Ok(UniqueKeysValue)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<UniqueKeysValue, A::Error> {
        while list.next_element::<UniqueKeysValue>()?.is_some() {}
        Ok(UniqueKeysValue)
    }

    fn visit_bool<E>(self, _: bool) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_i64<E>(self, _: i64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_u64<E>(self, _: u64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_f64<E>(self, _: f64) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_str<E>(self, _: &str) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_unit<E>(self) -> Result<UniqueKeysValue, E> {
        Ok(UniqueKeysValue)
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(
        self,
        inner: D,
    ) -> Result<UniqueKeysValue, D::Error> {
        IgnoredAny::deserialize(inner).map(|_| UniqueKeysValue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_key_is_found_wherever_it_stands() {
        for json in [
            r#"{"a":1,"a":1}"#,
            r#"[{"b":{"a":null,"c":1.5,"\u0061":"x"}}]"#,
            r#"{"a":[],"b":1e400,"a":{}}"#,
        ] {
            assert!(repeats_a_key(json.as_bytes()), "{json}");
        }
        for json in [
            "",
            "{",
            "1",
            r#"{"a":1,"A":1,"b":{"a":1},"c":[{"a":1},{"a":2}],"d":12345678901234567890123}"#,
            r#""duplicate key""#,
            r#"{"duplicate key":1}"#,
        ] {
            assert!(!repeats_a_key(json.as_bytes()), "{json}");
        }
    }
}
