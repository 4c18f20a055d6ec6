//! Table `oauth_signing_keys`: what access tokens are signed with.

use time::OffsetDateTime;

use super::connect::Store;
use super::error::StoreError;
use crate::jose::SigningKey;
use crate::seal::Sealer;

/// A row of `oauth_signing_keys`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredKey {
    /// Its key id.
    pub kid: String,
    /// Its place in the order of keys, from 1.
    pub number: i64,
    /// The private key, sealed for its id.
    pub sealed: String,
    /// When it was made.
    pub created_at: OffsetDateTime,
    /// From when on it signs, until the next one does.
    pub signs_from: OffsetDateTime,
    /// Until when tokens that it signed are believed.
    pub published_until: OffsetDateTime,
}

impl StoredKey {
    /// The row of a key.
    pub fn seal(
        key: &SigningKey,
        sealer: &Sealer,
        number: i64,
        created_at: OffsetDateTime,
        signs_from: OffsetDateTime,
        published_until: OffsetDateTime,
    ) -> Self {
        Self {
            kid: key.kid().to_owned(),
            number,
            sealed: sealer.seal(key.to_pkcs8().expose(), key.kid().as_bytes()),
            created_at,
            signs_from,
            published_until,
        }
    }

    /// The key. What is published of it comes from here too: a row that somebody
    /// else put into the table does not open.
    ///
    /// # Errors
    /// `Inconsistent` for a row that was sealed with another deployment's keys, or changed.
    pub fn open(&self, sealer: &Sealer) -> Result<SigningKey, StoreError> {
        let pkcs8 = sealer
            .open(&self.sealed, self.kid.as_bytes())
            .map(zeroize::Zeroizing::new)
            .map_err(|_| StoreError::Inconsistent("signing key"))?;
        SigningKey::from_pkcs8(&pkcs8)
            .ok()
            .filter(|key| key.kid() == self.kid)
            .ok_or(StoreError::Inconsistent("signing key"))
    }
}

impl Store {
    /// Puts a key in its place; `false` where another replica was first.
    #[tracing::instrument(name = "db.oauth_signing_keys.insert", level = "debug", skip_all)]
    pub async fn insert_signing_key(&self, key: &StoredKey) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "INSERT INTO oauth_signing_keys
                     (kid, number, sealed, created_at, signs_from, published_until)
                 VALUES ($1, $2, $3, $4, $5, $6)
                 ON CONFLICT ON CONSTRAINT oauth_signing_keys_number_key DO NOTHING",
                key.kid,
                key.number,
                key.sealed,
                key.created_at,
                key.signs_from,
                key.published_until
            ))
            .await?
            == 1)
    }

    /// Every key, in order.
    #[tracing::instrument(name = "db.oauth_signing_keys.list", level = "debug", skip_all)]
    pub async fn list_signing_keys(&self) -> Result<Vec<StoredKey>, StoreError> {
        self.fetch_all(sqlx::query_as!(
            StoredKey,
            "SELECT kid, number, sealed, created_at, signs_from, published_until
                 FROM oauth_signing_keys ORDER BY number"
        ))
        .await
    }

    /// Believes keys before `number` no longer than until `until`.
    #[tracing::instrument(name = "db.oauth_signing_keys.update", level = "debug", skip_all)]
    pub async fn update_earlier_signing_keys(
        &self,
        number: i64,
        until: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        self.execute(sqlx::query!(
            "UPDATE oauth_signing_keys SET published_until = least(published_until, $2)
                 WHERE number < $1",
            number,
            until
        ))
        .await
    }

    /// Forgets keys that are not published any more at `now`. The newest stays: it
    /// says which number comes next.
    #[tracing::instrument(name = "db.oauth_signing_keys.delete", level = "debug", skip_all)]
    pub async fn delete_expired_signing_keys(
        &self,
        now: OffsetDateTime,
    ) -> Result<u64, StoreError> {
        self.execute(sqlx::query!(
            "DELETE FROM oauth_signing_keys WHERE published_until < $1
                   AND number < (SELECT max(number) FROM oauth_signing_keys)",
            now
        ))
        .await
    }
}
