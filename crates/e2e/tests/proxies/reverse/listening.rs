//! A real server that listens.

use std::net::{Ipv4Addr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::port::ReservedPort;

/// `server-everything`; it is killed when it is dropped.
pub struct EverythingServer {
    child: Child,
    pub url: String,
}

impl EverythingServer {
    /// Over `streamableHttp` or `sse`.
    pub fn start(transport: &str) -> Self {
        let reserved = ReservedPort::new();
        let port = reserved.number();
        let child = Command::new("node")
            .arg(program())
            .arg(transport)
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("node is installed");
        let path = if transport == "sse" { "sse" } else { "mcp" };
        // Made before the wait, so that a server that never listens is killed too.
        let server = Self {
            child,
            url: format!("http://127.0.0.1:{port}/{path}"),
        };
        let deadline = Instant::now() + Duration::from_mins(2);
        while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        server
    }
}

impl Drop for EverythingServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// As `scripts/install-servers` installs it.
fn program() -> PathBuf {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let own = || PathBuf::from(variable("HOME").expect("HOME is set")).join(".cache");
    let caches = || variable("XDG_CACHE_HOME").map_or_else(own, PathBuf::from);
    let cache = variable("PROCTOR_TEST_CACHE")
        .map_or_else(|| caches().join("proctor-tests"), PathBuf::from);
    cache.join("node/node_modules/@modelcontextprotocol/server-everything/dist/index.js")
}
