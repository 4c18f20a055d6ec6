//! Callers that nobody signs in to: a client's own credentials (RFC 6749 §4.4; MCP
//! extension `oauth-client-credentials`) and assertions of an identity provider (RFC 7523
//! §2.1; enterprise-managed authorization, workload identity).

use std::path::PathBuf;

use clap::Args;

use super::Known;
use super::registration::{Client, key_of, read, secret_of};
use super::report::Report;
use super::token::{self, Tokens};
use super::web::Web;

/// The grant type of assertions.
pub(super) const JWT_BEARER: &str = "urn:ietf:params:oauth:grant-type:jwt-bearer";
const STEP: &str = "machine";

/// What only callers without a person need.
#[derive(Debug, Args)]
#[group(skip)]
pub(super) struct Options {
    /// File with the client's private key (PEM), for signed assertions of its own.
    #[arg(long, requires = "client_id", conflicts_with = "client_secret_file")]
    pub(super) client_key_file: Option<PathBuf>,
    /// As a machine, which nobody signs in to (`client_credentials`); needs the client.
    #[arg(long, requires = "client_id", conflicts_with_all = ["sign_in", "read_only"])]
    machine: bool,
    /// With the assertion in this file, an ID-JAG or a workload's token (`jwt-bearer`).
    #[arg(long, requires = "client_id", conflicts_with_all = ["machine", "sign_in", "read_only"])]
    assertion_file: Option<PathBuf>,
}

impl Options {
    /// Whether the walk is that of a machine.
    pub(super) fn is_wanted(&self) -> bool {
        self.machine || self.assertion_file.is_some()
    }
}

/// A token without a person.
pub(super) async fn token(
    web: &Web,
    options: &super::Options,
    known: &Known,
    report: &mut Report,
) -> Option<Tokens> {
    let given = || {
        let assertion = options.machine.assertion_file.as_deref();
        let assertion = assertion.map(read).transpose()?;
        Ok::<_, String>((assertion, secret_of(options)?, key_of(options)?))
    };
    let given = given().map_err(|why| report.fail(STEP, why));
    let (assertion, secret, key) = given.ok()?;
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
