//! What a provider says of itself (`OpenID Connect Discovery` §3, RFC 8414 §2).

use std::sync::Arc;

use serde::Deserialize;

use super::{FederationFault, TIMEOUT};
use crate::outgoing::{Outgoing, OutgoingFault, metadata_urls};

/// Longest document that is read.
const MAX_DOCUMENT: usize = 512 * 1024;
/// How long it is used before it is fetched again, in seconds.
const FRESH: i64 = 3600;
/// How long it is used while it cannot be fetched again, in seconds.
const STALE: i64 = 24 * 3600;

/// A provider's endpoints.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Metadata {
    pub(super) authorization_endpoint: String,
    pub(super) token_endpoint: String,
    pub(super) userinfo_endpoint: Option<String>,
    /// Whether each of its answers names its issuer (RFC 9207).
    pub(super) sends_iss: bool,
    /// Whether it takes our secret in the body alone.
    pub(super) secret_in_body: bool,
}

/// Metadata and when it was fetched.
#[derive(Debug)]
pub(super) struct Known {
    pub(super) metadata: Arc<Metadata>,
    at: i64,
}

#[derive(Deserialize)]
struct Document {
    issuer: String,
    authorization_endpoint: String,
    token_endpoint: String,
    #[serde(default)]
    userinfo_endpoint: Option<String>,
    #[serde(default)]
    authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    token_endpoint_auth_methods_supported: Option<Vec<String>>,
}

impl Known {
    pub(super) fn new(metadata: Arc<Metadata>, at: i64) -> Self {
        Self { metadata, at }
    }

    pub(super) fn is_fresh(&self, now: i64) -> bool {
        now - self.at < FRESH
    }

    pub(super) fn will_do(&self, now: i64) -> bool {
        now - self.at < STALE
    }
}

/// Asks at both places, unless the host itself does not answer.
pub(super) async fn fetch(outgoing: &Outgoing, issuer: &str) -> Result<Metadata, FederationFault> {
    let mut first = None;
    for url in metadata_urls(issuer) {
        match outgoing.fetch_json(&url, MAX_DOCUMENT, TIMEOUT).await {
            Ok(fetched) => return read(&fetched.text, issuer),
            Err(fault @ OutgoingFault::Status { .. }) => first = first.or(Some(fault)),
            Err(fault) => return Err(fault.into()),
        }
    }
    Err(first.map_or(FederationFault::Metadata("is not there"), Into::into))
}

fn read(text: &str, issuer: &str) -> Result<Metadata, FederationFault> {
    let document: Document = serde_json::from_str(text)
        .map_err(|_| FederationFault::Metadata("is not that of an OpenID provider"))?;
    if document.issuer != issuer {
        return Err(FederationFault::Metadata("is of another issuer"));
    }
    let endpoints = [
        Some(&document.authorization_endpoint),
        Some(&document.token_endpoint),
        document.userinfo_endpoint.as_ref(),
    ];
    let secure = |url: &&String| url.starts_with("https://");
    if issuer.starts_with("https://") && !endpoints.iter().flatten().all(secure) {
        return Err(FederationFault::Metadata(
            "of an https issuer names endpoints that are not at https",
        ));
    }
    // Without a list: client_secret_basic (RFC 8414 §2).
    let methods = document.token_endpoint_auth_methods_supported;
    let takes = |method: &str| {
        methods
            .as_ref()
            .is_none_or(|all| all.iter().any(|one| one == method))
    };
    Ok(Metadata {
        sends_iss: document.authorization_response_iss_parameter_supported,
        secret_in_body: !takes("client_secret_basic") && takes("client_secret_post"),
        authorization_endpoint: document.authorization_endpoint,
        token_endpoint: document.token_endpoint,
        userinfo_endpoint: document.userinfo_endpoint,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn document(change: &[(&str, Value)]) -> String {
        let mut document = json!({
            "issuer": "https://idp.example.com", "authorization_endpoint": "https://idp.example.com/a",
            "token_endpoint": "https://idp.example.com/t",
        });
        for (name, value) in change {
            document[*name] = value.clone();
        }
        document.to_string()
    }

    #[test]
    fn a_document_is_believed_for_its_own_issuer_and_at_https_alone() {
        let of = |change: &[(&str, Value)]| read(&document(change), "https://idp.example.com");
        let plain = of(&[]).unwrap();
        assert!(!plain.sends_iss && !plain.secret_in_body);
        assert!(of(&[("issuer", json!("https://idp.example.com/"))]).is_err());
        assert!(of(&[("token_endpoint", json!("http://idp.example.com/t"))]).is_err());
        assert!(of(&[("userinfo_endpoint", json!("ftp://x"))]).is_err());
        assert!(read("[]", "https://idp.example.com").is_err());
    }

    #[test]
    fn the_secret_goes_into_the_body_only_where_nothing_else_is_taken() {
        for (methods, right) in [
            (json!(["client_secret_basic", "client_secret_post"]), false),
            (json!(["client_secret_post"]), true),
            (json!(["private_key_jwt"]), false),
        ] {
            let name = "token_endpoint_auth_methods_supported";
            let text = document(&[(name, methods)]);
            let metadata = read(&text, "https://idp.example.com").unwrap();
            assert_eq!(metadata.secret_in_body, right);
        }
    }
}
