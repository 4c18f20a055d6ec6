//! Pages for people: rendering and the headers that every one of them has. They
//! need no JavaScript, load nothing from elsewhere, and are framed by nobody.
//!
//! What is shown of others (names of apps, hosts) is escaped by the templates and
//! made fit by `sanitize::shown` where it is put into a page.

mod assets;
mod views;

use askama::Template;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::base::path_of;

pub(super) use assets::asset;
pub(super) use views::{
    AccountPage, App, ChoosePage, ClientView, ConsentPage, ContinuePage, Link, Message, Moment,
    Offer, Proof, ScopeView, SignInPage, Target, name,
};

/// What all pages have in common.
#[derive(Clone, Debug)]
pub(super) struct Frame {
    /// Where the style sheet is.
    pub(super) style: String,
    /// Where the icon is.
    pub(super) icon: String,
    /// What paths of ours begin with: the path of `public_url`.
    pub(super) base: String,
    /// What the service is called: its host.
    pub(super) service: String,
}

impl Frame {
    /// For a service whose URLs begin with `base`.
    pub(super) fn of(base: &str) -> Self {
        let path = path_of(base).trim_end_matches('/');
        let service = base.split_once("://").map_or(base, |(_, rest)| rest);
        let service = service.split('/').next().unwrap_or_default();
        Self {
            style: format!("{path}{}", assets::style_path()),
            icon: format!("{path}{}", assets::icon_path()),
            base: path.to_owned(),
            service: service.to_owned(),
        }
    }
}

/// Where the forms of a page may lead. Chromium holds `form-action` against every
/// redirect that follows, those of identity providers and apps included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Forms<'a> {
    /// It has none that lead away.
    Own,
    /// Through identity providers (whose own detours nobody knows) to this redirect.
    Leading {
        /// The app's redirect; none where the way ends with us.
        redirect_uri: Option<&'a str>,
        /// Whether some identity provider is at plain http: development.
        plain: bool,
    },
}

impl Forms<'_> {
    fn sources(self) -> String {
        let Self::Leading {
            redirect_uri,
            plain,
        } = self
        else {
            return "'self'".to_owned();
        };
        let mut sources = "'self' https:".to_owned();
        if plain {
            sources.push_str(" http:");
        }
        match redirect_uri.and_then(|uri| uri.split_once(':')) {
            None | Some(("https", _)) => {}
            // CSP has no way to write an IPv6 address.
            Some(("http", rest)) if rest.starts_with("//[") => sources.push_str(" http:"),
            Some(("http", _)) => sources.push_str(" http://127.0.0.1:* http://localhost:*"),
            Some((scheme, _)) => {
                sources.push(' ');
                sources.push_str(scheme);
                sources.push(':');
            }
        }
        sources
    }
}

/// A page as an answer.
pub(super) fn page<T: Template>(status: StatusCode, template: &T, forms: Forms<'_>) -> Response {
    let Ok(html) = template.render() else {
        // Writing into a String does not fail.
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let mut response = (status, html).into_response();
    let policy = format!(
        "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action {}; \
         frame-ancestors 'none'",
        forms.sources()
    );
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/html; charset=utf-8"),
    );
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    guard(headers);
    response
}

/// The headers of every answer on the way of a sign-in, redirects included. Without
/// a referrer browsers would send `Origin: null` with our own forms, so within the
/// service there is one.
pub(super) fn guard(headers: &mut HeaderMap) {
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
    ] {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
}

/// Sends the browser on.
pub(super) fn onward(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    let headers = response.headers_mut();
    guard(headers);
    match HeaderValue::from_str(location) {
        Ok(location) => {
            headers.insert(header::LOCATION, location);
            response
        }
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_lead_only_where_the_way_goes() {
        let to = |redirect_uri| Forms::Leading {
            redirect_uri,
            plain: false,
        };
        for (forms, right) in [
            (Forms::Own, "'self'"),
            (to(None), "'self' https:"),
            (to(Some("https://app.example.com/cb")), "'self' https:"),
            (
                to(Some("http://127.0.0.1:5/cb")),
                "'self' https: http://127.0.0.1:* http://localhost:*",
            ),
            (to(Some("http://[::1]:5/cb")), "'self' https: http:"),
            (to(Some("cursor://x/cb")), "'self' https: cursor:"),
        ] {
            assert_eq!(forms.sources(), right);
        }
    }

    #[test]
    fn a_frame_follows_the_public_url() {
        let frame = Frame::of("https://example.com:8443/gw/");
        assert_eq!((&*frame.base, &*frame.service), ("/gw", "example.com:8443"));
        assert!(frame.style.starts_with("/gw/assets/style-"));
    }
}
