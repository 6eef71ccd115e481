//! `proctor init --selection`: a selection file with one row per tool, whose prompts a person writes.

use anyhow::Context;
use proctor_core::printable::printable;
use proctor_core::suite::PLACEHOLDER;
use proctor_record::json;
use proctor_wire::client::ListLimits;
use serde_json::Value;

use super::super::session::{CommandOutcome, with_client};
use super::write_new;
use crate::args::InitArgs;
use crate::exit::Exit;
use crate::output;

const FILE: &str = "selection.yaml";

pub(super) fn run(args: &InitArgs) -> anyhow::Result<Exit> {
    let path = args.folder.join(FILE);
    let shown = path.display().to_string();
    if path.symlink_metadata().is_ok() {
        anyhow::bail!("`{shown}` exists; nothing was written");
    }
    with_client(&args.server, "init", async |client, redactor| {
        let listed = match client.list_tools(&ListLimits::default()).await {
            Ok(listed) => listed,
            Err(error) => {
                return Ok(CommandOutcome::because(
                    Exit::Inconclusive,
                    error.to_string(),
                ));
            }
        };
        let tools = listed.items.iter();
        let tools: Vec<Value> = tools
            .filter_map(|raw| json::from_str(raw.get()).ok())
            .collect();
        let rows: Vec<String> = tools.iter().filter_map(row).collect();
        if rows.is_empty() {
            let reason = "the server lists no tools";
            return Ok(CommandOutcome::because(Exit::Inconclusive, reason));
        }
        let text = redactor.text(&file(&rows)).into_owned();
        write_new(&path, &text).with_context(|| format!("can't write `{shown}`"))?;
        let shown = printable(&shown);
        output::result(&format!(
            "wrote {shown} with {} rows\nnext: replace each prompt, and add \
             `{{selection: {FILE}, server: NAME}}` to `taskSets`\n",
            rows.len()
        ))?;
        Ok(CommandOutcome::ok())
    })
}

fn file(rows: &[String]) -> String {
    format!(
        "# One row per tool. Replace each prompt with what a user would ask, without the name of the tool: \
         `proctor check`\n# refuses the placeholders. Add rows that are easy to confuse, and rows with \
         `expect: none`.\nkind: Selection\nmetadata:\n  name: selection\nspec:\n  rows:\n{}",
        rows.concat()
    )
}

/// The row of a tool; `None` if it has no name. JSON strings are YAML strings.
fn row(tool: &Value) -> Option<String> {
    let name = tool.get("name")?.as_str()?;
    let about = tool.get("description").and_then(Value::as_str);
    let about = about.and_then(|text| text.trim().lines().next());
    let about: String = about.unwrap_or_default().chars().take(200).collect();
    let prompt = match about.trim() {
        "" => PLACEHOLDER.to_owned(),
        about => format!("{PLACEHOLDER}: {about}"),
    };
    // A tool that is called `none` is a list, since the word alone means no call.
    let expect = match name {
        "none" => Value::from(vec![name]),
        name => Value::from(name),
    };
    Some(format!(
        "    - prompt: {}\n      expect: {expect}\n",
        Value::from(prompt)
    ))
}
