//! The messages of an eval: MCP's `SamplingMessage`.
//!
//! Its main type is [`Message`]. Content of an unknown type is kept unchanged.

#![expect(
    missing_docs,
    reason = "fields of plain data, named as in the MCP schema"
)]

use serde_json::{Map, Value};

use crate::fields::{Fields, ShapeFault, below, fault, object, serde_by_hand};

/// One message of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub role: Role,
    pub content: Contents,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// The sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The user, including tool results.
    User,
    Assistant,
}

impl Role {
    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// The content of a message, as a single block or as a list of them.
#[derive(Debug, Clone, PartialEq)]
pub enum Contents {
    /// One block, not in a list.
    One(Content),
    /// A list of blocks.
    Many(Vec<Content>),
}

impl Contents {
    pub fn blocks(&self) -> &[Content] {
        match self {
            Self::One(block) => std::slice::from_ref(block),
            Self::Many(blocks) => blocks,
        }
    }
}

/// One block of a message.
#[derive(Debug, Clone, PartialEq)]
pub enum Content {
    Text(TextContent),
    Image(MediaContent),
    Audio(MediaContent),
    /// A tool call of the model.
    ToolUse(ToolUse),
    /// The result of a tool call.
    ToolResult(ToolResult),
    /// A block of an unknown type, unchanged.
    Other(Map<String, Value>),
}

#[derive(Debug, Clone, Default, PartialEq)]
pub struct TextContent {
    pub text: String,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// An image or audio data.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MediaContent {
    /// The data in base64.
    pub data: String,
    /// The MIME type of the data.
    pub mime_type: String,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// A tool call of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolUse {
    /// The id that links the call to its result.
    pub id: String,
    pub name: String,
    pub input: Map<String, Value>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

/// The result of a tool call.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ToolResult {
    pub tool_use_id: String,
    /// The blocks of the result, unchanged.
    pub content: Vec<Value>,
    /// The structured result. Newer protocol versions allow any value here.
    pub structured_content: Option<Value>,
    /// Whether the call failed.
    pub is_error: Option<bool>,
    /// Fields that this crate does not know.
    pub extra: Map<String, Value>,
}

impl Message {
    /// Text from the user.
    pub fn user(text: impl Into<String>) -> Self {
        Self::text(Role::User, text)
    }

    /// Text from the model.
    pub fn assistant(text: impl Into<String>) -> Self {
        Self::text(Role::Assistant, text)
    }

    fn text(role: Role, text: impl Into<String>) -> Self {
        Self {
            role,
            content: Contents::One(Content::Text(TextContent {
                text: text.into(),
                extra: Map::new(),
            })),
            extra: Map::new(),
        }
    }

    pub(crate) fn read_all(
        value: Value,
        path: &str,
        faults: &mut Vec<ShapeFault>,
    ) -> Option<Vec<Self>> {
        read_list(value, path, faults, Self::read)
    }

    pub(crate) fn write_all(messages: &[Self]) -> Value {
        messages.iter().map(Self::write).collect()
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let mut fields = Fields::new(members, path, faults);
        let role = match fields.text("role").as_deref() {
            Some("user") => Some(Role::User),
            Some("assistant") => Some(Role::Assistant),
            Some(_) => {
                fields.fault("role", "must be `user` or `assistant`");
                None
            }
            None => None,
        };
        let content = fields.read("content", Contents::read);
        Some(Self {
            extra: fields.rest()?,
            role: role?,
            content: content?,
        })
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = self.extra.clone();
        members.insert("role".to_owned(), self.role.as_str().into());
        let content = match &self.content {
            Contents::One(block) => block.write(),
            Contents::Many(blocks) => blocks.iter().map(Content::write).collect(),
        };
        members.insert("content".to_owned(), content);
        Value::Object(members)
    }
}

impl Contents {
    fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        if value.is_array() {
            read_list(value, path, faults, Content::read).map(Self::Many)
        } else {
            Content::read(value, path, faults).map(Self::One)
        }
    }
}

impl Content {
    /// The value of `type`.
    pub fn kind(&self) -> &str {
        match self {
            Self::Text(_) => "text",
            Self::Image(_) => "image",
            Self::Audio(_) => "audio",
            Self::ToolUse(_) => "tool_use",
            Self::ToolResult(_) => "tool_result",
            Self::Other(members) => members.get("type").and_then(Value::as_str).unwrap_or(""),
        }
    }

    pub(crate) fn read(value: Value, path: &str, faults: &mut Vec<ShapeFault>) -> Option<Self> {
        let members = object(value, path, faults)?;
        let Some(Value::String(kind)) = members.get("type") else {
            let text = match members.get("type") {
                Some(_) => "must be a string",
                None => "is missing",
            };
            fault(faults, &below(path, "type"), text);
            return None;
        };
        let kind = kind.clone();
        let known = ["text", "image", "audio", "tool_use", "tool_result"];
        if !known.contains(&kind.as_str()) {
            return Some(Self::Other(members));
        }
        let mut fields = Fields::new(members, path, faults);
        fields.take("type");
        match kind.as_str() {
            "text" => TextContent::read(fields).map(Self::Text),
            "image" => MediaContent::read(fields).map(Self::Image),
            "audio" => MediaContent::read(fields).map(Self::Audio),
            "tool_use" => ToolUse::read(fields).map(Self::ToolUse),
            _ => ToolResult::read(fields).map(Self::ToolResult),
        }
    }

    pub(crate) fn write(&self) -> Value {
        let mut members = match self {
            Self::Text(content) => content.members(),
            Self::Image(content) | Self::Audio(content) => content.members(),
            Self::ToolUse(content) => content.members(),
            Self::ToolResult(content) => content.members(),
            Self::Other(members) => return Value::Object(members.clone()),
        };
        members.insert("type".to_owned(), self.kind().into());
        Value::Object(members)
    }
}

impl TextContent {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let text = fields.text("text");
        Some(Self {
            extra: fields.rest()?,
            text: text?,
        })
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        members.insert("text".to_owned(), self.text.as_str().into());
        members
    }
}

impl MediaContent {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let data = fields.text("data");
        let mime_type = fields.text("mimeType");
        Some(Self {
            extra: fields.rest()?,
            data: data?,
            mime_type: mime_type?,
        })
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        members.insert("data".to_owned(), self.data.as_str().into());
        members.insert("mimeType".to_owned(), self.mime_type.as_str().into());
        members
    }
}

impl ToolUse {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let id = fields.text("id");
        let name = fields.text("name");
        let input = fields.object("input");
        Some(Self {
            extra: fields.rest()?,
            id: id?,
            name: name?,
            input: input?,
        })
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        members.insert("id".to_owned(), self.id.as_str().into());
        members.insert("name".to_owned(), self.name.as_str().into());
        members.insert("input".to_owned(), self.input.clone().into());
        members
    }
}

impl ToolResult {
    fn read(mut fields: Fields<'_>) -> Option<Self> {
        let tool_use_id = fields.text("toolUseId");
        let content = fields.array("content");
        let structured_content = fields.take("structuredContent");
        let is_error = fields.optional_bool("isError");
        Some(Self {
            extra: fields.rest()?,
            tool_use_id: tool_use_id?,
            content: content?,
            structured_content,
            is_error,
        })
    }

    fn members(&self) -> Map<String, Value> {
        let mut members = self.extra.clone();
        members.insert("toolUseId".to_owned(), self.tool_use_id.as_str().into());
        members.insert("content".to_owned(), self.content.clone().into());
        if let Some(structured) = &self.structured_content {
            members.insert("structuredContent".to_owned(), structured.clone());
        }
        if let Some(is_error) = self.is_error {
            members.insert("isError".to_owned(), is_error.into());
        }
        members
    }
}

serde_by_hand!(Message, Content);

/// Reads all elements, to collect the faults of all.
fn read_list<T>(
    value: Value,
    path: &str,
    faults: &mut Vec<ShapeFault>,
    read: impl Fn(Value, &str, &mut Vec<ShapeFault>) -> Option<T>,
) -> Option<Vec<T>> {
    let Value::Array(elements) = value else {
        fault(faults, path, "must be an array");
        return None;
    };
    let read: Vec<Option<T>> = elements
        .into_iter()
        .enumerate()
        .map(|(index, element)| read(element, &below(path, &index.to_string()), faults))
        .collect();
    read.into_iter().collect()
}
