//! How a client finds out where tokens come from (C01, C02, C03, rules §4.1, §4.10):
//! the metadata documents and the challenge, whatever stands in front of the
//! service and whatever a caller writes into its headers.

use std::net::IpAddr;

use super::support::{Gateway, Setup, Value, json};

const PRM: &str = "/.well-known/oauth-protected-resource";

/// What one answer says to whoever reads all of it.
struct Seen {
    status: u16,
    headers: reqwest::header::HeaderMap,
    body: String,
}

impl Seen {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("{}", self.everything()))
    }

    fn header(&self, name: &str) -> Option<String> {
        let value = self.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    }

    fn everything(&self) -> String {
        format!("{} {:?} {}", self.status, self.headers, self.body)
    }
}

/// Sends one request from an address of this machine.
async fn send(
    gateway: &Gateway,
    from: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
) -> Seen {
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .local_address(from.parse::<IpAddr>().unwrap())
        .redirect(reqwest::redirect::Policy::none())
        .build()
        .unwrap();
    let method = method.parse().unwrap();
    let mut request = client.request(method, format!("{}{path}", gateway.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let answer = request.send().await.unwrap();
    Seen {
        status: answer.status().as_u16(),
        headers: answer.headers().clone(),
        body: answer.text().await.unwrap(),
    }
}

async fn get(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Seen {
    send(gateway, "127.0.0.1", "GET", path, headers).await
}

/// The parameters of the one challenge, in order.
fn parameters(seen: &Seen) -> Vec<(String, String)> {
    let all: Vec<_> = seen.headers.get_all("www-authenticate").iter().collect();
    assert_eq!(all.len(), 1, "{}", seen.everything());
    let text = all[0].to_str().unwrap();
    let rest = text.strip_prefix("Bearer ").unwrap();
    let form = regex::Regex::new(r#"^([a-z_]+)="((?:[^"\\]|\\.)*)"(?:, )?"#).unwrap();
    let (mut rest, mut found) = (rest, Vec::new());
    while !rest.is_empty() {
        let part = form.captures(rest).unwrap_or_else(|| panic!("{text}"));
        found.push((part[1].to_owned(), part[2].to_owned()));
        rest = &rest[part[0].len()..];
    }
    let mut names: Vec<_> = found.iter().map(|(name, _)| name.clone()).collect();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), found.len(), "a parameter comes twice: {text}");
    found
}

fn parameter(seen: &Seen, name: &str) -> String {
    let all = parameters(seen);
    let found = all.iter().find(|(known, _)| known == name);
    found
        .unwrap_or_else(|| panic!("no {name}: {all:?}"))
        .1
        .clone()
}

#[tokio::test]
async fn identifiers_are_printed_as_they_are_configured() {
    // C01
    let gateway = Setup::new()
        .yaml(
            r#"
            server: { public_url: "https://gw.example.com" }
            identity_providers:
              corporate: { issuer: "https://idp.example.com" }
              second: { issuer: "https://idp2.example.com/", jwks_url: "https://idp2.example.com/keys", tenants: [acme] }
            "#,
        )
        .start()
        .await;
    for (path, resource) in [
        (PRM.to_owned(), "https://gw.example.com/mcp"),
        (format!("{PRM}/mcp"), "https://gw.example.com/mcp"),
        (
            format!("{PRM}/t/acme/mcp"),
            "https://gw.example.com/t/acme/mcp",
        ),
    ] {
        let seen = get(&gateway, &path, &[]).await;
        assert_eq!(seen.status, 200, "{path}");
        let kind = seen.header("content-type").unwrap();
        assert!(kind.starts_with("application/json"), "{kind}");
        let document = seen.json();
        assert_eq!(document["resource"], resource, "{path}");
        assert_eq!(
            document["authorization_servers"],
            json!(["https://idp.example.com", "https://idp2.example.com/"]),
            "{path}"
        );
        assert_eq!(document["bearer_methods_supported"], json!(["header"]));
        let scopes = document["scopes_supported"].as_array().unwrap();
        assert!(!scopes.contains(&json!("offline_access")), "{document}");
    }
    for (endpoint, document) in [("/mcp", "/mcp"), ("/t/acme/mcp", "/t/acme/mcp")] {
        let seen = send(&gateway, "127.0.0.1", "POST", endpoint, &[]).await;
        assert_eq!(
            parameter(&seen, "resource_metadata"),
            format!("https://gw.example.com{PRM}{document}")
        );
    }
}

#[tokio::test]
async fn a_tenant_lists_only_issuers_that_are_trusted_for_it() {
    let gateway = Setup::new()
        .yaml(
            r#"
            identity_providers:
              corporate: { tenants: [acme] }
              second: { issuer: "https://idp2.example.com/", jwks_url: "https://idp2.example.com/keys", tenants: [globex] }
            "#,
        )
        .start()
        .await;
    for (tenant, issuer) in [
        ("acme", "https://idp.example.com"),
        ("globex", "https://idp2.example.com/"),
    ] {
        let seen = get(&gateway, &format!("{PRM}/t/{tenant}/mcp"), &[]).await;
        assert_eq!(seen.json()["authorization_servers"], json!([issuer]));
    }
}

#[tokio::test]
async fn an_unknown_tenant_answers_like_a_known_one() {
    let gateway = Gateway::start("").await;
    let of = async |method: &str, path: &str, tenant: &str| {
        let path = path.replace('*', tenant);
        let mut seen = send(&gateway, "127.0.0.1", method, &path, &[]).await;
        for volatile in ["date", "x-request-id", "content-length"] {
            seen.headers.remove(volatile);
        }
        seen.everything().replace(tenant, "*")
    };
    for (method, path) in [
        ("GET", format!("{PRM}/t/*/mcp")),
        ("POST", "/t/*/mcp".to_owned()),
        ("GET", "/t/*/mcp".to_owned()),
        ("DELETE", "/t/*/mcp".to_owned()),
    ] {
        let known = of(method, &path, "acme").await;
        assert_eq!(known, of(method, &path, "nobody").await, "{method} {path}");
    }
}

#[tokio::test]
async fn forged_headers_change_nothing_where_the_service_has_a_name() {
    // C02 A, from strangers and from a trusted proxy alike.
    let gateway = Gateway::start(
        r#"server: { public_url: "https://gw.example.com", trusted_proxies: [127.0.0.9/32] }"#,
    )
    .await;
    let forged = [
        ("host", "10.1.2.3:8080"),
        ("x-forwarded-proto", "http"),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-port", "6666"),
        ("x-forwarded-prefix", "/evil"),
        ("x-original-url", "/evil"),
        ("forwarded", "host=evil.example;proto=http"),
    ];
    for from in ["127.0.0.1", "127.0.0.9"] {
        agree(&gateway, from, &forged, "https://gw.example.com").await;
    }
}

#[tokio::test]
async fn only_a_trusted_proxy_names_a_service_without_a_name() {
    // C02 B and C.
    let gateway = Setup::new()
        .yaml("server: { public_url: null, trusted_proxies: [127.0.0.9/32] }")
        .start()
        .await;
    let proxied = [("host", "gw.example.com"), ("x-forwarded-proto", "https")];
    agree(&gateway, "127.0.0.9", &proxied, "https://gw.example.com").await;

    let inner = gateway.url().trim_start_matches("http://").to_owned();
    let forged = [
        ("host", inner.as_str()),
        ("x-forwarded-host", "evil.example"),
        ("x-forwarded-proto", "https"),
    ];
    agree(&gateway, "127.0.0.7", &forged, gateway.url()).await;
    // A name that no trusted proxy vouches for is not ours.
    let stranger = [
        ("host", "evil.example"),
        ("x-forwarded-host", "evil.example"),
    ];
    for path in ["/mcp", PRM] {
        let seen = send(&gateway, "127.0.0.7", "GET", path, &stranger).await;
        assert_eq!(seen.status, 403);
        assert!(!seen.everything().contains("evil"), "{}", seen.everything());
    }
    // Even the proxy cannot be made to write what is no host.
    for odd in ["evil.example/x", "a\"b", "a, b", "evil.example?x", "a@b"] {
        let headers = [
            ("host", inner.as_str()),
            ("x-forwarded-host", odd),
            ("x-forwarded-proto", "javascript"),
        ];
        let base = format!("http://{inner}");
        agree(&gateway, "127.0.0.9", &headers, &base).await;
    }
}

/// Documents, challenges and redirects all begin with `base`.
async fn agree(gateway: &Gateway, from: &str, headers: &[(&str, &str)], base: &str) {
    for endpoint in ["/mcp", "/t/acme/mcp"] {
        let document = send(gateway, from, "GET", &format!("{PRM}{endpoint}"), headers).await;
        assert_eq!(document.json()["resource"], format!("{base}{endpoint}"));
        let challenge = send(gateway, from, "POST", endpoint, headers).await;
        assert_eq!(challenge.status, 401);
        assert_eq!(
            parameter(&challenge, "resource_metadata"),
            format!("{base}{PRM}{endpoint}")
        );
        let slashed = send(gateway, from, "POST", &format!("{endpoint}/"), headers).await;
        assert_eq!(slashed.status, 404, "another resource (rules §4.2)");
        assert_eq!(slashed.header("location"), None);
        for seen in [document, challenge, slashed] {
            let all = seen.everything();
            assert!(!all.contains("evil") && !all.contains("10.1.2.3"), "{all}");
        }
    }
}

#[tokio::test]
async fn a_base_with_a_path_has_its_documents_behind_that_path() {
    // RFC 9728 §3.1: the well-known part goes between host and path.
    let gateway = Gateway::start(r#"server: { public_url: "https://example.com/gw" }"#).await;
    let challenge = get(&gateway, "/t/acme/mcp", &[]).await;
    assert_eq!(
        parameter(&challenge, "resource_metadata"),
        format!("https://example.com{PRM}/gw/t/acme/mcp")
    );
    let document = get(&gateway, &format!("{PRM}/gw/t/acme/mcp"), &[]).await;
    assert_eq!(
        document.json()["resource"],
        "https://example.com/gw/t/acme/mcp"
    );
    assert_eq!(
        get(&gateway, &format!("{PRM}/t/acme/mcp"), &[])
            .await
            .status,
        404
    );
}

#[tokio::test]
async fn a_slash_at_the_end_of_the_base_does_not_break_the_endpoint_s_name() {
    let gateway = Gateway::start(r#"server: { public_url: "https://gw.example.com/" }"#).await;
    let document = get(&gateway, &format!("{PRM}/mcp"), &[]).await.json();
    assert_eq!(document["resource"], "https://gw.example.com/mcp");
    let alice = gateway
        .user("alice@acme")
        .with(|token| token.audience("https://gw.example.com/mcp"));
    let answer = alice.modern().request("tools/list", json!({})).await;
    assert_eq!(answer.status, 200, "{answer:?}");
}

#[tokio::test]
async fn documents_that_are_not_there_are_not_found() {
    let gateway = Gateway::start("").await;
    for path in [
        // No authorization server of ours yet, and never at these places.
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-authorization-server/mcp",
        "/.well-known/oauth-authorization-server/t/acme/mcp",
        "/.well-known/openid-configuration/t/acme",
        "/mcp/.well-known/openid-configuration",
        "/t/acme/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/",
        "/.well-known/oauth-protected-resource/mcp/",
        "/.well-known/oauth-protected-resource/other",
        "/.well-known/oauth-protected-resource/t/acme",
        "/.well-known/oauth-protected-resource/t/a%2Fb/mcp",
        "/mcp/",
        "/t/acme/mcp/",
        "/t/acme",
        "//mcp",
        "/MCP",
    ] {
        let seen = get(&gateway, path, &[]).await;
        assert_eq!(
            (seen.status, seen.header("location")),
            (404, None),
            "{path}"
        );
    }
}

#[tokio::test]
async fn a_challenge_is_one_and_nothing_breaks_out_of_it() {
    // C03: CR, LF and quotes in whatever a caller chooses.
    let gateway = Gateway::start("").await;
    let odd = "x\"\r\nSet-Cookie: a=b\r\n\r\nbody";
    let alice = gateway.user("alice@acme");
    let tokens = [
        alice.clone().with(|token| token.header("kid", odd)),
        alice.clone().with(|token| token.claim("iss", odd)),
        alice.clone().with(|token| token.claim("sub", odd)),
        alice.clone().with(|token| token.claim("tenant", odd)),
        alice.clone().with(|token| token.audience(odd)),
        alice.clone().with(|token| token.header("alg", odd)),
        gateway.anonymous().bearer("\"x\", realm=\"y"),
    ];
    for caller in tokens {
        let bearer = format!("Bearer {}", caller.token());
        for path in [
            "/mcp",
            "/t/a%0d%0aSet-Cookie:%20a=b%22/mcp",
            "/t/%E2%80%AE/mcp",
        ] {
            let headers = [("authorization", bearer.as_str())];
            let seen = send(&gateway, "127.0.0.1", "POST", path, &headers).await;
            assert_eq!(seen.status, 401, "{path}");
            assert_eq!(parameter(&seen, "error"), "invalid_token");
            assert_eq!(seen.header("set-cookie"), None);
            let place = parameter(&seen, "resource_metadata");
            let found = get(&gateway, place.strip_prefix(gateway.url()).unwrap(), &[]).await;
            assert_eq!(found.status, 200, "{place}");
        }
    }
    // Several tokens, or another scheme, are no token.
    let raw = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer a\r\nAuthorization: Bearer {}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
        alice.token()
    );
    let anonymous = gateway.anonymous();
    let answer = tokio::task::spawn_blocking(move || anonymous.wire(raw.as_bytes()))
        .await
        .unwrap();
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    for header in ["Basic YTpi", "Bearer", "Bearer ", "DPoP x", ""] {
        let seen = get(&gateway, "/mcp", &[("authorization", header)]).await;
        assert_eq!(seen.status, 401, "{header}");
        let names: Vec<_> = parameters(&seen)
            .into_iter()
            .map(|(name, _)| name)
            .collect();
        assert_eq!(names, ["scope", "resource_metadata"], "{header}");
    }
}

#[test]
fn a_base_that_could_break_a_header_is_refused() {
    let folder = super::support::folder::Folder::new();
    for odd in [
        "\\r\\nX-Evil: 1",
        "\\u0000",
        "\\u2028",
        " x",
        "\\\"x",
        "/a b",
    ] {
        let text = format!(
            "server: {{ public_url: \"https://gw.example.com{odd}\" }}\ndatabase: {{ url: postgres://u@h/d }}\n"
        );
        let file = folder.file("toolgate.yaml", &text);
        let mut command = std::process::Command::new(super::support::config::TOOLGATE);
        let output = command
            .args(["check", "--config"])
            .arg(&file)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(1), "{odd}: {said}");
        assert!(said.contains("server.public_url"), "{odd}: {said}");
    }
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, or one table, read from top to bottom"
)]
async fn pages_of_any_site_may_read_metadata_and_only_that() {
    // rules §4.10
    let gateway = Gateway::start(
        r#"server: { public_url: "https://gw.example.com", allowed_origins: ["https://app.example.com"] }"#,
    )
    .await;
    let ask = [
        ("access-control-request-method", "POST"),
        (
            "access-control-request-headers",
            "authorization, content-type, mcp-protocol-version, mcp-param-region, x-evil",
        ),
    ];
    for origin in ["https://any.example", "null", "https://app.example.com"] {
        for path in [PRM.to_owned(), format!("{PRM}/t/acme/mcp")] {
            let seen = get(&gateway, &path, &[("origin", origin)]).await;
            assert_eq!(seen.status, 200, "{origin} {path}");
            assert_eq!(
                seen.header("access-control-allow-origin").as_deref(),
                Some("*")
            );
            let mut headers = ask.to_vec();
            headers.push(("origin", origin));
            let seen = send(&gateway, "127.0.0.1", "OPTIONS", &path, &headers).await;
            assert_eq!(seen.status, 204, "{origin} {path}");
            assert_eq!(
                seen.header("access-control-allow-origin").as_deref(),
                Some("*")
            );
        }
    }
    let seen = get(&gateway, PRM, &[]).await;
    assert_eq!(
        seen.header("access-control-allow-origin").as_deref(),
        Some("*")
    );
    for method in ["POST", "OPTIONS"] {
        let mut headers = ask.to_vec();
        headers.push(("origin", "https://any.example"));
        let seen = send(&gateway, "127.0.0.1", method, "/mcp", &headers).await;
        assert_eq!(seen.status, 403, "{method}");
        assert_eq!(seen.header("access-control-allow-origin"), None);
    }
    let mut headers = ask.to_vec();
    headers.push(("origin", "https://app.example.com"));
    let seen = send(&gateway, "127.0.0.1", "OPTIONS", "/mcp", &headers).await;
    assert_eq!(seen.status, 204);
    assert_eq!(
        seen.header("access-control-allow-headers").as_deref(),
        Some("authorization, content-type, mcp-protocol-version, mcp-param-region")
    );
    let seen = send(&gateway, "127.0.0.1", "POST", "/mcp", &headers).await;
    assert_eq!(seen.status, 401);
    assert_eq!(
        seen.header("access-control-allow-origin").as_deref(),
        Some("https://app.example.com")
    );
    let exposed = seen.header("access-control-expose-headers").unwrap();
    for name in [
        "WWW-Authenticate",
        "Retry-After",
        "Mcp-Session-Id",
        "MCP-Protocol-Version",
    ] {
        assert!(exposed.contains(name), "{exposed}");
    }
}

#[tokio::test]
async fn metadata_is_limited_by_address_and_preflights_are_not_charged() {
    let gateway = Gateway::start(
        r#"
        server: { allowed_origins: ["https://app.example.com"] }
        edge: { per_address: { rate: 1/m, burst: 3 } }
        "#,
    )
    .await;
    let preflight = [
        ("origin", "https://app.example.com"),
        ("access-control-request-method", "POST"),
    ];
    for _ in 0..10 {
        let seen = send(&gateway, "127.0.0.1", "OPTIONS", "/mcp", &preflight).await;
        assert_eq!(seen.status, 204);
    }
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let seen = get(&gateway, PRM, &[("origin", "https://app.example.com")]).await;
        if seen.status == 429 {
            assert!(seen.header("retry-after").is_some());
            assert_eq!(
                seen.header("access-control-allow-origin").as_deref(),
                Some("*")
            );
        }
        statuses.push(seen.status);
    }
    assert_eq!(statuses, [200, 200, 200, 429, 429]);
    let elsewhere = send(&gateway, "127.0.0.8", "GET", PRM, &[]).await;
    assert_eq!(elsewhere.status, 200);
}
