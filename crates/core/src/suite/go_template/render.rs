//! Renders a template. Its types were checked when it was parsed.

use super::format::{self, FormatPart, FormatVerb};
use super::{Comparison, Expr, FieldValue, Function, RenderedPiece, TemplateNode, TextOrigin};

/// Renders nodes with the values of `field`.
pub(super) fn nodes(
    nodes: &[TemplateNode],
    field: &mut dyn FnMut(&str) -> FieldValue,
) -> Vec<RenderedPiece> {
    let mut renderer = Renderer {
        field,
        out: Vec::new(),
    };
    renderer.nodes(nodes, None);
    renderer.out
}

struct Renderer<'a> {
    field: &'a mut dyn FnMut(&str) -> FieldValue,
    out: Vec<RenderedPiece>,
}

impl Renderer<'_> {
    fn nodes(&mut self, nodes: &[TemplateNode], dot: Option<&FieldValue>) {
        for node in nodes {
            match node {
                TemplateNode::Text(text) => {
                    self.out.push(RenderedPiece::new(text, TextOrigin::Author));
                }
                TemplateNode::Output(expr) => {
                    let value = self.value(expr, dot);
                    self.out.extend(pieces(value));
                }
                TemplateNode::If {
                    condition,
                    then,
                    otherwise,
                } => {
                    let holds = is_true(&self.value(condition, dot));
                    self.nodes(if holds { then } else { otherwise }, dot);
                }
                TemplateNode::With {
                    value,
                    then,
                    otherwise,
                } => {
                    let value = self.value(value, dot);
                    if is_true(&value) {
                        self.nodes(then, Some(&value));
                    } else {
                        self.nodes(otherwise, dot);
                    }
                }
            }
        }
    }

    fn value(&mut self, expr: &Expr, dot: Option<&FieldValue>) -> FieldValue {
        match expr {
            Expr::Field(name) => (self.field)(name),
            Expr::Dot => dot.cloned().unwrap_or(FieldValue::Truth(false)),
            Expr::Text(text) => {
                FieldValue::Text(vec![RenderedPiece::new(text, TextOrigin::Author)])
            }
            Expr::Number(number) => FieldValue::Number(*number),
            Expr::Truth(truth) => FieldValue::Truth(*truth),
            Expr::Call(function, args) => {
                let args = args.iter().map(|arg| self.value(arg, dot)).collect();
                call(function, args)
            }
        }
    }
}

fn call(function: &Function, args: Vec<FieldValue>) -> FieldValue {
    match function {
        Function::Printf(parts) => FieldValue::Text(printf(parts, args)),
        Function::Print => FieldValue::Text(print(args, false)),
        Function::Println => FieldValue::Text(print(args, true)),
        Function::Html => escaped(args, format::html),
        Function::Js => escaped(args, format::js),
        Function::Urlquery => escaped(args, format::urlquery),
        Function::Len => {
            let len = args.first().map_or(0, |arg| written(arg).len());
            FieldValue::Number(i64::try_from(len).unwrap_or(i64::MAX))
        }
        Function::Not => FieldValue::Truth(!args.first().is_some_and(is_true)),
        // The first that decides, else the last.
        Function::And => first_or_last(args, |arg| !is_true(arg)),
        Function::Or => first_or_last(args, is_true),
        Function::Compare(comparison) => FieldValue::Truth(compare(*comparison, &args)),
    }
}

fn first_or_last(args: Vec<FieldValue>, decides: impl Fn(&FieldValue) -> bool) -> FieldValue {
    let mut last = FieldValue::Truth(false);
    for arg in args {
        last = arg;
        if decides(&last) {
            break;
        }
    }
    last
}

fn printf(parts: &[FormatPart], args: Vec<FieldValue>) -> Vec<RenderedPiece> {
    let mut args = args.into_iter();
    let mut out = Vec::new();
    for part in parts {
        match part {
            FormatPart::Text(text) => out.push(RenderedPiece::new(text, TextOrigin::Author)),
            FormatPart::Verb(FormatVerb::Quoted) => out.extend(args.next().map(|arg| quoted(&arg))),
            FormatPart::Verb(_) => out.extend(args.next().into_iter().flat_map(pieces)),
        }
    }
    out
}

/// A value in the quotes of `%q`. What the author wrote gets them at once, and stays text for a shell.
fn quoted(value: &FieldValue) -> RenderedPiece {
    let (text, origin) = (written(value), origin(value));
    match origin {
        TextOrigin::Author => RenderedPiece::new(format::go_quote(&text), origin),
        TextOrigin::Value | TextOrigin::Prompt => RenderedPiece {
            text,
            origin,
            quoted: true,
        },
    }
}

/// As Go's `print`: a blank between two values of which none is a text, or between all of a line.
fn print(args: Vec<FieldValue>, is_line: bool) -> Vec<RenderedPiece> {
    let mut out = Vec::new();
    let mut before: Option<bool> = None;
    for arg in args {
        let is_text = matches!(arg, FieldValue::Text(_));
        if before.is_some_and(|was_text| is_line || !(was_text || is_text)) {
            out.push(RenderedPiece::new(" ", TextOrigin::Author));
        }
        before = Some(is_text);
        out.extend(pieces(arg));
    }
    if is_line {
        out.push(RenderedPiece::new("\n", TextOrigin::Author));
    }
    out
}

fn escaped(args: Vec<FieldValue>, escape: fn(&str) -> String) -> FieldValue {
    let value = FieldValue::Text(print(args, false));
    let piece = RenderedPiece::new(escape(&written(&value)), origin(&value));
    FieldValue::Text(vec![piece])
}

fn compare(comparison: Comparison, args: &[FieldValue]) -> bool {
    let Some((first, others)) = args.split_first() else {
        return false;
    };
    let is = |accepts: fn(std::cmp::Ordering) -> bool| {
        others.iter().any(|other| accepts(order(first, other)))
    };
    match comparison {
        Comparison::Equal => is(std::cmp::Ordering::is_eq),
        Comparison::Unequal => is(std::cmp::Ordering::is_ne),
        Comparison::Less => is(std::cmp::Ordering::is_lt),
        Comparison::LessOrEqual => is(std::cmp::Ordering::is_le),
        Comparison::Greater => is(std::cmp::Ordering::is_gt),
        Comparison::GreaterOrEqual => is(std::cmp::Ordering::is_ge),
    }
}

fn order(a: &FieldValue, b: &FieldValue) -> std::cmp::Ordering {
    match (a, b) {
        (FieldValue::Number(a), FieldValue::Number(b)) => a.cmp(b),
        _ => written(a).cmp(&written(b)),
    }
}

fn is_true(value: &FieldValue) -> bool {
    match value {
        FieldValue::Text(_) => !written(value).is_empty(),
        FieldValue::Number(number) => *number != 0,
        FieldValue::Truth(truth) => *truth,
    }
}

fn pieces(value: FieldValue) -> Vec<RenderedPiece> {
    match value {
        FieldValue::Text(pieces) => pieces,
        other => vec![RenderedPiece::new(written(&other), TextOrigin::Author)],
    }
}

fn written(value: &FieldValue) -> String {
    match value {
        FieldValue::Text(pieces) => pieces.iter().map(RenderedPiece::written).collect(),
        FieldValue::Number(number) => number.to_string(),
        FieldValue::Truth(truth) => truth.to_string(),
    }
}

fn origin(value: &FieldValue) -> TextOrigin {
    match value {
        FieldValue::Text(pieces) => {
            let origins = pieces.iter().map(|piece| piece.origin);
            origins.max().unwrap_or(TextOrigin::Author)
        }
        FieldValue::Number(_) | FieldValue::Truth(_) => TextOrigin::Author,
    }
}
