//! The token that authorizes a client.
//!
//! Its main type is [`AccessToken`].

use data_encoding::HEXLOWER;
use subtle::ConstantTimeEq;

/// A random token of 256 bits.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// Creates a token; `None` if the system can't generate random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 32];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).ok()?;
        Some(Self(HEXLOWER.encode(&bytes)))
    }

    /// Returns the token itself, for a config that only its owner can read.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Compares in constant time, so the duration reveals only the length, which is always the same.
    pub fn is(&self, shown: &[u8]) -> bool {
        self.0.as_bytes().ct_eq(shown).into()
    }
}

impl std::fmt::Debug for AccessToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_matches_only_itself() {
        let (one, other) = (
            AccessToken::random().unwrap(),
            AccessToken::random().unwrap(),
        );
        assert_eq!(one.reveal().len(), 64);
        assert!(one.is(one.reveal().as_bytes()));
        assert!(!one.is(other.reveal().as_bytes()));
        assert!(!one.is(b""));
        assert!(!one.is(&one.reveal().as_bytes()[..63]));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }
}
