//! `proctor extensions`: shows and fetches the extension packages of suites.

use proctor_core::printable::printable;
use proctor_core::suite::{PackageState, ReleasePackage};
use proctor_run::engine::extensions;
use proctor_run::engine::sources::FetchScope;
use serde_json::{Value, json};

use super::attended::InteractiveHost;
use super::sources::columns;
use super::{engine, until_stopped};
use crate::args::{ExtensionsCommand, ExtensionsFetchArgs, ExtensionsListArgs, OutputFormat};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(command: &ExtensionsCommand) -> anyhow::Result<Exit> {
    match command {
        ExtensionsCommand::List(args) => list(args),
        ExtensionsCommand::Fetch(args) => fetch(args),
    }
}

fn list(args: &ExtensionsListArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let mut found = Vec::new();
    for file in &args.files {
        match extensions::of_file(&engine, file, &host) {
            Ok(extensions) => found.extend(extensions),
            Err(error) => return host.refuse(error, Some(args.output.output)),
        }
    }
    match args.output.output {
        OutputFormat::Json => {
            let all = found
                .iter()
                .map(|(alias, package)| document(alias, package));
            output::json(&json!({ "extensions": all.collect::<Vec<_>>() }))?;
        }
        OutputFormat::Text if found.is_empty() => {
            output::result("no extension comes from a release\n")?;
        }
        OutputFormat::Text => {
            let rows = found.iter().map(|(alias, package)| {
                [
                    printable(alias).into_owned(),
                    package.written.clone(),
                    release(package).unwrap_or("-").to_owned(),
                    state(package).to_owned(),
                ]
            });
            let head = ["NAME", "PACKAGE", "RELEASE", "STATE"].map(str::to_owned);
            let rows: Vec<_> = std::iter::once(head).chain(rows).collect();
            output::result(&columns(&rows))?;
        }
    }
    Ok(Exit::Ok)
}

/// The pinned release.
fn release(package: &ReleasePackage) -> Option<&str> {
    match &package.state {
        PackageState::Cached { pin, .. } => Some(&pin.release),
        PackageState::Unpinned { release } => release.as_deref(),
        PackageState::Missing { release, .. } => Some(release),
    }
}

fn state(package: &ReleasePackage) -> &'static str {
    match package.state {
        PackageState::Cached { .. } => "cached",
        PackageState::Unpinned { .. } => "not pinned",
        PackageState::Missing { .. } => "not fetched",
    }
}

fn document(alias: &str, package: &ReleasePackage) -> Value {
    json!({
        "extension": alias,
        "package": package.written,
        "release": release(package),
        "signer": package.signer,
        "state": state(package),
        "program": package.program(),
    })
}

fn fetch(args: &ExtensionsFetchArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let host = InteractiveHost::new(engine.redactor(&[]));
    let scope = if args.update {
        FetchScope::Newest
    } else {
        FetchScope::Absent
    };
    let fetching = extensions::fetch(&engine, &args.file, scope, &args.names, args.yes, &host);
    let fetched = match until_stopped(fetching)? {
        Ok(fetched) => fetched,
        Err(error) => return host.refuse(error, None),
    };
    if fetched.is_empty() {
        output::result("nothing to fetch: every released extension is in the cache\n")?;
    }
    for extension in fetched {
        output::result(&output::printable_lines(&format!("{extension}\n")))?;
    }
    Ok(Exit::Ok)
}
