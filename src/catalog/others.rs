//! What an upstream offers besides tools, as one reading found it.

use std::time::Duration;

use super::fetch::Offer;
use super::item::{Family, Item, Items};
use super::judge::LeftOut;
use crate::ids::UpstreamId;
use crate::upstream::{Abilities, UpstreamError};

/// What an upstream offers besides tools.
#[derive(Default)]
pub(super) struct Others {
    pub(super) items: Items,
    pub(super) abilities: Abilities,
    pub(super) left_out: Vec<LeftOut>,
    pub(super) fresh_for: Option<Duration>,
}

impl Others {
    pub(super) fn add(&mut self, family: Family, offer: Offer<Item>, upstream: &UpstreamId) {
        if offer.cut {
            tracing::warn!(upstream.id = %upstream, list = family.method(), "An upstream has more in a list than is read; the rest is left out");
        }
        self.items.set(family, offer.items);
        self.left_out.extend(offer.left_out);
        self.fresh_for = match (self.fresh_for, offer.fresh_for) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
    }

    /// The list is tried again soon.
    pub(super) fn failed(
        &mut self,
        family: Family,
        fault: &UpstreamError,
        upstream: &UpstreamId,
        again: Duration,
    ) {
        tracing::warn!(upstream.id = %upstream, list = family.method(), error = %fault, "A list of an upstream cannot be read; what it held last stays");
        self.fresh_for = Some(again);
    }
}
