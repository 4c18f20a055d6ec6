//! Whose tokens are believed (C07, C08, rules §4.7): the resource server's half of
//! sign-in, with real tokens over real HTTP.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;

use super::support::answer::Answer;
use super::support::client::Caller;
use super::support::idp::{ISSUER, Idp, ServedIdp};
use super::support::keys::{Algorithm, Keys, Token, now};
use super::support::{Gateway, Setup, Value, eventually, json};

/// What the caller gets for the plainest request.
async fn asked(caller: &Caller) -> Answer {
    caller.modern().request("tools/list", json!({})).await
}

async fn status(caller: &Caller) -> u16 {
    asked(caller).await.status.as_u16()
}

async fn refused(what: &str, caller: &Caller) {
    let answer = asked(caller).await;
    assert_eq!(answer.status, 401, "{what}: {answer:?}");
    let challenge = answer.header("www-authenticate").unwrap();
    assert!(
        challenge.contains("error=\"invalid_token\""),
        "{what}: {challenge}"
    );
    for part in caller.token().split('.').filter(|part| part.len() > 10) {
        assert!(!format!("{answer:?}").contains(part), "{what}");
    }
}

/// A gateway whose provider serves its keys at a URL, or is discovered.
async fn served(discovered: bool) -> (ServedIdp, Gateway) {
    let idp = Idp::new("").serve().await;
    let gateway = over(&idp, discovered).start().await;
    (idp, gateway)
}

fn over(idp: &ServedIdp, discovered: bool) -> Setup {
    let place = if discovered {
        Value::Null
    } else {
        json!(idp.jwks_url())
    };
    let provider = json!({"jwks_file": null, "jwks_url": place});
    Setup::new()
        .idp(&idp.idp)
        .yaml(&json!({"outgoing": {"allow_networks": ["127.0.0.0/8"]}}).to_string())
        .yaml(&json!({"identity_providers": {"corporate": provider}}).to_string())
}

/// Statuses of many requests at once, sorted, each with how often it came.
async fn at_once(callers: Vec<Caller>) -> Vec<(u16, usize)> {
    let mut statuses: Vec<u16> = futures_util::stream::iter(callers)
        .map(|caller| async move { status(&caller).await })
        .buffer_unordered(50)
        .collect()
        .await;
    statuses.sort_unstable();
    statuses
        .chunk_by(|a, b| a == b)
        .map(|chunk| (chunk[0], chunk.len()))
        .collect()
}

#[tokio::test]
async fn every_algorithm_is_accepted_and_a_wrong_signature_of_each_is_not() {
    let gateway = Gateway::start("").await;
    let other = Keys::generate("other");
    for algorithm in Algorithm::ALL {
        let alice = gateway
            .user("alice@acme")
            .with(|token| token.algorithm(algorithm));
        assert_eq!(status(&alice).await, 200, "{algorithm:?}");
        for (what, bad) in [
            ("a changed bit", alice.clone().with(Token::broken)),
            (
                "another's key under a known id",
                alice.clone().with(|token| token.forged_with(&other)),
            ),
            (
                "another's key",
                alice.clone().with(|token| token.signed_with(&other)),
            ),
        ] {
            refused(&format!("{algorithm:?} {what}"), &bad).await;
        }
    }
    // The key of one algorithm is no key for another.
    let keys = &gateway.idp().keys;
    for (algorithm, kid) in [
        (Algorithm::Es256, keys.id(Algorithm::EdDsa)),
        (Algorithm::EdDsa, keys.id(Algorithm::Rs256)),
        (Algorithm::Rs256, keys.id(Algorithm::Es256)),
    ] {
        let alice = gateway
            .user("alice@acme")
            .with(|token| token.algorithm(algorithm).header("kid", kid));
        refused("a key of another kind", &alice).await;
    }
}

#[tokio::test]
async fn an_algorithm_that_is_not_listed_is_refused() {
    let gateway =
        Gateway::start("identity_providers: { corporate: { algorithms: [ES256] } }").await;
    for (algorithm, right) in [
        (Algorithm::Es256, 200),
        (Algorithm::Rs256, 401),
        (Algorithm::EdDsa, 401),
    ] {
        let alice = gateway
            .user("alice@acme")
            .with(|token| token.algorithm(algorithm));
        assert_eq!(status(&alice).await, right, "{algorithm:?}");
    }
}

#[tokio::test]
async fn a_token_is_for_the_endpoint_that_it_names() {
    // C07
    let partner = Idp::new("https://partner.example.com");
    let folder = super::support::folder::Folder::new();
    let jwks = folder.path().join("partner.json");
    partner.write_jwks(&jwks, &[]);
    let second = json!({"identity_providers": {"partner": {
        "issuer": partner.issuer, "tenants": ["globex"], "jwks_file": jwks,
    }}});
    let gateway = Setup::new().yaml(&second.to_string()).start().await;
    let acme = gateway.audience("/t/acme/mcp");
    let alice = gateway.user("alice@acme").at("/t/acme/mcp");
    let with_aud = |aud: Value| alice.clone().with(|token| token.audience(aud));
    assert_eq!(status(&alice).await, 200, "a");
    let several = json!(["https://x.example", acme]);
    assert_eq!(status(&with_aud(several)).await, 200, "b");
    for (what, aud) in [
        (
            "c: another tenant's",
            json!(gateway.audience("/t/globex/mcp")),
        ),
        ("d: the base", json!(gateway.audience(""))),
        (
            "the endpoint without a tenant",
            json!(gateway.audience("/mcp")),
        ),
        ("e: the client", json!("client-1")),
        ("f: none", Value::Null),
        ("an empty list", json!([])),
        ("no text", json!([[acme], {"a": acme}, 1])),
        ("a slash more", json!(format!("{acme}/"))),
        ("another case", json!(acme.to_uppercase())),
        ("a query more", json!(format!("{acme}?x"))),
        ("a part of it", json!(&acme[..acme.len() - 1])),
    ] {
        refused(what, &with_aud(aud)).await;
    }
    let id_token = |token: Token| token.header("typ", "JWT").claim("nonce", "n");
    refused("g: an ID token", &alice.clone().with(id_token)).await;
    let stranger = alice.clone().with(|_| partner.token("alice@acme", &acme));
    refused("h: an issuer for globex alone", &stranger).await;
    let bob = gateway
        .user("bob@globex")
        .with(|_| partner.token("bob@globex", &gateway.audience("/mcp")));
    assert_eq!(status(&bob).await, 200, "where the issuer is trusted");
    // Tokens for `/mcp` are not for `/t/x/mcp` (rules §4.2), the other way neither.
    let crossed = alice.clone().sent_to("/mcp");
    refused("the endpoint of a tenant", &crossed).await;
    // One issuer's name with another's keys.
    let mixed = alice.with(|token| token.signed_with(&partner.keys));
    refused("another issuer's key", &mixed).await;
    let said = gateway.logs().line_with("is not trusted for").await;
    assert!(
        said.contains("partner") && said.contains("acme"),
        "an operator learns of h: {said}"
    );
}

#[tokio::test]
async fn the_base_is_an_audience_where_the_operator_says_so() {
    // C07 d
    let gateway = Gateway::start(
        r#"identity_providers: { corporate: { audiences: ["api://toolgate", "https://gw.example.com"] } }"#,
    )
    .await;
    for path in ["/mcp", "/t/acme/mcp"] {
        let alice = gateway.user("alice@acme").at(path);
        for (aud, right) in [
            ("api://toolgate", 200),
            ("https://gw.example.com", 200),
            ("https://gw.example.com/", 401),
            ("API://toolgate", 401),
        ] {
            let caller = alice.clone().with(|token| token.audience(aud));
            assert_eq!(status(&caller).await, right, "{path} {aud}");
        }
    }
}

#[tokio::test]
async fn issuers_are_compared_to_the_last_character() {
    // C01
    let slashed = Idp::new("https://idp2.example.com/");
    let folder = super::support::folder::Folder::new();
    let jwks = folder.path().join("second.json");
    slashed.write_jwks(&jwks, &[]);
    let second = json!({"identity_providers": {"second": {
        "issuer": slashed.issuer, "tenants": ["acme"], "jwks_file": jwks,
    }}});
    let gateway = Setup::new().yaml(&second.to_string()).start().await;
    let alice = gateway.user("alice@acme");
    let other = alice
        .clone()
        .with(|_| slashed.token("alice@acme", &gateway.audience("/mcp")));
    for (caller, issuer, right) in [
        (&alice, ISSUER.to_owned(), 200),
        (&alice, format!("{ISSUER}/"), 401),
        (&alice, ISSUER.to_uppercase(), 401),
        (&alice, format!("{ISSUER}:443"), 401),
        (&alice, String::new(), 401),
        (&other, slashed.issuer.clone(), 200),
        (&other, slashed.issuer.trim_end_matches('/').to_owned(), 401),
    ] {
        let caller = caller
            .clone()
            .with(|token| token.claim("iss", issuer.clone()));
        assert_eq!(status(&caller).await, right, "{issuer}");
    }
    let nobody = alice.with(|token| token.claim("iss", Value::Null));
    refused("no issuer", &nobody).await;
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, or one table, read from top to bottom"
)]
async fn a_header_cannot_choose_how_the_token_is_verified() {
    // C08.6, RFC 8725 §3.1
    let attacker = Idp::new("").serve().await;
    let gateway = Setup::new()
        .yaml(r#"outgoing: { allow_networks: ["127.0.0.0/8"] }"#)
        .start()
        .await;
    let keys = Arc::clone(&gateway.idp().keys);
    let alice = gateway.user("alice@acme");
    let with = |change: &dyn Fn(Token) -> Token| alice.clone().with(change);
    let pem = jwk(&keys).to_string().into_bytes();
    for kid in [keys.id(Algorithm::Rs256), keys.id(Algorithm::Es256)] {
        for key in [keys.rsa_public_der(), pem.clone(), Vec::new()] {
            let kid = kid.clone();
            let confused = with(&|token| token.hmac(key.clone()).header("kid", kid.clone()));
            refused("HS256 with what is public", &confused).await;
        }
    }
    for none in ["none", "None", "NONE", "", "nOnE"] {
        refused("none", &with(&|token| token.unsigned().header("alg", none))).await;
    }
    for alg in [
        "HS512", "RS1", "ES256K", "es256", "PS256", "RSA-OAEP", "dir",
    ] {
        refused(alg, &with(&|token| token.header("alg", alg))).await;
    }
    for kid in [
        "../../../../etc/passwd",
        "/dev/null",
        "x' or '1'='1",
        "http://127.0.0.1/keys",
        "",
        "\u{0}",
        &"k".repeat(4000),
    ] {
        refused("kid", &with(&|token| token.header("kid", kid))).await;
    }
    refused(
        "kid of a wrong type",
        &with(&|token| token.header("kid", 1)),
    )
    .await;
    // Where the header says that keys are: ignored, in good tokens and in bad ones.
    for name in ["jku", "x5u"] {
        let place = attacker.jwks_url();
        let forged = |token: Token| {
            token
                .signed_with(&attacker.idp.keys)
                .header(name, place.clone())
        };
        refused(name, &with(&forged)).await;
        let good = with(&|token| token.header(name, place.clone()));
        assert_eq!(status(&good).await, 200, "{name}");
    }
    let own_key = |token: Token| {
        token
            .signed_with(&attacker.idp.keys)
            .header("jwk", jwk(&attacker.idp.keys))
    };
    refused("jwk", &with(&own_key)).await;
    assert_eq!(attacker.key_fetches() + attacker.discoveries(), 0);
    for (name, value) in [
        ("crit", json!(["exp"])),
        ("crit", json!([])),
        ("b64", json!(false)),
    ] {
        refused(name, &with(&|token| token.header(name, value.clone()))).await;
    }
    for typ in ["oauth-id-jag+jwt", "dpop+jwt", "secevent+jwt", "logout+jwt"] {
        refused(typ, &with(&|token| token.header("typ", typ))).await;
    }
    for typ in [
        json!("JWT"),
        json!("application/at+jwt"),
        json!("AT+JWT"),
        Value::Null,
    ] {
        let good = with(&|token| token.header("typ", typ.clone()));
        assert_eq!(status(&good).await, 200, "{typ}");
    }
}

fn jwk(keys: &Keys) -> Value {
    keys.public().swap_remove(0)
}

#[tokio::test]
async fn times_and_claims_that_do_not_fit_are_refused() {
    let gateway = Gateway::start("").await;
    let alice = gateway.user("alice@acme");
    let with = |name: &str, value: Value| alice.clone().with(|token| token.claim(name, value));
    for (name, value) in [
        ("exp", json!(now() - 3600)),
        ("exp", json!(now() - 31)),
        ("exp", Value::Null),
        ("exp", json!("tomorrow")),
        ("nbf", json!(now() + 3600)),
        ("iat", json!(now() + 3600)),
        ("nonce", json!("n")),
        ("at_hash", json!("h")),
        ("c_hash", json!("h")),
        ("sub", Value::Null),
        ("sub", json!("")),
        ("sub", json!(["alice"])),
        ("sub", json!("a\nb")),
        ("sub", json!("x".repeat(600))),
        ("tenant", Value::Null),
        ("tenant", json!("nobody")),
        ("tenant", json!("ACME")),
        ("tenant", json!(["acme", "globex"])),
        ("tenant", json!([])),
        ("tenant", json!({"acme": true})),
        ("jti", json!("a\r\nb")),
    ] {
        refused(&format!("{name}: {value}"), &with(name, value)).await;
    }
    for (name, value) in [
        ("exp", json!(now() - 5)),
        ("nbf", json!(now() + 10)),
        (
            "exp",
            serde_json::from_str(&format!("{}.5", now() + 60)).unwrap(),
        ),
        ("tenant", json!(["acme"])),
        ("sub", json!("x".repeat(500))),
    ] {
        assert_eq!(
            status(&with(name, value.clone())).await,
            200,
            "{name}: {value}"
        );
    }
    for text in ["a.b.c", "a.b", "....", "a", &"x".repeat(20_000)] {
        let caller = gateway.anonymous().bearer(text);
        assert_eq!(status(&caller).await, 401, "{text:.20}");
    }
    // Two opinions on one claim are none.
    let good = alice.token().to_owned();
    let parts: Vec<&str> = good.split('.').collect();
    for twisted in [
        format!("{}.{}.{}=", parts[0], parts[1], parts[2]),
        format!("{}.{}.{}.", parts[0], parts[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}..{}", parts[0], parts[2]),
    ] {
        refused("twisted", &gateway.anonymous().bearer(&twisted)).await;
    }
    assert_eq!(status(&alice).await, 200);
}

#[tokio::test]
async fn a_token_that_expires_is_refused_though_it_was_believed() {
    let gateway = Gateway::start("").await;
    // Believed for the leeway of 30 seconds and not much longer.
    let alice = gateway
        .user("alice@acme")
        .with(|token| token.expires_in(-25));
    assert_eq!(status(&alice).await, 200);
    eventually("it expires", async || {
        (status(&alice).await == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_key_set_may_hold_keys_that_are_not_understood() {
    // C08.5, and a token without a key id.
    let gateway = Gateway::start("").await;
    let file = gateway.folder().path().join("jwks.json");
    let other = Keys::generate("other");
    let mut odd = other.public();
    for key in &mut odd {
        key["use"] = json!("enc");
    }
    odd.push(json!({"kty": "quantum", "kid": "q", "x": "AAAA"}));
    odd.push(json!({"kty": "oct", "kid": "symmetric", "k": "c2VjcmV0"}));
    odd.push(json!({"kty": "RSA", "kid": "weak", "n": "AQAB", "e": "AQAB"}));
    odd.push(json!("no key at all"));
    odd.push(json!({"kid": "none"}));
    gateway.idp().write_jwks(&file, &odd);
    let alice = gateway.user("alice@acme");
    let new = alice.clone().with(|token| token.client("client-2"));
    gateway.logs().line_with("signing keys are new").await;
    eventually("the file is read", async || {
        (status(&new).await == 200).then_some(())
    })
    .await;
    for algorithm in Algorithm::ALL {
        let unnamed = |token: Token| token.algorithm(algorithm).header("kid", Value::Null);
        assert_eq!(status(&alice.clone().with(unnamed)).await, 200);
        let encrypting = |token: Token| token.algorithm(algorithm).signed_with(&other);
        refused("a key for encryption", &alice.clone().with(encrypting)).await;
    }
    let symmetric = |token: Token| token.hmac(b"secret".to_vec()).header("kid", "symmetric");
    refused("a symmetric key", &alice.clone().with(symmetric)).await;
    // With two keys of the kind nobody says which.
    gateway.idp().write_jwks(&file, &other.public());
    let unnamed = alice.with(|token| token.header("kid", Value::Null).client("client-3"));
    eventually("two keys of a kind", async || {
        (status(&unnamed).await == 401).then_some(())
    })
    .await;
}

#[tokio::test]
async fn keys_in_a_file_are_read_again_when_it_changes() {
    let gateway = Gateway::start("").await;
    let file = gateway.folder().path().join("jwks.json");
    let alice = gateway.user("alice@acme");
    let new_keys = Keys::generate("new");
    let newer = alice.clone().with(|token| token.signed_with(&new_keys));
    assert_eq!((status(&alice).await, status(&newer).await), (200, 401));
    // Both, as during a rotation; then the new one alone.
    gateway.idp().write_jwks(&file, &new_keys.public());
    eventually("the new key", async || {
        (status(&newer).await == 200).then_some(())
    })
    .await;
    assert_eq!(status(&alice).await, 200);
    let rotated = Idp {
        issuer: ISSUER.to_owned(),
        keys: Arc::clone(&new_keys),
    };
    rotated.write_jwks(&file, &[]);
    eventually("the old key is withdrawn", async || {
        (status(&alice).await == 401).then_some(())
    })
    .await;
    // A file that is broken for a moment costs nobody anything.
    super::support::config::write(&file, "{ half");
    eventually("the broken file is seen", async || {
        assert_eq!(status(&newer).await, 200);
        gateway
            .logs()
            .contains("keys could not be read")
            .then_some(())
    })
    .await;
    std::fs::remove_file(&file).unwrap();
    tokio::time::sleep(Duration::from_millis(1100)).await;
    assert_eq!(status(&newer).await, 200);
    assert_eq!(status(&newer).await, 200);
}

#[tokio::test]
async fn a_rotation_costs_one_fetch_however_many_come_at_once() {
    // C08.1, C08.3
    for discovered in [false, true] {
        let (idp, gateway) = served(discovered).await;
        let alice = gateway.user("alice@acme");
        assert_eq!(status(&alice).await, 200);
        assert_eq!(idp.key_fetches(), 1);
        assert_eq!(idp.discoveries() > 0, discovered);
        let new_keys = Keys::generate("new");
        idp.publish(&[&new_keys]);
        let crowd = (0..100).map(|nth| {
            alice.clone().with(|token| {
                token
                    .signed_with(&new_keys)
                    .claim("sub", format!("user-{nth}"))
            })
        });
        assert_eq!(at_once(crowd.collect()).await, [(200, 100)]);
        assert_eq!(idp.key_fetches(), 2);
        // The old key is gone from the set: what it signed is refused from now on,
        // though it was believed a moment ago.
        refused("a withdrawn key", &alice).await;
        assert_eq!(idp.key_fetches(), 2);
    }
}

#[tokio::test]
async fn random_key_ids_do_not_hammer_the_provider() {
    // C08.2
    let (idp, gateway) = served(false).await;
    let alice = gateway.user("alice@acme");
    assert_eq!(status(&alice).await, 200);
    let crowd = (0..1000).map(|nth| {
        alice
            .clone()
            .with(|token| token.header("kid", format!("random-{nth}")))
    });
    assert_eq!(at_once(crowd.collect()).await, [(401, 1000)]);
    assert!(idp.key_fetches() <= 2, "{}", idp.key_fetches());
    assert_eq!(status(&alice).await, 200);
}

#[tokio::test]
async fn known_keys_outlive_the_provider_and_unknown_ones_cannot_be_judged() {
    // C08.4
    let (idp, mut gateway) = served(true).await;
    let alice = gateway.user("alice@acme");
    assert_eq!(status(&alice).await, 200);
    idp.set_down(true);
    let new_keys = Keys::generate("new");
    let unknown = alice.clone().with(|token| token.signed_with(&new_keys));
    for _ in 0..3 {
        let answer = asked(&unknown).await;
        assert_eq!(answer.status, 503, "{answer:?}");
        assert_eq!(answer.code(), 1503);
        assert!(answer.header("retry-after").is_some());
        assert_eq!(answer.header("www-authenticate"), None);
    }
    let bob = gateway.user("bob@globex");
    assert_eq!((status(&alice).await, status(&bob).await), (200, 200));
    // What needs no key to be judged is judged.
    refused("a wrong signature", &alice.clone().with(Token::broken)).await;
    // A new configuration does not forget the keys that cannot be fetched now.
    gateway.reload(r#"identity_providers: { corporate: { audiences: ["api://new"] } }"#);
    let renamed = alice.clone().with(|token| token.audience("api://new"));
    eventually("the new configuration", async || {
        (status(&renamed).await == 200).then_some(())
    })
    .await;
    assert_eq!(status(&alice).await, 200);
}

#[tokio::test]
async fn a_provider_that_is_away_at_the_start_is_waited_for() {
    let idp = Idp::new("").serve().await;
    idp.set_down(true);
    let gateway = over(&idp, false).start().await;
    let alice = gateway.user("alice@acme");
    let answer = asked(&alice).await;
    assert_eq!((answer.status.as_u16(), answer.code()), (503, 1503));
    idp.publish(&[&idp.idp.keys]);
    idp.set_down(false);
    eventually("it is back", async || {
        (status(&alice).await == 200).then_some(())
    })
    .await;
}

#[tokio::test]
async fn what_was_believed_is_judged_again_under_a_new_configuration() {
    let mut gateway = Gateway::start("").await;
    let alice = gateway.user("alice@acme");
    let bob = gateway.user("bob@globex");
    assert_eq!((status(&alice).await, status(&bob).await), (200, 200));
    for (what, fragment) in [
        (
            "the provider speaks for acme no longer",
            "identity_providers: { corporate: { tenants: [globex] } }",
        ),
        (
            "the algorithm is out",
            "identity_providers: { corporate: { tenants: [acme, globex], algorithms: [RS256] } }",
        ),
    ] {
        gateway.reload(fragment);
        eventually(what, async || (status(&alice).await == 401).then_some(())).await;
        gateway.reload(
            "identity_providers: { corporate: { tenants: [acme, globex], algorithms: [ES256] } }",
        );
        eventually("it is back", async || {
            (status(&alice).await == 200).then_some(())
        })
        .await;
    }
    gateway.reload(
        "{ identity_providers: { corporate: { tenants: [globex] } }, tenants: { acme: null } }",
    );
    eventually("the tenant is gone", async || {
        (status(&alice).await == 401).then_some(())
    })
    .await;
    assert_eq!(status(&bob).await, 200);
}

#[tokio::test]
async fn claims_are_read_where_the_operator_says_they_are() {
    let gateway = Gateway::start(
        r#"
        identity_providers:
          corporate: { claims: { tenant: "org.id", roles: "https://idp.example.com/roles", client: azp } }
        "#,
    )
    .await;
    let alice = gateway.user("alice@acme").with(|token| {
        token
            .claim("tenant", "nobody")
            .claim("org", json!({"id": "acme"}))
            .claim("azp", "portal")
    });
    assert_eq!(status(&alice).await, 200);
    let foreign = alice
        .clone()
        .with(|token| token.claim("org", json!({"id": "initech"})));
    refused("a tenant that nobody configured", &foreign).await;
    let silent = alice.with(|token| token.claim("org", Value::Null));
    refused("a token that does not say", &silent).await;
}

#[tokio::test]
async fn the_only_tenant_of_a_provider_need_not_be_claimed() {
    let gateway = Gateway::start("identity_providers: { corporate: { tenants: [acme] } }").await;
    let silent = gateway
        .user("alice@acme")
        .with(|token| token.claim("tenant", Value::Null));
    assert_eq!(status(&silent).await, 200);
    refused("another tenant", &gateway.user("bob@globex")).await;
}
