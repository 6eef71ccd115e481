//! `proctor init`: writes a small example suite, or a first selection file for a server.

mod selection;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use proctor_core::printable::printable;

use crate::args::InitArgs;
use crate::exit::Exit;
use crate::output;

const FILES: [(&str, &str); 4] = [
    ("eval.yaml", include_str!("init/eval.yaml")),
    ("mcp-config.yaml", include_str!("init/mcp-config.yaml")),
    ("model.yaml", include_str!("init/model.yaml")),
    ("tasks/borrow.yaml", include_str!("init/tasks/borrow.yaml")),
];

pub(crate) fn run(args: &InitArgs) -> anyhow::Result<Exit> {
    if args.selection {
        return selection::run(args);
    }
    let server = &args.server;
    if server.url.is_some() || server.config.is_some() || !server.command.is_empty() {
        bail!("a server belongs to `--selection`");
    }
    let folder = &args.folder;
    let taken: Vec<&str> = FILES
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| folder.join(name).symlink_metadata().is_ok())
        .collect();
    if !taken.is_empty() {
        bail!(
            "`{}` already has {}; nothing was written",
            folder.display(),
            proctor_core::hint::listed(taken)
        );
    }
    let mut text = String::new();
    for (name, content) in FILES {
        let path = folder.join(name);
        write_new(&path, content).with_context(|| format!("can't write `{}`", path.display()))?;
        let shown = path.display().to_string();
        text.push_str(&format!("wrote {}\n", printable(&shown)));
    }
    let eval = folder.join("eval.yaml").display().to_string();
    text.push_str(&format!("next: proctor check {}\n", printable(&eval)));
    output::result(&text)?;
    Ok(Exit::Ok)
}

/// Writes a new file; fails if the file exists, also if another process just created it.
fn write_new(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create_new(path)?.write_all(content.as_bytes())
}
