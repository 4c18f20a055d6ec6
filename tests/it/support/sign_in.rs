//! Servers that people sign in to, and the way through the pages.

use argon2::password_hash::{PasswordHasher, SaltString};
use argon2::{Algorithm, Argon2, Params, Version};

use super::browser::{Ask, Browser, Page, VERIFIER};
use super::folder::Folder;
use super::login_idp::{LoginIdp, SECRET};
use super::{Gateway, Helper, Setup, Value, json, kept};

/// Everybody's password.
pub(crate) const PASSWORD: &str = "correct horse";
/// Where the app on the person's own computer waits.
pub(crate) const LOOPBACK: &str = "http://127.0.0.1:1/callback";
/// Where the app on the web waits.
pub(crate) const WEB: &str = "https://app.example.com/callback";
/// What a way out of the service begins with.
const OUT: [&str; 2] = ["http://127.0.0.1:1/", "https://app.example.com/"];

/// A server with the authorization server, two apps and local users: alice of acme,
/// bob of globex, carol of both.
pub(crate) async fn local() -> Gateway {
    local_setup().await.start().await
}

/// The same, for more to be laid over it.
pub(crate) async fn local_setup() -> Setup {
    setup().await.yaml(&users().to_string())
}

/// The same over an identity provider of acme instead of local users.
pub(crate) async fn federated(idp: &LoginIdp) -> Gateway {
    federated_with(idp, &["acme"], "{}").await
}

/// The same for these tenants, with YAML over it.
pub(crate) async fn federated_with(idp: &LoginIdp, tenants: &[&str], over: &str) -> Gateway {
    let folder = Box::leak(Box::new(Folder::new()));
    kept::secret("client secret at the provider", SECRET);
    let secret = folder.file("idp-secret", SECRET);
    let secret = secret.to_str().unwrap();
    let providers = json!({"identity_providers": {"company": idp.config(secret, tenants)}});
    let setup = setup().await.yaml(&providers.to_string());
    setup.yaml(over).start().await
}

/// What all of them have.
pub(crate) async fn setup() -> Setup {
    let base = json!({
        "authorization_server": { "enabled": true, "scopes": { "echo.use": "Repeat what it hears" } },
        "outgoing": { "allow_networks": ["127.0.0.0/8"] },
        "clients": {
            "desk": { "name": "Desk App", "redirect_uris": ["http://127.0.0.1/callback"] },
            "other": { "name": "Other App", "redirect_uris": ["http://127.0.0.1/callback"] },
            "web": { "name": "Web App", "redirect_uris": [WEB, "https://app.example.com/second"] },
        },
        "tools": [{ "match": "echo", "scopes": ["echo.use"] }],
    });
    let upstream = Helper::example("upstream_rmcp", &[]).await;
    Setup::new().yaml(&base.to_string()).over("up", upstream)
}

/// Their passwords, names and tenants.
pub(crate) fn users() -> Value {
    kept::secret("password", PASSWORD);
    let cheap = Params::new(64, 1, 1, None).unwrap();
    let salt = SaltString::from_b64("c2FsdHNhbHRzYWx0").unwrap();
    let hash = Argon2::new(Algorithm::Argon2id, Version::V0x13, cheap)
        .hash_password(PASSWORD.as_bytes(), &salt)
        .unwrap()
        .to_string();
    json!({"users": {
        "alice@acme.test": { "password_hash": hash, "name": "Alice", "tenants": { "acme": ["support"] } },
        "bob@globex.test": { "password_hash": hash, "tenants": { "globex": [] } },
        "carol@both.test": { "password_hash": hash, "tenants": { "acme": [], "globex": [] } },
    }})
}

/// A request of the app on the person's own computer.
pub(crate) fn desk(gateway: &Gateway) -> Ask {
    Ask::new(gateway, "desk", LOOPBACK)
}

/// A request of the app on the web.
pub(crate) fn web(gateway: &Gateway) -> Ask {
    Ask::new(gateway, "web", WEB)
}

/// Whether a page leads out of the service, to the app.
pub(crate) fn is_out(page: &Page) -> bool {
    let to = page.location().unwrap_or_default();
    OUT.iter().any(|out| to.starts_with(out))
}

impl Browser {
    /// Opens what the app asks for.
    pub(crate) async fn open(&self, ask: &Ask) -> Page {
        self.get(&ask.url()).await
    }

    /// Opens it and approves; gives the sign-in page, or the way to the provider.
    pub(crate) async fn approve(&self, ask: &Ask) -> Page {
        let page = self.open(ask).await;
        self.press(&page, "approve", &[]).await
    }

    /// Signs in with a password on the page that asks for one.
    pub(crate) async fn sign_in(&self, page: &Page, user: &str) -> Page {
        let given = [("username", user), ("password", PASSWORD)];
        self.press(page, "", &given).await
    }

    /// Goes all the way as a local user.
    pub(crate) async fn connect(&self, ask: &Ask, user: &str) -> Page {
        let page = self.approve(ask).await;
        if is_out(&page) {
            return page;
        }
        self.sign_in(&page, user).await
    }

    /// Goes all the way through the identity provider.
    pub(crate) async fn connect_through(&self, ask: &Ask) -> Page {
        let mut page = self.approve(ask).await;
        while !is_out(&page) && page.location().is_some() {
            page = self.get(&page.location().unwrap()).await;
        }
        page
    }
}

/// Exchanges the code of the way out for tokens.
pub(crate) async fn tokens(gateway: &Gateway, client: &str, out: &Page, redirect: &str) -> Value {
    let code = out
        .sent("code")
        .unwrap_or_else(|| panic!("no code: {out:?}"));
    let fields = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("client_id", client),
        ("redirect_uri", redirect),
        ("code_verifier", VERIFIER),
    ];
    let answer = at_token(gateway, &fields).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    serde_json::from_str(&answer.body).unwrap()
}

/// Uses a refresh token.
pub(crate) async fn refresh(gateway: &Gateway, client: &str, tokens: &Value) -> Page {
    let fields = [
        ("grant_type", "refresh_token"),
        ("refresh_token", tokens["refresh_token"].as_str().unwrap()),
        ("client_id", client),
    ];
    at_token(gateway, &fields).await
}

async fn at_token(gateway: &Gateway, fields: &[(&str, &str)]) -> Page {
    let url = format!("{}/oauth/token", gateway.url());
    Browser::new().post_with(&url, fields, &[]).await
}

/// The claims of an access token.
pub(crate) fn claims(tokens: &Value) -> Value {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    let token = tokens["access_token"].as_str().unwrap();
    let part = token.split('.').nth(1).unwrap();
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
}

/// How many rows the tables of sign-ins and grants have.
pub(crate) fn rows(gateway: &Gateway) -> String {
    let counted = gateway.database().psql(
        "SELECT (SELECT count(*) FROM oauth_sign_ins) || ' ' || (SELECT count(*) FROM oauth_grants)
             || ' ' || (SELECT count(*) FROM oauth_families)",
    );
    counted.trim().to_owned()
}
