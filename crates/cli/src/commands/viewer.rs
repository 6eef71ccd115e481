//! `proctor view`: serves the pages of runs to a browser on this machine, until Ctrl-C.
//!
//! [`store`] knows the runs, [`live`] holds what the pages of one run show, [`routes`] answers requests.

mod live;
mod patch;
mod routes;
mod snapshot;
mod store;
mod stream;

use std::path::Path;
use std::sync::Arc;

use anyhow::anyhow;
use proctor_core::printable::printable;
use proctor_wire::site::Site;
use serde_json::json;

use self::routes::Routes;
use self::store::RunStore;
use super::browser;
use super::stops::StopSignals;
use crate::args::{OutputFormat, ViewerArgs};
use crate::exit::Exit;
use crate::output;
use crate::threads;

/// The number of threads that answer requests; reading runs has threads of its own.
const WORKERS: usize = 2;

pub(crate) fn run(args: &ViewerArgs) -> anyhow::Result<Exit> {
    let store = RunStore::open(args.run.as_deref())?;
    let shown = store.shown().to_owned();
    let runtime = threads::many_workers(WORKERS)?;
    runtime.block_on(async {
        let mut stops = StopSignals::listen()?;
        let routes = Arc::new(Routes::new(store));
        let site = Site::start(args.port, move |request| {
            let routes = routes.clone();
            async move { routes.answer(request).await }
        })
        .await
        .map_err(|error| anyhow!("can't listen on port {}: {error}", args.port))?;
        announce(args, &site, &shown)?;
        let opened = args.open.then(|| browser::open(&site.url())).transpose();
        // The URL is printed, so the user can still open it.
        let _page = opened.unwrap_or_else(|error| {
            let _ = output::message(&format!("can't open a browser: {error:#}\n"));
            None
        });
        stops.next().await;
        tokio::select! {
            () = site.close() => {}
            () = stops.next() => Exit::Interrupted.at_once(),
        }
        anyhow::Ok(())
    })?;
    // A thread may still read a large run.
    runtime.shutdown_background();
    Ok(Exit::Ok)
}

fn announce(args: &ViewerArgs, site: &Site, shown: &Path) -> anyhow::Result<()> {
    let shown = shown.display().to_string();
    match args.output.output {
        OutputFormat::Text => {
            output::result(&format!("{}\n", site.url()))?;
            let shown = printable(&shown);
            output::message(&format!("serving `{shown}`; stop with Ctrl-C\n"))
        }
        OutputFormat::Json => output::json(&json!({
            "url": site.url(),
            "origin": site.origin(),
            "runs": shown,
        })),
    }
}
