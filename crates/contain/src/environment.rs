//! The environment of a server under test: a short list of variables that every program needs, the
//! server's own `env`, and the variables that the user passes by name. It never holds model keys.

use std::collections::BTreeMap;

use crate::os::COOKIE;

/// The variables that every server inherits. `LC_*` is inherited too: with `LANG` alone, a server
/// might use another encoding than in its user's terminal.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "TMPDIR"];

/// The complete environment of a server. `own` (its `env` in the MCP config) overrides inherited
/// variables; names in `pass` that are not set are ignored.
pub fn server_environment(
    inherited: &BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
    pass: &[String],
) -> BTreeMap<String, String> {
    inherited
        .iter()
        .filter(|(name, _)| is_inherited(name) || pass.contains(name))
        .chain(own)
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

/// The complete environment of an agent: the inherited variables of servers, a home folder of its
/// own and the variables that the agent needs.
pub fn agent_environment(
    inherited: &BTreeMap<String, String>,
    home: &str,
    needed: &[&str],
) -> BTreeMap<String, String> {
    let mut all: BTreeMap<String, String> = inherited
        .iter()
        .filter(|(name, _)| is_inherited(name) || needed.contains(&name.as_str()))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    all.insert("HOME".to_owned(), home.to_owned());
    all
}

/// The cookie is inherited too, so that a Proctor that runs below another guard stays visible to
/// it.
fn is_inherited(name: &str) -> bool {
    INHERITED.contains(&name) || name.starts_with("LC_") || name == COOKIE
}

#[cfg(test)]
mod tests {
    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    #[test]
    fn a_server_gets_inherited_own_and_passed_variables() {
        type Pairs = &'static [(&'static str, &'static str)];
        let check = |inherited: Pairs, own: Pairs, pass: &[&str], expected: Pairs| {
            let pass: Vec<String> = pass.iter().map(|name| (*name).into()).collect();
            let found = server_environment(&variables(inherited), &variables(own), &pass);
            assert_eq!(found, variables(expected));
        };
        let all: Pairs = &[
            ("PATH", "/bin"),
            ("HOME", "/home/u"),
            ("USER", "u"),
            ("LANG", "C.UTF-8"),
            ("LC_ALL", "C"),
            ("TERM", "dumb"),
            ("SHELL", "/bin/sh"),
            ("TMPDIR", "/tmp"),
        ];
        check(all, &[], &[], all);
        check(&[("OPENAI_API_KEY", "k"), ("path", "p")], &[], &[], &[]);
        check(&[("TOKEN", "t")], &[], &["TOKEN"], &[("TOKEN", "t")]);
        check(&[("TOKENS", "t")], &[], &["TOKEN"], &[]);
        check(
            &[("PATH", "/bin")],
            &[("PATH", "/own")],
            &[],
            &[("PATH", "/own")],
        );
        check(
            &[("TOKEN", "t")],
            &[("TOKEN", "own")],
            &["TOKEN"],
            &[("TOKEN", "own")],
        );
        check(&[], &[("EMPTY", "")], &["UNSET"], &[("EMPTY", "")]);
    }

    #[test]
    fn an_agent_gets_its_own_home_and_required_variables() {
        let inherited = variables(&[
            ("PATH", "/bin"),
            ("HOME", "/home/u"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "k"),
            ("SECRET", "s"),
        ]);
        let found = agent_environment(&inherited, "/tmp/h", &["ANTHROPIC_API_KEY", "UNSET"]);
        let expected = [
            ("PATH", "/bin"),
            ("HOME", "/tmp/h"),
            ("LC_ALL", "C"),
            ("ANTHROPIC_API_KEY", "k"),
        ];
        assert_eq!(found, variables(&expected));
    }
}
