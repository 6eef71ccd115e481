//! HTTP request steps, and the checks of their responses.

use std::collections::BTreeMap;
use std::fmt;

use proctor_core::suite::step::content::{ContentExpectation, ObservedContent};
use proctor_core::suite::step::values::FillError;
use proctor_core::suite::step::{HttpBody, HttpStep};
use proctor_record::duration;
use proctor_record::event::{Blame, Phase};
use proctor_record::json;
use proctor_record::verdict::Verdict;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue, LOCATION};
use reqwest::redirect::{Attempt, Policy};
use reqwest::{Client, Method, Request, StatusCode, Url};
use tokio::time::timeout;

use super::{ActionOutcome, STEP_TIMEOUT, Steps};
use crate::secrets;
use proctor_wire::http_client::{AddressError, parse_headers, parse_url};
use proctor_wire::network::{page_text, reason};
use proctor_wire::worker;

/// The maximum size of a body.
const MAX_BODY: usize = 8 << 20;
const MAX_REDIRECTS: usize = 10;
/// How much of a body is shown with a wrong status.
const SHOWN: usize = 500;

/// Why a request can't be sent as written.
#[derive(Debug, thiserror::Error)]
enum RequestError {
    #[error(transparent)]
    Fill(#[from] FillError),
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("`{0}` is not an HTTP method")]
    Method(String),
}

/// The expected status of a response.
#[derive(Debug, Clone, Copy)]
enum ExpectedStatus {
    Exactly(u16),
    /// Any 2xx status, if the step names none.
    Success,
}

impl ExpectedStatus {
    fn holds(self, found: StatusCode) -> bool {
        match self {
            Self::Exactly(status) => found.as_u16() == status,
            Self::Success => found.is_success(),
        }
    }
}

impl fmt::Display for ExpectedStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exactly(status) => status.fmt(f),
            Self::Success => f.write_str("2xx"),
        }
    }
}

/// The part of a response that was read.
struct StepResponse {
    status: StatusCode,
    headers: HeaderMap,
    body: Vec<u8>,
    is_cut: bool,
}

impl Steps {
    pub(super) async fn make_request(&mut self, http: &HttpStep, phase: Phase) -> ActionOutcome {
        let prepared = self.apart(|values| {
            let request = self.request(http)?;
            let content = http.content.as_ref();
            let expected = content.map(|content| content.expected(values));
            Ok::<_, RequestError>((request, expected.transpose()?))
        });
        let (request, expected) = match prepared {
            Ok(prepared) => prepared,
            Err(error) => return ActionOutcome::unknown(&error, Blame::Suite),
        };
        let web = match self.web() {
            Ok(web) => web.clone(),
            Err(error) => return ActionOutcome::unknown(&reason(&error), Blame::Infra),
        };
        let origin = request.url().origin().ascii_serialization();
        let limit = http.timeout.unwrap_or(STEP_TIMEOUT);
        let response = match timeout(limit, exchange(&web, request)).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => {
                let reason = format!("no response from {origin}: {}", reason(&error));
                return ActionOutcome::new(Verdict::fail(reason));
            }
            Err(_) => {
                let limit = duration::render(limit);
                let reason = format!("no complete response from {origin} within {limit}");
                return ActionOutcome::new(Verdict::fail(reason));
            }
        };
        let status = match (http.status, phase) {
            (Some(status), _) => Some(ExpectedStatus::Exactly(status)),
            // An error page proves nothing, whatever it contains.
            (None, Phase::Grade) => Some(ExpectedStatus::Success),
            (None, _) => None,
        };
        worker::on_body(response.body.len(), || {
            self.judge_response(status, expected.as_ref(), &response)
        })
    }

    fn request(&self, http: &HttpStep) -> Result<Request, RequestError> {
        let address = self.values.fill(&http.url)?;
        let method = Method::from_bytes(http.method.as_bytes())
            .map_err(|_| RequestError::Method(http.method.clone()))?;
        let mut headers = BTreeMap::new();
        for (name, value) in &http.headers {
            headers.insert(name.clone(), self.values.fill(value)?);
        }
        let known = secrets::of_request(&address, &headers);
        self.options.redactor.learn(known);
        let mut request = Request::new(method, parse_url(&address)?);
        *request.headers_mut() = parse_headers(&headers)?;
        match &http.body {
            None => {}
            Some(HttpBody::Raw(text)) => *request.body_mut() = Some(self.values.fill(text)?.into()),
            Some(HttpBody::Json(value)) => {
                let value = self.values.fill_value(value)?;
                *request.body_mut() = Some(value.to_string().into());
                let json = HeaderValue::from_static("application/json");
                request.headers_mut().entry(CONTENT_TYPE).or_insert(json);
            }
        }
        Ok(request)
    }

    /// The client of this trial. Its steps share connections with each other and with no other
    /// trial.
    fn web(&mut self) -> Result<&Client, reqwest::Error> {
        if self.web.is_none() {
            // Another crate may have installed one already, which works as well.
            let _ = rustls::crypto::ring::default_provider().install_default();
            let client = Client::builder()
                .redirect(Policy::custom(follow))
                .no_proxy()
                .user_agent(concat!("proctor/", env!("CARGO_PKG_VERSION")))
                .build()?;
            return Ok(self.web.insert(client));
        }
        Ok(self.web.get_or_insert_with(Client::new))
    }

    fn judge_response(
        &self,
        status: Option<ExpectedStatus>,
        expected: Option<&ContentExpectation>,
        response: &StepResponse,
    ) -> ActionOutcome {
        let text = String::from_utf8_lossy(&response.body);
        let mut failures = Vec::new();
        if let Some(wanted) = status
            && !wanted.holds(response.status)
        {
            failures.push(self.wrong_status(wanted, response));
        }
        let mut verdict = None;
        if let Some(expected) = expected {
            let document = json::from_slice(&response.body).ok();
            let found = ObservedContent {
                name: "the body",
                text: &text,
                documents: document.as_slice(),
                redactor: &self.options.redactor,
            };
            if response.is_cut {
                let limit = MAX_BODY >> 20;
                let reason = format!("the body is larger than the limit of {limit} MiB");
                verdict = Some(Verdict::unknown(reason));
            } else {
                failures.extend(expected.failures(found));
            }
        }
        let (verdict, blame) = match (failures.is_empty(), verdict) {
            (false, _) => (Verdict::fail(failures.join("; ")), None),
            (true, Some(unknown)) => (unknown, Some(Blame::Suite)),
            (true, None) => (Verdict::Pass, None),
        };
        ActionOutcome {
            blame,
            outputs: outputs(response, &text),
            ..ActionOutcome::new(verdict).shows(text.into_owned())
        }
    }

    fn wrong_status(&self, wanted: ExpectedStatus, response: &StepResponse) -> String {
        let status = response.status;
        let said = match response.headers.get(LOCATION) {
            Some(to) if status.is_redirection() => {
                let to = self.options.redactor.head(to.as_bytes(), SHOWN);
                format!(", to `{to}`")
            }
            _ if response.body.trim_ascii().is_empty() => String::new(),
            _ => {
                let text = page_text(&response.body);
                format!(": `{}`", self.options.redactor.head(&text, SHOWN))
            }
        };
        format!("expected status {wanted}, found {status}{said}")
    }
}

/// Follows redirects only within an origin, so that credentials reach no other host. An unfollowed
/// redirect is the response.
fn follow(attempt: Attempt<'_>) -> reqwest::redirect::Action {
    let asked = attempt.previous().first().map(Url::origin);
    if asked != Some(attempt.url().origin()) {
        return attempt.stop();
    }
    if attempt.previous().len() > MAX_REDIRECTS {
        return attempt.error(format!("more than {MAX_REDIRECTS} redirects"));
    }
    attempt.follow()
}

async fn exchange(web: &Client, request: Request) -> Result<StepResponse, reqwest::Error> {
    let mut response = web.execute(request).await?;
    let mut body = Vec::new();
    let mut is_cut = false;
    while let Some(chunk) = response.chunk().await? {
        let room = MAX_BODY - body.len();
        body.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            is_cut = true;
            break;
        }
    }
    Ok(StepResponse {
        status: response.status(),
        headers: std::mem::take(response.headers_mut()),
        body,
        is_cut,
    })
}

fn outputs(response: &StepResponse, text: &str) -> BTreeMap<String, String> {
    let headers = response.headers.iter().map(|(name, value)| {
        let value = String::from_utf8_lossy(value.as_bytes());
        (format!("header-{name}"), value.into_owned())
    });
    let status = response.status.as_u16().to_string();
    let own = [("status", status), ("body", text.to_owned())];
    headers
        .chain(own.map(|(name, value)| (name.to_owned(), value)))
        .collect()
}
