//! Tables `oauth_sign_ins` and `oauth_spent_states`: people in front of a browser.

use sqlx::types::Uuid;
use time::OffsetDateTime;
use tokio::time::timeout;

use super::connect::Store;
use super::error::StoreError;

/// A row of `oauth_sign_ins`. What is sealed stays sealed here.
#[derive(Clone, PartialEq, Eq)]
pub struct SignInRow {
    /// Which.
    pub id: Uuid,
    /// Our `sub`.
    pub subject: String,
    /// Who vouches.
    pub provider: String,
    /// The provider's `iss`.
    pub issuer: String,
    /// The provider's `sub`.
    pub provider_subject: String,
    /// What the person is called.
    pub name: Option<String>,
    /// The person's address.
    pub email: Option<String>,
    /// Tenants and roles, as JSON.
    pub memberships: String,
    /// What entries of `admins` ask for and the provider said, as JSON.
    pub admin_claims: String,
    /// The provider's refresh token, sealed. Never read back but by
    /// [`Store::take_sign_in_token`].
    pub refresh_token: Option<String>,
    /// When the person signed in.
    pub created_at: OffsetDateTime,
    /// When the provider was last asked about them.
    pub checked_at: OffsetDateTime,
    /// Until when this counts.
    pub expires_at: OffsetDateTime,
}

impl Store {
    /// Keeps a sign-in.
    #[tracing::instrument(name = "db.oauth_sign_ins.insert", level = "debug", skip_all)]
    pub async fn insert_sign_in(&self, row: &SignInRow) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "INSERT INTO oauth_sign_ins (sign_in_id, subject, provider, issuer, provider_subject,
                     name, email, memberships, refresh_token, created_at, expires_at,
                     admin_claims, checked_at)
                 VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)",
            row.id,
            row.subject,
            row.provider,
            row.issuer,
            row.provider_subject,
            row.name,
            row.email,
            row.memberships,
            row.refresh_token,
            row.created_at,
            row.expires_at,
            row.admin_claims,
            row.checked_at
        ))
        .await
        .map(drop)
    }

    /// The sign-in, if it still counts at `now`; without the provider's token.
    #[tracing::instrument(name = "db.oauth_sign_ins.find", level = "debug", skip_all)]
    pub async fn find_sign_in(
        &self,
        id: Uuid,
        now: OffsetDateTime,
    ) -> Result<Option<SignInRow>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            SignInRow,
            r#"SELECT sign_in_id AS id, subject, provider, issuer, provider_subject, name, email,
                     memberships, admin_claims, NULL::text AS refresh_token, created_at,
                     checked_at, expires_at
                 FROM oauth_sign_ins WHERE sign_in_id = $1 AND expires_at > $2"#,
            id,
            now
        ))
        .await
    }

    /// The provider's sealed token of a sign-in; whoever comes second gets none.
    #[tracing::instrument(name = "db.oauth_sign_ins.take_token", level = "debug", skip_all)]
    pub async fn take_sign_in_token(&self, id: Uuid) -> Result<Option<String>, StoreError> {
        self.fetch_optional_scalar(sqlx::query_scalar!(
            r#"WITH held AS (
                     SELECT sign_in_id, refresh_token FROM oauth_sign_ins
                     WHERE sign_in_id = $1 AND refresh_token IS NOT NULL FOR UPDATE
                 )
                 UPDATE oauth_sign_ins SET refresh_token = NULL FROM held
                 WHERE oauth_sign_ins.sign_in_id = held.sign_in_id
                 RETURNING held.refresh_token AS "token!""#,
            id
        ))
        .await
    }

    /// Puts the provider's token, sealed, back or in the place of the one that was taken.
    #[tracing::instrument(name = "db.oauth_sign_ins.update_token", level = "debug", skip_all)]
    pub async fn update_sign_in_token(&self, id: Uuid, sealed: &str) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "UPDATE oauth_sign_ins SET refresh_token = $2
                 WHERE sign_in_id = $1 AND refresh_token IS NULL",
            id,
            sealed
        ))
        .await
        .map(drop)
    }

    /// Takes it on to ask about the person; `false` where somebody has since `since`.
    #[tracing::instrument(name = "db.oauth_sign_ins.update_checked", level = "debug", skip_all)]
    pub async fn update_sign_in_checked(
        &self,
        id: Uuid,
        now: OffsetDateTime,
        since: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "UPDATE oauth_sign_ins SET checked_at = $2
                 WHERE sign_in_id = $1 AND checked_at <= $3",
                id,
                now,
                since
            ))
            .await?
            == 1)
    }

    /// Brings all sign-ins of a person up to date: memberships and what entries of
    /// `admins` ask for. Whether the latter was something else before.
    #[tracing::instrument(name = "db.oauth_sign_ins.update", level = "debug", skip_all)]
    pub async fn update_sign_ins(
        &self,
        subject: &str,
        (memberships, admin_claims): (&str, &str),
        now: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        self.fetch_scalar(sqlx::query_scalar!(
            r#"WITH kept AS (
                     UPDATE oauth_sign_ins
                     SET memberships = $2, admin_claims = $3, checked_at = $4
                     WHERE subject = $1 AND expires_at > $4
                 )
                 SELECT EXISTS (
                     SELECT 1 FROM oauth_sign_ins
                     WHERE subject = $1 AND expires_at > $4 AND admin_claims <> $3
                 ) AS "changed!""#,
            subject,
            memberships,
            admin_claims,
            now
        ))
        .await
    }

    /// Ends all sign-ins of a person.
    #[tracing::instrument(name = "db.oauth_sign_ins.delete_all", level = "debug", skip_all)]
    pub async fn delete_sign_ins(&self, subject: &str) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!("DELETE FROM oauth_sign_ins WHERE subject = $1", subject)
                .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Ends a sign-in on every replica.
    #[tracing::instrument(name = "db.oauth_sign_ins.delete", level = "debug", skip_all)]
    pub async fn delete_sign_in(&self, id: Uuid) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!("DELETE FROM oauth_sign_ins WHERE sign_in_id = $1", id)
                .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Takes a provider's answer for used. `false` where it was used before.
    #[tracing::instrument(name = "db.oauth_spent_states.insert", level = "debug", skip_all)]
    pub async fn insert_spent_state(
        &self,
        digest: &[u8; 32],
        expires_at: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "INSERT INTO oauth_spent_states (state_digest, expires_at) VALUES ($1, $2)
                 ON CONFLICT ON CONSTRAINT oauth_spent_states_pkey DO NOTHING",
                digest.as_slice(),
                expires_at
            ))
            .await?
            == 1)
    }

    /// Deletes sign-ins and spent answers that are over at `now`. Returns how many.
    #[tracing::instrument(name = "db.oauth_sign_ins.delete_expired", level = "debug", skip_all)]
    pub async fn delete_expired_sign_ins(&self, now: OffsetDateTime) -> Result<u64, StoreError> {
        Ok(u64::try_from(self.fetch_scalar(sqlx::query_scalar!(
                r#"WITH sign_ins AS (
                     DELETE FROM oauth_sign_ins WHERE expires_at <= $1 RETURNING 1
                 ), states AS (
                     DELETE FROM oauth_spent_states WHERE expires_at <= $1 RETURNING 1
                 )
                 SELECT (SELECT count(*) FROM sign_ins) + (SELECT count(*) FROM states) AS "gone!""#,
                now
            )).await?).unwrap_or_default())
    }
}
