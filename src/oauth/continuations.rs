//! Pages elsewhere that a tool server wants a person to open (URL elicitation). The
//! caller is given a link of ours in the place of each: `/account/continue/{id}`, which
//! has the same person sign in, says where it leads, and then goes there (`rules.md`
//! §6.1). So a link that is passed on, or slipped to somebody, binds nobody else's
//! account (MCP elicitation, Safe URL Handling, Identifying the User).

use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::clock::SharedClock;
use crate::ids::{Subject, TenantId, UpstreamId};
use crate::seal::{Keys, Label, Prf, Sealer};
use crate::store::{Store, StoreError};

/// How long a link is good for, at least.
const LIFETIME: Duration = Duration::from_hours(1);

/// Whose link it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Visitor {
    /// The tenant that the caller acts for.
    pub tenant: TenantId,
    /// Our `sub` of the person.
    pub subject: Subject,
    /// The URL of the account page.
    pub account: String,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Destination {
    /// The page.
    pub url: String,
    /// The upstream that wants it opened.
    pub upstream: UpstreamId,
}

impl Destination {
    /// The host of the page, with a port where there is one.
    pub fn host(&self) -> &str {
        let rest = self.url.split_once("://").map_or("", |(_, rest)| rest);
        rest.split(['/', '?', '#']).next().unwrap_or_default()
    }
}

/// Keeps where links lead, sealed, in the table of what waits for a caller.
pub struct Continuations {
    store: Store,
    sealer: Sealer,
    ids: Prf,
    clock: SharedClock,
}

impl Continuations {
    /// Nothing is read yet.
    pub fn new(store: Store, keys: &Keys, clock: SharedClock) -> Self {
        Self {
            store,
            sealer: keys.sealer(Label::Continuation),
            ids: keys.prf(Label::Continuation),
            clock,
        }
    }

    /// A link for this person alone. Who asks for the same again (a client that looks
    /// how a task stands) gets the same link for a while.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn keep(
        &self,
        visitor: &Visitor,
        destination: &Destination,
    ) -> Result<String, StoreError> {
        let seconds = i64::try_from(LIFETIME.as_secs()).unwrap_or(i64::MAX);
        let period = self.clock.unix_seconds() / seconds;
        let owner = owner(&visitor.subject);
        let named = serde_json::to_vec(&(&visitor.tenant, &owner, destination, period));
        let tag = self.ids.tag(&named.unwrap_or_default());
        let tag = tag.ok_or(StoreError::Inconsistent("keys"))?;
        let (id, _) = tag
            .split_first_chunk::<16>()
            .ok_or(StoreError::Inconsistent("keys"))?;
        let id = uuid::Builder::from_random_bytes(*id).into_uuid();
        let plain = serde_json::to_vec(destination).unwrap_or_default();
        let body = self.sealer.seal(&plain, &bound(&owner, id));
        let until = self.clock.now() + 2 * LIFETIME;
        self.store
            .insert_request_state(&visitor.tenant, id, &owner, body.as_bytes(), until)
            .await?;
        Ok(format!("{}/continue/{}", visitor.account, id.simple()))
    }

    /// Where a link leads, if it is this person's in this tenant and still good.
    ///
    /// # Errors
    /// When the database is away.
    pub async fn find(
        &self,
        tenant: &TenantId,
        subject: &Subject,
        id: Uuid,
    ) -> Result<Option<Destination>, StoreError> {
        let owner = owner(subject);
        let found = self.store.find_request_state(tenant, id, &owner).await?;
        let opened = found
            .and_then(|body| String::from_utf8(body).ok())
            .and_then(|text| self.sealer.open(&text, &bound(&owner, id)).ok());
        Ok(opened.and_then(|plain| serde_json::from_slice(&plain).ok()))
    }
}

impl std::fmt::Debug for Continuations {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Continuations").finish_non_exhaustive()
    }
}

/// A place in the table that tells nothing of the person, and is no caller's own.
fn owner(subject: &Subject) -> Vec<u8> {
    let named = format!("continue\0{}", subject.as_str());
    digest(&SHA256, named.as_bytes()).as_ref().to_vec()
}

fn bound(owner: &[u8], id: Uuid) -> Vec<u8> {
    [owner, id.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_what_a_person_has_to_know() {
        for (url, host) in [
            ("https://pay.example.com/a?b#c", "pay.example.com"),
            ("https://pay.example.com", "pay.example.com"),
            ("http://127.0.0.1:8080?x=/y", "127.0.0.1:8080"),
            ("https://a.example#@b.example", "a.example"),
        ] {
            let destination = Destination {
                url: url.to_owned(),
                upstream: UpstreamId::from("up"),
            };
            assert_eq!(destination.host(), host);
        }
    }
}
