//! Compiles a matcher, and collects all mistakes in it.

use proctor_record::json;
use serde_json::{Map, Number, Value};

use super::{
    ContainsOperand, JsonKind, MatcherError, MatcherNode, Operand, Operator, PathStep, Schema,
};
use crate::pattern::Pattern;

const OPERATORS: [&str; 12] = [
    "$exact",
    "$contains",
    "$match",
    "$oneOf",
    "$type",
    "$exists",
    "$approx",
    "$min",
    "$max",
    "$unordered",
    "$schema",
    "$not",
];

/// The minimum similarity for a suggestion.
const LIKENESS: f64 = 0.5;

const LITERAL_KEY: &str = "a literal key that starts with `$` goes under `$exact`";

pub(super) fn compile(written: &Value) -> Result<MatcherNode, Vec<MatcherError>> {
    let mut compiler = Compiler {
        path: Vec::new(),
        errors: Vec::new(),
    };
    let node = compiler.node(written);
    if compiler.errors.is_empty() {
        Ok(node)
    } else {
        Err(compiler.errors)
    }
}

/// Continues after a mistake to report all of them; the result is then dropped.
struct Compiler {
    path: Vec<PathStep>,
    errors: Vec<MatcherError>,
}

impl Compiler {
    fn node(&mut self, written: &Value) -> MatcherNode {
        match written {
            Value::Object(members) => self.object(members),
            Value::Array(elements) => MatcherNode::Array(self.elements(elements, Self::node)),
            scalar @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) => {
                MatcherNode::Literal(scalar.clone())
            }
        }
    }

    fn object(&mut self, members: &Map<String, Value>) -> MatcherNode {
        let (operators, plain): (Vec<_>, Vec<_>) =
            members.iter().partition(|(key, _)| key.starts_with('$'));
        let known = operators
            .iter()
            .find(|(key, _)| OPERATORS.contains(&key.as_str()));
        if let (Some((operator, _)), Some((key, _))) = (known, plain.first()) {
            self.inside(PathStep::Key((*operator).clone()), |this| {
                this.error(
                    format!("`{operator}` and the plain key `{key}` can't be mixed in one object"),
                    Some(format!(
                        "to require both, match `{key}` separately; {LITERAL_KEY}"
                    )),
                );
            });
        }
        let compiled: Vec<Operator> = operators
            .into_iter()
            .filter_map(|(key, operand)| {
                self.inside(PathStep::Key(key.clone()), |this| {
                    this.operator(key, operand)
                })
            })
            .collect();
        self.order_of_bounds(&compiled);
        let plain: Vec<(String, MatcherNode)> = plain
            .into_iter()
            .map(|(key, member)| {
                let node = self.inside(PathStep::Key(key.clone()), |this| this.node(member));
                (key.clone(), node)
            })
            .collect();
        if compiled.is_empty() {
            MatcherNode::Object(plain)
        } else {
            MatcherNode::All(compiled)
        }
    }

    fn operator(&mut self, key: &str, operand: &Value) -> Option<Operator> {
        match key {
            "$exact" => Some(Operator::Exact(operand.clone())),
            "$contains" if operand.as_str() == Some("") => {
                let hint = "for a list with an empty string, use `$contains: {$exact: \"\"}`";
                self.error(
                    "every string contains the empty string".to_owned(),
                    Some(hint.to_owned()),
                );
                None
            }
            "$contains" => Some(Operator::Contains(ContainsOperand {
                text: operand.as_str().map(str::to_owned),
                element: self.operand(operand),
            })),
            "$match" => self.pattern(operand).map(Operator::Match),
            "$oneOf" => self.alternatives(operand).map(Operator::OneOf),
            "$type" => self.types(operand).map(Operator::Type),
            "$exists" => match operand.as_bool() {
                Some(exists) => Some(Operator::Exists(exists)),
                None => self.refuse(key, "true or false", operand),
            },
            "$approx" => self.approx(operand),
            "$min" => self.number(key, operand).map(Operator::Min),
            "$max" => self.number(key, operand).map(Operator::Max),
            "$unordered" => match operand.as_array() {
                Some(elements) => Some(Operator::Unordered(self.elements(elements, Self::operand))),
                None => self.refuse(key, "a list of matchers", operand),
            },
            "$schema" => self.schema(operand).map(Operator::Schema),
            "$not" => Some(Operator::Not(Box::new(self.operand(operand)))),
            unknown => {
                self.error(
                    format!("unknown operator `{unknown}`"),
                    Some(hint_for(unknown)),
                );
                None
            }
        }
    }

    fn operand(&mut self, written: &Value) -> Operand {
        Operand {
            node: self.node(written),
            brief: json::brief(written),
        }
    }

    fn pattern(&mut self, operand: &Value) -> Option<Pattern> {
        let Value::String(written) = operand else {
            return self.refuse("$match", "a pattern", operand);
        };
        match Pattern::compile(written) {
            Ok(pattern) if pattern.matches_every_text() => {
                let hint =
                    "use `.+` to require a non-empty string, or `$type: string` for any string";
                self.error(
                    format!("`{written}` matches every string"),
                    Some(hint.to_owned()),
                );
                None
            }
            Ok(pattern) => Some(pattern),
            Err(error) => {
                self.error(
                    format!("invalid regular expression `{written}`: {error}"),
                    None,
                );
                None
            }
        }
    }

    fn alternatives(&mut self, operand: &Value) -> Option<Vec<Operand>> {
        match operand.as_array() {
            Some(elements) if !elements.is_empty() => Some(self.elements(elements, Self::operand)),
            _ => self.refuse("$oneOf", "a list of at least one matcher", operand),
        }
    }

    fn types(&mut self, operand: &Value) -> Option<Vec<JsonKind>> {
        match operand.as_array() {
            Some(names) if !names.is_empty() => Some(
                self.elements(names, Self::type_name)
                    .into_iter()
                    .flatten()
                    .collect(),
            ),
            _ => self.type_name(operand).map(|name| vec![name]),
        }
    }

    fn type_name(&mut self, operand: &Value) -> Option<JsonKind> {
        let named = JsonKind::ALL
            .into_iter()
            .find(|known| operand.as_str() == Some(known.name()));
        if named.is_none() {
            let all = JsonKind::ALL.map(|known| format!("`{}`", known.name()));
            let expected = format!("{} or a list of these", all.join(", "));
            return self.refuse("$type", &expected, operand);
        }
        named
    }

    fn approx(&mut self, operand: &Value) -> Option<Operator> {
        let Value::Object(members) = operand else {
            return self.refuse("$approx", "`value` and `tolerance`", operand);
        };
        for key in members.keys() {
            if key != "value" && key != "tolerance" {
                self.inside(PathStep::Key(key.clone()), |this| {
                    this.error(
                        format!("`$approx` has no key `{key}`"),
                        Some("its keys are `value` and `tolerance`".to_owned()),
                    );
                });
            }
        }
        let value = self.part_of_approx(members, "value");
        let tolerance = self.part_of_approx(members, "tolerance");
        let (value, tolerance) = (value?, tolerance?);
        if json::compare_numbers(&tolerance, &Number::from(0)).is_lt() {
            self.inside(PathStep::Key("tolerance".to_owned()), |this| {
                this.error(format!("the tolerance {tolerance} is below 0"), None);
            });
        }
        Some(Operator::Approx { value, tolerance })
    }

    fn part_of_approx(&mut self, members: &Map<String, Value>, key: &str) -> Option<Number> {
        let Some(operand) = members.get(key) else {
            self.error(format!("`$approx` needs a `{key}`"), None);
            return None;
        };
        self.inside(PathStep::Key(key.to_owned()), |this| {
            this.number(key, operand)
        })
    }

    fn number(&mut self, key: &str, operand: &Value) -> Option<Number> {
        match operand {
            Value::Number(number) => Some(number.clone()),
            Value::Null
            | Value::Bool(_)
            | Value::String(_)
            | Value::Array(_)
            | Value::Object(_) => self.refuse(key, "a number", operand),
        }
    }

    fn schema(&mut self, operand: &Value) -> Option<Schema> {
        match Schema::compile(operand) {
            Ok(schema) => Some(schema),
            Err(error) => {
                let path = self.path.iter().cloned().chain(error.path).collect();
                self.errors.push(MatcherError { path, ..error });
                None
            }
        }
    }

    fn order_of_bounds(&mut self, operators: &[Operator]) {
        let (mut min, mut max) = (None, None);
        for operator in operators {
            if let Operator::Min(bound) = operator {
                min = Some(bound);
            }
            if let Operator::Max(bound) = operator {
                max = Some(bound);
            }
        }
        if let (Some(min), Some(max)) = (min, max)
            && json::compare_numbers(min, max).is_gt()
        {
            self.inside(PathStep::Key("$min".to_owned()), |this| {
                this.error(
                    format!("`$min` {min} is above `$max` {max}: nothing can match"),
                    None,
                );
            });
        }
    }

    fn elements<T>(
        &mut self,
        elements: &[Value],
        mut each: impl FnMut(&mut Self, &Value) -> T,
    ) -> Vec<T> {
        elements
            .iter()
            .enumerate()
            .map(|(index, element)| self.inside(PathStep::Index(index), |this| each(this, element)))
            .collect()
    }

    fn inside<T>(&mut self, step: PathStep, then: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(step);
        let result = then(self);
        self.path.pop();
        result
    }

    fn refuse<T>(&mut self, key: &str, expected: &str, found: &Value) -> Option<T> {
        let found = json::brief(found);
        self.error(format!("`{key}` takes {expected}, found {found}"), None);
        None
    }

    fn error(&mut self, message: String, hint: Option<String>) {
        self.errors.push(MatcherError {
            path: self.path.clone(),
            message,
            hint,
        });
    }
}

fn hint_for(unknown: &str) -> String {
    let likeness = |known: &str| {
        strsim::normalized_damerau_levenshtein(
            &unknown[1..].to_lowercase(),
            &known[1..].to_lowercase(),
        )
    };
    let nearest = OPERATORS
        .iter()
        .map(|known| (likeness(known), known))
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .filter(|(likeness, _)| *likeness >= LIKENESS);
    if let Some((_, known)) = nearest {
        return format!("did you mean `{known}`? {LITERAL_KEY}");
    }
    let known = OPERATORS.map(|known| format!("`{known}`"));
    format!("the operators are {}; {LITERAL_KEY}", known.join(", "))
}
