//! The images and sounds that a wire format supports.

use proctor_record::model::{Media, ModelMessage, ModelRequest, ToolResult};

use super::ModelError;
use super::wire::WireFormat;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum MediaSender {
    User,
    Tool,
}

/// Rejects a request with media that can't be sent.
pub(super) fn check(format: WireFormat, request: &ModelRequest) -> Result<(), ModelError> {
    for message in &request.messages {
        if let ModelMessage::Media(media) = message
            && !is_taken(format, MediaSender::User, &media.mime_type)
        {
            let detail = format!("`{}` can't be sent over this API", media.mime_type);
            return Err(ModelError::Rejected { detail });
        }
    }
    Ok(())
}

/// The media of a tool result that can be sent, and its text with notes about the others.
pub(super) fn of_result(format: WireFormat, result: &ToolResult) -> (String, Vec<&Media>) {
    let (taken, left): (Vec<&Media>, Vec<&Media>) = result
        .media
        .iter()
        .partition(|media| is_taken(format, MediaSender::Tool, &media.mime_type));
    let mut text = result.text.clone();
    for media in left {
        text.push_str(&not_shown(media));
    }
    (text.trim_start().to_owned(), taken)
}

/// Whether any tool result holds media.
pub(super) fn is_shown(request: &ModelRequest) -> bool {
    request.messages.iter().any(|message| match message {
        ModelMessage::Results(results) => results.iter().any(|result| !result.media.is_empty()),
        _ => false,
    })
}

/// Whether an error is about images or sounds.
pub(super) fn is_meant(detail: &str) -> bool {
    ["image", "audio", "multimodal", "media"]
        .iter()
        .any(|word| detail.contains(word))
}

/// The request without the media of tool results, for a model that does not accept them.
pub(super) fn without(request: &ModelRequest) -> ModelRequest {
    let mut request = request.clone();
    for message in &mut request.messages {
        if let ModelMessage::Results(results) = message {
            for result in results {
                for media in std::mem::take(&mut result.media) {
                    result.text.push_str(&not_shown(&media));
                }
            }
        }
    }
    request
}

fn not_shown(media: &Media) -> String {
    format!("\n[{} is not shown: it is not taken here]", media.mime_type)
}

fn is_taken(format: WireFormat, by: MediaSender, mime_type: &str) -> bool {
    const PICTURES: [&str; 4] = ["image/jpeg", "image/png", "image/gif", "image/webp"];
    let is_picture = PICTURES.contains(&mime_type);
    match (format, by) {
        (WireFormat::Chat, MediaSender::User) => is_picture || sound(mime_type).is_some(),
        (WireFormat::Chat, MediaSender::Tool) => false,
        (WireFormat::Responses | WireFormat::Messages, _) => is_picture,
        (WireFormat::Gemini, _) => {
            mime_type.starts_with("image/") || mime_type.starts_with("audio/")
        }
    }
}

/// The name in Chat Completions for a supported audio type.
pub(super) fn sound(mime_type: &str) -> Option<&'static str> {
    match mime_type {
        "audio/wav" | "audio/x-wav" | "audio/wave" => Some("wav"),
        "audio/mpeg" | "audio/mp3" => Some("mp3"),
        _ => None,
    }
}
