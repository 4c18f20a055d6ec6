//! Erasures: every row without text and salt names one that is on record, and no more
//! rows name it than the record says that it emptied.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use uuid::Uuid;

use super::findings::{Finding, FindingKind};
use crate::store::audit_scan::ScannedEvent;

/// The event of what administrators do.
const ADMINISTRATION: i16 = 22;

/// What an erasure says of itself, in its details.
#[derive(Deserialize)]
struct Extent {
    callers: u64,
    bodies: u64,
}

/// Erasures, as rows name them and as the record tells of them.
#[derive(Debug, Default)]
pub(super) struct Erasures {
    /// How many rows name each.
    named: HashMap<Uuid, u64>,
    /// How many each was going to empty.
    planned: HashMap<Uuid, u64>,
    /// How many each did, once it had come to its end.
    done: HashMap<Uuid, u64>,
}

impl Erasures {
    /// A row says that it was emptied by `erasure`.
    pub(super) fn name(&mut self, erasure: Uuid) {
        *self.named.entry(erasure).or_default() += 1;
    }

    /// Takes what an event tells of an erasure.
    pub(super) fn read(&mut self, event: &ScannedEvent, names: &HashMap<i32, Arc<str>>) {
        if event.event != ADMINISTRATION {
            return;
        }
        let action = event.tool.and_then(|tool| names.get(&tool));
        let details = event.body.as_ref().and_then(|body| body.arguments.as_ref());
        let extent = details.and_then(|details| serde_json::from_str::<Extent>(details).ok());
        let Some(Extent { callers, bodies }) = extent else {
            return;
        };
        let rows = callers.saturating_add(bodies);
        match (action.map(|action| &**action), event.linked_call_id) {
            (Some("audit.erase"), _) => self.planned.insert(event.call_id, rows),
            (Some("audit.erased"), Some(erasure)) => self.done.insert(erasure, rows),
            _ => None,
        };
    }

    /// The erasures that rows name.
    pub(super) fn ids(&self) -> Vec<Uuid> {
        self.named.keys().copied().collect()
    }

    /// What is wrong with them, `recorded` saying which are on record.
    pub(super) fn findings(&self, recorded: impl Fn(&Uuid) -> bool) -> Vec<Finding> {
        let wrong = |(id, rows): (&Uuid, &u64)| {
            let why = if recorded(id) {
                // Where the record of it is out of range, nothing is known of its extent.
                let emptied = self.done.get(id).or_else(|| self.planned.get(id))?;
                (rows > emptied).then(|| {
                    format!(
                        "{rows} callers and bodies name an erasure that emptied {emptied}: the others were emptied in its name"
                    )
                })?
            } else {
                format!("{rows} callers and bodies name an erasure that is not on record")
            };
            let mut finding = Finding::new(FindingKind::UnrecordedErasure, why);
            finding.call_id = Some(*id);
            Some(finding)
        };
        self.named.iter().filter_map(wrong).collect()
    }
}
