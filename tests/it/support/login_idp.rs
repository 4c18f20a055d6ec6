//! An identity provider that people sign in through, with everything that can go
//! wrong there. Whoever comes is signed in at once as the person that it is told.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::keys::{Keys, Token, now};
use super::{Value, json};

/// Our client id there.
pub(crate) const CLIENT: &str = "toolgate-at-idp";
/// The secret that goes with it.
pub(crate) const SECRET: &str = "secret/at:idp";

/// Parameters that a strict provider knows (`OpenID` Connect Core §3.1.2.1, RFC 7636).
const KNOWN: [&str; 9] = [
    "response_type",
    "client_id",
    "redirect_uri",
    "scope",
    "state",
    "nonce",
    "code_challenge",
    "code_challenge_method",
    "prompt",
];

/// What it does.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Claims of the ID token beside the usual; `null` removes one.
    pub(crate) claims: Value,
    /// The header's `alg` is `none`, or the signature is another key's.
    pub(crate) forged: bool,
    /// Parameters of the way back beside `code` and `state`, or over them.
    pub(crate) back: Vec<(&'static str, String)>,
    /// Answers the browser with this error.
    pub(crate) error: Option<&'static str>,
    /// What userinfo says.
    pub(crate) userinfo: Value,
    /// Whether it gives refresh tokens.
    pub(crate) gives_refresh_tokens: bool,
    /// What it answers a refresh with instead of tokens.
    pub(crate) refusal: Option<(u16, &'static str)>,
    /// Whether its metadata says that it names itself in each answer.
    pub(crate) advertises_iss: bool,
}

/// It, on the network.
#[derive(Debug)]
pub(crate) struct LoginIdp {
    state: Arc<Served>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Served {
    issuer: String,
    keys: Arc<Keys>,
    other_keys: Arc<Keys>,
    script: Mutex<Script>,
    /// Codes and refresh tokens, with nonce and challenge.
    codes: Mutex<BTreeMap<String, (String, String)>>,
    refresh_tokens: Mutex<Vec<String>>,
    asked: Mutex<Vec<BTreeMap<String, String>>>,
    exchanged: Mutex<Vec<BTreeMap<String, String>>>,
}

impl LoginIdp {
    /// Serves on loopback; alice of acme comes with the role `support`.
    pub(crate) async fn serve() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Served {
            issuer,
            keys: Keys::generate("idp"),
            other_keys: Keys::generate("idp"),
            script: Mutex::new(Script {
                claims: json!({"sub": "alice-at-idp", "tenant": "acme", "roles": ["support"],
                    "name": "Alice", "email": "alice@acme.test"}),
                forged: false,
                back: Vec::new(),
                error: None,
                userinfo: json!({}),
                gives_refresh_tokens: true,
                refusal: None,
                advertises_iss: false,
            }),
            codes: Mutex::default(),
            refresh_tokens: Mutex::default(),
            asked: Mutex::default(),
            exchanged: Mutex::default(),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/jwks", get(jwks))
            .route("/authorize", get(authorize))
            .route("/token", post(token))
            .route("/userinfo", get(userinfo))
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        Self { state, task }
    }

    /// Its issuer.
    pub(crate) fn issuer(&self) -> &str {
        &self.state.issuer
    }

    /// Changes what it does from now on.
    pub(crate) fn script(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.state.script.lock().unwrap());
    }

    /// The requests that browsers brought.
    pub(crate) fn asked(&self) -> Vec<BTreeMap<String, String>> {
        self.state.asked.lock().unwrap().clone()
    }

    /// The requests at its token endpoint.
    pub(crate) fn exchanged(&self) -> Vec<BTreeMap<String, String>> {
        self.state.exchanged.lock().unwrap().clone()
    }

    /// Its entry in the configuration, for these tenants.
    pub(crate) fn config(&self, secret_file: &str, tenants: &[&str]) -> Value {
        json!({
            "issuer": self.issuer(), "tenants": tenants,
            "login": { "client_id": CLIENT, "client_secret_file": secret_file },
        })
    }
}

impl Drop for LoginIdp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    fn script(&self) -> Script {
        self.script.lock().unwrap().clone()
    }

    fn id_token(&self, nonce: Option<&str>) -> String {
        let script = self.script();
        let mut token = Token::new(&self.keys, &self.issuer, CLIENT, "", "")
            .header("typ", "JWT")
            .claim("client_id", Value::Null)
            .claim("scope", Value::Null)
            .claim("nbf", Value::Null)
            .claim("exp", now() + 300);
        if let Some(nonce) = nonce {
            token = token.claim("nonce", nonce);
        }
        for (name, value) in script.claims.as_object().unwrap() {
            token = token.claim(name, value.clone());
        }
        if script.forged {
            token = token.forged_with(&self.other_keys);
        }
        token.sign()
    }

    fn tokens(&self, nonce: Option<&str>) -> Response {
        let mut answer = json!({
            "access_token": "access-token-of-the-idp", "token_type": "Bearer", "expires_in": 300,
            "id_token": self.id_token(nonce),
        });
        if self.script().gives_refresh_tokens {
            let mut all = self.refresh_tokens.lock().unwrap();
            let next = format!("refresh-token-of-the-idp-{}", all.len());
            all.push(next);
            answer["refresh_token"] = json!(all.last());
        }
        body(200, &answer)
    }
}

fn body(status: u16, value: &Value) -> Response {
    let status = StatusCode::from_u16(status).unwrap();
    let kind = [(header::CONTENT_TYPE, "application/json")];
    (status, kind, value.to_string()).into_response()
}

fn pairs(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

async fn discovery(State(state): State<Arc<Served>>) -> Response {
    let at = |path: &str| format!("{}{path}", state.issuer);
    body(
        200,
        &json!({
            "issuer": state.issuer, "jwks_uri": at("/jwks"),
            "authorization_endpoint": at("/authorize"), "token_endpoint": at("/token"),
            "userinfo_endpoint": at("/userinfo"),
            "authorization_response_iss_parameter_supported": state.script().advertises_iss,
        }),
    )
}

async fn jwks(State(state): State<Arc<Served>>) -> Response {
    body(200, &json!({ "keys": state.keys.public() }))
}

async fn authorize(State(state): State<Arc<Served>>, RawQuery(query): RawQuery) -> Response {
    let asked = pairs(&query.unwrap_or_default());
    state.asked.lock().unwrap().push(asked.clone());
    if let Some(unknown) = asked.keys().find(|name| !KNOWN.contains(&name.as_str())) {
        return body(
            400,
            &json!({"error": "invalid_request", "unknown": unknown}),
        );
    }
    let script = state.script();
    let mut back: Vec<(String, String)> = vec![("state".to_owned(), asked["state"].clone())];
    if let Some(error) = script.error {
        back.push(("error".to_owned(), error.to_owned()));
        back.push((
            "error_description".to_owned(),
            "<script>alert(1)</script>".to_owned(),
        ));
    } else {
        let code = format!("code-{}", asked["nonce"]);
        let bound = (asked["nonce"].clone(), asked["code_challenge"].clone());
        state.codes.lock().unwrap().insert(code.clone(), bound);
        back.push(("code".to_owned(), code));
    }
    for (name, value) in script.back {
        back.retain(|(known, _)| known != name);
        back.push((name.to_owned(), value));
    }
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.extend_pairs(back);
    let to = format!("{}?{}", asked["redirect_uri"], query.finish());
    (StatusCode::FOUND, [(header::LOCATION, to)]).into_response()
}

async fn token(State(state): State<Arc<Served>>, headers: HeaderMap, text: String) -> Response {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let fields = pairs(&text);
    state.exchanged.lock().unwrap().push(fields.clone());
    let encode =
        |text: &str| -> String { form_urlencoded::byte_serialize(text.as_bytes()).collect() };
    let expected = STANDARD.encode(format!("{}:{}", encode(CLIENT), encode(SECRET)));
    let given = headers.get("authorization").map(|v| v.to_str().unwrap());
    if given != Some(format!("Basic {expected}").as_str()) {
        return body(401, &json!({"error": "invalid_client"}));
    }
    if fields["grant_type"] == "refresh_token" {
        if let Some((status, error)) = state.script().refusal {
            return body(status, &json!({ "error": error }));
        }
        let known = state.refresh_tokens.lock().unwrap().last().cloned();
        if known.as_ref() != fields.get("refresh_token") {
            return body(400, &json!({"error": "invalid_grant"}));
        }
        return state.tokens(None);
    }
    let Some((nonce, challenge)) = state.codes.lock().unwrap().remove(&fields["code"]) else {
        return body(400, &json!({"error": "invalid_grant"}));
    };
    let digest = aws_lc_rs::digest::digest(
        &aws_lc_rs::digest::SHA256,
        fields["code_verifier"].as_bytes(),
    );
    if URL_SAFE_NO_PAD.encode(digest) != challenge {
        return body(400, &json!({"error": "invalid_grant"}));
    }
    state.tokens(Some(&nonce))
}

async fn userinfo(State(state): State<Arc<Served>>, headers: HeaderMap) -> Response {
    let bearer = headers.get("authorization").map(|v| v.to_str().unwrap());
    assert_eq!(bearer, Some("Bearer access-token-of-the-idp"));
    body(200, &state.script().userinfo)
}
