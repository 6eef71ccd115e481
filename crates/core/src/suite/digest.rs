//! Digests of cases, to compare them across runs and machines.
//!
//! Its main function is [`digest`]. It covers the steps and checks of a case, and the bytes of
//! its scripts; not the paths of its files, its number of runs, or its limits.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use data_encoding::HEXLOWER;
use proctor_record::event::{CaseParts, StepPart};
use proctor_record::json::canonical;
use proctor_record::redact::{Redactor, is_secret_name};
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::agent::{AgentKind, ModelRef};
use super::server::{ClientSettings, Transport};
use super::step::{Action, ScriptSource, ScriptStep};
use super::turns::UserTurn;
use super::{Agent, Case, Isolation, JudgeModel, Server, Step, Suite};
use crate::check::Check;

/// The SHA-256 of a case. Fails if a file that the case names can't be read.
pub fn digest(case: &Case) -> io::Result<String> {
    let steps = |steps: &[Step]| steps.iter().map(step).collect::<io::Result<Vec<Value>>>();
    let checks = case.checks.iter().map(|check| value(check.as_ref()));
    let shipped = case.shipped.as_ref().map(|shipped| {
        json!({
            "server": shipped.server,
            "eval": shipped.eval.to_value(),
            "maxTurns": shipped.max_turns,
        })
    });
    let mut content = json!({
        "shipped": shipped,
        "prompt": case.prompt.to_string(),
        "setup": steps(&case.setup)?,
        "verify": steps(&case.verify)?,
        "cleanup": steps(&case.cleanup)?,
        "checks": checks.collect::<io::Result<Vec<Value>>>()?,
    });
    if let (Some(servers), None) = (&case.servers, &case.shipped) {
        content["servers"] = json!(servers);
    }
    if let Some(workspace) = &case.workspace {
        content["workspace"] = json!(workspace.digest()?);
    }
    if !case.unmet.is_empty() {
        content["unmet"] = json!(case.unmet);
    }
    if !case.turns.is_empty() {
        content["turns"] = turns(case);
    }
    if !case.replies.is_empty() {
        let models = case.replies.values();
        let scripts = models.map(|replies| replies.sampling_model().and_then(script_of));
        content["replies"] = json!([case.replies, scripts.collect::<Vec<_>>()]);
    }
    Ok(sha256(canonical(&content).as_bytes()))
}

/// The SHA-256 of each part of a case. Fails if a file that the case names can't be read.
pub fn parts(case: &Case) -> io::Result<CaseParts> {
    let hash = |value: &Value| sha256(canonical(value).as_bytes());
    let setup: io::Result<Vec<Value>> = case.setup.iter().map(step).collect();
    let mut setup = setup?;
    if let Some(workspace) = &case.workspace {
        setup.push(json!({"workspace": workspace.digest()?}));
    }
    let verify = case.verify.iter().map(|one| {
        let part = StepPart {
            id: one.id.clone(),
            hash: hash(&step(one)?),
        };
        Ok(part)
    });
    Ok(CaseParts {
        prompt: match &case.turns[..] {
            [] => hash(&json!(case.prompt.to_string())),
            _ => hash(&json!([case.prompt.to_string(), turns(case)])),
        },
        setup: hash(&Value::Array(setup)),
        checks: checks(&case.checks)?,
        verify: verify.collect::<io::Result<_>>()?,
    })
}

/// The SHA-256 of assertions.
pub fn checks(checks: &[Arc<Check>]) -> io::Result<String> {
    let checks = checks.iter().map(|check| value(check.as_ref()));
    let checks: io::Result<Vec<Value>> = checks.collect();
    Ok(sha256(canonical(&Value::Array(checks?)).as_bytes()))
}

/// The SHA-256 of the surroundings of a suite's cases: its servers, the scripts of its models, the
/// environments in its agent files, and the steps of the run. Values from the environment are not included.
/// Fails if a script of a step can't be read.
pub fn surroundings(suite: &Suite) -> io::Result<String> {
    let server = |server: &Server| {
        let names = |table: &BTreeMap<String, String>| table.keys().cloned().collect::<Vec<_>>();
        let mut given = match &server.transport {
            Transport::Stdio { env, .. } => names(env),
            Transport::Http { headers, .. } | Transport::Sse { headers, .. } => names(headers),
        };
        given.extend(server.auth.as_ref().map(|_| "auth".to_owned()));
        let mut content = vec![
            json!(server.name),
            json!(server.written),
            json!(given),
            json!(server.allowed),
        ];
        // Only where a file says something: the digests of earlier runs stay what they are.
        if let Transport::Stdio { cwd: Some(cwd), .. } = &server.transport {
            content.push(json!(cwd));
        }
        Value::Array(content)
    };
    let client = |server: &&Server| server.client != ClientSettings::default();
    let clients = suite.servers.iter().filter(client).map(|server| {
        let script = server.client.replies.sampling_model().and_then(script_of);
        json!([server.name, server.client, script])
    });
    let clients: Vec<Value> = clients.collect();
    let script = |agent: &Agent| match &agent.kind {
        AgentKind::Builtin {
            model: Some(model), ..
        } => script_of(model),
        _ => None,
    };
    let judge = suite.judge.as_ref().and_then(|judge| match &judge.model {
        JudgeModel::Agent(agent) => script(agent),
        JudgeModel::Environment { .. } => None,
    });
    let mut content = json!({
        "servers": suite.servers.iter().map(server).collect::<Vec<_>>(),
        "agents": suite.agents.iter().map(script).collect::<Vec<_>>(),
        "judge": judge,
        "votes": suite.judge.as_ref().map(|judge| judge.votes),
        "shared": suite.isolation == Isolation::Run,
    });
    // Only where a file says something: the digests of earlier runs stay what they are.
    let nothing = Agent::nobody();
    let own = |agent: &&Agent| {
        agent.env != nothing.env || agent.connects_on_use != nothing.connects_on_use
    };
    let own: Vec<Value> = suite
        .agents
        .iter()
        .filter(own)
        .map(|agent| json!([agent.name, agent.env, agent.connects_on_use]))
        .collect();
    if !own.is_empty() {
        content["agentFiles"] = own.into();
    }
    for (key, steps) in [("setup", &suite.setup), ("cleanup", &suite.cleanup)] {
        if !steps.is_empty() {
            let steps: io::Result<Vec<Value>> = steps.iter().map(step).collect();
            content[key] = steps?.into();
        }
    }
    if !suite.preflight {
        content["preflight"] = false.into();
    }
    if !clients.is_empty() {
        content["clients"] = clients.into();
    }
    Ok(sha256(canonical(&content).as_bytes()))
}

fn turns(case: &Case) -> Value {
    let models = case.turns.iter().map(UserTurn::model);
    let scripts: Vec<_> = models.map(|model| model.and_then(script_of)).collect();
    json!([case.turns, scripts])
}

/// The SHA-256 of a model's script, if it is scripted.
fn script_of(model: &ModelRef) -> Option<String> {
    let script = model.script.as_ref()?;
    Some(sha256(script.text().as_bytes()))
}

/// The SHA-256 of the settings of each server of a suite, by name. Secrets are removed
/// first: their hashes could be guessed, and a renewed key does not change the server.
pub fn server_settings(suite: &Suite, redactor: &Redactor) -> io::Result<BTreeMap<String, String>> {
    let servers = suite.servers.iter();
    let hashed = servers.map(|server| Ok((server.name.clone(), settings(server, redactor)?)));
    hashed.collect()
}

/// The same for the agents.
pub fn agent_settings(suite: &Suite, redactor: &Redactor) -> io::Result<BTreeMap<String, String>> {
    let agents = suite.agents.iter();
    let hashed = agents.map(|agent| Ok((agent.name.clone(), settings(&agent.kind, redactor)?)));
    hashed.collect()
}

fn settings(part: &impl Serialize, redactor: &Redactor) -> io::Result<String> {
    let mut all = value(part)?;
    if let Some(members) = all.as_object_mut() {
        // That of its file, which is relative to where somebody stood.
        members.remove("folder");
    }
    take_out_secrets(&mut all, redactor);
    Ok(sha256(canonical(&all).as_bytes()))
}

fn take_out_secrets(value: &mut Value, redactor: &Redactor) {
    match value {
        Value::String(text) => *text = redactor.text(text).into_owned(),
        Value::Array(items) => {
            for item in items {
                take_out_secrets(item, redactor);
            }
        }
        Value::Object(members) => {
            for (name, member) in members {
                if is_secret_name(name) {
                    *member = Value::Null;
                } else {
                    take_out_secrets(member, redactor);
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn step(step: &Step) -> io::Result<Value> {
    let Action::Script(script) = &step.action else {
        return value(step);
    };
    Ok(json!({
        "id": step.id,
        "kind": step.kind,
        "script": text_of(script)?,
        "env": value(&script.env)?,
        "timeout": value(&script.timeout)?,
        "continueOnError": script.continue_on_error,
    }))
}

fn text_of(script: &ScriptStep) -> io::Result<Value> {
    match &script.source {
        ScriptSource::Inline(text) => Ok(json!({ "inline": text })),
        ScriptSource::File(path) => {
            let bytes = std::fs::read(path).map_err(|error| named(path, &error))?;
            let name = path.file_name().map(|name| name.to_string_lossy());
            Ok(json!({"file": name, "sha256": sha256(&bytes)}))
        }
    }
}

fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("`{}`: {error}", path.display()))
}

fn value(part: &impl Serialize) -> io::Result<Value> {
    serde_json::to_value(part).map_err(io::Error::from)
}

fn sha256(bytes: &[u8]) -> String {
    HEXLOWER.encode(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::suite::CaseId;
    use crate::suite::server::{AllowedTools, ClientSettings};
    use crate::suite::template::Template;

    fn case(source: ScriptSource) -> Case {
        Case {
            prompt: Template::literal("Do it."),
            verify: vec![Step {
                id: "verify_0".to_owned(),
                kind: "script".to_owned(),
                action: Action::Script(ScriptStep {
                    source,
                    digest: None,
                    folder: "/somewhere".into(),
                    env: BTreeMap::new(),
                    timeout: Duration::from_secs(1),
                    continue_on_error: false,
                }),
            }],
            checks: vec![Arc::new(Check::MinToolCalls(1))],
            ..Case::new(
                CaseId("a.yaml#a".to_owned()),
                "a".to_owned(),
                "a.yaml".into(),
            )
        }
    }

    #[test]
    fn what_a_case_does_and_asks_for_changes_its_digest_and_nothing_else() {
        let inline = |text: &str| case(ScriptSource::Inline(text.to_owned()));
        let original = digest(&inline("true")).unwrap();
        let mut other = inline("true");
        other.name = "b".to_owned();
        other.runs = Some(5);
        other.path = "elsewhere/a.yaml".into();
        if let Action::Script(script) = &mut other.verify[0].action {
            script.folder = "/elsewhere".into();
        }
        assert_eq!(digest(&other).unwrap(), original);

        assert_ne!(digest(&inline("false")).unwrap(), original);
        other.prompt = Template::literal("Do that.");
        assert_ne!(digest(&other).unwrap(), original);
        let mut stricter = inline("true");
        stricter.checks = vec![Arc::new(Check::MinToolCalls(2))];
        assert_ne!(digest(&stricter).unwrap(), original);
    }

    #[test]
    fn a_change_of_one_part_changes_the_digest_of_that_part_only() {
        let inline = |text: &str| case(ScriptSource::Inline(text.to_owned()));
        let original = parts(&inline("true")).unwrap();
        let other_step = parts(&inline("false")).unwrap();
        assert_ne!(other_step.verify, original.verify);
        assert_eq!(other_step.verify[0].id, "verify_0");
        assert_eq!(
            (&other_step.prompt, &other_step.setup, &other_step.checks),
            (&original.prompt, &original.setup, &original.checks)
        );
        let mut stricter = inline("true");
        stricter.checks = vec![Arc::new(Check::MinToolCalls(2))];
        let stricter = parts(&stricter).unwrap();
        assert_ne!(stricter.checks, original.checks);
        assert_eq!(stricter.verify, original.verify);
        let mut prepared = inline("true");
        prepared.setup = prepared.verify.clone();
        assert_ne!(parts(&prepared).unwrap().setup, original.setup);
        let mut asked = inline("true");
        asked.prompt = Template::literal("Do that.");
        assert_ne!(parts(&asked).unwrap().prompt, original.prompt);
    }

    #[test]
    fn settings_are_what_a_server_is_given_but_for_its_secrets() {
        let hash = |args: &[&str], env: &[(&str, &str)]| {
            let server = Server {
                name: "s".to_owned(),
                transport: Transport::Stdio {
                    command: "serve".to_owned(),
                    args: args.iter().map(ToString::to_string).collect(),
                    env: env
                        .iter()
                        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                        .collect(),
                    folder: "/somewhere".into(),
                    cwd: None,
                },
                auth: None,
                allowed: AllowedTools::All,
                client: ClientSettings::default(),
                written: "serve".to_owned(),
            };
            let known = ["first-key", "other-key"].map(|key| ("KEY".to_owned(), key.to_owned()));
            settings(&server, &Redactor::new(known)).unwrap()
        };
        let original = hash(&["-v"], &[("MODE", "a"), ("API_KEY", "short")]);
        let check = |args: &[&str], env: &[(&str, &str)], same: bool| {
            assert_eq!(hash(args, env) == original, same, "{args:?} {env:?}");
        };
        check(&["-v"], &[("MODE", "a"), ("API_KEY", "renewed")], true);
        check(&["-v"], &[("MODE", "b"), ("API_KEY", "short")], false);
        check(&["-v"], &[("MODE", "a")], false);
        check(&[], &[("MODE", "a"), ("API_KEY", "short")], false);
        let with_key = |key: &str| hash(&["--auth", key], &[]);
        assert_eq!(with_key("first-key"), with_key("other-key"));
        assert_ne!(with_key("first-key"), with_key("no-key"));
    }

    #[test]
    fn the_bytes_of_a_script_count_and_its_folder_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let at = |place: &str, text: &str| {
            let path = folder.path().join(place);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            digest(&case(ScriptSource::File(path))).unwrap()
        };
        let original = at("a/check.sh", "exit 0");
        assert_eq!(at("b/check.sh", "exit 0"), original);
        assert_ne!(at("b/check.sh", "exit 1"), original);
        let missing = digest(&case(ScriptSource::File(folder.path().join("none"))));
        assert!(missing.unwrap_err().to_string().contains("none"));
    }
}
