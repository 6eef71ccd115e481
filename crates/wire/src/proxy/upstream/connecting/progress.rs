//! How much of a response is still to come.
//!
//! Its main type is [`ResponseProgress`]. It only guesses, for a saved system call: bytes that it does not understand,
//! such as those of TLS, count as a response of which more is to come.

use memchr::memmem;

/// Follows the bytes of one response after another.
#[derive(Debug, Default)]
pub(super) struct ResponseProgress {
    /// The length of the rest of the body; `None` before the head, or if the length is unknown.
    left: Option<usize>,
}

impl ResponseProgress {
    /// Takes the next bytes, and returns whether a response ends with them.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        let left = match self.left.take() {
            Some(left) => left.checked_sub(bytes.len()),
            None => rest_of_body(bytes),
        };
        self.left = left.filter(|left| *left > 0);
        left == Some(0)
    }
}

/// Returns what is missing of a response that starts here; `None` if it is not known.
fn rest_of_body(bytes: &[u8]) -> Option<usize> {
    let head = bytes.strip_prefix(b"HTTP/1.")?;
    let end = memmem::find(head, b"\r\n\r\n")?;
    let (head, body) = (&head[..end], &head[end + 4..]);
    let lines = str::from_utf8(head).ok()?.split("\r\n").skip(1);
    let length = lines
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
    let length: usize = length?.1.trim().parse().ok()?;
    length.checked_sub(body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_with_its_last_byte() {
        let check = |parts: &[&str], expected: &[bool]| {
            let mut progress = ResponseProgress::default();
            let ends: Vec<bool> = parts.iter().map(|p| progress.take(p.as_bytes())).collect();
            assert_eq!(ends, expected, "{parts:?}");
        };
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\ncontent-length: 4\r\n\r\n";
        let whole = format!("{head}body");
        check(&[&whole, &whole], &[true, true]);
        check(&[head, "body", &whole], &[false, true, true]);
        check(
            &[head, "b", "od", "y", head],
            &[false, false, false, true, false],
        );
        let empty = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
        check(&[empty, &whole], &[true, true]);
        // More than the length, an interim response, and a head in two parts.
        check(&[&format!("{whole}?"), "x"], &[false, false]);
        check(&["HTTP/1.1 100 Continue\r\n\r\n", &whole], &[false, true]);
        check(
            &["HTTP/1.1 200 OK\r\nContent-", "Length: 4\r\n\r\nbody"],
            &[false, false],
        );
    }

    #[test]
    fn more_is_to_come_of_what_has_no_length() {
        for bytes in [
            "",
            "\u{16}\u{3}\u{3}",
            "HTTP/1.1 200 OK\r\n\r\nbody",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\n\r\n",
        ] {
            assert!(
                !ResponseProgress::default().take(bytes.as_bytes()),
                "{bytes}"
            );
        }
    }
}
