//! Requests that are really made, to servers in this process.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue};
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

use super::test_server::{TestServer, answer};
use super::*;
use crate::config;

const SECOND: Duration = Duration::from_secs(1);

fn outgoing(change: impl FnOnce(&mut config::Outgoing)) -> Outgoing {
    let mut config = config::Outgoing::default();
    change(&mut config);
    Outgoing::new(&config).unwrap()
}

fn allowing(network: &str) -> Outgoing {
    outgoing(|config| config.allow_networks.push(network.parse().unwrap()))
}

fn private() -> HttpClient {
    outgoing(|_| ()).client(Reach::Private, SECOND)
}

const NONE: [(&str, &str); 0] = [];

/// A name that does not exist; the resolver may be slow to say so.
fn no_way(fault: &OutgoingFault) -> bool {
    matches!(
        fault,
        OutgoingFault::Connect { .. } | OutgoingFault::TimedOut { .. }
    )
}

async fn text(answer: HttpAnswer) -> String {
    String::from_utf8(answer.body(1 << 20).await.unwrap().to_vec()).unwrap()
}

#[tokio::test]
async fn a_private_address_is_refused_before_a_connection_is_made() {
    let server = TestServer::start(|_| answer(200, "", "hello")).await;
    let port = server.address.port();
    let client = outgoing(|_| ()).client(Reach::Public, SECOND);
    for host in [
        "127.0.0.1",
        "localhost",
        "[::ffff:127.0.0.1]",
        "2130706433",
        "0x7f.1",
    ] {
        let fault = client
            .get(&*format!("http://{host}:{port}/"), NONE)
            .await
            .unwrap_err();
        assert!(
            matches!(fault, OutgoingFault::Blocked { .. }),
            "{host}: {fault:?}"
        );
        let shown = fault.to_string();
        assert!(shown.contains("outgoing.allow_networks"), "{shown}");
        assert!(shown.contains("mcp.allow_private"), "{shown}");
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_private_address_is_reached_where_a_setting_allows_it() {
    let server = TestServer::start(|_| answer(200, "", "hello")).await;
    let port = server.address.port();
    let by_reach = private();
    let by_network = allowing("127.0.0.0/8").client(Reach::Public, SECOND);
    for client in [by_reach, by_network] {
        for host in ["127.0.0.1", "localhost"] {
            let url = format!("http://{host}:{port}/");
            assert_eq!(text(client.get(&url, NONE).await.unwrap()).await, "hello");
        }
    }
    let elsewhere = allowing("10.0.0.0/8").client(Reach::Public, SECOND);
    let fault = elsewhere.get(&server.url("/"), NONE).await.unwrap_err();
    assert!(matches!(fault, OutgoingFault::Blocked { .. }));
}

#[tokio::test]
async fn a_pin_leads_one_name_and_port_to_its_address_and_nothing_else() {
    let server = TestServer::start(|_| answer(200, "", "pinned")).await;
    let outgoing = outgoing(|config| {
        for key in ["idp.example.invalid:80", "IDP.example.invalid:8080"] {
            config.resolve.insert(key.to_owned(), server.address);
        }
    });
    let client = outgoing.client(Reach::Public, SECOND);
    for (url, host) in [
        ("http://idp.example.invalid/keys", "idp.example.invalid"),
        (
            "http://idp.example.invalid:8080/keys",
            "idp.example.invalid:8080",
        ),
    ] {
        assert_eq!(text(client.get(url, NONE).await.unwrap()).await, "pinned");
        let request = server.requests().pop().unwrap();
        assert!(request.starts_with("GET /keys HTTP/1.1\r\n"), "{request}");
        assert!(request.contains(&format!("host: {host}\r\n")), "{request}");
    }
    // Another port of the name is not pinned, nor is the address itself.
    let before = server.connections();
    let other = client.get("http://idp.example.invalid:81/", NONE).await;
    assert!(other.as_ref().is_err_and(no_way), "{other:?}");
    let direct = client.get(&server.url("/"), NONE).await;
    assert!(matches!(direct, Err(OutgoingFault::Blocked { .. })));
    assert_eq!(server.connections(), before);
}

#[tokio::test]
async fn a_redirect_is_an_answer_and_is_not_followed() {
    let other = TestServer::start(|_| answer(200, "", "secret")).await;
    let location = format!("location: {}\r\n", other.url("/"));
    let server = TestServer::start(move |_| answer(302, &location, "")).await;
    let client = private();
    let headers = [("authorization", "Bearer UP2")];
    let answer = client
        .post(&server.url("/mcp"), headers, Bytes::from_static(b"{}"))
        .await
        .unwrap();
    assert_eq!(answer.status, 302);
    assert_eq!(other.connections(), 0);
    let fetched = allowing("127.0.0.0/8")
        .fetch_json(&server.url("/keys"), 1024, SECOND)
        .await;
    assert!(
        matches!(fetched, Err(OutgoingFault::Status { status: 302, .. })),
        "{fetched:?}"
    );
    assert_eq!(other.connections(), 0);
}

#[tokio::test]
async fn a_request_has_the_headers_it_was_given_and_no_others() {
    let cookie = "set-cookie: a=b\r\n";
    let server = TestServer::start(move |_| answer(200, cookie, "")).await;
    let client = private();
    for _ in 0..2 {
        let headers = [
            (
                HeaderName::from_static("accept"),
                HeaderValue::from_static("text/event-stream"),
            ),
            (
                HeaderName::from_static("host"),
                HeaderValue::from_static("forged.example"),
            ),
            (
                HeaderName::from_static("x-up"),
                HeaderValue::from_static("1"),
            ),
        ];
        let answer = client
            .post(&server.url("/mcp"), headers, Bytes::from_static(b"{}"))
            .await
            .unwrap();
        answer.body(10).await.unwrap();
    }
    let mut names: Vec<Vec<String>> = Vec::new();
    for request in server.requests() {
        assert!(request.contains(&format!("host: {}\r\n", server.address)));
        assert!(request.ends_with("\r\n\r\n{}"));
        let lines = request.lines().skip(1).take_while(|line| !line.is_empty());
        let mut sent: Vec<String> = lines
            .map(|l| l.split(':').next().unwrap().to_owned())
            .collect();
        sent.sort();
        names.push(sent);
    }
    let expected = ["accept", "content-length", "host", "user-agent", "x-up"];
    assert_eq!(names, [expected, expected]);
    assert_eq!(server.connections(), 1, "the connection is used again");
}

#[tokio::test]
async fn a_header_that_http_does_not_allow_is_refused() {
    let server = TestServer::start(|_| answer(200, "", "")).await;
    for header in [("a b", "x"), ("", "x"), ("a", "x\r\nb: y"), ("a", "x\0")] {
        let fault = private().get(&server.url("/"), [header]).await.unwrap_err();
        assert_eq!(fault, OutgoingFault::BadHeader);
    }
    assert_eq!(server.connections(), 0);
}

#[tokio::test]
async fn a_body_comes_as_its_bytes_are() {
    let bytes: Vec<u8> = (0..=255).collect();
    let mut raw = b"HTTP/1.1 200 OK\r\ncontent-type: Text/Plain; charset=euc-kr\r\ncontent-encoding: gzip\r\ncontent-length: 256\r\n\r\n".to_vec();
    raw.extend_from_slice(&bytes);
    let server = TestServer::start(move |_| raw.clone()).await;
    let mut answer = private().get(&server.url("/"), NONE).await.unwrap();
    assert_eq!(answer.media_type().as_deref(), Some("text/plain"));
    let mut got = Vec::new();
    while let Some(chunk) = answer.chunk().await.unwrap() {
        got.extend_from_slice(&chunk);
    }
    assert_eq!(got, bytes);
}

#[tokio::test]
async fn a_body_beyond_its_limit_is_not_read_to_the_end() {
    let announced = TestServer::start(|_| answer(200, "", &"x".repeat(100))).await;
    let chunked = TestServer::start(|_| {
        let chunk = format!("{:x}\r\n{}\r\n", 60, "x".repeat(60));
        let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
        format!("{head}{chunk}{chunk}0\r\n\r\n").into_bytes()
    })
    .await;
    let client = private();
    for (server, length) in [(&announced, 100), (&chunked, 120)] {
        let get = async || client.get(&server.url("/"), NONE).await.unwrap();
        assert_eq!(get().await.body(length).await.unwrap().len(), length);
        for limit in [0, 50, length - 1] {
            assert_eq!(
                get().await.body(limit).await,
                Err(OutgoingFault::TooLarge { limit })
            );
        }
    }
}

#[tokio::test]
async fn each_failure_says_what_it_was() {
    let client = private();
    let closed = TestServer::start(|_| Vec::new()).await;
    let fault = client.get(&closed.url("/"), NONE).await.unwrap_err();
    assert!(matches!(fault, OutgoingFault::Broken { .. }), "{fault:?}");

    let short =
        TestServer::start(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nx!close".to_vec());
    let answer = client.get(&short.await.url("/"), NONE).await.unwrap();
    let fault = answer.body(100).await.unwrap_err();
    assert!(matches!(fault, OutgoingFault::Broken { .. }), "{fault:?}");

    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    let fault = client
        .get(&*format!("http://{address}/"), NONE)
        .await
        .unwrap_err();
    assert_eq!(
        fault,
        OutgoingFault::Connect {
            host: "127.0.0.1".to_owned(),
            why: "it is refused"
        }
    );
    let fault = client
        .get("http://nowhere.invalid/secret", NONE)
        .await
        .unwrap_err();
    assert!(no_way(&fault), "{fault:?}");
    assert!(!fault.to_string().contains("secret"));
}

#[tokio::test]
async fn the_challenges_of_an_answer_are_read_from_all_its_lines() {
    let lines = "www-authenticate: Basic realm=\"a, b\"\r\n\
                 www-authenticate: bearer resource_metadata=\"https://up.example.com/prm\"\r\n";
    let server = TestServer::start(move |_| answer(401, lines, "")).await;
    let answer = private().get(&server.url("/"), NONE).await.unwrap();
    let challenges = answer.challenges().unwrap();
    assert_eq!(challenges.len(), 2);
    let url = challenges[1].get("resource_metadata");
    assert_eq!(url, Some("https://up.example.com/prm"));
}

#[tokio::test]
async fn a_document_that_is_late_or_no_text_is_refused() {
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let outgoing = allowing("127.0.0.0/8");
    let soon = Duration::from_millis(50);
    let fault = outgoing.fetch_json(&url, 10, soon).await.unwrap_err();
    assert!(matches!(fault, OutgoingFault::TimedOut { .. }), "{fault:?}");

    let server = TestServer::start(|_| {
        b"HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncache-control: max-age=7\r\n\r\n\xe9".to_vec()
    })
    .await;
    let fault = outgoing
        .fetch_json(&server.url("/"), 10, SECOND)
        .await
        .unwrap_err();
    assert!(matches!(fault, OutgoingFault::NotText { .. }), "{fault:?}");
}

#[tokio::test]
async fn a_document_comes_with_its_age() {
    let server = TestServer::start(|_| answer(200, "cache-control: max-age=7\r\n", "{}")).await;
    let fetched = allowing("127.0.0.1/32")
        .fetch_json(&server.url("/keys"), 10, SECOND)
        .await
        .unwrap();
    assert_eq!(fetched.text, "{}");
    assert_eq!(fetched.max_age, Some(Duration::from_secs(7)));
    assert!(server.requests()[0].contains("accept: application/json\r\n"));
}

#[tokio::test]
async fn with_a_proxy_names_go_to_the_proxy_and_addresses_are_still_judged() {
    let proxy = TestServer::start(|_| answer(200, "", "by proxy")).await;
    let outgoing = outgoing(|config| {
        config.proxy = Some(format!("http://localhost:{}", proxy.address.port()));
    });
    let client = outgoing.client(Reach::Public, SECOND);
    let answer = client
        .get("http://up.example.invalid/x", NONE)
        .await
        .unwrap();
    assert_eq!(text(answer).await, "by proxy");
    assert!(proxy.requests()[0].starts_with("GET http://up.example.invalid/x HTTP/1.1\r\n"));
    let metadata = client.get("http://169.254.169.254/", NONE).await;
    assert!(matches!(metadata, Err(OutgoingFault::Blocked { .. })));
    assert_eq!(proxy.requests().len(), 1);
}

#[tokio::test]
async fn tls_trusts_the_configured_authority_and_nobody_else() {
    let host = "up.example.invalid";
    let cert = rcgen::generate_simple_self_signed([host.to_owned()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(cert.signing_key.serialize_der());
    let tls = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![cert.cert.der().clone()], PrivateKeyDer::from(key))
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(tls));
    let server = TestServer::start_tls(acceptor, |_| answer(200, "", "trusted")).await;
    let ca_file = std::env::temp_dir().join(format!("toolgate-ca-{}.pem", std::process::id()));
    std::fs::write(&ca_file, cert.cert.pem()).unwrap();

    let with = |ca: bool| {
        outgoing(|config| {
            config.ca_file = ca.then(|| ca_file.clone());
            for name in [host, "other.example.invalid"] {
                config.resolve.insert(format!("{name}:443"), server.address);
            }
        })
        .client(Reach::Public, SECOND)
    };
    let answer = with(true)
        .get("https://up.example.invalid/", NONE)
        .await
        .unwrap();
    assert_eq!(text(answer).await, "trusted");
    assert!(server.requests()[0].contains("host: up.example.invalid\r\n"));
    for (ca, url) in [
        (false, "https://up.example.invalid/"),
        (true, "https://other.example.invalid/"),
    ] {
        let fault = with(ca).get(url, NONE).await.unwrap_err();
        assert!(matches!(fault, OutgoingFault::Tls { .. }), "{fault:?}");
    }
    assert_eq!(server.requests().len(), 1);
    std::fs::remove_file(ca_file).unwrap();
}

#[test]
fn a_wrong_section_is_refused_with_its_key() {
    let fault = |change: fn(&mut config::Outgoing)| {
        let mut config = config::Outgoing::default();
        change(&mut config);
        Outgoing::new(&config).unwrap_err().to_string()
    };
    let ca = fault(|config| config.ca_file = Some("/nowhere.pem".into()));
    assert!(
        ca.starts_with("`outgoing.ca_file`: /nowhere.pem cannot be read"),
        "{ca}"
    );
    let proxy = fault(|config| config.proxy = Some("user:hunter2@proxy".to_owned()));
    assert!(proxy.starts_with("`outgoing.proxy`") && !proxy.contains("hunter2"));
    for key in [
        "idp.example.com",
        "idp.example.com:x",
        ":443",
        "127.0.0.1:80",
        "[::1]:80",
    ] {
        let mut config = config::Outgoing::default();
        let address = "127.0.0.1:1".parse().unwrap();
        config.resolve.insert(key.to_owned(), address);
        let text = Outgoing::new(&config).unwrap_err().to_string();
        assert!(text.contains(key), "{text}");
    }
}
