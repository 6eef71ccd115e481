//! What large bodies cost: redacting one, and telling whether a question is another one.
//!
//! Every shape of text is measured per megabyte, small and large: the time per megabyte should not grow
//! with the size, whatever a server or a model wrote. What takes longer than 10 ms must not run on an
//! async worker; the last column says from which size on that is so.
#![expect(clippy::print_stdout, reason = "the figures are the result")]

use std::time::{Duration, Instant};

use proctor_core::replay;
use proctor_record::model::{ModelMessage, ModelRequest, ToolResult};
use proctor_record::redact::Redactor;

const ROUNDS: u32 = 5;
const SIZES: [usize; 2] = [250_000, 3_000_000];

/// The longest that an async worker may be kept.
const BOUND: Duration = Duration::from_millis(10);

/// A part of a text, which is repeated with a number in it.
/// A name, and what makes a body of so many bytes.
type Shape = (&'static str, fn(usize) -> String);

const SHAPES: [Shape; 7] = [
    ("prose", |n| format!("lorem ipsum {n} dolor sit amet ")),
    ("JSON", |n| {
        format!(r#"{{"id":{n},"name":"a b","list":[1,2,3]}},"#)
    }),
    ("JSON in JSON", |n| {
        format!(r#"{{\"id\":{n},\"name\":\"a\\nb\"}},"#)
    }),
    ("escapes", |n| format!(r"\u{:04x}\u0041", n % 0xD000)),
    ("percent", |n| format!("%{:02X}%41", n % 128)),
    ("backslashes", |_| "\\".repeat(40)),
    ("boundaries", |n| format!("<<<{n:032x} begin answer>>>\n")),
];

fn main() {
    let secrets = (0..5).map(|n| {
        (
            format!("KEY_{n}"),
            format!("a-secret/{n}+that never=occurs"),
        )
    });
    let redactor = Redactor::new(secrets);
    let redact = |text: &str| drop(redactor.text(text));
    let digest = |text: &str| drop(replay::digest(&question(text), None));
    for (name, work) in [("redact", &redact as &dyn Fn(&str)), ("digest", &digest)] {
        println!(
            "{name:<16} {:>12} {:>12} {:>14}",
            "ms/MB small", "ms/MB large", "10 ms from"
        );
        for (shape, part) in SHAPES {
            let [small, large] = SIZES.map(|size| per_megabyte(&text(part, size), work));
            let bound = BOUND.as_secs_f64() / large.as_secs_f64();
            println!(
                "  {shape:<14} {:>12.2} {:>12.2} {bound:>11.1} MB",
                small.as_secs_f64() * 1e3,
                large.as_secs_f64() * 1e3
            );
        }
    }
}

fn text(part: fn(usize) -> String, size: usize) -> String {
    let mut text = String::with_capacity(size + 100);
    let mut number = 0;
    while text.len() < size {
        text.push_str(&part(number));
        number += 1;
    }
    text
}

/// The fastest of some rounds.
fn per_megabyte(text: &str, work: &dyn Fn(&str)) -> Duration {
    let round = |_| {
        let start = Instant::now();
        work(text);
        start.elapsed()
    };
    let fastest = (0..ROUNDS).map(round).min().unwrap_or_default();
    let kilobytes = u32::try_from(text.len() / 1_000).unwrap_or(u32::MAX);
    fastest * 1_000 / kilobytes
}

/// A question that holds the text as the rules of a judge would, and as six results of tools.
fn question(text: &str) -> ModelRequest {
    let result = |n: usize| ToolResult {
        id: n.to_string(),
        name: "t".to_owned(),
        text: text[n * text.len() / 6..]
            .chars()
            .take(text.len() / 6)
            .collect(),
        ..ToolResult::default()
    };
    ModelRequest {
        system: Some(text.to_owned()),
        messages: vec![ModelMessage::Results((0..6).map(result).collect())],
        ..ModelRequest::default()
    }
}
