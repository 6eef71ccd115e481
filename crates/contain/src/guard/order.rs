//! What a guard is told to run: by the guard host as a [`StartRequest`], or on a command line.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::time::Duration;

use rustix::process::Pid;

use super::{GuardError, system};

/// The program to run, and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Whether the processes that the program leaves behind keep running until Proctor asks for
    /// their end. The guard then reports on its stdin how the program ended, and the program has no
    /// stdin.
    pub linger: bool,
    pub program: OsString,
    pub args: Vec<OsString>,
    /// Variables that the program gets beside those of the guard.
    pub env: Vec<(OsString, OsString)>,
}

impl Order {
    /// Parses `--grace-ms N --parent PID [--linger] -- PROGRAM ARGS…`. The parent is the process
    /// whose end also ends the program. It is passed, not looked up: it may have ended before the
    /// guard could look.
    pub fn parse(args: &[OsString]) -> Result<(Pid, Self), GuardError> {
        let [grace_flag, grace, parent_flag, parent, rest @ ..] = args else {
            return Err(GuardError::Usage);
        };
        let (linger, rest) = match rest {
            [flag, rest @ ..] if flag == "--linger" => (true, rest),
            rest => (false, rest),
        };
        let [dashes, program, args @ ..] = rest else {
            return Err(GuardError::Usage);
        };
        let flags = [grace_flag, parent_flag, dashes].map(OsString::as_os_str);
        if flags != ["--grace-ms", "--parent", "--"].map(OsStr::new) {
            return Err(GuardError::Usage);
        }
        let parent = number(parent).and_then(Pid::from_raw);
        let grace = number(grace);
        let order = Self {
            grace: Duration::from_millis(grace.ok_or(GuardError::Usage)?),
            linger,
            program: program.clone(),
            args: args.to_vec(),
            env: Vec::new(),
        };
        Ok((parent.ok_or(GuardError::Usage)?, order))
    }
}

fn number<T: std::str::FromStr>(word: &OsStr) -> Option<T> {
    word.to_str()?.parse().ok()
}

/// A request to the guard host: words that end with a zero byte, which no word can contain.
#[derive(Debug, PartialEq, Eq)]
pub struct StartRequest {
    /// The working folder of the program, as an absolute path.
    pub folder: PathBuf,
    pub order: Order,
}

impl StartRequest {
    /// Renders a request with these variables, which are all that the program gets.
    pub fn render(&self, env: &BTreeMap<String, String>) -> Vec<u8> {
        let Self { folder, order } = self;
        let mut bytes = Vec::with_capacity(1024);
        let mut word = |parts: &[&[u8]]| {
            for part in parts {
                bytes.extend_from_slice(part);
            }
            bytes.push(0);
        };
        word(&[folder.as_os_str().as_bytes()]);
        word(&[order.grace.as_millis().to_string().as_bytes()]);
        word(&[if order.linger { b"linger" } else { b"" }]);
        word(&[env.len().to_string().as_bytes()]);
        for (name, value) in env {
            word(&[name.as_bytes(), b"=", value.as_bytes()]);
        }
        word(&[order.program.as_bytes()]);
        for arg in &order.args {
            word(&[arg.as_bytes()]);
        }
        bytes
    }

    pub fn parse(bytes: &[u8]) -> Result<Self, GuardError> {
        Self::from_words(bytes.strip_suffix(&[0]).unwrap_or(bytes)).ok_or(GuardError::Usage)
    }

    fn from_words(bytes: &[u8]) -> Option<Self> {
        let owned = |word: &[u8]| OsString::from_vec(word.to_vec());
        let mut words = bytes.split(|byte| *byte == 0);
        let folder = owned(words.next()?).into();
        let grace = number(OsStr::from_bytes(words.next()?))?;
        let linger = words.next()? == b"linger";
        let variables: usize = number(OsStr::from_bytes(words.next()?))?;
        let mut env = Vec::new();
        for _ in 0..variables {
            let word = words.next()?;
            let equals = word.iter().position(|byte| *byte == b'=')?;
            env.push((owned(&word[..equals]), owned(&word[equals + 1..])));
        }
        let order = Order {
            grace: Duration::from_millis(grace),
            linger,
            program: owned(words.next()?),
            args: words.map(owned).collect(),
            env,
        };
        Some(Self { folder, order })
    }

    /// Makes the program's folder that of this process.
    pub fn enter_folder(&self) -> Result<(), GuardError> {
        env::set_current_dir(&self.folder).map_err(system("enter the working folder"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(linger: bool, args: &[&str]) -> Order {
        Order {
            grace: Duration::from_millis(1500),
            linger,
            program: "sh".into(),
            args: args.iter().map(Into::into).collect(),
            env: Vec::new(),
        }
    }

    #[test]
    fn a_command_line_is_parsed() {
        for (flag, linger) in [("", false), ("--linger ", true)] {
            let words = format!("--grace-ms 1500 --parent 7 {flag}-- sh -- -c ");
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            let parsed = Order::parse(&words).unwrap();
            let parent = Pid::from_raw(7).unwrap();
            assert_eq!(parsed, (parent, order(linger, &["--", "-c", ""])));
        }
    }

    #[test]
    fn a_wrong_order_is_refused() {
        let check = |words: &str| {
            let words: Vec<OsString> = words.split(' ').map(OsString::from).collect();
            assert!(
                matches!(Order::parse(&words), Err(GuardError::Usage)),
                "{words:?}"
            );
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

    #[test]
    fn rendered_requests_parse_back() {
        let check = |linger: bool, args: &[&str], env: &[(&str, &str)]| {
            let variables = env.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned()));
            let mut request = StartRequest {
                folder: "/a b".into(),
                order: order(linger, args),
            };
            let bytes = request.render(&variables.collect());
            request.order.env = env.iter().map(|(n, v)| (n.into(), v.into())).collect();
            assert_eq!(StartRequest::parse(&bytes).unwrap(), request);
        };
        check(false, &[], &[]);
        check(true, &["", "-c", "", ""], &[]);
        check(true, &["A=1"], &[("A", ""), ("B", "=1=\n"), ("ÄÖ", "ü")]);
    }

    #[test]
    fn an_incomplete_request_is_refused() {
        let request = StartRequest {
            folder: "/a".into(),
            order: order(false, &[]),
        };
        let bytes = request.render(&[("A".to_owned(), "1".to_owned())].into());
        for length in 0..bytes.len() - b"sh\0".len() {
            assert!(StartRequest::parse(&bytes[..length]).is_err(), "{length}");
        }
        assert!(StartRequest::parse(b"/a\x001\x00\x00x\x00sh\x00").is_err());
    }
}
