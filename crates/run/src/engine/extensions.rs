//! Fetches extension packages: programs in releases of other repositories.
//!
//! Main functions: `provide`, before a run, and [`fetch`], for `proctor extensions`. A program that `proctor.lock`
//! does not pin needs consent, and a valid signature if one is published; one that it pins must have the pinned digest.

mod archive;
mod install;
mod release;
mod signature;

use std::io;
use std::path::Path;

use data_encoding::HEXLOWER;
use proctor_core::printable::printable;
use proctor_core::suite::lock_file::{ExtensionPin, ProgramPin};
use proctor_core::suite::step::Action;
use proctor_core::suite::{
    Case, Extension, Package, PackageState, ReleasePackage, Suite, platform,
};
use proctor_record::hint::listed;
use sha2::{Digest, Sha256};

pub use self::archive::ArchiveError;
use self::archive::PackedProgram;
use self::install::write_program;
use self::release::Releases;
pub use self::release::{DownloadError, GITHUB_URL};
use self::signature::TrustedSigners;
pub use self::signature::{SIGSTORE_ROOT, SignatureError};
use super::Engine;
use super::error::EngineError;
use super::host::{ConsentAnswer, Host, HostNotice};
use super::sources::{FetchScope, FetchTerms, change_lock, load_alone, no_cache};

/// Why a package can't be used.
#[derive(Debug, thiserror::Error)]
pub enum PackageError {
    #[error(transparent)]
    Download(#[from] DownloadError),
    #[error("the archive of release {release} is refused: {error}")]
    Archive {
        release: String,
        error: ArchiveError,
    },
    #[error(
        "the archive of release {release} is not the pinned one: its digest is `{found}`, and `proctor.lock` has \
         `{pinned}`; if the release was replaced on purpose, run `proctor extensions fetch --update`"
    )]
    Differs {
        release: String,
        pinned: String,
        found: String,
    },
    #[error("the signature of release {release} is refused: {error}")]
    Signature {
        release: String,
        error: SignatureError,
    },
    #[error(
        "release {release} has no signature, and `proctor.lock` has a package that `{signer}` signed; to use a package \
         without a signature, remove its entry from `proctor.lock` first"
    )]
    Unsigned { release: String, signer: String },
    #[error("the cache `{path}` can't be written: {error}")]
    Cache { path: String, error: io::Error },
}

/// A package that was fetched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedExtension {
    pub alias: String,
    pub package: String,
    pub release: String,
    /// The digest of the archive.
    pub archive: String,
    /// Who signed it. `None` if it has no signature, or is pinned already.
    pub signer: Option<String>,
    /// Whether `proctor.lock` has it already.
    pub is_pinned: bool,
}

impl std::fmt::Display for FetchedExtension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let how = if self.is_pinned {
            "as pinned"
        } else {
            "now pinned in `proctor.lock`"
        };
        write!(
            f,
            "extension `{}`: {} release {} for {}, {how}",
            self.alias,
            self.package,
            self.release,
            platform()
        )
    }
}

/// The released extensions that an eval file declares.
pub fn of_file(
    engine: &Engine,
    file: &Path,
    host: &dyn Host,
) -> Result<Vec<(String, ReleasePackage)>, EngineError> {
    let suite = load_alone(engine, file, host)?;
    Ok(released(&suite.extensions)
        .map(|(alias, package)| (alias.to_owned(), package.clone()))
        .collect())
}

fn released(extensions: &[Extension]) -> impl Iterator<Item = (&str, &ReleasePackage)> {
    extensions
        .iter()
        .filter_map(|extension| match &extension.package {
            Package::Release(package) => Some((extension.alias.as_str(), package)),
            Package::Local(_) => None,
        })
}

/// Fetches extensions of an eval file and pins them. With aliases, only these.
pub async fn fetch(
    engine: &Engine,
    file: &Path,
    scope: FetchScope,
    aliases: &[String],
    yes: bool,
    host: &dyn Host,
) -> Result<Vec<FetchedExtension>, EngineError> {
    let all = of_file(engine, file, host)?;
    for alias in aliases {
        if !all.iter().any(|(known, _)| known == alias) {
            let known = listed(all.iter().map(|(known, _)| known.as_str()));
            return Err(EngineError::usage(format!(
                "`{}` declares no released extension `{alias}`; released extensions: {known}",
                file.display()
            )));
        }
    }
    let fetcher = PackageFetcher {
        engine,
        file,
        yes,
        host,
    };
    let mut arrivals = Vec::new();
    for (alias, package) in &all {
        let is_named = aliases.is_empty() || aliases.contains(alias);
        if is_named && (scope == FetchScope::Newest || package.program().is_none()) {
            arrivals.push(fetcher.package(alias, package).obtain(scope).await?);
        }
    }
    Ok(arrivals)
}

/// Fetches the extensions that cases use and that are not here. Returns whether there were any, so that the suite has
/// to be loaded again.
pub(super) async fn provide(
    engine: &Engine,
    suite: &Suite,
    terms: FetchTerms,
    host: &dyn Host,
) -> Result<bool, EngineError> {
    let is_used = |alias: &str| suite.cases.iter().any(|case| uses(case, alias));
    let absent = released(&suite.extensions)
        .filter(|(alias, package)| package.program().is_none() && is_used(alias));
    let absent: Vec<(&str, &ReleasePackage)> = absent.collect();
    if terms.locked && !absent.is_empty() {
        let missing: Vec<String> = absent
            .iter()
            .map(|(alias, package)| absence(alias, package))
            .collect();
        return Err(EngineError::usage(format!(
            "`--locked` fetches nothing, and {}; run `proctor extensions fetch {}` first",
            missing.join(", and "),
            suite.path.display()
        )));
    }
    let fetcher = PackageFetcher {
        engine,
        file: &suite.path,
        yes: terms.yes,
        host,
    };
    for (alias, package) in &absent {
        let fetching = fetcher.package(alias, package);
        let arrival = fetching.obtain(FetchScope::Absent).await?;
        host.notice(HostNotice::Text(&arrival.to_string()));
    }
    Ok(!absent.is_empty())
}

fn uses(case: &Case, alias: &str) -> bool {
    let mut steps = case.setup.iter().chain(&case.verify).chain(&case.cleanup);
    steps.any(
        |step| matches!(&step.action, Action::Extension { extension, .. } if extension == alias),
    )
}

fn absence(alias: &str, package: &ReleasePackage) -> String {
    match &package.state {
        PackageState::Unpinned { .. } => format!(
            "the extension `{alias}` is not pinned in `proctor.lock` for {}",
            platform()
        ),
        PackageState::Cached { .. } | PackageState::Missing { .. } => {
            format!("the extension `{alias}` is not in the cache with its pinned digest")
        }
    }
}

/// Fetches packages for an eval file.
#[derive(Clone, Copy)]
struct PackageFetcher<'a> {
    engine: &'a Engine,
    file: &'a Path,
    yes: bool,
    host: &'a dyn Host,
}

/// A package that is being fetched.
struct PackageFetch<'a> {
    by: PackageFetcher<'a>,
    alias: &'a str,
    package: &'a ReleasePackage,
}

impl<'a> PackageFetcher<'a> {
    fn package(self, alias: &'a str, package: &'a ReleasePackage) -> PackageFetch<'a> {
        PackageFetch {
            by: self,
            alias,
            package,
        }
    }
}

impl PackageFetch<'_> {
    async fn obtain(&self, scope: FetchScope) -> Result<FetchedExtension, EngineError> {
        let fail = |error: PackageError| self.failed(error);
        let releases = Releases::new(self.by.engine.environment()).map_err(|e| fail(e.into()))?;
        let release = self.release(&releases, scope).await.map_err(fail)?;
        let (content, packed) = self.download(&releases, &release).await.map_err(fail)?;
        let mut pin = ProgramPin {
            archive: digest(&content),
            program: digest(&packed.content),
            signer: None,
        };
        let known = self.pinned(&release);
        let is_pinned = known.is_some_and(|known| known.is_same_program(&pin));
        if let (Some(known), FetchScope::Absent, false) = (known, scope, is_pinned) {
            return Err(fail(PackageError::Differs {
                release,
                pinned: known.archive.clone(),
                found: pin.archive,
            }));
        }
        if !is_pinned {
            pin.signer = self
                .signer(&releases, &release, &content)
                .await
                .map_err(fail)?;
            self.ask(&release, &pin).await?;
        }
        self.install(&pin, &packed)?;
        if !is_pinned {
            let files = [(platform(), pin.clone())].into();
            let package = self.package.written.clone();
            let release = release.clone();
            change_lock(self.by.file, |lock| {
                lock.pin_extension(ExtensionPin {
                    package,
                    release,
                    files,
                });
            })?;
        }
        Ok(FetchedExtension {
            alias: self.alias.to_owned(),
            package: self.package.written.clone(),
            release,
            archive: pin.archive,
            signer: pin.signer,
            is_pinned,
        })
    }

    /// The release to fetch: the pinned one, or what the eval file says.
    async fn release(
        &self,
        releases: &Releases,
        scope: FetchScope,
    ) -> Result<String, PackageError> {
        let pinned = match &self.package.state {
            PackageState::Cached { pin, .. } => Some(&pin.release),
            PackageState::Unpinned { release } => release.as_ref(),
            PackageState::Missing { release, .. } => Some(release),
        };
        match (&self.package.tag, pinned) {
            (Some(tag), _) => Ok(tag.clone()),
            (None, Some(release)) if scope == FetchScope::Absent => Ok(release.clone()),
            (None, _) => Ok(releases.latest(self.package).await?),
        }
    }

    /// The pinned digests of a release.
    fn pinned(&self, release: &str) -> Option<&ProgramPin> {
        match &self.package.state {
            PackageState::Cached { pin, .. } if pin.release == release => {
                pin.files.get(&platform())
            }
            PackageState::Missing { release: of, pin } if of == release => Some(pin),
            PackageState::Cached { .. }
            | PackageState::Missing { .. }
            | PackageState::Unpinned { .. } => None,
        }
    }

    async fn download(
        &self,
        releases: &Releases,
        release: &str,
    ) -> Result<(Vec<u8>, PackedProgram), PackageError> {
        let content = releases.archive(self.package, release).await?;
        let name = self.package.program_name();
        let packed = archive::program(&content, &name);
        let packed = packed.map_err(|error| PackageError::Archive {
            release: release.to_owned(),
            error,
        })?;
        Ok((content, packed))
    }

    /// Who signed an archive. A release without a signature is one, unless an earlier one had it.
    async fn signer(
        &self,
        releases: &Releases,
        release: &str,
        archive: &[u8],
    ) -> Result<Option<String>, PackageError> {
        let release = release.to_owned();
        let Some(bundle) = releases.bundle(self.package, &release).await? else {
            return match self.package.signer.clone() {
                None => Ok(None),
                Some(signer) => Err(PackageError::Unsigned { release, signer }),
            };
        };
        let signers = TrustedSigners::new(self.by.engine.environment());
        let verified = signers.and_then(|it| it.verify(archive, &bundle, self.package));
        verified
            .map(Some)
            .map_err(|error| PackageError::Signature { release, error })
    }

    async fn ask(&self, release: &str, pin: &ProgramPin) -> Result<(), EngineError> {
        let signature = match &pin.signer {
            Some(signer) => format!("valid, by {}", printable(signer)),
            None => "none is published".to_owned(),
        };
        let text = format!(
            "The extension `{}` is not pinned in `proctor.lock` yet. The program will run on this machine, with your \
             permissions:\n  package    {} release {release} for {}\n  digest     {}\n  signature  {signature}",
            self.alias,
            self.package.written,
            platform(),
            pin.archive,
        );
        self.by.host.notice(HostNotice::Text(&text));
        if self.by.yes {
            return Ok(());
        }
        let answer = self.by.host.confirm("Pin and use it? [y/N] ").await;
        match answer.map_err(|error| EngineError::unusable("can't read the answer", error))? {
            ConsentAnswer::Yes => Ok(()),
            ConsentAnswer::No => Err(EngineError::usage("the extension was not installed")),
            ConsentAnswer::Nobody => Err(EngineError::usage(format!(
                "consent is required and stdin or stderr is not a terminal; the extension `{}` was not installed: run \
                 `proctor extensions fetch {}` on a terminal and commit `proctor.lock`, or pass `--yes`",
                self.alias,
                self.by.file.display()
            ))),
        }
    }

    /// Puts the program into the cache: whole, or not at all.
    fn install(&self, pin: &ProgramPin, packed: &PackedProgram) -> Result<(), EngineError> {
        let path = self
            .package
            .program_path(&pin.archive, self.by.engine.environment());
        let path = path.ok_or_else(no_cache)?;
        let installed = write_program(&path, packed);
        installed.map_err(|error| {
            self.failed(PackageError::Cache {
                path: path.display().to_string(),
                error,
            })
        })
    }

    fn failed(&self, error: PackageError) -> EngineError {
        let Self { alias, package, .. } = self;
        EngineError::unusable(
            format!("can't fetch the extension `{alias}` ({})", package.written),
            error,
        )
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(content)))
}
