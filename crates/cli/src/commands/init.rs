//! `proctor init`: writes a small example suite, a suite from a recording, or a first selection file for a server.

mod selection;

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::{Context, bail};
use proctor_core::draft::SuiteDraft;
use proctor_core::printable::printable;
use proctor_record::hint::counted;

use super::result::source;
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
    let mut text = String::new();
    if let Some(run) = &args.from {
        let source = source::open(run)?;
        let draft = SuiteDraft::of(source.run())
            .with_context(|| format!("can't write a suite from `{}`", run.display()))?;
        let files = draft.files.iter();
        let files: Vec<_> = files.map(|(name, text)| (*name, text.as_str())).collect();
        write_all(&args.folder, &files, &mut text)?;
        for note in &draft.notes {
            text.push_str(&format!("note: {}\n", printable(note)));
        }
        let calls = counted(draft.calls, "recorded call");
        text.push_str(&format!(
            "the script makes {calls}; it tests the server, not an agent\n"
        ));
    } else {
        write_all(&args.folder, &FILES, &mut text)?;
    }
    let eval = args.folder.join("eval.yaml").display().to_string();
    text.push_str(&format!("next: proctor check {}\n", printable(&eval)));
    output::result(&text)?;
    Ok(Exit::Ok)
}

/// Writes the files of a suite, none of which may exist.
fn write_all(folder: &Path, files: &[(&str, &str)], text: &mut String) -> anyhow::Result<()> {
    let names = files.iter().map(|(name, _)| *name);
    let taken: Vec<&str> = names
        .filter(|name| folder.join(name).symlink_metadata().is_ok())
        .collect();
    if !taken.is_empty() {
        bail!(
            "`{}` already has {}; nothing was written",
            folder.display(),
            proctor_record::hint::listed(taken)
        );
    }
    for (name, content) in files {
        let path = folder.join(name);
        write_new(&path, content).with_context(|| format!("can't write `{}`", path.display()))?;
        let shown = path.display().to_string();
        text.push_str(&format!("wrote {}\n", printable(&shown)));
    }
    Ok(())
}

/// Writes a new file; fails if the file exists, also if another process just created it.
fn write_new(path: &Path, content: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::File::create_new(path)?.write_all(content.as_bytes())
}
