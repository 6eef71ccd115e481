//! Level × grading × transport × era × outcome: every cell that can be, and why the others can't.

use mcp_evals::{GradingType, Level};
use proctor_record::event::Blame;
use proctor_wire::client::Era;
use serde_json::{Value, json};

use crate::stage::{SHIP, Stage, Wire};

const OUTCOMES: [&str; 5] = ["passed", "failed", "invalid", "skipped", "errored"];
const GRADINGS: [GradingType; 2] = [GradingType::ExactMatch, GradingType::LlmJudge];

/// The cells that can't be, whatever the transport and the era: level, grading, outcome, and why.
const IMPOSSIBLE: [(&str, &str, &str, &str); 5] = [
    ("scenario", "exact-match", "passed", "E14: it is invalid"),
    ("scenario", "exact-match", "failed", "E14: it is invalid"),
    ("scenario", "exact-match", "errored", "E14: it is invalid"),
    (
        "execution",
        "exact-match",
        "skipped",
        "E17 is about types, and all of it are known",
    ),
    (
        "execution",
        "llm-as-judge",
        "skipped",
        "E17 is about types, and all of it are known",
    ),
];

/// An eval for each cell, and beyond the axes for types that are none of the known. Ids are
/// `level/grading/outcome`; input and expectation are in words that the functions below read.
const EVALS: [(&str, &str, &str); 30] = [
    ("invocation/exact-match/passed", "hello", "call hello"),
    ("invocation/exact-match/failed", "hello", "call bye"),
    ("invocation/exact-match/invalid", "hello", "nothing"),
    ("invocation/exact-match/skipped", "newer", "call hello"),
    ("invocation/exact-match/errored", "hello", "call hello"),
    (
        "invocation/llm-as-judge/passed",
        "hello",
        "rubric echoes hello",
    ),
    (
        "invocation/llm-as-judge/failed",
        "hello",
        "rubric echoes bye",
    ),
    ("invocation/llm-as-judge/invalid", "hello", "rubric "),
    (
        "invocation/llm-as-judge/skipped",
        "newer",
        "rubric echoes hello",
    ),
    (
        "invocation/llm-as-judge/errored",
        "hello",
        "rubric echoes hello",
    ),
    ("execution/exact-match/passed", "hello", "content hello"),
    ("execution/exact-match/failed", "hello", "content bye"),
    ("execution/exact-match/invalid", "hello", "nothing"),
    ("execution/exact-match/errored", "hello", "content hello"),
    (
        "execution/llm-as-judge/passed",
        "hello",
        "rubric echoes hello",
    ),
    (
        "execution/llm-as-judge/failed",
        "hello",
        "rubric echoes bye",
    ),
    ("execution/llm-as-judge/invalid", "hello", "rubric "),
    (
        "execution/llm-as-judge/errored",
        "hello",
        "rubric echoes hello",
    ),
    ("scenario/exact-match/invalid", "hello", "call hello"),
    ("scenario/exact-match/skipped", "newer", "call hello"),
    (
        "scenario/llm-as-judge/passed",
        "hello",
        "rubric echoes hello",
    ),
    ("scenario/llm-as-judge/failed", "hello", "rubric echoes bye"),
    (
        "scenario/llm-as-judge/invalid",
        "none",
        "rubric echoes hello",
    ),
    (
        "scenario/llm-as-judge/skipped",
        "newer",
        "rubric echoes hello",
    ),
    (
        "scenario/llm-as-judge/errored",
        "hello",
        "rubric echoes hello",
    ),
    ("dance/exact-match/skipped", "hello", "call hello"),
    ("dance/llm-as-judge/skipped", "hello", "rubric echoes hello"),
    ("invocation/applause/skipped", "hello", "applause"),
    ("execution/applause/skipped", "hello", "applause"),
    ("scenario/applause/skipped", "hello", "applause"),
];

/// What tells one server from another in the matrix: a tool that takes a text, and what it gives for it.
pub struct MatrixServer {
    pub tool: &'static str,
    pub content: fn(&str) -> Value,
}

const ECHO: MatrixServer = MatrixServer {
    tool: "echo",
    content: |text| {
        let unknown = json!({"n": 12_345_678_901_234_567_890_u64, "z": 1.5, "a": 100});
        json!([{"type": "text", "text": text, "x-unknown": unknown}])
    },
};

impl MatrixServer {
    pub fn evals(&self) -> Value {
        let eval = |(id, input, expected): &(&str, &str, &str)| {
            let level = id.split('/').next().unwrap_or_default();
            let expected = self.expectation(expected);
            let input = self.input(level, input);
            json!({"id": id, "name": id, "gradingType": expected["type"], "input": input, "expected": expected})
        };
        EVALS.iter().map(eval).collect()
    }

    fn input(&self, level: &str, word: &str) -> Value {
        let says = |content: Value| json!([{"role": "user", "content": content}]);
        let messages = match word {
            "none" => json!([]),
            "newer" => says(json!({"type": "hologram"})),
            word => says(json!({"type": "text", "text": format!("say {word}")})),
        };
        match level {
            "execution" => {
                json!({"type": level, "toolName": self.tool, "arguments": {"text": word}})
            }
            level => json!({"type": level, "messages": messages}),
        }
    }

    fn expectation(&self, words: &str) -> Value {
        let (kind, text) = words.split_once(' ').unwrap_or((words, ""));
        match kind {
            "call" => {
                json!({"type": "exact-match", "toolName": self.tool, "arguments": {"text": text}})
            }
            "content" => json!({"type": "exact-match", "content": (self.content)(text)}),
            "rubric" => json!({"type": "llm-as-judge", "rubric": text}),
            "nothing" => json!({"type": "exact-match"}),
            kind => json!({"type": kind}),
        }
    }
}

const MODEL: &str = "
  - when: {tool: word_count, results: 0, prompt: 'say (\\w+)'}
    reply: {text: With pleasure., calls: [{tool: word_count, arguments: {text: '{match.1}', loud: true}}]}
  - when: {results: 0, prompt: 'say (\\w+)'}
    reply: {text: With pleasure., calls: [{tool: echo, arguments: {text: '{match.1}', loud: true}}]}
  - when: {results: 1}
    reply: {text: 'It said {result}.'}
";
const JUDGE: &str = "
  - when: {mustCall: verdict, user: 'echoes (hello)'}
    reply: {calls: [{tool: verdict, arguments: {reason: It does., evidence: ['\"text\":\"{match.1}\"'], verdict: pass}}]}
  - when: {mustCall: verdict, user: 'echoes bye'}
    reply: {calls: [{tool: verdict, arguments: {reason: It does not., evidence: [], verdict: fail}}]}
";

#[test]
fn e9_every_cell_is_run_or_impossible() {
    for level in Level::ALL {
        for grading in &GRADINGS {
            for outcome in OUTCOMES {
                let (level, grading) = (level.as_str(), grading.as_str());
                let id = format!("{level}/{grading}/{outcome}");
                let run = EVALS.iter().filter(|(known, ..)| *known == id).count();
                let not = IMPOSSIBLE.iter().filter(|(l, g, o, why)| {
                    (*l, *g, *o) == (level, grading, outcome) && !why.is_empty()
                });
                assert_eq!(run + not.count(), 1, "{id}");
            }
        }
    }
}

async fn matrix(wire: Wire, era: Era) {
    let stage = Stage::new(&ECHO.evals(), wire, era, &["--mode", "evals-page=7"]);
    let stage = play(stage, wire).await;
    // Each speaks the era that it is here for.
    let shakes = stage.methods(SHIP).iter().any(|m| m == "initialize");
    assert_eq!(shakes, era == Era::Handshake);
}

/// Runs all cells, and checks how each came out.
pub async fn play(mut stage: Stage, wire: Wire) -> Stage {
    stage.add_dead("dead", wire);
    stage.elsewhere = Some(("errored", "dead"));
    stage.model = MODEL;
    stage.judge = JUDGE;
    let ran = stage.run().await;
    assert_eq!(ran.ends.len(), EVALS.len());
    for (id, ..) in EVALS {
        let outcome = id.rsplit('/').next().unwrap();
        let blame = match outcome {
            "failed" if id.starts_with("execution") => Some(Blame::Server),
            "failed" => Some(Blame::Agent),
            "errored" => Some(Blame::Server),
            _ => None,
        };
        ran.assert(id, outcome, blame);
        assert_eq!(ran.reason(id).is_empty(), outcome == "passed", "{id}");
        let is_run = !matches!(outcome, "invalid" | "skipped");
        assert_eq!(ran.records.contains_key(id), is_run, "{id}");
    }
    stage
}

#[tokio::test]
async fn e9_e16_e17_matrix_on_stdio_in_the_handshake_era() {
    matrix(Wire::Stdio, Era::Handshake).await;
}

#[tokio::test]
async fn e9_e16_e17_matrix_on_stdio_in_the_stateless_era() {
    matrix(Wire::Stdio, Era::Stateless).await;
}

#[tokio::test]
async fn e9_e16_e17_matrix_on_http_in_the_handshake_era() {
    matrix(Wire::Http, Era::Handshake).await;
}

#[tokio::test]
async fn e9_e16_e17_matrix_on_http_in_the_stateless_era() {
    matrix(Wire::Http, Era::Stateless).await;
}
