//! Upkeep of the audit's tables: a partition a day, made ahead; what fell into
//! the default partition put in its place; days beyond retention dropped, unless
//! they are held. Safe at any time, side by side and again.

use futures_util::future::BoxFuture;
use time::Date;

use crate::store::audit_partitions::{PartitionUpkeep, Placed, days_ahead};
use crate::store::{Store, StoreError};

/// A stretch of days that must not be dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hold {
    /// The first.
    pub from: Date,
    /// The last; none where it has no end yet.
    pub until: Option<Date>,
}

impl Hold {
    fn covers(self, day: Date) -> bool {
        self.from <= day && self.until.is_none_or(|until| day <= until)
    }
}

/// What is dropped, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Retention {
    /// Whole days that are kept besides the running one. None: all.
    pub days: Option<u32>,
    /// What is kept whatever its age.
    pub holds: Vec<Hold>,
}

/// What a day is to retention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    Kept,
    Held,
    Dropped,
}

impl Retention {
    fn fate(&self, day: Date, today: Date) -> Fate {
        let expired = self.days.is_some_and(|days| {
            let first_kept = today.checked_sub(time::Duration::days(days.into()));
            first_kept.is_some_and(|first| day < first)
        });
        if !expired {
            Fate::Kept
        } else if self.holds.iter().any(|hold| hold.covers(day)) {
            Fate::Held
        } else {
            Fate::Dropped
        }
    }
}

/// What upkeep did and found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Maintained {
    /// Days whose partitions were made.
    pub made: Vec<Date>,
    /// Rows that were moved out of the default partitions.
    pub moved: u64,
    /// Days that have to wait: too much of them lies in a default partition while
    /// they are still being written.
    pub waiting: Vec<Date>,
    /// Days that were dropped.
    pub dropped: Vec<Date>,
    /// Days beyond retention that are held.
    pub held: Vec<Date>,
    /// Days from today on, today included, that have partitions without a gap.
    pub ahead: u16,
    /// Another one was dropping; days beyond retention were left to it.
    pub left_to_another: bool,
}

/// Why upkeep came to no end.
#[derive(Debug, thiserror::Error)]
pub enum UpkeepFault {
    /// The login is not the owner's.
    #[error(
        "this login does not own the audit's tables, or there are none: run this as their owner, after `toolgate migrate`"
    )]
    NotOwner,
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A day's closing heads could not be signed; it was not dropped.
    #[error("the day {day} was not dropped, since its chains could not be closed: {reason}")]
    Unsigned {
        /// Which.
        day: Date,
        /// Why.
        reason: String,
    },
}

/// Signs where the chains of a day end, or says why it cannot.
pub type CloseChains<'a> = dyn Fn(Date) -> BoxFuture<'a, Result<(), String>> + Send + Sync + 'a;

/// Does all of it. `close_chains` is asked before a day is dropped and signs where
/// the chains of that day end; a day that it fails for stays.
///
/// # Errors
/// [`UpkeepFault`]; what was done until then stays done.
pub async fn maintain(
    store: &Store,
    today: Date,
    retention: &Retention,
    close_chains: &CloseChains<'_>,
) -> Result<Maintained, UpkeepFault> {
    let Some(mut upkeep) = store.partition_upkeep().await? else {
        return Err(UpkeepFault::NotOwner);
    };
    let outcome = work(&mut upkeep, today, retention, close_chains).await;
    upkeep.close().await;
    outcome
}

async fn work(
    upkeep: &mut PartitionUpkeep,
    today: Date,
    retention: &Retention,
    close_chains: &CloseChains<'_>,
) -> Result<Maintained, UpkeepFault> {
    let mut done = Maintained::default();
    let there = upkeep.list_days().await?;
    let mut wanted: Vec<Date> = days_ahead(today).collect();
    wanted.extend(upkeep.list_default_days().await?);
    wanted.sort();
    wanted.dedup();
    for day in wanted {
        match upkeep.insert_day(day).await? {
            Placed::Moved(rows) => {
                done.moved += rows;
                if !there.contains(&day) {
                    done.made.push(day);
                }
            }
            Placed::Waits => done.waiting.push(day),
        }
    }
    let days = upkeep.list_days().await?;
    done.ahead = partitions_ahead(&days, today);
    let doomed = |day: &Date| retention.fate(*day, today) == Fate::Dropped;
    let held = |day: &Date| retention.fate(*day, today) == Fate::Held;
    done.held = days.iter().copied().filter(held).collect();
    let doomed: Vec<Date> = days.into_iter().filter(doomed).collect();
    if doomed.is_empty() {
        return Ok(done);
    }
    if !upkeep.may_drop().await? {
        done.left_to_another = true;
        return Ok(done);
    }
    for day in doomed {
        close_chains(day)
            .await
            .map_err(|reason| UpkeepFault::Unsigned { day, reason })?;
        if upkeep.delete_day(day).await? {
            done.dropped.push(day);
        }
    }
    Ok(done)
}

/// How many days from today on are there without a gap.
pub fn partitions_ahead(days: &[Date], today: Date) -> u16 {
    let mut ahead = 0;
    while today
        .checked_add(time::Duration::days(ahead.into()))
        .is_some_and(|day| days.contains(&day))
    {
        ahead += 1;
    }
    ahead
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::date;

    #[test]
    fn a_day_is_dropped_when_it_is_too_old_and_nobody_holds_it() {
        let retention = Retention {
            days: Some(30),
            holds: vec![
                Hold {
                    from: date!(2026 - 01 - 01),
                    until: Some(date!(2026 - 01 - 31)),
                },
                Hold {
                    from: date!(2026 - 06 - 20),
                    until: None,
                },
            ],
        };
        let today = date!(2026 - 07 - 28);
        for (day, fate) in [
            (date!(2026 - 07 - 28), Fate::Kept),
            (date!(2026 - 06 - 28), Fate::Kept),
            (date!(2026 - 06 - 27), Fate::Held),
            (date!(2026 - 06 - 19), Fate::Dropped),
            (date!(2026 - 01 - 31), Fate::Held),
            (date!(2025 - 12 - 31), Fate::Dropped),
        ] {
            assert_eq!(retention.fate(day, today), fate, "{day}");
        }
        let forever = Retention::default();
        assert_eq!(forever.fate(date!(1999 - 01 - 01), today), Fate::Kept);
    }

    #[test]
    fn days_ahead_are_counted_up_to_the_first_gap() {
        let today = date!(2026 - 12 - 31);
        let days = [today, date!(2027 - 01 - 01), date!(2027 - 01 - 03)];
        assert_eq!(partitions_ahead(&days, today), 2);
        assert_eq!(partitions_ahead(&[], today), 0);
    }
}
