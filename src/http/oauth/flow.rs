//! Where a sign-in stands, sealed: in a hidden field of the page that asks, or in a
//! cookie while the browser is at an identity provider. Nothing of it is stored.
//!
//! It is bound to the browser by a cookie, so that what one browser was asked no
//! other can answer (the confused deputy, RFC 9700 §4.7, MCP Security Best
//! Practices). The field is the form's synchroniser token at the same time.

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::cookies::{Jar, MAX_COOKIE};
use super::visit::Visit;
use crate::clock;
use crate::ids::{ProviderId, TenantId};
use crate::oauth::AuthorizationRequest;
use crate::oauth::federation::{Asking, Secrets};

/// How long one question waits for its answer, in seconds. Reading a page and
/// finding a second factor take a while.
pub(super) const LIFETIME: i64 = 15 * 60;

/// The cookie that says which browser this is.
const BROWSER: &str = "toolgate-browser";
/// The cookie that says who is signed in.
const SIGN_IN: &str = "toolgate-sign-in";
/// What names of cookies begin with that wait for a provider's answer.
const AT_PROVIDER: &str = "toolgate-at-";
/// Sign-ins of one browser that may be at providers at the same time.
const AT_ONCE: usize = 4;

/// What a sign-in is for.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Goal {
    /// An app's request.
    App(Box<AuthorizationRequest>),
    /// A person's own page.
    Account,
    /// A page elsewhere that a tool server wants opened.
    Continue(Uuid),
}

/// What is asked at the moment.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Step {
    /// Whether the app may; by whom, where somebody is signed in and that is enough.
    Consent { signed_in: Option<Uuid> },
    /// Who the person is.
    SignIn { consented: bool, asking: Asking },
    /// Which tenant, or which scopes in one.
    Choose {
        signed_in: Uuid,
        tenant: Option<TenantId>,
    },
    /// What the provider says.
    AtProvider {
        provider: ProviderId,
        secrets: Secrets,
        consented: bool,
    },
    /// Nothing: it lets a person act on their own page.
    Acting { signed_in: Uuid },
}

/// Where a sign-in stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Flow {
    pub(super) goal: Goal,
    pub(super) step: Step,
    until: i64,
}

/// A browser, and the cookie that makes it known, where it is new.
pub(super) struct Browser {
    id: [u8; 32],
    fresh: Option<String>,
}

impl Flow {
    pub(super) fn new(visit: &Visit, goal: Goal, step: Step) -> Self {
        let now = visit.site().server.clock().unix_seconds();
        Self {
            goal,
            step,
            until: now + LIFETIME,
        }
    }

    /// The flow as a text that only this browser can send back.
    pub(super) fn seal(&self, visit: &Visit, browser: &Browser) -> String {
        let json = serde_json::to_vec(self).unwrap_or_default();
        visit.site().server.cookies().seal(&json, &browser.id)
    }

    /// What such a text says, if it is this browser's and not too old.
    pub(super) fn open(visit: &Visit, text: &str) -> Option<Self> {
        let browser = Browser::known(visit)?;
        let json = visit.site().server.cookies().open(text, &browser.id).ok()?;
        let flow: Self = serde_json::from_slice(&json).ok()?;
        let now = visit.site().server.clock().unix_seconds();
        (now < flow.until).then_some(flow)
    }
}

impl Browser {
    /// The browser, made known where it is new.
    pub(super) fn of(visit: &Visit) -> Self {
        Self::known(visit).unwrap_or_else(|| {
            let secret = clock::random::<32>();
            let sealer = visit.site().server.cookies();
            Self {
                id: id(&secret),
                fresh: Some(sealer.seal(&secret, BROWSER.as_bytes())),
            }
        })
    }

    /// The browser, if it brought our cookie.
    fn known(visit: &Visit) -> Option<Self> {
        let cookie = visit.cookies.get(BROWSER)?;
        let sealer = visit.site().server.cookies();
        let secret = sealer.open(cookie, BROWSER.as_bytes()).ok()?;
        Some(Self {
            id: id(&secret),
            fresh: None,
        })
    }

    /// Makes it known.
    pub(super) fn put(self, jar: &mut Jar) {
        if let Some(cookie) = &self.fresh {
            jar.set(BROWSER, cookie, None);
        }
    }
}

/// Keeps a flow while the browser is at a provider. `false` where it does not fit.
pub(super) fn keep(visit: &Visit, flow: &Flow, state: &str, jar: &mut Jar) -> bool {
    let browser = Browser::of(visit);
    let text = flow.seal(visit, &browser);
    let name = cookie_of(state);
    if name.len() + text.len() > MAX_COOKIE {
        return false;
    }
    // Ways that were begun and left would fill the browser's requests.
    let waiting = visit.cookies.beginning(AT_PROVIDER);
    for name in waiting.iter().skip(AT_ONCE - 1) {
        jar.forget(&format!("{AT_PROVIDER}{name}"));
    }
    jar.set(&name, &text, Some(LIFETIME));
    browser.put(jar);
    true
}

/// The flow that waits for this answer, in this browser. It waits no longer.
pub(super) fn kept(visit: &Visit, state: &str, jar: &mut Jar) -> Option<Flow> {
    let name = cookie_of(state);
    let text = visit.cookies.get(&name)?;
    let flow = Flow::open(visit, text);
    jar.forget(&name);
    flow
}

/// Remembers who is signed in.
pub(super) fn remember(visit: &Visit, signed_in: Uuid, jar: &mut Jar) {
    let sealer = visit.site().server.cookies();
    let text = sealer.seal(signed_in.as_bytes(), SIGN_IN.as_bytes());
    let seconds = crate::oauth::sign_ins::LIFETIME.whole_seconds();
    jar.set(SIGN_IN, &text, Some(seconds));
}

/// Who is signed in, as the cookie says.
pub(super) fn remembered(visit: &Visit) -> Option<Uuid> {
    let cookie = visit.cookies.get(SIGN_IN)?;
    let sealer = visit.site().server.cookies();
    let bytes = sealer.open(cookie, SIGN_IN.as_bytes()).ok()?;
    Uuid::from_slice(&bytes).ok()
}

/// Forgets who is signed in.
pub(super) fn forget(jar: &mut Jar) {
    jar.forget(SIGN_IN);
}

/// A name that is found by `state` and tells nothing of it.
fn cookie_of(state: &str) -> String {
    let digest = digest(&SHA256, state.as_bytes());
    let short = digest.as_ref().get(..9).unwrap_or_default();
    format!("{AT_PROVIDER}{}", URL_SAFE_NO_PAD.encode(short))
}

fn id(secret: &[u8]) -> [u8; 32] {
    let mut id = [0; 32];
    id.copy_from_slice(digest(&SHA256, secret).as_ref());
    id
}
