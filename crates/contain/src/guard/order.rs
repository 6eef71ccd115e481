//! What a guard is told to run: by Proctor as a [`StartRequest`], or on a command line.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::time::Duration;

use rustix::process::Pid;

use super::GuardError;

/// The maximum length of a request, which is more than the system passes to a program.
pub(crate) const LONGEST: u32 = 64 * 1024 * 1024;

/// The program to run, and how. One from a request borrows its words from it.
#[derive(Debug, PartialEq, Eq)]
pub struct Order<'a> {
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Whether the processes that the program leaves behind keep running until Proctor asks for
    /// their end.
    pub linger: bool,
    /// The program and its arguments.
    pub command: Vec<Cow<'a, CStr>>,
    /// All variables of the program, as `NAME=value`.
    pub env: Vec<Cow<'a, CStr>>,
}

impl<'a> Order<'a> {
    /// Parses `--grace-ms N --parent PID [--linger] -- PROGRAM ARGS…`. The parent is the process
    /// whose end also ends the program. It is passed, not looked up: it may have ended before the
    /// guard could look.
    pub fn parse(
        args: &[OsString],
        env: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<(Pid, Self), GuardError> {
        let [grace_flag, grace, parent_flag, parent, rest @ ..] = args else {
            return Err(GuardError::Usage);
        };
        let (linger, rest) = match rest {
            [flag, rest @ ..] if flag == "--linger" => (true, rest),
            rest => (false, rest),
        };
        let [dashes, command @ ..] = rest else {
            return Err(GuardError::Usage);
        };
        let flags = [grace_flag, parent_flag, dashes].map(OsString::as_os_str);
        if flags != ["--grace-ms", "--parent", "--"].map(OsStr::new) || command.is_empty() {
            return Err(GuardError::Usage);
        }
        let parent = number(parent.as_bytes()).and_then(Pid::from_raw);
        let grace = number(grace.as_bytes());
        let variable = |(mut name, value): (OsString, OsString)| {
            name.push("=");
            name.push(value);
            name
        };
        let order = Self {
            grace: Duration::from_millis(grace.ok_or(GuardError::Usage)?),
            linger,
            command: owned(command.iter().cloned())?,
            env: owned(env.map(variable))?,
        };
        Ok((parent.ok_or(GuardError::Usage)?, order))
    }

    /// Parses a rendered [`StartRequest`]. Returns the folder of the program, too.
    pub fn from_request(bytes: &'a [u8]) -> Result<(&'a Path, Self), GuardError> {
        Self::from_words(bytes).ok_or(GuardError::Usage)
    }

    fn from_words(mut rest: &'a [u8]) -> Option<(&'a Path, Self)> {
        let mut word = || {
            let word = CStr::from_bytes_until_nul(rest).ok()?;
            rest = &rest[word.count_bytes() + 1..];
            Some(word)
        };
        let folder = Path::new(OsStr::from_bytes(word()?.to_bytes()));
        let grace = number(word()?.to_bytes())?;
        let linger = word()?.to_bytes() == b"linger";
        let variables: usize = number(word()?.to_bytes())?;
        let words: usize = number(word()?.to_bytes())?;
        let mut many = |count: usize| -> Option<Vec<Cow<'a, CStr>>> {
            (0..count).map(|_| word().map(Cow::Borrowed)).collect()
        };
        let order = Self {
            grace: Duration::from_millis(grace),
            linger,
            env: many(variables)?,
            command: many(words)?,
        };
        Some((folder, order)).filter(|(_, order)| rest.is_empty() && !order.command.is_empty())
    }

    /// The program, for messages.
    pub fn name(&self) -> String {
        let program = self.command.first().map(|word| word.to_string_lossy());
        program.unwrap_or_default().into_owned()
    }
}

fn owned(words: impl Iterator<Item = OsString>) -> Result<Vec<Cow<'static, CStr>>, GuardError> {
    let word = |word: OsString| CString::new(word.into_vec()).map(Cow::Owned);
    words
        .map(word)
        .collect::<Result<_, _>>()
        .map_err(|_| GuardError::Usage)
}

fn number<T: std::str::FromStr>(word: &[u8]) -> Option<T> {
    std::str::from_utf8(word).ok()?.parse().ok()
}

/// A program that a guard has to run.
#[derive(Debug)]
pub struct StartRequest<'a> {
    /// The working folder of the program, as an absolute path.
    pub folder: &'a Path,
    pub grace: Duration,
    /// As in [`Order`].
    pub linger: bool,
    pub program: &'a OsStr,
    pub args: &'a [OsString],
    /// All variables that the program gets.
    pub env: &'a BTreeMap<String, String>,
}

impl StartRequest<'_> {
    /// Renders it as words that end with a zero byte. A word that contains one is refused, since it
    /// would become two.
    pub fn render(&self) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(1024);
        let mut word = |parts: &[&[u8]]| {
            for part in parts {
                if part.contains(&0) {
                    let text = "a command or variable contains a zero byte";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
                }
                bytes.extend_from_slice(part);
            }
            bytes.push(0);
            Ok(())
        };
        word(&[self.folder.as_os_str().as_bytes()])?;
        word(&[self.grace.as_millis().to_string().as_bytes()])?;
        word(&[if self.linger { b"linger" } else { b"" }])?;
        word(&[self.env.len().to_string().as_bytes()])?;
        word(&[(1 + self.args.len()).to_string().as_bytes()])?;
        for (name, value) in self.env {
            word(&[name.as_bytes(), b"=", value.as_bytes()])?;
        }
        word(&[self.program.as_bytes()])?;
        for arg in self.args {
            word(&[arg.as_bytes()])?;
        }
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[&str]) -> Vec<Cow<'static, CStr>> {
        owned(words.iter().map(Into::into)).unwrap()
    }

    fn parse(line: &str) -> Result<(Pid, Order<'static>), GuardError> {
        let line: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        Order::parse(&line, [("A".into(), "1".into())].into_iter())
    }

    #[test]
    fn a_command_line_is_parsed() {
        for (flag, linger) in [("", false), ("--linger ", true)] {
            let parsed = parse(&format!("--grace-ms 1500 --parent 7 {flag}-- sh -- -c ")).unwrap();
            let order = Order {
                grace: Duration::from_millis(1500),
                linger,
                command: words(&["sh", "--", "-c", ""]),
                env: words(&["A=1"]),
            };
            assert_eq!(parsed, (Pid::from_raw(7).unwrap(), order));
        }
    }

    #[test]
    fn a_wrong_order_is_refused() {
        let check = |line: &str| {
            assert!(matches!(parse(line), Err(GuardError::Usage)), "{line}");
        };
        check("");
        check("--grace-ms 1 --parent 1 --");
        check("--grace-ms 1 --parent 0 -- sh");
        check("--grace-ms 1 --parent x -- sh");
        check("--grace-ms -1 --parent 1 -- sh");
        check("--grace-ms 1 --parent 1 sh -c");
        check("--grace-ms 1 --parent 1 --linger");
        check("--grace-ms 1 --parent 1 --linger sh");
    }

    fn rendered(linger: bool, args: &[&str], env: &[(&str, &str)]) -> io::Result<Vec<u8>> {
        let args: Vec<OsString> = args.iter().map(Into::into).collect();
        let variables = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
        let request = StartRequest {
            folder: Path::new("/a b"),
            grace: Duration::from_millis(1500),
            linger,
            program: OsStr::new("sh"),
            args: &args,
            env: &variables.collect(),
        };
        request.render()
    }

    #[test]
    fn rendered_requests_parse_back() {
        let check = |linger: bool, args: &[&str], env: &[(&str, &str)], variables: &[&str]| {
            let bytes = rendered(linger, args, env).unwrap();
            let (folder, order) = Order::from_request(&bytes).unwrap();
            assert_eq!(folder, Path::new("/a b"));
            let expected = Order {
                grace: Duration::from_millis(1500),
                linger,
                command: words(&[&["sh"], args].concat()),
                env: words(variables),
            };
            assert_eq!(order, expected);
        };
        check(false, &[], &[], &[]);
        check(true, &["", "-c", "", ""], &[], &[]);
        let env = [("A", ""), ("B", "=1=\n"), ("ÄÖ", "ü")];
        check(true, &["A=1"], &env, &["A=", "B==1=\n", "ÄÖ=ü"]);
    }

    #[test]
    fn a_zero_byte_never_makes_two_words_of_one() {
        for refused in [
            rendered(false, &["a\0b"], &[]),
            rendered(false, &[], &[("A", "1\0B=2")]),
            rendered(false, &[], &[("A\0", "")]),
        ] {
            let error = refused.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
        }
    }

    #[test]
    fn an_incomplete_or_longer_request_is_refused() {
        let bytes = rendered(false, &["x"], &[("A", "1")]).unwrap();
        for length in 0..bytes.len() {
            assert!(Order::from_request(&bytes[..length]).is_err(), "{length}");
        }
        let longer = [&bytes[..], b"y\0"].concat();
        assert!(Order::from_request(&longer).is_err());
        assert!(Order::from_request(b"/a\x001\x00\x000\x000\x00").is_err());
        assert!(Order::from_request(b"/a\x001\x00\x00x\x001\x00sh\x00").is_err());
    }
}
