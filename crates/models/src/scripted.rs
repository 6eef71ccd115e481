//! The scripted model: rules instead of an LLM.
//!
//! The main type is [`ScriptedModel`]. [`proctor_core::script`] chooses the reply; this module only
//! waits for its delay.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use proctor_core::provider::Provider;
use proctor_core::script::{ProviderFault, Script};
use proctor_core::suite::load_script;
use proctor_record::model::{ModelRequest, Reply};
use proctor_record::problem::Problems;

use super::ModelError;
use proctor_wire::worker;

/// A model that follows a file of rules.
#[derive(Debug)]
pub struct ScriptedModel {
    name: String,
    script: Arc<Script>,
}

impl ScriptedModel {
    /// A model that follows a script, with the name that a suite gives it.
    pub fn new(id: &str, script: Arc<Script>) -> Self {
        Self {
            name: Provider::Scripted.model(id),
            script,
        }
    }

    /// Loads a script, or returns all problems in it.
    pub fn open(path: &Path) -> Result<Self, Problems> {
        let mut problems = Problems::default();
        match load_script(path, &mut problems) {
            Some(script) => Ok(Self::new(&path.to_string_lossy(), Arc::new(script))),
            None => Err(problems),
        }
    }

    /// The model, as `scripted:FILE`.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub async fn ask(&self, request: &ModelRequest) -> Result<Reply, ModelError> {
        let scripted = worker::on_body(request.text_bytes(), || self.script.reply(request));
        let scripted = scripted.map_err(|error| ModelError::Script {
            detail: format!("{}: {error}", self.script.path().display()),
        })?;
        if !scripted.delay.is_zero() {
            tokio::time::sleep(scripted.delay).await;
        }
        scripted
            .answer
            .map_err(|fault| model_error(fault, scripted.delay))
    }
}

fn model_error(fault: ProviderFault, after: Duration) -> ModelError {
    match fault {
        ProviderFault::RateLimited {
            retry_after,
            detail,
        } => ModelError::RateLimited {
            retry_after,
            detail,
        },
        ProviderFault::Unavailable {
            retry_after,
            detail,
        } => ModelError::Unavailable {
            is_overload: retry_after.is_some(),
            retry_after,
            detail,
        },
        ProviderFault::TimedOut => ModelError::TimedOut { after },
        ProviderFault::Key { detail } => ModelError::Key { detail },
        ProviderFault::ContextOverflow { detail } => ModelError::ContextOverflow { detail },
        ProviderFault::Rejected { detail } => ModelError::Rejected { detail },
        ProviderFault::Malformed { detail } => ModelError::Malformed { detail },
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use proctor_record::model::ModelMessage;

    use super::*;

    fn ask(rules: &str, said: &str) -> Result<Reply, ModelError> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("model.yaml");
        std::fs::write(&path, format!("kind: Script\nrules:\n{rules}")).expect("written");
        let model = ScriptedModel::open(&path).expect("a script");
        let request = ModelRequest {
            messages: vec![ModelMessage::User(said.to_owned())],
            ..ModelRequest::default()
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .expect("a runtime");
        runtime.block_on(model.ask(&request))
    }

    #[test]
    fn a_rule_replies_after_its_delay() {
        let started = Instant::now();
        let reply = ask("- reply: {text: 'you said {user}', delay: 30ms}\n", "hi").unwrap();
        assert_eq!(reply.turn.text, "you said hi");
        assert!(started.elapsed() >= Duration::from_millis(30));
    }

    #[test]
    fn every_fault_maps_to_its_error() {
        let check = |fault: &str, expected: ModelError| {
            let rules = format!("- reply: {{error: {fault}, delay: 1ms}}\n");
            assert_eq!(ask(&rules, "hi"), Err(expected), "{fault}");
        };
        let detail = "no".to_owned();
        check(
            "{kind: rateLimit, detail: no, retryAfter: 2s}",
            ModelError::RateLimited {
                retry_after: Some(Duration::from_secs(2)),
                detail: detail.clone(),
            },
        );
        check(
            "{kind: unavailable, detail: no}",
            ModelError::Unavailable {
                retry_after: None,
                is_overload: false,
                detail: detail.clone(),
            },
        );
        check(
            "{kind: timeout}",
            ModelError::TimedOut {
                after: Duration::from_millis(1),
            },
        );
        check(
            "{kind: key, detail: no}",
            ModelError::Key {
                detail: detail.clone(),
            },
        );
        check(
            "{kind: context, detail: no}",
            ModelError::ContextOverflow {
                detail: detail.clone(),
            },
        );
        check(
            "{kind: rejected, detail: no}",
            ModelError::Rejected {
                detail: detail.clone(),
            },
        );
        check(
            "{kind: malformed, detail: no}",
            ModelError::Malformed { detail },
        );
    }

    #[test]
    fn a_request_that_no_rule_matches_is_an_error() {
        let error = ask("- when: {user: weather}\n  reply: {text: sunny}\n", "hi").unwrap_err();
        let message = error.to_string();
        assert!(
            message.ends_with(
                "model.yaml: no rule matches: turn 1, 0 tool results so far, available tools: none"
            ),
            "{message}"
        );
        assert!(matches!(error, ModelError::Script { .. }));
    }

    #[test]
    fn a_broken_script_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.yaml");
        assert!(ScriptedModel::open(&path).is_err());
        std::fs::write(&path, "kind: Script\nrules: []\n").unwrap();
        assert_eq!(ScriptedModel::open(&path).unwrap_err().errors(), 1);
    }
}
