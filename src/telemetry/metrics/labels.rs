//! Label sets.

use std::sync::Arc;

use prometheus_client::encoding::EncodeLabelSet;

use crate::ids::UpstreamId;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OperationLabels {
    pub(super) method: &'static str,
    pub(super) upstream: Arc<str>,
    pub(super) tool: Arc<str>,
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
