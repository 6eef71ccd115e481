//! Reads CSV files (RFC 4180): commas, a header, cells in double quotes where needed.

use proctor_record::problem::{Code, Problem, SourceText, Span};

use super::{MAX_VALUES, too_many_values};
use crate::decode::Context;
use crate::document::{MapEntry, Node, NodeValue};

/// A cell and its place.
struct Cell {
    text: String,
    span: Span,
}

/// The rows of a CSV file, as maps from the header's names to strings.
pub(super) fn read(source: &SourceText, cx: &Context<'_>) -> Option<Vec<Node>> {
    let mut reader = Reader::new(source.text());
    let header = match reader.record() {
        Some(Ok(header)) => header,
        Some(Err(problem)) => {
            report(problem, cx);
            return None;
        }
        None => return Some(Vec::new()),
    };
    check_header(&header, cx)?;
    let mut rows = Vec::new();
    let mut values = 0;
    while let Some(record) = reader.record() {
        let cells = match record {
            Ok(cells) => cells,
            Err(problem) => {
                report(problem, cx);
                // After a wrong quote, the rest of the file can't be told apart.
                return None;
            }
        };
        let span = row_span(&cells);
        values += cells.len();
        if values > MAX_VALUES {
            too_many_values(span, cx);
            return None;
        }
        if cells.len() != header.len() {
            let (found, wanted) = (cells.len(), header.len());
            let message = format!("the row has {found} cells, and the header has {wanted}");
            cx.report(span, Problem::error(Code::Value, message));
            continue;
        }
        rows.push(row(&header, cells, span));
    }
    Some(rows)
}

fn row(header: &[Cell], cells: Vec<Cell>, span: Span) -> Node {
    let entries = header.iter().zip(cells).map(|(name, cell)| MapEntry {
        key: name.text.clone(),
        key_span: cell.span,
        value: Node {
            span: cell.span,
            data: NodeValue::String(cell.text),
        },
    });
    Node {
        span,
        data: NodeValue::Mapping(entries.collect()),
    }
}

fn row_span(cells: &[Cell]) -> Span {
    let first = cells.first().map(|cell| cell.span).unwrap_or_default();
    Span { chars: 1, ..first }
}

fn check_header(header: &[Cell], cx: &Context<'_>) -> Option<()> {
    let mut is_good = Some(());
    for (index, cell) in header.iter().enumerate() {
        let problem = if cell.text.trim().is_empty() {
            "a column of the header has no name".to_owned()
        } else if header[..index].iter().any(|other| other.text == cell.text) {
            format!("two columns have the name `{}`", cell.text)
        } else {
            continue;
        };
        cx.report(cell.span, Problem::error(Code::Value, problem));
        is_good = None;
    }
    is_good
}

fn report((span, message): (Span, &'static str), cx: &Context<'_>) {
    cx.report(span, Problem::error(Code::Syntax, message));
}

/// Reads one record after another.
struct Reader<'a> {
    rest: std::iter::Peekable<std::str::Chars<'a>>,
    line: u32,
    column: u32,
}

impl<'a> Reader<'a> {
    fn new(text: &'a str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        Self {
            rest: text.chars().peekable(),
            line: 1,
            column: 1,
        }
    }

    fn take(&mut self) -> Option<char> {
        let c = self.rest.next()?;
        if c == '\n' {
            self.line += 1;
            self.column = 1;
        } else {
            self.column += 1;
        }
        Some(c)
    }

    fn span(&self) -> Span {
        Span {
            line: self.line,
            column: self.column,
            chars: 1,
        }
    }

    /// The next record that is not an empty line.
    fn record(&mut self) -> Option<Result<Vec<Cell>, (Span, &'static str)>> {
        while let Some('\n' | '\r') = self.rest.peek() {
            self.take();
        }
        self.rest.peek()?;
        let mut cells = Vec::new();
        loop {
            match self.cell() {
                Ok(cell) => cells.push(cell),
                Err(problem) => return Some(Err(problem)),
            }
            match self.take() {
                Some(',') => {}
                Some('\r') if self.rest.peek() == Some(&'\n') => {
                    self.take();
                    return Some(Ok(cells));
                }
                _ => return Some(Ok(cells)),
            }
        }
    }

    /// The next cell, up to its separator.
    fn cell(&mut self) -> Result<Cell, (Span, &'static str)> {
        let mut span = self.span();
        let mut text = String::new();
        if self.rest.peek() == Some(&'"') {
            self.take();
            loop {
                match self.take() {
                    Some('"') if self.rest.peek() == Some(&'"') => {
                        self.take();
                        text.push('"');
                    }
                    Some('"') => break,
                    Some(c) => text.push(c),
                    None => return Err((span, "this quote has no end")),
                }
            }
            if !matches!(self.rest.peek(), None | Some(',' | '\n' | '\r')) {
                return Err((
                    self.span(),
                    "expected a comma or the end of the line after the quote",
                ));
            }
        } else {
            while let Some(c) = self.rest.peek() {
                if matches!(c, ',' | '\n' | '\r') {
                    break;
                }
                if *c == '"' {
                    return Err((
                        self.span(),
                        "a quote inside a cell: put the whole cell in quotes, and double this one",
                    ));
                }
                text.push(*c);
                self.take();
            }
        }
        if span.line == self.line {
            span.chars = (self.column - span.column).max(1);
        }
        Ok(Cell { text, span })
    }
}
