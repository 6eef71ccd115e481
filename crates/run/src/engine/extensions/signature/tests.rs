//! A real bundle: made by a workflow on GitHub with sigstore.dev, and published with `sigstore-verify` as test data.

use super::*;

const ARCHIVE: &[u8] = include_bytes!("tests/archive.bin");
const BUNDLE: &str = include_str!("tests/archive.bundle.json");

fn package(written: &str) -> ReleasePackage {
    ReleasePackage::parse(written).unwrap()
}

fn own() -> ReleasePackage {
    package("https://github.com/prefix-dev/sigstore-example@v1")
}

fn public() -> TrustedSigners {
    TrustedSigners::new(&Environment::default()).unwrap()
}

/// The root of sigstore.dev without one of its parts.
fn root_without(part: &str) -> TrustedSigners {
    let mut root: serde_json::Value =
        serde_json::from_str(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
    root[part].as_array_mut().unwrap().clear();
    TrustedSigners::of_root(&root.to_string(), "root").unwrap()
}

fn refuses(signers: &TrustedSigners, archive: &[u8], bundle: &str, expected: &str) {
    let found = signers.verify(archive, bundle.as_bytes(), &own());
    let found = found.unwrap_err().to_string();
    assert!(found.contains(expected), "{found}\nexpected: {expected}");
}

#[test]
fn a_bundle_of_the_repositorys_workflow_is_valid() {
    let signer = public().verify(ARCHIVE, BUNDLE.as_bytes(), &own()).unwrap();
    let expected = "https://github.com/prefix-dev/sigstore-example/.github/workflows/action.yaml@refs/heads/main";
    assert_eq!(signer, expected);
    let shouted = package("https://github.com/Prefix-Dev/sigstore-example");
    assert!(
        public()
            .verify(ARCHIVE, BUNDLE.as_bytes(), &shouted)
            .is_ok()
    );
}

#[test]
fn a_bundle_of_another_repository_is_refused() {
    for other in [
        "https://github.com/prefix-dev/sigstore",
        "https://github.com/prefix-dev/other",
        "https://github.com/prefix/dev",
    ] {
        let found = public().verify(ARCHIVE, BUNDLE.as_bytes(), &package(other));
        let found = found.unwrap_err().to_string();
        assert!(found.contains("only workflows of"), "{found}");
    }
}

#[test]
fn a_bundle_of_other_content_is_refused() {
    let changed = [ARCHIVE, b"x"].concat();
    refuses(&public(), &changed, BUNDLE, "artifact");
    refuses(&public(), b"", BUNDLE, "artifact");
}

#[test]
fn a_bundle_that_the_root_does_not_vouch_for_is_refused() {
    refuses(
        &root_without("certificateAuthorities"),
        ARCHIVE,
        BUNDLE,
        "no trusted certificate authority",
    );
    refuses(&root_without("tlogs"), ARCHIVE, BUNDLE, SIGSTORE_ROOT);
    let mut root: serde_json::Value =
        serde_json::from_str(SIGSTORE_PRODUCTION_TRUSTED_ROOT).unwrap();
    // Of the two certificate logs, the one that this certificate is not in.
    root["ctlogs"].as_array_mut().unwrap().truncate(1);
    let signers = TrustedSigners::of_root(&root.to_string(), "root").unwrap();
    refuses(
        &signers,
        ARCHIVE,
        BUNDLE,
        "invalid signed certificate timestamp",
    );
    // A private instance may have none.
    assert!(
        root_without("ctlogs")
            .verify(ARCHIVE, BUNDLE.as_bytes(), &own())
            .is_ok()
    );
}

#[test]
fn a_cut_bundle_is_refused() {
    for length in (0..BUNDLE.trim_end().len()).step_by(97) {
        refuses(
            &public(),
            ARCHIVE,
            &BUNDLE[..length],
            "it is not a Sigstore bundle, or incomplete",
        );
    }
}

/// Changes every text of the bundle in turn; texts that the signatures don't cover may change.
#[test]
fn a_changed_text_of_a_bundle_is_noticed() {
    // The change hits the name of the log in the line of its signature, which is not signed.
    let free = ["/verificationMaterial/tlogEntries/0/inclusionProof/checkpoint/envelope"];
    let bundle: serde_json::Value = serde_json::from_str(BUNDLE).unwrap();
    let mut texts = Vec::new();
    collect("", &bundle, &mut texts);
    assert!(texts.len() > 10, "{texts:?}");
    for at in texts {
        let mut changed = bundle.clone();
        let place = changed.pointer_mut(&at).unwrap();
        let text = place.as_str().unwrap();
        let (first, rest) = text.split_at(text.len() / 2);
        let next = if rest.starts_with('A') { "B" } else { "A" };
        *place = format!("{first}{next}{}", &rest[1..]).into();
        let found = public().verify(ARCHIVE, changed.to_string().as_bytes(), &own());
        assert!(found.is_err() || free.contains(&at.as_str()), "{at}");
    }
}

fn collect(at: &str, value: &serde_json::Value, out: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) if !text.is_empty() => out.push(at.to_owned()),
        serde_json::Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect(&format!("{at}/{index}"), item, out);
            }
        }
        serde_json::Value::Object(map) => {
            for (key, item) in map {
                collect(&format!("{at}/{key}"), item, out);
            }
        }
        _ => {}
    }
}
