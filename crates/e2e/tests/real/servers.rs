//! The real servers that `scripts/install-servers` installs, and how they are started.

use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use proctor_e2e::port::ReservedPort;

/// A server on stdio, what it must offer, and a call with a known answer.
pub struct RealServer {
    pub command: Vec<String>,
    pub env: Option<(&'static str, String)>,
    pub era: &'static str,
    pub tools: &'static [&'static str],
    pub call: (&'static str, serde_json::Value),
    pub answer: &'static str,
}

/// `server-everything` as it listens; it is killed when it is dropped.
pub struct ListeningServer {
    child: Child,
    pub url: String,
}

pub const EVERYTHING: &[&str] = &[
    "echo",
    "get-annotated-message",
    "get-env",
    "get-resource-links",
    "get-resource-reference",
    "get-structured-content",
    "get-sum",
    "get-tiny-image",
    "gzip-file-as-resource",
    "toggle-simulated-logging",
    "toggle-subscriber-updates",
    "trigger-long-running-operation",
    "simulate-research-query",
];

pub fn everything() -> RealServer {
    RealServer {
        command: vec![node("mcp-server-everything"), "stdio".to_owned()],
        env: None,
        era: "handshake",
        tools: EVERYTHING,
        call: ("get-sum", serde_json::json!({ "a": 2, "b": 40 })),
        answer: "The sum of 2 and 40 is 42.\n",
    }
}

/// In a folder with a file `greeting`.
pub fn filesystem(folder: &Path) -> RealServer {
    // The server knows its folder by its real name.
    let folder = folder.canonicalize().unwrap();
    let greeting = folder.join("greeting");
    std::fs::write(&greeting, "hello, file\n").unwrap();
    RealServer {
        command: vec![
            node("mcp-server-filesystem"),
            folder.to_str().unwrap().to_owned(),
        ],
        env: None,
        era: "handshake",
        tools: &[
            "read_file",
            "read_text_file",
            "read_media_file",
            "read_multiple_files",
            "write_file",
            "edit_file",
            "create_directory",
            "list_directory",
            "list_directory_with_sizes",
            "directory_tree",
            "move_file",
            "search_files",
            "get_file_info",
            "list_allowed_directories",
        ],
        call: ("read_text_file", serde_json::json!({ "path": greeting })),
        answer: "hello, file\n",
    }
}

pub fn memory(folder: &Path) -> RealServer {
    let file = folder.join("memory.jsonl");
    RealServer {
        command: vec![node("mcp-server-memory")],
        env: Some(("MEMORY_FILE_PATH", file.to_str().unwrap().to_owned())),
        era: "handshake",
        tools: &[
            "create_entities",
            "create_relations",
            "add_observations",
            "delete_entities",
            "delete_observations",
            "delete_relations",
            "read_graph",
            "search_nodes",
            "open_nodes",
        ],
        call: (
            "create_entities",
            serde_json::json!({
                "entities": [{ "name": "n", "entityType": "t", "observations": ["o"] }],
            }),
        ),
        answer: r#"structured: {"entities":[{"name":"n","entityType":"t","observations":["o"]}]}"#,
    }
}

/// On a new repository.
pub fn git(folder: &Path) -> RealServer {
    let made = Command::new("git")
        .args(["init", "--quiet", "--initial-branch=main"])
        .arg(folder)
        .status()
        .unwrap();
    assert!(made.success(), "a repository can be made");
    RealServer {
        command: vec![python("mcp-server-git")],
        env: None,
        era: "stateless",
        tools: &[
            "git_status",
            "git_diff_unstaged",
            "git_diff_staged",
            "git_diff",
            "git_commit",
            "git_add",
            "git_reset",
            "git_log",
            "git_create_branch",
            "git_checkout",
            "git_show",
            "git_branch",
        ],
        call: ("git_status", serde_json::json!({ "repo_path": folder })),
        answer: "Repository status:\nOn branch main\n",
    }
}

pub fn time() -> RealServer {
    RealServer {
        command: vec![python("mcp-server-time")],
        env: None,
        era: "stateless",
        tools: &["get_current_time", "convert_time"],
        call: (
            "convert_time",
            serde_json::json!({
                "source_timezone": "UTC",
                "target_timezone": "Asia/Tokyo",
                "time": "12:00",
            }),
        ),
        answer: "T21:00:00+09:00",
    }
}

impl ListeningServer {
    /// Over `streamableHttp` or `sse`.
    pub fn everything(transport: &str) -> Self {
        let port = ReservedPort::new();
        let program = "node/node_modules/@modelcontextprotocol/server-everything/dist/index.js";
        let path = if transport == "sse" { "sse" } else { "mcp" };
        let mut command = Command::new("node");
        command
            .args([&installed(program), transport])
            .env("PORT", port.number().to_string());
        Self::start(&mut command, &port, path)
    }

    /// What a command starts at a port.
    pub fn start(command: &mut Command, port: &ReservedPort, path: &str) -> Self {
        let port = port.number();
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
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

impl Drop for ListeningServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn node(name: &str) -> String {
    installed(&format!("node/node_modules/.bin/{name}"))
}

pub fn python(name: &str) -> String {
    installed(&format!("python/bin/{name}"))
}

/// A file of the cache, found as `scripts/install-servers` finds the cache.
pub fn installed(file: &str) -> String {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let cache = variable("PROCTOR_TEST_CACHE").map_or_else(
        || {
            let caches = variable("XDG_CACHE_HOME").map_or_else(
                || PathBuf::from(variable("HOME").expect("HOME is set")).join(".cache"),
                PathBuf::from,
            );
            caches.join("proctor-tests")
        },
        PathBuf::from,
    );
    let path = cache.join(file);
    assert!(
        path.exists(),
        "`{}` is missing; run `scripts/install-servers`",
        path.display()
    );
    path.to_str().unwrap().to_owned()
}
