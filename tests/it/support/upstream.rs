//! Upstreams to put behind the server: our own helpers (`examples/`), real ones
//! from npm, and bare addresses where nothing answers.

use std::path::Path;
use std::process::Command;

use super::process::{Process, free_port};
use super::server::http_client;
use super::{Value, config, eventually, json, real};

/// An upstream that speaks HTTP.
#[derive(Debug)]
pub(crate) struct Helper {
    process: Option<Process>,
    url: String,
}

impl Helper {
    /// One of the programs in `examples/`. It says `listening on ADDRESS` once it
    /// does; its endpoint is `/mcp` unless it prints a whole URL.
    pub(crate) async fn example(name: &str, args: &[&str]) -> Self {
        let program = example_path(name);
        let process = Process::start(name, Command::new(program).args(args));
        let line = process.output().line_with("listening on ").await;
        let place = line.split("listening on ").nth(1).unwrap();
        let place = place.split_whitespace().next().unwrap();
        let url = if place.starts_with("http") {
            place.to_owned()
        } else {
            format!("http://{place}/mcp")
        };
        Self {
            url,
            process: Some(process),
        }
    }

    /// npm's `@modelcontextprotocol/server-everything` over Streamable HTTP.
    pub(crate) async fn everything() -> Self {
        let port = free_port();
        let mut command = real::node();
        command.arg(real::npm_file(
            "@modelcontextprotocol/server-everything/dist/index.js",
        ));
        let process = Process::start(
            "server-everything",
            command.arg("streamableHttp").env("PORT", port.to_string()),
        );
        eventually("server-everything listens", async || {
            tokio::net::TcpStream::connect(("127.0.0.1", port))
                .await
                .ok()
        })
        .await;
        Self {
            url: format!("http://127.0.0.1:{port}/mcp"),
            process: Some(process),
        }
    }

    /// Something at this URL that is not ours to start or end.
    pub(crate) fn at(url: &str) -> Self {
        Self {
            process: None,
            url: url.to_owned(),
        }
    }

    /// An address where nothing listens.
    pub(crate) fn nowhere() -> Self {
        Self::at(&format!("http://127.0.0.1:{}/mcp", free_port()))
    }

    /// Its MCP endpoint.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The URL of another path of it.
    pub(crate) fn url_of(&self, path: &str) -> String {
        let mut parts = self.url.splitn(4, '/');
        let origin: Vec<_> = parts.by_ref().take(3).collect();
        format!("{}{path}", origin.join("/"))
    }

    /// How it stands in the configuration.
    pub(crate) fn config(&self) -> Value {
        json!({"mcp": {"url": self.url, "allow_private": true}})
    }

    /// The same for another path of it, such as `/legacy`.
    pub(crate) fn config_of(&self, path: &str) -> Value {
        json!({"mcp": {"url": self.url_of(path), "allow_private": true}})
    }

    /// The calls that `upstream_hostile` has received so far: their bodies.
    pub(crate) async fn calls(&self) -> Vec<Value> {
        let answer = http_client().get(self.url_of("/seen")).send().await;
        let seen: Vec<Value> = answer.unwrap().json().await.unwrap();
        let bodies = seen.iter().filter_map(|asked| asked["body"].as_str());
        bodies
            .filter_map(|body| serde_json::from_str::<Value>(body).ok())
            .filter(|body| body["method"] == "tools/call")
            .collect()
    }

    /// Its process.
    pub(crate) fn process(&mut self) -> &mut Process {
        self.process.as_mut().expect("a process of ours")
    }
}

/// One of the programs in `examples/` as an upstream over standard streams.
pub(crate) fn stdio_example(name: &str, args: &[&str]) -> Value {
    json!({"stdio": {"command": example_path(name), "args": args}})
}

/// npm's `@modelcontextprotocol/server-everything` as a child.
pub(crate) fn everything_stdio() -> Value {
    let script = real::npm_file("@modelcontextprotocol/server-everything/dist/index.js");
    json!({"stdio": {"command": real::node_program(), "args": [script, "stdio"]}})
}

/// npm's `@modelcontextprotocol/server-filesystem` as a child, over one folder.
pub(crate) fn filesystem_stdio(folder: &Path) -> Value {
    let script = real::npm_file("@modelcontextprotocol/server-filesystem/dist/index.js");
    json!({"stdio": {"command": real::node_program(), "args": [script, folder]}})
}

/// Where Cargo puts an example: beside the program.
pub(crate) fn example_path(name: &str) -> std::path::PathBuf {
    let path = Path::new(config::TOOLGATE)
        .parent()
        .unwrap()
        .join("examples")
        .join(name);
    assert!(
        path.is_file(),
        "{name} is not built: `cargo build --examples` does that"
    );
    path
}
