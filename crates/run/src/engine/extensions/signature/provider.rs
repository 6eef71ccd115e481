//! The cryptography of `sigstore-verify`, done by ring.
//!
//! Main functions: [`install`] and [`with_message`]. ring verifies no signature over a digest alone, so the message stays
//! at hand while its bundle is verified. A digest of another message is refused.

use std::cell::RefCell;

use ring::digest::{self, Context};
use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
use sigstore_verify::crypto::{
    CryptoProvider, Error, HashContext, Result, SigningScheme, install_default_provider,
};
use sigstore_verify::types::HashAlgorithm;

thread_local! {
    static MESSAGE: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Makes ring do the cryptography of this process.
pub(super) fn install() {
    // Another part of the process may have installed one already.
    let _ = install_default_provider(&RingProvider);
}

/// Verifies a bundle about a message.
pub(super) fn with_message<T>(message: &[u8], verify: impl FnOnce() -> T) -> T {
    MESSAGE.set(message.to_vec());
    let verified = verify();
    MESSAGE.take();
    verified
}

#[derive(Debug)]
struct RingProvider;

struct RingHash(Context);

impl HashContext for RingHash {
    fn update(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn finalize(self: Box<Self>) -> Vec<u8> {
        self.0.finish().as_ref().to_vec()
    }
}

impl CryptoProvider for RingProvider {
    fn hash(&self, algorithm: HashAlgorithm) -> Result<Box<dyn HashContext>> {
        Ok(Box::new(RingHash(Context::new(hash_of(algorithm)?))))
    }

    fn verify_raw(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        data: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let key = UnparsedPublicKey::new(algorithm_of(scheme)?, key);
        key.verify(data, signature)
            .map_err(|_| Error::Verification(format!("the {} signature is wrong", scheme.name())))
    }

    fn verify_prehashed(
        &self,
        scheme: SigningScheme,
        key: &[u8],
        digest: &[u8],
        signature: &[u8],
    ) -> Result<()> {
        let Some(algorithm) = scheme.hash_algorithm() else {
            return Err(unsupported(scheme.name()));
        };
        let algorithm = hash_of(algorithm)?;
        MESSAGE.with_borrow(|message| {
            if digest::digest(algorithm, message).as_ref() != digest {
                return Err(Error::Verification(
                    "the digest is of other data".to_owned(),
                ));
            }
            self.verify_raw(scheme, key, message, signature)
        })
    }
}

fn unsupported(name: &str) -> Error {
    Error::UnsupportedAlgorithm(name.to_owned())
}

fn hash_of(algorithm: HashAlgorithm) -> Result<&'static digest::Algorithm> {
    match algorithm {
        HashAlgorithm::Sha2256 => Ok(&digest::SHA256),
        HashAlgorithm::Sha2384 => Ok(&digest::SHA384),
        HashAlgorithm::Sha2512 => Ok(&digest::SHA512),
        other => Err(unsupported(&other.to_string())),
    }
}

fn algorithm_of(scheme: SigningScheme) -> Result<&'static dyn VerificationAlgorithm> {
    Ok(match scheme {
        SigningScheme::EcdsaP256Sha256 => &signature::ECDSA_P256_SHA256_ASN1,
        SigningScheme::EcdsaP256Sha384 => &signature::ECDSA_P256_SHA384_ASN1,
        SigningScheme::EcdsaP384Sha256 => &signature::ECDSA_P384_SHA256_ASN1,
        SigningScheme::EcdsaP384Sha384 => &signature::ECDSA_P384_SHA384_ASN1,
        SigningScheme::Ed25519 => &signature::ED25519,
        SigningScheme::RsaPssSha256 => &signature::RSA_PSS_2048_8192_SHA256,
        SigningScheme::RsaPssSha384 => &signature::RSA_PSS_2048_8192_SHA384,
        SigningScheme::RsaPssSha512 => &signature::RSA_PSS_2048_8192_SHA512,
        SigningScheme::RsaPkcs1Sha256 => &signature::RSA_PKCS1_2048_8192_SHA256,
        SigningScheme::RsaPkcs1Sha384 => &signature::RSA_PKCS1_2048_8192_SHA384,
        SigningScheme::RsaPkcs1Sha512 => &signature::RSA_PKCS1_2048_8192_SHA512,
        other => return Err(unsupported(other.name())),
    })
}
