//! What lets a client in.
//!
//! Its main type is [`AccessToken`].

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

/// 256 bits that nobody can guess.
#[derive(Clone)]
pub struct AccessToken(String);

impl AccessToken {
    /// A new one; `None` if the system has no random numbers.
    pub fn random() -> Option<Self> {
        let mut bytes = [0; 32];
        let provider = rustls::crypto::ring::default_provider();
        provider.secure_random.fill(&mut bytes).ok()?;
        Some(Self(HEXLOWER.encode(&bytes)))
    }

    /// The token itself, for a configuration that only its owner can read.
    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Whether this is it. How long that takes tells nothing of the token: hashes are compared.
    pub fn is(&self, shown: &[u8]) -> bool {
        Sha256::digest(self.0.as_bytes()) == Sha256::digest(shown)
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
    fn a_token_is_itself_and_nothing_else() {
        let (one, other) = (
            AccessToken::random().unwrap(),
            AccessToken::random().unwrap(),
        );
        assert_eq!(one.reveal().len(), 64);
        assert!(one.is(one.reveal().as_bytes()));
        assert!(!one.is(other.reveal().as_bytes()));
        assert!(!one.is(b""));
        assert!(!format!("{one:?}").contains(one.reveal()));
    }
}
