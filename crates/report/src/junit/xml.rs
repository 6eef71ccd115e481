//! Writes the elements of JUnit XML as they come, so that memory does not grow with the number of trials.
//!
//! Its main type is [`Xml`]. It escapes every text, also what is invisible or illegal in XML.

use std::io::{self, Write};

use proctor_core::printable::printable;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};

/// A document in the making.
pub(super) struct Xml<'a>(Writer<&'a mut dyn Write>);

/// An element's attributes, in order.
pub(super) type Attributes<'a> = [(&'a str, String)];

impl<'a> Xml<'a> {
    pub(super) fn new(out: &'a mut dyn Write) -> io::Result<Self> {
        let mut writer = Writer::new_with_indent(out, b' ', 4);
        writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
        Ok(Self(writer))
    }

    /// Opens an element.
    pub(super) fn open(&mut self, name: &str, attributes: &Attributes<'_>) -> io::Result<()> {
        self.0.write_event(Event::Start(tag(name, attributes)))
    }

    /// Closes the element that was opened last.
    pub(super) fn close(&mut self, name: &str) -> io::Result<()> {
        self.0.write_event(Event::End(BytesEnd::new(name)))
    }

    /// Writes an element without content.
    pub(super) fn empty(&mut self, name: &str, attributes: &Attributes<'_>) -> io::Result<()> {
        self.0.write_event(Event::Empty(tag(name, attributes)))
    }

    /// Writes an element with text.
    pub(super) fn text(&mut self, name: &str, lines: &[String]) -> io::Result<()> {
        self.open(name, &[])?;
        let lines: String = lines.iter().map(|line| legal(line) + "\n").collect();
        self.0.write_event(Event::Text(BytesText::new(&lines)))?;
        self.close(name)
    }

    /// Ends the document.
    pub(super) fn end(mut self) -> io::Result<()> {
        self.0.get_mut().write_all(b"\n")
    }
}

fn tag<'a>(name: &'a str, attributes: &Attributes<'_>) -> BytesStart<'a> {
    let mut tag = BytesStart::new(name);
    for (name, value) in attributes {
        tag.push_attribute((*name, legal(value).as_str()));
    }
    tag
}

/// Escapes characters that are invisible or illegal in XML.
pub(super) fn legal(text: &str) -> String {
    let shown = printable(text);
    if !shown.contains(is_illegal) {
        return shown.into_owned();
    }
    let mut out = String::with_capacity(shown.len());
    for c in shown.chars() {
        if is_illegal(c) {
            out.push_str(&format!("\\u{{{:x}}}", u32::from(c)));
        } else {
            out.push(c);
        }
    }
    out
}

/// Whether a printable character is illegal in XML.
fn is_illegal(c: char) -> bool {
    matches!(c, '\u{fffe}' | '\u{ffff}')
}
