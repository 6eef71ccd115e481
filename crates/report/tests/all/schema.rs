//! Checks documents against `junit-10.xsd`, which Jenkins publishes under the MIT licence and pytest ships.
//!
//! It knows of XML Schema what that file uses: elements, attributes with their types, and which elements may
//! be in which. Order is left to the real validator of `crates/e2e/tests/real/junit.rs`: the elements that we
//! write may stand in any order.

use std::collections::BTreeMap;

use roxmltree::{Document, Node};

const SCHEMA: &str = include_str!("junit-10.xsd");

/// What may be in an element.
#[derive(Default)]
struct Rule {
    /// The attributes: whether they are required, and their type.
    attributes: BTreeMap<String, (bool, String)>,
    children: Vec<String>,
    has_text: bool,
}

/// Everything in a document that breaks the schema.
pub(crate) fn violations(text: &str) -> Vec<String> {
    let document = Document::parse(text).expect("well-formed");
    let schema = Document::parse(SCHEMA).expect("a schema");
    let mut rules = BTreeMap::new();
    let mut times = None;
    for node in schema.root_element().children().filter(Node::is_element) {
        let name = node.attribute("name").expect("a name").to_owned();
        match node.tag_name().name() {
            "element" => drop(rules.insert(name, rule(node))),
            "simpleType" => {
                let pattern = node
                    .descendants()
                    .find(|node| node.has_tag_name(xs("pattern")));
                let pattern = pattern
                    .and_then(|node| node.attribute("value"))
                    .expect("a pattern");
                times = Some(regex::Regex::new(&format!("^(?:{pattern})$")).expect("a pattern"));
            }
            "complexType" => {}
            other => panic!("the schema has {other}, which is not known here"),
        }
    }
    let times = times.expect("the type of times");
    let mut found = Vec::new();
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        match rules.get(name) {
            Some(rule) => rule.check(node, &times, &mut found),
            None => found.push(format!("unknown element {name}")),
        }
    }
    found
}

fn xs(name: &str) -> (&str, &str) {
    ("http://www.w3.org/2001/XMLSchema", name)
}

fn rule(element: Node) -> Rule {
    let mut rule = Rule {
        has_text: element.attribute("type") == Some("xs:string"),
        ..Rule::default()
    };
    for node in element.descendants() {
        if node.has_tag_name(xs("attribute")) {
            let text = |name| node.attribute(name).unwrap_or_default().to_owned();
            let is_required = node.attribute("use") == Some("required");
            rule.attributes
                .insert(text("name"), (is_required, text("type")));
        } else if node.has_tag_name(xs("element"))
            && let Some(child) = node.attribute("ref")
        {
            rule.children.push(child.to_owned());
        } else if node.attribute("mixed") == Some("true") {
            rule.has_text = true;
        }
    }
    rule
}

impl Rule {
    fn check(&self, node: Node, times: &regex::Regex, found: &mut Vec<String>) {
        let name = node.tag_name().name();
        for attribute in node.attributes() {
            match self.attributes.get(attribute.name()) {
                None => found.push(format!("{name} has an attribute {}", attribute.name())),
                Some((_, kind))
                    if kind == "SUREFIRE_TIME" && !times.is_match(attribute.value()) =>
                {
                    found.push(format!("{name} has the time {}", attribute.value()));
                }
                Some(_) => {}
            }
        }
        for (attribute, (is_required, _)) in &self.attributes {
            if *is_required && node.attribute(attribute.as_str()).is_none() {
                found.push(format!("{name} has no {attribute}"));
            }
        }
        for child in node.children() {
            let text = child.text().unwrap_or_default();
            let inside = child.tag_name().name();
            if child.is_element() && !self.children.iter().any(|allowed| allowed == inside) {
                found.push(format!("{name} has an element {inside}"));
            } else if child.is_text() && !self.has_text && !text.trim().is_empty() {
                found.push(format!("{name} has text"));
            }
        }
    }
}

#[test]
fn a_document_that_breaks_the_schema_is_refused() {
    let check = |text: &str, expected: &[&str]| assert_eq!(violations(text), expected, "{text}");
    let suite = r#"name="s" tests="1" failures="0" errors="0""#;
    check(
        &format!(r#"<testsuites><testsuite {suite} time="1,234.5"/></testsuites>"#),
        &[],
    );
    // What Proctor wrote before.
    check(
        &format!(
            r#"<testsuites skipped="1"><testsuite {suite}><testcase name="a"><properties/></testcase></testsuite></testsuites>"#
        ),
        &[
            "testsuites has an attribute skipped",
            "testcase has an element properties",
        ],
    );
    check(
        "<testsuites><testcase/>x</testsuites>",
        &[
            "testsuites has an element testcase",
            "testsuites has text",
            "testcase has no name",
        ],
    );
    check(
        r#"<testsuites time="1h"><b/></testsuites>"#,
        &[
            "testsuites has the time 1h",
            "testsuites has an element b",
            "unknown element b",
        ],
    );
}
