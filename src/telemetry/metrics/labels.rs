//! Label sets, and what bounds them.

use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

use prometheus_client::encoding::EncodeLabelSet;

use crate::ids::UpstreamId;

/// Values of a label that have series of their own; later ones share [`OTHER`].
const MOST: usize = 500;
pub(super) const OTHER: &str = "other";

/// The first so many values of a label.
#[derive(Debug, Default)]
pub(super) struct Bounded(RwLock<HashSet<Arc<str>>>);

impl Bounded {
    /// The value, or what stands for all that came too late.
    pub(super) fn label(&self, value: &str) -> Arc<str> {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        match known.get(value) {
            Some(own) => return Arc::clone(own),
            None if known.len() >= MOST => return OTHER.into(),
            None => drop(known),
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST && !known.contains(value) {
            return OTHER.into();
        }
        let own: Arc<str> = value.into();
        known.insert(Arc::clone(&own));
        own
    }
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OperationLabels {
    pub(super) method: &'static str,
    pub(super) upstream: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) outcome: &'static str,
    pub(super) error_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ClientLabels {
    pub(super) method: &'static str,
    pub(super) upstream: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) transport: &'static str,
    pub(super) error_type: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct SessionLabels {
    pub(super) version: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ClientSessionLabels {
    pub(super) upstream: Arc<str>,
    pub(super) version: &'static str,
    pub(super) transport: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct TenantLabels {
    pub(super) tenant: Arc<str>,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct CallLabels {
    pub(super) upstream: Arc<str>,
    pub(super) tool: Arc<str>,
    pub(super) outcome: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ReasonLabel {
    pub(super) reason: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct LaneLabel {
    pub(super) lane: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct LabelLabel {
    pub(super) label: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct ResultLabel {
    pub(super) result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct UpstreamLabel {
    upstream: Arc<str>,
}

impl UpstreamLabel {
    pub(super) fn new(upstream: &UpstreamId) -> Self {
        Self {
            upstream: upstream.as_str().into(),
        }
    }
}
