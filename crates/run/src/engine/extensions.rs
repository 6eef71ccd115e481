//! Fetches extension packages: programs in releases of other repositories.
//!
//! Main functions: `provide`, before a run, and [`fetch`], for `proctor extensions`. A program that `proctor.lock`
//! does not pin needs consent; one that it pins must have the pinned digest. Proctor does not verify signatures, and
//! says so.

mod archive;
mod release;

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use data_encoding::HEXLOWER;
use proctor_contain::scratch::{Scratch, sweep_in};
use proctor_core::hint::listed;
use proctor_core::suite::lock_file::{ExtensionPin, ProgramPin};
use proctor_core::suite::step::Action;
use proctor_core::suite::{
    Case, Extension, Package, PackageState, ReleasePackage, Suite, platform,
};
use sha2::{Digest, Sha256};

pub use self::archive::ArchiveError;
use self::archive::PackedProgram;
use self::release::Releases;
pub use self::release::{DownloadError, GITHUB_URL};
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
    let mut fetched = Vec::new();
    for (alias, package) in &all {
        let is_named = aliases.is_empty() || aliases.contains(alias);
        if is_named && (scope == FetchScope::Newest || package.program().is_none()) {
            let fetching = PackageFetch {
                engine,
                file,
                alias,
                package,
                yes,
                host,
            };
            fetched.push(fetching.obtain(scope).await?);
        }
    }
    Ok(fetched)
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
    for (alias, package) in &absent {
        let (file, yes) = (&*suite.path, terms.yes);
        let fetching = PackageFetch {
            engine,
            file,
            alias,
            package,
            yes,
            host,
        };
        let fetched = fetching.obtain(FetchScope::Absent).await?;
        host.notice(HostNotice::Text(&fetched.to_string()));
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

/// A package that is being fetched.
struct PackageFetch<'a> {
    engine: &'a Engine,
    file: &'a Path,
    alias: &'a str,
    package: &'a ReleasePackage,
    yes: bool,
    host: &'a dyn Host,
}

impl PackageFetch<'_> {
    async fn obtain(&self, scope: FetchScope) -> Result<FetchedExtension, EngineError> {
        let fail = |error: PackageError| self.failed(error);
        let releases = Releases::new(self.engine.environment()).map_err(|e| fail(e.into()))?;
        let release = self.release(&releases, scope).await.map_err(fail)?;
        let (content, packed) = self.download(&releases, &release).await.map_err(fail)?;
        let pin = ProgramPin {
            archive: digest(&content),
            program: digest(&packed.content),
        };
        let is_pinned = self.pinned(&release) == Some(&pin);
        if let (Some(known), FetchScope::Absent, false) = (self.pinned(&release), scope, is_pinned)
        {
            return Err(fail(PackageError::Differs {
                release,
                pinned: known.archive.clone(),
                found: pin.archive,
            }));
        }
        if !is_pinned {
            let has_bundle = releases.has_bundle(self.package, &release).await;
            let has_bundle = has_bundle.map_err(|error| fail(error.into()))?;
            self.ask(&release, &pin, has_bundle).await?;
        }
        self.install(&pin, &packed)?;
        if !is_pinned {
            let files = [(platform(), pin.clone())].into();
            let package = self.package.written.clone();
            let release = release.clone();
            change_lock(self.file, |lock| {
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

    async fn ask(
        &self,
        release: &str,
        pin: &ProgramPin,
        has_bundle: bool,
    ) -> Result<(), EngineError> {
        let signature = if has_bundle {
            "a Sigstore bundle is published, but Proctor does not verify it: treat the program as unsigned"
        } else {
            "none is published"
        };
        let text = format!(
            "The extension `{}` is not pinned in `proctor.lock` yet. The program will run on this machine, with your \
             permissions:\n  package    {} release {release} for {}\n  digest     {}\n  signature  {signature}",
            self.alias,
            self.package.written,
            platform(),
            pin.archive,
        );
        self.host.notice(HostNotice::Text(&text));
        if self.yes {
            return Ok(());
        }
        let answer = self.host.confirm("Pin and use it? [y/N] ").await;
        match answer.map_err(|error| EngineError::unusable("can't read the answer", error))? {
            ConsentAnswer::Yes => Ok(()),
            ConsentAnswer::No => Err(EngineError::usage("the extension was not installed")),
            ConsentAnswer::Nobody => Err(EngineError::usage(format!(
                "consent is required and stdin or stderr is not a terminal; the extension `{}` was not installed: run \
                 `proctor extensions fetch {}` on a terminal and commit `proctor.lock`, or pass `--yes`",
                self.alias,
                self.file.display()
            ))),
        }
    }

    /// Puts the program into the cache: whole, or not at all.
    fn install(&self, pin: &ProgramPin, packed: &PackedProgram) -> Result<(), EngineError> {
        let path = self
            .package
            .program_path(&pin.archive, self.engine.environment());
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

/// Writes a program beside its folder, and moves the folder to its place.
fn write_program(path: &Path, packed: &PackedProgram) -> io::Result<()> {
    let unplaced = || io::Error::other("it has no folder");
    let folder = path.parent().ok_or_else(unplaced)?;
    let all = folder.parent().ok_or_else(unplaced)?;
    fs::create_dir_all(all)?;
    sweep_in(all);
    let scratch = Scratch::new_in(all)?;
    let entry = scratch.folder("entry")?;
    let program = entry.join(path.file_name().unwrap_or_default());
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(packed.mode)
        .open(&program)?;
    file.write_all(&packed.content)?;
    file.set_permissions(Permissions::from_mode(packed.mode))?;
    file.sync_all()?;
    drop(file);
    if folder.exists() {
        // It has other content than its name says.
        fs::rename(folder, scratch.path().join("old"))?;
    }
    match fs::rename(&entry, folder) {
        // Another process was faster.
        Err(_) if path.is_file() => Ok(()),
        moved => moved,
    }
}

fn digest(content: &[u8]) -> String {
    format!("sha256:{}", HEXLOWER.encode(&Sha256::digest(content)))
}
