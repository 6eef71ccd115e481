//! `proctor man`: a man page for each command, for packages of Proctor.

use std::fs;
use std::path::Path;

use anyhow::Context;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use super::counted;
use crate::args::{CliArguments, ManArgs};
use crate::exit::Exit;
use crate::output;

pub(crate) fn run(args: &ManArgs) -> anyhow::Result<Exit> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("can't create `{}`", folder.display()))?;
    let mut command = CliArguments::command().disable_help_subcommand(true);
    command.build();
    let pages = write_pages(&command, folder)?;
    let (pages, folder) = (counted(pages, "page"), folder.display());
    output::message(&format!("{pages} written to {folder}\n"))?;
    Ok(Exit::Ok)
}

/// Writes the pages of a command and of its subcommands, and returns how many these are.
fn write_pages(command: &Command, folder: &Path) -> anyhow::Result<usize> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let path = folder.join(format!("{name}.1"));
    let page = page(command)?;
    fs::write(&path, page).with_context(|| format!("can't write `{}`", path.display()))?;
    let mut pages = 1;
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        pages += write_pages(below, folder)?;
    }
    Ok(pages)
}

fn page(command: &Command) -> anyhow::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or(env!("CARGO_PKG_VERSION"));
    let man = Man::new(command.clone()).source(format!("proctor {version}"));
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let after = command.get_after_help().map(ToString::to_string);
    let after = after.unwrap_or_default();
    let (examples, notes) = after.split_once("\n\n").unwrap_or((&after, ""));
    let examples = examples.strip_prefix("Examples:\n").unwrap_or(examples);
    render_lines("EXAMPLES", examples, &mut page)?;
    render_lines("NOTES", notes, &mut page)?;
    Ok(page)
}

/// A section whose lines stay as they are: examples are commands.
fn render_lines(title: &str, text: &str, page: &mut Vec<u8>) -> anyhow::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut roff = Roff::default();
    roff.control("SH", [title]).control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
    roff.to_writer(page)?;
    Ok(())
}
