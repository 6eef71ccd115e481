use std::path::Path;

use super::*;

#[test]
fn each_name_is_one_agents() {
    let names: Vec<&str> = BuiltinAgent::names().collect();
    for (at, name) in names.iter().enumerate() {
        assert!(!names[..at].contains(name), "{name} names two");
    }
    for agent in BuiltinAgent::ALL {
        assert_eq!(BuiltinAgent::parse(agent.name()), Some(agent));
        assert_eq!(BuiltinAgent::parse_type(&agent.type_name()), Some(agent));
        assert_eq!(BuiltinAgent::parse_type(agent.name()), None);
        assert_eq!(agent.program().is_none(), agent.needs_model());
    }
}

/// The rows of the table behind `heading`.
fn rows(page: &str, anchor: &str) -> Vec<String> {
    let text = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(text).unwrap();
    let is_it = |line: &&str| {
        line.trim_start_matches('#')
            .trim()
            .to_lowercase()
            .replace(' ', "-")
            == anchor
    };
    let section = text
        .lines()
        .skip_while(|line| !(line.starts_with('#') && is_it(line)));
    let section = section.skip(1).take_while(|line| !line.starts_with('#'));
    section
        .filter(|line| line.starts_with('|'))
        .map(str::to_owned)
        .collect()
}

#[test]
fn the_docs_have_each_agent_with_its_program_and_how_it_is_installed() {
    for agent in BuiltinAgent::ALL {
        let (page, anchor) = agent.docs().split_once('#').unwrap();
        let rows = rows(page, anchor);
        let name = format!("`{agent}`");
        let first = |row: &&String| {
            row.split('|')
                .nth(1)
                .is_some_and(|cell| cell.contains(&name))
        };
        let row = rows
            .iter()
            .find(first)
            .unwrap_or_else(|| panic!("{agent} in {rows:?}"));
        if let Some(program) = agent.program() {
            let told = format!("| `{}` | `{}` |", program.name, program.install);
            assert!(row.contains(&told), "{row} has not {told}");
        }
    }
}
