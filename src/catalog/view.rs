//! One tenant's tools. A view never changes; when the tools do, another takes its
//! place. Who may see which of them is not decided here.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use moka::sync::Cache;

use super::digest::sha256;
use super::tool::Tool;
use crate::ids::Role;

/// Most selections that a view remembers.
const MOST_SELECTIONS: u64 = 1_024;

/// What a selection of tools depends on besides the view: the tenant's rules by
/// their stamp, and the roles that they know, sorted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SelectionKey {
    /// The stamp of the tenant's rules.
    pub rules: u64,
    /// The roles.
    pub roles: Vec<Role>,
}

/// The tools of a tenant, ordered by exposed name: the same however an upstream
/// happens to order its list, and unmoved by a new upstream before others.
pub struct View {
    tools: Vec<Arc<Tool>>,
    version: u64,
    digest: [u8; 32],
    ttl: Duration,
    selections: Cache<SelectionKey, Arc<[Arc<Tool>]>>,
}

impl View {
    /// `tools` need not be in order; of several with one name the first stays.
    pub(super) fn new(mut tools: Vec<Arc<Tool>>, version: u64, ttl: Duration) -> Self {
        tools.sort_by(|a, b| a.exposed.cmp(&b.exposed));
        tools.dedup_by(|later, earlier| later.exposed == earlier.exposed);
        let digest = fingerprint(&tools);
        Self {
            tools,
            version,
            digest,
            ttl,
            selections: Cache::new(MOST_SELECTIONS),
        }
    }

    /// The view of a tenant that has none.
    pub(super) fn empty() -> Self {
        Self::new(Vec::new(), 0, Duration::ZERO)
    }

    /// A tool by its exposed name.
    pub fn get(&self, name: &str) -> Option<&Arc<Tool>> {
        let at = self
            .tools
            .binary_search_by(|tool| tool.exposed.as_str().cmp(name))
            .ok()?;
        self.tools.get(at)
    }

    /// All tools in order.
    pub fn tools(&self) -> &[Arc<Tool>] {
        &self.tools
    }

    /// Another number means other tools, or other rules of the operator for them.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A digest of all that a caller can notice of the tools.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// How long a caller may take its list for fresh: short while an upstream is away.
    pub fn ttl(&self) -> Duration {
        self.ttl
    }

    /// A selection of the tools, made once and remembered with the view. The key
    /// must hold everything that the selection depends on.
    pub fn selection(&self, key: SelectionKey, select: impl Fn(&Tool) -> bool) -> Arc<[Arc<Tool>]> {
        self.selections.get_with(key, || {
            let chosen = self.tools.iter().filter(|tool| select(tool));
            chosen.cloned().collect()
        })
    }
}

/// A digest of all that a caller who sees these tools can notice of them.
pub fn fingerprint(tools: &[Arc<Tool>]) -> [u8; 32] {
    let mut bytes = Vec::with_capacity(tools.len() * 64);
    for tool in tools {
        bytes.extend(tool.digest);
        bytes.extend(tool.upstream.as_str().as_bytes());
        for scope in &tool.rule.scopes {
            bytes.push(b' ');
            bytes.extend(scope.as_str().as_bytes());
        }
        bytes.push(b'\n');
    }
    sha256(&bytes)
}

impl fmt::Debug for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "View({} tools, version {})",
            self.tools.len(),
            self.version
        )
    }
}
