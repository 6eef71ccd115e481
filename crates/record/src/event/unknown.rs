//! Events of a newer version. They are stored unchanged, shown as unknown, and skipped otherwise.
//!
//! The main type is [`UnknownEvent`].

use std::fmt;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Error as _, Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use super::{Event, EventKind};
use crate::json;

/// An event whose name or form this version does not know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownEvent {
    /// Its name in the record.
    pub name: String,
    /// The content as JSON; `None` for an event that is only a name.
    pub content: Option<String>,
}

impl Event {
    /// Parses a line that is not an event of this version; `None` if it is not an event at all. If
    /// a newer Proctor wrote it (`newer`), a known event may have an unknown form.
    pub(crate) fn read_unknown(line: &[u8], newer: bool) -> Option<Self> {
        #[derive(serde::Deserialize)]
        struct EventLine {
            seq: u64,
            at: u64,
            event: Box<RawValue>,
        }
        let EventLine { seq, at, event } = json::from_slice(line).ok()?;
        let unknown = UnknownEvent::read(event.get())?;
        if !newer && known_names().contains(&unknown.name.as_str()) {
            return None;
        }
        let event = EventKind::Unknown(unknown);
        Some(Self { seq, at, event })
    }
}

impl UnknownEvent {
    fn read(event: &str) -> Option<Self> {
        if let Ok(name) = json::from_str(event) {
            let content = None;
            return Some(Self { name, content });
        }
        let members: Vec<(String, Box<RawValue>)> = json::from_str::<Members>(event).ok()?.0;
        let [(name, content)] = <[_; 1]>::try_from(members).ok()?;
        Some(Self {
            name,
            content: Some(content.get().to_owned()),
        })
    }
}

/// The members of an object in order, including duplicates.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: de::MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Serializes an event; an unknown one as it was read.
pub(super) fn serialize<S: Serializer>(what: &EventKind, serializer: S) -> Result<S::Ok, S::Error> {
    let EventKind::Unknown(UnknownEvent { name, content }) = what else {
        return what.serialize(serializer);
    };
    let Some(content) = content else {
        return serializer.serialize_str(name);
    };
    let content = RawValue::from_string(content.clone()).map_err(S::Error::custom)?;
    let mut map = serializer.serialize_map(Some(1))?;
    map.serialize_entry(name, &content)?;
    map.end()
}

/// The names of the events that this version knows, as [`EventKind`] declares them.
fn known_names() -> &'static [&'static str] {
    match EventKind::deserialize(VariantNameProbe) {
        Err(VariantNames(names)) => names,
        Ok(_) => &[],
    }
}

/// Gets the variant names of an enum from a failed deserialization.
struct VariantNameProbe;

#[derive(Debug)]
struct VariantNames(&'static [&'static str]);

impl fmt::Display for VariantNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names of events")
    }
}

impl std::error::Error for VariantNames {}

impl de::Error for VariantNames {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for VariantNameProbe {
    type Error = VariantNames;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, VariantNames> {
        Err(VariantNames(&[]))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, VariantNames> {
        Err(VariantNames(variants))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit
        unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_event_is_stored_unchanged() {
        let check = |line: &str| {
            let event = Event::read_unknown(line.as_bytes(), false).unwrap();
            assert!(matches!(event.event, EventKind::Unknown(_)), "{line}");
            assert_eq!(serde_json::to_string(&event).unwrap(), line);
        };
        check(
            r#"{"seq":3,"at":12,"event":{"trialPaused":{"for":1.50,"n":12345678901234567890123}}}"#,
        );
        check(r#"{"seq":3,"at":12,"event":{"trialPaused":[]}}"#);
        check(r#"{"seq":3,"at":12,"event":"runPaused"}"#);
    }

    #[test]
    fn a_known_event_in_another_form_is_unknown_only_if_it_is_newer() {
        let line = br#"{"seq":3,"at":12,"event":{"phaseStarted":{"phase":"rest"}}}"#;
        assert_eq!(Event::read_unknown(line, false), None);
        assert!(Event::read_unknown(line, true).is_some());
    }

    #[test]
    fn invalid_lines_are_not_unknown_events() {
        for line in [
            "",
            "{}",
            r#"{"seq":1,"at":1,"event":{}}"#,
            r#"{"seq":1,"at":1,"event":{"a":1,"b":2}}"#,
            r#"{"seq":1,"at":1,"event":{"a":1}"#,
            r#"{"seq":1,"at":1,"event":7}"#,
            r#"{"at":1,"event":{"a":1}}"#,
        ] {
            assert_eq!(Event::read_unknown(line.as_bytes(), true), None, "{line}");
        }
    }

    #[test]
    fn every_name_is_known() {
        let names = known_names();
        assert!(names.contains(&"runStarted") && names.contains(&"graded"));
        assert!(!names.contains(&"unknown"), "{names:?}");
    }
}
