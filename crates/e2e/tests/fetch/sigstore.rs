//! A private Sigstore: a certificate authority, a transparency log, and the bundles that they vouch for.
//!
//! Certificates are written byte by byte, so that they can be wrong in one place.

use data_encoding::{BASE64, HEXLOWER};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

pub const IDENTITY: &str =
    "https://github.com/acme/steps/.github/workflows/release.yml@refs/tags/v1";
pub const ISSUER: &str = "https://token.actions.githubusercontent.com";
/// Five minutes into the ten for which certificates are valid.
pub const SIGNED_AT: u64 = 1_767_225_900;
const VALID: [&str; 2] = ["260101000000Z", "260101001000Z"];

const ECDSA_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const BASIC_CONSTRAINTS: &[u8] = &[0x55, 0x1d, 0x13];
const KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x0f];
const EXTENDED_KEY_USAGE: &[u8] = &[0x55, 0x1d, 0x25];
const CODE_SIGNING: &[u8] = &[0x2b, 0x06, 0x01, 0x05, 0x05, 0x07, 0x03, 0x03];
const ALTERNATIVE_NAME: &[u8] = &[0x55, 0x1d, 0x11];
/// Fulcio's extension with the issuer of the identity.
const TOKEN_ISSUER: &[u8] = &[0x2b, 6, 1, 4, 1, 0x83, 0xbf, 0x30, 1, 8];

const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const OCTETS: u8 = 0x04;
const BITS: u8 = 0x03;

fn der(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let content = parts.concat();
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let head = match (high, low) {
        (0, low) if low < 0x80 => vec![tag, low],
        (0, low) => vec![tag, 0x81, low],
        _ => vec![tag, 0x82, high, low],
    };
    [head, content].concat()
}

fn algorithm() -> Vec<u8> {
    der(SEQUENCE, &[&der(OID, &[ECDSA_SHA256])])
}

fn name(text: &str) -> Vec<u8> {
    let pair = der(
        SEQUENCE,
        &[&der(OID, &[COMMON_NAME]), &der(0x0c, &[text.as_bytes()])],
    );
    der(SEQUENCE, &[&der(0x31, &[&pair])])
}

fn extension(oid: &[u8], is_critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if is_critical {
        der(0x01, &[&[0xff]])
    } else {
        Vec::new()
    };
    der(
        SEQUENCE,
        &[&der(OID, &[oid]), &critical, &der(OCTETS, &[value])],
    )
}

pub struct Key(EcdsaKeyPair);

impl Key {
    pub fn new() -> Self {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        Self(EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref(), &random).unwrap())
    }

    fn sign(&self, data: &[u8]) -> Vec<u8> {
        let signed = self.0.sign(&SystemRandom::new(), data).unwrap();
        signed.as_ref().to_vec()
    }

    /// The public key with its algorithm.
    fn public(&self) -> Vec<u8> {
        let algorithm = der(SEQUENCE, &[&der(OID, &[EC_KEY]), &der(OID, &[P256])]);
        let bits = der(BITS, &[&[0], self.0.public_key().as_ref()]);
        der(SEQUENCE, &[&algorithm, &bits])
    }

    fn certificate(
        &self,
        subject: &[u8],
        valid: [&str; 2],
        key: &Key,
        extensions: &[Vec<u8>],
    ) -> Vec<u8> {
        let valid = valid.map(|time| der(0x17, &[time.as_bytes()]));
        let content = der(
            SEQUENCE,
            &[
                &der(0xa0, &[&der(0x02, &[&[2]])]),
                &der(0x02, &[&[7]]),
                &algorithm(),
                &name("private"),
                &der(SEQUENCE, &[&valid[0], &valid[1]]),
                subject,
                &key.public(),
                &der(0xa3, &[&der(SEQUENCE, &[&extensions.concat()])]),
            ],
        );
        let signature = der(BITS, &[&[0], &self.sign(&content)]);
        der(SEQUENCE, &[&content, &algorithm(), &signature])
    }
}

/// What a bundle says.
pub struct Claim<'a> {
    pub identity: &'a str,
    pub issuer: &'a str,
    /// When the log says that it recorded the signature.
    pub at: u64,
    /// The key that signs, if it is not the certificate's.
    pub signing: Option<&'a Key>,
    /// The authority, if it is not that of the root.
    pub authority: Option<&'a Key>,
}

impl Default for Claim<'_> {
    fn default() -> Self {
        Self {
            identity: IDENTITY,
            issuer: ISSUER,
            at: SIGNED_AT,
            signing: None,
            authority: None,
        }
    }
}

pub struct Sigstore {
    authority: Key,
    log: Key,
}

impl Sigstore {
    pub fn new() -> Self {
        Self {
            authority: Key::new(),
            log: Key::new(),
        }
    }

    /// The trusted root, in the form of `trusted_root.json`.
    pub fn root(&self) -> Value {
        let constraints = der(SEQUENCE, &[&der(0x01, &[&[0xff]])]);
        let extensions = [
            extension(BASIC_CONSTRAINTS, true, &constraints),
            extension(KEY_USAGE, true, &der(BITS, &[&[1, 0x06]])),
        ];
        let valid = ["250101000000Z", "350101000000Z"];
        let key = &self.authority;
        let authority = key.certificate(&name("private"), valid, key, &extensions);
        let since = json!({"start": "2025-01-01T00:00:00Z"});
        json!({
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [{
                "baseUrl": "https://log.example.com",
                "hashAlgorithm": "SHA2_256",
                "publicKey": {
                    "rawBytes": BASE64.encode(&self.log.public()),
                    "keyDetails": "PKIX_ECDSA_P256_SHA_256",
                    "validFor": since,
                },
                "logId": {"keyId": BASE64.encode(&self.log_id())},
            }],
            "certificateAuthorities": [{
                "subject": {"organization": "example.com", "commonName": "private"},
                "uri": "https://ca.example.com",
                "certChain": {"certificates": [{"rawBytes": BASE64.encode(&authority)}]},
                "validFor": since,
            }],
            "ctlogs": [],
            "timestampAuthorities": [],
        })
    }

    fn log_id(&self) -> Vec<u8> {
        Sha256::digest(self.log.public()).to_vec()
    }

    /// The bundle of an archive.
    pub fn bundle(&self, archive: &[u8], claim: &Claim<'_>) -> Value {
        let key = Key::new();
        let certificate = self.leaf(&key, claim);
        let signature = claim.signing.unwrap_or(&key).sign(archive);
        let digest = Sha256::digest(archive);
        json!({
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": BASE64.encode(&certificate)},
                "tlogEntries": [self.entry(&digest, &signature, &certificate, claim.at)],
            },
            "messageSignature": {
                "messageDigest": {"algorithm": "SHA2_256", "digest": BASE64.encode(&digest)},
                "signature": BASE64.encode(&signature),
            },
        })
    }

    fn leaf(&self, key: &Key, claim: &Claim<'_>) -> Vec<u8> {
        let usage = der(SEQUENCE, &[&der(OID, &[CODE_SIGNING])]);
        let identity = der(SEQUENCE, &[&der(0x86, &[claim.identity.as_bytes()])]);
        let issuer = der(0x0c, &[claim.issuer.as_bytes()]);
        let extensions = [
            extension(KEY_USAGE, true, &der(BITS, &[&[7, 0x80]])),
            extension(EXTENDED_KEY_USAGE, false, &usage),
            extension(ALTERNATIVE_NAME, true, &identity),
            extension(TOKEN_ISSUER, false, &issuer),
        ];
        let authority = claim.authority.unwrap_or(&self.authority);
        authority.certificate(&der(SEQUENCE, &[]), VALID, key, &extensions)
    }

    /// The second of the two entries that the log has.
    fn entry(&self, digest: &[u8], signature: &[u8], certificate: &[u8], at: u64) -> Value {
        let pem = format!(
            "-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n",
            BASE64.encode(certificate)
        );
        let body = json!({
            "apiVersion": "0.0.1",
            "kind": "hashedrekord",
            "spec": {
                "data": {"hash": {"algorithm": "sha256", "value": HEXLOWER.encode(digest)}},
                "signature": {
                    "content": BASE64.encode(signature),
                    "publicKey": {"content": BASE64.encode(pem.as_bytes())},
                },
            },
        });
        let body = body.to_string();
        let promise = json!({
            "body": BASE64.encode(body.as_bytes()),
            "integratedTime": at,
            "logID": HEXLOWER.encode(&self.log_id()),
            "logIndex": 1,
        });
        let promise = self.log.sign(promise.to_string().as_bytes());
        let first = Sha256::digest(b"\0first");
        let leaf = Sha256::digest([b"\0", body.as_bytes()].concat());
        let root = Sha256::digest([&[1][..], &first, &leaf].concat());
        json!({
            "logIndex": "1",
            "logId": {"keyId": BASE64.encode(&self.log_id())},
            "kindVersion": {"kind": "hashedrekord", "version": "0.0.1"},
            "integratedTime": at.to_string(),
            "inclusionPromise": {"signedEntryTimestamp": BASE64.encode(&promise)},
            "inclusionProof": {
                "logIndex": "1",
                "rootHash": BASE64.encode(&root),
                "treeSize": "2",
                "hashes": [BASE64.encode(&first)],
                "checkpoint": {"envelope": self.checkpoint(&root)},
            },
            "canonicalizedBody": BASE64.encode(body.as_bytes()),
        })
    }

    fn checkpoint(&self, root: &[u8]) -> String {
        let origin = "log.example.com";
        let text = format!("{origin} - 1\n2\n{}\n", BASE64.encode(root));
        let signature = [&self.log_id()[..4], &self.log.sign(text.as_bytes())].concat();
        format!("{text}\n— {origin} {}\n", BASE64.encode(&signature))
    }
}
