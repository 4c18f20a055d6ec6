//! Where a link or a resource leads, read as a browser reads it.

/// What an address is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// On the same site, or inside the text: nothing is fetched from elsewhere.
    Here,
    /// Data inside the address that is shown and not run.
    Picture,
    /// Runs code or is a page of its own.
    Runs,
    /// Elsewhere.
    Remote {
        host: String,
        /// Path, query and fragment.
        rest: String,
    },
}

/// A value in a query that is longer than this carries data.
const LONG: usize = 48;

impl Target {
    pub(super) fn of(address: &str) -> Self {
        let address = decoded(address);
        // Browsers drop tabs and line ends inside an address (WHATWG URL §4.4), and
        // controls and spaces around it.
        let address: String = address
            .trim_matches(|c: char| c.is_whitespace() || c.is_control())
            .chars()
            .filter(|c| !c.is_control())
            .collect();
        let lower = address.to_ascii_lowercase();
        let scheme = lower
            .find(':')
            .filter(|at| {
                lower
                    .bytes()
                    .take(*at)
                    .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'-' | b'.'))
                    && lower.starts_with(|c: char| c.is_ascii_alphabetic())
            })
            .and_then(|at| lower.get(..at));
        match scheme {
            Some("javascript" | "vbscript" | "livescript" | "mocha") => Self::Runs,
            Some("data") => {
                let picture = ["png", "jpeg", "jpg", "gif", "webp", "avif", "bmp"]
                    .iter()
                    .any(|kind| lower.starts_with(&format!("data:image/{kind}")));
                if picture { Self::Picture } else { Self::Runs }
            }
            Some("http" | "https" | "ftp" | "ws" | "wss" | "file") => {
                let rest = address
                    .get(scheme.map_or(0, str::len) + 1..)
                    .unwrap_or_default();
                Self::at_host(rest.trim_start_matches(['/', '\\']))
            }
            Some(_) if lower.contains("://") => {
                Self::at_host(address.split_once("://").map_or("", |(_, rest)| rest))
            }
            Some(_) => Self::Here,
            None if address.starts_with(['/', '\\'])
                && address
                    .get(1..)
                    .is_some_and(|rest| rest.starts_with(['/', '\\'])) =>
            {
                Self::at_host(address.trim_start_matches(['/', '\\']))
            }
            None => Self::Here,
        }
    }

    fn at_host(rest: &str) -> Self {
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at_checked(end).unwrap_or((rest, ""));
        let host = authority.rsplit('@').next().unwrap_or_default();
        let host = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
            _ => host,
        };
        let host = host.trim_end_matches('.').to_lowercase();
        if host.is_empty() {
            return Self::Here;
        }
        Self::Remote {
            host,
            rest: rest.to_owned(),
        }
    }

    /// Whether a renderer would fetch it from a host that is not allowed.
    pub(super) fn is_fetched(&self, domains: &[String]) -> bool {
        matches!(self, Self::Remote { host, .. } if !is_allowed(host, domains))
    }

    pub(super) fn runs(&self) -> bool {
        *self == Self::Runs
    }

    /// Whether its query or fragment holds more than a page needs to be named.
    pub(super) fn carries_data(&self, domains: &[String]) -> bool {
        let Self::Remote { host, rest } = self else {
            return false;
        };
        let query = rest.split_once(['?', '#']).map_or("", |(_, query)| query);
        !is_allowed(host, domains)
            && query
                .split(['&', ';', '#'])
                .map(|pair| pair.split_once('=').map_or(pair, |(_, value)| value))
                .any(is_data)
    }

    pub(super) fn host(&self) -> Option<String> {
        match self {
            Self::Remote { host, .. } => Some(host.clone()),
            _ => None,
        }
    }
}

/// A long value without words in it: encoded, not written.
fn is_data(value: &str) -> bool {
    value.len() >= LONG
        && value.bytes().any(|b| b.is_ascii_digit())
        && value
            .split(['+', '%', ' ', '-', '.', '/'])
            .any(|word| word.len() >= LONG / 2)
        || value.contains("[REDACTED:")
}

/// Whether the host is one of the domains or below one.
pub(super) fn is_allowed(host: &str, domains: &[String]) -> bool {
    domains.iter().any(|domain| {
        host.strip_suffix(domain.as_str())
            .is_some_and(|head| head.is_empty() || head.ends_with('.'))
    })
}

/// HTML's character references that an address could be written with.
pub(super) fn decoded(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        let (plain, tail) = rest.split_at(at);
        out.push_str(plain);
        let (c, len) = reference(tail).unwrap_or(('&', 1));
        out.push(c);
        rest = tail.get(len..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// Named references that an address may be written with.
const NAMED: &[(&str, char)] = &[
    ("&colon;", ':'),
    ("&sol;", '/'),
    ("&Tab;", '\t'),
    ("&NewLine;", '\n'),
    ("&amp;", '&'),
    ("&lpar;", '('),
    ("&rpar;", ')'),
    ("&period;", '.'),
    ("&quot;", '"'),
    ("&apos;", '\''),
    ("&lt;", '<'),
    ("&gt;", '>'),
    ("&nbsp;", ' '),
    ("&equals;", '='),
    ("&quest;", '?'),
];

fn reference(text: &str) -> Option<(char, usize)> {
    if let Some(body) = text.strip_prefix("&#") {
        let (radix, body) = match body.strip_prefix(['x', 'X']) {
            Some(body) => (16, body),
            None => (10, body),
        };
        let len = body
            .bytes()
            .take(8)
            .take_while(|b| char::from(*b).is_digit(radix))
            .count();
        let code = u32::from_str_radix(body.get(..len)?, radix).ok()?;
        let end = text.len() - body.len() + len;
        let semicolon = usize::from(text.get(end..)?.starts_with(';'));
        return Some((char::from_u32(code)?, end + semicolon));
    }
    NAMED
        .iter()
        .find(|(name, _)| text.starts_with(name))
        .map(|(name, c)| (*c, name.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_a_browser_reads_them() {
        let host = |address: &str| Target::of(address).host();
        for address in [
            "https://evil.example/p?d=1",
            " https://evil.example/p ",
            "//evil.example/p",
            "https&#58;//evil.example/p",
            "HTTPS://user@EVIL.example:8443/p",
            "/\\evil.example/p",
            "ht\ntps://evil.example/p",
            "https:evil.example/p",
            "https://evil.example./p",
        ] {
            assert_eq!(host(address).as_deref(), Some("evil.example"), "{address}");
        }
        for address in [
            "docs/a.png",
            "/a/b",
            "#top",
            "mailto:a@b.example",
            "",
            "C:\\x",
        ] {
            assert_eq!(Target::of(address), Target::Here, "{address}");
        }
        for address in [
            "javascript:alert(1)",
            "java\tscript:x",
            "&#x6A;avascript:x",
            " vbscript:x",
            "data:text/html;base64,x",
            "data:image/svg+xml,x",
        ] {
            assert!(Target::of(address).runs(), "{address}");
        }
        assert_eq!(Target::of("data:image/png;base64,iVBO"), Target::Picture);
    }

    #[test]
    fn a_domain_allows_what_is_below_it_only() {
        let domains = ["images.example.com".to_owned()];
        let fetched = |address: &str| Target::of(address).is_fetched(&domains);
        assert!(!fetched("https://images.example.com/x.png"));
        assert!(!fetched("https://a.images.example.com/x.png"));
        assert!(fetched("https://images.example.com.evil.example/x"));
        assert!(fetched("https://evilimages.example.com/x"));
        assert!(fetched("https://images.example.com@evil.example/x"));
    }

    #[test]
    fn long_values_carry_data() {
        let carries = |address: &str| Target::of(address).carries_data(&[]);
        let data = "O59W1BwjIs2W6aOJsdW7Mff0wMYxUsVeQHZdXuox6vR5d2cs64UIsMUr";
        assert!(carries(&format!("https://evil.example/?q={data}")));
        assert!(!carries("https://docs.example/guide?page=2#setup"));
        assert!(!carries(
            "https://docs.example/search?q=how+to+set+up+the+thing+that+does+it+all+for+me"
        ));
    }
}
