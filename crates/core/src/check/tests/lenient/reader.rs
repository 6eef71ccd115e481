//! A reference reader as lenient as any server: it returns many readings of the same bytes.
//!
//! It shares no code with the tolerant reader, and never rejects anything: it closes open values at
//! the end, skips unknown text, and reads comments, both kinds of quotes and bare words.

use serde_json::{Map, Value};

use proctor_record::transcript::CallKind;

/// A call, as one reader sees it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LenientCall {
    pub(super) kind: CallKind,
    pub(super) name: String,
    /// `None` if JSON can't express them.
    pub(super) arguments: Option<Value>,
}

/// How one reader reads.
#[derive(Clone, Copy)]
struct Habits {
    /// Whether the first of two equal keys counts, not the last.
    first_wins: bool,
    /// Whether keys are compared without case, and end at a NUL.
    lax_keys: bool,
}

/// Every call that any of the readers sees in what was sent.
pub(super) fn readings(stream: &[u8]) -> Vec<LenientCall> {
    let mut calls = Vec::new();
    for text in decodings(stream) {
        for (breaks, pieces) in framings(&text) {
            for piece in pieces {
                let values = Parser::new(piece).all(breaks != Breaks::All);
                for (first_wins, lax_keys) in
                    [(false, false), (true, false), (false, true), (true, true)]
                {
                    let habits = Habits {
                        first_wins,
                        lax_keys,
                    };
                    for value in &values {
                        habits.calls(value, &mut calls);
                    }
                }
            }
        }
    }
    calls
}

fn decodings(stream: &[u8]) -> Vec<String> {
    let lossy = String::from_utf8_lossy(stream).into_owned();
    let ignoring = lossy.replace('\u{fffd}', "");
    let mut all = vec![lossy, ignoring];
    let line = |line: &[u8]| match std::str::from_utf8(line) {
        Ok(text) => text.to_owned(),
        // As Latin-1.
        Err(_) => line.iter().map(|byte| char::from(*byte)).collect(),
    };
    let lines: Vec<String> = stream.split(|byte| *byte == b'\n').map(line).collect();
    all.push(lines.join("\n"));
    if stream.contains(&0) {
        let units = stream
            .chunks(2)
            .map(|pair| u16::from_le_bytes([pair[0], pair.get(1).copied().unwrap_or_default()]));
        all.push(String::from_utf16_lossy(&units.collect::<Vec<_>>()));
        all.push(all[0].replace('\0', ""));
    }
    all
}

/// Where a reader splits lines.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Breaks {
    Nowhere,
    LineFeeds,
    Returns,
    /// At all line breaks of Unicode, some of which valid JSON may hold: such a reader does not also
    /// complete what it cut.
    All,
}

fn framings(text: &str) -> [(Breaks, Vec<&str>); 4] {
    let all = [
        '\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}',
        '\u{2029}',
    ];
    [
        (Breaks::Nowhere, vec![text]),
        (Breaks::LineFeeds, text.split('\n').collect()),
        (Breaks::Returns, text.split(['\n', '\r']).collect()),
        (Breaks::All, text.split(all).collect()),
    ]
}

impl Habits {
    fn calls(self, value: &Json, calls: &mut Vec<LenientCall>) {
        match value {
            Json::List(values) => values.iter().for_each(|value| self.calls(value, calls)),
            Json::Object(_) => calls.extend(self.call(value)),
            Json::Plain(_) | Json::Odd | Json::Text(_) => {}
        }
    }

    fn call(self, message: &Json) -> Option<LenientCall> {
        let Json::Text(method) = self.member(message, "method")? else {
            return None;
        };
        let (kind, key) = match method.split('\0').next()? {
            "tools/call" => (CallKind::Tool, "name"),
            "resources/read" => (CallKind::Resource, "uri"),
            "prompts/get" => (CallKind::Prompt, "name"),
            _ => return None,
        };
        let params = self.member(message, "params")?;
        let Json::Text(name) = self.member(params, key)? else {
            return None;
        };
        let arguments = self.member(params, "arguments");
        Some(LenientCall {
            kind,
            name: name.clone(),
            arguments: arguments.and_then(|arguments| self.value(arguments)),
        })
    }

    fn member<'a>(self, object: &'a Json, key: &str) -> Option<&'a Json> {
        let Json::Object(members) = object else {
            return None;
        };
        let is_it = |(other, _): &&(String, Json)| {
            if !self.lax_keys {
                return other == key;
            }
            let other = other.split('\0').next().unwrap_or_default();
            other.to_lowercase().replace('ſ', "s") == key
        };
        let mut found = members.iter().filter(is_it);
        let found = if self.first_wins {
            found.next()
        } else {
            found.next_back()
        };
        found.map(|(_, value)| value)
    }

    fn value(self, json: &Json) -> Option<Value> {
        Some(match json {
            Json::Odd => return None,
            Json::Plain(value) => value.clone(),
            Json::Text(text) => Value::from(text.as_str()),
            Json::List(values) => {
                let values = values.iter().map(|value| self.value(value));
                Value::Array(values.collect::<Option<_>>()?)
            }
            Json::Object(members) => {
                let mut object = Map::new();
                for (key, value) in members {
                    if !(self.first_wins && object.contains_key(key)) {
                        object.insert(key.clone(), self.value(value)?);
                    }
                }
                Value::Object(object)
            }
        })
    }
}

/// A parsed value.
#[derive(Debug, Clone)]
enum Json {
    Plain(Value),
    /// A word that is not JSON.
    Odd,
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// Whether a value had no end.
    is_cut: bool,
}

impl Parser {
    fn new(text: &str) -> Self {
        Self {
            chars: text.chars().collect(),
            at: 0,
            is_cut: false,
        }
    }

    /// Every value, one after the other.
    fn all(mut self, completes: bool) -> Vec<Json> {
        let mut values = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None if self.is_cut && !completes => return Vec::new(),
                None => return values,
                Some('}' | ']' | ',' | ':') => self.at += 1,
                Some(_) => values.push(self.value(0)),
            }
        }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn starts(&self, text: &str) -> bool {
        let mut rest = self.chars[self.at..].iter().copied();
        text.chars().all(|c| rest.next() == Some(c))
    }

    fn skip_until(&mut self, end: &str) {
        while self.at < self.chars.len() && !self.starts(end) {
            self.at += 1;
        }
        self.at = (self.at + end.chars().count()).min(self.chars.len());
    }

    fn blank(&mut self) {
        while let Some(next) = self.peek() {
            match next {
                '#' => self.skip_until("\n"),
                '/' if self.starts("//") => self.skip_until("\n"),
                '/' if self.starts("/*") => self.skip_until("*/"),
                c if c.is_whitespace() || c.is_control() || c == '\u{feff}' => self.at += 1,
                _ => return,
            }
        }
    }

    fn value(&mut self, depth: usize) -> Json {
        match self.peek() {
            Some(quote @ ('"' | '\'')) => Json::Text(self.text(quote)),
            Some('{') if depth < 100 => self.object(depth),
            Some('[') if depth < 100 => self.list(depth),
            _ => self.word(),
        }
    }

    fn list(&mut self, depth: usize) -> Json {
        self.at += 1;
        let mut values = Vec::new();
        loop {
            self.blank();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    return Json::List(values);
                }
                Some(']' | '}') => {
                    self.at += 1;
                    return Json::List(values);
                }
                Some(',' | ':') => self.at += 1,
                Some(_) => values.push(self.value(depth + 1)),
            }
        }
    }

    fn object(&mut self, depth: usize) -> Json {
        self.at += 1;
        let mut members = Vec::new();
        let mut key = None;
        loop {
            self.blank();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    return Json::Object(members);
                }
                Some('}' | ']') => {
                    self.at += 1;
                    return Json::Object(members);
                }
                Some(',') => {
                    key = None;
                    self.at += 1;
                }
                Some(':') => self.at += 1,
                Some(_) => match key.take() {
                    Some(key) => members.push((key, self.value(depth + 1))),
                    None => {
                        key = Some(match self.value(depth + 1) {
                            Json::Text(text) => text,
                            Json::Plain(_) | Json::Odd | Json::List(_) | Json::Object(_) => {
                                String::new()
                            }
                        });
                    }
                },
            }
        }
    }

    fn word(&mut self) -> Json {
        let start = self.at;
        self.at += 1;
        while let Some(next) = self.peek() {
            if next.is_whitespace() || ",:[]{}\"'".contains(next) {
                break;
            }
            self.at += 1;
        }
        let word: String = self.chars[start..self.at].iter().collect();
        if let Ok(value) = serde_json::from_str(&word) {
            return Json::Plain(value);
        }
        if word.starts_with(char::is_alphabetic) && !["NaN", "Infinity"].contains(&word.as_str()) {
            return Json::Text(word);
        }
        Json::Odd
    }

    fn text(&mut self, quote: char) -> String {
        self.at += 1;
        let mut units: Vec<u16> = Vec::new();
        while let Some(next) = self.peek() {
            self.at += 1;
            if next == quote {
                return String::from_utf16_lossy(&units);
            }
            if next == '\\' {
                self.escape(&mut units);
            } else {
                units.extend(next.encode_utf16(&mut [0; 2]).iter());
            }
        }
        self.is_cut = true;
        String::from_utf16_lossy(&units)
    }

    fn escape(&mut self, units: &mut Vec<u16>) {
        let Some(escaped) = self.peek() else { return };
        self.at += 1;
        let mut hex = |count: usize| {
            let digits: String = self.chars[self.at..].iter().take(count).collect();
            let unit = u16::from_str_radix(&digits, 16).ok();
            self.at += unit.map_or(0, |_| digits.chars().count());
            unit
        };
        let plain = match escaped {
            'u' => return units.extend(hex(4)),
            'x' => return units.extend(hex(2)),
            '\n' | '\r' => return,
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            other => other,
        };
        units.extend(plain.encode_utf16(&mut [0; 2]).iter());
    }
}
