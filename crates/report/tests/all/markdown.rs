//! The report that GitHub renders, read by two Markdown parsers.

use std::sync::LazyLock;

use comrak::nodes::NodeValue;
use proctor_core::causes;
use proctor_core::printable::{is_hidden, printable};
use proctor_report::markdown::{COMMENT, JOB_SUMMARY, render};
use pulldown_cmark::{Event, Options, Parser};

use crate::outside;
use crate::sample::Sample;

/// Texts that mean something to a Markdown or HTML parser, to GitHub, or to a terminal.
const HOSTILE: [&str; 25] = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "</details></td></table><h1>up",
    "<!-- proctor:suite -->",
    "[a](javascript:alert(1))",
    "![i](https://evil.example/i.png)",
    "https://evil.example <https://e.example>",
    "www.evil.example a@evil.example",
    "@octocat #1 octo/repo#2 :tada:",
    "a | b || \\| \\\\| c",
    "|",
    "\\",
    "`",
    "`` ` ``` a",
    "```\nrust",
    "~~~\nx",
    "&lt;b&gt; &#60;i&#62; &amp;",
    "\u{1b}]8;;https://e.io\u{7}a\u{1b}]8;;\u{7}",
    "\u{202e}txt.exe\u{200b}\u{2066}",
    "one\n\n# two\n\n- three\n---\n| x | y |\n|---|---|\n| 1 | 2 |",
    "[r]: https://evil.example\n[^1]: note [r] [^1]",
    "$x$ $`x`$ ~~x~~ **x** _x_ ~x~ ^x^ ==x==",
    "> [!WARNING]\n> quoted",
    "- [ ] task\n- [x] done",
    "\t    indented\r\n\u{0}\u{feff}",
];

fn shown(sample: &Sample) -> String {
    render(&sample.report(), JOB_SUMMARY)
}

/// Options with every extension that GitHub has, and more.
fn options() -> comrak::Options<'static> {
    let mut options = comrak::Options::default();
    let extension = &mut options.extension;
    extension.strikethrough = true;
    extension.table = true;
    extension.autolink = true;
    extension.tasklist = true;
    extension.superscript = true;
    extension.footnotes = true;
    extension.math_dollars = true;
    extension.math_code = true;
    extension.alerts = true;
    extension.underline = true;
    extension.subscript = true;
    options
}

/// What comrak makes of it, without its texts and code.
fn skeleton(markdown: &str) -> Vec<String> {
    let arena = comrak::Arena::new();
    let root = comrak::parse_document(&arena, markdown, &options());
    let nodes = root.descendants().filter_map(|node| {
        let ast = node.data.borrow();
        let depth = node.ancestors().count();
        let shown = match &ast.value {
            NodeValue::Text(_) | NodeValue::Code(_) => return None,
            NodeValue::HtmlBlock(html) => format!("html {}", html.literal),
            NodeValue::HtmlInline(html) => format!("html {html}"),
            NodeValue::Table(table) => format!("table {}", table.num_columns),
            value => format!("{value:?}"),
        };
        Some(format!("{depth} {shown}"))
    });
    nodes.collect()
}

/// The texts of all headings, paragraphs and cells.
fn texts(markdown: &str) -> Vec<String> {
    let arena = comrak::Arena::new();
    let root = comrak::parse_document(&arena, markdown, &options());
    let mut all = Vec::new();
    for node in root.descendants() {
        let is_whole = matches!(
            node.data.borrow().value,
            NodeValue::Heading(_) | NodeValue::Paragraph | NodeValue::TableCell
        );
        if !is_whole {
            continue;
        }
        let parts = node
            .descendants()
            .filter_map(|part| match &part.data.borrow().value {
                NodeValue::Text(text) => Some(text.to_string()),
                NodeValue::Code(code) => Some(code.literal.clone()),
                _ => None,
            });
        all.push(parts.collect());
    }
    all
}

/// A text as the report shows it.
fn one_line(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    printable(lines.join(" ").trim_matches(' ')).into_owned()
}

/// The names of the plain run, which no other text contains.
fn plain(number: usize) -> String {
    format!("name{number}.")
}

/// The report with plain names.
static PLAIN: LazyLock<String> = LazyLock::new(|| shown(&outside::run(&plain)));

/// Fails if a report with these names has other elements or other texts than one with plain names.
fn check(name: &dyn Fn(usize) -> String) {
    let all = shown(&outside::run(name));
    assert_eq!(skeleton(&all), skeleton(&PLAIN), "{all}");
    assert_eq!(other_skeleton(&all), other_skeleton(&PLAIN), "{all}");
    let hidden = all.chars().find(|c| *c != '\n' && is_hidden(*c));
    assert_eq!(hidden, None, "{all}");
    let expected = texts(&PLAIN).into_iter().map(|mut text| {
        for number in (0..45).rev() {
            let shown = match number {
                outside::REASON => causes::one_line(&name(number)),
                number => name(number),
            };
            text = text.replace(&plain(number), &one_line(&shown));
        }
        text
    });
    assert_eq!(texts(&all), expected.collect::<Vec<String>>(), "{all}");
}

/// The same as [`skeleton`] with pulldown-cmark.
fn other_skeleton(markdown: &str) -> Vec<String> {
    let events = Parser::new_ext(markdown, Options::all());
    let events = events.filter_map(|event| match event {
        Event::Text(_) | Event::Code(_) => None,
        event => Some(format!("{event:?}")),
    });
    events.collect()
}

#[test]
fn the_report_is_a_page_of_tables() {
    insta::assert_snapshot!(shown(&Sample::new()));
}

#[test]
fn agents_are_compared() {
    insta::assert_snapshot!(shown(&Sample::of_two_agents()));
}

#[test]
fn no_text_from_outside_becomes_an_element_a_link_or_a_cell() {
    // The test would prove little if the texts were not there.
    for number in [
        0, 1, 3, 4, 6, 11, 14, 17, 20, 25, 36, 38, 39, 40, 41, 43, 44,
    ] {
        assert!(
            PLAIN.contains(&plain(number)),
            "{number} is missing:\n{}",
            *PLAIN
        );
    }
    for (index, hostile) in HOSTILE.iter().enumerate() {
        check(&|_| (*hostile).to_owned());
        check(&|number| HOSTILE[(number + index) % HOSTILE.len()].to_owned());
    }
}

/// Without code, the same texts do become elements, and both parsers see them.
#[test]
fn the_parsers_see_elements_where_there_are_some() {
    for bad in ["<b>x</b>", "[a](b)", "~~x~~", "# x", "![a](b)", "- [ ] x"] {
        assert!(skeleton(bad) != skeleton("plain"), "{bad}");
        assert!(other_skeleton(bad) != other_skeleton("plain"), "{bad}");
    }
    assert!(skeleton("www.evil.example") != skeleton("plain"));
    assert_eq!(texts("| a |\n|---|\n| `x\\|y` |"), ["a", "x|y"]);
    assert_eq!(texts("| a |\n|---|\n| `x|y` |"), ["a", "`x"]);
}

#[test]
fn a_report_fits_its_reader_and_says_what_is_missing() {
    let sample = Sample::with_more(1000);
    let whole = shown(&sample);
    assert!(!whole.contains("is cut"), "{whole}");
    let text = render(&sample.report(), COMMENT);
    assert!(text.len() <= COMMENT, "{} bytes", text.len());
    assert!(text.len() > COMMENT - 5_000, "{} bytes", text.len());
    assert!(text.contains("This report is cut"), "{text}");
    let rows = text.lines().filter(|line| line.starts_with("| **missed**"));
    let shown = rows.count();
    let more = text
        .lines()
        .find(|line| line.starts_with("… and "))
        .unwrap();
    let more: usize = more
        .replace(',', "")
        .split(' ')
        .nth(2)
        .unwrap()
        .parse()
        .unwrap();
    let rows = whole
        .lines()
        .filter(|line| line.starts_with("| **missed**"));
    // Two inconclusive cases, one that did not run, and a flaky one come after those that missed.
    assert_eq!(shown + more, rows.count() + 4);
    assert!(text.contains("exit code 1"), "{text}");
    for limit in [0, 3_000, 5_000, 20_000] {
        let text = render(&sample.report(), limit);
        assert!(text.len() <= limit.max(3_000), "{} of {limit}", text.len());
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(40))]
    #[test]
    fn any_name_is_one_cell_with_its_own_text(name in "[!-~`|\\\\<\u{202e}é]{1,3}[ -~`|\\\\é]{0,30}[!-~`|\\\\]{1,3}") {
        check(&|_| name.clone());
    }
}
