//! Every column that holds something sealed and outlives a key of the keys file, so that
//! it can be sealed anew. What is not here ends by itself (sessions, cookies, cursors,
//! `requestState`), is in its client's hands (refresh tokens), or is covered by digests
//! as it is stored (the audit's bodies): for those the key is kept, sealed (`retired_keys`).

use time::OffsetDateTime;
use tokio::time::timeout;

use super::connect::Store;
use super::error::StoreError;
use crate::seal::{Label, RetiredKey};

/// One such column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SealedColumn {
    /// `oauth_signing_keys.sealed`
    SigningKeys,
    /// `oauth_grants.provider_token`
    GrantTokens,
    /// `oauth_sign_ins.refresh_token`
    SignInTokens,
    /// `retired_keys.sealed`
    RetiredKeys,
}

/// A sealed text, and what it is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SealedRow {
    /// The row's key, as text.
    pub key: String,
    /// What it was sealed for besides its use.
    pub bound_to: Vec<u8>,
    /// The sealed text.
    pub sealed: String,
}

impl SealedColumn {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::SigningKeys,
        Self::GrantTokens,
        Self::SignInTokens,
        Self::RetiredKeys,
    ];

    /// Table and column.
    pub fn name(self) -> &'static str {
        match self {
            Self::SigningKeys => "oauth_signing_keys.sealed",
            Self::GrantTokens => "oauth_grants.provider_token",
            Self::SignInTokens => "oauth_sign_ins.refresh_token",
            Self::RetiredKeys => "retired_keys.sealed",
        }
    }

    /// What it is sealed for.
    pub fn label(self) -> Label {
        match self {
            Self::SigningKeys => Label::SigningKey,
            Self::GrantTokens | Self::SignInTokens => Label::ProviderToken,
            Self::RetiredKeys => Label::RetiredKey,
        }
    }
}

/// One column's rows that another key than the first has sealed.
macro_rules! stale {
    ($select:literal, $from:literal, $marks:expr, $after:expr, $limit:expr) => {
        sqlx::query_as!(
            SealedRow,
            "SELECT "
                + $select
                + " FROM "
                + $from
                + " WHERE left(sealed, 7) <> ALL($1) AND key > $2 ORDER BY key LIMIT $3",
            $marks,
            $after,
            $limit
        )
    };
}

impl Store {
    /// Rows that do not begin with one of `marks` (of the key that seals), behind `after`
    /// by their keys; at most `limit`.
    #[tracing::instrument(name = "db.sealed.list", level = "debug", skip_all)]
    pub async fn list_sealed(
        &self,
        column: SealedColumn,
        marks: &[String],
        after: &str,
        limit: i64,
    ) -> Result<Vec<SealedRow>, StoreError> {
        let mut lease = self.lease().await?;
        let question = async {
            match column {
            SealedColumn::SigningKeys => stale!(
                r#"key AS "key!", convert_to(key, 'UTF8') AS "bound_to!", sealed AS "sealed!""#,
                "(SELECT kid AS key, sealed FROM oauth_signing_keys) AS stored",
                marks,
                after,
                limit
            )
            .fetch_all(lease.connection()).await,
            SealedColumn::GrantTokens => stale!(
                r#"key AS "key!", convert_to(subject, 'UTF8') AS "bound_to!", sealed AS "sealed!""#,
                "(SELECT grant_id::text AS key, subject, provider_token AS sealed FROM oauth_grants) AS stored",
                marks,
                after,
                limit
            )
            .fetch_all(lease.connection()).await,
            SealedColumn::SignInTokens => stale!(
                r#"key AS "key!", uuid_send(sign_in_id) AS "bound_to!", sealed AS "sealed!""#,
                "(SELECT sign_in_id::text AS key, sign_in_id, refresh_token AS sealed FROM oauth_sign_ins) AS stored",
                marks,
                after,
                limit
            )
            .fetch_all(lease.connection()).await,
            SealedColumn::RetiredKeys => stale!(
                r#"key AS "key!", key_id AS "bound_to!", sealed AS "sealed!""#,
                "(SELECT encode(key_id, 'hex') AS key, key_id, sealed FROM retired_keys) AS stored",
                marks,
                after,
                limit
            )
            .fetch_all(lease.connection()).await,
        }
        };
        let outcome = timeout(self.timeout(), question).await;
        lease.settle(outcome)
    }

    /// Puts another sealed text in the place of a row's, unless it has changed meanwhile.
    #[tracing::instrument(name = "db.sealed.update", level = "debug", skip_all)]
    pub async fn update_sealed(
        &self,
        column: SealedColumn,
        row: &SealedRow,
        sealed: &str,
    ) -> Result<bool, StoreError> {
        let mut lease = self.lease().await?;
        let change =
            async {
                match column {
                    SealedColumn::SigningKeys => sqlx::query!(
                        "UPDATE oauth_signing_keys SET sealed = $3 WHERE kid = $1 AND sealed = $2",
                        row.key,
                        row.sealed,
                        sealed
                    )
                    .execute(lease.connection())
                    .await,
                    SealedColumn::GrantTokens => {
                        sqlx::query!(
                            "UPDATE oauth_grants SET provider_token = $3
                 WHERE grant_id = ($1::text)::uuid AND provider_token = $2",
                            row.key,
                            row.sealed,
                            sealed
                        )
                        .execute(lease.connection())
                        .await
                    }
                    SealedColumn::SignInTokens => {
                        sqlx::query!(
                            "UPDATE oauth_sign_ins SET refresh_token = $3
                 WHERE sign_in_id = ($1::text)::uuid AND refresh_token = $2",
                            row.key,
                            row.sealed,
                            sealed
                        )
                        .execute(lease.connection())
                        .await
                    }
                    SealedColumn::RetiredKeys => {
                        sqlx::query!(
                            "UPDATE retired_keys SET sealed = $3
                 WHERE key_id = decode($1, 'hex') AND sealed = $2",
                            row.key,
                            row.sealed,
                            sealed
                        )
                        .execute(lease.connection())
                        .await
                    }
                }
            };
        let outcome = timeout(self.timeout(), change).await;
        Ok(lease.settle(outcome)?.rows_affected() == 1)
    }

    /// Keeps a key that will leave the keys file; `false` where it is kept already.
    #[tracing::instrument(name = "db.retired_keys.insert", level = "debug", skip_all)]
    pub async fn insert_retired_key(
        &self,
        key: &RetiredKey,
        at: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO retired_keys (key_id, sealed, retired_at) VALUES ($1, $2, $3)
                 ON CONFLICT DO NOTHING",
                key.key_id,
                key.sealed,
                at
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected() == 1)
    }

    /// The keys that have left the keys file, or will.
    #[tracing::instrument(name = "db.retired_keys.list", level = "debug", skip_all)]
    pub async fn list_retired_keys(&self) -> Result<Vec<RetiredKey>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(RetiredKey, "SELECT key_id, sealed FROM retired_keys")
                .fetch_all(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }

    /// Families of refresh tokens that have not been used since the newest of the retired
    /// keys was kept: their tokens may be of an older key.
    #[tracing::instrument(name = "db.retired_keys.count_families", level = "debug", skip_all)]
    pub async fn count_families_of_retired_keys(
        &self,
        now: OffsetDateTime,
    ) -> Result<i64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_scalar!(
                r#"SELECT count(*) AS "count!" FROM oauth_families
                   WHERE expires_at > $1
                     AND used_at < (SELECT max(retired_at) FROM retired_keys)"#,
                now
            )
            .fetch_one(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }
}
