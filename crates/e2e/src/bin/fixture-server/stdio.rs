//! The stdio transport: one message per line.

use std::io::{self, BufRead};
use std::sync::Arc;

use serde_json::Value;

use crate::channel::{Channel, Delivery, Lines};
use crate::exchange::Exchange;
use crate::message::{Era, FixtureMessage, PARSE_ERROR, Reply, answer};
use crate::mode::Mode;
use crate::process;
use crate::server::Server;

/// Serves until stdin is closed.
pub fn serve(server: &Arc<Server>) -> io::Result<()> {
    let lines = Arc::new(Lines::new(&server.options.modes, server.witness.clone()));
    if server.has(Mode::Bom) {
        lines.noise("\u{feff}".as_bytes())?;
    }
    if server.has(Mode::Banner) {
        lines.noise(b"Fixture server ready on stdio\n")?;
    }
    let channel = Channel::Lines(lines);
    let session = server.open_session();
    let unread_after = server.options.modes.number(Mode::NeverReadsStdin, 0);
    let mut stdin = io::stdin().lock();
    let mut line = Vec::new();
    for read in 0_u64.. {
        if Some(read) == unread_after {
            process::stay();
        }
        line.clear();
        if stdin.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        server
            .witness
            .received(line.strip_suffix(b"\n").unwrap_or(&line), None);
        let message = line.trim_ascii();
        match FixtureMessage::parse(message) {
            FixtureMessage::Request(request) => {
                let era = server.era(&request, &session);
                server.serve(Exchange::new(
                    server,
                    &session,
                    channel.clone(),
                    request,
                    era,
                ));
            }
            FixtureMessage::Notification { method, params } => {
                server.notice(&method, &params, &session, Some(&channel));
            }
            FixtureMessage::Answer { id, body } => session.answered(&id, body),
            FixtureMessage::Broken => {
                let reply = Reply::error(PARSE_ERROR, "not a message").member(Era::Handshake);
                channel.finish(400, &answer(&Value::Null, reply), Delivery::Whole)?;
            }
        }
    }
    if server.has(Mode::IgnoresStdinClose) {
        process::stay();
    }
    Ok(())
}
