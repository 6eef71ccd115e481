//! The lines that ARCHITECTURE.md draws, kept: crates depend downwards only, the modules of a crate form no
//! cycle, only one module depends on the operating system, and the code map shows the graph as it is.

#![expect(
    clippy::unwrap_used,
    reason = "a test that can't go on panics, helpers included"
)]

mod graph;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use graph::{Graph, cycle, render};

/// Each crate, and the crates of this workspace that it may name in its manifest, lowest first.
const CRATES: [(&str, &[&str]); 9] = [
    ("mcp-evals", &[]),
    ("record", &[]),
    ("core", &["mcp-evals", "record"]),
    ("contain", &["record"]),
    ("wire", &["mcp-evals", "record", "core", "contain"]),
    ("models", &["record", "core", "contain", "wire"]),
    (
        "run",
        &["mcp-evals", "record", "core", "contain", "wire", "models"],
    ),
    ("report", &["mcp-evals", "record", "core"]),
    (
        "cli",
        &[
            "mcp-evals",
            "record",
            "core",
            "contain",
            "wire",
            "models",
            "run",
            "report",
        ],
    ),
];

/// What not every system has. Only `contain::os` may name it.
const SYSTEM_APIS: [&str; 23] = [
    "\"/proc/",
    "\"/proc\"",
    "target_os",
    "feature = \"posix\"",
    "os::linux",
    "sysinfo",
    "kqueue",
    "pidfd",
    "subreaper",
    "prctl",
    "set_dumpable",
    "peercred",
    "PeerCred",
    "SO_PEER",
    "CMSG_CLOEXEC",
    "NOSIGNAL",
    "pipe_with",
    "pipe2",
    "memfd",
    "TMPFILE",
    "inotify",
    "epoll",
    "eventfd",
];

/// Where the graph stands in the code map.
const MARKS: (&str, &str) = ("<!-- modules -->\n```text\n", "```\n<!-- end -->");

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn modules_of(name: &str) -> Graph {
    source::modules(&root().join("crates").join(name).join("src"))
}

#[test]
fn modules_of_a_crate_form_no_cycle() {
    for (name, _) in CRATES {
        let found = cycle(&modules_of(name));
        assert_eq!(
            found, None,
            "modules of crates/{name} use each other in a circle"
        );
    }
}

#[test]
fn only_os_names_what_not_every_system_has() {
    let except = root().join("crates/contain/src/os");
    for (name, _) in CRATES {
        let src = root().join("crates").join(name).join("src");
        let found = source::uses(&src, &SYSTEM_APIS, &except);
        assert!(
            found.is_empty(),
            "only `contain::os` may depend on the system: {found:#?}"
        );
    }
}

#[test]
fn only_json_parses_texts_with_serde_json() {
    let parsers = [
        "serde_json::from_str",
        "serde_json::from_slice",
        "serde_json::from_reader",
    ];
    let except = root().join("crates/record/src/json");
    for (name, _) in CRATES.iter().filter(|(name, _)| *name != "mcp-evals") {
        let src = root().join("crates").join(name).join("src");
        let found = source::uses(&src, &parsers, &except);
        assert!(
            found.is_empty(),
            "texts of others need `proctor_record::json`: {found:#?}"
        );
    }
}

#[test]
fn crates_depend_downwards_only() {
    for (name, allowed) in CRATES {
        let manifest = root().join("crates").join(name).join("Cargo.toml");
        let manifest = fs::read_to_string(manifest).unwrap();
        let dependencies = manifest.split("\n[dependencies]").nth(1).unwrap_or("");
        let dependencies = dependencies.split("\n[").next().unwrap_or("");
        let named: BTreeSet<&str> = dependencies
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter_map(|word| match word {
                "mcp-evals" => Some("mcp-evals"),
                word => word.strip_prefix("proctor-"),
            })
            .collect();
        let allowed: BTreeSet<&str> = allowed.iter().copied().collect();
        let above: Vec<&&str> = named.difference(&allowed).collect();
        assert!(above.is_empty(), "crates/{name} must not know {above:?}");
    }
}

#[test]
fn a_cycle_is_found_however_modules_name_each_other() {
    let check = |files: &[(&str, &str)], expected: Option<&[&str]>| {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = cycle(&source::modules(folder.path()));
        let expected = expected.map(|names| names.iter().map(ToString::to_string).collect());
        assert_eq!(found, expected, "{files:?}");
    };
    let a = ("a.rs", "use crate::b::B;");
    check(&[a, ("b.rs", "")], None);
    check(&[a, ("b.rs", "use crate::a::A;")], Some(&["a", "b"]));
    check(&[a, ("b.rs", "use super::a::A;")], Some(&["a", "b"]));
    check(&[a, ("b.rs", "use crate::{a::A, c};")], Some(&["a", "b"]));
    check(
        &[a, ("b.rs", "use crate::{\n    c::{X, Y},\n    a,\n};")],
        Some(&["a", "b"]),
    );
    check(
        &[a, ("b/c.rs", "fn f() -> crate::a::A {}")],
        Some(&["a", "b"]),
    );
    check(
        &[a, ("b/c.rs", "use super::super::a::A;")],
        Some(&["a", "b"]),
    );
    check(&[a, ("b/c.rs", "use super::a::A;")], None);
    check(
        &[
            a,
            ("b.rs", "// use crate::a::A;\nconst B: &str = \"crate::a\";"),
        ],
        None,
    );
    check(&[a, ("b/tests.rs", "use crate::a::A;")], None);
    check(
        &[
            a,
            ("b.rs", "#[cfg(test)]\nmod tests {\n    use crate::a::A;\n}"),
        ],
        None,
    );
    check(
        &[
            a,
            ("b.rs", "use crate::c::C;"),
            ("c.rs", "use crate::a::A;"),
        ],
        Some(&["a", "b", "c"]),
    );
}

#[test]
fn the_code_map_shows_the_graph_as_it_is() {
    let graphs: BTreeMap<&str, Graph> = CRATES
        .iter()
        .filter(|(name, _)| !matches!(*name, "mcp-evals" | "cli"))
        .map(|(name, _)| (*name, modules_of(name)))
        .collect();
    let order = CRATES.iter().map(|(name, _)| *name);
    let drawn: String = order
        .filter_map(|name| Some(render(name, graphs.get(name)?)))
        .collect::<Vec<_>>()
        .join("\n");
    let path = root().join("docs/design/code-map.md");
    let page = fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(MARKS.0).expect("the page marks its graph");
    let (shown, after) = rest.split_once(MARKS.1).expect("the graph has an end");
    if std::env::var_os("INSTA_UPDATE").is_some_and(|update| update == "always") {
        fs::write(path, [before, MARKS.0, &drawn, MARKS.1, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        shown, drawn,
        "run this test with INSTA_UPDATE=always to draw the graph again"
    );
}
