//! Which calls can have an outcome or a finding, where few have it. Both stand with a
//! call's end, in rows of their own: to look at each call's end in turn takes minutes
//! over millions of calls, and one look at all ends takes seconds.

use std::collections::HashSet;

use uuid::Uuid;

use super::audit_calls::{Bounds, CallQuery};
use super::session::{Lent, Session};

/// With more than these the calls are looked through in their order, which comes to
/// the first page soon.
const FEW: i64 = 10_000;

/// How a call reads that nobody knows the end of.
const UNKNOWN: &str = "unknown";

/// The calls among which all lie that a query for an outcome or a finding can mean;
/// `None` where it asks for neither, or where they are many.
pub(super) async fn few(
    connection: &mut Session<Lent>,
    query: &CallQuery,
    bounds: &Bounds,
) -> sqlx::Result<Option<Vec<Uuid>>> {
    let by_outcome = match &query.outcome {
        Some(outcome) => ended(connection, outcome, bounds).await?,
        None => None,
    };
    let by_finding = match &query.finding {
        Some(finding) => found(connection, finding, bounds).await?,
        None => None,
    };
    Ok(match (by_outcome, by_finding) {
        (Some(some), Some(others)) => {
            let others: HashSet<Uuid> = others.into_iter().collect();
            Some(some.into_iter().filter(|id| others.contains(id)).collect())
        }
        (some, others) => some.or(others),
    })
}

/// Calls with an event of the outcome. What a correction replaced is among them.
async fn ended(
    connection: &mut Session<Lent>,
    outcome: &str,
    bounds: &Bounds,
) -> sqlx::Result<Option<Vec<Uuid>>> {
    let names = sqlx::query_scalar!(
        "SELECT name_id FROM audit_names WHERE name = $1 OR starts_with(name, $1 || ':')",
        outcome
    )
    .fetch_all(&mut *connection)
    .await?;
    let mut calls = sqlx::query_scalar!(
        "SELECT call_id FROM audit_events
         WHERE outcome_id = ANY($1) AND call_id > $2 AND call_id < $3
           AND ($4::timestamptz IS NULL OR at >= $4 - interval '1 minute')
         LIMIT $5",
        &names,
        bounds.low,
        bounds.high,
        bounds.since,
        FEW + 1
    )
    .fetch_all(&mut *connection)
    .await?;
    if outcome == UNKNOWN {
        let open = sqlx::query_scalar!(
            "SELECT s.call_id FROM audit_events s
             WHERE s.event = 1 AND s.call_id > $1 AND s.call_id < $2
               AND ($3::timestamptz IS NULL OR s.at >= $3)
               AND NOT EXISTS (SELECT 1 FROM audit_events f
                   WHERE f.call_id = s.call_id AND f.event IN (2, 4))
             LIMIT $4",
            bounds.low,
            bounds.high,
            bounds.since,
            FEW + 1
        )
        .fetch_all(connection)
        .await?;
        calls.extend(open);
    }
    Ok(unless_many(calls))
}

async fn found(
    connection: &mut Session<Lent>,
    finding: &str,
    bounds: &Bounds,
) -> sqlx::Result<Option<Vec<Uuid>>> {
    let calls = sqlx::query_scalar!(
        "SELECT call_id FROM audit_bodies
         WHERE position($1 IN findings) > 0 AND call_id > $2 AND call_id < $3
           AND ($4::timestamptz IS NULL OR day >= (($4 - interval '1 minute') AT TIME ZONE 'UTC')::date)
         LIMIT $5",
        finding,
        bounds.low,
        bounds.high,
        bounds.since,
        FEW + 1
    )
    .fetch_all(connection)
    .await?;
    Ok(unless_many(calls))
}

fn unless_many(calls: Vec<Uuid>) -> Option<Vec<Uuid>> {
    i64::try_from(calls.len())
        .is_ok_and(|count| count <= FEW)
        .then_some(calls)
}
