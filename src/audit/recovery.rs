//! Closing calls that have no end: their replica is gone, or their deadline
//! passed. Any replica does it for all. It invents no outcome: a closed call
//! reads `unknown` as before, and one that is finished after all reads as it ended.
//!
//! A replica is gone when it said so, or when its heartbeat stood still over
//! several looks in which our own went on. So a database that was paused, or a
//! process that was, makes nobody look dead: in neither do heartbeats go on.

use std::collections::HashMap;
use std::time::Duration;

use time::OffsetDateTime;

use super::auditor::{AuditFault, Auditor};
use crate::ids::ReplicaId;
use crate::store::audit_orphans::{OrphanQuery, OrphanSearch};
use crate::store::replicas::Replica;
use crate::store::{Store, StoreError};

/// Looks, one a heartbeat, in which a replica has to be silent.
const SILENT_LOOKS: u32 = 4;

/// Looks between those for calls whose deadline passed.
const DEADLINE_LOOKS: u32 = 12;

/// Beyond the deadline of a call: its outcome has to be written, clocks differ.
const MARGIN: Duration = Duration::from_mins(2);

/// How long calls may run where no replica says so.
const CALL_LIMIT: Duration = Duration::from_hours(1);

/// Calls of one look are looked for in stretches of this length: at the highest
/// rates a stretch is still read within a second or two.
const STRETCH: time::Duration = time::Duration::minutes(1);

/// A call's id, by which calls are found in order, is not quite its time.
const SLACK: time::Duration = time::Duration::seconds(5);

/// Stretches of one look. What is left is for the next.
const STRETCHES: u32 = 50;

/// Calls that are closed in one batch.
const CLOSED_AT_ONCE: u32 = 500;

const GONE: &str = "its replica is gone";
const LATE: &str = "its deadline passed";

/// What one look did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// Calls that were closed.
    pub closed: u64,
    /// Replicas whose calls are settled.
    pub replicas: u64,
}

/// Why a look came to no end. The next one begins where it stopped.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryFault {
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The record.
    #[error(transparent)]
    Audit(#[from] AuditFault),
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    at: OffsetDateTime,
    silent: u32,
}

/// What one replica knows of the others.
#[derive(Debug)]
pub struct Recovery {
    me: ReplicaId,
    mine: Option<OffsetDateTime>,
    heard: HashMap<ReplicaId, Heard>,
    looks: u32,
}

impl Recovery {
    /// Nothing is known yet.
    pub fn new(me: ReplicaId) -> Self {
        Self {
            me,
            mine: None,
            heard: HashMap::new(),
            looks: 0,
        }
    }

    /// One look, to be taken once a heartbeat.
    ///
    /// # Errors
    /// When the database or the audit is away; nothing is lost by it.
    pub async fn look(
        &mut self,
        store: &Store,
        auditor: &Auditor,
        now: OffsetDateTime,
    ) -> Result<Recovered, RecoveryFault> {
        let replicas = store.list_replicas().await?;
        let gone = self.gone(&replicas);
        let late = self.looks.is_multiple_of(DEADLINE_LOOKS) && self.mine.is_some();
        self.looks = self.looks.wrapping_add(1);
        if gone.is_empty() && !late {
            return Ok(Recovered::default());
        }
        let Some(mut search) = store.orphan_search().await? else {
            return Ok(Recovered::default());
        };
        let outcome = settle(&mut search, auditor, &replicas, &gone, late, now).await;
        match outcome {
            Ok(recovered) => {
                search.commit().await?;
                Ok(recovered)
            }
            Err(fault) => {
                search.give_up().await;
                Err(fault)
            }
        }
    }

    /// The replicas that are gone, judged by what was seen of them so far.
    fn gone(&mut self, replicas: &[Replica]) -> Vec<Replica> {
        let mine = replicas
            .iter()
            .find(|replica| replica.id == self.me)
            .map(|replica| replica.heartbeat_at);
        // The database took ours since the last look: it would have taken theirs.
        let goes_on = self.mine.is_some_and(|before| mine > Some(before));
        self.mine = mine;
        let mut heard = HashMap::new();
        let mut gone = Vec::new();
        for replica in replicas.iter().filter(|replica| replica.id != self.me) {
            let silent = match self.heard.get(&replica.id) {
                Some(before) if before.at == replica.heartbeat_at => {
                    before.silent + u32::from(goes_on)
                }
                _ => 0,
            };
            if replica.stopped || silent >= SILENT_LOOKS {
                gone.push(replica.clone());
            }
            let at = replica.heartbeat_at;
            heard.insert(replica.id, Heard { at, silent });
        }
        self.heard = heard;
        gone
    }
}

async fn settle(
    search: &mut OrphanSearch,
    auditor: &Auditor,
    replicas: &[Replica],
    gone: &[Replica],
    late: bool,
    now: OffsetDateTime,
) -> Result<Recovered, RecoveryFault> {
    let mut recovered = Recovered::default();
    for replica in gone {
        let query = OrphanQuery {
            // What it started earlier than this has had its deadline.
            since: replica.heartbeat_at - replica.call_limit - 2 * MARGIN,
            until: now + MARGIN,
            replica: Some(replica.id),
        };
        recovered.closed += close(search, auditor, &query, GONE).await?;
        search
            .delete_replica(replica.id, replica.heartbeat_at)
            .await?;
        recovered.replicas += 1;
    }
    if late {
        let limits = replicas.iter().map(|replica| replica.call_limit);
        let limit = limits.max().unwrap_or(CALL_LIMIT);
        recovered.closed += close_late(search, auditor, now - limit - MARGIN).await?;
    }
    Ok(recovered)
}

/// Closes what was started before `until`, from where the last look ended.
async fn close_late(
    search: &mut OrphanSearch,
    auditor: &Auditor,
    until: OffsetDateTime,
) -> Result<u64, RecoveryFault> {
    let mut mark = search.find_mark().await?;
    let mut closed = 0;
    for _ in 0..STRETCHES {
        if mark >= until {
            break;
        }
        // Times without calls are passed over.
        mark = match search.find_next(mark).await? {
            Some(next) if next - SLACK < until => mark.max(next - SLACK),
            _ => until,
        };
        let end = (mark + STRETCH).min(until);
        let query = OrphanQuery {
            since: mark,
            until: end,
            replica: None,
        };
        closed += close(search, auditor, &query, LATE).await?;
        mark = mark.max(end);
    }
    search.update_mark(mark).await?;
    Ok(closed)
}

async fn close(
    search: &mut OrphanSearch,
    auditor: &Auditor,
    query: &OrphanQuery,
    why: &str,
) -> Result<u64, RecoveryFault> {
    let mut closed = 0;
    if query.since >= query.until {
        return Ok(closed);
    }
    loop {
        let orphans = search.list(query, CLOSED_AT_ONCE).await?;
        if orphans.is_empty() {
            return Ok(closed);
        }
        auditor.close_calls(&orphans, why).await?;
        closed += orphans.len() as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{SystemClock, new_replica_id};

    fn replica(id: ReplicaId, beat: i64) -> Replica {
        Replica {
            id,
            started_at: OffsetDateTime::UNIX_EPOCH,
            heartbeat_at: OffsetDateTime::UNIX_EPOCH + time::Duration::seconds(beat),
            address: None,
            version: String::new(),
            call_limit: Duration::from_mins(1),
            stopped: false,
        }
    }

    fn ids() -> (ReplicaId, ReplicaId) {
        (new_replica_id(&SystemClock), new_replica_id(&SystemClock))
    }

    #[test]
    fn a_replica_is_gone_when_it_is_silent_while_our_own_heart_beats() {
        let (me, other) = ids();
        let mut recovery = Recovery::new(me);
        for beat in 1..=4 {
            let seen = [replica(me, beat), replica(other, 1)];
            assert!(recovery.gone(&seen).is_empty(), "at look {beat}");
        }
        let seen = [replica(me, 5), replica(other, 1)];
        assert_eq!(recovery.gone(&seen).len(), 1);
        // Heard of again, it is as alive as ever.
        let seen = [replica(me, 6), replica(other, 6)];
        assert!(recovery.gone(&seen).is_empty());
    }

    #[test]
    fn a_database_that_stands_still_makes_nobody_look_dead() {
        let (me, other) = ids();
        let mut recovery = Recovery::new(me);
        for _ in 0..100 {
            let seen = [replica(me, 1), replica(other, 1)];
            assert!(recovery.gone(&seen).is_empty());
        }
        // When it goes on again, the other gets its looks like at first.
        let seen = [replica(me, 2), replica(other, 1)];
        assert!(recovery.gone(&seen).is_empty());
    }

    #[test]
    fn one_that_ended_in_an_orderly_way_is_gone_at_once() {
        let (me, other) = ids();
        let mut recovery = Recovery::new(me);
        let stopped = Replica {
            stopped: true,
            ..replica(other, 1)
        };
        assert_eq!(recovery.gone(&[stopped]).len(), 1);
    }
}
