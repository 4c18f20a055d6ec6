//! Lawful erasure: who somebody was and what was said, in every table; that something
//! happened, and when, stays. Put on record before it begins and after it ended.

use time::{Date, OffsetDateTime};

use super::act::{Act, ActKind, Actor};
use super::auditor::{AuditFault, Auditor};
use crate::store::audit_erasures::{ErasedRows, ErasureTarget};
use crate::store::{Store, StoreError};

/// An erasure that is asked for.
#[derive(Clone, Debug)]
pub struct Erasure {
    /// What.
    pub target: ErasureTarget,
    /// Only days before this one, UTC.
    pub before: Option<Date>,
    /// On whose word, for the record.
    pub actor: Actor,
    /// Why, for the record: a case number rather than a name.
    pub reason: Option<String>,
}

/// How much was, or would be, erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Callers.
    pub callers: i64,
    /// Bodies.
    pub bodies: i64,
    /// Days that had any of them.
    pub days: u64,
    /// Names of tenants, upstreams and tools that hold the text. They are the
    /// operator's words, every event that uses them is bound to them, and they stay.
    pub names: Vec<String>,
}

/// Why an erasure did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EraseFault {
    /// It cannot be put on record, so nothing was erased.
    #[error("the erasure cannot be put on record, so nothing was erased: {0}")]
    Unrecorded(AuditFault),
    /// The database's fault. What was erased until then stays erased; asking again goes on.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Erasure {
    /// What it would erase.
    ///
    /// # Errors
    /// The database's fault.
    pub async fn count(&self, store: &Store) -> Result<Erased, StoreError> {
        let mut scan = store.scan().await?;
        let mut erased = Erased::default();
        for day in self.days(scan.days().await?) {
            erased.add(scan.count_erasable(day, &self.target).await?);
        }
        let texts = [&self.target.subject, &self.target.text];
        for text in texts.into_iter().flatten() {
            erased.names.extend(scan.names_holding(text).await?);
        }
        Ok(erased)
    }

    fn days(&self, days: Vec<Date>) -> impl Iterator<Item = Date> {
        let before = self.before;
        days.into_iter()
            .filter(move |day| before.is_none_or(|before| *day < before))
    }

    /// Names nobody: who was erased must not stand in the record of it.
    fn act(&self, action: &'static str, erased: &Erased) -> Act {
        let by = match (&self.target.subject, &self.target.text) {
            (Some(_), Some(_)) => "subject and text",
            (Some(_), None) => "subject",
            _ => "text",
        };
        let mut act = Act::new(ActKind::ADMINISTRATION, action)
            .actor(self.actor.clone())
            .detail("by", by)
            .detail("callers", erased.callers)
            .detail("bodies", erased.bodies)
            .detail("days", erased.days);
        if let Some(before) = self.before {
            act = act.detail("before", before.to_string());
        }
        if let Some(tenant) = &self.target.tenant {
            act = act.detail("tenant", tenant.as_str());
        }
        if let Some(reason) = &self.reason {
            act = act.detail("case", reason.as_str());
        }
        act
    }
}

impl Erased {
    fn add(&mut self, rows: ErasedRows) {
        self.callers += rows.callers;
        self.bodies += rows.bodies;
        self.days += u64::from(rows != ErasedRows::default());
    }
}

/// Erases, `counted` being what [`Erasure::count`] gave. `store` has to be connected as
/// the tables' owner.
///
/// # Errors
/// [`EraseFault`]; an erasure that was cut short may be asked for again.
pub async fn erase(
    store: &Store,
    auditor: &Auditor,
    erasure: &Erasure,
    counted: &Erased,
    now: OffsetDateTime,
) -> Result<Erased, EraseFault> {
    let id = auditor
        .record(&erasure.act("audit.erase", counted))
        .await
        .map_err(EraseFault::Unrecorded)?;
    let mut scan = store.scan().await?;
    let mut erased = Erased {
        names: counted.names.clone(),
        ..Erased::default()
    };
    for day in erasure.days(scan.days().await?) {
        let rows = scan.update_erased(day, &erasure.target, id.0, now).await?;
        erased.add(rows);
    }
    // Old versions of the rows hold the texts until they are overwritten; where the
    // login may not do that, autovacuum does it later.
    if let Err(error) = scan.vacuum().await {
        tracing::warn!(%error, "The tables could not be vacuumed after the erasure.");
    }
    let done = erasure.act("audit.erased", &erased).follows(id);
    auditor
        .record(&done)
        .await
        .map_err(EraseFault::Unrecorded)?;
    Ok(erased)
}
