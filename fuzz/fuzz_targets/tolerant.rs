//! The tolerant reader: a call that an ordinary JSON parser finds is never missed. Either the strict parser counts it, or the
//! tolerant reader reports a call that may be this one.
#![no_main]

use libfuzzer_sys::fuzz_target;
use proctor_record::message::tolerant::LenientReading;
use proctor_record::message::{self, MessageKind};
use proctor_record::transcript::CallKind;
use serde_json::Value;
use serde_json::value::RawValue;

/// The most calls that one frame may give, and one for the rest of them.
const MOST: usize = 101;

fuzz_target!(|data: &[u8]| {
    let reading = LenientReading::of(data);
    assert!(reading.calls.len() <= MOST);
    assert_eq!(reading, LenientReading::of(data), "the same bytes twice");
    let mut marked = b"\xef\xbb\xbf".to_vec();
    marked.extend_from_slice(data);
    if !data.starts_with(b"\xef\xbb\xbf") {
        assert_eq!(reading, LenientReading::of(&marked), "a byte order mark");
    }
    let mut counted = Vec::new();
    let _ = message::each(data, &mut |message| {
        if let MessageKind::Request { method, .. } = message.kind()
            && let Some(kind) = CallKind::of_method(method)
        {
            let params = message.params.map(RawValue::get).unwrap_or("null");
            let params: Value = serde_json::from_str(params).unwrap_or_default();
            counted.push((kind, target(kind, &params)));
        }
    });
    // Two readers that differ in what they do with bytes that are not UTF-8.
    let lossy = String::from_utf8_lossy(data);
    for text in [std::str::from_utf8(data).ok(), Some(&lossy)]
        .into_iter()
        .flatten()
    {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let Ok(value) = serde_json::from_str::<Value>(text) else {
            continue;
        };
        for (kind, name) in calls(&value) {
            let is_counted = counted.contains(&(kind, name.clone()));
            let may_be = reading.calls.iter().any(|call| {
                call.kind.is_none_or(|found| found == kind)
                    && (call.name.is_none() || call.name == name)
            });
            assert!(
                is_counted || may_be,
                "{kind:?} {name:?} is missed: {reading:?}"
            );
        }
    }
});

/// The calls that an ordinary server finds in a message or a batch. It may not need an id.
fn calls(value: &Value) -> Vec<(CallKind, Option<String>)> {
    let messages = match value {
        Value::Array(batch) => &batch[..],
        single => std::slice::from_ref(single),
    };
    let call = |message: &Value| {
        let kind = CallKind::of_method(message.get("method")?.as_str()?)?;
        Some((
            kind,
            target(kind, message.get("params").unwrap_or(&Value::Null)),
        ))
    };
    messages.iter().filter_map(call).collect()
}

fn target(kind: CallKind, params: &Value) -> Option<String> {
    let key = match kind {
        CallKind::Tool | CallKind::Prompt => "name",
        CallKind::Resource => "uri",
    };
    Some(params.get(key)?.as_str()?.to_owned())
}
