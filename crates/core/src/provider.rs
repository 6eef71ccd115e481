//! The providers of models, with their names and environment variables.
//!
//! Its main type is [`Provider`]. A new provider needs a variant and a row of data here, and a
//! module for its wire format in `models`.

use std::fmt;

use serde::{Serialize, Serializer};

/// The API that serves a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Provider {
    /// OpenAI's Chat Completions, and every compatible server.
    OpenAi,
    OpenAiResponses,
    Anthropic,
    Gemini,
    /// A file of rules.
    Scripted,
}

/// Pairs of environment variables: the base URL, and the API key for it.
pub type Variables = [(&'static str, &'static str)];

/// The data of a provider.
struct ProviderInfo {
    name: &'static str,
    aliases: &'static [&'static str],
    base_url: &'static str,
    variables: &'static Variables,
    vendor: Option<&'static str>,
}

const OPENAI_URL: &str = "https://api.openai.com/v1";

const OPENAI_VARIABLES: &Variables = &[
    ("OPENAI_BASE_URL", "OPENAI_API_KEY"),
    ("MODEL_BASE_URL", "MODEL_KEY"),
];

impl Provider {
    /// Every provider, in the order in which they are listed to users.
    pub const ALL: [Self; 5] = [
        Self::OpenAi,
        Self::OpenAiResponses,
        Self::Anthropic,
        Self::Gemini,
        Self::Scripted,
    ];

    const fn info(self) -> ProviderInfo {
        match self {
            Self::OpenAi => ProviderInfo {
                name: "openai",
                aliases: &[],
                base_url: OPENAI_URL,
                variables: OPENAI_VARIABLES,
                vendor: Some("openai"),
            },
            Self::OpenAiResponses => ProviderInfo {
                name: "openai-responses",
                aliases: &[],
                base_url: OPENAI_URL,
                variables: OPENAI_VARIABLES,
                vendor: Some("openai"),
            },
            Self::Anthropic => ProviderInfo {
                name: "anthropic",
                aliases: &[],
                base_url: "https://api.anthropic.com/v1",
                variables: &[("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY")],
                vendor: Some("anthropic"),
            },
            Self::Gemini => ProviderInfo {
                name: "gemini",
                aliases: &["google"],
                base_url: "https://generativelanguage.googleapis.com",
                variables: &[
                    ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY"),
                    ("GEMINI_BASE_URL", "GOOGLE_API_KEY"),
                ],
                vendor: Some("google"),
            },
            Self::Scripted => ProviderInfo {
                name: "scripted",
                aliases: &[],
                base_url: "",
                variables: &[],
                vendor: None,
            },
        }
    }

    /// The word before the colon of a model.
    pub const fn name(self) -> &'static str {
        self.info().name
    }

    /// The default base URL.
    pub const fn base_url(self) -> &'static str {
        self.info().base_url
    }

    /// The environment variables for the base URL and the key, the usual pair first.
    pub const fn variables(self) -> &'static Variables {
        self.info().variables
    }

    /// The company's name, as agents that know many providers write it; `None` for a script.
    pub const fn vendor(self) -> Option<&'static str> {
        self.info().vendor
    }

    /// The full name of one of its models, such as `openai:gpt-5`.
    pub fn model(self, id: &str) -> String {
        format!("{self}:{id}")
    }

    /// Whether `model` is the full name of one of its models.
    pub fn serves(self, model: &str) -> bool {
        let rest = model.strip_prefix(self.name());
        rest.is_some_and(|rest| rest.starts_with(':'))
    }

    /// The provider of that name, or of that alias.
    pub fn parse(word: &str) -> Option<Self> {
        let is_meant = |provider: &Self| provider.words().any(|known| known == word);
        Self::ALL.into_iter().find(is_meant)
    }

    /// Every word that names a provider.
    pub fn all_words() -> impl Iterator<Item = &'static str> {
        Self::ALL.into_iter().flat_map(Self::words)
    }

    fn words(self) -> impl Iterator<Item = &'static str> {
        let facts = self.info();
        std::iter::once(facts.name).chain(facts.aliases.iter().copied())
    }
}

impl fmt::Display for Provider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Provider {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_word_names_one_provider() {
        let words: Vec<&str> = Provider::all_words().collect();
        for (at, word) in words.iter().enumerate() {
            assert!(!words[..at].contains(word), "{word} names two");
            assert!(Provider::parse(word).is_some());
        }
        assert_eq!(Provider::parse("google"), Some(Provider::Gemini));
        assert_eq!(Provider::parse("OpenAI"), None);
    }

    #[test]
    fn each_model_is_served_by_the_provider_of_its_full_name() {
        for provider in Provider::ALL {
            let model = provider.model("openai:m");
            for other in Provider::ALL {
                assert_eq!(other.serves(&model), other == provider, "{other}: {model}");
            }
        }
        assert!(!Provider::OpenAi.serves("openai"));
    }
}
