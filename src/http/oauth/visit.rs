//! One request of a browser: what it runs under, which browser it is, what it
//! brought; and whether a form that it sent is ours.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::body::to_bytes;
use axum::extract::{ConnectInfo, FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::cookies::{Cookies, Jar};
use crate::http::edge::CallerAddress;
use crate::http::pages::{Frame, ScopeView};
use crate::http::router::not_found;
use crate::http::{Edge, Snapshot};
use crate::oauth::Site;

/// Longest form that is read: a sealed request and some choices.
const MAX_FORM: usize = 64 * 1024;

/// A request of a browser.
pub(in crate::http) struct Visit {
    pub(super) edge: Edge,
    pub(super) snapshot: Arc<Snapshot>,
    /// What our URLs begin with: the issuer.
    pub(super) base: String,
    pub(super) headers: HeaderMap,
    pub(super) address: IpAddr,
    pub(super) cookies: Cookies,
}

impl FromRequestParts<Edge> for Visit {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, edge: &Edge) -> Result<Self, Response> {
        let snapshot = edge.current.load_full();
        if !snapshot.config.authorization_server.enabled {
            return Err(not_found().await);
        }
        let peer = parts.extensions.get::<ConnectInfo<SocketAddr>>();
        let address = parts.extensions.get::<CallerAddress>();
        let (Some(peer), Some(address)) = (peer, address) else {
            return Err(StatusCode::INTERNAL_SERVER_ERROR.into_response());
        };
        let base = snapshot.base.of(&parts.headers, peer.ip());
        Ok(Self {
            cookies: Cookies::of(&parts.headers, base.starts_with("https://")),
            edge: edge.clone(),
            snapshot,
            base,
            headers: parts.headers.clone(),
            address: address.0,
        })
    }
}

impl Visit {
    /// What the rules work with.
    pub(super) fn site(&self) -> Site<'_> {
        Site {
            server: &self.edge.oauth,
            settings: &self.snapshot.oauth,
            issuer: &self.base,
        }
    }

    /// What all pages have in common.
    pub(super) fn frame(&self) -> Frame {
        Frame::of(&self.base)
    }

    /// A scope in words for people.
    pub(super) fn scope(&self, scope: &str) -> ScopeView {
        let words = &self.snapshot.oauth.server.scopes;
        ScopeView::of(scope, words.get(scope).map(String::as_str))
    }

    /// A jar for this answer's cookies.
    pub(super) fn jar(&self) -> Jar {
        Jar::new(self.base.starts_with("https://"))
    }

    /// Where identity providers send browsers back to.
    pub(super) fn callback(&self) -> String {
        format!("{}/oauth/callback", self.base.trim_end_matches('/'))
    }

    /// A path of ours, as browsers ask for it.
    pub(super) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.frame().base)
    }

    /// Whether a form was sent by one of our own pages. Browsers say where a form is
    /// from; what says nothing is no browser that another site could use.
    fn is_from_us(&self) -> bool {
        let text = |name: &str| self.headers.get(name).map(|value| value.to_str().ok());
        if let Some(site) = text("sec-fetch-site")
            && site != Some("same-origin")
        {
            return false;
        }
        let Some(origin) = text(header::ORIGIN.as_str()) else {
            return true;
        };
        let Some((_, authority)) = origin.and_then(|origin| origin.split_once("://")) else {
            return false;
        };
        let own = self.base.split_once("://").map_or("", |(_, rest)| rest);
        let own = own.split('/').next().unwrap_or_default();
        let asked = text(header::HOST.as_str()).flatten();
        authority.eq_ignore_ascii_case(own)
            || asked.is_some_and(|host| authority.eq_ignore_ascii_case(host))
    }
}

/// The fields of a form that one of our pages sent.
pub(in crate::http) struct Form {
    fields: Vec<(String, String)>,
}

impl Form {
    /// A field that occurs once.
    pub(super) fn one(&self, name: &str) -> Option<&str> {
        let mut all = self.all(name);
        let first = all.next();
        if all.next().is_some() { None } else { first }
    }

    /// Every value of a field.
    pub(super) fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let fields = self.fields.iter();
        fields
            .filter(move |(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A visit with a form.
pub(in crate::http) struct Posted {
    pub(super) visit: Visit,
    pub(super) form: Form,
}

impl FromRequest<Edge> for Posted {
    type Rejection = Response;

    async fn from_request(request: Request, edge: &Edge) -> Result<Self, Response> {
        let (mut parts, body) = request.into_parts();
        let visit = Visit::from_request_parts(&mut parts, edge).await?;
        if !visit.is_from_us() {
            return Err(super::problems::foreign_form(&visit));
        }
        let kind = parts.headers.get(header::CONTENT_TYPE);
        let is_form = kind
            .and_then(|kind| kind.to_str().ok())
            .is_some_and(|kind| kind.starts_with("application/x-www-form-urlencoded"));
        if !is_form {
            return Err(StatusCode::UNSUPPORTED_MEDIA_TYPE.into_response());
        }
        let Ok(bytes) = to_bytes(body, MAX_FORM).await else {
            return Err(StatusCode::PAYLOAD_TOO_LARGE.into_response());
        };
        let fields = form_urlencoded::parse(&bytes).into_owned().collect();
        Ok(Self {
            visit,
            form: Form { fields },
        })
    }
}
