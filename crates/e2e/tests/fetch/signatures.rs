//! Signed extension packages: a published signature must hold before anything is pinned, cached or run.

use std::fs;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::extensions::{PROGRAM, Stage, tagged};
use crate::releases::Served;
use crate::repository::{refused, said};
use crate::sigstore::{Claim, IDENTITY, Key, SIGNED_AT, Sigstore};

/// A stage whose package is signed.
fn signed(claim: &Claim<'_>) -> (Stage, Value) {
    let stage = tagged();
    let bundle = stage.sigstore.bundle(&stage.archive("v1"), claim);
    (stage, bundle)
}

fn publish(stage: &Stage, bundle: &[u8]) {
    let path = format!("{}.bundle", Stage::asset("v1"));
    stage.releases.put(&path, Served::Body(bundle.to_vec()));
}

fn is_refused(stage: &Stage, bundle: &Value, expected: &str) {
    publish(stage, bundle.to_string().as_bytes());
    let seen = stage.check(&["--yes"]).run();
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    refused(&stage.fetch(&["--yes"]), expected);
    for text in [expected, "the signature of release v1 is refused"] {
        assert!(seen.stderr.contains(text), "{}\n{text}", seen.stderr);
    }
    stage.is_untouched();
}

fn refuses(claim: &Claim<'_>, expected: &str) {
    let (stage, bundle) = signed(claim);
    is_refused(&stage, &bundle, expected);
}

/// Changes one value of a right bundle.
fn refuses_with(at: &str, value: Value, expected: &str) {
    let (stage, mut bundle) = signed(&Claim::default());
    *bundle.pointer_mut(at).unwrap() = value;
    is_refused(&stage, &bundle, expected);
}

#[test]
fn a_valid_signature_is_shown_and_its_signer_is_pinned() {
    let (stage, bundle) = signed(&Claim::default());
    publish(&stage, bundle.to_string().as_bytes());
    refused(
        &stage.fetch(&[]),
        &format!("signature  valid, by {IDENTITY}"),
    );
    stage.is_untouched();
    let (code, text) = said(&stage.fetch(&["--yes"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(
        stage.lock().contains(&format!("signer: \"{IDENTITY}\"")),
        "{}",
        stage.lock()
    );
    let seen = stage.check(&["--locked"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    let (_, listed) = said(&stage.proctor(&["extensions", "list", "eval.yaml", "-o", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["extensions"][0]["signer"], IDENTITY);
}

#[test]
fn a_signature_of_another_archive_is_refused() {
    let stage = tagged();
    let other = stage.sigstore.bundle(b"other", &Claim::default());
    is_refused(&stage, &other, "artifact mismatch");
    let (stage, mut bundle) = signed(&Claim::default());
    // Claims this archive's digest, with the signature and the log entry of another one.
    let other = stage.sigstore.bundle(b"other", &Claim::default());
    let digest = bundle["messageSignature"]["messageDigest"].take();
    let mut forged = other;
    forged["messageSignature"]["messageDigest"] = digest;
    is_refused(&stage, &forged, "invalid signature");
}

#[test]
fn a_signature_of_another_key_is_refused() {
    let key = Key::new();
    let claim = Claim {
        signing: Some(&key),
        ..Claim::default()
    };
    refuses(&claim, "invalid signature");
}

#[test]
fn a_signature_of_another_workflow_or_issuer_is_refused() {
    for identity in [
        "https://github.com/acme/steps-evil/.github/workflows/release.yml@refs/tags/v1",
        "https://github.com/other/steps/.github/workflows/release.yml@refs/tags/v1",
        "https://example.com/https://github.com/acme/steps/x",
    ] {
        let claim = Claim {
            identity,
            ..Claim::default()
        };
        refuses(
            &claim,
            "and only workflows of https://github.com/acme/steps may sign",
        );
    }
    let claim = Claim {
        issuer: "https://accounts.example.com",
        ..Claim::default()
    };
    refuses(&claim, "issuer mismatch");
}

#[test]
fn a_certificate_of_another_authority_is_refused() {
    let foreign = Key::new();
    let claim = Claim {
        authority: Some(&foreign),
        ..Claim::default()
    };
    refuses(&claim, "certificate chain is invalid");
    let stage = tagged();
    let elsewhere = Sigstore::new().bundle(&stage.archive("v1"), &Claim::default());
    is_refused(&stage, &elsewhere, "PROCTOR_SIGSTORE_ROOT");
}

#[test]
fn a_certificate_that_was_not_valid_when_it_signed_is_refused() {
    for (at, expected) in [
        (SIGNED_AT + 3600, "CertExpired"),
        (SIGNED_AT - 3600, "CertNotValidYet"),
    ] {
        let claim = Claim {
            at,
            ..Claim::default()
        };
        refuses(&claim, expected);
    }
}

#[test]
fn a_signature_that_the_log_does_not_have_is_refused() {
    let entries = "/verificationMaterial/tlogEntries";
    refuses_with(entries, json!([]), "must have an inclusion proof");
    let (stage, bundle) = signed(&Claim::default());
    let other = stage
        .sigstore
        .bundle(&stage.archive("v1"), &Claim::default());
    let mut forged = bundle.clone();
    // An entry about the same archive, by another key.
    forged["verificationMaterial"]["tlogEntries"] =
        other["verificationMaterial"]["tlogEntries"].clone();
    is_refused(&stage, &forged, "log entry does not match the bundle");
    let entry = "/verificationMaterial/tlogEntries/0";
    let later = (SIGNED_AT + 1).to_string();
    refuses_with(
        &format!("{entry}/integratedTime"),
        json!(later),
        "invalid inclusion promise",
    );
    let body = bundle.pointer(&format!("{entry}/canonicalizedBody"));
    let mut body = BASE64
        .decode(body.unwrap().as_str().unwrap().as_bytes())
        .unwrap();
    body.push(b' ');
    refuses_with(
        &format!("{entry}/canonicalizedBody"),
        json!(BASE64.encode(&body)),
        "invalid inclusion",
    );
    refuses_with(
        &format!("{entry}/inclusionProof/hashes"),
        json!([BASE64.encode(&[0; 32])]),
        "invalid inclusion proof",
    );
    refuses_with(
        &format!("{entry}/inclusionProof/checkpoint/envelope"),
        json!("log.example.com - 1\n2\nAAAA\n\n"),
        "checkpoint",
    );
}

#[test]
fn a_damaged_signature_is_refused() {
    let (stage, bundle) = signed(&Claim::default());
    let whole = bundle.to_string().into_bytes();
    let path = format!("{}.bundle", Stage::asset("v1"));
    let check = |served: Served, expected: &str| {
        stage.releases.put(&path, served);
        refused(&stage.fetch(&["--yes"]), expected);
        stage.is_untouched();
    };
    let malformed = "it is not a Sigstore bundle, or incomplete";
    check(Served::Body(whole[..whole.len() / 2].to_vec()), malformed);
    check(Served::Body(b"{}".to_vec()), malformed);
    check(Served::Body(Vec::new()), malformed);
    check(Served::Body(vec![0xff; 9]), malformed);
    check(Served::Cut(whole), "no response from");
}

#[test]
fn a_root_that_can_not_be_used_vouches_for_nothing() {
    let (stage, bundle) = signed(&Claim::default());
    let root = stage.root();
    for text in ["", "{}", "{\"tlogs\": 1}"] {
        fs::write(&root, text).unwrap();
        is_refused(&stage, &bundle, "the signature of release v1 is refused");
    }
    fs::remove_file(&root).unwrap();
    is_refused(&stage, &bundle, "of `PROCTOR_SIGSTORE_ROOT` can't be used");
}

#[test]
fn a_signed_package_is_not_replaced_by_one_without_a_signature() {
    let (stage, bundle) = signed(&Claim::default());
    publish(&stage, bundle.to_string().as_bytes());
    assert_eq!(said(&stage.fetch(&["--yes"])).0, Some(0));
    let (lock, cached) = (stage.lock(), stage.cached());
    stage.serve("v1", &[PROGRAM, b"# replaced\n"].concat());
    // The signature of the earlier archive.
    refused(&stage.fetch(&["--update", "--yes"]), "artifact mismatch");
    stage
        .releases
        .remove(&format!("{}.bundle", Stage::asset("v1")));
    refused(
        &stage.fetch(&["--update", "--yes"]),
        "release v1 has no signature, and `proctor.lock` has a package that",
    );
    assert_eq!((stage.lock(), stage.cached()), (lock, cached));
}
