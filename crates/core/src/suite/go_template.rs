//! The templates of agent files: the part of Go's `text/template` that public agent files use.
//!
//! Its main type is [`GoTemplate`]. All mistakes are found when it is parsed: types and the number
//! of values included, so that rendering can't fail. What a template gives is a list of [`RenderedPiece`]s
//! that say where each text comes from: only what the author of the file wrote is for a shell to
//! read, everything else is data.

mod calls;
mod format;
mod lex;
mod parse;
pub(super) mod place;
mod render;
#[cfg(test)]
mod tests;

use self::format::FormatPart;

/// A template, without mistakes.
#[derive(Debug, Clone, PartialEq)]
pub struct GoTemplate {
    nodes: Vec<TemplateNode>,
}

/// What a template is for, which decides what its fields are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TemplateUse {
    /// `commands.runPrompt`.
    RunPrompt,
    /// `commands.argTemplateMcpServer`.
    McpServer,
    /// `commands.argTemplateAllowedTools`.
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
    /// The byte at which it stands.
    pub at: usize,
    /// How many bytes it is long.
    pub len: usize,
    /// The byte at which the action starts that it stands in.
    pub action: usize,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What may help.
    pub hint: Option<String>,
}

/// Where a text comes from. What is made of several texts comes from the last of them in this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TextOrigin {
    /// The agent file: text for a shell.
    Author,
    /// A name, a path or an address.
    Value,
    /// The prompt.
    Prompt,
}

/// A part of what a template gives.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedPiece {
    /// The text, without the quotes of `%q`.
    pub text: String,
    /// Where it comes from.
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

    /// The text as Go would write it.
    pub fn written(&self) -> String {
        if self.quoted {
            format::go_quote(&self.text)
        } else {
            self.text.clone()
        }
    }
}

/// What a field or an expression stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FieldValue {
    /// A text, in pieces.
    Text(Vec<RenderedPiece>),
    /// A number.
    Number(i64),
    /// Yes or no.
    Truth(bool),
}

impl GoTemplate {
    /// Reads a template, with all mistakes that are found in it.
    pub fn parse(text: &str, usage: TemplateUse) -> Result<Self, Vec<TemplateFault>> {
        parse::template(text, usage.fields()).map(|nodes| Self { nodes })
    }

    /// Whether the template names a field anywhere.
    pub fn uses(&self, field: &str) -> bool {
        self.nodes.iter().any(|node| node.uses(field))
    }

    /// What the template gives, if its fields stand for this.
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
    /// One of several, as `and` and `or` give.
    Any,
}

impl ExprType {
    fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Number => "number",
            Self::Truth => "truth value",
            Self::Any => "value of unclear type",
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

/// What an action computes. A pipe is a call whose last argument is what stands before it.
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

/// A function. That of `printf` has its format.
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
