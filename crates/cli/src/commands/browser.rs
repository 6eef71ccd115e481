//! Opens a page in the user's browser.
//!
//! The URL holds a token, and every user of the machine can see command lines. So the browser opens a private file
//! that leads to the URL.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Stdio;

use anyhow::Context;
use proctor_contain::os::FILE_OPENER;
use proctor_contain::scratch::{self, Scratch};

/// The file that the browser opens. It is removed with this.
pub(super) struct OpenedPage {
    _folder: Scratch,
}

/// Starts the browser. It belongs to the user, and outlives Proctor.
#[expect(
    clippy::disallowed_methods,
    reason = "the user's own browser is not under test, and must outlive Proctor"
)]
pub(super) fn open(url: &str) -> anyhow::Result<OpenedPage> {
    scratch::sweep();
    let scratch = Scratch::new().context("can't create a temporary folder")?;
    let file = scratch.folder("page")?.join("open.html");
    let url = url
        .replace('&', "&amp;")
        .replace('"', "&quot;")
        .replace('<', "&lt;");
    let page = format!("<!doctype html><meta http-equiv=\"refresh\" content=\"0; url={url}\">");
    fs::write(&file, page).context("can't write a temporary file")?;
    let browser = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let program = browser.unwrap_or(OsString::from(FILE_OPENER));
    std::process::Command::new(&program)
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C in the terminal must not end the browser.
        .process_group(0)
        .spawn()
        .with_context(|| format!("can't start `{}`", program.display()))?;
    Ok(OpenedPage { _folder: scratch })
}
