//! Extension packages: fetched from a release, pinned by digest, and never used with another one.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use proctor_core::suite::platform;
use proctor_e2e::session::{Session, SessionOutcome};
use proctor_e2e::suite::{ECHO_IF_GOOD, SuiteFixture};
use rustix::process::Signal;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::releases::{Releases, Served, zip};
use crate::repository::{refused, said};
use crate::sigstore::Sigstore;

pub const PROGRAM: &[u8] = include_bytes!("../steps/extension.py");

/// A suite with a step of the extension `k8s`, and a server that has its package.
pub struct Stage {
    suite: SuiteFixture,
    cache: TempDir,
    pub releases: Releases,
    pub sigstore: Sigstore,
}

impl Stage {
    fn new(package: &str) -> Self {
        let stage = Self {
            suite: SuiteFixture::new(ECHO_IF_GOOD, &[]),
            cache: tempfile::tempdir().unwrap(),
            releases: Releases::start(),
            sigstore: Sigstore::new(),
        };
        fs::write(stage.root(), stage.sigstore.root().to_string()).unwrap();
        let extensions = json!({"k8s": {"package": package}});
        stage
            .suite
            .eval(&json!({"extensions": extensions}), &json!({}));
        let verify = json!([{"k8s.echo": {"name": "a"}}]);
        let requires = json!([{"extension": "k8s"}]);
        stage
            .suite
            .task("good", &json!({"requires": requires, "verify": verify}));
        stage
    }

    /// The path of the archive on the server.
    pub fn asset(tag: &str) -> String {
        format!(
            "/acme/steps/releases/download/{tag}/steps-{}.zip",
            platform()
        )
    }

    /// The file with the trusted root.
    pub fn root(&self) -> PathBuf {
        self.suite.path("trusted_root.json")
    }

    /// What the server has at the path of an archive.
    pub fn archive(&self, tag: &str) -> Vec<u8> {
        match self.releases.served(&Self::asset(tag)) {
            Some(Served::Body(archive)) => archive,
            _ => panic!("the release has no archive"),
        }
    }

    pub fn serve(&self, tag: &str, program: &[u8]) {
        let archive = zip(&format!("steps-{}", platform()), program);
        self.releases.put(&Self::asset(tag), Served::Body(archive));
    }

    pub fn check(&self, words: &[&str]) -> Session {
        self.suite
            .check(words)
            .env("XDG_CACHE_HOME", self.cache.path().to_str().unwrap())
            .env("PROCTOR_GITHUB_URL", &self.releases.url)
            .env("PROCTOR_SIGSTORE_ROOT", self.root().to_str().unwrap())
    }

    pub fn proctor(&self, words: &[&str]) -> Output {
        Command::new(proctor_e2e::proctor())
            .args(words)
            .current_dir(self.suite.folder())
            .env("XDG_CACHE_HOME", self.cache.path())
            .env("PROCTOR_GITHUB_URL", &self.releases.url)
            .env("PROCTOR_SIGSTORE_ROOT", self.root())
            .output()
            .unwrap()
    }

    pub fn fetch(&self, more: &[&str]) -> Output {
        let words = [&["extensions", "fetch", "eval.yaml"], more].concat();
        self.proctor(&words)
    }

    pub fn lock(&self) -> String {
        fs::read_to_string(self.suite.path("proctor.lock")).unwrap_or_default()
    }

    /// The programs in the cache, and what an interrupted fetch left.
    pub fn cached(&self) -> Vec<PathBuf> {
        let folder = self.cache.path().join("proctor/extensions");
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries.map(|entry| entry.unwrap().path()).collect()
    }

    fn empty(&self) {
        fs::remove_dir_all(self.cache.path().join("proctor")).unwrap();
    }

    /// Nothing was installed or pinned.
    pub fn is_untouched(&self) {
        assert_eq!((self.lock(), self.cached()), (String::new(), Vec::new()));
    }
}

pub fn tagged() -> Stage {
    let stage = Stage::new("https://github.com/acme/steps@v1");
    stage.serve("v1", PROGRAM);
    stage
}

fn refuses(seen: &SessionOutcome, expected: &str) {
    assert_eq!(seen.code, Some(2), "{}", seen.stderr);
    assert!(
        seen.stderr.contains(expected),
        "{}\nexpected: {expected}",
        seen.stderr
    );
}

#[test]
fn a_package_is_fetched_with_consent_and_used_without_the_network() {
    let stage = tagged();
    let seen = stage.check(&[]).run();
    refuses(
        &seen,
        "consent is required and stdin or stderr is not a terminal",
    );
    refuses(&seen, "signature  none is published");
    refuses(&seen, "The program will run on this machine");
    stage.is_untouched();
    let seen = stage.check(&["--locked", "--yes"]).run();
    refuses(
        &seen,
        "`--locked` fetches nothing, and the extension `k8s` is not pinned",
    );
    let (code, text) = said(&stage.fetch(&["--yes"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(text.contains("signature  none is published"), "{text}");
    assert!(text.contains("release v1 for"), "{text}");
    let lock = stage.lock();
    let asked = stage.releases.asked().len();
    let seen = stage.check(&["--locked"]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert_eq!(stage.check(&[]).run().code, Some(0));
    assert_eq!((stage.releases.asked().len(), stage.lock()), (asked, lock));
    let (_, listed) = said(&stage.proctor(&["extensions", "list", "eval.yaml", "-o", "json"]));
    let listed: Value = serde_json::from_str(&listed).unwrap();
    assert_eq!(listed["extensions"][0]["state"], "cached");
    assert_eq!(listed["extensions"][0]["release"], "v1");
}

#[test]
fn a_package_that_was_replaced_is_refused_until_it_is_pinned_again() {
    let stage = tagged();
    assert_eq!(said(&stage.fetch(&["--yes"])).0, Some(0));
    let lock = stage.lock();
    stage.empty();
    let other = [PROGRAM, b"# replaced\n"].concat();
    stage.serve("v1", &other);
    refuses(&stage.check(&["--yes"]).run(), "is not the pinned one");
    refused(&stage.fetch(&["--yes"]), "is not the pinned one");
    refuses(
        &stage.check(&["--locked"]).run(),
        "is not in the cache with its pinned digest",
    );
    assert_eq!((stage.lock(), stage.cached()), (lock.clone(), Vec::new()));
    refused(&stage.fetch(&["--update"]), "consent is required");
    assert_eq!(stage.lock(), lock);
    let (code, text) = said(&stage.fetch(&["--update", "--yes"]));
    assert_eq!(code, Some(0), "{text}");
    assert_ne!(stage.lock(), lock);
    assert_eq!(stage.check(&["--locked"]).run().code, Some(0));
}

#[test]
fn a_wrong_digest_in_the_lock_file_is_refused() {
    let stage = tagged();
    stage.fetch(&["--yes"]);
    let lock = stage.lock();
    let at = lock.find("archive: \"sha256:").unwrap() + "archive: \"sha256:".len();
    let wrong = format!("{}{}{}", &lock[..at], "0".repeat(64), &lock[at + 64..]);
    fs::write(stage.suite.path("proctor.lock"), &wrong).unwrap();
    refuses(
        &stage.check(&["--yes"]).run(),
        "is not the pinned one: its digest is `sha256:",
    );
    assert_eq!(stage.lock(), wrong);
}

#[test]
fn a_program_that_was_changed_in_the_cache_does_not_run() {
    let stage = tagged();
    stage.fetch(&["--yes"]);
    let program = stage.cached()[0].join(format!("steps-{}", platform()));
    let mark = stage.suite.path("mark");
    fs::write(&program, format!("#!/bin/sh\ntouch {}\n", mark.display())).unwrap();
    refuses(
        &stage.check(&["--locked"]).run(),
        "is not in the cache with its pinned digest",
    );
    let seen = stage.check(&[]).run();
    assert_eq!(seen.code, Some(0), "{}", seen.stderr);
    assert!(seen.stderr.contains("as pinned"), "{}", seen.stderr);
    assert!(!mark.exists());
    assert_eq!(fs::read(&program).unwrap(), PROGRAM);
}

#[test]
fn damaged_and_absent_packages_are_refused() {
    let stage = Stage::new("https://github.com/acme/steps@v1");
    let name = format!("steps-{}", platform());
    let whole = zip(&name, PROGRAM);
    let asset = Stage::asset("v1");
    let check = |served: Option<Served>, expected: &str| {
        if let Some(served) = served {
            stage.releases.put(&asset, served);
        }
        refused(&stage.fetch(&["--yes"]), expected);
        refuses(&stage.check(&["--yes"]).run(), expected);
        stage.is_untouched();
    };
    check(
        None,
        "does not exist (404); the release has no package for this platform",
    );
    check(Some(Served::Cut(whole.clone())), "no response from");
    let half = whole[..whole.len() / 2].to_vec();
    check(
        Some(Served::Body(half)),
        "it is not a ZIP archive, or incomplete",
    );
    let mut flipped = whole.clone();
    // In the middle of the compressed program.
    flipped[whole.len() / 2] ^= 1;
    check(
        Some(Served::Body(flipped)),
        "is damaged: its checksum does not match",
    );
    let other = Served::Body(zip("../../bin/sh", PROGRAM));
    check(Some(other), "and contains `../../bin/sh`");
    check(
        Some(Served::Redirect("http://127.0.0.1:1/".to_owned())),
        "connection refused",
    );
}

#[test]
fn a_package_without_a_tag_is_the_latest_release_when_it_is_pinned() {
    let stage = Stage::new("https://github.com/acme/steps");
    let latest = "/api/v3/repos/acme/steps/releases/latest";
    refused(&stage.fetch(&["--yes"]), "the repository has no release");
    stage
        .releases
        .put(latest, Served::Body(br#"{"tag_name": "../x"}"#.to_vec()));
    refused(&stage.fetch(&["--yes"]), "has no usable `tag_name`");
    stage
        .releases
        .put(latest, Served::Body(br#"{"tag_name": "v1"}"#.to_vec()));
    stage.serve("v1", PROGRAM);
    assert_eq!(said(&stage.fetch(&["--yes"])).0, Some(0));
    stage
        .releases
        .put(latest, Served::Body(br#"{"tag_name": "v2"}"#.to_vec()));
    stage.empty();
    assert_eq!(stage.check(&[]).run().code, Some(0));
    assert!(stage.lock().contains("release: \"v1\""), "{}", stage.lock());
    stage.releases.put(
        &Stage::asset("v2"),
        Served::Redirect(format!("{}/moved", stage.releases.url)),
    );
    stage.releases.put(
        "/moved",
        Served::Body(zip(&format!("steps-{}", platform()), PROGRAM)),
    );
    let (code, text) = said(&stage.fetch(&["--update", "--yes"]));
    assert_eq!(code, Some(0), "{text}");
    assert!(stage.lock().contains("release: \"v2\""), "{}", stage.lock());
}

#[test]
fn an_interrupted_download_leaves_nothing() {
    let stage = tagged();
    stage.releases.put(&Stage::asset("v1"), Served::Stalled);
    let running = stage.check(&["--yes"]).start();
    stage.releases.wait();
    running.signal(Signal::INT);
    let seen = running.finish();
    assert_eq!(seen.code, Some(130), "{}", seen.stderr);
    stage.is_untouched();
}

#[test]
fn validate_and_list_use_no_network() {
    let stage = tagged();
    for words in [["validate", "eval.yaml"], ["list", "eval.yaml"]] {
        let (code, text) = said(&stage.proctor(&words));
        assert_eq!(code, Some(0), "{text}");
    }
    assert_eq!(stage.releases.asked(), Vec::<String>::new());
}
