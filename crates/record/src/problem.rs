//! Problems in a user's files, ready to be shown.
//!
//! Its main type is [`Problem`]. It is self-contained, because the text that it refers to may be
//! dropped before the problem is shown. Independent of the file formats.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use serde::Serialize;

/// The maximum number of problems that are kept per load. The others are only counted.
const KEPT: usize = 500;

/// The maximum number of characters that are kept on each side of the place.
const EXCERPT_CHARS: usize = 100;

/// The text of a file. Cheap to clone.
#[derive(Debug, Clone)]
pub struct SourceText(Arc<SourceInner>);

#[derive(Debug)]
struct SourceInner {
    path: PathBuf,
    text: String,
    /// The start of each line, computed on first use.
    line_starts: OnceLock<Vec<usize>>,
}

impl SourceText {
    /// A text and the path it was read from, as the user would write it.
    pub fn new(path: impl Into<PathBuf>, text: String) -> Self {
        Self(Arc::new(SourceInner {
            path: path.into(),
            text,
            line_starts: OnceLock::new(),
        }))
    }

    /// The path, as the user would write it.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The folder that relative paths in this text start from.
    pub fn folder(&self) -> &Path {
        self.0.path.parent().unwrap_or(Path::new(""))
    }

    pub fn text(&self) -> &str {
        &self.0.text
    }

    fn line(&self, line: u32) -> &str {
        let starts = self.0.line_starts.get_or_init(|| {
            let breaks = self.text().match_indices('\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(breaks).collect()
        });
        let Some(&start) = starts.get((line as usize).saturating_sub(1)) else {
            return "";
        };
        let rest = &self.text()[start..];
        let line = rest.split('\n').next().unwrap_or(rest);
        line.strip_suffix('\r').unwrap_or(line)
    }
}

/// A place in a file. Lines and columns count from one, columns in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    pub line: u32,
    /// The column of the first character.
    pub column: u32,
    /// The number of characters, at least one.
    pub chars: u32,
}

/// A value and its place in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WithSpan<T> {
    pub value: T,
    pub span: Span,
}

impl<T> std::ops::Deref for WithSpan<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.value
    }
}

/// Whether a problem makes the load fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The suite can't be used.
    Error,
    /// The suite can be used, but may not do what its author wants.
    Warning,
}

/// The type of a problem: stable words that scripts can rely on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Code {
    /// A file can't be read.
    File,
    /// The text is not YAML.
    Syntax,
    /// A file exceeds a size, depth or count.
    Limit,
    /// A mapping has the same key twice.
    DuplicateKey,
    /// The file is of another kind than asked for.
    Kind,
    /// Something required is absent.
    Missing,
    /// A key that the format does not have.
    UnknownKey,
    /// A value of another type than asked for.
    Type,
    /// A value of the right type that is invalid.
    Value,
    /// A name that nothing declares.
    Reference,
    /// Two parts of the suite contradict each other.
    Conflict,
    /// A path leads out of the folder it must stay in.
    Escape,
    /// An environment variable that is not set.
    UnsetVariable,
    /// A file that was matched but is not used.
    Skipped,
    /// A check that can't fail, and so proves nothing.
    Vacuous,
    /// A task has a requirement that the suite does not meet. Only that task can't run.
    UnmetRequirement,
    /// A value that looks like a secret.
    Secret,
    /// A call of a tool that may destroy something.
    Destructive,
}

/// The place of a problem, with the text that stands there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Excerpt {
    /// The line, from one.
    pub line: u32,
    /// The column, from one, in characters.
    pub column: u32,
    /// The column after the last character.
    pub end_column: u32,
    /// The source line; of a very long one, the part around the place.
    pub text: String,
    /// The number of characters of the line that were omitted before `text`.
    #[serde(skip)]
    pub skipped: u32,
}

/// One thing that is wrong.
#[derive(Debug, Clone, Serialize)]
pub struct Problem {
    /// Whether it stops the load.
    pub severity: Severity,
    pub code: Code,
    /// The message: lower case, no full stop.
    pub message: String,
    /// The file, if the problem belongs to one.
    pub path: Option<PathBuf>,
    /// The place in the file.
    pub place: Option<Excerpt>,
    /// What the user can do.
    pub hint: Option<String>,
    /// The data for the excerpt. It is made only for problems that are kept: in a file full of
    /// mistakes, making all of them would take longer than parsing.
    #[serde(skip)]
    origin: Option<ProblemOrigin>,
}

#[derive(Debug, Clone)]
struct ProblemOrigin {
    source: SourceText,
    span: Span,
}

impl Problem {
    /// A problem that makes the load fail.
    pub fn error(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Error, code, message.into())
    }

    /// A problem that does not make the load fail.
    pub fn warning(code: Code, message: impl Into<String>) -> Self {
        Self::new(Severity::Warning, code, message.into())
    }

    fn new(severity: Severity, code: Code, message: String) -> Self {
        Self {
            severity,
            code,
            message,
            path: None,
            place: None,
            hint: None,
            origin: None,
        }
    }

    #[must_use]
    pub fn in_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// Adds the file and the place in it.
    #[must_use]
    pub fn at(mut self, source: &SourceText, span: Span) -> Self {
        self.origin = Some(ProblemOrigin {
            source: source.clone(),
            span,
        });
        self
    }

    /// Adds what may help.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// Adds a hint, if there is one.
    #[must_use]
    pub fn maybe_hint(mut self, hint: Option<String>) -> Self {
        self.hint = hint;
        self
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.severity {
            Severity::Error => "error: ",
            Severity::Warning => "warning: ",
        })?;
        f.write_str(&self.message)
    }
}

/// All problems found so far, each once, in the order in which they were found.
#[derive(Debug, Default)]
pub struct Problems {
    kept: Vec<Problem>,
    /// The keys of the kept problems, so that a task shared by two suites is reported once.
    seen: HashSet<(Code, String, Option<PathBuf>, Option<Span>)>,
    errors: usize,
    warnings: usize,
}

impl Problems {
    /// Adds a problem, unless it is a duplicate.
    pub fn push(&mut self, mut problem: Problem) {
        let full = self.is_full();
        if !full {
            let span = problem.origin.as_ref().map(|origin| origin.span);
            if let Some(ProblemOrigin { source, span }) = problem.origin.take() {
                problem.place = Some(excerpt(&source, span));
                problem.path = Some(source.path().to_path_buf());
            }
            let key = (
                problem.code,
                problem.message.clone(),
                problem.path.clone(),
                span,
            );
            if !self.seen.insert(key) {
                return;
            }
        }
        match problem.severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        if !full {
            self.kept.push(problem);
        }
    }

    /// Adds all problems of another list.
    pub fn append(&mut self, other: Self) {
        let dropped = other.dropped();
        for problem in other.kept {
            self.push(problem);
        }
        self.errors += dropped;
    }

    /// Whether a further problem would only be counted.
    pub fn is_full(&self) -> bool {
        self.kept.len() >= KEPT
    }

    /// Whether any problem makes the load fail.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// The number of errors, including those that were not kept.
    pub fn errors(&self) -> usize {
        self.errors
    }

    /// The number of errors that affect the whole suite, not only one task.
    pub fn fatal(&self) -> usize {
        let of_task = |problem: &&Problem| {
            problem.severity == Severity::Error && problem.code == Code::UnmetRequirement
        };
        self.errors - self.kept.iter().filter(of_task).count()
    }

    /// The number of warnings, including those that were not kept.
    pub fn warnings(&self) -> usize {
        self.warnings
    }

    /// The number of problems that were counted but not kept.
    pub fn dropped(&self) -> usize {
        self.errors + self.warnings - self.kept.len()
    }

    /// The problems, in the order in which they were found.
    pub fn iter(&self) -> std::slice::Iter<'_, Problem> {
        self.kept.iter()
    }

    /// Puts them in the order of the text, the files in the order in which they first appear.
    pub fn sort(&mut self) {
        let mut files: HashMap<Option<PathBuf>, usize> = HashMap::new();
        for problem in &self.kept {
            let next = files.len();
            files.entry(problem.path.clone()).or_insert(next);
        }
        self.kept.sort_by_key(|problem| {
            let place = problem.place.as_ref().map(|p| (p.line, p.column));
            (files.get(&problem.path).copied(), place)
        });
    }

    /// Turns all warnings into errors.
    pub fn promote_all(&mut self) {
        for problem in &mut self.kept {
            problem.severity = Severity::Error;
        }
        self.errors += std::mem::take(&mut self.warnings);
    }

    /// Turns the errors of one type into warnings.
    pub fn demote(&mut self, code: Code) {
        for problem in &mut self.kept {
            if problem.code == code && problem.severity == Severity::Error {
                problem.severity = Severity::Warning;
                self.errors -= 1;
                self.warnings += 1;
            }
        }
    }

    /// Turns the warnings of one type into errors.
    pub fn promote(&mut self, code: Code) {
        for problem in &mut self.kept {
            if problem.code == code && problem.severity == Severity::Warning {
                problem.severity = Severity::Error;
                self.errors += 1;
                self.warnings -= 1;
            }
        }
    }
}

impl<'a> IntoIterator for &'a Problems {
    type Item = &'a Problem;
    type IntoIter = std::slice::Iter<'a, Problem>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

fn excerpt(source: &SourceText, span: Span) -> Excerpt {
    let line = source.line(span.line);
    let at = (span.column as usize).saturating_sub(1);
    let skipped = at.saturating_sub(EXCERPT_CHARS);
    // A line that only just exceeds the limit is not worth cutting at its start.
    let skipped = if skipped < 20 { 0 } else { skipped };
    let shown: String = line
        .chars()
        .skip(skipped)
        .take(at - skipped + EXCERPT_CHARS)
        .collect();
    let available = (shown.chars().count() + skipped).saturating_sub(at).max(1);
    let chars = (span.chars as usize).clamp(1, available);
    Excerpt {
        line: span.line,
        column: span.column,
        end_column: span.column + u32::try_from(chars).unwrap_or(1),
        text: shown,
        skipped: u32::try_from(skipped).unwrap_or(0),
    }
}

#[cfg(test)]
mod tests;
