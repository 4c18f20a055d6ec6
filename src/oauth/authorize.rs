//! The authorization endpoint's rules: from a query to a valid request, or to a
//! refusal, and whether that one may use the redirect (RFC 6749 §4.1.2.1).

use super::clients::{Client, ClientFault};
use super::documents::DocumentFault;
use super::redirect::{self, RedirectKind};
use super::request::{AuthorizationRequest, Prompt, Resource};
use super::settings::BASE_SCOPE;
use super::{Refusal, Site};
use crate::ids::Scope;
use crate::store::StoreError;

/// A request is kept in a sealed cookie; browsers keep at most 4096 bytes of one.
const MAX_REQUEST: usize = 2600;
/// Longest `state`.
const MAX_STATE: usize = 1024;

/// Why there is no request.
#[derive(Debug)]
pub enum AuthorizeFault {
    /// The redirect is the client's: it is told there.
    Redirect(String, Refusal),
    /// The client or its redirect is not certain: the person is told on a page, and
    /// nobody is sent anywhere.
    Page(PageFault),
    /// The database could not be asked.
    Store(StoreError),
}

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PageFault {
    /// `client_id` is missing, repeated, or nobody's.
    UnknownClient,
    /// The client's metadata document is wrong.
    Document(DocumentFault),
    /// `redirect_uri` is missing, repeated, or not the client's.
    Redirect,
}

/// A query's parameters, decoded.
pub type Parameters = [(String, String)];

impl Site<'_> {
    /// Judges a request for authorization. It may come again: nothing is consumed.
    ///
    /// # Errors
    /// [`AuthorizeFault`]
    pub async fn authorization(
        &self,
        parameters: &Parameters,
    ) -> Result<AuthorizationRequest, AuthorizeFault> {
        let id = only(parameters, "client_id")
            .ok()
            .flatten()
            .ok_or(AuthorizeFault::Page(PageFault::UnknownClient))?;
        let client = self.client(id).await.map_err(|fault| match fault {
            ClientFault::Unknown => AuthorizeFault::Page(PageFault::UnknownClient),
            ClientFault::Document(fault) => AuthorizeFault::Page(PageFault::Document(fault)),
            ClientFault::Store(error) => AuthorizeFault::Store(error),
        })?;
        let asked = only(parameters, "redirect_uri")
            .map_err(|()| AuthorizeFault::Page(PageFault::Redirect))?;
        let (redirect_uri, kind) = self
            .redirect_of(&client, asked)
            .ok_or(AuthorizeFault::Page(PageFault::Redirect))?;
        // From here on the redirect is certain.
        let mut request = AuthorizationRequest {
            client: client.facts(&redirect_uri, kind),
            redirect_uri,
            scopes: Vec::new(),
            resource: Resource::root(self.issuer),
            state: None,
            code_challenge: String::new(),
            prompt: Prompt::default(),
            login_hint: None,
            issuer: self.issuer.to_owned(),
        };
        match self.fill(&mut request, &client, parameters) {
            Ok(()) => Ok(request),
            Err(refusal) => Err(AuthorizeFault::Redirect(request.refused(refusal), refusal)),
        }
    }

    /// The client's redirect that is meant. It may be left out where there is one.
    fn redirect_of(&self, client: &Client, asked: Option<&str>) -> Option<(String, RedirectKind)> {
        let uri = match (asked, client.redirect_uris.as_slice()) {
            (Some(asked), registered) => registered
                .iter()
                .any(|known| redirect::matches(known, asked))
                .then_some(asked)?,
            (None, [only]) => only,
            (None, _) => return None,
        };
        let registration = &self.settings.server.registration;
        // Judged again: what may be registered may have changed since.
        let kind = match client.kind {
            super::ClientKind::Configured => redirect::configured_kind(uri)?,
            super::ClientKind::Document | super::ClientKind::Registered => {
                redirect::redirect_kind(uri, &registration.private_use_schemes)
                    .filter(|_| redirect::is_listed(uri, &registration.allow_redirects))?
            }
        };
        Some((uri.to_owned(), kind))
    }

    fn fill(
        &self,
        request: &mut AuthorizationRequest,
        client: &Client,
        parameters: &Parameters,
    ) -> Result<(), Refusal> {
        const REPEATED: Refusal = Refusal::InvalidRequest("a parameter occurs twice");
        let one = |name: &str| only(parameters, name).map_err(|()| REPEATED);
        // First, so that every other refusal can hand it back.
        match one("state")? {
            Some(state) if state.len() > MAX_STATE => {
                return Err(Refusal::InvalidRequest("state is longer than 1024 bytes"));
            }
            state => request.state = state.map(str::to_owned),
        }
        if !client.grants.code {
            return Err(Refusal::UnauthorizedClient);
        }
        match one("response_type")? {
            Some("code") => {}
            Some(_) => return Err(Refusal::UnsupportedResponseType),
            None => return Err(Refusal::InvalidRequest("response_type is missing")),
        }
        if !matches!(one("response_mode")?, None | Some("query")) {
            return Err(Refusal::InvalidRequest("response_mode must be query"));
        }
        if one("request")?.is_some() || one("request_uri")?.is_some() {
            return Err(Refusal::InvalidRequest("request objects are not supported"));
        }
        request.code_challenge = challenge(one("code_challenge")?, one("code_challenge_method")?)?;
        request.resource = self.resource(parameters)?;
        request.scopes = self.scopes(client, one("scope")?)?;
        request.prompt = prompt(one("prompt")?)?;
        request.login_hint = one("login_hint")?
            .filter(|hint| {
                !hint.is_empty() && hint.len() <= 254 && !hint.chars().any(char::is_control)
            })
            .map(str::to_owned);
        let size = serde_json::to_string(request).map_or(usize::MAX, |text| text.len());
        if size > MAX_REQUEST {
            request.state = None;
            return Err(Refusal::InvalidRequest("the request is too long"));
        }
        Ok(())
    }

    fn resource(&self, parameters: &Parameters) -> Result<Resource, Refusal> {
        match only(parameters, "resource") {
            Err(()) => Err(Refusal::InvalidTarget),
            Ok(None) => Ok(Resource::root(self.issuer)),
            Ok(Some(text)) => Resource::named(self.issuer, text).ok_or(Refusal::InvalidTarget),
        }
    }

    /// What can be granted of what is asked for: unknown scopes are dropped, and the
    /// base one stands for none (`rules.md` §4.3).
    fn scopes(&self, client: &Client, asked: Option<&str>) -> Result<Vec<Scope>, Refusal> {
        let mut scopes: Vec<Scope> = Vec::new();
        let mut held_back = false;
        for scope in asked.unwrap_or_default().split_ascii_whitespace() {
            if !self.settings.knows_scope(scope) {
                continue;
            }
            let allowed = client.scopes.is_empty()
                || scope == super::OFFLINE_ACCESS
                || client.scopes.iter().any(|one| one.as_str() == scope);
            held_back |= !allowed;
            if allowed && !scopes.iter().any(|one| one.as_str() == scope) {
                scopes.push(Scope::from(scope));
            }
        }
        let nothing = scopes
            .iter()
            .all(|scope| scope.as_str() == super::OFFLINE_ACCESS);
        if nothing {
            if held_back {
                return Err(Refusal::InvalidScope);
            }
            let usual = match client.scopes.first() {
                Some(first) if !client.scopes.iter().any(|one| one.as_str() == BASE_SCOPE) => {
                    first.clone()
                }
                _ => Scope::from(BASE_SCOPE),
            };
            scopes.insert(0, usual);
        }
        Ok(scopes)
    }
}

/// A parameter's value; an error where it occurs twice. An empty one is as none
/// (RFC 6749 §3.1).
pub(super) fn only<'p>(parameters: &'p Parameters, name: &str) -> Result<Option<&'p str>, ()> {
    let mut found = parameters.iter().filter(|(known, _)| known == name);
    match (found.next(), found.next()) {
        (Some(_), Some(_)) => Err(()),
        (one, _) => Ok(one
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())),
    }
}

/// S256 alone: `plain` protects nobody whose request was read.
fn challenge(challenge: Option<&str>, method: Option<&str>) -> Result<String, Refusal> {
    let challenge = challenge.ok_or(Refusal::InvalidRequest("code_challenge is missing (PKCE)"))?;
    // Without a method it would be `plain` (RFC 7636 §4.3).
    if method != Some("S256") {
        return Err(Refusal::InvalidRequest(
            "code_challenge_method must be S256",
        ));
    }
    let fits = challenge.len() == 43
        && challenge
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
    fits.then(|| challenge.to_owned())
        .ok_or(Refusal::InvalidRequest(
            "code_challenge is not that of S256",
        ))
}

fn prompt(text: Option<&str>) -> Result<Prompt, Refusal> {
    let mut prompt = Prompt::default();
    for word in text.unwrap_or_default().split_ascii_whitespace() {
        match word {
            "none" => prompt.none = true,
            "login" => prompt.login = true,
            "consent" => prompt.consent = true,
            "select_account" => prompt.select_account = true,
            // Unknown ones are left out, as OpenID Connect Core §3.1.2.1 leaves it open.
            _ => {}
        }
    }
    if prompt.none && (prompt.login || prompt.consent || prompt.select_account) {
        return Err(Refusal::InvalidRequest(
            "prompt has none and something else",
        ));
    }
    Ok(prompt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_s256_challenges_are_taken() {
        let good = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
        let long = format!("{good}A");
        for (text, method, fits) in [
            (Some(good), Some("S256"), true),
            (Some(good), Some("plain"), false),
            (Some(good), Some("s256"), false),
            (Some(good), None, false),
            (None, Some("S256"), false),
            (None, None, false),
            (Some("short"), Some("S256"), false),
            (Some(long.as_str()), Some("S256"), false),
            (
                Some("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw+cM"),
                Some("S256"),
                false,
            ),
        ] {
            assert_eq!(challenge(text, method).is_ok(), fits, "{text:?} {method:?}");
        }
    }

    #[test]
    fn prompts_are_read_and_contradictions_refused() {
        assert!(prompt(Some("none login")).is_err());
        assert!(prompt(Some("none")).unwrap().none);
        let both = prompt(Some("login consent whatever")).unwrap();
        assert!(both.login && both.consent && !both.none);
        assert_eq!(prompt(None), Ok(Prompt::default()));
    }

    #[test]
    fn a_parameter_that_occurs_twice_is_no_parameter() {
        let pairs: Vec<(String, String)> = [("a", "1"), ("b", ""), ("a", "1")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .to_vec();
        assert_eq!(only(&pairs, "a"), Err(()));
        assert_eq!(only(&pairs, "b"), Ok(None));
        assert_eq!(only(&pairs, "c"), Ok(None));
    }
}
