//! From tokens to a template whose types fit.

use super::calls::call;
use super::lex::{Item, Located, Token, items};
use super::{Expr, Node, TemplateFault, Type};
use crate::hint::{listed, nearest_hint};

/// How deep braces, parentheses and conditions may be nested.
const DEPTH: usize = 32;

/// The nodes of a template, or all that is wrong with it.
pub(super) fn template(
    text: &str,
    fields: &'static [(&'static str, Type)],
) -> Result<Vec<Node>, Vec<TemplateFault>> {
    let mut parser = Parser {
        items: items(text).map_err(|fault| vec![fault])?.into_iter(),
        fields,
        faults: Vec::new(),
        depth: 0,
    };
    let parsed = match parser.list(None) {
        Ok((nodes, None)) => Ok(nodes),
        Ok((_, Some(end))) => {
            let message = format!("`{}` without a condition before it", end.word());
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
struct Action {
    at: usize,
    tokens: std::iter::Peekable<std::vec::IntoIter<Located>>,
    /// The token that was taken last.
    last: (usize, usize),
}

impl Action {
    fn new(at: usize, tokens: Vec<Located>) -> Self {
        Self {
            at,
            tokens: tokens.into_iter().peekable(),
            last: (at, 2),
        }
    }

    fn next(&mut self) -> Option<Token> {
        let next = self.tokens.next()?;
        self.last = (next.at, next.len);
        Some(next.token)
    }

    fn peek(&mut self) -> Option<&Token> {
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

/// What ends a list of nodes: `{{ end }}`, or `{{ else … }}` with what stands behind it.
struct End {
    action: Action,
    is_else: bool,
}

impl End {
    fn word(&self) -> &'static str {
        if self.is_else { "else" } else { "end" }
    }
}

struct Parser {
    items: std::vec::IntoIter<Item>,
    fields: &'static [(&'static str, Type)],
    /// Faults after which parsing goes on.
    faults: Vec<TemplateFault>,
    depth: usize,
}

impl Parser {
    /// Nodes up to what ends them. `dot` is the type of the dot, where there is a `with`.
    fn list(&mut self, dot: Option<Type>) -> Result<(Vec<Node>, Option<End>), TemplateFault> {
        let mut nodes = Vec::new();
        while let Some(item) = self.items.next() {
            let mut action = match item {
                Item::Text(text) => {
                    nodes.push(Node::Text(text));
                    continue;
                }
                Item::Action { at, tokens } => Action::new(at, tokens),
            };
            let word = match action.peek() {
                Some(Token::Word(word)) => word.clone(),
                _ => String::new(),
            };
            match word.as_str() {
                "end" | "else" => {
                    action.next();
                    let is_else = word == "else";
                    return Ok((nodes, Some(End { action, is_else })));
                }
                "if" | "with" => {
                    action.next();
                    nodes.push(self.branch(action, word == "with", dot)?);
                }
                _ => {
                    let (expr, _) = self.pipeline(&mut action, dot)?;
                    action.finish()?;
                    nodes.push(Node::Output(expr));
                }
            }
        }
        Ok((nodes, None))
    }

    /// `if` or `with`, from behind its word to its end.
    fn branch(
        &mut self,
        mut action: Action,
        is_with: bool,
        dot: Option<Type>,
    ) -> Result<Node, TemplateFault> {
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
            Node::With {
                value,
                then,
                otherwise,
            }
        } else {
            Node::If {
                condition: value,
                then,
                otherwise,
            }
        })
    }

    /// What stands behind `else`, up to the `end` of the branch that was opened there.
    fn otherwise(
        &mut self,
        mut action: Action,
        opened: &TemplateFault,
        dot: Option<Type>,
    ) -> Result<Vec<Node>, TemplateFault> {
        let next = match action.peek() {
            Some(Token::Word(word)) if word == "if" || word == "with" => Some(word == "with"),
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

    fn enter(&mut self, action: &Action) -> Result<(), TemplateFault> {
        self.depth += 1;
        if self.depth > DEPTH {
            return Err(action.fault("the template is nested too deeply"));
        }
        Ok(())
    }

    /// Commands with pipes between them, up to the end of the action or of the parentheses.
    fn pipeline(
        &mut self,
        action: &mut Action,
        dot: Option<Type>,
    ) -> Result<(Expr, Type), TemplateFault> {
        let mut piped = None;
        loop {
            let value = self.command(action, dot, piped.take())?;
            if action.peek() != Some(&Token::Pipe) {
                return Ok(value);
            }
            action.next();
            piped = Some(value);
        }
    }

    /// A value, or a function with its arguments, the piped one last.
    fn command(
        &mut self,
        action: &mut Action,
        dot: Option<Type>,
        piped: Option<(Expr, Type)>,
    ) -> Result<(Expr, Type), TemplateFault> {
        if let Some(Token::Word(word)) = action.peek()
            && !["true", "false"].contains(&word.as_str())
        {
            let word = word.clone();
            action.next();
            let mut place = action.fault("");
            let mut args = Vec::new();
            while !matches!(action.peek(), None | Some(Token::Pipe | Token::Close)) {
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
            return Err(action.fault("only a function can stand behind `|`"));
        }
        Ok(value)
    }

    fn operand(
        &mut self,
        action: &mut Action,
        dot: Option<Type>,
    ) -> Result<(Expr, Type), TemplateFault> {
        let Some(token) = action.next() else {
            return Err(action.fault("a value is missing"));
        };
        match token {
            Token::Field { name, of_root } => Ok(self.field(name, of_root, action, dot)),
            Token::Dot => {
                let kind = dot.ok_or_else(|| TemplateFault {
                    hint: Some(self.known()),
                    ..action.fault("`.` alone is not a value")
                })?;
                Ok((Expr::Dot, kind))
            }
            Token::Text(text) => Ok((Expr::Text(text), Type::Text)),
            Token::Number(number) => Ok((Expr::Number(number), Type::Number)),
            Token::Word(word) if word == "true" || word == "false" => {
                Ok((Expr::Truth(word == "true"), Type::Truth))
            }
            Token::Word(word) => {
                // A function without arguments, where a value is wanted.
                let found = call(&word, Vec::new());
                found.map_err(|(message, hint)| TemplateFault {
                    hint,
                    ..action.fault(message)
                })
            }
            Token::Open => {
                self.enter(action)?;
                let value = self.pipeline(action, dot)?;
                self.depth -= 1;
                match action.next() {
                    Some(Token::Close) => Ok(value),
                    _ => Err(action.fault("`(` is never closed")),
                }
            }
            Token::Pipe | Token::Close => Err(action.fault("a value is missing")),
        }
    }

    /// A field. One that is not known is reported, and taken for a text.
    fn field(
        &mut self,
        name: String,
        of_root: bool,
        action: &Action,
        dot: Option<Type>,
    ) -> (Expr, Type) {
        if let (Some(kind), false) = (dot, of_root) {
            let message = format!(
                "`.{name}` is asked of a {} here, inside `with`",
                kind.word()
            );
            let mut fault = action.fault(message);
            fault.hint = Some(format!("write `$.{name}`"));
            self.faults.push(fault);
        }
        let found = self.fields.iter().find(|(known, _)| *known == name);
        if found.is_none() {
            let dotted: Vec<String> = self.fields.iter().map(|(f, _)| format!(".{f}")).collect();
            let mut fault = action.fault(format!("`.{name}` is not a field of this template"));
            fault.hint = nearest_hint(&format!(".{name}"), dotted.iter().map(String::as_str));
            self.faults.push(fault);
        }
        (
            Expr::Field(name),
            found.map_or(Type::Text, |(_, kind)| *kind),
        )
    }

    fn known(&self) -> String {
        let dotted: Vec<String> = self.fields.iter().map(|(f, _)| format!(".{f}")).collect();
        format!("known: {}", listed(dotted.iter().map(String::as_str)))
    }
}
