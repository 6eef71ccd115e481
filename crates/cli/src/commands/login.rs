//! `proctor login` and `proctor logout`: logins at MCP servers, in the browser.

use anyhow::{Context, bail};
use jiff::Timestamp;
use proctor_core::printable::printable;
use proctor_core::suite::auth::Auth;
use proctor_record::event::Actor;
use proctor_run::engine::Engine;
use proctor_run::trial_folder::TrialFolder;
use proctor_wire::auth::AuthError;
use proctor_wire::auth::login::{LoginOptions, PendingLogin};
use proctor_wire::auth::store::LoginStore;
use proctor_wire::client::{Client, ConnectError, Timeouts};
use proctor_wire::http_client::parse_url;
use proctor_wire::recorder::Recorder;
use serde_json::json;

use super::session::at_url;
use super::stops::StopSignals;
use super::{browser, engine};
use crate::args::{LoginArgs, LogoutArgs, OutputFormat};
use crate::exit::{Exit, ReportedExit};
use crate::output;
use crate::threads;

pub(crate) fn run(args: &LoginArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let Some(url) = &args.url else {
        return list(store(&engine)?, args.output.output);
    };
    let runtime = threads::one_worker()?;
    runtime.block_on(async {
        let mut stops = StopSignals::listen().context("can't listen for signals")?;
        tokio::select! {
            done = log_in(&engine, url, args) => match done {
                Ok(()) => Ok(Exit::Ok),
                Err(error) => refused(error),
            },
            () = stops.next() => {
                output::message("interrupted: nothing was stored\n")?;
                Ok(Exit::Interrupted)
            }
        }
    })
}

pub(crate) fn logout(args: &LogoutArgs) -> anyhow::Result<Exit> {
    let engine = engine()?;
    let url = parse_url(&args.url)?;
    let runtime = threads::one_worker()?;
    if !runtime.block_on(store(&engine)?.remove(&url))? {
        bail!("no login for `{}` is stored", printable(&args.url));
    }
    output::message("removed the login\n")?;
    Ok(Exit::Ok)
}

fn store(engine: &Engine) -> anyhow::Result<&LoginStore> {
    let logins = engine.credentials().logins();
    logins.context("no folder for logins; set `HOME` or `XDG_STATE_HOME`")
}

/// Logs in, stores the login, and checks that the server accepts it.
async fn log_in(engine: &Engine, address: &str, args: &LoginArgs) -> anyhow::Result<()> {
    let url = parse_url(address)?;
    let store = store(engine)?;
    let options = LoginOptions {
        client_id: args.client_id.clone(),
        scopes: args.scope.clone(),
        issuer: args.issuer.clone(),
    };
    let login = PendingLogin::start(&url, &options).await?;
    let issuer = printable(login.issuer()).into_owned();
    output::message(&format!("to log in at {issuer}, open this page:\n"))?;
    match args.output.output {
        OutputFormat::Text => output::result(&format!("{}\n", login.page()))?,
        OutputFormat::Json => {
            output::json(&json!({"page": login.page(), "issuer": login.issuer()}))?;
        }
    }
    let opened = args.open.then(|| browser::open(login.page())).transpose();
    // The page is printed, so the user can still open it.
    let _page = opened.unwrap_or_else(|error| {
        let _ = output::message(&format!("can't open a browser: {error:#}\n"));
        None
    });
    let Ok(stored) = tokio::time::timeout(args.timeout, login.complete()).await else {
        let wait = proctor_record::duration::brief(args.timeout);
        output::message(&format!(
            "error: no login within {wait}; nothing was stored\n"
        ))?;
        return Err(ReportedExit(Exit::Failed).into());
    };
    store.save(&url, stored?).await?;
    check(engine, address, store).await?;
    let path = store.path().display();
    output::message(&format!("logged in; the tokens are in `{path}`\n"))
}

/// Connects with the new login. A login that the server refuses is removed.
async fn check(engine: &Engine, address: &str, store: &LoginStore) -> anyhow::Result<()> {
    let mut server = at_url(address, &[]);
    server.auth = Some(Auth::Login { is_required: true });
    let redactor = engine.redactor(std::slice::from_ref(&server));
    let recorder = Recorder::nothing().redacting(&redactor);
    let folder = TrialFolder::new("login");
    let options =
        engine.connect_options(Actor::Person, recorder, &[], Timeouts::default(), &folder);
    match Client::connect(&server, &options).await {
        Ok(client) => client.close().await,
        Err(ConnectError::Unauthorized { reason, .. }) => {
            store.remove(&parse_url(address)?).await?;
            let reason = output::printable_lines(&redactor.text(&reason));
            output::message(&format!("error: {reason}; nothing was stored\n"))?;
            return Err(ReportedExit(Exit::Failed).into());
        }
        Err(error) => {
            let error = redactor.text(&error.to_string()).into_owned();
            let error = output::printable_lines(&error);
            output::message(&format!("warning: the login could not be tried: {error}\n"))?;
        }
    }
    Ok(())
}

/// Shows why there is no login.
fn refused(error: anyhow::Error) -> anyhow::Result<Exit> {
    let exit = match error.downcast_ref::<AuthError>() {
        Some(AuthError::Refused(_) | AuthError::TokenRefused(_) | AuthError::Mismatch(_)) => {
            Exit::Failed
        }
        Some(_) => Exit::Inconclusive,
        None => return Err(error),
    };
    output::error(&error, &super::known_secrets());
    Ok(exit)
}

fn list(store: &LoginStore, format: OutputFormat) -> anyhow::Result<Exit> {
    let logins = store.list()?;
    let now = Timestamp::now();
    let expiry = |seconds: Option<u64>| {
        let seconds = i64::try_from(seconds?).ok()?;
        Timestamp::from_second(seconds).ok()
    };
    if format == OutputFormat::Json {
        let entries = logins.iter().map(|(url, login)| {
            json!({
                "url": url,
                "issuer": login.issuer,
                "expires": expiry(login.expires_at).map(|end| end.to_string()),
                "renewable": login.can_be_renewed(),
            })
        });
        let entries: Vec<_> = entries.collect();
        output::json(&json!({"logins": entries}))?;
        return Ok(Exit::Ok);
    }
    if logins.is_empty() {
        output::message("no logins are stored\n")?;
    }
    for (url, login) in &logins {
        let state = match expiry(login.expires_at) {
            _ if login.can_be_renewed() => "renewed when needed".to_owned(),
            Some(end) if end < now => "expired".to_owned(),
            Some(end) => format!("valid until {end}"),
            None => "valid".to_owned(),
        };
        let (url, issuer) = (printable(url), printable(&login.issuer));
        output::result(&format!("{url}  {issuer}  {state}\n"))?;
    }
    Ok(Exit::Ok)
}
