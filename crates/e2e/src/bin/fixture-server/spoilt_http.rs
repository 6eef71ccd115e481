//! Responses that are invalid HTTP, for any request.

use std::io;

use crate::channel::{Delivery, Http};
use crate::exchange::Exchange;
use crate::mode::Mode;
use crate::process;

/// Sends the invalid response that a mode asks for; `false` without such a mode.
pub fn answers(exchange: &Exchange, response: &Http) -> io::Result<bool> {
    if let Some(status) = exchange.number(Mode::HttpStatus, 500) {
        let status = u16::try_from(status).unwrap_or(500);
        response.body(
            status,
            "text/plain",
            &format!("status {status} was asked for").into(),
            Delivery::Whole,
        )?;
    } else if let Some(url) = exchange.argument(Mode::Redirect) {
        response.raw(&format!(
            "HTTP/1.1 307 Temporary Redirect\r\nLocation: {url}\r\nContent-Length: 0\r\n\r\n"
        ))?;
    } else if let Some(lines) = exchange.number(Mode::EndlessHeaders, u64::MAX) {
        response.raw("HTTP/1.1 200 OK\r\n")?;
        for line in 0..lines {
            response.raw(&format!("X-Filler-{line}: {}\r\n", "x".repeat(64)))?;
        }
    } else if exchange.has(Mode::SilentSse) {
        response.open()?;
        while exchange.pause(1000) && !exchange.channel.closed() {}
    } else if let Some(chunks) = exchange.number(Mode::EndlessChunks, u64::MAX) {
        response.raw("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")?;
        for _ in 0..chunks {
            response.raw("10\r\n               \n\r\n")?;
        }
    } else {
        return Ok(false);
    }
    if exchange.has(Mode::ExitBetweenCalls) {
        process::exit(3, "between calls");
    }
    Ok(true)
}
