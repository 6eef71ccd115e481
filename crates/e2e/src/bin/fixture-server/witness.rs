//! The server's own log of all messages, as independent evidence for tests.
//!
//! One JSON object per line: `dir` (`in` or `out`), `text` or `base64`, and for HTTP requests
//! `head`.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;

use serde_json::{Value, json};

use crate::lock::lock;
use crate::payload::Payload;

/// Longer messages are logged as their first bytes and their size.
const WHOLE: u64 = 4 * 1024 * 1024;
const HEAD: usize = 1024;

/// The log file, if there is one.
pub struct Witness(Option<Mutex<File>>);

impl Witness {
    pub fn open(path: Option<&Path>) -> io::Result<Self> {
        let open = |path| OpenOptions::new().create(true).append(true).open(path);
        Ok(Self(path.map(open).transpose()?.map(Mutex::new)))
    }

    /// Logs a received message, with the head of its HTTP request.
    pub fn received(&self, body: &[u8], head: Option<&str>) {
        let mut line = told("in", body);
        if let Some(head) = head {
            line["head"] = json!(head);
        }
        self.write(&line);
    }

    pub fn sent(&self, message: &Payload) {
        if self.0.is_none() {
            return;
        }
        if message.len() <= WHOLE {
            self.write(&told("out", &message.to_bytes()));
            return;
        }
        let mut line = told("out", &message.head(HEAD));
        line["cut"] = json!(message.len());
        self.write(&line);
    }

    fn write(&self, line: &Value) {
        let Some(file) = &self.0 else { return };
        let mut file = lock(file);
        // A full log must not stop the fixture, because that would look like a requested fault.
        let _ = file.write_all(format!("{line}\n").as_bytes());
    }
}

fn told(direction: &str, bytes: &[u8]) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => json!({ "dir": direction, "text": text }),
        Err(_) => json!({ "dir": direction, "base64": base64(bytes) }),
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

pub fn base64(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for digit in 0..4 {
            let sextet = (bits >> (18 - 6 * digit)) & 63;
            let padding = digit > chunk.len();
            text.push(if padding {
                '='
            } else {
                char::from(ALPHABET[sextet as usize])
            });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::base64;

    #[test]
    fn base64_pads_to_four() {
        let table = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
        ];
        for (plain, encoded) in table {
            assert_eq!(base64(plain.as_bytes()), encoded);
        }
    }
}
