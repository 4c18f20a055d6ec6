//! Table `oauth_clients`: clients that registered themselves. They belong to no tenant.

use time::OffsetDateTime;
use tokio::time::timeout;

use super::connect::Store;
use super::error::StoreError;

/// A row of `oauth_clients`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegisteredClient {
    /// Its id, which we chose.
    pub client_id: String,
    /// What it calls itself, cleaned.
    pub name: String,
    /// Where it may send people back to.
    pub redirect_uris: Vec<String>,
    /// How it proves who it is (RFC 7591 §2, `token_endpoint_auth_method`).
    pub auth_method: String,
    /// SHA-256 of its secret.
    pub secret_digest: Option<Vec<u8>>,
    /// Its keys, as a key set.
    pub jwks: Option<String>,
    /// Where its keys are.
    pub jwks_uri: Option<String>,
    /// When it registered.
    pub registered_at: OffsetDateTime,
    /// When somebody last signed in through it.
    pub used_at: Option<OffsetDateTime>,
}

impl Store {
    /// Keeps a client, unless there are `most` already: then `false`.
    #[tracing::instrument(name = "db.oauth_clients.insert", level = "debug", skip_all)]
    pub async fn insert_oauth_client(
        &self,
        client: &RegisteredClient,
        most: u32,
    ) -> Result<bool, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "INSERT INTO oauth_clients (client_id, name, redirect_uris, auth_method,
                     secret_digest, jwks, jwks_uri, registered_at)
                 SELECT $1, $2, $3, $4, $5, $6, $7, $8
                 WHERE (SELECT count(*) FROM oauth_clients) < $9",
                client.client_id,
                client.name,
                &client.redirect_uris,
                client.auth_method,
                client.secret_digest,
                client.jwks,
                client.jwks_uri,
                client.registered_at,
                i64::from(most)
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected() == 1)
    }

    /// A client by its id.
    #[tracing::instrument(name = "db.oauth_clients.find", level = "debug", skip_all)]
    pub async fn find_oauth_client(
        &self,
        client_id: &str,
    ) -> Result<Option<RegisteredClient>, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query_as!(
                RegisteredClient,
                "SELECT client_id, name, redirect_uris, auth_method, secret_digest, jwks,
                     jwks_uri, registered_at, used_at
                 FROM oauth_clients WHERE client_id = $1",
                client_id
            )
            .fetch_optional(lease.connection()),
        )
        .await;
        lease.settle(outcome)
    }

    /// Somebody signs in through a client.
    #[tracing::instrument(name = "db.oauth_clients.update", level = "debug", skip_all)]
    pub async fn update_oauth_client_used(
        &self,
        client_id: &str,
        now: OffsetDateTime,
    ) -> Result<(), StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "UPDATE oauth_clients SET used_at = $2 WHERE client_id = $1",
                client_id,
                now
            )
            .execute(lease.connection()),
        )
        .await;
        lease.settle(outcome).map(drop)
    }

    /// Forgets clients that nobody has used since `since` and nobody is signed in through.
    #[tracing::instrument(name = "db.oauth_clients.delete", level = "debug", skip_all)]
    pub async fn delete_unused_oauth_clients(
        &self,
        since: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        let mut lease = self.lease().await?;
        let outcome = timeout(
            self.timeout(),
            sqlx::query!(
                "DELETE FROM oauth_clients c WHERE COALESCE(used_at, registered_at) < $1
                   AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = c.client_id)",
                since
            )
            .execute(lease.connection()),
        )
        .await;
        Ok(lease.settle(outcome)?.rows_affected())
    }
}
