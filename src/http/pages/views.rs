//! What each page is made of. Everything in here is text that may be shown.

use askama::Template;
use time::OffsetDateTime;
use time::macros::format_description;

use super::Frame;
use crate::oauth::{
    AuthorizationRequest, BASE_SCOPE, ClientFacts, ClientKind, OFFLINE_ACCESS, RedirectKind,
};
use crate::sanitize::shown;

/// Longest name of an app or a person that is shown, in drawn characters.
const MAX_NAME: usize = 60;
/// Tools that are named before the rest is counted.
const MAX_TOOLS: usize = 12;

/// May this app act in your name?
#[derive(Debug, Template)]
#[template(path = "consent.html")]
pub(in crate::http) struct ConsentPage {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) client: ClientView,
    pub(in crate::http) target: Target,
    pub(in crate::http) scopes: Vec<ScopeView>,
    /// The tenant, where the endpoint fixes it.
    pub(in crate::http) tenant: Option<String>,
    /// Who is signed in, where approving needs no further sign-in.
    pub(in crate::http) person: Option<String>,
    /// What comes after approving, otherwise.
    pub(in crate::http) next: String,
    pub(in crate::http) flow: String,
}

/// Who are you?
#[derive(Debug, Template)]
#[template(path = "sign_in.html")]
pub(in crate::http) struct SignInPage {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) client: Option<String>,
    /// Whether a page elsewhere comes next.
    pub(in crate::http) goes_on: bool,
    pub(in crate::http) problem: Option<String>,
    pub(in crate::http) with_password: bool,
    pub(in crate::http) username: String,
    pub(in crate::http) flow: String,
}

/// What is left to decide after somebody has signed in.
#[derive(Debug, Template)]
#[template(path = "choose.html")]
pub(in crate::http) struct ChoosePage {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) client: String,
    pub(in crate::http) person: String,
    /// The tenant that was chosen; empty while it is asked for.
    pub(in crate::http) tenant: String,
    /// Tenants to choose from; empty where one is chosen.
    pub(in crate::http) tenants: Vec<String>,
    pub(in crate::http) offers: Vec<Offer>,
    pub(in crate::http) narrowed: Vec<ScopeView>,
    pub(in crate::http) flow: String,
}

/// Something to read: what went wrong and what to do, or that all is well.
#[derive(Debug, Template)]
#[template(path = "message.html")]
pub(in crate::http) struct Message {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) title: String,
    pub(in crate::http) paragraphs: Vec<String>,
    pub(in crate::http) detail: Option<String>,
    pub(in crate::http) link: Option<Link>,
}

/// The one thing that a message offers.
#[derive(Debug)]
pub(in crate::http) struct Link {
    pub(in crate::http) href: String,
    pub(in crate::http) text: &'static str,
}

/// What has been let in.
#[derive(Debug, Template)]
#[template(path = "account.html")]
pub(in crate::http) struct AccountPage {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) person: String,
    pub(in crate::http) tenant: Option<String>,
    /// What the person may administer, a sentence each.
    pub(in crate::http) roles: Vec<String>,
    pub(in crate::http) apps: Vec<App>,
    pub(in crate::http) done: Option<&'static str>,
    pub(in crate::http) token: String,
}

/// Somewhere else next?
#[derive(Debug, Template)]
#[template(path = "continue.html")]
pub(in crate::http) struct ContinuePage {
    pub(in crate::http) frame: Frame,
    pub(in crate::http) host: String,
    pub(in crate::http) upstream: String,
    pub(in crate::http) tenant: String,
    pub(in crate::http) person: String,
    /// The whole address, cut.
    pub(in crate::http) url: String,
    pub(in crate::http) id: String,
    pub(in crate::http) token: String,
}

/// A connected app.
#[derive(Debug)]
pub(in crate::http) struct App {
    pub(in crate::http) grant: String,
    pub(in crate::http) name: String,
    pub(in crate::http) proof: Proof,
    pub(in crate::http) place: String,
    pub(in crate::http) tenant: Option<String>,
    pub(in crate::http) scopes: String,
    pub(in crate::http) since: Moment,
    pub(in crate::http) used: Option<Moment>,
}

/// An app that asks.
#[derive(Debug)]
pub(in crate::http) struct ClientView {
    pub(in crate::http) name: String,
    pub(in crate::http) proof: Proof,
}

/// What stands behind an app's name.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) enum Proof {
    /// Its own word.
    None,
    /// A document at this host.
    Document(String),
    /// The configuration.
    Configured,
}

/// Where the answer goes.
#[derive(Debug)]
pub(in crate::http) struct Target {
    pub(in crate::http) host: String,
    pub(in crate::http) note: &'static str,
    pub(in crate::http) warning: Option<&'static str>,
}

/// A scope in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::http) struct ScopeView {
    pub(in crate::http) name: String,
    pub(in crate::http) words: String,
}

/// A scope with what it opens.
#[derive(Debug)]
pub(in crate::http) struct Offer {
    pub(in crate::http) scope: ScopeView,
    pub(in crate::http) changes: bool,
    pub(in crate::http) tools: Vec<String>,
}

/// A time.
#[derive(Debug, PartialEq, Eq)]
pub(in crate::http) struct Moment {
    pub(in crate::http) machine: String,
    pub(in crate::http) words: String,
}

impl ClientView {
    pub(in crate::http) fn of(client: &ClientFacts) -> Self {
        Self {
            name: name(&client.name),
            proof: Proof::of(client.kind, client.document_host.as_deref()),
        }
    }
}

impl Proof {
    pub(in crate::http) fn of(kind: ClientKind, document_host: Option<&str>) -> Self {
        match (kind, document_host) {
            (ClientKind::Configured, _) => Self::Configured,
            (ClientKind::Document, Some(host)) => Self::Document(shown(host, 253)),
            _ => Self::None,
        }
    }
}

/// A name of somebody's choosing, fit for a sentence.
pub(in crate::http) fn name(text: &str) -> String {
    let name = shown(text, MAX_NAME);
    if name.is_empty() {
        "An app without a name".to_owned()
    } else {
        name
    }
}

impl Target {
    pub(in crate::http) fn of(request: &AuthorizationRequest) -> Self {
        let (note, warning) = match request.client.redirect {
            RedirectKind::Https => ("a website", None),
            RedirectKind::Loopback => (
                "a program on this computer",
                Some(
                    "Approve only if you started this yourself, just now, on this computer: \
                     any program that runs here could be the one waiting.",
                ),
            ),
            RedirectKind::PrivateUse => (
                "an app on this device that opens such links",
                Some(
                    "Approve only if you started this yourself, just now, on this device: \
                     any app can claim such links.",
                ),
            ),
        };
        Self {
            host: shown(&request.client.redirect_host, 253),
            note,
            warning,
        }
    }
}

impl ScopeView {
    /// A scope, in the operator's words where there are some.
    pub(in crate::http) fn of(scope: &str, configured: Option<&str>) -> Self {
        let name = shown(scope, MAX_NAME);
        let words = if let Some(words) = configured {
            shown(words, 200)
        } else if scope == BASE_SCOPE {
            "See and use the tools that your organisation gives you".to_owned()
        } else if scope == OFFLINE_ACCESS {
            "Stay signed in until you take this back".to_owned()
        } else {
            format!("Use tools that need “{name}”")
        };
        Self { name, words }
    }

    /// Whether the words leave the scope's own name out.
    pub(in crate::http) fn shows_name(&self) -> bool {
        !matches!(&*self.name, BASE_SCOPE | OFFLINE_ACCESS) && !self.words.contains(&self.name)
    }
}

impl Offer {
    pub(in crate::http) fn tools_in_words(&self) -> String {
        let named: Vec<&str> = self
            .tools
            .iter()
            .take(MAX_TOOLS)
            .map(String::as_str)
            .collect();
        let more = self.tools.len() - named.len();
        let named = named.join(", ");
        if more == 0 {
            named
        } else {
            format!("{named} and {more} more")
        }
    }
}

impl Moment {
    pub(in crate::http) fn of(at: OffsetDateTime, now: OffsetDateTime) -> Self {
        let machine = at.format(format_description!(
            "[year]-[month]-[day]T[hour]:[minute]:[second]Z"
        ));
        let day = at.format(format_description!(
            "[day padding:none] [month repr:long] [year]"
        ));
        let passed = now - at;
        let count = |count: i64, one: &str| {
            let s = if count == 1 { "" } else { "s" };
            format!("{count} {one}{s} ago")
        };
        let words = match (
            passed.whole_minutes(),
            passed.whole_hours(),
            passed.whole_days(),
        ) {
            (..=0, _, _) => "just now".to_owned(),
            (minutes, 0, _) => count(minutes, "minute"),
            (_, hours, 0) => count(hours, "hour"),
            (_, _, days @ ..=13) => count(days, "day"),
            _ => format!("on {}", day.unwrap_or_default()),
        };
        Self {
            machine: machine.unwrap_or_default(),
            words,
        }
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::*;

    #[test]
    fn times_are_told_as_people_tell_them() {
        let now = datetime!(2026-11-30 12:00:00 UTC);
        for (ago, words) in [
            (Duration::seconds(-5), "just now"),
            (Duration::seconds(20), "just now"),
            (Duration::minutes(1), "1 minute ago"),
            (Duration::hours(5), "5 hours ago"),
            (Duration::days(3), "3 days ago"),
            (Duration::days(60), "on 1 October 2026"),
        ] {
            assert_eq!(Moment::of(now - ago, now).words, words);
        }
        assert_eq!(Moment::of(now, now).machine, "2026-11-30T12:00:00Z");
    }

    #[test]
    fn scopes_are_told_in_words_and_long_lists_of_tools_are_cut() {
        assert!(!ScopeView::of("mcp", None).words.contains("mcp"));
        assert!(ScopeView::of("crm.admin", None).words.contains("crm.admin"));
        let told = ScopeView::of("crm.admin", Some("Delete customers"));
        assert!(told.words == "Delete customers" && told.shows_name());
        let offer = |tools: usize| Offer {
            scope: ScopeView::of("x", None),
            changes: false,
            tools: (0..tools).map(|n| format!("t{n}")).collect(),
        };
        assert_eq!(offer(2).tools_in_words(), "t0, t1");
        assert!(offer(20).tools_in_words().ends_with("t11 and 8 more"));
    }

    #[test]
    fn whatever_an_app_calls_itself_stays_text() {
        let frame = Frame::of("https://gw.example.com");
        let hostile = "</title><script>alert(1)</script>\u{202e}\u{200b}&\"'";
        let page = ConsentPage {
            frame,
            client: ClientView {
                name: name(hostile),
                proof: Proof::None,
            },
            target: Target {
                host: "127.0.0.1:5".to_owned(),
                note: "",
                warning: None,
            },
            scopes: vec![ScopeView::of("<b>", None)],
            tenant: Some("<i>".to_owned()),
            person: Some("<u>".to_owned()),
            next: String::new(),
            flow: "\"><img>".to_owned(),
        };
        let html = page.render().unwrap();
        for bad in [
            "<script", "<b>", "<i>", "<u>", "<img", "\u{202e}", "\u{200b}",
        ] {
            assert!(!html.contains(bad), "{bad}");
        }
        assert!(html.contains("&#60;script&#62;alert(1)"));
        assert_eq!(name("\u{200b}\u{202e}"), "An app without a name");
    }
}
