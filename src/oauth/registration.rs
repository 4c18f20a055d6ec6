//! Clients that register themselves (RFC 7591): lenient in what real clients send,
//! strict in where they may send people.

use std::time::Duration;

use serde_json::{Map, Value, json};
use thiserror::Error;

use super::documents::MAX_REDIRECTS;
use super::ledger::make;
use super::redirect::{self, RedirectKind};
use super::tokens::{digest_of, new_id, new_secret};
use super::{Event, Ledger, Site, Unrecorded, text};
use crate::config;
use crate::ids::ClientId;
use crate::jose::KeySet;
use crate::secret::Secret;
use crate::store::StoreError;
use crate::store::oauth_clients::RegisteredClient;

/// Why a registration is refused (RFC 7591 §3.2.2).
#[derive(Debug, Error)]
pub enum RegistrationFault {
    /// Nobody may register.
    #[error("this server does not take registrations; ask its operator for a client_id")]
    Closed,
    /// A redirect is not accepted; which one, counted from 1, and why.
    #[error("redirect_uris, number {0}: {1}")]
    Redirect(usize, &'static str),
    /// There is no redirect.
    #[error("redirect_uris must be a list of 1 to {MAX_REDIRECTS} absolute URIs")]
    NoRedirects,
    /// Something else is wrong.
    #[error("{0}")]
    Metadata(&'static str),
    /// Too many at the moment.
    #[error("too many clients are being registered; try again later")]
    Busy(Duration),
    /// It could not be put on record, and so did not happen.
    #[error(transparent)]
    Unrecorded(#[from] Unrecorded),
    /// The database could not be asked.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl RegistrationFault {
    /// `error`
    pub fn code(&self) -> &'static str {
        match self {
            Self::Closed => "access_denied",
            Self::Redirect(..) | Self::NoRedirects => "invalid_redirect_uri",
            Self::Metadata(_) => "invalid_client_metadata",
            Self::Busy(_) | Self::Unrecorded(_) | Self::Store(_) => "temporarily_unavailable",
        }
    }
}

/// What a client asked for, judged.
#[derive(Debug, PartialEq, Eq)]
struct Wanted {
    name: String,
    redirect_uris: Vec<String>,
    method: &'static str,
    jwks: Option<String>,
    jwks_uri: Option<String>,
    /// Members that are handed back as they are.
    echoed: Map<String, Value>,
}

/// What is handed back although it changes nothing here.
const ECHOED: [&str; 7] = [
    "application_type",
    "client_uri",
    "logo_uri",
    "tos_uri",
    "policy_uri",
    "software_id",
    "software_version",
];
/// Longest of those.
const MAX_ECHOED: usize = 512;
/// A full house is asked again after so long.
const FULL: Duration = Duration::from_mins(10);

impl Site<'_> {
    /// Registers a client, and gives the answer's body (RFC 7591 §3.2.1). It may hold a
    /// secret.
    ///
    /// # Errors
    /// [`RegistrationFault`]
    pub async fn register(
        &self,
        metadata: &Value,
        ledger: &dyn Ledger,
    ) -> Result<Secret<String>, RegistrationFault> {
        let registration = &self.settings.server.registration;
        if !registration.dynamic {
            return Err(RegistrationFault::Closed);
        }
        // What is wrong costs nobody else's budget.
        let wanted = judge(metadata, registration)?;
        let now = self.server.clock.now();
        self.server
            .strangers
            .take(&registration.limit, self.server.clock.unix_millis())
            .map_err(RegistrationFault::Busy)?;
        let secret = wanted.method.starts_with("client_secret").then(new_secret);
        let row = RegisteredClient {
            client_id: format!("dyn-{}", new_id().simple()),
            name: wanted.name.clone(),
            redirect_uris: wanted.redirect_uris.clone(),
            auth_method: wanted.method.to_owned(),
            secret_digest: secret.as_ref().map(|secret| digest_of(secret.expose())),
            jwks: wanted.jwks.clone(),
            jwks_uri: wanted.jwks_uri.clone(),
            registered_at: now,
            used_at: None,
        };
        let registered = Event::Registered {
            client: ClientId::from(row.client_id.as_str()),
            name: row.name.clone(),
        };
        let kept = self
            .server
            .store
            .insert_oauth_client(&row, registration.most);
        if !make::<RegistrationFault>(ledger, registered, kept).await? {
            tracing::warn!(
                most = registration.most,
                "No more clients can register until unused ones expire (authorization_server.registration.most)."
            );
            return Err(RegistrationFault::Busy(FULL));
        }
        let document = self.document(&row, wanted, metadata, secret.as_ref());
        Ok(Secret::new(document.to_string()))
    }

    fn document(
        &self,
        row: &RegisteredClient,
        wanted: Wanted,
        metadata: &Value,
        secret: Option<&Secret<String>>,
    ) -> Value {
        let mut document = wanted.echoed;
        let mut put = |name: &str, value: Value| {
            document.insert(name.to_owned(), value);
        };
        put("client_id", row.client_id.clone().into());
        put(
            "client_id_issued_at",
            row.registered_at.unix_timestamp().into(),
        );
        if let Some(secret) = secret {
            put("client_secret", secret.expose().clone().into());
            put("client_secret_expires_at", 0.into());
        }
        put("client_name", row.name.clone().into());
        put("redirect_uris", json!(row.redirect_uris));
        put(
            "grant_types",
            json!(["authorization_code", "refresh_token"]),
        );
        put("response_types", json!(["code"]));
        put("token_endpoint_auth_method", row.auth_method.clone().into());
        if let Some(jwks) = metadata.get("jwks").filter(|_| row.jwks.is_some()) {
            put("jwks", jwks.clone());
        }
        if let Some(uri) = &row.jwks_uri {
            put("jwks_uri", uri.clone().into());
        }
        let asked = metadata
            .get("scope")
            .and_then(Value::as_str)
            .unwrap_or_default();
        let scopes: Vec<&str> = asked
            .split_ascii_whitespace()
            .filter(|scope| self.settings.knows_scope(scope))
            .collect();
        if !scopes.is_empty() {
            put("scope", scopes.join(" ").into());
        }
        Value::Object(document)
    }
}

#[expect(clippy::too_many_lines, reason = "one table of what is refused")]
fn judge(metadata: &Value, rules: &config::Registration) -> Result<Wanted, RegistrationFault> {
    use RegistrationFault::Metadata;
    let metadata = metadata.as_object().ok_or(Metadata(
        "the body must be a JSON object of client metadata",
    ))?;
    let redirect_uris = redirects(metadata.get("redirect_uris"), rules)?;
    let text = |name: &str, wrong: &'static str| match metadata.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) => Err(Metadata(wrong)),
    };
    if !lists(metadata.get("grant_types"), "authorization_code")? {
        return Err(Metadata(
            "grant_types must have authorization_code: others are for clients of the configuration",
        ));
    }
    if !lists(metadata.get("response_types"), "code")? {
        return Err(Metadata("response_types must have code"));
    }
    let name =
        text::label(text("client_name", "client_name must be a string")?.unwrap_or_default());
    let name = if name.is_empty() {
        redirect_uris
            .first()
            .map(|uri| redirect::shown_host(uri))
            .unwrap_or_default()
    } else {
        name
    };
    if !redirect::is_name_listed(&name, &rules.allow_names) {
        return Err(Metadata(
            "the operator of this server does not allow clients of this client_name",
        ));
    }
    let method = method(text(
        "token_endpoint_auth_method",
        "token_endpoint_auth_method must be a string",
    )?)?;
    let (jwks, jwks_uri) = if method == "private_key_jwt" {
        keys(
            metadata.get("jwks"),
            text("jwks_uri", "jwks_uri must be a string")?,
        )?
    } else {
        (None, None)
    };
    let short = |value: &Value| value.as_str().is_some_and(|text| text.len() <= MAX_ECHOED);
    let echoed = ECHOED
        .iter()
        .filter_map(|name| {
            Some((
                (*name).to_owned(),
                metadata.get(*name).filter(|v| short(v))?.clone(),
            ))
        })
        .collect();
    Ok(Wanted {
        name,
        redirect_uris,
        method,
        jwks,
        jwks_uri,
        echoed,
    })
}

fn method(asked: Option<&str>) -> Result<&'static str, RegistrationFault> {
    match asked {
        // RFC 7591 §2
        None | Some("client_secret_basic") => Ok("client_secret_basic"),
        Some("client_secret_post") => Ok("client_secret_post"),
        Some("none") => Ok("none"),
        Some("private_key_jwt") => Ok("private_key_jwt"),
        Some(_) => Err(RegistrationFault::Metadata(
            "token_endpoint_auth_method must be none, client_secret_basic, client_secret_post or private_key_jwt",
        )),
    }
}

fn redirects(
    value: Option<&Value>,
    rules: &config::Registration,
) -> Result<Vec<String>, RegistrationFault> {
    let list = value
        .and_then(Value::as_array)
        .filter(|list| !list.is_empty() && list.len() <= MAX_REDIRECTS)
        .ok_or(RegistrationFault::NoRedirects)?;
    let mut uris: Vec<String> = Vec::new();
    for (number, uri) in (1..).zip(list) {
        let refused = |why| RegistrationFault::Redirect(number, why);
        let uri = uri.as_str().ok_or(refused("it is no string"))?;
        let kind: Option<RedirectKind> = redirect::redirect_kind(uri, &rules.private_use_schemes);
        if kind.is_none() {
            return Err(refused(
                "it must be https, http on 127.0.0.1, [::1] or localhost, or of a scheme that the operator allows (private_use_schemes), without user, fragment and odd characters",
            ));
        }
        if !redirect::is_listed(uri, &rules.allow_redirects) {
            return Err(refused("the operator of this server does not allow it"));
        }
        if !uris.iter().any(|known| known == uri) {
            uris.push(uri.to_owned());
        }
    }
    Ok(uris)
}

/// Whether a list has a value; a list that is left out has the usual one.
fn lists(value: Option<&Value>, wanted: &str) -> Result<bool, RegistrationFault> {
    match value {
        None | Some(Value::Null) => Ok(true),
        Some(Value::Array(list)) if list.is_empty() => Ok(true),
        Some(Value::Array(list)) => Ok(list.iter().any(|one| one == wanted)),
        Some(_) => Err(RegistrationFault::Metadata(
            "grant_types and response_types must be lists",
        )),
    }
}

type Keys = (Option<String>, Option<String>);

fn keys(jwks: Option<&Value>, uri: Option<&str>) -> Result<Keys, RegistrationFault> {
    use RegistrationFault::Metadata;
    match (jwks, uri) {
        (Some(_), Some(_)) => Err(Metadata("jwks and jwks_uri must not both be there")),
        (Some(jwks), None) => {
            let text = jwks.to_string();
            let usable = KeySet::parse(&text).is_ok_and(|keys| !keys.is_empty());
            let text = usable.then_some(text);
            text.map(|text| (Some(text), None))
                .ok_or(Metadata("jwks has no key of RS256, ES256 or EdDSA"))
        }
        (None, Some(uri))
            if uri.len() <= 1024
                && redirect::redirect_kind(uri, &[]) == Some(RedirectKind::Https) =>
        {
            Ok((None, Some(uri.to_owned())))
        }
        (None, Some(_)) => Err(Metadata("jwks_uri must be https")),
        (None, None) => Err(Metadata("private_key_jwt needs jwks or jwks_uri")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(metadata: &Value) -> Result<Wanted, String> {
        let rules = config::Registration {
            private_use_schemes: vec!["cursor".to_owned()],
            ..config::Registration::default()
        };
        judge(metadata, &rules).map_err(|fault| fault.code().to_owned())
    }

    #[test]
    fn what_real_clients_send_is_accepted() {
        for (metadata, name, method) in [
            // Codex CLI
            (
                json!({"client_name":"Codex","redirect_uris":["http://127.0.0.1:4711/callback"],"grant_types":["authorization_code","refresh_token"],"token_endpoint_auth_method":"none","response_types":["code"],"scope":"mcp:connect","application_type":"native"}),
                "Codex",
                "none",
            ),
            // Claude Code
            (
                json!({"client_name":"Claude Code (tools)","redirect_uris":["http://localhost:4711/callback"],"grant_types":["authorization_code","refresh_token"],"response_types":["code"],"token_endpoint_auth_method":"none","application_type":"native"}),
                "Claude Code (tools)",
                "none",
            ),
            // Cursor, with members that nobody here knows
            (
                json!({"client_name":"Cursor","redirect_uris":["cursor://anysphere.cursor-mcp/oauth/callback"],"token_endpoint_auth_method":"none","x":{"y":[1]},"contacts":null}),
                "Cursor",
                "none",
            ),
            // As little as RFC 7591 allows
            (
                json!({"redirect_uris":["https://app.example.com/cb"]}),
                "app.example.com",
                "client_secret_basic",
            ),
            // Grants besides ours are left out
            (
                json!({"redirect_uris":["https://app.example.com/cb"],"grant_types":["authorization_code","client_credentials","implicit"],"response_types":["code","token"],"token_endpoint_auth_method":"client_secret_post"}),
                "app.example.com",
                "client_secret_post",
            ),
        ] {
            let wanted = judged(&metadata).unwrap();
            assert_eq!((wanted.name.as_str(), wanted.method), (name, method));
        }
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "one table of what is refused")]
    fn what_would_harm_or_cannot_work_is_refused_by_the_names_of_the_specification() {
        let with = |name: &str, value: Value| {
            let mut metadata = json!({"redirect_uris": ["https://app.example.com/cb"]});
            metadata[name] = value;
            metadata
        };
        for (metadata, code) in [
            (json!([]), "invalid_client_metadata"),
            (json!({}), "invalid_redirect_uri"),
            (with("redirect_uris", json!([])), "invalid_redirect_uri"),
            (
                with("redirect_uris", json!("https://app.example.com/cb")),
                "invalid_redirect_uri",
            ),
            (with("redirect_uris", json!([1])), "invalid_redirect_uri"),
            (
                with(
                    "redirect_uris",
                    json!(vec!["https://app.example.com/cb"; 33]),
                ),
                "invalid_redirect_uri",
            ),
            (
                with(
                    "redirect_uris",
                    json!(["https://app.example.com/cb", "javascript:alert(1)"]),
                ),
                "invalid_redirect_uri",
            ),
            (
                with("redirect_uris", json!(["http://app.example.com/cb"])),
                "invalid_redirect_uri",
            ),
            (
                with("redirect_uris", json!(["vscode://x/cb"])),
                "invalid_redirect_uri",
            ),
            (
                with("grant_types", json!(["client_credentials"])),
                "invalid_client_metadata",
            ),
            (
                with("grant_types", json!("authorization_code")),
                "invalid_client_metadata",
            ),
            (
                with("response_types", json!(["token"])),
                "invalid_client_metadata",
            ),
            (
                with("token_endpoint_auth_method", json!("client_secret_jwt")),
                "invalid_client_metadata",
            ),
            (
                with("token_endpoint_auth_method", json!("private_key_jwt")),
                "invalid_client_metadata",
            ),
            (
                with("client_name", json!({"a": 1})),
                "invalid_client_metadata",
            ),
        ] {
            assert_eq!(judged(&metadata).unwrap_err(), code, "{metadata}");
        }
    }

    #[test]
    fn the_operators_lists_hold_for_names_and_redirects() {
        let rules = config::Registration {
            allow_names: vec![config::Pattern::new("Codex*")],
            allow_redirects: vec![config::Pattern::new("http://127.0.0.1:*")],
            ..config::Registration::default()
        };
        let code = |name: &str, uri: &str| {
            let metadata = json!({"client_name": name, "redirect_uris": [uri]});
            judge(&metadata, &rules)
                .map(drop)
                .map_err(|fault| fault.code())
        };
        assert_eq!(code("Codex CLI", "http://127.0.0.1:5/cb"), Ok(()));
        assert_eq!(
            code("Other", "http://127.0.0.1:5/cb"),
            Err("invalid_client_metadata")
        );
        assert_eq!(
            code("Codex", "https://evil.example/cb"),
            Err("invalid_redirect_uri")
        );
    }
}
