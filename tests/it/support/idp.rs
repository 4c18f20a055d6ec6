//! An identity provider: its keys in a file, or served with everything that can
//! go wrong there.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::keys::{Keys, Token};
use super::{Value, json};

/// The issuer whose tokens the servers under test believe.
pub(crate) const ISSUER: &str = "https://idp.example.com";

/// An identity provider.
#[derive(Clone, Debug)]
pub(crate) struct Idp {
    /// Its `iss`.
    pub(crate) issuer: String,
    /// What it signs with.
    pub(crate) keys: Arc<Keys>,
}

/// An identity provider on the network.
#[derive(Debug)]
pub(crate) struct ServedIdp {
    /// Who it is.
    pub(crate) idp: Idp,
    state: Arc<Served>,
    task: JoinHandle<()>,
}

#[derive(Debug)]
struct Served {
    issuer: String,
    keys: Mutex<Vec<Value>>,
    down: Mutex<bool>,
    key_fetches: AtomicU32,
    discoveries: AtomicU32,
}

impl Idp {
    /// With fresh keys.
    pub(crate) fn new(issuer: &str) -> Self {
        Self {
            issuer: issuer.to_owned(),
            keys: Keys::generate("key"),
        }
    }

    /// The one that tests share: making keys takes a while.
    pub(crate) fn shared() -> Self {
        static KEYS: std::sync::OnceLock<Arc<Keys>> = std::sync::OnceLock::new();
        Self {
            issuer: ISSUER.to_owned(),
            keys: Arc::clone(KEYS.get_or_init(|| Keys::generate("shared"))),
        }
    }

    /// A good token for `name@tenant`.
    pub(crate) fn token(&self, who: &str, audience: &str) -> Token {
        let (name, tenant) = who.split_once('@').expect("a user is written name@tenant");
        Token::new(&self.keys, &self.issuer, audience, name, tenant)
    }

    /// Writes its public keys, beside `more`, to a file.
    pub(crate) fn write_jwks(&self, path: &Path, more: &[Value]) {
        let mut keys = self.keys.public();
        keys.extend_from_slice(more);
        super::config::write(path, &json!({ "keys": keys }).to_string());
    }

    /// Serves it on loopback: discovery and keys. Its issuer becomes its URL.
    pub(crate) async fn serve(mut self) -> ServedIdp {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        self.issuer = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::new(Served {
            issuer: self.issuer.clone(),
            keys: Mutex::new(self.keys.public()),
            down: Mutex::new(false),
            key_fetches: AtomicU32::new(0),
            discoveries: AtomicU32::new(0),
        });
        let routes = Router::new()
            .route("/.well-known/openid-configuration", get(discovery))
            .route("/.well-known/oauth-authorization-server", get(discovery))
            .route("/jwks", get(jwks))
            .with_state(Arc::clone(&state));
        let task = tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
        ServedIdp {
            idp: self,
            state,
            task,
        }
    }
}

impl ServedIdp {
    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.idp
            .issuer
            .trim_start_matches("http://")
            .parse()
            .unwrap()
    }

    /// Where its keys are.
    pub(crate) fn jwks_url(&self) -> String {
        format!("{}/jwks", self.idp.issuer)
    }

    /// Publishes these keys from now on.
    pub(crate) fn publish(&self, keys: &[&Keys]) {
        *self.state.keys.lock().unwrap() = keys.iter().flat_map(|keys| keys.public()).collect();
    }

    /// Answers 503 from now on, or no longer.
    pub(crate) fn set_down(&self, down: bool) {
        *self.state.down.lock().unwrap() = down;
    }

    /// How often the keys were asked for.
    pub(crate) fn key_fetches(&self) -> u32 {
        self.state.key_fetches.load(Ordering::SeqCst)
    }

    /// How often the metadata was asked for.
    pub(crate) fn discoveries(&self) -> u32 {
        self.state.discoveries.load(Ordering::SeqCst)
    }
}

impl Drop for ServedIdp {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Served {
    fn answer(&self, body: &Value) -> Response {
        if *self.down.lock().unwrap() {
            return StatusCode::SERVICE_UNAVAILABLE.into_response();
        }
        (
            [(header::CONTENT_TYPE, "application/json")],
            body.to_string(),
        )
            .into_response()
    }
}

async fn discovery(State(state): State<Arc<Served>>) -> Response {
    state.discoveries.fetch_add(1, Ordering::SeqCst);
    let issuer = &state.issuer;
    state.answer(&json!({"issuer": issuer, "jwks_uri": format!("{issuer}/jwks")}))
}

async fn jwks(State(state): State<Arc<Served>>) -> Response {
    state.key_fetches.fetch_add(1, Ordering::SeqCst);
    let keys = state.keys.lock().unwrap().clone();
    state.answer(&json!({ "keys": keys }))
}
