//! Identity providers: whether their documents and keys are to be had and fit, and
//! whether people can sign in through them.

use serde_json::{Map, Value};

use super::clock;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::cli::doctor::web::Web;
use crate::config::{Config, IdentityProvider};
use crate::jose::KeySet;
use crate::outgoing::metadata_urls;

const STEP: &str = "sign-in";

/// What a failing provider means.
const NOBODY: &str = "tokens of this provider are refused, and nobody signs in through it";

pub(super) async fn look(config: &Config, web: &Web, report: &mut Report) {
    if config.identity_providers.is_empty() && config.users.is_empty() {
        report.trouble(
            Level::Failure,
            STEP,
            Trouble {
                what: "there is no identity provider and no user",
                why: "no token is believed: nobody can call anything",
                change: "name one in identity_providers",
            },
        );
    }
    if !config.users.is_empty() {
        report.note(
            STEP,
            "users with passwords in the configuration are for development",
        );
    }
    for (id, provider) in &config.identity_providers {
        provider_of(id.as_str(), provider, web, report).await;
    }
}

async fn provider_of(id: &str, provider: &IdentityProvider, web: &Web, report: &mut Report) {
    let discovers = provider.jwks_file.is_none() && provider.jwks_url.is_none();
    let mut keys_url = provider.jwks_url.clone();
    if discovers || provider.login.is_some() {
        let Some(metadata) = metadata(id, provider, web, report).await else {
            return;
        };
        if provider.login.is_some() {
            login(id, &metadata, report);
        }
        let named = metadata.get("jwks_uri").and_then(Value::as_str);
        keys_url = keys_url.or(named.map(str::to_owned));
    }
    let text = match (&provider.jwks_file, &keys_url) {
        (Some(file), _) => std::fs::read_to_string(file).map_err(|error| error.to_string()),
        (None, Some(url)) => match web.get(url, &[("accept", "application/json")]).await {
            Ok(page) if page.status == 200 => {
                let whose = format!("{id}: the key server's");
                clock::of_page(STEP, &whose, &page, report);
                Ok(page.text)
            }
            Ok(page) => Err(format!("status {}", page.status)),
            Err(why) => Err(why),
        },
        (None, None) => Err("the metadata names no jwks_uri".to_owned()),
    };
    keys(id, provider, text, report);
}

/// The provider's document, where it is and fits.
async fn metadata(
    id: &str,
    provider: &IdentityProvider,
    web: &Web,
    report: &mut Report,
) -> Option<Map<String, Value>> {
    let mut first = None;
    for url in metadata_urls(&provider.issuer) {
        let page = match web.get(&url, &[("accept", "application/json")]).await {
            Ok(page) => page,
            Err(why) => {
                first = first.or(Some(format!("{url} is not answered: {why}")));
                continue;
            }
        };
        let Some(document) = page.object().filter(|_| page.status == 200) else {
            first = first.or(Some(format!(
                "{url} is no metadata (status {})",
                page.status
            )));
            continue;
        };
        let issuer = document.get("issuer").and_then(Value::as_str);
        if issuer != Some(provider.issuer.as_str()) {
            let what = format!(
                "{id}: the provider calls itself {issuer:?}, the configuration {:?}",
                provider.issuer
            );
            report.trouble(
                Level::Failure,
                STEP,
                Trouble { what: &what, why: "issuers are compared byte for byte, a slash at the end included: its tokens are refused", change: "write the provider's own text into identity_providers.*.issuer" },
            );
            return None;
        }
        clock::of_page(STEP, &format!("{id}: the provider's"), &page, report);
        return Some(document);
    }
    let what = format!("{id}: {}", first.unwrap_or_default());
    report.trouble(
        Level::Failure,
        STEP,
        Trouble { what: &what, why: NOBODY, change: "check the issuer, and that this machine reaches it: DNS, outgoing.proxy, outgoing.ca_file, outgoing.allow_networks for a private address" },
    );
    None
}

/// Whether tokens can be verified.
fn keys(id: &str, provider: &IdentityProvider, text: Result<String, String>, report: &mut Report) {
    let (what, change) = match text.map(|text| KeySet::parse(&text)) {
        Ok(Ok(set)) if !set.is_empty() => {
            return report.ok(
                STEP,
                format!("{id}: {} key(s) verify its tokens", set.len()),
            );
        }
        Ok(Ok(_)) => (
            "its key set has no key that can be used".to_owned(),
            "let the provider sign with RS256, ES256 or EdDSA",
        ),
        Ok(Err(fault)) => (
            format!("its keys are {fault}"),
            "let jwks_url or jwks_file lead to the provider's key set",
        ),
        Err(why) => (
            format!("its keys are not to be had: {why}"),
            "check jwks_file, jwks_url or the provider's jwks_uri, and that this machine reaches it",
        ),
    };
    let what = format!("{id} ({}): {what}", provider.issuer);
    report.trouble(
        Level::Failure,
        STEP,
        Trouble {
            what: &what,
            why: NOBODY,
            change,
        },
    );
}

/// Whether people can be sent there and come back.
fn login(id: &str, metadata: &Map<String, Value>, report: &mut Report) {
    let text = |key: &str| metadata.get(key).and_then(Value::as_str);
    for key in ["authorization_endpoint", "token_endpoint"] {
        if text(key).is_none() {
            let what = format!("{id}: its metadata has no {key}");
            report.trouble(
                Level::Failure,
                STEP,
                Trouble {
                    what: &what,
                    why: "nobody can sign in through it",
                    change: "use the issuer of its OpenID Connect service",
                },
            );
        }
    }
    let methods = metadata
        .get("code_challenge_methods_supported")
        .and_then(Value::as_array);
    if methods.is_some_and(|methods| !methods.iter().any(|method| method == "S256")) {
        report.warn(
            STEP,
            format!("{id}: it does not announce PKCE with S256; it is used all the same"),
        );
    }
    let answers = metadata
        .get("authorization_response_iss_parameter_supported")
        .and_then(Value::as_bool);
    if answers != Some(true) {
        report.note(STEP, format!("{id}: it does not name itself in its answers (RFC 9207); mix-ups are kept out by one redirect and state for each sign-in"));
    }
}
