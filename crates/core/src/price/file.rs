//! The file format of price files.

use std::cell::RefCell;
use std::path::Path;

use proctor_record::problem::{Code, Problem, Problems};
use serde_json::{Value, json};

use super::Price;
use crate::decode::{Context, Decode, Definitions, LooseText, RequiredKey, Table, record};
use crate::document::{self, Node, NodeValue};
use crate::suite::files;

record! {
    /// The prices of models.
    pub struct PricesFile {
        /// The JSON Schema that editors use to check this file.
        "$schema" => schema: Option<LooseText>,
        /// The prices by model, as `provider:model-id`.
        "prices" => prices: RequiredKey<Table<PriceFile>>,
    }
}

record! {
    /// The price of a model, in US dollars per million tokens.
    pub struct PriceFile {
        /// The price of input tokens.
        "input" => input: Dollars,
        /// The price of output tokens, including thinking.
        "output" => output: Dollars,
        /// The price of input tokens that are read from the cache, the same as other input by default.
        "cached" => cached: Option<Dollars>,
        /// The price of input tokens that are written to the cache, the same as other input by default.
        "cacheWritten" => cache_written: Option<Dollars>,
    }
}

/// An amount of money, zero or more.
#[derive(Debug, Clone, Copy)]
pub struct Dollars(f64);

impl Decode for Dollars {
    fn decode(node: &Node, cx: &Context<'_>) -> Option<Self> {
        let number = match &node.data {
            NodeValue::Number(number, _) => number.as_f64(),
            _ => None,
        };
        let amount = number.filter(|number| *number >= 0.0 && number.is_finite());
        if amount.is_none() {
            cx.wrong_type(node, "a number, zero or more");
        }
        amount.map(Self)
    }

    fn schema(_: &mut Definitions) -> Value {
        json!({"type": "number", "minimum": 0})
    }
}

pub(super) fn schema() -> Value {
    let mut definitions = Definitions::new();
    let root = PricesFile::schema(&mut definitions);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Proctor prices",
        "$ref": root["$ref"],
        "$defs": definitions,
    })
}

pub(super) fn load(path: &Path, problems: &mut Problems) -> Option<Vec<(String, Price)>> {
    let source = match files::read(path) {
        Ok(source) => source,
        Err(problem) => {
            problems.push(problem);
            return None;
        }
    };
    let before = problems.errors();
    let document = document::parse(&source, problems)?;
    let found = RefCell::new(Problems::default());
    let cx = Context::new(source, &found);
    let file = PricesFile::decode(&document.root, &cx);
    let mut prices = Vec::new();
    for (name, price) in file
        .iter()
        .filter_map(|f| f.prices.get())
        .flat_map(Table::iter)
    {
        if !name.value.contains(':') {
            let message = format!("missing provider in `{}`", name.value);
            let problem = Problem::error(Code::Value, message);
            cx.report(name.span, problem.hint("write it as `provider:model-id`"));
        }
        prices.push((name.value.clone(), price.resolve()));
    }
    drop(cx);
    problems.append(found.into_inner());
    (problems.errors() == before).then_some(prices)
}

impl PriceFile {
    fn resolve(&self) -> Price {
        Price {
            input: self.input.0,
            output: self.output.0,
            cached: Some(self.cached.unwrap_or(self.input).0),
            cache_written: Some(self.cache_written.unwrap_or(self.input).0),
            holds_to: None,
        }
    }
}
