//! `upstreams`: where tools come from.

mod validate;

use std::fmt;
use std::path::PathBuf;

use indexmap::IndexMap;
use serde::Deserialize;

use super::{ByteSize, ClientTls, Interval};
use crate::ids::TenantId;

/// One entry of `upstreams`: exactly one of `mcp` and `stdio`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Upstream {
    /// An MCP server over Streamable HTTP.
    #[serde(default)]
    pub mcp: Option<McpUpstream>,
    /// An MCP server as a child process.
    #[serde(default)]
    pub stdio: Option<StdioUpstream>,
    /// Put before the upstream's own tool names.
    #[serde(default)]
    pub prefix: String,
    /// The tenants that have this upstream. Without it: all.
    #[serde(default)]
    pub tenants: Option<Vec<TenantId>>,
    /// How long things may take.
    #[serde(default)]
    pub timeout: Timeouts,
    /// How many requests may be in flight.
    #[serde(default = "concurrent")]
    pub concurrent: u32,
    /// What is sent to prove who calls.
    #[serde(default)]
    pub credentials: Credentials,
    /// Whether the service is ready only with this upstream.
    #[serde(default)]
    pub required: bool,
    /// When to stop trying for a while.
    #[serde(default)]
    pub breaker: Breaker,
    /// Largest answer that is read.
    #[serde(default = "max_answer")]
    pub max_answer: ByteSize,
    /// How often the list of tools is read again where the upstream does not announce changes.
    #[serde(default = "refresh")]
    pub refresh: Interval,
    /// How long the tools of an upstream that is away stay listed.
    #[serde(default = "stale_for")]
    pub stale_for: Interval,
    /// What happens to a definition that looks tampered with.
    #[serde(default)]
    pub suspicious: DefinitionPolicy,
}

fn concurrent() -> u32 {
    64
}

fn max_answer() -> ByteSize {
    ByteSize(10 << 20)
}

fn refresh() -> Interval {
    Interval::seconds(60)
}

fn stale_for() -> Interval {
    Interval::seconds(24 * 3600)
}

/// The kind of an upstream, once it is known that there is exactly one.
#[derive(Clone, Copy, Debug)]
pub enum UpstreamKind<'a> {
    /// MCP over Streamable HTTP.
    Mcp(&'a McpUpstream),
    /// MCP over a child's standard streams.
    Stdio(&'a StdioUpstream),
}

impl Upstream {
    /// The one kind that is given; `None` where it is not exactly one.
    pub fn kind(&self) -> Option<UpstreamKind<'_>> {
        match (&self.mcp, &self.stdio) {
            (Some(mcp), None) => Some(UpstreamKind::Mcp(mcp)),
            (None, Some(stdio)) => Some(UpstreamKind::Stdio(stdio)),
            _ => None,
        }
    }

    /// Whether a tenant has this upstream.
    pub fn serves(&self, tenant: &TenantId) -> bool {
        self.tenants
            .as_ref()
            .is_none_or(|tenants| tenants.contains(tenant))
    }
}

/// `upstreams.*.mcp`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McpUpstream {
    /// The MCP endpoint.
    pub url: String,
    /// Whether the endpoint may be at a private or loopback address. Off: such an
    /// address is refused when the connection is made.
    #[serde(default)]
    pub allow_private: bool,
    /// What is shown to the server, and believed of it, beyond the ordinary.
    #[serde(default)]
    pub tls: Option<ClientTls>,
}

/// `upstreams.*.stdio`
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StdioUpstream {
    /// The program.
    pub command: String,
    /// Its arguments.
    #[serde(default)]
    pub args: Vec<String>,
    /// Its environment, beside `PATH`, `HOME`, `LANG` and `TMPDIR`. Nothing else is inherited.
    #[serde(default)]
    pub env: IndexMap<String, String>,
    /// Its working directory.
    #[serde(default)]
    pub cwd: Option<PathBuf>,
}

/// Shows the URL without its query, which may hold a secret.
impl fmt::Debug for McpUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("McpUpstream")
            .field("url", &url)
            .field("allow_private", &self.allow_private)
            .finish_non_exhaustive()
    }
}

/// Shows neither arguments nor values of variables: secrets come by both.
impl fmt::Debug for StdioUpstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StdioUpstream")
            .field("command", &self.command)
            .field("args", &self.args.len())
            .field("env", &self.env.keys())
            .field("cwd", &self.cwd)
            .finish()
    }
}

/// `upstreams.*.timeout`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Timeouts {
    /// Until a connection stands, or a child answers its first request.
    pub connect: Interval,
    /// Until a call is answered.
    pub call: Interval,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Interval::seconds(5),
            call: Interval::seconds(60),
        }
    }
}

/// `upstreams.*.credentials`
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Credentials {
    /// A header with a fixed value.
    pub header: Option<HeaderCredential>,
}

/// `upstreams.*.credentials.header`
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HeaderCredential {
    /// The header's name.
    pub name: String,
    /// File with its value; read again when it changes.
    pub value_file: PathBuf,
}

/// `upstreams.*.breaker`
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Breaker {
    /// Failures in a row that open it.
    pub failures: u32,
    /// How long it stays open before one call may try.
    pub open_for: Interval,
}

impl Default for Breaker {
    fn default() -> Self {
        Self {
            failures: 5,
            open_for: Interval::seconds(10),
        }
    }
}

/// `upstreams.*.suspicious`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DefinitionPolicy {
    /// The tool is listed, cleaned.
    Clean,
    /// The tool is left out and a warning is logged.
    #[default]
    Quarantine,
}
