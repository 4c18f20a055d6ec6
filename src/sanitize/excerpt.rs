//! Short texts for an error or a log: one line, without markup, without the names
//! and addresses of inner hosts, cut where nothing is torn apart.

use regex::Regex;

/// Stands for the name or address of an inner host.
pub(super) const INTERNAL_HOST: &str = "internal_host";

/// What ends a text that was cut.
const ELLIPSIS: char = '…';

/// Private, loopback, shared and link-local addresses (RFC 1918, 3927, 4193,
/// 6598), names under suffixes that no public resolver knows (RFC 6762, RFC 8375,
/// and those that clusters and companies use), names that call themselves inner,
/// and their ports; and every name with a port, which no link for people has.
const HOSTS: &str = r"(?ix)
    \b(?:
        10(?:\.\d{1,3}){3}
      | 127(?:\.\d{1,3}){3}
      | (?:192\.168|169\.254)(?:\.\d{1,3}){2}
      | 172\.(?:1[6-9]|2\d|3[01])(?:\.\d{1,3}){2}
      | 100\.(?:6[4-9]|[7-9]\d|1[01]\d|12[0-7])(?:\.\d{1,3}){2}
      | (?:[a-z0-9_-]{1,63}\.){0,8}(?:inner|internal|intranet|intra|private|priv|corp|lan)(?:\.[a-z0-9_-]{1,63}){1,8}
      | (?:[a-z0-9_-]{1,63}\.){1,8}(?:internal|intranet|localdomain|local|lan|corp|home\.arpa|svc)
      | localhost
    )\b(?::\d{1,5})?
  | \b(?:[a-z0-9_-]{1,63}\.){1,8}[a-z][a-z0-9-]{1,62}:\d{2,5}\b
  | \[?\b(?:f[cd][0-9a-f]{2}|fe[89ab][0-9a-f])(?::[0-9a-f]{0,4}){2,7}\b\]?(?::\d{1,5})?";

/// The expressions of this file, compiled once.
pub(super) struct Excerpts {
    hosts: Regex,
}

impl Excerpts {
    #[expect(
        clippy::expect_used,
        reason = "the pattern is ours; one that does not compile fails the first test"
    )]
    pub(super) fn new() -> Self {
        Self {
            hosts: Regex::new(HOSTS).expect("the pattern of inner hosts compiles"),
        }
    }

    /// The text without inner hosts, and how many there were.
    pub(super) fn without_hosts(&self, text: &str) -> (String, u64) {
        let count = self.hosts.find_iter(text).count();
        let text = self
            .hosts
            .replace_all(text, format!("[REDACTED:{INTERNAL_HOST}]"))
            .into_owned();
        (text, u64::try_from(count).unwrap_or(u64::MAX))
    }
}

/// All white space as single spaces.
pub(super) fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// At most `max` bytes, with an ellipsis where something is missing. Joined
/// characters and placeholders are kept whole.
pub(super) fn cut(text: String, max: usize) -> String {
    if text.len() <= max {
        return text;
    }
    let mut end = max.saturating_sub(ELLIPSIS.len_utf8());
    while !text.is_char_boundary(end) || is_joined(&text, end) {
        end = end.saturating_sub(1);
        if end == 0 {
            break;
        }
    }
    let head = text.get(..end).unwrap_or_default();
    let torn = head.rfind('[').filter(|open| {
        let placeholder = text.get(*open..).unwrap_or_default();
        placeholder.starts_with("[REDACTED:")
            && placeholder
                .find(']')
                .is_none_or(|close| open + close >= end)
    });
    let head = torn.and_then(|open| head.get(..open)).unwrap_or(head);
    let mut out = head.trim_end().to_owned();
    if max >= ELLIPSIS.len_utf8() {
        out.push(ELLIPSIS);
    }
    out
}

/// Whether the characters on both sides of `at` belong together.
fn is_joined(text: &str, at: usize) -> bool {
    let (Some(head), Some(tail)) = (text.get(..at), text.get(at..)) else {
        return true;
    };
    let extends = |c: char| {
        matches!(c, '\u{300}'..='\u{36f}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}'
            | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}' | '\u{e0100}'..='\u{e01ef}')
    };
    head.ends_with('\u{200d}') || tail.starts_with(extends)
}

/// The readable text of a page that a proxy or a server put in place of an answer;
/// any other text as it is.
pub(super) fn without_markup(text: &str) -> String {
    let head = text
        .get(..text.floor_char_boundary(1024))
        .unwrap_or(text)
        .to_ascii_lowercase();
    let is_page = [
        "<!doctype",
        "<html",
        "<head",
        "<body",
        "<title",
        "<h1",
        "<center",
    ]
    .iter()
    .any(|tag| head.contains(tag));
    if !is_page {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('<') {
        let (plain, tag) = rest.split_at(open);
        out.push_str(plain);
        rest = behind_tag(tag);
        out.push(' ');
    }
    out.push_str(rest);
    entities(&out)
}

/// What follows a tag; of elements that nobody reads, what follows their end.
fn behind_tag(tag: &str) -> &str {
    for element in ["script", "style"] {
        let named = tag
            .get(1..=element.len())
            .is_some_and(|name| name.eq_ignore_ascii_case(element));
        if named {
            let lower = tag.to_ascii_lowercase();
            let close = lower.find(&format!("</{element}")).unwrap_or(tag.len());
            let end = lower
                .get(close..)
                .and_then(|tail| tail.find('>'))
                .map_or(tag.len(), |at| close + at + 1);
            return tag.get(end..).unwrap_or_default();
        }
    }
    let end = tag.find('>').map_or(tag.len(), |at| at + 1);
    tag.get(end..).unwrap_or_default()
}

fn entities(text: &str) -> String {
    text.replace("&nbsp;", " ")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inner_hosts_go_and_public_ones_stay() {
        let excerpts = Excerpts::new();
        let rows = [
            (
                "no route to db-1.internal:5432",
                "no route to [REDACTED:internal_host]",
            ),
            (
                "http://crm.default.svc.cluster.local/x",
                "http://[REDACTED:internal_host]/x",
            ),
            (
                "10.2.0.15 and 192.168.1.1:80",
                "[REDACTED:internal_host] and [REDACTED:internal_host]",
            ),
            (
                "172.16.0.1 not 172.32.0.1",
                "[REDACTED:internal_host] not 172.32.0.1",
            ),
            ("at [fd12:3456::1]:443", "at [REDACTED:internal_host]"),
            (
                "db-07.inner.example.com:5432 refused, as did inner.example.com",
                "[REDACTED:internal_host] refused, as did [REDACTED:internal_host]",
            ),
            (
                "cache-3.eu.example.com:6379 is down",
                "[REDACTED:internal_host] is down",
            ),
            (
                "docs.example.com/a: see 12:30, winner.example.com",
                "docs.example.com/a: see 12:30, winner.example.com",
            ),
            (
                "api.example.com 8.8.8.8 internal error",
                "api.example.com 8.8.8.8 internal error",
            ),
        ];
        for (text, right) in rows {
            assert_eq!(excerpts.without_hosts(text).0, right);
        }
    }

    #[test]
    fn pages_become_their_text() {
        let page = "<!DOCTYPE html><html><head><title>502 Bad Gateway</title><style>a{}</style></head>\
                    <body><h1>502</h1><script>x<y</script><p>nginx &amp; co</p></body></html>";
        assert_eq!(
            one_line(&without_markup(page)),
            "502 Bad Gateway 502 nginx & co"
        );
        assert_eq!(without_markup("a < b and Vec<T>"), "a < b and Vec<T>");
    }

    #[test]
    fn a_cut_tears_nothing_apart() {
        assert_eq!(cut("abcdef".to_owned(), 6), "abcdef");
        assert_eq!(cut("abcdefg".to_owned(), 6), "abc…");
        assert_eq!(cut("ééé".to_owned(), 5), "é…");
        assert_eq!(cut("ab [REDACTED:password] c".to_owned(), 18), "ab…");
        let family = "👨\u{200d}👩\u{200d}👧";
        assert_eq!(cut(format!("a{family}"), 15), "a…");
        assert_eq!(cut("cafe\u{301}stop".to_owned(), 7), "caf…");
        assert_eq!(cut("abc".to_owned(), 0), "");
    }
}
