//! Table `oauth_clients`: clients that registered themselves. They belong to no tenant.

use time::OffsetDateTime;

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
        Ok(self
            .execute(sqlx::query!(
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
            ))
            .await?
            == 1)
    }

    /// A client by its id.
    #[tracing::instrument(name = "db.oauth_clients.find", level = "debug", skip_all)]
    pub async fn find_oauth_client(
        &self,
        client_id: &str,
    ) -> Result<Option<RegisteredClient>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            RegisteredClient,
            "SELECT client_id, name, redirect_uris, auth_method, secret_digest, jwks,
                     jwks_uri, registered_at, used_at
                 FROM oauth_clients WHERE client_id = $1",
            client_id
        ))
        .await
    }

    /// Somebody signs in through a client.
    #[tracing::instrument(name = "db.oauth_clients.update", level = "debug", skip_all)]
    pub async fn update_oauth_client_used(
        &self,
        client_id: &str,
        now: OffsetDateTime,
    ) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "UPDATE oauth_clients SET used_at = $2 WHERE client_id = $1",
            client_id,
            now
        ))
        .await
        .map(drop)
    }

    /// Forgets clients that nobody has used since `since` and nobody is signed in through.
    #[tracing::instrument(name = "db.oauth_clients.delete", level = "debug", skip_all)]
    pub async fn delete_unused_oauth_clients(
        &self,
        since: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        self.execute(sqlx::query!(
            "DELETE FROM oauth_clients c WHERE COALESCE(used_at, registered_at) < $1
                   AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = c.client_id)",
            since
        ))
        .await
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use uuid::Uuid;

    use super::*;
    use crate::store::oauth_families::NewFamily;
    use crate::store::oauth_grants::Grant;
    use crate::store::testing::{database, now};

    fn client(id: &str) -> RegisteredClient {
        RegisteredClient {
            client_id: id.to_owned(),
            name: "App".to_owned(),
            redirect_uris: vec!["http://127.0.0.1/cb".to_owned()],
            auth_method: "none".to_owned(),
            secret_digest: None,
            jwks: None,
            jwks_uri: None,
            registered_at: now() - Duration::days(2),
            used_at: None,
        }
    }

    fn grant(client: &str, family_ends: OffsetDateTime) -> (Grant, NewFamily) {
        let grant = Grant {
            grant_id: Uuid::from_u128(1),
            tenant: "acme".to_owned(),
            subject: "s".to_owned(),
            client_id: client.to_owned(),
            client_name: "App".to_owned(),
            redirect_uri: "http://127.0.0.1/cb".to_owned(),
            scopes: vec!["mcp".to_owned()],
            remembered: false,
            provider: "users".to_owned(),
            provider_issuer: "i".to_owned(),
            provider_subject: "p".to_owned(),
            provider_token: None,
            person_name: None,
            person_email: None,
            created_at: now(),
            used_at: now(),
            checked_at: now(),
        };
        let family = NewFamily {
            family_id: Uuid::from_u128(2),
            code_digest: vec![1; 32],
            code_expires_at: family_ends,
            code_challenge: "c".to_owned(),
            redirect_uri: "http://127.0.0.1/cb".to_owned(),
            resource: "r".to_owned(),
            scopes: vec!["mcp".to_owned()],
            roles: Vec::new(),
            ends_at: family_ends,
        };
        (grant, family)
    }

    #[tokio::test]
    async fn unused_clients_go_and_one_with_a_live_grant_never_does() {
        let store = database().await.store;
        for id in ["idle", "signed-in", "fresh"] {
            assert!(store.insert_oauth_client(&client(id), 3).await.unwrap());
        }
        assert!(
            !store.insert_oauth_client(&client("more"), 3).await.unwrap(),
            "the house is full"
        );
        store
            .update_oauth_client_used("fresh", now())
            .await
            .unwrap();
        let soon = now() + Duration::seconds(60);
        let (grant, family) = grant("signed-in", soon);
        store.insert_grant(&grant, &family).await.unwrap();
        let since = now() - Duration::days(1);
        assert_eq!(store.delete_unused_oauth_clients(since).await.unwrap(), 1);
        assert!(store.find_oauth_client("idle").await.unwrap().is_none());
        assert!(
            store
                .find_oauth_client("signed-in")
                .await
                .unwrap()
                .is_some()
        );

        // Once its code has lapsed and nothing remembers it, it goes as well.
        let later = soon + Duration::seconds(1);
        assert_eq!(store.delete_expired_families(later).await.unwrap(), 1);
        assert_eq!(store.delete_idle_grants(since).await.unwrap(), 1);
        assert_eq!(store.delete_unused_oauth_clients(since).await.unwrap(), 1);
        assert!(store.find_oauth_client("fresh").await.unwrap().is_some());
    }

    #[tokio::test]
    async fn an_assertion_is_used_once_and_forgotten_when_it_has_expired() {
        let store = database().await.store;
        let until = now() + Duration::minutes(1);
        assert!(store.insert_assertion(&[1; 32], until).await.unwrap());
        assert!(!store.insert_assertion(&[1; 32], until).await.unwrap());
        assert_eq!(store.delete_expired_revocations(now()).await.unwrap(), 0);
        assert_eq!(store.delete_expired_revocations(until).await.unwrap(), 1);
    }
}
