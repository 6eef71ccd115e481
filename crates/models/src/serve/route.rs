//! What a path asks for. Agents put base addresses together in ways of their own, so only the end of
//! a path counts.

use http::{Method, Uri};

use super::Format;

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Route {
    /// A reply of the model.
    Ask(Ask),
    /// How many tokens a question would take.
    Count(Format),
    /// Which models there are.
    Models(Format),
    /// What is known of one.
    Model(Format, String),
    /// Whether anybody is there.
    Greeting,
    /// Something else, in somebody's words.
    Unknown(Format),
}

/// A question, as far as the path tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ask {
    pub(crate) format: Format,
    /// The model, where the path names it.
    pub(crate) model: Option<String>,
    /// Whether the path asks for a stream.
    pub(crate) stream: Option<Streamed>,
}

/// How a stream is written, where the path says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streamed {
    /// As server-sent events.
    Events,
    /// As one list.
    List,
}

impl Route {
    /// In whose words it is asked.
    pub(crate) fn format(&self) -> Format {
        match self {
            Self::Ask(ask) => ask.format,
            Self::Count(format)
            | Self::Models(format)
            | Self::Model(format, _)
            | Self::Unknown(format) => *format,
            Self::Greeting => Format::Chat,
        }
    }

    pub(crate) fn of(method: &Method, uri: &Uri) -> Self {
        let path = uri.path().trim_end_matches('/');
        let steps: Vec<&str> = path.split('/').filter(|step| !step.is_empty()).collect();
        let is_gemini = steps
            .iter()
            .any(|step| ["v1beta", "v1alpha", "v1beta1"].contains(step));
        let guess = match &steps[..] {
            [.., "messages" | "count_tokens"] => Format::Messages,
            _ if is_gemini => Format::Gemini,
            [.., "responses"] => Format::Responses,
            _ => Format::Chat,
        };
        let asks = |format| {
            Self::Ask(Ask {
                format,
                model: None,
                stream: None,
            })
        };
        match (method, &steps[..]) {
            (&Method::HEAD, _) | (&Method::GET, []) => Self::Greeting,
            (&Method::GET, [.., "models"]) => Self::Models(guess),
            (&Method::GET, [.., "models", id]) => Self::Model(guess, (*id).to_owned()),
            (&Method::POST, [.., "chat", "completions"]) => asks(Format::Chat),
            (&Method::POST, [.., "responses"]) => asks(Format::Responses),
            (&Method::POST, [.., "messages"]) => asks(Format::Messages),
            (&Method::POST, [.., "messages", "count_tokens"]) => Self::Count(Format::Messages),
            (&Method::POST, [.., "models", verb]) => gemini(verb, uri.query().unwrap_or_default()),
            _ => Self::Unknown(guess),
        }
    }
}

/// `MODEL:VERB`.
fn gemini(verb: &str, query: &str) -> Route {
    let (model, verb) = verb.rsplit_once(':').unwrap_or((verb, ""));
    let ask = |stream| {
        Route::Ask(Ask {
            format: Format::Gemini,
            model: Some(model.to_owned()),
            stream,
        })
    };
    match verb {
        "generateContent" => ask(None),
        "streamGenerateContent" if query.split('&').any(|pair| pair == "alt=sse") => {
            ask(Some(Streamed::Events))
        }
        "streamGenerateContent" => ask(Some(Streamed::List)),
        "countTokens" => Route::Count(Format::Gemini),
        _ => Route::Unknown(Format::Gemini),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_end_of_a_path_counts() {
        let ask = |format, model: Option<&str>, stream| {
            Route::Ask(Ask {
                format,
                model: model.map(str::to_owned),
                stream,
            })
        };
        for (line, expected) in [
            ("POST /v1/chat/completions", ask(Format::Chat, None, None)),
            ("POST /chat/completions", ask(Format::Chat, None, None)),
            (
                "POST /openai/v1/chat/completions/",
                ask(Format::Chat, None, None),
            ),
            ("POST /v1/responses", ask(Format::Responses, None, None)),
            ("POST /responses", ask(Format::Responses, None, None)),
            (
                "POST /v1/messages?beta=true",
                ask(Format::Messages, None, None),
            ),
            ("POST /messages", ask(Format::Messages, None, None)),
            (
                "POST /v1/messages/count_tokens",
                Route::Count(Format::Messages),
            ),
            (
                "POST /v1beta/models/gemini-2.5-pro:generateContent",
                ask(Format::Gemini, Some("gemini-2.5-pro"), None),
            ),
            (
                "POST /v1beta/models/m:streamGenerateContent?alt=sse",
                ask(Format::Gemini, Some("m"), Some(Streamed::Events)),
            ),
            (
                "POST /v1beta/models/m:streamGenerateContent?key=k",
                ask(Format::Gemini, Some("m"), Some(Streamed::List)),
            ),
            (
                "POST /v1beta/models/m:countTokens",
                Route::Count(Format::Gemini),
            ),
            (
                "POST /v1beta/models/m:embedContent",
                Route::Unknown(Format::Gemini),
            ),
            ("GET /v1/models", Route::Models(Format::Chat)),
            ("GET /v1beta/models", Route::Models(Format::Gemini)),
            (
                "GET /v1/models/m",
                Route::Model(Format::Chat, "m".to_owned()),
            ),
            ("HEAD /", Route::Greeting),
            ("HEAD /api/hello", Route::Greeting),
            ("GET /", Route::Greeting),
            ("GET /v1/chat/completions", Route::Unknown(Format::Chat)),
            ("POST /v1/embeddings", Route::Unknown(Format::Chat)),
        ] {
            let (method, uri) = line.split_once(' ').unwrap();
            let route = Route::of(&method.parse().unwrap(), &uri.parse().unwrap());
            assert_eq!(route, expected, "{line}");
        }
    }
}
