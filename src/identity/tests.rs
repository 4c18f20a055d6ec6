//! Tokens and keys together, against key servers in this process.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indexmap::IndexMap;
use serde_json::{Value, json};

use super::*;
use crate::clock::{Clock as _, ManualClock};
use crate::config::{self, Algorithm as Allowed, IdentityProvider};
use crate::ids::ProviderId;
use crate::jose::{Algorithm, SigningKey};
use crate::outgoing::Outgoing;
use crate::outgoing::test_server::{TestServer, answer};

const RESOURCE: &str = "https://gw.example.com/t/acme/mcp";
const ISSUER: &str = "https://idp.example.com";

/// A key server whose keys, headers and health can be changed.
#[derive(Clone)]
struct KeyServer {
    state: Arc<KeyServerState>,
    server: Arc<TestServer>,
}

struct KeyServerState {
    keys: Mutex<Vec<Value>>,
    headers: Mutex<&'static str>,
    down: AtomicBool,
}

impl KeyServer {
    async fn start(keys: &[&SigningKey]) -> Self {
        let state = Arc::new(KeyServerState {
            keys: Mutex::default(),
            headers: Mutex::new("cache-control: max-age=120\r\n"),
            down: AtomicBool::new(false),
        });
        let shared = Arc::clone(&state);
        let server = TestServer::start(move |_| {
            if shared.down.load(Ordering::SeqCst) {
                return answer(500, "", "");
            }
            let body = json!({ "keys": *shared.keys.lock().unwrap() }).to_string();
            answer(200, *shared.headers.lock().unwrap(), &body)
        })
        .await;
        let server = Self {
            state,
            server: Arc::new(server),
        };
        server.publish(keys);
        server
    }

    fn publish(&self, keys: &[&SigningKey]) {
        *self.state.keys.lock().unwrap() = keys.iter().map(|key| key.public_jwk()).collect();
    }

    fn down(&self, down: bool) {
        self.state.down.store(down, Ordering::SeqCst);
    }

    fn fetches(&self) -> usize {
        self.server.requests().len()
    }
}

struct World {
    identity: Arc<Identity>,
    clock: Arc<ManualClock>,
}

fn provider(change: impl FnOnce(&mut IdentityProvider)) -> IdentityProvider {
    let mut provider = IdentityProvider {
        issuer: ISSUER.to_owned(),
        tenants: vec!["acme".into()],
        audiences: Vec::new(),
        algorithms: vec![Allowed::Es256, Allowed::EdDsa, Allowed::Rs256],
        jwks_file: None,
        jwks_url: None,
        login: None,
        id_jag: false,
        claims: config::Claims::default(),
    };
    change(&mut provider);
    provider
}

fn world(providers: Vec<(&str, IdentityProvider)>) -> Result<World, IdentitySetupFault> {
    let mut section = config::Outgoing::default();
    section.allow_networks.push("127.0.0.0/8".parse().unwrap());
    let outgoing = Arc::new(Outgoing::new(&section).unwrap());
    let start = time::OffsetDateTime::from_unix_timestamp(1_800_000_000).unwrap();
    let clock = Arc::new(ManualClock::new(start));
    let providers: IndexMap<ProviderId, IdentityProvider> = providers
        .into_iter()
        .map(|(id, provider)| (ProviderId::from(id), provider))
        .collect();
    let identity = Identity::new(&providers, &outgoing, Arc::<ManualClock>::clone(&clock))?;
    Ok(World {
        identity: Arc::new(identity),
        clock,
    })
}

fn world_of(server: &KeyServer) -> World {
    let url = server.server.url("/jwks");
    world(vec![("corporate", provider(|p| p.jwks_url = Some(url)))]).unwrap()
}

impl World {
    fn claims(&self, changes: &Value) -> crate::jose::Claims {
        let now = self.clock.unix_seconds();
        let mut claims = json!({
            "iss": ISSUER, "sub": "alice", "aud": RESOURCE, "iat": now, "exp": now + 86_400 * 30,
        });
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        claims.as_object().unwrap().clone()
    }

    fn token(&self, key: &SigningKey, changes: &Value) -> String {
        key.sign(&self.claims(changes), "at+jwt").unwrap()
    }

    fn token_with_kid(&self, key: &SigningKey, kid: &str) -> String {
        let header = json!({ "alg": key.algorithm().name(), "kid": kid });
        key.sign_with_header(&header, &self.claims(&json!({})))
            .unwrap()
    }

    async fn verify(&self, token: &str) -> Result<Arc<Principal>, IdentityFault> {
        self.identity.verify(token, RESOURCE, None).await
    }

    fn pass(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }
}

fn key() -> SigningKey {
    SigningKey::generate(Algorithm::Es256).unwrap()
}

fn unavailable() -> IdentityFault {
    IdentityFault::KeysUnavailable {
        provider: "corporate".into(),
    }
}

#[tokio::test]
async fn a_token_is_verified_once_and_remembered_for_its_resource() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    let world = world_of(&server);
    let token = world.token(&key, &json!({}));
    let first = world.verify(&token).await.unwrap();
    let second = world.verify(&token).await.unwrap();
    assert!(Arc::ptr_eq(&first, &second));
    assert_eq!(
        world
            .identity
            .verify(&token, "https://gw.example.com/mcp", None)
            .await
            .unwrap_err(),
        IdentityFault::WrongAudience
    );
    world.identity.forget_all();
    let third = world.verify(&token).await.unwrap();
    assert!(!Arc::ptr_eq(&first, &third));
    assert_eq!(first.key(), third.key());
    assert_eq!(server.fetches(), 1);
}

#[tokio::test]
async fn a_remembered_token_expires() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    let world = world_of(&server);
    let exp = world.clock.unix_seconds() + 60;
    let token = world.token(&key, &json!({ "exp": exp }));
    assert!(world.verify(&token).await.is_ok());
    world.pass(89);
    assert!(world.verify(&token).await.is_ok(), "within the leeway");
    world.pass(1);
    assert_eq!(
        world.verify(&token).await.unwrap_err(),
        IdentityFault::Expired
    );
}

#[tokio::test]
async fn an_issuer_is_one_exact_string() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    let url = server.server.url("/jwks");
    let with_slash = provider(|p| {
        p.issuer = "https://idp2.example.com/".to_owned();
        p.jwks_url = Some(url.clone());
    });
    let without = provider(|p| p.jwks_url = Some(url.clone()));
    let world = world(vec![("one", without), ("two", with_slash)]).unwrap();
    for issuer in ["https://idp.example.com", "https://idp2.example.com/"] {
        let token = world.token(&key, &json!({ "iss": issuer }));
        assert_eq!(
            world.verify(&token).await.unwrap().issuer().as_str(),
            issuer
        );
    }
    let before = server.fetches();
    for issuer in [
        json!("https://idp.example.com/"),
        json!("https://idp2.example.com"),
        json!("HTTPS://idp.example.com"),
        json!("https://other.example.com"),
        json!(""),
        json!(["https://idp.example.com"]),
        json!(null),
    ] {
        let token = world.token(&key, &json!({ "iss": issuer }));
        assert_eq!(
            world.verify(&token).await.unwrap_err(),
            IdentityFault::UnknownIssuer,
            "{issuer}"
        );
    }
    assert_eq!(server.fetches(), before);
}

#[tokio::test]
async fn a_provider_vouches_for_its_own_tenants_alone() {
    let (acme, globex) = (key(), key());
    let (a, g) = (
        KeyServer::start(&[&acme]).await,
        KeyServer::start(&[&globex]).await,
    );
    let world = world(vec![
        (
            "corporate",
            provider(|p| p.jwks_url = Some(a.server.url("/"))),
        ),
        (
            "globex",
            provider(|p| {
                p.issuer = "https://globex.example.com".to_owned();
                p.tenants = vec!["globex".into()];
                p.jwks_url = Some(g.server.url("/"));
            }),
        ),
    ])
    .unwrap();
    let foreign = json!({ "iss": "https://globex.example.com", "tenant": "acme" });
    let fault = world
        .verify(&world.token(&globex, &foreign))
        .await
        .unwrap_err();
    assert!(
        matches!(fault, IdentityFault::TenantNotTrusted { .. }),
        "{fault:?}"
    );
    // A key of one issuer signs nothing for the other.
    let fault = world
        .verify(&world.token(&globex, &json!({})))
        .await
        .unwrap_err();
    assert_eq!(fault, IdentityFault::UnknownKey);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_new_key_is_fetched_once_for_a_hundred_tokens() {
    let (k1, k2) = (key(), key());
    let server = KeyServer::start(&[&k1]).await;
    let world = world_of(&server);
    assert!(world.verify(&world.token(&k1, &json!({}))).await.is_ok());
    server.publish(&[&k1, &k2]);
    let verifications = (0..100).map(|n| {
        let token = world.token(&k2, &json!({ "jti": n.to_string() }));
        let identity = Arc::clone(&world.identity);
        tokio::spawn(async move { identity.verify(&token, RESOURCE, None).await })
    });
    for verified in futures_util::future::join_all(verifications).await {
        assert!(verified.unwrap().is_ok());
    }
    assert_eq!(server.fetches(), 2);
}

#[tokio::test]
async fn random_key_ids_cause_one_fetch_an_interval() {
    let k1 = key();
    let server = KeyServer::start(&[&k1]).await;
    let world = world_of(&server);
    assert!(world.verify(&world.token(&k1, &json!({}))).await.is_ok());
    for n in 0..300 {
        let token = world.token_with_kid(&k1, &format!("random {n}"));
        assert_eq!(
            world.verify(&token).await.unwrap_err(),
            IdentityFault::UnknownKey
        );
    }
    assert_eq!(server.fetches(), 2);
    world.pass(30);
    for n in 0..300 {
        let token = world.token_with_kid(&k1, &format!("more {n}"));
        assert_eq!(
            world.verify(&token).await.unwrap_err(),
            IdentityFault::UnknownKey
        );
    }
    assert_eq!(server.fetches(), 3);
}

#[tokio::test]
async fn a_withdrawn_key_is_trusted_until_its_max_age_and_no_longer() {
    let (k1, k2) = (key(), key());
    let server = KeyServer::start(&[&k1, &k2]).await;
    let world = world_of(&server);
    let remembered = world.token(&k1, &json!({ "jti": "remembered" }));
    let fresh = world.token(&k1, &json!({ "jti": "fresh" }));
    let other = world.token(&k2, &json!({}));
    assert!(world.verify(&remembered).await.is_ok());
    assert!(world.verify(&other).await.is_ok());
    server.publish(&[&k2]);
    world.pass(119);
    assert!(world.verify(&remembered).await.is_ok());
    world.pass(1);
    for token in [&remembered, &fresh] {
        assert_eq!(
            world.verify(token).await.unwrap_err(),
            IdentityFault::UnknownKey
        );
    }
    assert!(world.verify(&other).await.is_ok());
}

#[tokio::test]
async fn the_age_of_keys_is_kept_within_bounds() {
    for (headers, kept) in [
        ("cache-control: no-store\r\n", 60),
        ("cache-control: max-age=5\r\n", 60),
        ("cache-control: max-age=1000000\r\n", 3600),
        ("", 300),
    ] {
        let key = key();
        let server = KeyServer::start(&[&key]).await;
        *server.state.headers.lock().unwrap() = headers;
        let world = world_of(&server);
        let token = world.token(&key, &json!({}));
        for (pass, fetches) in [(0, 1), (kept - 1, 1), (1, 2)] {
            world.pass(pass);
            assert!(world.verify(&token).await.is_ok());
            assert_eq!(server.fetches(), fetches, "{headers} after {pass}");
        }
    }
}

#[tokio::test]
async fn an_issuer_that_is_away_is_believed_for_a_day() {
    let (k1, k2) = (key(), key());
    let server = KeyServer::start(&[&k1]).await;
    let world = world_of(&server);
    let token = world.token(&k1, &json!({}));
    assert!(world.verify(&token).await.is_ok());
    server.down(true);
    world.pass(86_399);
    assert!(world.verify(&token).await.is_ok());
    let fetches = server.fetches();
    assert!(
        world
            .verify(&world.token(&k1, &json!({ "jti": "x" })))
            .await
            .is_ok()
    );
    assert_eq!(server.fetches(), fetches, "the next try waits");
    // Nobody can say whether this key is the issuer's.
    let unknown = world.token(&k2, &json!({}));
    assert_eq!(world.verify(&unknown).await.unwrap_err(), unavailable());
    world.pass(1);
    assert_eq!(world.verify(&token).await.unwrap_err(), unavailable());
    server.down(false);
    world.pass(5);
    assert!(world.verify(&token).await.is_ok());
}

#[tokio::test]
async fn without_keys_a_token_is_neither_right_nor_wrong() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    server.down(true);
    let world = world_of(&server);
    let token = world.token(&key, &json!({}));
    for _ in 0..10 {
        assert_eq!(world.verify(&token).await.unwrap_err(), unavailable());
    }
    assert_eq!(server.fetches(), 1, "failures are not repeated at once");
    assert!(!world.identity.warm().await);
    server.down(false);
    world.pass(5);
    assert!(world.identity.warm().await);
    assert!(world.verify(&token).await.is_ok());
}

#[tokio::test]
async fn a_request_that_goes_away_does_not_end_the_fetch_of_the_others() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    let world = world_of(&server);
    let token = world.token(&key, &json!({}));
    // Polled once: the fetch has started. Then the caller hangs up.
    let given_up = tokio::time::timeout(Duration::ZERO, world.verify(&token)).await;
    assert!(given_up.is_err());
    assert!(world.verify(&token).await.is_ok());
    assert_eq!(server.fetches(), 1);
}

#[tokio::test]
async fn what_the_header_asks_for_is_judged_before_a_key_is_fetched() {
    let key = key();
    let server = KeyServer::start(&[&key]).await;
    let url = server.server.url("/jwks");
    let only_rsa = provider(|p| {
        p.jwks_url = Some(url);
        p.algorithms = vec![Allowed::Rs256];
    });
    let world = world(vec![("corporate", only_rsa)]).unwrap();
    for header in [
        json!({ "alg": "HS256", "kid": key.kid() }),
        json!({ "alg": "none", "kid": key.kid() }),
        json!({ "alg": "ES256", "kid": key.kid() }),
    ] {
        let token = key
            .sign_with_header(&header, &world.claims(&json!({})))
            .unwrap();
        assert_eq!(
            world.verify(&token).await.unwrap_err(),
            IdentityFault::AlgorithmRefused,
            "{header}"
        );
    }
    assert_eq!(
        world.verify("x").await.unwrap_err(),
        IdentityFault::Malformed
    );
    let long = "a".repeat(20_000);
    assert_eq!(
        world.verify(&long).await.unwrap_err(),
        IdentityFault::Malformed
    );
    assert_eq!(server.fetches(), 0);
}

#[tokio::test]
async fn a_key_without_id_can_be_replaced() {
    let (k1, k2) = (key(), key());
    let server = KeyServer::start(&[]).await;
    let publish = |key: &SigningKey| {
        let mut jwk = key.public_jwk();
        jwk.as_object_mut().unwrap().remove("kid");
        *server.state.keys.lock().unwrap() = vec![jwk];
    };
    publish(&k1);
    let world = world_of(&server);
    let token = |key: &SigningKey| {
        key.sign_with_header(&json!({ "alg": "ES256" }), &world.claims(&json!({})))
            .unwrap()
    };
    let (first, second) = (token(&k1), token(&k2));
    assert!(world.verify(&first).await.is_ok());
    publish(&k2);
    assert!(world.verify(&second).await.is_ok());
    assert_eq!(
        world.verify(&first).await.unwrap_err(),
        IdentityFault::BadSignature
    );
}

#[tokio::test]
async fn keys_are_discovered_at_either_place_and_only_for_the_very_issuer() {
    let key = key();
    for (place, path, says, works) in [
        (
            "/realm/.well-known/openid-configuration",
            "/realm",
            "",
            true,
        ),
        (
            "/.well-known/oauth-authorization-server/realm",
            "/realm",
            "",
            true,
        ),
        ("/.well-known/openid-configuration", "/", "", true),
        ("/.well-known/openid-configuration", "", "", true),
        ("/.well-known/openid-configuration", "", "/", false),
        ("/.well-known/nothing", "", "", false),
    ] {
        let jwks = key.public_jwks().to_string();
        let server = TestServer::start(move |request| {
            let asked = request.split(' ').nth(1).unwrap();
            let host = request
                .lines()
                .find_map(|line| line.strip_prefix("host: "))
                .unwrap();
            if asked == place {
                let document = json!({
                    "issuer": format!("http://{host}{path}{says}"),
                    "jwks_uri": format!("http://{host}/keys"),
                });
                return answer(200, "", &document.to_string());
            }
            match asked {
                "/keys" => answer(200, "", &jwks),
                _ => answer(404, "", "{}"),
            }
        })
        .await;
        let issuer = server.url(path);
        let world = world(vec![(
            "corporate",
            provider(|p| p.issuer.clone_from(&issuer)),
        )])
        .unwrap();
        let token = world.token(&key, &json!({ "iss": issuer }));
        let verified = world.verify(&token).await;
        assert_eq!(verified.is_ok(), works, "{place} {issuer}: {verified:?}");
        assert_eq!(server.count("/keys"), usize::from(works));
    }
}

#[tokio::test]
async fn keys_in_a_file_are_read_again_when_it_changes() {
    let (k1, k2) = (key(), key());
    let path = std::env::temp_dir().join(format!("toolgate-jwks-{}", std::process::id()));
    let write = |key: &SigningKey| std::fs::write(&path, key.public_jwks().to_string()).unwrap();
    write(&k1);
    let world = world(vec![(
        "corporate",
        provider(|p| p.jwks_file = Some(path.clone())),
    )])
    .unwrap();
    let (first, second) = (world.token(&k1, &json!({})), world.token(&k2, &json!({})));
    assert!(world.verify(&first).await.is_ok());
    assert_eq!(
        world.verify(&second).await.unwrap_err(),
        IdentityFault::UnknownKey
    );
    write(&k2);
    world.pass(1);
    assert!(world.verify(&second).await.is_ok());
    assert_eq!(
        world.verify(&first).await.unwrap_err(),
        IdentityFault::UnknownKey
    );
    // A file that goes wrong later leaves the keys that were read.
    std::fs::write(&path, "half a fi").unwrap();
    world.pass(1);
    assert!(world.verify(&second).await.is_ok());
    std::fs::remove_file(&path).unwrap();
    world.pass(1);
    assert!(world.verify(&second).await.is_ok());
}

#[test]
fn wrong_providers_are_refused_by_name() {
    let same = world(vec![("one", provider(|_| ())), ("two", provider(|_| ()))]);
    let text = same.err().unwrap().to_string();
    assert!(
        text.contains("identity_providers.two.issuer") && text.contains("`one`"),
        "{text}"
    );
    let missing = provider(|p| p.jwks_file = Some("/nowhere/jwks.json".into()));
    let text = world(vec![("one", missing)]).err().unwrap().to_string();
    assert!(
        text.starts_with("`identity_providers.one.jwks_file`: /nowhere/jwks.json"),
        "{text}"
    );
}
