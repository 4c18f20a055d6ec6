//! Erasing: text and salt go, digests stay, a day in one statement. As the owner,
//! since nobody else may change what is recorded.

use time::{Date, Duration, OffsetDateTime};
use uuid::Uuid;

use super::audit_scan::{AuditScan, bounds, fault};
use super::error::StoreError;

/// What is erased.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErasureTarget {
    /// Callers with this `sub`, and what their calls said.
    pub subject: Option<String>,
    /// Only where this is its `iss`.
    pub issuer: Option<String>,
    /// Callers and bodies that hold this text.
    pub text: Option<String>,
    /// Only this tenant's.
    pub tenant: Option<String>,
}

/// How much was, or would be, erased.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ErasedRows {
    /// Callers.
    pub callers: i64,
    /// Bodies.
    pub bodies: i64,
}

/// Bodies of a call that lie on a later day than its start: it ended later.
const ENDS_WITHIN: Duration = Duration::days(9);

impl AuditScan {
    /// How much of a day would be erased.
    pub async fn count_erasable(
        &mut self,
        day: Date,
        target: &ErasureTarget,
    ) -> Result<ErasedRows, StoreError> {
        let (low, high) = bounds(day);
        let row = sqlx::query!(
            r#"WITH gone AS (
                   SELECT writer_id, caller_id FROM audit_callers
                   WHERE day = $1 AND salt IS NOT NULL
                     AND ($7::text IS NULL OR tenant_id = (SELECT name_id FROM audit_names WHERE name = $7))
                     AND ((subject = $4 AND ($5::text IS NULL OR issuer = $5))
                       OR position($6 IN concat_ws(E'\n', issuer, subject, client, grant_id, token_id,
                           address, client_info)) > 0)
               ), calls AS (
                   SELECT DISTINCT e.call_id FROM audit_events e JOIN gone USING (writer_id, caller_id)
                   WHERE e.at >= $2 AND e.at < $3
               ), bodies AS (
                   SELECT FROM audit_bodies b JOIN calls USING (call_id)
                   WHERE b.day >= $1 AND b.day <= $8 AND b.salt IS NOT NULL
                   UNION ALL
                   SELECT FROM audit_bodies b WHERE b.day = $1 AND b.salt IS NOT NULL
                     AND ($7::text IS NULL OR tenant_id = (SELECT name_id FROM audit_names WHERE name = $7))
                     AND position($6 IN concat_ws(E'\n', arguments, tool, reason, findings)) > 0
                     AND NOT EXISTS (SELECT FROM calls WHERE calls.call_id = b.call_id)
               )
               SELECT (SELECT count(*) FROM gone) AS "callers!", (SELECT count(*) FROM bodies) AS "bodies!""#,
            day,
            low,
            high,
            target.subject,
            target.issuer,
            target.text,
            target.tenant,
            day + ENDS_WITHIN
        )
        .fetch_one(self.connection())
        .await
        .map_err(fault)?;
        Ok(ErasedRows {
            callers: row.callers,
            bodies: row.bodies,
        })
    }

    /// Erases it, all of the day or nothing, and tells running writers.
    pub async fn update_erased(
        &mut self,
        day: Date,
        target: &ErasureTarget,
        erasure: Uuid,
        at: OffsetDateTime,
    ) -> Result<ErasedRows, StoreError> {
        let (low, high) = bounds(day);
        let row = sqlx::query!(
            r#"WITH gone AS (
                   UPDATE audit_callers SET salt = NULL, issuer = NULL, subject = NULL, client = NULL,
                       grant_id = NULL, token_id = NULL, address = NULL, client_info = NULL,
                       erased_by = $9
                   WHERE day = $1 AND salt IS NOT NULL
                     AND ($7::text IS NULL OR tenant_id = (SELECT name_id FROM audit_names WHERE name = $7))
                     AND ((subject = $4 AND ($5::text IS NULL OR issuer = $5))
                       OR position($6 IN concat_ws(E'\n', issuer, subject, client, grant_id, token_id,
                           address, client_info)) > 0)
                   RETURNING writer_id, caller_id
               ), calls AS (
                   SELECT DISTINCT e.call_id FROM audit_events e JOIN gone USING (writer_id, caller_id)
                   WHERE e.at >= $2 AND e.at < $3
               ), bodies AS (
                   UPDATE audit_bodies b SET salt = NULL, arguments_digest = NULL, arguments = NULL,
                       tool = NULL, reason = NULL, findings = NULL, erased_by = $9
                   WHERE b.day >= $1 AND b.day <= $8 AND b.salt IS NOT NULL
                     AND (b.call_id IN (SELECT call_id FROM calls)
                       OR (b.day = $1
                         AND ($7::text IS NULL OR tenant_id = (SELECT name_id FROM audit_names WHERE name = $7))
                         AND position($6 IN concat_ws(E'\n', arguments, tool, reason, findings)) > 0))
                   RETURNING 1
               ), told AS (
                   INSERT INTO audit_erasures (erasure_id, at)
                   SELECT gen_random_uuid(), $10 WHERE EXISTS (SELECT FROM gone)
               )
               SELECT (SELECT count(*) FROM gone) AS "callers!", (SELECT count(*) FROM bodies) AS "bodies!""#,
            day,
            low,
            high,
            target.subject,
            target.issuer,
            target.text,
            target.tenant,
            day + ENDS_WITHIN,
            erasure,
            at
        )
        .fetch_one(self.connection())
        .await
        .map_err(fault)?;
        Ok(ErasedRows {
            callers: row.callers,
            bodies: row.bodies,
        })
    }

    /// Entries of the dictionary that hold the text: names of tenants, upstreams and
    /// tools, which cannot be erased.
    pub async fn names_holding(&mut self, text: &str) -> Result<Vec<String>, StoreError> {
        sqlx::query_scalar!(
            "SELECT name FROM audit_names WHERE position($1 IN name) > 0 ORDER BY name LIMIT 100",
            text
        )
        .fetch_all(self.connection())
        .await
        .map_err(fault)
    }

    /// Says after the erasure that rows which it left behind may be reused.
    pub async fn vacuum(&mut self) -> Result<(), StoreError> {
        sqlx::query("VACUUM audit_callers, audit_bodies")
            .execute(self.connection())
            .await
            .map(drop)
            .map_err(fault)
    }
}
