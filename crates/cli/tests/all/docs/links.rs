//! Every link of the documents leads somewhere, and the site has every page.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

fn root() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.canonicalize().expect("it is there")
}

/// The Markdown files in a folder, without those below it.
fn pages_in(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).expect("it is there");
    let paths = entries.map(|entry| entry.expect("it is there").path());
    paths
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect()
}

fn documents() -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = ["", "docs", "docs/design", "benches"]
        .into_iter()
        .flat_map(pages_in)
        .collect();
    found.push(root().join("examples/README.md"));
    for folder in ["examples", "packages", "crates"] {
        for entry in fs::read_dir(root().join(folder)).expect("it is there") {
            let readme = entry.expect("it is there").path().join("README.md");
            found.extend(readme.is_file().then_some(readme));
        }
    }
    found
}

/// The targets of the links and pictures of a text, and what links can name in it.
fn links_and_anchors(text: &str) -> (Vec<String>, BTreeSet<String>) {
    let (mut links, mut anchors) = (Vec::new(), BTreeSet::new());
    let mut heading: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                links.push(dest_url.to_string());
            }
            Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
            Event::End(TagEnd::Heading(_)) => {
                anchors.extend(heading.take().map(|heading| slug(&heading)));
            }
            Event::Text(part) | Event::Code(part) => {
                if let Some(heading) = &mut heading {
                    heading.push_str(&part);
                }
            }
            Event::Html(html) | Event::InlineHtml(html) => {
                for attribute in ["src=\"", "srcset=\""] {
                    links.extend(values(&html, attribute));
                }
                anchors.extend(values(&html, "id=\""));
            }
            _ => {}
        }
    }
    (links, anchors)
}

fn values(html: &str, attribute: &str) -> Vec<String> {
    let rest = html.split(attribute).skip(1);
    let values = rest.filter_map(|rest| rest.split('"').next());
    values.map(str::to_owned).collect()
}

/// The name of a heading in a link, as GitHub and mdBook make it.
fn slug(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// What is wrong with a link of a document.
fn problem(document: &Path, link: &str) -> Option<String> {
    if link.contains("://") || link.starts_with("mailto:") {
        return None;
    }
    let (path, anchor) = link.split_once('#').unwrap_or((link, ""));
    let target = match path {
        "" => document.to_owned(),
        path => document.parent()?.join(path),
    };
    if !target.exists() {
        return Some(format!("`{link}` leads nowhere"));
    }
    if anchor.is_empty() || target.extension().is_none_or(|end| end != "md") {
        return None;
    }
    let (_, anchors) = links_and_anchors(&fs::read_to_string(&target).expect("it is text"));
    (!anchors.contains(anchor)).then(|| format!("`{link}` names no heading"))
}

#[test]
fn every_link_of_the_documents_leads_somewhere() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for document in documents() {
        let text = fs::read_to_string(&document).unwrap();
        let (links, _) = links_and_anchors(&text);
        count += links.len();
        for link in links {
            if let Some(problem) = problem(&document, &link) {
                wrong.push(format!("{}: {problem}", document.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    assert!(count > 300, "only {count} links");
}

#[test]
fn a_link_that_leads_nowhere_is_found() {
    let document = root().join("docs/README.md");
    for link in [
        "suite.md",
        "suites.md#no-such",
        "#no-such",
        "../docs/images/a.png",
    ] {
        assert!(problem(&document, link).is_some(), "{link}");
    }
    for link in [
        "suites.md",
        "suites.md#a-first-suite",
        "glossary.md#tap",
        "https://example.com",
    ] {
        assert_eq!(problem(&document, link), None);
    }
}

#[test]
fn the_site_has_every_page() {
    let summary = root().join("docs/SUMMARY.md");
    let (links, _) = links_and_anchors(&fs::read_to_string(&summary).unwrap());
    let linked: BTreeSet<PathBuf> = links
        .iter()
        .map(|link| root().join("docs").join(link))
        .collect();
    assert_eq!(linked.len(), links.len(), "a page is listed twice");
    let mut pages: BTreeSet<PathBuf> = pages_in("docs").into_iter().collect();
    pages.extend(pages_in("docs/design"));
    pages.remove(&summary);
    assert_eq!(linked, pages);
}
