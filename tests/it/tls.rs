//! TLS of the listeners, to upstreams and to Postgres.

use std::time::Duration;

use tokio::net::TcpStream;

use super::support::authority::Authority;
use super::support::config;
use super::support::folder::Folder;
use super::support::postgres::OwnPostgres;
use super::support::process::free_port;
use super::support::scripted::{Scripted, listing, plain, text};
use super::support::{Era, Gateway, Setup, Value, eventually, json};

/// A server that listens with a certificate of this authority.
struct Secure {
    gateway: Gateway,
    _server: Scripted,
    folder: Folder,
    port: u16,
}

impl Secure {
    async fn start(authority: &Authority, more: &str) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let issued = authority.issue(&["localhost"]);
        let cert = folder.file("tls.crt", &issued.cert);
        let key = folder.file("tls.key", &issued.key);
        let yaml = format!(
            "server: {{ listen: \"127.0.0.1:{port}\", public_url: \"https://localhost:{port}\", tls: {{ cert_file: {}, key_file: {} }} }}",
            cert.display(),
            key.display()
        );
        let server = Scripted::start(Era::Modern, |asked| match asked.method() {
            "tools/list" => listing(&[&plain("echo")]),
            _ => text("done"),
        });
        let setup = Setup::new().upstream("up", server.config()).yaml(&yaml);
        let gateway = setup.yaml(more).start().await;
        Self {
            gateway,
            _server: server,
            folder,
            port,
        }
    }

    fn url(&self) -> String {
        format!("https://localhost:{}/mcp", self.port)
    }

    /// Lists the tools as a modern client does.
    async fn list(&self, client: &reqwest::Client) -> reqwest::Result<reqwest::Response> {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}});
        let alice = self.gateway.user("alice@acme");
        client
            .post(self.url())
            .bearer_auth(alice.token())
            .header("accept", "application/json")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/list")
            .json(&body)
            .send()
            .await
    }
}

#[tokio::test]
async fn the_listener_speaks_tls_of_both_versions_and_http_of_both_versions() {
    let authority = Authority::new();
    let secure = Secure::start(&authority, "").await;
    let old = reqwest::tls::Version::TLS_1_2;
    for (builder, version) in [
        (authority.client(), reqwest::Version::HTTP_2),
        (authority.client().http1_only(), reqwest::Version::HTTP_11),
        (
            authority.client().tls_version_max(old),
            reqwest::Version::HTTP_2,
        ),
    ] {
        let answer = secure.list(&builder.build().unwrap()).await.unwrap();
        assert_eq!((answer.status().as_u16(), answer.version()), (200, version));
        let body: Value = answer.json().await.unwrap();
        assert_eq!(body["result"]["tools"][0]["name"], "echo", "{body}");
    }
    // What is printed is the name that is called by.
    let client = authority.client().build().unwrap();
    let refused = client.post(secure.url()).send().await.unwrap();
    let challenge = refused.headers()["www-authenticate"].to_str().unwrap();
    assert!(
        challenge.contains(&format!("https://localhost:{}/", secure.port)),
        "{challenge}"
    );
    // Another authority is not believed, and plain words are not understood.
    let stranger = Authority::new().client().build().unwrap();
    assert!(secure.list(&stranger).await.unwrap_err().is_connect());
    let plain = format!("http://localhost:{}/mcp", secure.port);
    assert!(client.get(plain).send().await.is_err());
    // The probes stay plain.
    assert_eq!(secure.gateway.admin_status("/readyz").await, Some(200));
}

#[tokio::test]
async fn a_client_that_stalls_in_the_handshake_holds_nobody_up() {
    let authority = Authority::new();
    let secure = Secure::start(&authority, "").await;
    let mut stalled = Vec::new();
    for _ in 0..50 {
        stalled.push(
            TcpStream::connect(("127.0.0.1", secure.port))
                .await
                .unwrap(),
        );
    }
    let client = authority.client().build().unwrap();
    let listed = tokio::time::timeout(Duration::from_secs(5), secure.list(&client)).await;
    assert_eq!(listed.unwrap().unwrap().status(), 200);
    // They are let go of after a while.
    let mut one = stalled.pop().unwrap();
    let mut byte = [0];
    let read = tokio::io::AsyncReadExt::read(&mut one, &mut byte);
    let read = tokio::time::timeout(Duration::from_secs(20), read).await;
    assert!(matches!(read, Ok(Ok(0) | Err(_))), "{read:?}");
}

#[tokio::test]
async fn a_new_certificate_is_taken_up_and_a_broken_one_is_not() {
    let (first, second) = (Authority::new(), Authority::new());
    let secure = Secure::start(&first, "").await;
    let (old, new) = (
        first.client().build().unwrap(),
        second.client().build().unwrap(),
    );
    assert!(secure.list(&new).await.is_err());
    secure.folder.file("tls.crt", "nothing\n");
    eventually("the fault is in the log", async || {
        // Each connection looks, once a second.
        assert_eq!(secure.list(&old).await.unwrap().status(), 200);
        secure
            .gateway
            .logs()
            .contains("the old one is kept")
            .then_some(())
    })
    .await;
    let issued = second.issue(&["localhost"]);
    secure.folder.file("tls.key", &issued.key);
    secure.folder.file("tls.crt", &issued.cert);
    eventually("the new certificate is shown", async || {
        secure.list(&new).await.ok().map(|answer| answer.status())
    })
    .await;
    assert!(secure.list(&old).await.is_err());
}

#[tokio::test]
async fn clients_must_show_a_certificate_where_the_operator_says_so() {
    let (authority, clients) = (Authority::new(), Authority::new());
    let folder = Folder::new();
    let ca = folder.file("clients.pem", &clients.pem);
    let more = format!("server: {{ tls: {{ client_ca_file: {} }} }}", ca.display());
    let secure = Secure::start(&authority, &more).await;
    let with = |issuer: &Authority| {
        let own = issuer.issue(&["client"]);
        let identity = reqwest::Identity::from_pem(format!("{}\n{}", own.key, own.cert).as_bytes());
        authority
            .client()
            .identity(identity.unwrap())
            .build()
            .unwrap()
    };
    let answer = secure.list(&with(&clients)).await.unwrap();
    assert_eq!(answer.status(), 200);
    assert!(
        secure.list(&with(&authority)).await.is_err(),
        "of another authority"
    );
    assert!(
        secure
            .list(&authority.client().build().unwrap())
            .await
            .is_err(),
        "none"
    );
}

#[tokio::test]
async fn a_listener_without_a_usable_certificate_does_not_start() {
    let folder = Folder::new();
    let (one, other) = (Authority::new(), Authority::new());
    let cert = folder.file("tls.crt", &one.issue(&["localhost"]).cert);
    let key = folder.file("tls.key", &other.issue(&["localhost"]).key);
    for (cert, key, words) in [
        (folder.path().join("away"), &key, "away cannot be read"),
        (cert.clone(), &cert, "has no private key"),
        (cert.clone(), &key, "cannot be used"),
    ] {
        let mut yaml = config::defaults();
        let given = json!({
            "server": {
                "listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0",
                "public_url": "https://localhost:1",
                "tls": {"cert_file": cert, "key_file": key},
            },
            "database": {"url": "postgres://nobody@127.0.0.1:1/none"},
            "keys_file": folder.file("keys", &config::deployment_key()),
            "identity_providers": {"corporate": {
                "issuer": "https://idp.example.com", "tenants": ["acme", "globex"],
            }},
        });
        config::merge(&mut yaml, &given);
        let file = folder.file("toolgate.yaml", &yaml.to_string());
        let mut command = std::process::Command::new(config::TOOLGATE);
        let outcome =
            super::support::process::Outcome::of(command.args(["serve", "--config"]).arg(file));
        assert_ne!(outcome.code, Some(0), "{outcome:?}");
        let said = format!("{}{}", outcome.stdout, outcome.stderr);
        assert!(
            said.contains("server.tls") && said.contains(words),
            "{said}"
        );
    }
}

#[tokio::test]
async fn an_upstream_is_shown_a_certificate_where_it_asks_for_one() {
    let authority = Authority::new();
    let server = Scripted::start(Era::Modern, |asked| match asked.method() {
        "tools/list" => listing(&[&plain("echo")]),
        _ => text("done"),
    });
    let plain = format!("127.0.0.1:{}", server.port()).parse().unwrap();
    let guarded = authority.guard(plain).await;
    let folder = Folder::new();
    let own = authority.issue(&["toolgate"]);
    let foreign = Authority::new().issue(&["toolgate"]);
    let ca = folder.file("ca.pem", &authority.pem);
    let file = |name: &str, text: &str| folder.file(name, text);
    let url = format!("https://127.0.0.1:{}/mcp", guarded.address.port());
    let upstream = |prefix: &str, tls: Value| json!({"prefix": prefix, "mcp": {"url": url, "allow_private": true, "tls": tls}});
    let with =
        json!({"cert_file": file("c", &own.cert), "key_file": file("k", &own.key), "ca_file": ca});
    let other = json!({"cert_file": file("fc", &foreign.cert), "key_file": file("fk", &foreign.key), "ca_file": ca});
    let gateway = Setup::new()
        .upstream("with", upstream("with_", with.clone()))
        .upstream("other", upstream("other_", other))
        .upstream("without", upstream("without_", json!({"ca_file": ca})))
        .upstream(
            "strange",
            upstream(
                "strange_",
                json!({"cert_file": with["cert_file"], "key_file": with["key_file"]}),
            ),
        )
        .start()
        .await;
    let mut alice = gateway.user("alice@acme").modern();
    assert_eq!(alice.names().await, ["with_echo"]);
    assert_eq!(alice.call("with_echo", json!({})).await.text(), "done");
    // What is wrong with the files is said, with the upstream's name.
    let broken =
        json!({"upstreams": {"broken": upstream("b_", json!({"ca_file": file("e", "nothing")}))}});
    let mut gateway = gateway;
    gateway.reload(&broken.to_string());
    eventually("the refusal of the new configuration", async || {
        let lines = gateway.logs().lines().join("\n");
        (lines.contains("broken")
            && lines.contains("tls.ca_file")
            && lines.contains("has no certificate"))
        .then_some(())
    })
    .await;
}

#[tokio::test]
async fn postgres_is_verified_by_its_certificate_and_name() {
    let authority = Authority::new();
    let postgres = OwnPostgres::start();
    let issued = authority.issue(&["127.0.0.1", "localhost"]);
    for (name, text) in [("server.crt", &issued.cert), ("server.key", &issued.key)] {
        postgres.psql(
            "postgres",
            &format!(
                "copy (select line from unnest(string_to_array('{}', E'\\n')) as line where line <> '') to program 'umask 077; cat > {name}'",
                text.trim()
            ),
        );
    }
    postgres.psql("postgres", "alter system set ssl = on");
    postgres.psql("postgres", "select pg_reload_conf()");
    let folder = Folder::new();
    let ca = folder.file("ca.pem", &authority.pem);
    let wrong = folder.file("wrong.pem", &Authority::new().pem);
    let database = postgres.database();
    let url = |ca: &std::path::Path| {
        let joint = if database.url().contains('?') {
            '&'
        } else {
            '?'
        };
        format!(
            "{}{joint}sslmode=verify-full&sslrootcert={}",
            database.url(),
            ca.display()
        )
    };
    let gateway = Setup::new()
        .yaml(&format!("database: {{ url: \"{}\" }}", url(&ca)))
        .start()
        .await;
    let query = format!(
        "select count(*) from pg_stat_ssl join pg_stat_activity using (pid) where ssl and datname = '{}'",
        database.name()
    );
    let encrypted: u32 = database.psql(&query).trim().parse().unwrap();
    assert!(encrypted > 0, "its connections are encrypted");
    drop(gateway);
    let gateway = Setup::new()
        .yaml(&format!("database: {{ url: \"{}\" }}", url(&wrong)))
        .start_unready()
        .await;
    eventually("it is not ready", async || {
        (gateway.admin_status("/readyz").await == Some(503)).then_some(())
    })
    .await;
    assert!(
        gateway
            .logs()
            .lines()
            .join("\n")
            .to_lowercase()
            .contains("certificate")
    );
}
