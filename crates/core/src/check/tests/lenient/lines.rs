//! Lines that an agent may send: valid, duplicated, truncated, with odd numbers and escapes, split
//! and joined.

use proptest::prelude::*;
use proptest::sample::{Index, select};

/// One or two messages, damaged, as bytes on a pipe.
pub(super) fn stream() -> impl Strategy<Value = Vec<u8>> {
    let messages = prop::collection::vec(message(), 1..3);
    let between = select(vec![
        "\n", "\r", "\r\n", "", " ", ",", "\u{2028}", "\u{1e}", "\u{feff}",
    ]);
    let damages = prop::collection::vec((damage(), any::<Index>()), 0..3);
    (messages, between, damages).prop_map(|(messages, between, damages)| {
        let mut bytes = messages.join(between).into_bytes();
        for (damage, at) in damages {
            damage.apply(&mut bytes, at);
        }
        bytes
    })
}

fn message() -> impl Strategy<Value = String> {
    let method = select(vec![
        "tools/call",
        "tools/call",
        "tools/call",
        "resources/read",
        "prompts/get",
        "tools/list",
        "ping",
    ]);
    let member = prop_oneof![
        3 => (key("method"), text(method)),
        3 => (key("params"), params()),
        2 => (key("id"), select(vec!["1", "\"b\"", "null", "NaN"]).prop_map(str::to_owned)),
        1 => (key("jsonrpc"), select(vec!["\"2.0\"", "2"]).prop_map(str::to_owned)),
        1 => (key("result"), arguments()),
    ];
    let plain = (key("method"), text(select(vec!["tools/call"])), params());
    let whole = plain.prop_map(|(key, method, params)| {
        format!(r#"{{"jsonrpc":"2.0","id":7,{key}:{method},"params":{params}}}"#)
    });
    prop_oneof![1 => whole, 2 => object(member, 1..6)]
}

fn params() -> impl Strategy<Value = String> {
    let name = || select(vec!["delete", "a", "ünï", "\u{1}x"]);
    let member = prop_oneof![
        3 => (key("name"), text(name())),
        1 => (key("uri"), text(select(vec!["file:///a"]))),
        2 => (key("arguments"), arguments()),
        1 => (key("_meta"), arguments()),
    ];
    let odd = select(vec!["[\"delete\"]", "\"{}\"", "null"]);
    prop_oneof![9 => object(member, 1..5), 1 => odd.prop_map(str::to_owned)]
}

fn arguments() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        4 => select(vec!["1", "true", "[1,{}]", "1e400", "{\"x\":1,\"x\":2}"]),
        2 => select(vec!["NaN", "Infinity", "-Infinity", "01", "+1", ".5", "undefined"]),
        2 => select(vec!["\"\\ud800\"", "\"\t\"", "\"\u{2028}\"", "\"tools/call\"", "'x'"]),
    ];
    let member = (select(vec!["\"x\"", "\"y\"", "\"X\""]), value);
    object(member.prop_map(|(k, v)| (k.to_owned(), v.to_owned())), 0..4)
}

fn object(
    member: impl Strategy<Value = (String, String)>,
    size: std::ops::Range<usize>,
) -> impl Strategy<Value = String> {
    let end = select(vec!["", "", "", "", ",", " /* , */ "]);
    (prop::collection::vec(member, size), end).prop_map(|(members, end)| {
        let members: Vec<String> = members.iter().map(|(k, v)| format!("{k}:{v}")).collect();
        format!("{{{}{end}}}", members.join(","))
    })
}

/// A key, sometimes as only some readers know it.
fn key(name: &'static str) -> impl Strategy<Value = String> {
    let capital = name[..1].to_uppercase() + &name[1..];
    let other = vec![
        name.to_uppercase(),
        capital,
        name.replace('s', "ſ"),
        format!("{name}\\u0000x"),
        format!("\\u{:04x}{}", u32::from(name.as_bytes()[0]), &name[1..]),
    ];
    let written = prop_oneof![6 => Just(name.to_owned()), 1 => select(other)];
    prop_oneof![
        12 => written.prop_map(|key| format!("\"{key}\"")),
        1 => Just(format!("'{name}'")),
        1 => Just(name.to_owned()),
    ]
}

/// A string, with some of its characters as escapes.
fn text(text: impl Strategy<Value = &'static str>) -> impl Strategy<Value = String> {
    let escape = prop_oneof![5 => Just(None), 2 => any::<(Index, u8)>().prop_map(Some)];
    (text, escape).prop_map(|(text, escape)| {
        let escaped = escape.map(|(index, how)| (index.index(text.chars().count()), how));
        let one = |(at, c): (usize, char)| match escaped {
            Some((here, how)) if here == at => match how % 5 {
                0 => format!("\\u{:04x}", u32::from(c)),
                1 => format!("\\u{:04X}", u32::from(c)),
                2 if c.is_ascii() => format!("\\x{:02x}", u32::from(c)),
                3 => format!("{c}\\ud83d"),
                _ if c == '/' => "\\/".to_owned(),
                _ => c.to_string(),
            },
            _ => c.to_string(),
        };
        let inside: String = text.chars().enumerate().map(one).collect();
        format!("\"{inside}\"")
    })
}

/// Damage to bytes in transit.
#[derive(Debug, Clone)]
enum Damage {
    Truncate,
    Insert(&'static [u8]),
    Prepend(&'static [u8]),
    Append(&'static [u8]),
    Remove,
    SingleQuotes,
    Wrap,
    Double,
    Widen,
}

fn damage() -> impl Strategy<Value = Damage> {
    let inserted: Vec<&'static [u8]> = vec![
        b"\xff",
        b"\0",
        b"\n",
        b"\r",
        b"\t",
        b"\x0b",
        b"\"",
        b"'",
        b",",
        b"}",
        b"]",
        b"NaN",
        b"\\",
        b"//",
        b"\xc3",
        b"/**/",
        b"\xef\xbb\xbf",
        b"\\\n",
    ];
    let prepended: Vec<&'static [u8]> = vec![
        b"\xef\xbb\xbf",
        b"Content-Length: 9\r\n\r\n",
        b"[",
        b"{}",
        b"data: ",
        b"\x1e",
        b")]}',\n",
        b"{\"x\":",
    ];
    let appended: Vec<&'static [u8]> =
        vec![b"}", b"]", b" garbage", b"\r", b"{", b",", b"\0", b"\n"];
    prop_oneof![
        1 => Just(Damage::Truncate),
        4 => select(inserted).prop_map(Damage::Insert),
        1 => select(prepended).prop_map(Damage::Prepend),
        1 => select(appended).prop_map(Damage::Append),
        1 => Just(Damage::Remove),
        1 => Just(Damage::SingleQuotes),
        1 => Just(Damage::Wrap),
        1 => Just(Damage::Double),
        1 => Just(Damage::Widen),
    ]
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>, at: Index) {
        let here = at.index(bytes.len() + 1);
        match self {
            Self::Truncate => bytes.truncate(here),
            Self::Insert(what) => drop(bytes.splice(here..here, what.iter().copied())),
            Self::Prepend(what) => drop(bytes.splice(0..0, what.iter().copied())),
            Self::Append(what) => bytes.extend_from_slice(what),
            Self::Remove => {
                if here < bytes.len() {
                    bytes.remove(here);
                }
            }
            Self::SingleQuotes => bytes.iter_mut().for_each(|byte| {
                if *byte == b'"' {
                    *byte = b'\'';
                }
            }),
            Self::Wrap => {
                bytes.insert(0, b'[');
                bytes.push(b']');
            }
            Self::Double => bytes.extend_from_within(..),
            Self::Widen => *bytes = bytes.iter().flat_map(|byte| [*byte, 0]).collect(),
        }
    }
}
