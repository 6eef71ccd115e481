//! The template functions, with the types of their arguments and results.

use proctor_record::hint::nearest_hint;

use super::format::{self, FormatPart, FormatVerb};
use super::{Comparison, Expr, ExprType, Function};

/// The functions that a template may call.
const FUNCTIONS: [&str; 16] = [
    "printf", "print", "println", "html", "js", "urlquery", "len", "not", "and", "or", "eq", "ne",
    "lt", "le", "gt", "ge",
];

/// Go's keywords and functions that are not supported.
const UNSUPPORTED: [&str; 9] = [
    "range", "break", "continue", "define", "template", "block", "index", "slice", "call",
];

/// The message and the hint for an invalid call.
pub(super) type CallProblem = (String, Option<String>);

fn wrong<T>(message: impl Into<String>) -> Result<T, CallProblem> {
    Err((message.into(), None))
}

/// Checks a function call, and returns it with the type of its result.
pub(super) fn call(
    name: &str,
    args: Vec<(Expr, ExprType)>,
) -> Result<(Expr, ExprType), CallProblem> {
    let kinds: Vec<ExprType> = args.iter().map(|(_, kind)| *kind).collect();
    let count = args.len();
    let (function, kind) = match name {
        "printf" => return printf(args),
        "print" => (Function::Print, ExprType::Text),
        "println" => (Function::Println, ExprType::Text),
        "html" => (Function::Html, ExprType::Text),
        "js" => (Function::Js, ExprType::Text),
        "urlquery" => (Function::Urlquery, ExprType::Text),
        "len" if kinds == [ExprType::Text] => (Function::Len, ExprType::Number),
        "len" => return wrong("`len` takes one string"),
        "not" if count == 1 => (Function::Not, ExprType::Truth),
        "not" => return wrong("`not` takes one value"),
        "and" | "or" => {
            let Some(first) = kinds.first() else {
                return wrong(format!("`{name}` takes at least one value"));
            };
            let same = kinds.iter().all(|kind| kind == first);
            let function = if name == "and" {
                Function::And
            } else {
                Function::Or
            };
            (function, if same { *first } else { ExprType::Any })
        }
        _ => match comparison(name) {
            Some(comparison) => {
                comparable(name, comparison, &kinds)?;
                (Function::Compare(comparison), ExprType::Truth)
            }
            None => return Err(unknown(name)),
        },
    };
    let args = args.into_iter().map(|(arg, _)| arg).collect();
    Ok((Expr::Call(function, args), kind))
}

fn unknown(name: &str) -> CallProblem {
    if UNSUPPORTED.contains(&name) {
        let message = format!("`{name}` is not supported in the templates of agent files");
        let hint = "use `if`, `else`, `with`, `end`, pipes and functions such as `printf`";
        return (message, Some(hint.to_owned()));
    }
    let message = format!("unknown template function `{name}`");
    let hint = if ["quote", "squote", "shellquote", "shellescape", "toJson"].contains(&name) {
        Some("write `printf \"%q\"`, which passes the text as one argument".to_owned())
    } else {
        nearest_hint(name, FUNCTIONS)
    };
    (message, hint)
}

fn comparison(name: &str) -> Option<Comparison> {
    Some(match name {
        "eq" => Comparison::Equal,
        "ne" => Comparison::Unequal,
        "lt" => Comparison::Less,
        "le" => Comparison::LessOrEqual,
        "gt" => Comparison::Greater,
        "ge" => Comparison::GreaterOrEqual,
        _ => return None,
    })
}

/// Checks that all values have the same type, and that only `eq` has more than two.
fn comparable(name: &str, comparison: Comparison, kinds: &[ExprType]) -> Result<(), CallProblem> {
    if kinds.len() < 2 || (kinds.len() > 2 && comparison != Comparison::Equal) {
        return wrong(format!("`{name}` takes two values"));
    }
    let (first, others) = (kinds[0], &kinds[1..]);
    if first == ExprType::Any || others.iter().any(|kind| *kind != first) {
        let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
        return wrong(format!(
            "`{name}` can't compare a {}",
            words.join(" with a ")
        ));
    }
    let has_order = first != ExprType::Truth;
    if !has_order && !matches!(comparison, Comparison::Equal | Comparison::Unequal) {
        return wrong(format!("`{name}` can't compare booleans"));
    }
    Ok(())
}

fn printf(mut args: Vec<(Expr, ExprType)>) -> Result<(Expr, ExprType), CallProblem> {
    if args.is_empty() {
        return wrong("`printf` needs a format");
    }
    let values = args.split_off(1);
    let Some((Expr::Text(format), _)) = args.pop() else {
        return wrong("the format of `printf` must be a string literal");
    };
    let parts = match format::parse(&format) {
        Ok(parts) => parts,
        Err(verb) => {
            let message = format!("unsupported `printf` verb `{verb}`");
            let hint = "known: `%s`, `%q`, `%v`, `%d`, `%t`, `%%`";
            return Err((message, Some(hint.to_owned())));
        }
    };
    let verbs = parts.iter().filter_map(|part| match part {
        FormatPart::Verb(verb) => Some(*verb),
        FormatPart::Text(_) => None,
    });
    let verbs: Vec<FormatVerb> = verbs.collect();
    if verbs.len() != values.len() {
        let (wanted, given) = (verbs.len(), values.len());
        return wrong(format!(
            "the format of `printf` takes {wanted} values, found {given}"
        ));
    }
    for (verb, (_, kind)) in verbs.iter().zip(&values) {
        let fits = match verb {
            FormatVerb::Any => true,
            FormatVerb::Text | FormatVerb::Quoted => *kind == ExprType::Text,
            FormatVerb::Number => *kind == ExprType::Number,
            FormatVerb::Truth => *kind == ExprType::Truth,
        };
        if !fits {
            return wrong(format!("`{}` does not take a {}", verb.word(), kind.word()));
        }
    }
    let values = values.into_iter().map(|(value, _)| value).collect();
    Ok((Expr::Call(Function::Printf(parts), values), ExprType::Text))
}
