//! The modes: every fault that the fixture can show.
//!
//! One declaration defines the enum, the parser and the help text, so every mode is documented.

/// Declares the modes: variant, name on the command line, form of the argument, description.
macro_rules! modes {
    ($($variant:ident $name:literal $argument:literal $help:literal;)*) => {
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum Mode { $($variant),* }

        /// All modes with their name, the form of their argument, and their description.
        pub const TABLE: &[(Mode, &str, &str, &str)] =
            &[$((Mode::$variant, $name, $argument, $help)),*];
    };
}

modes! {
    SlowStart "slow-start" "=MS" "do nothing for MS milliseconds";
    Stderr "stderr" "=TEXT" "write TEXT to stderr at the start";
    StderrFlood "stderr-flood" "=BYTES" "write BYTES to stderr before the first message is read";
    ExitBeforeHandshake "exit-before-handshake" "[=CODE]" "exit at the start";
    ExitInHandshake "exit-in-handshake" "[=CODE]" "exit on `initialize` or `server/discover`";
    ExitInCall "exit-in-call" "[=CODE]" "exit instead of answering";
    AbortInCall "abort-in-call" "" "end by SIGABRT instead of answering";
    KillInCall "kill-in-call" "" "end by SIGKILL instead of answering";
    ExitBetweenCalls "exit-between-calls" "[=CODE]" "exit after the response";
    IgnoresSigterm "ignores-sigterm" "" "ignore SIGTERM";
    IgnoresStdinClose "ignores-stdin-close" "" "keep running when stdin is closed (at most 10 minutes)";
    SpawnsChildren "spawns-children" "[=FILE]" "start `sh -> sleep` and a `setsid` grandchild that ignores SIGTERM, all holding the pipes; their pids go to FILE";
    DiscoverError "discover-error" "=ERROR" "answer `server/discover` with this error; -32022 lists a version of the far future";
    NeverReadsStdin "never-reads-stdin" "[=N]" "never read stdin, or stop reading after N messages";

    NeverAnswer "never-answer" "[=METHOD]" "never answer (METHOD, regardless of --on)";
    AnswerLate "answer-late" "=MS" "answer after MS milliseconds";
    AnswerAfterCancel "answer-after-cancel" "" "answer when the request is cancelled, not before";
    IgnoreCancel "ignore-cancel" "" "ignore cancellation, and answer";
    FloodNotifications "flood-notifications" "=N" "send N log notifications before the response";
    FloodProgress "flood-progress" "[=MS]" "send progress forever, every MS milliseconds, and never answer";

    Banner "banner" "" "write a line of text to stdout before anything else";
    LogNoise "log-noise" "" "write a log line to stdout before every message";
    Bom "bom" "" "start the output with a byte order mark";
    Crlf "crlf" "" "end lines with CR LF";
    BlankLines "blank-lines" "" "write blank lines around every message";
    HalfLine "half-line" "" "write half a line of text, and the response after it on the same line";
    SplitWrite "split-write" "" "write the response in two pieces, 50 ms apart";
    TornLine "torn-line" "[=CODE]" "write half of the response, and exit";

    AnswerError "answer-error" "=ERROR" "answer with this JSON-RPC error";
    InvalidJson "invalid-json" "" "answer with malformed JSON";
    WrongShape "wrong-shape" "[=result|content|empty|message|version]" "answer with a string as result; an object as content; no content; a number as message; no `jsonrpc`";
    ResultAndError "result-and-error" "" "answer with both a result and an error";
    OtherIdType "other-id-type" "" "answer 1 with \"1\", and \"1\" with 1";
    DuplicateAnswer "duplicate-answer" "" "answer twice, the second time with an error";
    UnknownId "unknown-id" "" "send a response with an unknown id before the real one";
    AnswerNotification "answer-notification" "" "answer notifications, with `id` null";
    StrangeMessages "strange-messages" "" "send a notification and a request with unknown methods before the response";
    StrangeEnvelope "strange-envelope" "" "put unknown keys beside `jsonrpc`, `id` and `result` (the TypeScript SDK refuses them)";

    BigResult "big-result" "=BYTES" "a text of BYTES in the result";
    ManyBlocks "many-blocks" "=N" "N content blocks";
    DeepNesting "deep-nesting" "=N" "N nested brackets in the result";
    TextsInTexts "texts-in-texts" "=N" "N texts of JSON in each other in the result, each under a key that serde_json reserves";
    EndlessLine "endless-line" "[=BYTES]" "a response of BYTES (or endless) that never ends";
    InvalidUtf8 "invalid-utf8" "" "bytes that are not UTF-8 in the result";
    LoneSurrogate "lone-surrogate" "" "an escaped lone surrogate in the result";
    Nul "nul" "[=raw]" "an escaped (or raw) NUL in the result";

    SlowLoris "slow-loris" "[=MS]" "write the response byte by byte, one every MS milliseconds (1000)";
    EndlessHeaders "endless-headers" "[=N]" "HTTP: N (or endless) header lines";
    SilentSse "silent-sse" "" "HTTP: open an event stream, and send nothing on it";
    EndlessChunks "endless-chunks" "[=N]" "HTTP: N (or endless) chunks of white space, and no response";
    HttpStatus "http-status" "=CODE" "HTTP: answer with this status and a text body";
    Redirect "redirect" "=URL" "HTTP: answer with 307 to URL";
    TruncatedBody "truncated-body" "" "HTTP: close the connection in the middle of the body";
    SseResponses "sse-responses" "" "HTTP: answer every request with an event stream";
    JsonResponses "json-responses" "" "HTTP: never answer with an event stream";
    NoSession "no-session" "" "HTTP, handshake era: send no session id";
    NoGet "no-get" "" "HTTP, handshake era: answer GET with 405";
    StraySession "stray-session" "" "HTTP, handshake era: send a session id with every refusal, and answer an `initialize` with a session id with 404";
    ClosesStream "closes-stream" "[=N]" "HTTP: close the event stream N times (1) before the response, which comes when it is resumed";
    RepeatsEvents "repeats-events" "" "HTTP: with `closes-stream`, send a notification, and again when the stream is resumed";
    LateGet "late-get" "[=MS]" "HTTP, handshake era: open the GET stream after MS milliseconds (500)";
    ClosesGet "closes-get" "" "HTTP, handshake era: close the GET stream; when it is resumed, announce on it that the tools have changed";

    Pages "pages" "=N" "N pages for every list";
    EndlessPages "endless-pages" "" "every page of a list has a next cursor";
    RepeatedCursor "repeated-cursor" "" "every page has the same next cursor";
    EmptyPages "empty-pages" "[=N]" "N pages (3) without items before the real one";
    EmptyCursor "empty-cursor" "" "two pages, and \"\" is the cursor of the second";
    ToolsChange "tools-change" "" "after the first call the list has `late` and lacks `fail`; `list_changed` is sent";
    NoTools "no-tools" "[=empty]" "no `tools` capability and no `tools/list`; or an empty list";
    ToolsChangeAfter "tools-change-after" "=N" "the same after N listings of tools, without a notification";

    EvalsPage "evals-page" "=N" "N evals on a page of `evals/list`";
    EvalsAt "evals-at" "=PLACES" "declare evals only at these: `top`, `experimental`, `extensions`, with commas between";
    EvalsNowhere "evals-nowhere" "" "answer `evals/list`, and declare nothing";
    EvalsMillion "evals-million" "" "a million evals, 1000 (or what `evals-page` says) on a page";
    EvalsEndlessCursor "evals-endless-cursor" "" "every page of evals has a next cursor; pages after the last eval are empty";
    EvalsSameCursor "evals-same-cursor" "" "every page of evals is the first one, and has the same next cursor";
    EvalsEmptyCursor "evals-empty-cursor" "" "two pages of evals, and \"\" is the cursor of the second";
    EvalsIgnoreLevel "evals-ignore-level" "" "list evals of all levels, regardless of `level`";
    EvalsChangeAfter "evals-change-after" "=N" "after N listings there is one more eval, `late`";
    EvalsListChanged "evals-list-changed" "" "declare `listChanged`, and send `list_changed` when the evals change";
    EvalsBigRubric "evals-big-rubric" "=BYTES" "one more eval, `big-rubric`, with a rubric of BYTES";
    MetaEverywhere "meta-everywhere" "" "`_meta` in every object of every result, except in arguments, schemas, capabilities, structured content and `expected`";
    SpeaksVersion "speaks-version" "=2024-11-05|2025-03-26" "answer `initialize` with this protocol version, whatever the client requests";
    AsksClient "asks-client" "=roots|sampling|elicitation" "send a request to the client during a call, and wait for its response";
}

/// The form of an argument, as in the table: `=N`, `[=N]`, `=one|other`, or empty.
struct Form {
    required: bool,
    /// The part after the `=`; empty if there is no argument.
    kind: &'static str,
}

impl Form {
    fn new(written: &'static str) -> Self {
        let kind = written.trim_start_matches(['[', '=']).trim_end_matches(']');
        Self {
            required: written.starts_with('='),
            kind,
        }
    }

    /// Checks the argument strictly, because a mode that does nothing would make a test pass.
    fn accepts(&self, argument: Option<&str>) -> bool {
        match (argument, self.kind) {
            (None, _) => !self.required,
            (Some(_), "") => false,
            (Some(text), "MS" | "BYTES" | "N" | "CODE") => text.parse::<u64>().is_ok(),
            (Some(text), "ERROR") => text.parse::<i64>().is_ok(),
            (Some(text), "PLACES") => text
                .split(',')
                .all(|place| ["top", "experimental", "extensions"].contains(&place)),
            (Some(text), "TEXT" | "FILE" | "METHOD" | "URL") => !text.is_empty(),
            (Some(text), words) => words.split('|').any(|word| word == text),
        }
    }
}

/// Modes that have an effect on HTTP only.
pub const HTTP_ONLY: [Mode; 15] = [
    Mode::EndlessHeaders,
    Mode::SilentSse,
    Mode::EndlessChunks,
    Mode::HttpStatus,
    Mode::Redirect,
    Mode::TruncatedBody,
    Mode::SseResponses,
    Mode::JsonResponses,
    Mode::NoSession,
    Mode::NoGet,
    Mode::StraySession,
    Mode::ClosesStream,
    Mode::RepeatsEvents,
    Mode::LateGet,
    Mode::ClosesGet,
];

/// Modes that have an effect on stdio only.
pub const STDIO_ONLY: [Mode; 6] = [
    Mode::Banner,
    Mode::LogNoise,
    Mode::BlankLines,
    Mode::HalfLine,
    Mode::NeverReadsStdin,
    Mode::IgnoresStdinClose,
];

/// The selected modes, with their arguments.
#[derive(Default, Debug)]
pub struct Modes(Vec<(Mode, Option<String>)>);

impl Modes {
    /// Adds a mode: `NAME` or `NAME=ARGUMENT`.
    pub fn add(&mut self, written: &str) -> Result<(), String> {
        let (name, argument) = match written.split_once('=') {
            Some((name, argument)) => (name, Some(argument.to_owned())),
            None => (written, None),
        };
        let found = TABLE.iter().find(|(_, known, _, _)| *known == name);
        let (mode, _, form, _) = *found.ok_or_else(|| format!("unknown mode `{name}`"))?;
        if !Form::new(form).accepts(argument.as_deref()) {
            return Err(format!("`{written}` must be written as `{name}{form}`"));
        }
        self.0.push((mode, argument));
        Ok(())
    }

    pub fn has(&self, mode: Mode) -> bool {
        self.0.iter().any(|(asked, _)| *asked == mode)
    }

    pub fn argument(&self, mode: Mode) -> Option<&str> {
        let asked = self.0.iter().find(|(asked, _)| *asked == mode)?;
        asked.1.as_deref()
    }

    /// Returns the number of a mode; `missing` without an argument, `None` without the mode.
    pub fn number(&self, mode: Mode, missing: u64) -> Option<u64> {
        self.has(mode).then(|| {
            self.argument(mode)
                .map_or(Some(missing), |text| text.parse().ok())
        })?
    }
}
