//! Table `oauth_grants`: a person's consent to a client in a tenant.

use time::OffsetDateTime;
use uuid::Uuid;

use super::connect::Store;
use super::error::StoreError;
use super::oauth_families::NewFamily;
use crate::ids::TenantId;

/// A row of `oauth_grants`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Its id.
    pub grant_id: Uuid,
    /// The tenant.
    pub tenant: String,
    /// Our `sub`.
    pub subject: String,
    /// The client.
    pub client_id: String,
    /// What the client called itself when consent was given.
    pub client_name: String,
    /// The redirect that consent was given for; a loopback one without its port.
    pub redirect_uri: String,
    /// Everything that was consented to.
    pub scopes: Vec<String>,
    /// Whether consent need not be asked for again.
    pub remembered: bool,
    /// Who vouched for the person.
    pub provider: String,
    /// The provider's `iss`.
    pub provider_issuer: String,
    /// The provider's `sub`.
    pub provider_subject: String,
    /// The provider's refresh token, sealed for the subject.
    pub provider_token: Option<String>,
    /// What the person is called.
    pub person_name: Option<String>,
    /// The person's e-mail address.
    pub person_email: Option<String>,
    /// When consent was first given.
    pub created_at: OffsetDateTime,
    /// When tokens were last issued.
    pub used_at: OffsetDateTime,
    /// When the person's standing was last looked at.
    pub checked_at: OffsetDateTime,
}

impl Store {
    /// Keeps a consent, or adds its scopes to the person's earlier one, and the
    /// family of a new code with it. Returns the grant's id.
    #[tracing::instrument(name = "db.oauth_grants.insert", level = "debug", skip_all)]
    pub async fn insert_grant(
        &self,
        grant: &Grant,
        family: &NewFamily,
    ) -> Result<Uuid, StoreError> {
        self.fetch_scalar(sqlx::query_scalar!(
                r#"WITH consent AS (
                     INSERT INTO oauth_grants AS g (grant_id, tenant, subject, client_id,
                         client_name, redirect_uri, scopes, remembered, provider,
                         provider_issuer, provider_subject, provider_token, person_name,
                         person_email, created_at, used_at, checked_at)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $15, $15)
                     ON CONFLICT ON CONSTRAINT oauth_grants_consent_key DO UPDATE SET
                         client_name = excluded.client_name,
                         scopes = ARRAY(SELECT DISTINCT unnest(g.scopes || excluded.scopes)),
                         remembered = excluded.remembered,
                         provider = excluded.provider,
                         provider_token = COALESCE(excluded.provider_token, g.provider_token),
                         person_name = excluded.person_name,
                         person_email = excluded.person_email,
                         used_at = excluded.used_at,
                         checked_at = excluded.checked_at
                     RETURNING grant_id
                 )
                 INSERT INTO oauth_families (family_id, grant_id, tenant, client_id, code_digest,
                     code_expires_at, code_challenge, redirect_uri, resource, scopes, roles,
                     generation, uses, used_at, expires_at, ends_at)
                 SELECT $16, grant_id, $2, $4, $17, $18, $19, $20, $21, $22, $23,
                     0, '{}', $15, $18, $24
                 FROM consent RETURNING grant_id"#,
                grant.grant_id,
                grant.tenant,
                grant.subject,
                grant.client_id,
                grant.client_name,
                grant.redirect_uri,
                &grant.scopes,
                grant.remembered,
                grant.provider,
                grant.provider_issuer,
                grant.provider_subject,
                grant.provider_token,
                grant.person_name,
                grant.person_email,
                grant.created_at,
                family.family_id,
                &family.code_digest,
                family.code_expires_at,
                family.code_challenge,
                family.redirect_uri,
                family.resource,
                &family.scopes,
                &family.roles,
                family.ends_at
            )).await
    }

    /// The consent that a person gave a client for a redirect.
    #[tracing::instrument(name = "db.oauth_grants.find", level = "debug", skip_all)]
    pub async fn find_grant(
        &self,
        tenant: &TenantId,
        subject: &str,
        client_id: &str,
        redirect_uri: &str,
    ) -> Result<Option<Grant>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            Grant,
            "SELECT * FROM oauth_grants WHERE tenant = $1 AND subject = $2
                   AND client_id = $3 AND redirect_uri = $4",
            tenant.as_str(),
            subject,
            client_id,
            redirect_uri
        ))
        .await
    }

    /// A grant by its id.
    #[tracing::instrument(name = "db.oauth_grants.load", level = "debug", skip_all)]
    pub async fn find_grant_by_id(
        &self,
        tenant: &TenantId,
        grant_id: Uuid,
    ) -> Result<Option<Grant>, StoreError> {
        self.fetch_optional(sqlx::query_as!(
            Grant,
            "SELECT * FROM oauth_grants WHERE tenant = $1 AND grant_id = $2",
            tenant.as_str(),
            grant_id
        ))
        .await
    }

    /// A person's grants in a tenant, the last used first.
    #[tracing::instrument(name = "db.oauth_grants.list", level = "debug", skip_all)]
    pub async fn list_grants(
        &self,
        tenant: &TenantId,
        subject: Option<&str>,
        client_id: Option<&str>,
    ) -> Result<Vec<Grant>, StoreError> {
        self.fetch_all(sqlx::query_as!(
            Grant,
            "SELECT * FROM oauth_grants WHERE tenant = $1
                   AND ($2::text IS NULL OR subject = $2)
                   AND ($3::text IS NULL OR client_id = $3)
                 ORDER BY used_at DESC",
            tenant.as_str(),
            subject,
            client_id
        ))
        .await
    }

    /// Keeps the provider's newest refresh token, sealed.
    #[tracing::instrument(name = "db.oauth_grants.update_token", level = "debug", skip_all)]
    pub async fn update_provider_token(
        &self,
        tenant: &TenantId,
        grant_id: Uuid,
        sealed: Option<&str>,
    ) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "UPDATE oauth_grants SET provider_token = $3 WHERE tenant = $1 AND grant_id = $2",
            tenant.as_str(),
            grant_id,
            sealed
        ))
        .await
        .map(drop)
    }

    /// Gives what comes of a grant the roles that the person has now.
    #[tracing::instrument(name = "db.oauth_families.update_roles", level = "debug", skip_all)]
    pub async fn update_grant_roles(
        &self,
        tenant: &TenantId,
        grant_id: Uuid,
        roles: &[String],
    ) -> Result<(), StoreError> {
        self.execute(sqlx::query!(
            "UPDATE oauth_families SET roles = $3 WHERE tenant = $1 AND grant_id = $2",
            tenant.as_str(),
            grant_id,
            roles
        ))
        .await
        .map(drop)
    }

    /// Takes it on to ask about a person's standing; `false` where somebody has since
    /// `since`. Of several replicas one asks: a provider that rotates its refresh
    /// tokens would take two for a theft.
    #[tracing::instrument(name = "db.oauth_grants.update_checked", level = "debug", skip_all)]
    pub async fn update_grant_checked(
        &self,
        tenant: &TenantId,
        grant_id: Uuid,
        now: OffsetDateTime,
        since: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "UPDATE oauth_grants SET checked_at = $3
                 WHERE tenant = $1 AND grant_id = $2 AND checked_at <= $4",
                tenant.as_str(),
                grant_id,
                now,
                since
            ))
            .await?
            == 1)
    }

    /// Ends a grant with all its families, and notes it for tokens that live until
    /// `until`. `false` where there is none.
    #[tracing::instrument(name = "db.oauth_grants.delete", level = "debug", skip_all)]
    pub async fn delete_grant(
        &self,
        tenant: &TenantId,
        grant_id: Uuid,
        until: OffsetDateTime,
    ) -> Result<bool, StoreError> {
        Ok(self
            .execute(sqlx::query!(
                "WITH gone AS (
                     DELETE FROM oauth_grants WHERE tenant = $1 AND grant_id = $2
                     RETURNING grant_id, tenant
                 )
                 INSERT INTO oauth_revocations (revoked_id, tenant, revoked_at, until)
                 SELECT grant_id, tenant, now(), $3 FROM gone
                 ON CONFLICT ON CONSTRAINT oauth_revocations_pkey DO NOTHING",
                tenant.as_str(),
                grant_id,
                until
            ))
            .await?
            == 1)
    }

    /// Forgets consents of all tenants that nothing is left of: without a family, and
    /// not to be remembered, or unused since `since`.
    #[tracing::instrument(name = "db.oauth_grants.delete_idle", level = "debug", skip_all)]
    pub async fn delete_idle_grants(&self, since: OffsetDateTime) -> Result<u64, StoreError> {
        self.execute(sqlx::query!(
            "DELETE FROM oauth_grants g WHERE (NOT remembered OR used_at < $1)
                   AND NOT EXISTS (SELECT 1 FROM oauth_families f WHERE f.grant_id = g.grant_id)",
            since
        ))
        .await
    }
}
