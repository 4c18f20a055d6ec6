//! Callers that nobody signs in to: a client's own credentials (RFC 6749 §4.4; MCP
//! extension `oauth-client-credentials`) and assertions of an identity provider (RFC 7523
//! §2.1; enterprise-managed authorization, workload identity).

use std::path::Path;

use super::registration::{Client, key_of, secret_of};
use super::report::Report;
use super::token::{self, Tokens};
use super::web::Web;
use super::{Known, Options};
use crate::secret::Secret;

/// The grant type of assertions.
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const STEP: &str = "machine";

/// A token without a person.
pub(super) async fn token(
    web: &Web,
    options: &Options,
    known: &Known,
    report: &mut Report,
) -> Option<Tokens> {
    let assertion = match &options.assertion_file {
        Some(file) => Some(read(file, report)?),
        None => None,
    };
    let secret = secret_of(options, report)?;
    let key = key_of(options, report)?;
    if assertion.is_none() && secret.is_none() && key.is_none() {
        report.fail(
            STEP,
            "a machine has to prove who it is: --client-secret-file or --client-key-file",
        );
        return None;
    }
    let client = Client::given(options.client_id.clone()?, secret, key, known);
    report.note(STEP, format!("as {}, by {}", client.id, client.method));
    let mut fields = match &assertion {
        Some(assertion) => vec![
            ("grant_type", JWT_BEARER),
            ("assertion", assertion.expose().as_str()),
        ],
        None => vec![("grant_type", "client_credentials")],
    };
    fields.push(("resource", &known.resource));
    if let Some(scopes) = &known.scopes {
        fields.push(("scope", scopes));
    }
    let page = match token::ask(web, known, &client, &fields).await? {
        Ok(page) => page,
        Err(why) => {
            report.fail(STEP, format!("the token endpoint is not answered: {why}"));
            return None;
        }
    };
    if page.status != 200 {
        report.fail(STEP, format!("no token: {}", page.refusal()));
        return None;
    }
    let tokens = token::judge(&page, report)?;
    if tokens.has_refresh() {
        report.warn(
            STEP,
            "a refresh token for a caller that can ask anew at any time (RFC 6749 §4.4.3)",
        );
    }
    Some(tokens)
}

fn read(file: &Path, report: &mut Report) -> Option<Secret<String>> {
    match std::fs::read_to_string(file) {
        Ok(text) => Some(Secret::new(text.trim().to_owned())),
        Err(why) => {
            report.fail(STEP, format!("{} cannot be read: {why}", file.display()));
            None
        }
    }
}
