//! The templates of agent files: the part of Go's `text/template` that public agent files use.
//!
//! Its main type is [`GoTemplate`]. The parser finds all mistakes, including types and the number
//! of values, so that rendering can't fail. The result is a list of [`RenderedPiece`]s
//! with the origin of each text: a shell interprets only the text of the file's author;
//! everything else is data.

mod calls;
mod format;
mod lex;
mod parse;
pub(super) mod place;
mod render;
#[cfg(test)]
mod tests;

use self::format::FormatPart;

#[derive(Debug, Clone, PartialEq)]
pub struct GoTemplate {
    nodes: Vec<TemplateNode>,
}

/// The use of a template, which decides its fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateUse {
    /// The template in `commands.runPrompt`.
    RunPrompt,
    /// The template in `commands.argTemplateMcpServer`.
    McpServer,
    /// The template in `commands.argTemplateAllowedTools`.
    AllowedTools,
}

impl TemplateUse {
    fn fields(self) -> &'static [(&'static str, ExprType)] {
        match self {
            Self::RunPrompt => &[
                ("Prompt", ExprType::Text),
                ("McpServerFileArgs", ExprType::Text),
                ("AllowedToolArgs", ExprType::Text),
                ("DangerouslySkipPermissions", ExprType::Truth),
            ],
            Self::McpServer => &[("File", ExprType::Text), ("URL", ExprType::Text)],
            Self::AllowedTools => &[("ServerName", ExprType::Text), ("ToolName", ExprType::Text)],
        }
    }
}

/// A mistake in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// The byte offset of the mistake.
    pub at: usize,
    /// The length in bytes.
    pub len: usize,
    /// The byte offset of the action that contains it.
    pub action: usize,
    /// The message: lower case, no full stop.
    pub message: String,
    pub hint: Option<String>,
}

/// The origin of a text. A combination of texts has the last of their origins in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextOrigin {
    /// The agent file. A shell interprets this text.
    Author,
    /// A name, a path or an address.
    Value,
    Prompt,
}

/// A part of a rendered template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPiece {
    /// The text, without the quotes of `%q`.
    pub text: String,
    pub origin: TextOrigin,
    /// Whether the template quotes it with `%q`. The author's own texts have their quotes already.
    pub quoted: bool,
}

impl RenderedPiece {
    /// A text from there.
    pub fn new(text: impl Into<String>, origin: TextOrigin) -> Self {
        Self {
            text: text.into(),
            origin,
            quoted: false,
        }
    }

    /// The text as Go would render it.
    pub fn written(&self) -> String {
        if self.quoted {
            format::go_quote(&self.text)
        } else {
            self.text.clone()
        }
    }
}

/// The value of a field or an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A text, in pieces.
    Text(Vec<RenderedPiece>),
    Number(i64),
    Truth(bool),
}

impl GoTemplate {
    /// Parses a template, or returns all mistakes in it.
    pub fn parse(text: &str, usage: TemplateUse) -> Result<Self, Vec<TemplateFault>> {
        parse::template(text, usage.fields()).map(|nodes| Self { nodes })
    }

    /// Whether the template names a field anywhere.
    pub fn uses(&self, field: &str) -> bool {
        self.nodes.iter().any(|node| node.uses(field))
    }

    /// Renders the template with the values of `field`.
    pub fn render(&self, field: &mut dyn FnMut(&str) -> FieldValue) -> Vec<RenderedPiece> {
        render::nodes(&self.nodes, field)
    }
}

/// The type of an expression.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ExprType {
    Text,
    Number,
    Truth,
    /// One of several types, as the result of `and` and `or`.
    Any,
}

impl ExprType {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "string",
            Self::Number => "number",
            Self::Truth => "boolean",
            Self::Any => "value of unknown type",
        }
    }
}

/// A part of a template.
#[derive(Debug, Clone, PartialEq)]
enum TemplateNode {
    Text(String),
    Output(Expr),
    If {
        condition: Expr,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
    /// As `If`, with the dot on the value.
    With {
        value: Expr,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
}

/// The expression of an action. A pipe is a call with the value before it as the last argument.
#[derive(Debug, Clone, PartialEq)]
enum Expr {
    Field(String),
    /// The value of the `with` around it.
    Dot,
    Text(String),
    Number(i64),
    Truth(bool),
    Call(Function, Vec<Expr>),
}

/// A function. `printf` includes its parsed format.
#[derive(Debug, Clone, PartialEq)]
enum Function {
    Printf(Vec<FormatPart>),
    Print,
    Println,
    Html,
    Js,
    Urlquery,
    Len,
    Not,
    And,
    Or,
    Compare(Comparison),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl TemplateNode {
    fn uses(&self, field: &str) -> bool {
        match self {
            Self::Text(_) => false,
            Self::Output(expr) => expr.uses(field),
            Self::If {
                condition: value,
                then,
                otherwise,
            }
            | Self::With {
                value,
                then,
                otherwise,
            } => value.uses(field) || then.iter().chain(otherwise).any(|node| node.uses(field)),
        }
    }
}

impl Expr {
    fn uses(&self, field: &str) -> bool {
        match self {
            Self::Field(name) => name == field,
            Self::Call(_, args) => args.iter().any(|arg| arg.uses(field)),
            Self::Dot | Self::Text(_) | Self::Number(_) | Self::Truth(_) => false,
        }
    }
}
