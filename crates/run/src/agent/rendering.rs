//! Renders results for a model: text, and a placeholder for other content.

use proctor_record::json;
use proctor_record::model::Media;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// The maximum length of a result for a model. Longer results are cut, with a note.
const SHOWN: usize = 512 * 1024;

/// The maximum size of an image or audio in base64, which providers accept.
const LARGEST_MEDIA: usize = 5 << 20;
/// The maximum number of images and audios of one result.
const MOST_MEDIA: usize = 10;

/// The parts of a result that are shown. Each is parsed by itself, so that a malformed part does
/// not hide another.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ResultParts<'a> {
    #[serde(default, borrow)]
    content: Option<&'a RawValue>,
    #[serde(default, borrow)]
    structured_content: Option<&'a RawValue>,
}

pub(super) fn tool_result(raw: &RawValue) -> String {
    // Serde would accept a list as the fields of an object.
    let is_object = raw.get().starts_with('{');
    let parts = json::from_str::<ResultParts<'_>>(raw.get());
    let Some(parts) = parts.ok().filter(|_| is_object) else {
        return cut(raw.get().to_owned());
    };
    let blocks: Vec<&RawValue> = parts
        .content
        .and_then(|content| json::from_str(content.get()).ok())
        .unwrap_or_default();
    let mut shown = Vec::new();
    let mut length = 0;
    for raw in blocks {
        let text = block(raw);
        length += text.len();
        shown.push(text);
        if length > SHOWN {
            break;
        }
    }
    if shown.iter().all(String::is_empty)
        && let Some(structured) = parts.structured_content
    {
        return cut(structured.get().to_owned());
    }
    cut(shown.join("\n"))
}

/// Renders a content block as text.
fn block(raw: &RawValue) -> String {
    let Ok(block) = json::from_str::<Value>(raw.get()) else {
        return raw.get().to_owned();
    };
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    match text("type") {
        Some("text") => text("text").unwrap_or_default().to_owned(),
        Some("resource") => block.get("resource").map_or_else(String::new, resource),
        Some("resource_link") => {
            let name = text("name").unwrap_or_default();
            format!("[resource {name}: {}]", text("uri").unwrap_or_default())
        }
        Some(kind @ ("image" | "audio")) => {
            let mime = text("mimeType").unwrap_or("unknown type");
            let bytes = text("data").map_or(0, |data| data.len() / 4 * 3);
            let shown = if media(&block).is_some() {
                ""
            } else {
                ", not shown"
            };
            format!("[{kind}, {mime}, about {bytes} bytes{shown}]")
        }
        _ => raw.get().to_owned(),
    }
}

/// The images and audios of a tool's result.
pub(super) fn tool_media(raw: &RawValue) -> Vec<Media> {
    // Most results have none, and only one escape of JSON can spell a letter.
    if !raw.get().contains("data") && !raw.get().contains("\\u") {
        return Vec::new();
    }
    let decoded = json::decode(raw.get()).or_else(|_| json::from_str(raw.get()));
    let Ok(Value::Object(result)) = decoded else {
        return Vec::new();
    };
    let blocks = result.get("content").and_then(Value::as_array);
    blocks
        .into_iter()
        .flatten()
        .filter_map(media)
        .take(MOST_MEDIA)
        .collect()
}

/// The image or audio of a block, if it is small enough for a model.
fn media(block: &Value) -> Option<Media> {
    let text = |key: &str| block.get(key).and_then(Value::as_str);
    let data = text("data").filter(|data| (1..=LARGEST_MEDIA).contains(&data.len()))?;
    matches!(text("type"), Some("image" | "audio")).then_some(())?;
    Some(Media {
        mime_type: text("mimeType")?.to_owned(),
        data: data.to_owned(),
    })
}

/// The contents of a resource as text.
fn resource(contents: &Value) -> String {
    let text = |key: &str| contents.get(key).and_then(Value::as_str);
    let uri = text("uri").unwrap_or_default();
    match (text("text"), text("blob")) {
        (Some(text), _) => text.to_owned(),
        (None, Some(blob)) => {
            let mime = text("mimeType").unwrap_or("unknown type");
            let bytes = blob.len() / 4 * 3;
            format!("[{uri}, {mime}, about {bytes} bytes, not shown]")
        }
        (None, None) => contents.to_string(),
    }
}

/// The result of `resources/read` as text.
pub(super) fn resource_result(raw: &RawValue) -> String {
    let result: Value = json::from_str(raw.get()).unwrap_or_default();
    match result.get("contents").and_then(Value::as_array) {
        Some(contents) => {
            let texts: Vec<String> = contents.iter().map(resource).collect();
            cut(texts.join("\n"))
        }
        None => cut(raw.get().to_owned()),
    }
}

/// Any other text, cut to the maximum length.
pub(super) fn plain(text: String) -> String {
    cut(text)
}

fn cut(text: String) -> String {
    if text.len() <= SHOWN {
        return text;
    }
    let start = text.floor_char_boundary(SHOWN / 2);
    let end = text.ceil_char_boundary(text.len() - SHOWN / 2);
    let left_out = end - start;
    format!(
        "{}\n[{left_out} bytes are left out here]\n{}",
        &text[..start],
        &text[end..]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_is_rendered_as_text() {
        let check = |result: &str, expected: &str| {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            assert_eq!(tool_result(&raw), expected, "{result}");
        };
        check(
            r#"{"content":[{"type":"text","text":"a"},{"type":"text","text":"b"}]}"#,
            "a\nb",
        );
        check(
            r#"{"content":[],"structuredContent":{"n":1.50}}"#,
            r#"{"n":1.50}"#,
        );
        check(
            r#"{"content":[{"type":"text","text":"x"}],"structuredContent":{"n":1}}"#,
            "x",
        );
        check(
            r#"{"content":[{"type":"image","mimeType":"image/png","data":"AAAA"}]}"#,
            "[image, image/png, about 3 bytes]",
        );
        check(
            r#"{"content":[{"type":"audio","data":"AAAA"}]}"#,
            "[audio, unknown type, about 3 bytes, not shown]",
        );
        check(
            r#"{"content":[{"type":"resource","resource":{"uri":"a:b","text":"hello"}}]}"#,
            "hello",
        );
        check(
            r#"{"content":[{"type":"resource_link","name":"n","uri":"a:b"}]}"#,
            "[resource n: a:b]",
        );
        check(
            r#"{"content":[{"type":"new","x":1}]}"#,
            r#"{"type":"new","x":1}"#,
        );
        check(r#"{"content":7}"#, "");
        check("[1]", "[1]");
    }

    #[test]
    fn images_and_audio_are_kept_within_the_limits() {
        let found = |result: &str| {
            let raw = RawValue::from_string(result.to_owned()).unwrap();
            let found = tool_media(&raw).into_iter();
            found.map(|media| media.mime_type).collect::<Vec<_>>()
        };
        let image = r#"{"type":"image","mimeType":"image/png","data":"AAAA"}"#;
        let audio = r#"{"type":"audio","mimeType":"audio/wav","data":"AAAA"}"#;
        let text = r#"{"type":"text","text":"x"}"#;
        assert_eq!(
            found(&format!("{{\"content\":[{image},{text},{audio}]}}")),
            ["image/png", "audio/wav"]
        );
        let escaped = image.replace("data", "d\\u0061ta");
        assert_eq!(
            found(&format!("{{\"content\":[{escaped}]}}")),
            ["image/png"]
        );
        let large = image.replace("AAAA", &"A".repeat(LARGEST_MEDIA + 1));
        assert!(found(&format!("{{\"content\":[{large}]}}")).is_empty());
        let many = [image; MOST_MEDIA + 1].join(",");
        assert_eq!(
            found(&format!("{{\"content\":[{many}]}}")).len(),
            MOST_MEDIA
        );
        assert!(found("[1]").is_empty() && found(r#"{"content":7}"#).is_empty());
    }

    #[test]
    fn a_long_result_is_cut_with_a_note() {
        let text = format!("é{}é", "x".repeat(SHOWN));
        let shown = cut(text);
        assert!(shown.contains("bytes are left out here"));
        assert!(shown.len() < SHOWN + 100);
        assert!(shown.starts_with('é') && shown.ends_with('é'));
    }
}
