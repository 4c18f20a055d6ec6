//! The token endpoint's rules for people's grants: codes and refresh tokens
//! (`rules.md` §4.2, §4.5, §4.9).

use std::collections::BTreeSet;
use std::time::Duration;

use super::authorize::{Parameters, only};
use super::clients::Client;
use super::ledger::make;
use super::request::Resource;
use super::standing::Standing;
use super::tokens::{AccessClaims, RefreshToken, Tokens, digest_of, s256, tenant_of};
use super::{Event, Ledger, Site, TokenFault};
use crate::ids::{ClientId, Scope, Subject};
use crate::secret::same;
use crate::store::oauth_families::{Family, Rotation};

/// A used refresh token answers so long after its first use: retries and races log
/// nobody out.
const WINDOW: Duration = Duration::from_secs(30);
/// Most uses that are remembered: more refreshes than this in the window are no
/// client's.
const MAX_USES: usize = 256;
/// How often a refresh begins anew when another replica was faster.
const ATTEMPTS: usize = 8;

impl Site<'_> {
    /// The token endpoint.
    ///
    /// # Errors
    /// [`TokenFault`]. The replay of a code, or of a refresh token, revokes.
    pub async fn token(
        &self,
        client: &Client,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        let grant = needed(parameters, "grant_type", "grant_type is missing")?;
        match grant {
            "authorization_code" => self.exchange_code(client, parameters, ledger).await,
            "refresh_token" => self.refresh(client, parameters, ledger).await,
            "client_credentials" => self.client_credentials(client, parameters, ledger).await,
            _ => Err(TokenFault::UnsupportedGrantType),
        }
    }

    async fn exchange_code(
        &self,
        client: &Client,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        const WRONG: TokenFault =
            TokenFault::InvalidGrant("the code is not good, or is another client's");
        let code = needed(parameters, "code", "code is missing")?;
        let verifier = needed(
            parameters,
            "code_verifier",
            "code_verifier is missing (PKCE)",
        )?;
        let family = self
            .server
            .store
            .find_family_by_code(&digest_of(code))
            .await?
            .ok_or(WRONG)?;
        if family.client_id != client.id.as_str() {
            return Err(WRONG);
        }
        if family.code_used_at.is_some() {
            self.end_family(&family, "code_replayed", ledger).await?;
            return Err(WRONG);
        }
        let now = self.server.clock.now();
        if family.code_expires_at <= now {
            return Err(WRONG);
        }
        check_verifier(verifier, &family.code_challenge)?;
        // OAuth 2.1 does not want it; what is sent must be right.
        let redirect = only(parameters, "redirect_uri").map_err(|()| REPEATED)?;
        if redirect.is_some_and(|redirect| redirect != family.redirect_uri) {
            return Err(TokenFault::InvalidGrant(
                "redirect_uri is not that of the authorization",
            ));
        }
        self.check_resource(parameters, &family.resource)?;
        let tenant = tenant_of(&family.tenant);
        let expires_at = now + self.settings.server.refresh_token_lifetime.0;
        // Signed before the code is used up: what cannot be answered may be tried again.
        let tokens = self
            .tokens(&family, 1, &family.scopes, &family.roles)
            .await?;
        let issued = Event::Issued {
            tenant: tenant.clone(),
            subject: Subject::from(family.subject.as_str()),
            client: client.id.clone(),
            grant: Some(family.grant_id),
            by: "authorization_code",
        };
        let store = &self.server.store;
        let used = store.update_code_used(&tenant, family.family_id, now, expires_at);
        if !make::<TokenFault>(ledger, issued, used).await? {
            self.end_family(&family, "code_replayed", ledger).await?;
            return Err(WRONG);
        }
        Ok(tokens)
    }

    #[expect(clippy::too_many_lines, reason = "the order of the checks is the rule")]
    async fn refresh(
        &self,
        client: &Client,
        parameters: &Parameters,
        ledger: &dyn Ledger,
    ) -> Result<Tokens, TokenFault> {
        const WRONG: TokenFault =
            TokenFault::InvalidGrant("the refresh token is not good; sign in again");
        let text = needed(parameters, "refresh_token", "refresh_token is missing")?;
        let token = RefreshToken::read(text, &self.server.refresh_tokens).ok_or(WRONG)?;
        for _ in 0..ATTEMPTS {
            let family = self
                .server
                .store
                .find_family(token.family)
                .await?
                .ok_or(WRONG)?;
            if family.client_id != client.id.as_str() {
                return Err(WRONG);
            }
            let now = self.server.clock.now();
            if family.expires_at <= now || family.ends_at <= now {
                return Err(WRONG);
            }
            let use_ = judge_use(&family, token.generation, self.server.clock.unix_millis());
            let (to, uses) = match use_ {
                Use::Next { uses } => (family.generation + 1, uses),
                Use::Again => (family.generation, family.uses.clone()),
                Use::Replay => {
                    self.end_family(&family, "refresh_token_replayed", ledger)
                        .await?;
                    return Err(WRONG);
                }
                Use::Never => return Err(WRONG),
            };
            self.check_resource(parameters, &family.resource)?;
            let asked = only(parameters, "scope").map_err(|()| REPEATED)?;
            let scopes = narrowed(
                &family.scopes,
                &self.settings.implied_by(&family.scopes),
                asked,
                |scope| self.settings.knows_scope(scope),
            )?;
            let Some(roles) = self.roles_now(&family, ledger).await? else {
                return Err(WRONG);
            };
            let tokens = self.tokens(&family, to, &scopes, &roles).await?;
            let rotation = Rotation {
                from: family.generation,
                to,
                uses,
                roles,
                used_at: now,
                expires_at: now + self.settings.server.refresh_token_lifetime.0,
            };
            let tenant = tenant_of(&family.tenant);
            let issued = Event::Issued {
                tenant: tenant.clone(),
                subject: Subject::new(family.subject),
                client: client.id.clone(),
                grant: Some(family.grant_id),
                by: "refresh_token",
            };
            let store = &self.server.store;
            let moved = store.update_generation(&tenant, family.family_id, &rotation);
            if make::<TokenFault>(ledger, issued, moved).await? {
                return Ok(tokens);
            }
        }
        Err(TokenFault::Unavailable)
    }

    /// The person's roles, or nothing where the person is gone: then the grant ends.
    async fn roles_now(
        &self,
        family: &Family,
        ledger: &dyn Ledger,
    ) -> Result<Option<Vec<String>>, TokenFault> {
        let tenant = tenant_of(&family.tenant);
        let grant = self
            .server
            .store
            .find_grant_by_id(&tenant, family.grant_id)
            .await?;
        let Some(grant) = grant else { return Ok(None) };
        match self.standing(&grant, ledger).await? {
            Standing::Good(roles) => Ok(Some(roles.unwrap_or_else(|| family.roles.clone()))),
            Standing::Gone => {
                let gone = (&tenant, family.grant_id);
                let (server, settings) = (self.server, self.settings);
                super::grants::revoke::<TokenFault>(server, settings, gone, "person_gone", ledger)
                    .await?;
                Ok(None)
            }
        }
    }

    async fn tokens(
        &self,
        family: &Family,
        generation: i64,
        scopes: &[String],
        roles: &[String],
    ) -> Result<Tokens, TokenFault> {
        let (access_token, expires_in) = self
            .access_token(&AccessClaims {
                subject: &family.subject,
                client: &family.client_id,
                audience: &family.resource,
                tenant: &family.tenant,
                roles,
                scopes,
                of: Some((family.grant_id, family.family_id)),
            })
            .await?;
        let refresh_token = RefreshToken {
            family: family.family_id,
            generation,
        }
        .text(&self.server.refresh_tokens);
        Ok(Tokens {
            access_token,
            expires_in,
            refresh_token,
            scope: scopes.join(" "),
        })
    }

    /// The grant's resource, once more or not at all.
    fn check_resource(&self, parameters: &Parameters, granted: &str) -> Result<(), TokenFault> {
        match only(parameters, "resource") {
            Ok(None) => Ok(()),
            Ok(Some(text)) => Resource::named(self.issuer, text)
                .filter(|resource| resource.url == granted)
                .map(drop)
                .ok_or(TokenFault::InvalidTarget),
            Err(()) => Err(TokenFault::InvalidTarget),
        }
    }

    /// Ends a family everywhere.
    pub(super) async fn end_family(
        &self,
        family: &Family,
        reason: &'static str,
        ledger: &dyn Ledger,
    ) -> Result<(), TokenFault> {
        let tenant = tenant_of(&family.tenant);
        let revoked = Event::Revoked {
            tenant: tenant.clone(),
            subject: Subject::from(family.subject.as_str()),
            client: ClientId::from(family.client_id.as_str()),
            revoked: family.family_id,
            reason,
        };
        let until = self.server.tokens_end(self.settings);
        let store = &self.server.store;
        let deleted = store.delete_family(&tenant, family.family_id, until);
        if make::<TokenFault>(ledger, revoked, deleted).await? {
            self.server.tell_revoked().await;
        }
        Ok(())
    }
}

pub(super) const REPEATED: TokenFault = TokenFault::InvalidRequest("a parameter occurs twice");

fn needed<'p>(
    parameters: &'p Parameters,
    name: &str,
    missing: &'static str,
) -> Result<&'p str, TokenFault> {
    only(parameters, name)
        .map_err(|()| REPEATED)?
        .ok_or(TokenFault::InvalidRequest(missing))
}

/// RFC 7636 §4.1, §4.6
fn check_verifier(verifier: &str, challenge: &str) -> Result<(), TokenFault> {
    let well_formed = (43..=128).contains(&verifier.len())
        && verifier
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
    if !well_formed {
        return Err(TokenFault::InvalidRequest(
            "code_verifier must have 43 to 128 characters of A-Z, a-z, 0-9, -, ., _ and ~",
        ));
    }
    same(s256(verifier).as_bytes(), challenge.as_bytes())
        .then_some(())
        .ok_or(TokenFault::InvalidGrant(
            "code_verifier does not fit the code_challenge",
        ))
}

/// What a use of a refresh token is.
#[derive(Debug, PartialEq, Eq)]
enum Use {
    /// The newest one: the family moves on.
    Next {
        /// The family's uses after it.
        uses: Vec<i64>,
    },
    /// An earlier one within its window: the newest is handed out again.
    Again,
    /// An earlier one after its window.
    Replay,
    /// One that was never handed out.
    Never,
}

/// Which use it is of the token of `generation`, at `now` in milliseconds.
fn judge_use(family: &Family, generation: i64, now: i64) -> Use {
    let window = i64::try_from(WINDOW.as_millis()).unwrap_or(i64::MAX);
    let recent = |at: i64| now.saturating_sub(at) < window;
    let back = family.generation - generation;
    if family.code_used_at.is_none() || generation < 1 || back < 0 {
        return Use::Never;
    }
    if back == 0 {
        let mut uses: Vec<i64> = family.uses.clone();
        uses.push(now);
        // The times stand for the last generations without a gap: only the oldest may go.
        let old = uses.iter().take_while(|at| !recent(**at)).count();
        let old = old.max(uses.len().saturating_sub(MAX_USES));
        return Use::Next {
            uses: uses.split_off(old),
        };
    }
    let back = usize::try_from(back).unwrap_or(usize::MAX);
    let first_used = family
        .uses
        .len()
        .checked_sub(back)
        .and_then(|at| family.uses.get(at));
    match first_used {
        Some(at) if recent(*at) => Use::Again,
        _ => Use::Replay,
    }
}

/// Scopes at a refresh: all of them, or those that are asked for and were granted, by
/// themselves or by a broader one. Unknown ones are dropped as they were at the authorization: clients repeat them.
fn narrowed(
    granted: &[String],
    implied: &BTreeSet<Scope>,
    asked: Option<&str>,
    knows: impl Fn(&str) -> bool,
) -> Result<Vec<String>, TokenFault> {
    let mut scopes: Vec<String> = Vec::new();
    for scope in asked.unwrap_or_default().split_ascii_whitespace() {
        let is_granted = implied.contains(scope);
        if !is_granted && knows(scope) {
            return Err(TokenFault::InvalidScope);
        }
        if is_granted && !scopes.iter().any(|one| one == scope) {
            scopes.push(scope.to_owned());
        }
    }
    if scopes.is_empty() {
        return Ok(granted.to_vec());
    }
    Ok(scopes)
}

#[cfg(test)]
mod tests {
    use time::OffsetDateTime;

    use super::*;

    fn family(generation: i64, uses: &[i64]) -> Family {
        let at = OffsetDateTime::UNIX_EPOCH;
        Family {
            family_id: uuid::Uuid::nil(),
            grant_id: uuid::Uuid::nil(),
            tenant: "acme".to_owned(),
            client_id: "c".to_owned(),
            subject: "s".to_owned(),
            code_expires_at: at,
            code_used_at: Some(at),
            code_challenge: String::new(),
            redirect_uri: String::new(),
            resource: String::new(),
            scopes: Vec::new(),
            roles: Vec::new(),
            generation,
            uses: uses.to_vec(),
            expires_at: at,
            ends_at: at,
        }
    }

    #[test]
    fn a_refresh_token_is_good_once_and_for_thirty_seconds_more() {
        let next = |uses: &[i64]| Use::Next {
            uses: uses.to_vec(),
        };
        for (family, generation, now, use_) in [
            (family(1, &[]), 1, 0, next(&[0])),
            (family(2, &[1000]), 1, 1000, Use::Again),
            (family(2, &[1000]), 1, 30_999, Use::Again),
            (family(2, &[1000]), 1, 31_000, Use::Replay),
            (family(2, &[1000]), 2, 2000, next(&[1000, 2000])),
            // The window is each token's own, counted from its own first use.
            (family(4, &[1000, 20_000, 30_000]), 1, 30_500, Use::Again),
            (family(4, &[1000, 20_000, 30_000]), 1, 31_000, Use::Replay),
            (family(4, &[1000, 20_000, 30_000]), 2, 31_000, Use::Again),
            (
                family(4, &[1000, 20_000, 30_000]),
                4,
                40_000,
                next(&[20_000, 30_000, 40_000]),
            ),
            // Forgotten uses are long ago.
            (family(9, &[]), 8, 0, Use::Replay),
            (family(9, &[1000]), 7, 1000, Use::Replay),
            // Never handed out: a code's, or one from the future.
            (family(2, &[1000]), 3, 1000, Use::Never),
            (family(2, &[1000]), 0, 1000, Use::Never),
            (family(2, &[1000]), -1, 1000, Use::Never),
            // A clock that is set back takes nothing away.
            (family(2, &[1000]), 1, 0, Use::Again),
        ] {
            assert_eq!(
                judge_use(&family, generation, now),
                use_,
                "{family:?} {generation} {now}"
            );
        }
        let unused = Family {
            code_used_at: None,
            ..family(1, &[])
        };
        assert_eq!(judge_use(&unused, 1, 0), Use::Never);
        let busy: Vec<i64> = (0..1000).collect();
        let Use::Next { uses } = judge_use(&family(1001, &busy), 1001, 1000) else {
            panic!("it is the newest");
        };
        assert_eq!(uses.len(), MAX_USES);
        assert_eq!(uses.last(), Some(&1000));
    }

    #[test]
    fn a_refresh_narrows_and_never_widens() {
        let granted = ["mcp", "crm.read"].map(str::to_owned);
        let implied = ["mcp", "crm.read", "crm.list"].map(Scope::from).into();
        let knows = |scope: &str| scope != "openid";
        let ask = |asked| {
            let scopes = narrowed(&granted, &implied, asked, knows);
            scopes.map(|scopes| scopes.join(" ")).ok()
        };
        assert_eq!(ask(Some("mcp openid")).as_deref(), Some("mcp"));
        assert_eq!(ask(Some("openid")).as_deref(), Some("mcp crm.read"));
        assert_eq!(ask(None).as_deref(), Some("mcp crm.read"));
        assert_eq!(ask(Some("crm.read crm.read")).as_deref(), Some("crm.read"));
        assert_eq!(ask(Some("crm.list")).as_deref(), Some("crm.list"));
        assert_eq!(ask(Some("mcp crm.admin")), None);
        assert_eq!(ask(Some("MCP")), None);
    }

    #[test]
    fn a_verifier_has_the_form_and_the_digest_of_its_challenge() {
        let verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";
        let challenge = s256(verifier);
        assert!(check_verifier(verifier, &challenge).is_ok());
        let long = "a".repeat(128);
        assert!(check_verifier(&long, &s256(&long)).is_ok());
        for wrong in [
            "",
            "short",
            &"a".repeat(129),
            &"ä".repeat(43),
            &challenge,
            &"a".repeat(43),
        ] {
            assert!(check_verifier(wrong, &challenge).is_err(), "{wrong}");
        }
    }
}
