//! `resources`: how the URIs of many servers live side by side.

use serde::Deserialize;

/// `resources`
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Resources {
    /// Under which URIs callers see what upstreams offer.
    pub uri: ResourceUris,
}

/// Under which URIs callers see what upstreams offer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ResourceUris {
    /// Under their own; of two upstreams with one URI the earlier one has it.
    #[default]
    Keep,
    /// Under their own with the upstream's id in it, so that no two are the same.
    Prefix,
}
