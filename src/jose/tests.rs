//! Every way a token or a key set can be wrong.

use serde_json::json;

use super::*;

const ALL: [Algorithm; 3] = [Algorithm::Rs256, Algorithm::Es256, Algorithm::EdDsa];

fn claims() -> Claims {
    let Value::Object(claims) = json!({ "iss": "https://idp.example.com", "sub": "alice" }) else {
        unreachable!()
    };
    claims
}

fn key(algorithm: Algorithm) -> SigningKey {
    SigningKey::generate(algorithm).unwrap()
}

fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(&json!({ "keys": keys }).to_string()).unwrap()
}

fn part(text: &str) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
}

#[test]
fn a_token_of_each_algorithm_is_verified_and_no_other_algorithm_is_taken_for_it() {
    for algorithm in ALL {
        let key = key(algorithm);
        let keys = KeySet::parse(&key.public_jwks().to_string()).unwrap();
        let token = key.sign(&claims(), "at+jwt").unwrap();
        assert_eq!(verify(&token, &keys, &ALL).unwrap(), claims());
        assert_eq!(
            header(&token).unwrap(),
            TokenHeader {
                alg: algorithm,
                kid: Some(key.kid().to_owned()),
                typ: Some("at+jwt".to_owned()),
            }
        );
        let others: Vec<_> = ALL.into_iter().filter(|a| *a != algorithm).collect();
        assert_eq!(
            verify(&token, &keys, &others),
            Err(JoseFault::AlgorithmRefused)
        );
        // The header names another algorithm than the key's: no key fits.
        for other in others {
            let header = json!({ "alg": other.name(), "kid": key.kid() });
            let token = key.sign_with_header(&header, &claims()).unwrap();
            assert_eq!(verify(&token, &keys, &ALL), Err(JoseFault::UnknownKey));
        }
    }
}

#[test]
fn a_header_that_asks_for_what_is_not_accepted_is_refused() {
    let key = key(Algorithm::Es256);
    let keys = KeySet::parse(&key.public_jwks().to_string()).unwrap();
    let table = [
        (json!({ "alg": "none" }), JoseFault::AlgorithmRefused),
        (
            json!({ "alg": "HS256", "kid": key.kid() }),
            JoseFault::AlgorithmRefused,
        ),
        (json!({ "alg": "es256" }), JoseFault::AlgorithmRefused),
        (json!({ "alg": "RS512" }), JoseFault::AlgorithmRefused),
        (json!({ "alg": "PS256" }), JoseFault::AlgorithmRefused),
        (json!({ "kid": key.kid() }), JoseFault::Malformed),
        (json!({ "alg": 7 }), JoseFault::Malformed),
        (json!({ "alg": "ES256", "kid": 7 }), JoseFault::Malformed),
        (json!({ "alg": "ES256", "typ": null }), JoseFault::Malformed),
        (
            json!({ "alg": "ES256", "crit": ["exp"], "exp": 1 }),
            JoseFault::Critical,
        ),
        (json!({ "alg": "ES256", "crit": [] }), JoseFault::Critical),
        (json!({ "alg": "ES256", "b64": false }), JoseFault::Critical),
        (
            json!({ "alg": "ES256", "kid": "other" }),
            JoseFault::UnknownKey,
        ),
        // A key in the header is not looked at: the one that signed is not in the set.
        (
            json!({ "alg": "ES256", "kid": "x", "jwk": key.public_jwk(), "jku": "https://x" }),
            JoseFault::UnknownKey,
        ),
    ];
    for (header, fault) in table {
        let token = key.sign_with_header(&header, &claims()).unwrap();
        assert_eq!(verify(&token, &keys, &ALL), Err(fault), "{header}");
    }
}

#[test]
fn a_token_that_is_not_one_is_malformed() {
    let key = key(Algorithm::EdDsa);
    let keys = KeySet::parse(&key.public_jwks().to_string()).unwrap();
    let good = key.sign(&claims(), "JWT").unwrap();
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (head, body) = signed.split_once('.').unwrap();
    let table = [
        String::new(),
        "..".to_owned(),
        signed.to_owned(),
        format!("{good}.{signature}"),
        format!("{good}="),
        format!("{head}.{body}.{signature}\n"),
        format!("{head} .{body}.{signature}"),
        format!("{}.{body}.{signature}", part("[]")),
        format!("{head}.{}.{signature}", part("\"text\"")),
        format!("{head}.{}.{signature}", part(r#"{"iss":"a","iss":"b"}"#)),
        format!(
            "{}.{body}.{signature}",
            part(r#"{"alg":"EdDSA","alg":"EdDSA"}"#)
        ),
        format!("{head}.{}.{signature}", part("{} {}")),
    ];
    for token in table {
        assert_eq!(
            verify(&token, &keys, &ALL),
            Err(JoseFault::Malformed),
            "{token}"
        );
    }
    assert_eq!(
        verify(&format!("{head}.{body}."), &keys, &ALL),
        Err(JoseFault::BadSignature)
    );
    let long = format!("{head}.{}.{signature}", "a".repeat(MAX_TOKEN));
    assert_eq!(verify(&long, &keys, &ALL), Err(JoseFault::TooLong));
}

#[test]
fn a_changed_token_has_a_bad_signature() {
    for algorithm in ALL {
        let key = key(algorithm);
        let keys = KeySet::parse(&key.public_jwks().to_string()).unwrap();
        let token = key.sign(&claims(), "JWT").unwrap();
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let (head, _) = signed.split_once('.').unwrap();
        let forged = format!("{head}.{}.{signature}", part(r#"{"sub":"root"}"#));
        assert_eq!(verify(&forged, &keys, &ALL), Err(JoseFault::BadSignature));
    }
}

#[test]
fn keys_that_are_not_understood_are_left_out_and_the_rest_is_used() {
    let key = key(Algorithm::Es256);
    let with = |name: &str, value: Value| {
        let mut jwk = key.public_jwk();
        jwk[name] = value;
        jwk
    };
    let useless = [
        json!({ "kty": "PQC", "pub": "AAAA" }),
        json!({ "kty": "oct", "k": "AAAA", "kid": key.kid() }),
        json!("not an object"),
        json!({ "kid": "no kty" }),
        json!({ "kty": "RSA", "n": "AQAB", "e": "AQAB" }),
        json!({ "kty": "OKP", "crv": "X25519", "x": "AAAA" }),
        with("use", json!("enc")),
        with("key_ops", json!(["sign"])),
        with("alg", json!("ES384")),
        with("crv", json!("P-384")),
        with("x", json!("AAAA")),
        with("y", with("x", json!(0))["x"].clone()),
        with("kid", json!(7)),
    ];
    assert!(set(&useless).is_empty());
    let mut all = useless.to_vec();
    all.push(key.public_jwk());
    let keys = set(&all);
    assert_eq!(keys.len(), 1);
    let token = key.sign(&claims(), "JWT").unwrap();
    assert!(verify(&token, &keys, &ALL).is_ok());
}

#[test]
fn a_text_that_is_no_key_set_is_refused() {
    for text in ["", "[]", "{}", r#"{"keys":{}}"#, "<html>"] {
        assert_eq!(KeySet::parse(text).unwrap_err(), KeySetFault);
    }
    assert!(KeySet::parse(r#"{"keys":[]}"#).unwrap().is_empty());
}

#[test]
fn without_kid_only_an_unambiguous_key_of_the_right_type_is_tried() {
    let (a, b, rsa) = (
        key(Algorithm::Es256),
        key(Algorithm::Es256),
        key(Algorithm::Rs256),
    );
    let token = a
        .sign_with_header(&json!({ "alg": "ES256" }), &claims())
        .unwrap();
    let one = set(&[a.public_jwk(), rsa.public_jwk()]);
    assert!(verify(&token, &one, &ALL).is_ok());
    let two = set(&[a.public_jwk(), b.public_jwk()]);
    assert_eq!(verify(&token, &two, &ALL), Err(JoseFault::UnknownKey));
    let none = set(&[rsa.public_jwk()]);
    assert_eq!(verify(&token, &none, &ALL), Err(JoseFault::UnknownKey));
    let wrong = set(&[b.public_jwk()]);
    assert_eq!(verify(&token, &wrong, &ALL), Err(JoseFault::BadSignature));
}

#[test]
fn two_keys_with_one_id_are_both_tried() {
    let (a, b) = (key(Algorithm::Es256), key(Algorithm::Es256));
    let named = |key: &SigningKey| {
        let mut jwk = key.public_jwk();
        jwk["kid"] = json!("same");
        jwk
    };
    let keys = set(&[named(&a), named(&b)]);
    for key in [a, b] {
        let header = json!({ "alg": "ES256", "kid": "same" });
        let token = key.sign_with_header(&header, &claims()).unwrap();
        assert!(verify(&token, &keys, &ALL).is_ok());
    }
}

#[test]
fn the_digest_of_a_set_tells_its_keys_and_not_their_order() {
    let (a, b) = (key(Algorithm::Es256), key(Algorithm::EdDsa));
    let one = set(&[a.public_jwk(), b.public_jwk()]);
    let other = set(&[b.public_jwk(), json!({ "kty": "PQC" }), a.public_jwk()]);
    assert_eq!(one.digest(), other.digest());
    assert_ne!(one.digest(), set(&[a.public_jwk()]).digest());
}

#[test]
fn a_signing_key_survives_being_stored() {
    for algorithm in ALL {
        let key = key(algorithm);
        let pem = key.to_pem();
        assert!(pem.expose().lines().all(|line| line.len() <= 64));
        let again = SigningKey::from_pem(pem.expose()).unwrap();
        assert_eq!(again.public_jwk(), key.public_jwk());
        let der = SigningKey::from_pkcs8(key.to_pkcs8().expose()).unwrap();
        assert_eq!(der.kid(), key.kid());
        assert!(!format!("{key:?}").contains(pem.expose().lines().nth(1).unwrap()));
    }
    assert_eq!(
        SigningKey::from_pem("x").unwrap_err(),
        SigningFault::NotAKey
    );
}

#[test]
fn the_thumbprint_is_the_one_of_the_rfc() {
    // RFC 8037 appendix A.1 and A.3.
    let seed = [
        0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c,
        0xc4, 0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae,
        0x7f, 0x60,
    ];
    let mut der = vec![
        0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04,
        0x20,
    ];
    der.extend_from_slice(&seed);
    let key = SigningKey::from_pkcs8(&der).unwrap();
    assert_eq!(key.kid(), "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
}
