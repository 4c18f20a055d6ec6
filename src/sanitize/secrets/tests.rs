//! Tests of the detectors: every form, its look-alikes, and its cost.

use super::*;
use crate::sanitize::engine::Engine;
use crate::sanitize::samples;

fn found_under(text: &str, key: Option<&str>) -> Vec<(&'static str, String)> {
    Engine::new()
        .found(text, key, Family::Secrets)
        .into_iter()
        .map(|(label, range)| (label, text[range].to_owned()))
        .collect()
}

fn found(text: &str) -> Vec<(&'static str, String)> {
    found_under(text, None)
}

#[test]
fn every_form_is_found_alone_and_in_company() {
    for sample in samples::formats() {
        for (before, after) in [
            ("", ""),
            ("x=", ""),
            ("see ", "."),
            ("\"", "\","),
            ("(", ")"),
            ("`", "`\n"),
            ("\\n", "\\n"),
        ] {
            let text = format!("{before}{}{after}", sample.text);
            let right = vec![(sample.label, sample.secret.clone())];
            assert_eq!(found(&text), right, "{text}");
        }
    }
}

#[test]
fn surroundings_give_secrets_away() {
    for sample in samples::in_context() {
        let found = found(&sample.text);
        let hit = found
            .iter()
            .find(|(label, value)| *label == sample.label && value.contains(&sample.secret));
        assert!(hit.is_some(), "{sample:?} {found:?}");
    }
}

#[test]
fn look_alikes_stay() {
    let rows = [
        "commit ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7",
        "id 8a1c2f6e-58f1-4c8e-9d36-0b5f0f3f8f11 etag W/\"c575da84564ab49055fa8ab78d99f6ea\"",
        "sha512-qd+Ae88UkWfNmKYv6yu0jqCIEgCzru9PGU0ost6nuBPwf7An3CcDP8raGJgHYPdsWGxzmKPAMam08HUUMJUkOi==",
        "SHA256:TEi1fqlpATtqXfMG6RnyB9Wq+GqgL85IfrZeWmloDRJ deploy@ci (ED25519)",
        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBBTSPm7pSCtpaU2ri/Q5pC4NgV1Pom94c6x5M58d3xA deploy",
        "next_page_token=ZQSr3g_HuYRbmdEL8ZUOcH0uJDoyd8Z1&limit=50",
        "{\"next_page_token\": \"eyJvIjogMzg5NiwgImsiOiAiYWtxOHlwanQzZmlvIn0=\"}",
        "password: ${DB_PASSWORD}\napi_key: {{ secrets.API_KEY }}\ntoken: <your-token-here>\nsecret: ********",
        "The password policy requires 12 characters. Tokens expire after 3600 seconds.",
        "def verify(password: str, token: str) -> bool:\n    return hash(password) == token",
        "primary_key = user_id, cache_key=user:4413:profile:v2 idempotency_key=54a9ceb5-1349-42ff-8b7a-27bde1643f84",
        "secretName: app-tls\nimagePullSecrets:\n- name: regcred\ntokenExpirationSeconds: 3600",
        "ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx AKIAIOSFODNN7EXAMPLE AKIAXXXXXXXXXXXXXXXX",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        "TODAYINASIAASACKOFRICEFELLOVER xoxb-my-bot-token hf_requiredCharacteristicTypes",
        "curl -H \"Authorization: Bearer $TOKEN\" https://user:${PASS}@host/",
        "-----BEGIN CERTIFICATE-----\nOpcdHK/6/3hivgYDJzYN+OBb7W8mKZLqHXsn+FFjO+Hat16MbWrafmmXiQScXbF0\n-----END CERTIFICATE-----",
        "npm i @types/node@20.0.0 vite@8.3.1 git@github.com:acme/api.git https://host/@scope/pkg",
        "const password = req.body.password; let token = getToken(); PASSWORD = None",
        "{\"token_type\": \"bearer\", \"completion_tokens\": 146, \"password_hash\": null}",
        "Set-Cookie: theme=dark; Path=/; Expires=Wed, 21 Oct 2026 07:28:00 GMT",
        "public_key = \"9Cnzj4p4WGeKLs1Pt8QuKUpRKfFLfRYC9AIKjbJTWit\" key_name: prod-cmk",
        "[REDACTED:password] token=[REDACTED:github_token] password: [REDACTED]",
        "pub lpszPassword: ::windows_sys::core::PCWSTR,\n    NtPassword: UNICODE_STRING,\n    private_key: PrivateDecryptingKey,",
        "if let Some(password) = &self.pg_password {}\n println!(\"password: {err:?}\")",
        "Authorization: Bearer eyJhbGciOiJIUzI1NiIs...",
        "lorem ipsum dolor sit amet, consectetur adipiscing elit: secret gardens and token gestures",
    ];
    for row in rows {
        assert_eq!(found(row), [], "{row}");
    }
}

#[test]
fn a_json_key_names_its_value() {
    let find = |key: &str, value: &str| found_under(value, Some(key)).first().map(|found| found.0);
    assert_eq!(find("password", "letmein"), Some("password"));
    assert_eq!(
        find("apiKey", "wlkyAc5zPA5TTdRgIM19rkVjai39"),
        Some("generic_secret")
    );
    assert_eq!(
        find("Authorization", "wlkyAc5zPA5TTdRgIM19rkVjai39"),
        Some("bearer_token")
    );
    assert_eq!(
        find("Cookie", "sid=wlkyAc5zPA5TTdRg; a=b"),
        Some("session_cookie")
    );
    assert_eq!(find("password", "is too short"), None);
    assert_eq!(find("token", "string"), None);
    assert_eq!(find("nextPageToken", "wlkyAc5zPA5TTdRgIM19rkVjai39"), None);
}

#[test]
fn of_two_rules_the_more_certain_gives_the_label() {
    let token = &samples::formats()[0];
    let text = format!("GITHUB_TOKEN={}", token.text);
    assert_eq!(found(&text), [(token.label, token.secret.clone())]);
}

/// Text in a rule's own alphabet, without end: each costs about its length.
#[test]
fn hostile_text_costs_no_more_than_its_length() {
    let parts = [
        "eyJ",
        "eyJhbGciOiJIUzI1NiJ9.",
        "-----BEGIN PRIVATE KEY-----\n",
        "password=",
        "password: ",
        "token=token&",
        "Bearer ",
        "bearer+",
        "://a:b@",
        "@a",
        "@a?",
        "AKIA",
        "sk-ant-api03-",
        "cookie: a=b;",
        "authorization: ",
        "glpat-",
        "api key is ",
        "{\"token\":\"",
        "\u{1b}]",
        "\u{9d}",
        "\u{200d}",
        "xoxb-1234567890",
        "SK0123abcd",
        ":AA1",
    ];
    let engine = Engine::new();
    for part in parts {
        let text = part.repeat(200_000 / part.len());
        let start = std::time::Instant::now();
        let view = crate::sanitize::view::View::of(&text);
        let _ = engine.found(&view.text, None, Family::Secrets);
        // Unoptimised and on a busy machine; quadratic cost would take minutes.
        assert!(
            start.elapsed().as_secs() < 10,
            "{part:?} took {:?}",
            start.elapsed()
        );
    }
}

#[test]
fn every_label_of_a_format_can_be_configured() {
    for format in FORMATS {
        let known = crate::config::labels().any(|label| label == format.label);
        assert!(known, "{}", format.label);
    }
}
