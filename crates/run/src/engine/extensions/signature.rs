//! Verifies the Sigstore bundle of an extension package.
//!
//! Its main type is [`TrustedSigners`]. A bundle counts only if all of it holds: the certificate chains to the trusted
//! root and was valid when the log recorded the signature, a certificate log knows it, it names the package's own
//! repository, the signature is over this archive, and the transparency log's entry is about this signature.

mod provider;

use std::fs;
use std::path::Path;

use proctor_core::printable::printable;
use proctor_core::suite::{Environment, ReleasePackage};
use sigstore_verify::trust_root::{SIGSTORE_PRODUCTION_TRUSTED_ROOT, TrustedRoot};
use sigstore_verify::types::Bundle;
use sigstore_verify::{Error, SubjectAltName, VerificationPolicy, Verifier};

/// The variable with the path of a trusted root, in the form of `trusted_root.json`, to use instead of sigstore.dev's.
pub const SIGSTORE_ROOT: &str = "PROCTOR_SIGSTORE_ROOT";

/// Who vouches for the identity of a workflow on GitHub.
const ISSUER: &str = "https://token.actions.githubusercontent.com";

/// Why a signature is refused.
#[derive(Debug, thiserror::Error)]
pub enum SignatureError {
    #[error("the trusted root `{path}` of `{SIGSTORE_ROOT}` can't be used: {reason}")]
    Root { path: String, reason: String },
    #[error("it is not a Sigstore bundle, or incomplete: {0}")]
    Malformed(String),
    #[error("{0}")]
    Refused(String),
    #[error("it was signed by `{found}`, and only workflows of {expected} may sign")]
    Signer { found: String, expected: String },
}

/// Whose signatures count.
pub(super) struct TrustedSigners {
    verifier: Verifier,
    policy: VerificationPolicy,
}

impl TrustedSigners {
    /// Those of the root that the environment names, or of sigstore.dev.
    pub(super) fn new(env: &Environment) -> Result<Self, SignatureError> {
        match env.get(SIGSTORE_ROOT).filter(|path| !path.is_empty()) {
            None => Self::of_root(SIGSTORE_PRODUCTION_TRUSTED_ROOT, "sigstore.dev"),
            Some(path) => {
                let text = fs::read_to_string(Path::new(path));
                let text = text.map_err(|error| unusable(path, &error))?;
                Self::of_root(&text, path)
            }
        }
    }

    fn of_root(text: &str, path: &str) -> Result<Self, SignatureError> {
        provider::install();
        let root = TrustedRoot::from_json(text).map_err(|error| unusable(path, &error))?;
        let mut policy = VerificationPolicy::any_identity().require_issuer(ISSUER);
        // A private instance may have no certificate log. That of sigstore.dev always counts.
        if root.ctlogs.is_empty() {
            policy = policy.skip_sct();
        }
        let verifier = Verifier::new(&root).map_err(|error| unusable(path, &error))?;
        Ok(Self { verifier, policy })
    }

    /// The identity that signed the archive of a package.
    pub(super) fn verify(
        &self,
        archive: &[u8],
        bundle: &[u8],
        package: &ReleasePackage,
    ) -> Result<String, SignatureError> {
        let malformed = |reason: String| SignatureError::Malformed(shown(&reason));
        let text = std::str::from_utf8(bundle).map_err(|error| malformed(error.to_string()))?;
        let bundle = Bundle::from_json(text).map_err(|error| malformed(error.to_string()))?;
        let found = provider::with_message(archive, || {
            self.verifier.verify(archive, &bundle, &self.policy)
        });
        let found = found.map_err(|error| refused(&error))?;
        let (owner, repo) = (&package.owner, &package.repo);
        let expected = format!("https://github.com/{owner}/{repo}");
        match found.identity() {
            Some(SubjectAltName::Uri(identity)) if is_of(identity, &expected) => {
                Ok(identity.clone())
            }
            other => Err(SignatureError::Signer {
                found: shown(other.map_or("", SubjectAltName::as_str)),
                expected,
            }),
        }
    }
}

/// Whether an identity belongs to a repository. GitHub ignores the case of its names.
fn is_of(identity: &str, repository: &str) -> bool {
    let is_same = |start: &str| start.eq_ignore_ascii_case(repository);
    identity.get(..repository.len()).is_some_and(is_same)
        && identity[repository.len()..].starts_with('/')
}

fn unusable(path: &str, reason: &dyn std::fmt::Display) -> SignatureError {
    SignatureError::Root {
        path: path.to_owned(),
        reason: shown(&reason.to_string()),
    }
}

fn refused(error: &Error) -> SignatureError {
    let hint = match error {
        Error::Certificate(_) | Error::TransparencyLog(_) | Error::Timestamp(_) => format!(
            "; if the package is signed by an instance other than sigstore.dev, or with newer keys, set \
             `{SIGSTORE_ROOT}` to its `trusted_root.json`"
        ),
        _ => String::new(),
    };
    SignatureError::Refused(format!("{}{hint}", shown(&error.to_string())))
}

/// Text from a bundle, for a message.
fn shown(text: &str) -> String {
    printable(text).into_owned()
}

#[cfg(test)]
mod tests;
