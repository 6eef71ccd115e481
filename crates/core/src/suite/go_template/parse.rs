//! Parses tokens to a template, and checks its types.

use proctor_record::hint::{listed, nearest_hint};

use super::calls::call;
use super::lex::{LocatedToken, TemplateItem, TemplateToken, items};
use super::{Expr, ExprType, TemplateFault, TemplateNode};

/// The maximum depth of nested parentheses and conditions.
const DEPTH: usize = 32;

/// The nodes of a template, or all mistakes in it.
pub(super) fn template(
    text: &str,
    fields: &'static [(&'static str, ExprType)],
) -> Result<Vec<TemplateNode>, Vec<TemplateFault>> {
    let mut parser = Parser {
        items: items(text).map_err(|fault| vec![fault])?.into_iter(),
        fields,
        faults: Vec::new(),
        depth: 0,
    };
    let parsed = match parser.list(None) {
        Ok((nodes, None)) => Ok(nodes),
        Ok((_, Some(end))) => {
            let message = format!("`{}` without an `if` or `with` before it", end.word());
            Err(end.action.fault(message))
        }
        Err(fault) => Err(fault),
    };
    let mut faults = parser.faults;
    match parsed {
        Ok(nodes) if faults.is_empty() => Ok(nodes),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

/// The tokens of an action that are left.
struct ActionTokens {
    at: usize,
    tokens: std::iter::Peekable<std::vec::IntoIter<LocatedToken>>,
    /// The token that was taken last.
    last: (usize, usize),
}

impl ActionTokens {
    fn new(at: usize, tokens: Vec<LocatedToken>) -> Self {
        Self {
            at,
            tokens: tokens.into_iter().peekable(),
            last: (at, 2),
        }
    }

    fn next(&mut self) -> Option<TemplateToken> {
        let next = self.tokens.next()?;
        self.last = (next.at, next.len);
        Some(next.token)
    }

    fn peek(&mut self) -> Option<&TemplateToken> {
        self.tokens.peek().map(|located| &located.token)
    }

    /// A fault at the token that was taken last.
    fn fault(&self, message: impl Into<String>) -> TemplateFault {
        let (at, len) = self.last;
        TemplateFault {
            at,
            len,
            action: self.at,
            message: message.into(),
            hint: None,
        }
    }

    fn finish(&mut self) -> Result<(), TemplateFault> {
        match self.next() {
            None => Ok(()),
            Some(_) => Err(self.fault("unexpected text at the end of an action")),
        }
    }
}

/// The end of a list of nodes: `{{ end }}`, or `{{ else … }}` with the rest of its action.
struct BlockEnd {
    action: ActionTokens,
    is_else: bool,
}

impl BlockEnd {
    fn word(&self) -> &'static str {
        if self.is_else { "else" } else { "end" }
    }
}

struct Parser {
    items: std::vec::IntoIter<TemplateItem>,
    fields: &'static [(&'static str, ExprType)],
    /// Faults after which parsing continues.
    faults: Vec<TemplateFault>,
    depth: usize,
}

impl Parser {
    /// The nodes up to their end. `dot` is the type of `.` inside `with`.
    fn list(
        &mut self,
        dot: Option<ExprType>,
    ) -> Result<(Vec<TemplateNode>, Option<BlockEnd>), TemplateFault> {
        let mut nodes = Vec::new();
        while let Some(item) = self.items.next() {
            let mut action = match item {
                TemplateItem::Text(text) => {
                    nodes.push(TemplateNode::Text(text));
                    continue;
                }
                TemplateItem::Action { at, tokens } => ActionTokens::new(at, tokens),
            };
            let word = match action.peek() {
                Some(TemplateToken::Word(word)) => word.clone(),
                _ => String::new(),
            };
            match word.as_str() {
                "end" | "else" => {
                    action.next();
                    let is_else = word == "else";
                    return Ok((nodes, Some(BlockEnd { action, is_else })));
                }
                "if" | "with" => {
                    action.next();
                    nodes.push(self.branch(action, word == "with", dot)?);
                }
                _ => {
                    let (expr, _) = self.pipeline(&mut action, dot)?;
                    action.finish()?;
                    nodes.push(TemplateNode::Output(expr));
                }
            }
        }
        Ok((nodes, None))
    }

    /// `if` or `with`, from after its keyword to its end.
    fn branch(
        &mut self,
        mut action: ActionTokens,
        is_with: bool,
        dot: Option<ExprType>,
    ) -> Result<TemplateNode, TemplateFault> {
        self.enter(&action)?;
        let word = if is_with { "with" } else { "if" };
        let opened = action.fault(format!("`{word}` without an `end`"));
        let (value, kind) = self.pipeline(&mut action, dot)?;
        action.finish()?;
        let inner = if is_with { Some(kind) } else { dot };
        let (then, end) = self.list(inner)?;
        let mut end = end.ok_or_else(|| opened.clone())?;
        let otherwise = if end.is_else {
            self.otherwise(end.action, &opened, dot)?
        } else {
            end.action.finish()?;
            Vec::new()
        };
        self.depth -= 1;
        Ok(if is_with {
            TemplateNode::With {
                value,
                then,
                otherwise,
            }
        } else {
            TemplateNode::If {
                condition: value,
                then,
                otherwise,
            }
        })
    }

    /// The part after `else`, up to the `end` of its branch.
    fn otherwise(
        &mut self,
        mut action: ActionTokens,
        opened: &TemplateFault,
        dot: Option<ExprType>,
    ) -> Result<Vec<TemplateNode>, TemplateFault> {
        let next = match action.peek() {
            Some(TemplateToken::Word(word)) if word == "if" || word == "with" => {
                Some(word == "with")
            }
            _ => None,
        };
        if let Some(is_with) = next {
            // What follows has the `end` of both.
            action.next();
            return Ok(vec![self.branch(action, is_with, dot)?]);
        }
        action.finish()?;
        let (nodes, closing) = self.list(dot)?;
        let mut closing = closing.ok_or_else(|| opened.clone())?;
        if closing.is_else {
            return Err(closing.action.fault("a second `else`"));
        }
        closing.action.finish()?;
        Ok(nodes)
    }

    fn enter(&mut self, action: &ActionTokens) -> Result<(), TemplateFault> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(action.fault("the template is nested too deeply"));
        }
        Ok(())
    }

    /// Commands with pipes between them, up to the end of the action or of the parentheses.
    fn pipeline(
        &mut self,
        action: &mut ActionTokens,
        dot: Option<ExprType>,
    ) -> Result<(Expr, ExprType), TemplateFault> {
        let mut piped = None;
        loop {
            let value = self.command(action, dot, piped.take())?;
            if action.peek() != Some(&TemplateToken::Pipe) {
                return Ok(value);
            }
            action.next();
            piped = Some(value);
        }
    }

    /// A value, or a function with its arguments, the piped one last.
    fn command(
        &mut self,
        action: &mut ActionTokens,
        dot: Option<ExprType>,
        piped: Option<(Expr, ExprType)>,
    ) -> Result<(Expr, ExprType), TemplateFault> {
        if let Some(TemplateToken::Word(word)) = action.peek()
            && !["true", "false"].contains(&word.as_str())
        {
            let word = word.clone();
            action.next();
            let mut place = action.fault("");
            let mut args = Vec::new();
            while !matches!(
                action.peek(),
                None | Some(TemplateToken::Pipe | TemplateToken::Close)
            ) {
                args.push(self.operand(action, dot)?);
            }
            args.extend(piped);
            return call(&word, args).map_err(|(message, hint)| {
                place.message = message;
                place.hint = hint;
                place
            });
        }
        let value = self.operand(action, dot)?;
        if piped.is_some() {
            return Err(action.fault("only a function can follow `|`"));
        }
        Ok(value)
    }

    fn operand(
        &mut self,
        action: &mut ActionTokens,
        dot: Option<ExprType>,
    ) -> Result<(Expr, ExprType), TemplateFault> {
        let Some(token) = action.next() else {
            return Err(action.fault("missing value"));
        };
        match token {
            TemplateToken::Field { name, of_root } => Ok(self.field(name, of_root, action, dot)),
            TemplateToken::Dot => {
                let kind = dot.ok_or_else(|| TemplateFault {
                    hint: Some(self.known()),
                    ..action.fault("`.` alone is not a value")
                })?;
                Ok((Expr::Dot, kind))
            }
            TemplateToken::Text(text) => Ok((Expr::Text(text), ExprType::Text)),
            TemplateToken::Number(number) => Ok((Expr::Number(number), ExprType::Number)),
            TemplateToken::Word(word) if word == "true" || word == "false" => {
                Ok((Expr::Truth(word == "true"), ExprType::Truth))
            }
            TemplateToken::Word(word) => {
                // A function without arguments, where a value is wanted.
                let found = call(&word, Vec::new());
                found.map_err(|(message, hint)| TemplateFault {
                    hint,
                    ..action.fault(message)
                })
            }
            TemplateToken::Open => {
                self.enter(action)?;
                let value = self.pipeline(action, dot)?;
                self.depth -= 1;
                match action.next() {
                    Some(TemplateToken::Close) => Ok(value),
                    _ => Err(action.fault("unclosed `(`")),
                }
            }
            TemplateToken::Pipe | TemplateToken::Close => Err(action.fault("missing value")),
        }
    }

    /// A field. An unknown field is reported and treated as a string.
    fn field(
        &mut self,
        name: String,
        of_root: bool,
        action: &ActionTokens,
        dot: Option<ExprType>,
    ) -> (Expr, ExprType) {
        if let (Some(kind), false) = (dot, of_root) {
            let message = format!(
                "inside `with`, `.` is a {} without a field `{name}`",
                kind.word()
            );
            let mut fault = action.fault(message);
            fault.hint = Some(format!("write `$.{name}`"));
            self.faults.push(fault);
        }
        let found = self.fields.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            let dotted: Vec<String> = self.fields.iter().map(|(f, _)| format!(".{f}")).collect();
            let mut fault = action.fault(format!("unknown template field `.{name}`"));
            fault.hint = nearest_hint(&format!(".{name}"), dotted.iter().map(String::as_str));
            self.faults.push(fault);
        }
        (
            Expr::Field(name),
            found.map_or(ExprType::Text, |(_, kind)| *kind),
        )
    }

    fn known(&self) -> String {
        let dotted: Vec<String> = self.fields.iter().map(|(f, _)| format!(".{f}")).collect();
        format!("known: {}", listed(dotted.iter().map(String::as_str)))
    }
}
