//! How a client makes itself known: given by hand, or registered as desktop
//! clients do it (RFC 7591).

use std::path::Path;

use serde_json::{Value, json};

use super::loopback::Listener;
use super::report::Report;
use super::web::Web;
use super::{Known, Options};
use crate::jose::SigningKey;
use crate::secret::Secret;

const STEP: &str = "registration";

/// A client of the authorization server.
#[derive(Debug)]
pub(super) struct Client {
    pub(super) id: String,
    pub(super) secret: Option<Secret<String>>,
    /// What it signs assertions of its own with.
    pub(super) key: Option<SigningKey>,
    /// How it proves itself at the token endpoint.
    pub(super) method: String,
    pub(super) redirect_uri: String,
}

impl Client {
    /// One that is registered already.
    pub(super) fn given(
        id: String,
        secret: Option<Secret<String>>,
        key: Option<SigningKey>,
        known: &Known,
    ) -> Self {
        let method = match &key {
            Some(_) => "private_key_jwt".to_owned(),
            None => method(known, secret.is_some()),
        };
        Self {
            id,
            secret,
            key,
            method,
            redirect_uri: String::new(),
        }
    }
}

/// The secret that was given, or why its file is none.
pub(super) fn secret_of(options: &Options) -> Result<Option<Secret<String>>, String> {
    options.client_secret_file.as_deref().map(read).transpose()
}

/// The key that was given, or why its file holds none.
pub(super) fn key_of(options: &Options) -> Result<Option<SigningKey>, String> {
    let key = |file: &Path| {
        SigningKey::from_pem(read(file)?.expose())
            .map_err(|why| format!("{} holds no key: {why}", file.display()))
    };
    options
        .machine
        .client_key_file
        .as_deref()
        .map(key)
        .transpose()
}

/// What a file says, without the line's end.
pub(super) fn read(file: &Path) -> Result<Secret<String>, String> {
    std::fs::read_to_string(file)
        .map(|text| Secret::new(text.trim().to_owned()))
        .map_err(|why| format!("{} cannot be read: {why}", file.display()))
}

pub(super) async fn client(
    web: &Web,
    options: &Options,
    known: &Known,
    listener: &Listener,
    report: &mut Report,
) -> Option<Client> {
    let redirect_uri = listener.uri.clone();
    if let Some(id) = &options.client_id {
        let given = secret_of(options).and_then(|secret| Ok((secret, key_of(options)?)));
        let (secret, key) = given.map_err(|why| report.fail(STEP, why)).ok()?;
        report.note(STEP, format!("as the client {id}"));
        return Some(Client {
            redirect_uri,
            ..Client::given(id.clone(), secret, key, known)
        });
    }
    let Some(endpoint) = known
        .server
        .get("registration_endpoint")
        .and_then(Value::as_str)
    else {
        report.note(
            STEP,
            "there is no registration endpoint; go on with --client-id",
        );
        return None;
    };
    register(web, endpoint, known, redirect_uri, report).await
}

/// As Codex and Claude Code register.
#[expect(clippy::too_many_lines, reason = "one remark after another")]
async fn register(
    web: &Web,
    endpoint: &str,
    known: &Known,
    redirect_uri: String,
    report: &mut Report,
) -> Option<Client> {
    let mut body = json!({
        "client_name": "Toolgate doctor",
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    if let (Some(scopes), Some(body)) = (&known.scopes, body.as_object_mut()) {
        body.insert("scope".to_owned(), json!(scopes));
    }
    let headers = [
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    let page = match web.post(endpoint, &headers, body.to_string()).await {
        Ok(page) => page,
        Err(why) => {
            report.fail(STEP, format!("{endpoint} is not answered: {why}"));
            return None;
        }
    };
    if page.status != 201 && page.status != 200 {
        report.fail(
            STEP,
            format!("a client like Codex is refused: {}", page.refusal()),
        );
        return None;
    }
    if page.status == 200 {
        report.warn(
            STEP,
            "200 in the place of 201 (RFC 7591 §3.2.1): strict clients take it for a failure",
        );
    }
    let document = page.object()?;
    let text = |key: &str| document.get(key).and_then(Value::as_str).map(str::to_owned);
    let Some(id) = text("client_id") else {
        report.fail(STEP, "the answer has no `client_id` (RFC 7591 §3.2.1)");
        return None;
    };
    let secret = text("client_secret");
    if secret.is_some() && !document.contains_key("client_secret_expires_at") {
        report.warn(STEP, "`client_secret_expires_at` is missing beside a secret (RFC 7591 §3.2.1): strict clients refuse the answer");
    }
    let kept = super::documents::strings(document.get("redirect_uris")).contains(&redirect_uri);
    report.prefer(
        STEP,
        kept,
        "registered with a loopback redirect, as desktop clients do",
        "the answer does not repeat `redirect_uris` (RFC 7591 §3.2.1)",
    );
    let method =
        text("token_endpoint_auth_method").unwrap_or_else(|| method(known, secret.is_some()));
    Some(Client {
        id,
        secret: secret.map(Secret::new),
        key: None,
        method,
        redirect_uri,
    })
}

/// The simplest way that both sides have.
fn method(known: &Known, has_secret: bool) -> String {
    let offered =
        super::documents::strings(known.server.get("token_endpoint_auth_methods_supported"));
    let wanted: &[&str] = if has_secret {
        &["client_secret_basic", "client_secret_post"]
    } else {
        &["none"]
    };
    let found = wanted
        .iter()
        .find(|each| offered.iter().any(|method| method == *each));
    let otherwise = wanted.first().copied().unwrap_or("none");
    (*found.unwrap_or(&otherwise)).to_owned()
}
