//! The runs.

use std::fs;
use std::path::Path;

use proctor_record::event::{Outcome, RunEnded};
use proctor_record::record::RunWriter;
use proctor_record::redact::Redactor;

use crate::events::{case, planned, run_started, seen};
use crate::trial::{self, TrialScript};

const AGENTS: [&str; 2] = ["claude-code", "codex"];
const TOOLS: [&str; 8] = [
    "list_pods",
    "get_pod",
    "update_deployment",
    "delete_pod",
    "create_pod",
    "list_nodes",
    "get_logs",
    "delete_secret",
];
const CASES: [&str; 10] = [
    "fix-crash-loop",
    "list-pods",
    "rotate-secret",
    "scale-up",
    "drain-node",
    "read-logs",
    "create-pod",
    "roll-back",
    "find-owner",
    "label-nodes",
];

fn create(folder: &Path, name: &str) -> RunWriter {
    RunWriter::create(folder, Redactor::default(), run_started(name)).expect("a run")
}

fn end(run: RunWriter, exit: u8, reason: Option<&str>) {
    let ended = RunEnded {
        exit,
        reason: reason.map(str::to_owned),
        ..RunEnded::default()
    };
    run.end(41_000_000, ended).expect("an end");
}

fn script<'a>(case: &'a str, agent: &'a str, repeat: u32, outcome: Outcome) -> TrialScript<'a> {
    TrialScript {
        case,
        agent,
        repeat,
        attempt: 1,
        outcome,
        at: 1_000_000 + u64::from(repeat) * 300_000,
        pace: 100,
        words: "",
        server: "kubernetes",
        tool: "update_deployment",
        result: "deployment.apps/web updated",
    }
}

/// 300 trials: 30 cases, five times each, by two agents.
pub(crate) fn two_agents(folder: &Path) {
    let mut run = create(folder, "kubernetes");
    let names: Vec<String> = (0..30)
        .map(|number| format!("{}-{}", CASES[number % 10], number / 10 + 1))
        .collect();
    let rule = |number: usize| number.is_multiple_of(3).then_some((4, 5));
    let cases = names.iter().enumerate();
    let cases = cases
        .map(|(number, name)| case(name, 5, rule(number)))
        .collect();
    run.append(1, planned(cases, &AGENTS)).expect("a plan");
    run.append(2, seen("kubernetes", &TOOLS)).expect("a server");
    for (number, name) in names.iter().enumerate() {
        for (by, agent) in AGENTS.iter().enumerate() {
            for repeat in 1..=5 {
                let outcome = match (number * 7 + by * 3 + repeat as usize * 5) % 23 {
                    0 | 1 if by == 1 => Outcome::Failed,
                    2 => Outcome::Failed,
                    3 if number % 4 == 0 => Outcome::TimedOut,
                    4 if number % 5 == 0 => Outcome::Errored,
                    _ if number == 0 && repeat != 5 => Outcome::Failed,
                    _ => Outcome::Passed,
                };
                let mut script = script(name, agent, repeat, outcome);
                script.pace =
                    60 + (number as u64 * 37 + u64::from(repeat) * 11) % 140 + by as u64 * 50;
                if outcome == Outcome::Failed {
                    script.tool = "delete_pod";
                    script.result = "error: pods \"web\" not found";
                }
                trial::write(&run, &script);
            }
        }
    }
    end(run, 1, None);
}

/// One trial, which passed.
pub(crate) fn one(folder: &Path) {
    let mut run = create(folder, "quickstart");
    run.append(1, planned(vec![case("list-pods", 1, None)], &["codex"]))
        .expect("a plan");
    run.append(2, seen("kubernetes", &TOOLS)).expect("a server");
    trial::write(&run, &script("list-pods", "codex", 1, Outcome::Passed));
    end(run, 0, None);
}

/// Two of six cases ran; one trial was stopped in the middle, one was cancelled.
pub(crate) fn interrupted(folder: &Path) {
    let mut run = create(folder, "interrupted");
    let cases = CASES[..6].iter().map(|name| case(name, 2, None)).collect();
    run.append(1, planned(cases, &["codex"])).expect("a plan");
    run.append(2, seen("kubernetes", &TOOLS)).expect("a server");
    for (name, repeat, outcome) in [
        (CASES[0], 1, Outcome::Passed),
        (CASES[0], 2, Outcome::Passed),
        (CASES[1], 1, Outcome::Errored),
        (CASES[1], 2, Outcome::Cancelled),
    ] {
        trial::write(&run, &script(name, "codex", repeat, outcome));
    }
    drop(trial::driven(
        &run,
        &script(CASES[2], "codex", 1, Outcome::Passed),
    ));
    end(run, 130, Some("interrupted by Ctrl-C"));
}

/// Every trial passed, but the run has no end.
pub(crate) fn killed(folder: &Path) {
    let mut run = create(folder, "killed");
    run.append(1, planned(vec![case("list-pods", 2, None)], &["codex"]))
        .expect("a plan");
    for repeat in 1..=2 {
        trial::write(&run, &script("list-pods", "codex", repeat, Outcome::Passed));
    }
}

/// Every name and text means harm.
pub(crate) fn hostile(folder: &Path) {
    let harm = [
        "</script><img src=http://leak.invalid/x onerror=document.title='pwned'><script src=http://leak.invalid/y>document.title='pwned'</script>",
        "javascript:document.title='pwned'",
        "\u{1b}[31mred\u{1b}[0m \u{202e}txt.exe\u{200b} \u{0}\u{7} <b>&amp;</b> ]]> <!-- ${document.title='pwned'}",
        "\"onmouseover=\"document.title='pwned'\" x=\"",
    ];
    let long = "a-name-without-end-".repeat(22);
    let huge = "<iframe src=javascript:alert(1)> ".repeat(160_000);
    let mut run = create(folder, harm[0]);
    let names: Vec<String> = harm
        .iter()
        .map(|text| (*text).to_owned())
        .chain([long.clone()])
        .collect();
    let cases = names.iter().map(|name| case(name, 2, None)).collect();
    let agents = [harm[1], &long];
    run.append(1, planned(cases, &agents)).expect("a plan");
    let tools: Vec<&str> = names.iter().map(String::as_str).collect();
    run.append(2, seen(harm[2], &tools)).expect("a server");
    for name in &names {
        for agent in agents {
            for (repeat, outcome) in [(1, Outcome::Failed), (2, Outcome::Errored)] {
                // Two results of 5 MB; more of them only take longer.
                let is_huge = name == harm[0] && repeat == 1;
                let result = if is_huge { &huge } else { harm[0] };
                let script = TrialScript {
                    words: &names.join(" "),
                    server: harm[2],
                    tool: harm[3],
                    result,
                    ..script(name, agent, repeat, outcome)
                };
                trial::write(&run, &script);
            }
        }
    }
    end(run, 1, Some(harm[0]));
}

/// 10,000 trials: 125 cases, 40 times each, by two agents, with texts that don't repeat.
pub(crate) fn large(folder: &Path) {
    const WORDS: &str = "@@ words @@";
    const KINDS: [Outcome; 4] = [
        Outcome::Passed,
        Outcome::Failed,
        Outcome::Errored,
        Outcome::TimedOut,
    ];
    let mut run = create(folder, "large");
    let name = |number: u32| format!("case-{number:04}");
    let cases = (0..125).map(|number| {
        case(
            &name(number),
            40,
            number.is_multiple_of(2).then_some((4, 5)),
        )
    });
    run.append(1, planned(cases.collect(), &AGENTS))
        .expect("a plan");
    run.append(2, seen("kubernetes", &TOOLS)).expect("a server");
    let templates: Vec<String> = (1..)
        .zip(KINDS)
        .map(|(repeat, outcome)| {
            let script = TrialScript {
                words: WORDS,
                ..script("case-0000", AGENTS[0], repeat, outcome)
            };
            trial::write(&run, &script);
            let file = fs::read_dir(folder.join("trials")).expect("trials").next();
            let path = file.expect("a trial").expect("a file").path();
            let text = fs::read_to_string(&path).expect("its text");
            fs::remove_file(path).expect("it can be removed");
            text.replace(&format!("\"repeat\":{repeat}"), "\"repeat\":@")
        })
        .collect();
    end(run, 1, None);
    let mut random = Random(7);
    for number in 0..125 {
        for (by, agent) in AGENTS.iter().enumerate() {
            for repeat in 1..=40 {
                let kind = match random.below(100) {
                    0..85 => 0,
                    85..95 => 1,
                    95..99 => 2,
                    _ => 3,
                };
                let text = templates[kind]
                    .replace("case-0000", &name(number))
                    .replace(AGENTS[0], agent)
                    .replace("\"repeat\":@", &format!("\"repeat\":{repeat}"));
                let text = random.filled(&text, WORDS);
                let file = format!("case-{number:04}.{by}.{repeat}-0123456789ab.1.jsonl");
                fs::write(folder.join("trials").join(file), text).expect("a trial");
            }
        }
    }
    fs::remove_file(folder.join("index.jsonl")).expect("the index of the templates");
}

/// Numbers that are the same every time.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) % limit
    }

    /// The text with words in the place of each mark.
    fn filled(&mut self, text: &str, mark: &str) -> String {
        let mut out = String::new();
        for (index, part) in text.split(mark).enumerate() {
            if index > 0 {
                for _ in 0..40 {
                    let length = 3 + self.below(7);
                    let word: String = (0..length).map(|_| self.letter()).collect();
                    out.push_str(&word);
                    out.push(' ');
                }
            }
            out.push_str(part);
        }
        out
    }

    fn letter(&mut self) -> char {
        let letter = u8::try_from(self.below(26)).unwrap_or(0);
        char::from(b'a' + letter)
    }
}
