//! Inserts variable references into a shell command, quoted for their position.
//!
//! Main function: [`render`]. A shell never executes the value of a variable, so a wrongly judged
//! position may change the value but never runs it.

use crate::external::cli::AssignmentError;

/// A piece of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// Text for the shell.
    Text(String),
    /// A reference to this variable.
    Variable(String),
    /// A reference to the variable that holds the prompt.
    Prompt(String),
    /// A value that the template quotes with `%q`, in two variables. Where the shell would
    /// interpret the quotes, it gets the plain value; where they are text, the quoted one.
    Quoted {
        plain: String,
        quoted: String,
        is_prompt: bool,
    },
}

/// The shells that execute text, and programs that pass text to a shell.
const SHELLS: [&str; 9] = [
    "sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "su", "runuser",
];

/// The command with its references.
pub(super) fn render(values: &[Value]) -> Result<String, AssignmentError> {
    let mut scanner = Scanner::default();
    let mut command = String::new();
    for value in values {
        match value {
            Value::Text(text) => {
                scanner.text(text);
                command.push_str(text);
            }
            Value::Variable(name) => command.push_str(&scanner.reference(name)?),
            Value::Prompt(name) => {
                scanner.refuse_other_shells()?;
                command.push_str(&scanner.reference(name)?);
            }
            Value::Quoted {
                plain,
                quoted,
                is_prompt,
            } => {
                if *is_prompt {
                    scanner.refuse_other_shells()?;
                }
                let name = if scanner.quotes_are_text() {
                    quoted
                } else {
                    plain
                };
                command.push_str(&scanner.reference(name)?);
            }
        }
    }
    Ok(command)
}

/// The quoting at a position.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum ShellQuote {
    #[default]
    None,
    Single,
    Double,
}

/// The end marker of a nested command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Close {
    #[default]
    Never,
    Parenthesis,
    Backtick,
}

/// A command, or one nested in another.
#[derive(Debug, Default)]
struct ShellFrame {
    close: Close,
    quote: ShellQuote,
    /// The words of the simple command so far, without quotes; the last one may be incomplete.
    words: Vec<String>,
    in_word: bool,
    /// Whether it has a here-string (`<<<`).
    has_here_string: bool,
}

/// A here-document (`<<WORD`), whose body follows on later lines.
#[derive(Debug, Clone)]
struct HereDocument {
    delimiter: String,
    strips_tabs: bool,
    is_quoted: bool,
    is_for_shell: bool,
}

/// Scans a command and tracks the quoting at the current position.
#[derive(Debug, Default)]
struct Scanner {
    frame: ShellFrame,
    outer: Vec<ShellFrame>,
    is_comment: bool,
    /// Here-documents that start on the next line.
    announced: Vec<HereDocument>,
    /// The current here-document, and its line so far.
    document: Option<(HereDocument, String)>,
}

impl Scanner {
    fn text(&mut self, text: &str) {
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let behind = &rest[c.len_utf8()..];
            rest = self.step(c, behind);
        }
    }

    /// Takes a character, and returns the remaining text.
    fn step<'a>(&mut self, c: char, behind: &'a str) -> &'a str {
        if let Some((document, line)) = &mut self.document {
            if c != '\n' {
                line.push(c);
                return behind;
            }
            let written = if document.strips_tabs {
                line.trim_start_matches('\t')
            } else {
                line.as_str()
            };
            if written == document.delimiter {
                self.next_document();
            } else {
                line.clear();
            }
            return behind;
        }
        if self.is_comment && c != '\n' {
            return behind;
        }
        match (self.frame.quote, c) {
            (ShellQuote::Single, '\'') | (ShellQuote::Double, '"') => {
                self.frame.quote = ShellQuote::None;
            }
            (ShellQuote::Single, _) => self.word(c),
            (_, '\\') => {
                let escaped = behind.chars().next();
                let Some(escaped) = escaped else {
                    return behind;
                };
                self.word(escaped);
                return &behind[escaped.len_utf8()..];
            }
            (_, '`') if self.frame.close == Close::Backtick => self.leave(),
            (_, '`') => self.enter(Close::Backtick),
            (_, '$') if behind.starts_with('(') => {
                self.enter(Close::Parenthesis);
                return &behind[1..];
            }
            (ShellQuote::Double, _) => self.word(c),
            (ShellQuote::None, _) => return self.unquoted(c, behind),
        }
        behind
    }

    fn unquoted<'a>(&mut self, c: char, behind: &'a str) -> &'a str {
        match c {
            '\'' => self.open(ShellQuote::Single),
            '"' => self.open(ShellQuote::Double),
            '#' if !self.frame.in_word => self.is_comment = true,
            '(' => self.enter(Close::Parenthesis),
            ')' if self.frame.close == Close::Parenthesis => self.leave(),
            '<' if behind.starts_with("<<") => {
                self.frame.has_here_string = true;
                return &behind[2..];
            }
            '<' if behind.starts_with('<') => return self.announce(&behind[1..]),
            '\n' => {
                self.is_comment = false;
                self.end_command();
                self.next_document();
            }
            ';' | '|' | '&' => self.end_command(),
            c if c.is_whitespace() => self.frame.in_word = false,
            c => self.word(c),
        }
        behind
    }

    fn word(&mut self, c: char) {
        self.begin_word();
        if let Some(word) = self.frame.words.last_mut() {
            word.push(c);
        }
    }

    fn begin_word(&mut self) {
        if !self.frame.in_word {
            self.frame.in_word = true;
            self.frame.words.push(String::new());
        }
    }

    fn open(&mut self, quote: ShellQuote) {
        self.begin_word();
        self.frame.quote = quote;
    }

    fn end_command(&mut self) {
        self.frame.words.clear();
        self.frame.in_word = false;
        self.frame.has_here_string = false;
    }

    fn enter(&mut self, close: Close) {
        self.begin_word();
        let inner = ShellFrame {
            close,
            ..ShellFrame::default()
        };
        self.outer.push(std::mem::replace(&mut self.frame, inner));
    }

    fn leave(&mut self) {
        if let Some(outer) = self.outer.pop() {
            self.frame = outer;
        }
    }

    /// Starts a here-document after `<<`.
    fn announce<'a>(&mut self, behind: &'a str) -> &'a str {
        let (strips_tabs, rest) = match behind.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, behind),
        };
        let rest = rest.trim_start_matches([' ', '\t']);
        let is_end = |c: char| c.is_whitespace() || ";|&<>()".contains(c);
        let (word, rest) = rest.split_at(rest.find(is_end).unwrap_or(rest.len()));
        self.announced.push(HereDocument {
            delimiter: word.replace(['\'', '"', '\\'], ""),
            strips_tabs,
            is_quoted: word.contains(['\'', '"', '\\']),
            is_for_shell: self.frame.words.iter().any(|word| is_shell(word)),
        });
        rest
    }

    fn next_document(&mut self) {
        let next = (!self.announced.is_empty()).then(|| self.announced.remove(0));
        self.document = next.map(|document| (document, String::new()));
    }

    /// Whether double quotes at this position are plain text.
    fn quotes_are_text(&self) -> bool {
        self.document.is_some() || self.frame.quote == ShellQuote::Single
    }

    /// A reference to a variable, quoted for this position.
    fn reference(&mut self, name: &str) -> Result<String, AssignmentError> {
        if let Some((document, line)) = &mut self.document {
            if document.is_quoted {
                let reason = "puts a value into a quoted here-document, which its shell does not expand: \
                              remove the quotes around the delimiter";
                return Err(AssignmentError::Template(reason.to_owned()));
            }
            line.push_str(name);
            return Ok(format!("${{{name}}}"));
        }
        if self.is_comment {
            return Ok(String::new());
        }
        self.begin_word();
        Ok(match self.frame.quote {
            ShellQuote::None => format!("\"${{{name}}}\""),
            ShellQuote::Double => format!("${{{name}}}"),
            ShellQuote::Single => format!("'\"${{{name}}}\"'"),
        })
    }

    /// Refuses a prompt that becomes part of another shell's command, which would execute it.
    fn refuse_other_shells(&self) -> Result<(), AssignmentError> {
        let frames = self.outer.iter().chain([&self.frame]);
        let runs_text = |frame: &ShellFrame| {
            let before = &frame.words[..frame.words.len() - usize::from(frame.in_word)];
            let is_option = |word: &String| word.starts_with('-') && word.contains('c');
            let mut options = before.iter().rev().take_while(|word| word.starts_with('-'));
            let reads_text = options.any(is_option) || frame.has_here_string;
            before.iter().any(|word| word == "eval")
                || (reads_text && before.iter().any(|word| is_shell(word)))
        };
        let is_for_shell = |(document, _): &(HereDocument, String)| document.is_for_shell;
        if frames.into_iter().any(runs_text) || self.document.as_ref().is_some_and(is_for_shell) {
            let reason = "passes the prompt to another shell, which would execute it: call the \
                          program directly";
            return Err(AssignmentError::Template(reason.to_owned()));
        }
        Ok(())
    }
}

fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    SHELLS.contains(&name)
}
