//! Secrets told by how they are built: private keys in PEM, JSON Web Tokens,
//! passwords in URLs, credentials behind an authentication scheme, cookies.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memmem;

use super::judge;
use super::literals::starts_free;

const LENIENT: GeneralPurposeConfig = GeneralPurposeConfig::new()
    .with_decode_padding_mode(DecodePaddingMode::Indifferent)
    .with_decode_allow_trailing_bits(true);
const BASE64_URL: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, LENIENT);
const BASE64: GeneralPurpose = GeneralPurpose::new(&STANDARD, LENIENT);

/// A private key without its end is taken up to here.
const LONG_KEY: usize = 16 << 10;

/// Longest part of a token.
const LONG_PART: usize = 16 << 10;

fn run(bytes: &[u8], from: usize, most: usize, of: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(from..).unwrap_or_default();
    rest.iter().take(most).take_while(|b| of(**b)).count()
}

fn is_url_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-')
}

/// Finds the ends of PEM blocks. Ends are looked up in order and each once, so
/// that a text full of beginnings costs no more than its length.
#[derive(Default)]
pub(super) struct Pem {
    end: Option<usize>,
    exhausted: bool,
}

impl Pem {
    fn end_behind(&mut self, text: &str, at: usize) -> Option<usize> {
        if self.end.is_some_and(|end| end >= at) || self.exhausted {
            return self.end.filter(|end| *end >= at);
        }
        let rest = text.as_bytes().get(at..)?;
        self.end = memmem::find(rest, b"-----END ").map(|offset| at + offset);
        self.exhausted = self.end.is_none();
        self.end
    }

    /// The private key that begins at `at`, whole; without an end, what looks like
    /// one. Certificates and public keys are none.
    pub(super) fn private_key(&mut self, text: &str, at: usize) -> Option<Range<usize>> {
        let rest = text.get(at..)?.strip_prefix("-----BEGIN ")?;
        let label_len = run(rest.as_bytes(), 0, 64, |b| b != b'-');
        let label = rest.get(..label_len)?;
        if !label.contains("PRIVATE KEY") || !rest.get(label_len..)?.starts_with("-----") {
            return None;
        }
        let body = at + "-----BEGIN ".len() + label_len + 5;
        let end = match self.end_behind(text, body) {
            Some(end) => {
                let from = end + "-----END ".len();
                let label = run(text.as_bytes(), from, 64, |b| b != b'-' && b != b'\n');
                let dashes = run(text.as_bytes(), from + label, 5, |b| b == b'-');
                from + label + dashes
            }
            None => {
                body + run(text.as_bytes(), body, LONG_KEY, |b| {
                    b.is_ascii_alphanumeric()
                        || b.is_ascii_whitespace()
                        || matches!(b, b'+' | b'/' | b'=' | b'\\' | b':' | b',')
                })
            }
        };
        let solid = text
            .get(body..end)?
            .bytes()
            .take(256)
            .filter(u8::is_ascii_alphanumeric)
            .count();
        (solid >= 40).then_some(at..end)
    }
}

/// Whether the raw bytes behind `-----BEGIN` can be the label of a private key.
pub(super) fn may_be_private_key(bytes: &[u8], end: usize) -> bool {
    let len = run(bytes, end, 64, |b| b != b'-');
    let label = bytes.get(end..end + len).unwrap_or_default();
    let goes_on = |b: &u8| !b.is_ascii() || matches!(b, b'\\' | b'"');
    label.iter().any(goes_on) || memmem::find(label, b"PRIVATE").is_some()
}

/// Whether raw bytes at `eyJ` can be a token's: a header of some length. What
/// decodes to any other JSON is none (a cursor), and most of those are shorter.
pub(super) fn may_be_token(bytes: &[u8], at: usize) -> bool {
    const LOOK: usize = 512;
    let before = at.checked_sub(1).and_then(|at| bytes.get(at));
    if !starts_free(bytes, at) || before.is_some_and(|b| matches!(b, b'_' | b'-')) {
        return false;
    }
    let header = run(bytes, at, LOOK, is_url_byte);
    if header == LOOK {
        return true;
    }
    // Where an escape ends the run, what follows it may go on with it.
    match bytes.get(at + header) {
        Some(b'.') => header >= 12,
        Some(byte) => !byte.is_ascii_graphic() || *byte == b'\\' || *byte == b'"',
        None => true,
    }
}

/// The JSON Web Token (or its encrypted kind) that begins at `at`.
pub(super) fn json_web_token(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    if !starts_free(bytes, at)
        || at
            .checked_sub(1)
            .and_then(|at| bytes.get(at))
            .is_some_and(|b| matches!(b, b'_' | b'-'))
    {
        return None;
    }
    let header = run(bytes, at, LONG_PART, is_url_byte);
    if header < 12 || bytes.get(at + header) != Some(&b'.') {
        return None;
    }
    let decoded = BASE64_URL.decode(text.get(at..at + header)?).ok()?;
    if decoded.first() != Some(&b'{') || memmem::find(&decoded, b"\"alg\"").is_none() {
        return None;
    }
    let mut end = at + header;
    let mut parts = 1;
    while parts < 5 && bytes.get(end) == Some(&b'.') {
        let len = run(bytes, end + 1, LONG_PART, is_url_byte);
        if len == 0 && parts > 1 {
            break;
        }
        end += 1 + len;
        parts += 1;
    }
    (parts >= 2 && end > at + header + 8).then_some(at..end)
}

/// The password of the URL whose `@` is at `at`: `scheme://user:password@host`.
/// A password may hold an `@` itself; the last one before the host counts.
pub(super) fn url_password(text: &str, at: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes();
    let ends = |b: u8| {
        b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`' | b'/' | b'\\')
    };
    let host = run(bytes, at + 1, 256, |b| !ends(b) && b != b'@');
    if host == 0 || bytes.get(at + 1 + host) == Some(&b'@') {
        return None;
    }
    let head = bytes.get(..at)?;
    let back = head
        .iter()
        .rev()
        .take(512)
        .take_while(|b| !ends(**b))
        .count();
    let start = at - back;
    let scheme = text.get(..start)?;
    if !scheme.ends_with("://") && !scheme.ends_with(":\\/\\/") {
        return None;
    }
    let colon = start + memchr::memchr(b':', bytes.get(start..at)?)?;
    is_url_secret(text.get(colon + 1..at)?).then_some(colon + 1..at)
}

fn is_url_secret(password: &str) -> bool {
    let stars = password.bytes().all(|b| b == b'*');
    password.len() >= 2 && !stars && !judge::is_placeholder(password)
}

/// What follows `Bearer` or `Basic ` at `start..end`, and its label where it is a
/// secret.
pub(super) fn scheme_credentials(
    text: &str,
    start: usize,
    end: usize,
) -> Option<(Range<usize>, Option<&'static str>)> {
    let bytes = text.as_bytes();
    let is_basic = text
        .get(start..end)?
        .to_ascii_lowercase()
        .starts_with("basic");
    if !starts_free(bytes, start) {
        return None;
    }
    let gap = run(bytes, end, 4, |b| matches!(b, b' ' | b'\t' | b'+' | b':'));
    let gap = gap
        + if bytes
            .get(end + gap..)
            .is_some_and(|rest| rest.starts_with(b"%20"))
        {
            3
        } else {
            0
        };
    if gap == 0 && !is_basic {
        return None;
    }
    let from = end + gap;
    let len = run(bytes, from, 4096, |b| {
        b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_' | b'~' | b'+' | b'/' | b'=')
    });
    let value = text.get(from..from + len)?;
    // `eyJhbGciOi...` is the beginning of a token, as documents show it.
    let is_cut = value.ends_with("...");
    let value = value.trim_end_matches('.');
    let range = from..from + value.len();
    if is_basic {
        return Some((range, is_basic_pair(value).then_some("basic_auth")));
    }
    let is_secret = !is_cut && judge::is_strong(value);
    Some((range, is_secret.then_some("bearer_token")))
}

/// Base64 of `user:password` (RFC 7617 §2).
fn is_basic_pair(value: &str) -> bool {
    if value.len() < 8 {
        return false;
    }
    let Ok(decoded) = BASE64.decode(value) else {
        return false;
    };
    std::str::from_utf8(&decoded).is_ok_and(|pair| {
        pair.split_once(':').is_some_and(|(_, password)| {
            !password.is_empty()
                && !pair.contains(char::is_control)
                && !judge::is_placeholder(password)
        })
    })
}

/// Attributes of `Set-Cookie` (RFC 6265 §4.1.1 and later ones).
const ATTRIBUTES: &[&str] = &[
    "expires", "max-age", "domain", "path", "samesite", "version", "priority",
];

/// The secret values of the cookies in `range`: of session-like names, or strong
/// by themselves.
pub(super) fn cookies(text: &str, range: Range<usize>) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = range.start;
    for pair in text.get(range).unwrap_or_default().split(';') {
        let start = at;
        at += pair.len() + 1;
        let Some((name, value)) = pair.split_once('=') else {
            continue;
        };
        let from = start + name.len() + 1;
        let name = name.trim().to_ascii_lowercase();
        let value = value.trim_end();
        let trimmed = value.trim_matches('"');
        let is_session = ["sess", "sid", "auth", "token", "jwt", "login", "remember"]
            .iter()
            .any(|word| name.contains(word));
        let secret = trimmed.len() >= 8
            && !judge::is_placeholder(trimmed)
            && (is_session && !judge::is_wordy(trimmed) || judge::is_strong(trimmed));
        if secret && !ATTRIBUTES.contains(&name.as_str()) {
            let lead = value.len() - value.trim_start_matches('"').len();
            found.push(from + lead..from + lead + trimmed.len());
        }
    }
    found
}

/// The end of a header's value that begins at `at`: the line's end, or a quote.
pub(super) fn header_end(text: &str, at: usize) -> usize {
    at + run(text.as_bytes(), at, 4096, |b| {
        !matches!(b, b'\n' | b'\r' | b'\'' | b'"' | b'<' | b'\\')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_private_key_is_taken_whole_or_as_far_as_it_looks_like_one() {
        let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7\n".repeat(3);
        let whole =
            format!("x -----BEGIN RSA PRIVATE KEY-----\n{body}-----END RSA PRIVATE KEY----- y");
        let key = Pem::default().private_key(&whole, 2).unwrap();
        assert_eq!(key, 2..whole.len() - 2);
        let cut = format!("-----BEGIN PRIVATE KEY-----\n{body}");
        assert_eq!(Pem::default().private_key(&cut, 0), Some(0..cut.len()));
        let public = format!("-----BEGIN PUBLIC KEY-----\n{body}-----END PUBLIC KEY-----");
        assert_eq!(Pem::default().private_key(&public, 0), None);
        let empty = "-----BEGIN OPENSSH PRIVATE KEY----------END OPENSSH PRIVATE KEY-----";
        assert_eq!(Pem::default().private_key(empty, 0), None);
    }

    #[test]
    fn a_token_needs_a_header_that_names_an_algorithm() {
        let token = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.c2lnbmF0dXJl";
        assert_eq!(
            json_web_token(&format!("a {token}, b"), 2),
            Some(2..2 + token.len())
        );
        assert_eq!(
            json_web_token("eyJvIjogMzg5NiwgImsiOiAiYWtxOHlwanQzZmlvIn0=", 0),
            None
        );
        assert_eq!(
            json_web_token("eyJvIjogMzg5NiwgImsiOiAi.eyJzdWIiOiIxMjM0NTY3ODkwIn0.x", 0),
            None
        );
    }

    #[test]
    fn an_urls_password_ends_at_its_last_at() {
        let password = |text: &str| {
            memchr::memchr_iter(b'@', text.as_bytes())
                .find_map(|at| url_password(text, at))
                .map(|range| text[range].to_owned())
        };
        assert_eq!(
            password("postgres://app:h0FA@db:5432/x").as_deref(),
            Some("h0FA")
        );
        assert_eq!(
            password("redis://:CyAg@10.2.0.15/0").as_deref(),
            Some("CyAg")
        );
        assert_eq!(password("amqp://u:p@ss9@h/").as_deref(), Some("p@ss9"));
        assert_eq!(password("https:\\/\\/u:pw12@h").as_deref(), Some("pw12"));
        for text in [
            "https://user@host/",
            "https://h/@scope/x:1",
            "a@b.c",
            "https://u:${PW}@h",
            "https://u:***@h",
            "npm:vite@8.3.1",
            "http://u:password@localhost",
        ] {
            assert_eq!(password(text), None, "{text}");
        }
    }

    #[test]
    fn session_cookies_are_told_from_preferences() {
        let text = "sid=38afes7a8; theme=dark; Path=/; id=a3fWa8kQ92LmZx01; Expires=Wed, 21 Oct 2026 07:28:00 GMT";
        let found: Vec<&str> = cookies(text, 0..text.len())
            .into_iter()
            .map(|range| &text[range])
            .collect();
        assert_eq!(found, ["38afes7a8", "a3fWa8kQ92LmZx01"]);
    }
}
