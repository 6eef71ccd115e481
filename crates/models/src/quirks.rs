//! Features that a model does not support, learned from its first error and remembered for later
//! requests.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use proctor_record::model::ModelRequest;
use serde_json::Value;

use super::ModelError;
use super::http::{ModelEndpoint, RawResponse};
use super::media;

/// The features that a model does not support.
#[derive(Debug, Default)]
pub(super) struct Quirks {
    no_temperature: AtomicBool,
    no_force: AtomicBool,
    no_thoughts: AtomicBool,
    no_media: AtomicBool,
    other_limit: AtomicBool,
    /// The longest reply in tokens; 0 if unknown.
    longest: AtomicU64,
}

/// The features to use in one request.
#[derive(Debug, Clone, Copy, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is an independent feature"
)]
pub(super) struct AcceptedFeatures {
    pub(super) temperature: Option<f64>,
    /// Whether a tool call can be forced.
    pub(super) force: bool,
    /// Whether the model's reasoning can be requested, to send it back later.
    pub(super) thoughts: bool,
    /// Whether tool results can hold media.
    pub(super) media: bool,
    /// Whether to use the other name for the limit of the reply's length.
    pub(super) other_limit: bool,
    pub(super) longest: Option<u64>,
}

impl Quirks {
    /// The number of features, and so the maximum number of retries without one.
    const SORTS: u32 = 6;

    /// Sends a request. If the model does not support a feature, sends it again without that
    /// feature.
    pub(super) async fn ask(
        &self,
        endpoint: &ModelEndpoint,
        request: &ModelRequest,
        body: impl Fn(&ModelRequest, AcceptedFeatures) -> Value,
    ) -> Result<RawResponse, ModelError> {
        let mut left = Self::SORTS;
        loop {
            let taken = self.taken(request);
            let body = if taken.media {
                body(request, taken)
            } else {
                body(&media::without(request), taken)
            };
            match endpoint.post(&body).await {
                Err(error) if left > 0 && self.learn(&error, request, taken) => left -= 1,
                answered => return answered,
            }
        }
    }

    /// The features of a request that the model supports, as far as known.
    fn taken(&self, request: &ModelRequest) -> AcceptedFeatures {
        let longest = self.longest.load(Ordering::Relaxed);
        AcceptedFeatures {
            temperature: request
                .temperature
                .filter(|_| !self.no_temperature.load(Ordering::Relaxed)),
            force: !self.no_force.load(Ordering::Relaxed),
            thoughts: !self.no_thoughts.load(Ordering::Relaxed),
            media: !self.no_media.load(Ordering::Relaxed),
            other_limit: self.other_limit.load(Ordering::Relaxed),
            longest: (longest > 0).then_some(longest),
        }
    }

    /// Learns from an error. Returns whether a retry can help.
    fn learn(&self, error: &ModelError, request: &ModelRequest, sent: AcceptedFeatures) -> bool {
        let ModelError::Rejected { detail } = error else {
            return false;
        };
        let detail = detail.to_lowercase();
        if sent.temperature.is_some() && detail.contains("temperature") {
            self.no_temperature.store(true, Ordering::Relaxed);
        } else if sent.thoughts && detail.contains("encrypted") {
            self.no_thoughts.store(true, Ordering::Relaxed);
        } else if sent.force
            && request.must_call.is_some()
            && (detail.contains("tool_choice") || detail.contains("function_calling_config"))
        {
            self.no_force.store(true, Ordering::Relaxed);
        } else if sent.media && media::is_shown(request) && media::is_meant(&detail) {
            self.no_media.store(true, Ordering::Relaxed);
        } else if let Some(longest) = stated_maximum(&detail) {
            self.longest.store(longest, Ordering::Relaxed);
        } else if request.max_tokens.is_some()
            && (detail.contains("max_tokens") || detail.contains("max_completion_tokens"))
        {
            self.other_limit.store(true, Ordering::Relaxed);
        }
        // Another request may have learned it in the meantime. A known quirk does not explain this
        // error.
        self.taken(request) != sent
    }
}

/// The limit in `max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens`.
fn stated_maximum(detail: &str) -> Option<u64> {
    let (_, rest) = detail.split_once("max_tokens: ")?;
    let (_, rest) = rest.split_once("> ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|limit| *limit > 0)
}
