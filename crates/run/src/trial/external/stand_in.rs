//! The script that stands in for an external agent's model, for one trial.
//!
//! Its main type is [`StandIn`]. What the agent asks is in the record, and so is what it took.

use std::sync::{Arc, Mutex, PoisonError};

use proctor_core::event::Purpose;
use proctor_core::script::Script;

use crate::model::serve::{ModelServer, Said, Served};
use crate::model::{Format, Meter, witness};
use crate::recorder::Recorder;

/// A script that is served on loopback until this is dropped.
pub(super) struct StandIn {
    server: ModelServer,
    trouble: Arc<Mutex<Option<String>>>,
}

impl StandIn {
    /// Serves a script, by the name that the suite gives it.
    pub(super) async fn start(
        script: &Script,
        name: String,
        recorder: Recorder,
        meter: Arc<Meter>,
    ) -> std::io::Result<Self> {
        let trouble: Arc<Mutex<Option<String>>> = Arc::default();
        let noted = trouble.clone();
        let watch = move |served: &Served| {
            let purpose = if served.is_side_call {
                Purpose::Side
            } else {
                Purpose::Agent
            };
            if let (Said::Nothing(why), Purpose::Agent) = (&served.said, purpose) {
                let mut noted = noted.lock().unwrap_or_else(PoisonError::into_inner);
                noted.get_or_insert_with(|| why.clone());
            }
            let Some(exchange) = &served.exchange else {
                return;
            };
            let replied = match (&exchange.reply, &served.said) {
                (Some(reply), _) => Ok(reply),
                (None, Said::Fault(why) | Said::Nothing(why)) => Err(why.as_str()),
                (None, _) => Err("there was no reply"),
            };
            let to = (&recorder, meter.as_ref());
            witness(to, (purpose, &name), &exchange.request, replied);
        };
        Ok(Self {
            server: ModelServer::watched(script.clone(), 0, watch).await?,
            trouble,
        })
    }

    /// Where an agent finds it.
    pub(super) fn base(&self, format: Format) -> String {
        let address = self.server.address();
        match format {
            Format::Chat | Format::Responses => format!("http://{address}/v1"),
            Format::Messages | Format::Gemini => format!("http://{address}"),
        }
    }

    /// What was asked that the script has no answer to.
    pub(super) fn trouble(&self) -> Option<String> {
        let trouble = self.trouble.lock();
        trouble.unwrap_or_else(PoisonError::into_inner).clone()
    }
}
