//! The command line of the guard, which only Proctor writes.

use std::ffi::{OsStr, OsString};
use std::time::Duration;

use rustix::process::Pid;

use super::{COMMAND, GuardError};

/// The program to run, and how.
#[derive(Debug, PartialEq, Eq)]
pub struct Order {
    /// The process whose end also ends the program. It is passed, not looked up: Proctor may have
    /// ended before the guard could look.
    pub parent: Pid,
    /// The time between SIGTERM and SIGKILL.
    pub grace: Duration,
    /// Whether the processes that the program leaves behind keep running until Proctor asks for
    /// their end. The guard then reports on its stdin how the program ended, and the program has no
    /// stdin.
    pub linger: bool,
    pub program: OsString,
    pub args: Vec<OsString>,
}

impl Order {
    pub fn parse(args: &[OsString]) -> Result<Self, GuardError> {
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
        Ok(Self {
            parent: parent.ok_or(GuardError::Usage)?,
            grace: Duration::from_millis(grace.ok_or(GuardError::Usage)?),
            linger,
            program: program.clone(),
            args: args.to_vec(),
        })
    }

    /// The arguments that `parse` reads, after the command.
    pub fn render(self) -> Vec<OsString> {
        let grace = self.grace.as_millis();
        let mut words: Vec<OsString> = vec![
            COMMAND.into(),
            "--grace-ms".into(),
            grace.to_string().into(),
            "--parent".into(),
            self.parent.as_raw_pid().to_string().into(),
        ];
        words.extend(self.linger.then(|| "--linger".into()));
        words.extend(["--".into(), self.program]);
        words.extend(self.args);
        words
    }
}

fn number<T: std::str::FromStr>(word: &OsStr) -> Option<T> {
    word.to_str()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rendered_orders_parse_back() {
        for linger in [false, true] {
            let order = || Order {
                parent: Pid::from_raw(7).unwrap(),
                grace: Duration::from_millis(1500),
                linger,
                program: "sh".into(),
                args: vec!["--".into(), "-c".into(), String::new().into()],
            };
            let words = order().render();
            assert_eq!(words[0], COMMAND);
            assert_eq!(Order::parse(&words[1..]).unwrap(), order());
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
}
