//! What the replies to requests of servers mean for a trial.

use std::sync::Arc;

use proctor_core::suite::replies::ClientReplies;
use proctor_record::event::{Blame, Purpose, TrialEnded};
use proctor_wire::answers::Sampler;

use super::Trial;
use super::ending::{errored, failed};
use super::unanswered;
use crate::agent::Toolbox;
use crate::context::model_key;
use crate::replies::{SamplerGuard, TrialSampler};

impl Trial {
    /// The sampler of a server, if a model answers its sampling requests.
    pub(super) fn sampler(
        &self,
        replies: &ClientReplies,
    ) -> Option<(Arc<dyn Sampler>, SamplerGuard)> {
        let model = self
            .context
            .others
            .get(&model_key(replies.sampling_model()?))?;
        Some(TrialSampler::guarded(self.asker(model, Purpose::Sampling)))
    }

    /// The end of a trial in which a request of a server could not be answered as configured.
    pub(super) fn reply_failure(toolbox: &Toolbox) -> Option<TrialEnded> {
        toolbox.servers().iter().find_map(|connected| {
            let name = &connected.name;
            if let Some(unfit) = connected.client.replies().unfit() {
                let reason = format!("the server `{name}`: {}", unfit.reason);
                return Some(match unfit.blame {
                    Blame::Server => failed(unfit.blame, reason),
                    Blame::Agent | Blame::Suite | Blame::Judge | Blame::Infra => {
                        errored(unfit.blame, reason)
                    }
                });
            }
            let failure = connected.sampling.as_ref()?.failure()?;
            Some(unanswered(&failure))
        })
    }

    /// The first answer of the task itself that no server requested. Such a task does not test what
    /// it claims to test.
    pub(super) fn unused_reply(&self, toolbox: &Toolbox) -> Option<String> {
        toolbox.servers().iter().find_map(|connected| {
            let own = self.case().replies.get(&connected.name)?;
            own.elicitation.as_ref()?;
            let unused = connected.client.replies().unused();
            let place = unused.first()?;
            Some(format!(
                "the server `{}` requested nothing that `elicitation` ({place}) answers; answers \
                 that a trial may not need belong into the MCP config",
                connected.name
            ))
        })
    }
}
