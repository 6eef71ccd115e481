//! Recognizes API requests by their path. Agents build base URLs in different ways, so only the end
//! of a path counts.

use http::{Method, Uri};

use super::WireFormat;

/// The API that a request asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ApiRoute {
    /// A reply of the model.
    Ask(CompletionRoute),
    /// The number of tokens of a request.
    Count(WireFormat),
    /// The list of models.
    Models(WireFormat),
    /// The description of one model.
    Model(WireFormat, String),
    /// A check whether the server is up.
    Greeting,
    /// An unknown path, with the format to answer in.
    Unknown(WireFormat),
}

/// A request for a completion, as far as the path defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CompletionRoute {
    pub(crate) format: WireFormat,
    /// The model, if the path names it.
    pub(crate) model: Option<String>,
    /// Whether the path asks for a stream.
    pub(crate) stream: Option<StreamFraming>,
}

/// The framing of a stream, if the path defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StreamFraming {
    Events,
    List,
}

impl ApiRoute {
    /// The wire format of the request.
    pub(crate) fn format(&self) -> WireFormat {
        match self {
            Self::Ask(ask) => ask.format,
            Self::Count(format)
            | Self::Models(format)
            | Self::Model(format, _)
            | Self::Unknown(format) => *format,
            Self::Greeting => WireFormat::Chat,
        }
    }

    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let path = uri.path().trim_end_matches('/');
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let is_gemini = steps
            .iter()
            .any(|step| ["v1beta", "v1alpha", "v1beta1"].contains(step));
        let guess = match &steps[..] {
            [.., "messages" | "count_tokens"] => WireFormat::Messages,
            _ if is_gemini => WireFormat::Gemini,
            [.., "responses"] => WireFormat::Responses,
            _ => WireFormat::Chat,
        };
        let asks = |format| {
            Self::Ask(CompletionRoute {
                format,
                model: None,
                stream: None,
            })
        };
        match (method, &steps[..]) {
            (&Method::HEAD, _) | (&Method::GET, []) => Self::Greeting,
            (&Method::GET, [.., "models"]) => Self::Models(guess),
            (&Method::GET, [.., "models", id]) => Self::Model(guess, (*id).to_owned()),
            (&Method::POST, [.., "chat", "completions"]) => asks(WireFormat::Chat),
            (&Method::POST, [.., "responses"]) => asks(WireFormat::Responses),
            (&Method::POST, [.., "messages"]) => asks(WireFormat::Messages),
            (&Method::POST, [.., "messages", "count_tokens"]) => Self::Count(WireFormat::Messages),
            (&Method::POST, [.., "models", verb]) => gemini(verb, uri.query().unwrap_or_default()),
            _ => Self::Unknown(guess),
        }
    }
}

/// Parses `MODEL:VERB`, the last part of a path of Gemini.
fn gemini(verb: &str, query: &str) -> ApiRoute {
    let (model, verb) = verb.rsplit_once(':').unwrap_or((verb, ""));
    let ask = |stream| {
        ApiRoute::Ask(CompletionRoute {
            format: WireFormat::Gemini,
            model: Some(model.to_owned()),
            stream,
        })
    };
    match verb {
        "generateContent" => ask(None),
        "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => {
            ask(Some(StreamFraming::Events))
        }
        "streamGenerateContent" => ask(Some(StreamFraming::List)),
        "countTokens" => ApiRoute::Count(WireFormat::Gemini),
        _ => ApiRoute::Unknown(WireFormat::Gemini),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn route(line: &str) -> ApiRoute {
        let (method, uri) = line.split_once(' ').unwrap();
        ApiRoute::of(&method.parse().unwrap(), &uri.parse().unwrap())
    }

    #[test]
    fn only_the_end_of_a_path_counts() {
        for (line, format) in [
            ("POST /v1/chat/completions", WireFormat::Chat),
            ("POST /chat/completions", WireFormat::Chat),
            ("POST /openai/v1/chat/completions/", WireFormat::Chat),
            ("POST /v1/responses", WireFormat::Responses),
            ("POST /responses", WireFormat::Responses),
            ("POST /v1/messages?beta=true", WireFormat::Messages),
            ("POST /messages", WireFormat::Messages),
        ] {
            let expected = ApiRoute::Ask(CompletionRoute {
                format,
                model: None,
                stream: None,
            });
            assert_eq!(route(line), expected, "{line}");
        }
        for (line, expected) in [
            (
                "POST /v1/messages/count_tokens",
                ApiRoute::Count(WireFormat::Messages),
            ),
            (
                "POST /v1beta/models/m:countTokens",
                ApiRoute::Count(WireFormat::Gemini),
            ),
            (
                "POST /v1beta/models/m:embedContent",
                ApiRoute::Unknown(WireFormat::Gemini),
            ),
            ("GET /v1/models", ApiRoute::Models(WireFormat::Chat)),
            ("GET /v1beta/models", ApiRoute::Models(WireFormat::Gemini)),
            (
                "GET /v1/models/m",
                ApiRoute::Model(WireFormat::Chat, "m".to_owned()),
            ),
            ("HEAD /", ApiRoute::Greeting),
            ("HEAD /api/hello", ApiRoute::Greeting),
            ("GET /", ApiRoute::Greeting),
            (
                "GET /v1/chat/completions",
                ApiRoute::Unknown(WireFormat::Chat),
            ),
            ("POST /v1/embeddings", ApiRoute::Unknown(WireFormat::Chat)),
        ] {
            assert_eq!(route(line), expected, "{line}");
        }
    }

    #[test]
    fn the_path_of_gemini_names_the_model() {
        for (line, model, stream) in [
            (
                "POST /v1beta/models/gemini-2.5-pro:generateContent",
                "gemini-2.5-pro",
                None,
            ),
            (
                "POST /v1beta/models/m:streamGenerateContent?alt=sse",
                "m",
                Some(StreamFraming::Events),
            ),
            (
                "POST /v1beta/models/m:streamGenerateContent?key=k",
                "m",
                Some(StreamFraming::List),
            ),
        ] {
            let expected = ApiRoute::Ask(CompletionRoute {
                format: WireFormat::Gemini,
                model: Some(model.to_owned()),
                stream,
            });
            assert_eq!(route(line), expected, "{line}");
        }
    }
}
