//! Clients whose id is the URL of their metadata document (draft-ietf-oauth-client-id-
//! metadata-document; MCP authorization, Client ID Metadata Documents), and key sets of
//! clients. A stranger chose the URL: it is fetched through `outgoing`, which refuses
//! private addresses and follows no redirect.

use std::time::Duration;

use moka::sync::Cache;
use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::clients::{Client, ClientKeys, Grants, Proof};
use super::redirect;
use super::request::ClientKind;
use super::{Site, text};
use crate::ids::ClientId;
use crate::jose::KeySet;
use crate::outgoing::OutgoingFault;

/// Largest document that is read.
const MAX_DOCUMENT: usize = 32 * 1024;
/// How long a fetch may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// A document is kept at least so long, whatever its server says, so that one
/// sign-in fetches it once, and at most so long.
const LEAST: Duration = Duration::from_mins(1);
const MOST: Duration = Duration::from_hours(24);
/// Where its server does not say.
const USUAL: Duration = Duration::from_mins(5);
/// A failure is kept so long.
const FAILED: Duration = Duration::from_secs(10);
/// A document that cannot be fetched anew is believed so much longer: an outage of
/// the client's maker signs nobody out.
const STALE: Duration = Duration::from_hours(24);
/// Most documents that are remembered.
const REMEMBERED: u64 = 2_000;
/// Most redirects of one client.
pub(super) const MAX_REDIRECTS: usize = 32;

/// Documents that were fetched. Keys are texts of strangers; the cache is bounded.
#[derive(Debug)]
pub(super) struct Documents(Cache<String, Kept>);

#[derive(Clone, Debug)]
struct Kept {
    outcome: Result<String, DocumentFault>,
    /// Milliseconds of the clock.
    until: i64,
}

impl Default for Documents {
    fn default() -> Self {
        Self(
            Cache::builder()
                .max_capacity(REMEMBERED)
                .time_to_live(MOST + STALE)
                .build(),
        )
    }
}

/// Why a document makes no client.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DocumentFault {
    /// The id is no URL that a document may be at.
    #[error(
        "the client id is not an https URL with a path, or has a user, a fragment or dot segments"
    )]
    Url,
    /// It cannot be had: the reason is for the log, and tells a stranger nothing.
    #[error("the client's metadata document cannot be fetched")]
    Fetch,
    /// Too many are asked for at the moment.
    #[error("too many metadata documents are asked for at the moment")]
    Busy(Duration),
    /// It is no metadata document.
    #[error("the client's metadata document is not a JSON object of client metadata")]
    Malformed,
    /// It is another client's.
    #[error("the client_id in the metadata document is not the URL that it was fetched from")]
    OtherClient,
    /// A member is not accepted.
    #[error("the client's metadata document {0}")]
    Refused(&'static str),
}

#[derive(Deserialize)]
struct Document {
    client_id: String,
    #[serde(default)]
    client_name: Option<String>,
    #[serde(default)]
    redirect_uris: Vec<String>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    grant_types: Option<Vec<String>>,
    #[serde(default)]
    response_types: Option<Vec<String>>,
    #[serde(default)]
    client_secret: Option<Value>,
    #[serde(default)]
    jwks: Option<Value>,
    #[serde(default)]
    jwks_uri: Option<String>,
}

impl Site<'_> {
    /// The client of a metadata document.
    pub(super) async fn document_client(&self, id: &str) -> Result<Client, DocumentFault> {
        if !is_document_url(id) {
            return Err(DocumentFault::Url);
        }
        let text = self.fetched(id).await?;
        self.client_of(id, &text)
    }

    /// The keys of a client.
    pub(super) async fn client_keys(&self, keys: &ClientKeys) -> Result<KeySet, DocumentFault> {
        match keys {
            ClientKeys::Known(keys) => Ok(keys.clone()),
            ClientKeys::At(url) => {
                let text = self.fetched(url).await?;
                KeySet::parse(&text).map_err(|_| DocumentFault::Malformed)
            }
        }
    }

    /// The text at a URL, from the cache or the network.
    async fn fetched(&self, url: &str) -> Result<String, DocumentFault> {
        let documents = &self.server.documents.0;
        let now = self.server.clock.unix_millis();
        let kept = documents.get(url);
        if let Some(kept) = kept.as_ref().filter(|kept| now < kept.until) {
            return kept.outcome.clone();
        }
        let limit = &self.settings.server.registration.limit;
        if let Err(wait) = self.server.strangers.take(limit, now) {
            let known = kept.and_then(|kept| kept.outcome.ok());
            return known.ok_or(DocumentFault::Busy(wait));
        }
        let (outcome, age) = self.fetch(url).await;
        let outcome = match (outcome, kept) {
            (
                Err(DocumentFault::Fetch),
                Some(Kept {
                    outcome: Ok(old),
                    until,
                }),
            ) if now < until.saturating_add(millis(STALE)) => {
                // Not kept anew: it is not believed for ever.
                return Ok(old);
            }
            (outcome, _) => outcome,
        };
        let until = now.saturating_add(millis(age));
        documents.insert(
            url.to_owned(),
            Kept {
                outcome: outcome.clone(),
                until,
            },
        );
        outcome
    }

    async fn fetch(&self, url: &str) -> (Result<String, DocumentFault>, Duration) {
        match self
            .server
            .outgoing
            .fetch_json(url, MAX_DOCUMENT, PATIENCE)
            .await
        {
            Ok(fetched) => {
                let age = fetched.max_age.unwrap_or(USUAL).clamp(LEAST, MOST);
                (Ok(fetched.text), age)
            }
            Err(fault) => {
                tracing::info!(%fault, "A client's document could not be fetched.");
                (Err(why(&fault)), FAILED)
            }
        }
    }

    /// What the client calls itself, or its host.
    fn document_name(&self, id: &str, name: Option<&str>) -> Result<String, DocumentFault> {
        let name = text::label(name.unwrap_or_default());
        let name = if name.is_empty() {
            redirect::shown_host(id)
        } else {
            name
        };
        let allowed = &self.settings.server.registration.allow_names;
        if !redirect::is_name_listed(&name, allowed) {
            return Err(DocumentFault::Refused(
                "has a client_name that is not allowed here",
            ));
        }
        Ok(name)
    }

    fn client_of(&self, id: &str, text: &str) -> Result<Client, DocumentFault> {
        let document: Document =
            serde_json::from_str(text).map_err(|_| DocumentFault::Malformed)?;
        // Simple string comparison (RFC 3986 §6.2.1).
        if document.client_id != id {
            return Err(DocumentFault::OtherClient);
        }
        let refused = DocumentFault::Refused;
        if document.client_secret.is_some() {
            return Err(refused("has a client_secret: it is public"));
        }
        let has = |list: &Option<Vec<String>>, value: &str| {
            list.as_ref()
                .is_none_or(|list| list.iter().any(|one| one == value))
        };
        if !has(&document.grant_types, "authorization_code")
            || !has(&document.response_types, "code")
        {
            return Err(refused("does not have the authorization code flow"));
        }
        let registration = &self.settings.server.registration;
        let acceptable = |uri: &String| {
            redirect::redirect_kind(uri, &registration.private_use_schemes).is_some()
                && redirect::is_listed(uri, &registration.allow_redirects)
        };
        // The document is the same for every server; what is not for us is left out.
        let redirect_uris: Vec<String> = document
            .redirect_uris
            .into_iter()
            .take(MAX_REDIRECTS)
            .filter(acceptable)
            .collect();
        if redirect_uris.is_empty() {
            return Err(refused("has no redirect_uris that are accepted here"));
        }
        let name = self.document_name(id, document.client_name.as_deref())?;
        Ok(Client {
            id: ClientId::new(id),
            name,
            kind: ClientKind::Document,
            redirect_uris,
            proof: proof(
                document.token_endpoint_auth_method.as_deref(),
                document.jwks,
                document.jwks_uri,
            )?,
            scopes: Vec::new(),
            grants: Grants {
                code: true,
                ..Grants::default()
            },
            introspection: false,
            machine: None,
        })
    }
}

fn proof(
    method: Option<&str>,
    jwks: Option<Value>,
    jwks_uri: Option<String>,
) -> Result<Proof, DocumentFault> {
    match method {
        None | Some("none") => Ok(Proof::None),
        Some("private_key_jwt") => match (jwks, jwks_uri) {
            (Some(jwks), _) => KeySet::parse(&jwks.to_string())
                .map(|keys| Proof::Keys(ClientKeys::Known(keys)))
                .map_err(|_| DocumentFault::Refused("has jwks that are no key set")),
            (None, Some(url)) if url.starts_with("https://") => {
                Ok(Proof::Keys(ClientKeys::At(url)))
            }
            _ => Err(DocumentFault::Refused("has private_key_jwt and no keys")),
        },
        Some(_) => Err(DocumentFault::Refused(
            "has a token_endpoint_auth_method other than none and private_key_jwt",
        )),
    }
}

fn why(_: &OutgoingFault) -> DocumentFault {
    DocumentFault::Fetch
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

/// Whether a document may be at this URL: https, a host, a path, no user, no
/// fragment, no dot segments, nothing that two parsers read differently.
fn is_document_url(id: &str) -> bool {
    if redirect::redirect_kind(id, &[]) != Some(redirect::RedirectKind::Https) {
        return false;
    }
    let rest = id.get("https://".len()..).unwrap_or_default();
    // A slash behind a question mark is no path.
    let path = rest.find(['/', '?']).and_then(|at| rest.get(at..));
    let path = path.filter(|path| path.starts_with('/'));
    let Some(path) = path.filter(|path| path.len() > 1) else {
        return false;
    };
    let path = path.split('?').next().unwrap_or_default();
    path.split('/').all(|segment| {
        let plain = segment.to_ascii_lowercase().replace("%2e", ".");
        plain != "." && plain != ".."
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_at_an_https_url_with_a_path_and_nothing_odd() {
        for (id, fits) in [
            ("https://app.example.com/c.json", true),
            ("https://claude.ai/oauth/claude-code-client-metadata", true),
            ("https://app.example.com:8443/c.json?v=1", true),
            ("https://app.example.com", false),
            ("https://app.example.com/", false),
            ("https://app.example.com?x/y", false),
            ("http://app.example.com/c.json", false),
            ("http://127.0.0.1/c.json", false),
            ("https://u:p@app.example.com/c.json", false),
            ("https://app.example.com/c.json#x", false),
            ("https://app.example.com/../c.json", false),
            ("https://app.example.com/./c.json", false),
            ("https://app.example.com/%2e%2E/c.json", false),
            ("https://app.example.com\\c.json", false),
            ("HTTPS://app.example.com/c.json", false),
            ("ftp://app.example.com/c.json", false),
        ] {
            assert_eq!(is_document_url(id), fits, "{id}");
        }
    }
}
