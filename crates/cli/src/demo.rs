//! The demo server of the quickstart: a small library to search and borrow books.
//!
//! It is part of the executable, so that the quickstart needs only a build. It speaks MCP on stdin and
//! stdout, in the handshake era, and ships a few evals. With `--loans FILE` it keeps its loans in a file, one line
//! `TITLE: MEMBER` each, so that a verify step can look at them.

use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, Write};
use std::path::PathBuf;

use mcp_evals::{CAPABILITY, EXTENSION, Eval, Expected, Input, METHOD, Message, PageError, Suite};
use proctor_record::json;
use serde_json::{Map, Value, json};

/// The hidden command that runs the server.
pub(crate) const COMMAND: &str = "__demo";

struct Book {
    id: u64,
    title: &'static str,
    author: &'static str,
    lent_to: Option<String>,
}

/// Serves until the end of the input, with the words of the command line behind [`COMMAND`].
pub(crate) fn serve(
    words: &[OsString],
    input: impl BufRead,
    mut output: impl Write,
) -> io::Result<()> {
    let mut library = match words {
        [] => Library::new(),
        [flag, file] if flag == "--loans" => Library::with_loans(file.into())?,
        _ => {
            return Err(io::Error::other(
                "the demo server takes `--loans FILE` only",
            ));
        }
    };
    for line in input.lines() {
        let Ok(message) = json::from_str::<Value>(&line?) else {
            continue;
        };
        let Some(id) = message.get("id") else {
            continue;
        };
        let method = message.get("method").and_then(Value::as_str).unwrap_or("");
        let params = message.get("params").cloned().unwrap_or_default();
        let answer = match library.answer(method, &params) {
            Ok(result) => json!({"jsonrpc": "2.0", "id": id, "result": result}),
            Err((code, text)) => {
                json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": text}})
            }
        };
        writeln!(output, "{answer}")?;
        output.flush()?;
    }
    Ok(())
}

struct Library {
    books: Vec<Book>,
    /// Where the loans are kept; without it they end with the process.
    loans: Option<PathBuf>,
}

impl Library {
    fn new() -> Self {
        let book = |id, title, author, lent_to: Option<&str>| Book {
            id,
            title,
            author,
            lent_to: lent_to.map(str::to_owned),
        };
        Self {
            books: vec![
                book(1, "The Dispossessed", "Ursula K. Le Guin", None),
                book(2, "A Wizard of Earthsea", "Ursula K. Le Guin", Some("ada")),
                book(3, "Solaris", "Stanisław Lem", None),
                book(4, "The Left Hand of Darkness", "Ursula K. Le Guin", None),
                book(5, "Roadside Picnic", "Arkady and Boris Strugatsky", None),
            ],
            loans: None,
        }
    }

    /// A library with the loans of a file, which is written if it is not there.
    fn with_loans(file: PathBuf) -> io::Result<Self> {
        let mut library = Self::new();
        match fs::read_to_string(&file) {
            Ok(text) => {
                let member_of = |title: &str| {
                    let mut loans = text.lines().filter_map(|line| line.split_once(": "));
                    loans.find(|(lent, _)| *lent == title)
                };
                for book in &mut library.books {
                    book.lent_to = member_of(book.title).map(|(_, member)| member.to_owned());
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        library.loans = Some(file);
        library.save()?;
        Ok(library)
    }

    fn save(&self) -> io::Result<()> {
        let Some(file) = &self.loans else {
            return Ok(());
        };
        let line = |book: &Book| {
            let member = book.lent_to.as_deref()?;
            Some(format!("{}: {}\n", book.title, member.replace('\n', " ")))
        };
        fs::write(file, self.books.iter().filter_map(line).collect::<String>())
    }

    fn answer(&mut self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {
                    "tools": {}, "resources": {}, "prompts": {},
                    CAPABILITY: {},
                    "experimental": {CAPABILITY: {}},
                    "extensions": {EXTENSION: {}},
                },
                "serverInfo": {"name": "demo-library", "version": env!("CARGO_PKG_VERSION")},
                "instructions": "Look a book up before you borrow it.",
            })),
            "ping" => Ok(json!({})),
            METHOD => {
                let failed = |error: PageError| (error.code(), error.to_string());
                let params = (!params.is_null()).then_some(params);
                let page = evals().with_page_size(3).answer(params).map_err(failed)?;
                Ok(page.to_value())
            }
            "tools/list" => Ok(json!({"tools": tools()})),
            "tools/call" => self.call(params),
            "resources/list" => Ok(json!({"resources": [{
                "uri": "library://rules", "name": "rules", "mimeType": "text/plain",
            }]})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "resources/read" => match params.get("uri").and_then(Value::as_str) {
                Some(uri @ "library://rules") => Ok(json!({"contents": [{
                    "uri": uri,
                    "mimeType": "text/plain",
                    "text": "A member may borrow a book for 14 days. What is lent can't be borrowed.",
                }]})),
                other => Err((-32002, format!("resource {other:?} not found"))),
            },
            "prompts/list" => Ok(json!({"prompts": [{
                "name": "recommend",
                "description": "Asks for a book to read.",
                "arguments": [{"name": "taste", "required": true}],
            }]})),
            "prompts/get" => {
                let taste = params
                    .pointer("/arguments/taste")
                    .and_then(Value::as_str)
                    .unwrap_or("anything");
                let text =
                    format!("Recommend a book of the library to somebody who likes {taste}.");
                Ok(json!({"messages": [
                    {"role": "user", "content": {"type": "text", "text": text}},
                ]}))
            }
            other => Err((-32601, format!("method `{other}` not found"))),
        }
    }

    fn call(&mut self, params: &Value) -> Result<Value, (i64, String)> {
        let name = params.get("name").and_then(Value::as_str).unwrap_or("");
        let none = Map::new();
        let arguments = params
            .get("arguments")
            .and_then(Value::as_object)
            .unwrap_or(&none);
        let told = match name {
            "search_books" => Ok(self.search(arguments)),
            "borrow_book" => self.borrow_book(arguments),
            "return_book" => self.return_book(arguments),
            other => return Err((-32602, format!("unknown tool `{other}`"))),
        };
        let told = told.and_then(|value| match self.save() {
            Ok(()) => Ok(value),
            Err(error) => Err(format!("the loans can't be written: {error}")),
        });
        Ok(match told {
            Ok(value) => json!({
                "content": [{"type": "text", "text": value.to_string()}],
                "structuredContent": value,
            }),
            Err(reason) => json!({
                "content": [{"type": "text", "text": reason}],
                "isError": true,
            }),
        })
    }

    fn search(&self, arguments: &Map<String, Value>) -> Value {
        let asked = |key: &str| {
            let text = arguments.get(key).and_then(Value::as_str).unwrap_or("");
            text.to_lowercase()
        };
        let (author, title) = (asked("author"), asked("title"));
        let fits = |book: &&Book| {
            book.author.to_lowercase().contains(&author)
                && book.title.to_lowercase().contains(&title)
        };
        let books: Vec<Value> = self.books.iter().filter(fits).map(Book::shown).collect();
        json!({"books": books})
    }

    fn borrow_book(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let Some(member) = arguments.get("member").and_then(Value::as_str) else {
            return Err("`member` is missing".to_owned());
        };
        let book = self.book(arguments)?;
        if book.lent_to.is_some() {
            return Err(format!("`{}` is lent already", book.title));
        }
        book.lent_to = Some(member.to_owned());
        Ok(json!({"borrowed": book.title, "member": member, "days": 14}))
    }

    fn return_book(&mut self, arguments: &Map<String, Value>) -> Result<Value, String> {
        let book = self.book(arguments)?;
        match book.lent_to.take() {
            Some(member) => Ok(json!({"returned": book.title, "member": member})),
            None => Err(format!("`{}` is not lent", book.title)),
        }
    }

    fn book(&mut self, arguments: &Map<String, Value>) -> Result<&mut Book, String> {
        let Some(id) = arguments.get("id").and_then(Value::as_u64) else {
            return Err("`id` is missing or not a number".to_owned());
        };
        let found = self.books.iter_mut().find(|book| book.id == id);
        found.ok_or_else(|| format!("book {id} not found"))
    }
}

impl Book {
    fn shown(&self) -> Value {
        json!({
            "id": self.id,
            "title": self.title,
            "author": self.author,
            "available": self.lent_to.is_none(),
        })
    }
}

/// The evals of the library: two for the read-only tool, and some that need a model.
fn evals() -> Suite {
    let evals = [
        execution("finds-solaris", &json!({"title": "solaris"})),
        execution("finds-nothing", &json!({"author": "unknown"})),
        Eval::new(
            "borrows-by-number",
            "Borrows a book by its number",
            Input::invocation([Message::user("I am ada. Lend me book number 3.")]),
            Expected::call("borrow_book", json!({"id": 3, "member": "ada"})),
        ),
        Eval::new(
            "looks-before-it-borrows",
            "Looks a book up whose number it does not know",
            Input::invocation([Message::user("I am ada. Lend me Roadside Picnic.")]),
            Expected::rubric("It looks for the book before it borrows one."),
        ),
        Eval::new(
            "brings-a-book-back",
            "Brings a book back and takes another",
            Input::scenario_within(
                [Message::user(
                    "I am ada. Take A Wizard of Earthsea back, and lend me Solaris.",
                )],
                8,
            ),
            Expected::rubric("`A Wizard of Earthsea` was returned, and `Solaris` lent to ada."),
        ),
    ];
    Suite::new(evals.into()).unwrap_or_default()
}

/// An eval that expects the search result of a new library.
fn execution(id: &str, arguments: &Value) -> Eval {
    let found = Library::new().search(arguments.as_object().unwrap_or(&Map::new()));
    Eval::new(
        id,
        "Finds the matching books and no others",
        Input::execution("search_books", arguments.clone()),
        Expected::content(json!([{"type": "text", "text": found.to_string()}])),
    )
}

fn tools() -> Value {
    let text = json!({"type": "string"});
    json!([
        {
            "name": "search_books",
            "description": "Finds books by part of the author's name or title.",
            "inputSchema": {"type": "object", "properties": {"author": text, "title": text}},
            "annotations": {"readOnlyHint": true},
        },
        {
            "name": "borrow_book",
            "description": "Lends a book to a member.",
            "inputSchema": {
                "type": "object",
                "properties": {"id": {"type": "integer"}, "member": text},
                "required": ["id", "member"],
            },
        },
        {
            "name": "return_book",
            "description": "Takes a book back.",
            "inputSchema": {
                "type": "object",
                "properties": {"id": {"type": "integer"}},
                "required": ["id"],
            },
        },
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_evals_are_valid_and_come_in_pages() {
        let mut library = Library::new();
        let mut ids = Vec::new();
        let mut params = json!({});
        loop {
            let page = library.answer(METHOD, &params).unwrap();
            let listed = page["evals"].as_array().unwrap().iter();
            ids.extend(listed.map(|eval| eval["id"].as_str().unwrap().to_owned()));
            match page.get("nextCursor") {
                Some(cursor) => params = json!({"cursor": cursor}),
                None => break,
            }
        }
        assert_eq!(ids.len(), 5, "{ids:?}");
        let page = library
            .answer(METHOD, &json!({"level": "scenario"}))
            .unwrap();
        assert_eq!(page["evals"][0]["id"], "brings-a-book-back");
    }

    #[test]
    fn a_book_is_lent_once() {
        let call = |id: u64| {
            let arguments = json!({"id": id, "member": "bob"});
            let params = json!({"name": "borrow_book", "arguments": arguments});
            json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
        };
        let input = format!("{}\n{}\nnonsense\n", call(1), call(1));
        let mut output = Vec::new();
        serve(&[], input.as_bytes(), &mut output).unwrap();
        let lines: Vec<Value> = String::from_utf8(output)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].pointer("/result/isError").is_none());
        assert_eq!(lines[1].pointer("/result/isError"), Some(&json!(true)));
    }

    #[test]
    fn loans_outlive_the_process_in_their_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("loans.txt");
        let call = |tool: &str, id: u64| {
            let params = json!({"name": tool, "arguments": {"id": id, "member": "grace"}});
            let request =
                json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
            let words = ["--loans".into(), file.clone().into()];
            let mut output = Vec::new();
            serve(&words, request.to_string().as_bytes(), &mut output).unwrap();
            let response: Value = serde_json::from_slice(&output).unwrap();
            response.pointer("/result/isError").is_none()
        };
        assert!(call("borrow_book", 3));
        let lent = "A Wizard of Earthsea: ada\nSolaris: grace\n";
        assert_eq!(fs::read_to_string(&file).unwrap(), lent);
        assert!(!call("borrow_book", 3), "it is lent already");
        assert!(!call("borrow_book", 2), "it is lent already");
        assert!(call("return_book", 2));
        assert_eq!(fs::read_to_string(&file).unwrap(), "Solaris: grace\n");
        assert!(call("borrow_book", 2), "it is back");
    }

    #[test]
    fn unknown_words_are_an_error() {
        for words in [vec!["--loan", "f"], vec!["--loans"], vec!["f"]] {
            let words: Vec<OsString> = words.into_iter().map(Into::into).collect();
            assert!(serve(&words, &b""[..], Vec::new()).is_err(), "{words:?}");
        }
    }
}
