//! The environment of a server under test: a short list of variables that every program needs, the files
//! of certificates, the server's own `env`, and the variables that the user passes by name. It never
//! holds model keys.

use std::collections::BTreeMap;

use crate::os::COOKIE;

/// The variables that every server inherits. `LC_*` is inherited too: with `LANG` alone, a server
/// might use another encoding than in its user's terminal.
const INHERITED: [&str; 7] = ["PATH", "HOME", "USER", "LANG", "TERM", "SHELL", "TMPDIR"];

/// Variables that name files or folders of certificates, without which a program may reach no server
/// behind a company's proxy. They hold no secrets, so every server inherits them too.
const CERTIFICATES: [&str; 16] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "GIT_SSL_CAPATH",
    "PIP_CERT",
    "NPM_CONFIG_CAFILE",
    "npm_config_cafile",
    "AWS_CA_BUNDLE",
    "CARGO_HTTP_CAINFO",
    "DENO_CERT",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "NIX_SSL_CERT_FILE",
];

/// Variables for the network and for packages, without which a server may fail to start. Their values
/// may hold passwords, so a server gets them only by name.
const OFTEN_NEEDED: [&str; 17] = [
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NVM_DIR",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "PYTHONPATH",
    "VIRTUAL_ENV",
    "DOCKER_HOST",
    "DOCKER_CONFIG",
];

/// The same by their first letters: the settings of package managers.
const OFTEN_NEEDED_PREFIXES: [&str; 3] = ["NPM_CONFIG_", "UV_", "PIP_"];

/// The names of the user's variables that a server did not get and may need to start.
pub fn withheld_variables(
    inherited: &BTreeMap<String, String>,
    own: &BTreeMap<String, String>,
    pass: &[String],
) -> Vec<String> {
    let may_need = |name: &str| {
        // Proxies and the settings of npm are written in lower case as well.
        let upper = name.to_ascii_uppercase();
        let mut prefixes = OFTEN_NEEDED_PREFIXES.iter();
        OFTEN_NEEDED.contains(&upper.as_str()) || prefixes.any(|prefix| upper.starts_with(prefix))
    };
    let is_given =
        |name: &String| is_inherited(name) || pass.contains(name) || own.contains_key(name);
    let names = inherited
        .keys()
        .filter(|name| may_need(name) && !is_given(name));
    names.cloned().collect()
}

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
    INHERITED.contains(&name)
        || CERTIFICATES.contains(&name)
        || name.starts_with("LC_")
        || name == COOKIE
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
    fn certificates_pass_and_proxies_are_named() {
        let inherited = variables(&[
            ("SSL_CERT_FILE", "/certs.pem"),
            ("HTTPS_PROXY", "http://u:hunter2@proxy"),
            ("https_proxy", "http://u:hunter2@proxy"),
            ("UV_INDEX_URL", "http://u:hunter2@index"),
            ("npm_config_registry", "http://registry"),
            ("OPENAI_API_KEY", "k"),
            ("UVULA", "u"),
        ]);
        let own = variables(&[("https_proxy", "http://other")]);
        let pass = ["UV_INDEX_URL".to_owned()];
        let given = server_environment(&inherited, &own, &pass);
        let expected = variables(&[
            ("SSL_CERT_FILE", "/certs.pem"),
            ("https_proxy", "http://other"),
            ("UV_INDEX_URL", "http://u:hunter2@index"),
        ]);
        assert_eq!(given, expected);
        let withheld = withheld_variables(&inherited, &own, &pass);
        assert_eq!(withheld, ["HTTPS_PROXY", "npm_config_registry"]);
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
