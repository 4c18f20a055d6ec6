//! Detectors of secrets over the view of one text. They know nothing of JSON and
//! nothing of what is done with a finding.
//!
//! Every rule is a literal, a small reader that starts there and looks at a
//! bounded window, and a judgement on what was read. No reader walks back over
//! what another has read, so the cost is linear in the text.

use std::ops::Range;

use super::detect::{Certainty, Detector, Family, Hit, Hits, Sign, Subject};

mod assignments;
mod commands;
mod formats;
mod judge;
mod keys;
mod literals;
mod ongoing;
mod structures;

use assignments::Form;
use formats::FORMATS;
use keys::Named;
pub(super) use literals::LONGEST;
use literals::{CUES, Trigger, name_around, trigger};
pub(super) use ongoing::may_go_on;

/// A value longer than this is read once: names inside it are part of it. Shorter
/// ones that are no secret may hold a pair of their own.
const LONG_VALUE: usize = 128;

/// Formats that are tried within the length of the longest.
const MOST_FORMATS: usize = 64;

const BY_NAME: Certainty = Certainty::Name;
const BY_STRUCTURE: Certainty = Certainty::Structure;
const BY_FORMAT: Certainty = Certainty::Form;

/// The family, for the engine.
pub(super) fn detector() -> Detector {
    Detector {
        cues: CUES.as_slice(),
        plausible: is_plausible,
        names: is_telling,
        find,
    }
}

/// One text under search.
struct Search<'a, 'h> {
    text: &'a str,
    seams: &'a [usize],
    pem: structures::Pem,
    /// Where the last value that a name led to ends: a name inside it leads nowhere.
    read_to: usize,
    /// The same for authentication schemes.
    scheme_to: usize,
    /// Up to where a provider's name was looked behind.
    near_to: usize,
    /// Up to where the last format could reach, and how many were tried in it.
    format_to: usize,
    formats: usize,
    runs: formats::Runs,
    found: &'h mut Hits,
}

/// All secrets of a text.
fn find(subject: &Subject<'_>, found: &mut Hits) {
    let mut search = Search {
        text: subject.text,
        seams: subject.seams,
        pem: structures::Pem::default(),
        read_to: 0,
        scheme_to: 0,
        near_to: 0,
        format_to: 0,
        formats: 0,
        runs: formats::Runs::default(),
        found,
    };
    for sign in subject.signs {
        search.look(trigger(sign.cue), sign.start, sign.end);
    }
    if let Some(key) = subject.context.key {
        search.whole(key);
    }
}

/// Whether a name makes its value worth a look.
pub(super) fn is_telling(key: &str) -> bool {
    keys::class(key).is_some() || key == "keyName"
}

/// Whether a value looks like a secret without more evidence than a name.
pub(super) fn is_telling_value(value: &str) -> bool {
    judge::is_strong(value) || judge::is_password_like(value)
}

/// Whether the value under this name is a secret whatever it looks like; for what
/// callers send (the audit's copy).
pub(super) fn names_secret(key: &str) -> bool {
    keys::class(key).is_some()
}

/// Whether the raw bytes at a sign can lead to a secret: a cheap look for the
/// prefilter, which may err towards yes.
fn is_plausible(bytes: &[u8], sign: Sign) -> bool {
    let Sign { cue, start, end } = sign;
    match trigger(cue) {
        Trigger::Format(at) => FORMATS
            .get(at)
            .is_some_and(|format| format.may_start(bytes, start)),
        Trigger::Name => name_around(bytes, start, end).is_some(),
        Trigger::At => is_userinfo_end(bytes, start),
        Trigger::Jwt => structures::may_be_token(bytes, start),
        Trigger::Pem => structures::may_be_private_key(bytes, end),
        Trigger::Scheme | Trigger::KeyName | Trigger::Discord | Trigger::Flag | Trigger::Putty => {
            true
        }
        Trigger::Signature => start
            .checked_sub(1)
            .and_then(|at| bytes.get(at))
            .is_some_and(|b| matches!(b, b'?' | b'&' | b';')),
    }
}

/// `//` or another `@`, then a `:`, then this `@`, all in one word.
fn is_userinfo_end(bytes: &[u8], at: usize) -> bool {
    let head = bytes.get(at.saturating_sub(512)..at).unwrap_or_default();
    let len = head
        .iter()
        .rev()
        .take_while(|b| !b.is_ascii_whitespace() && !matches!(b, b'"' | b'<' | b'/' | b'@'))
        .count();
    let (before, word) = head.split_at(head.len() - len);
    matches!(before, [.., b'/' | b'@']) && word.contains(&b':')
}

impl Search<'_, '_> {
    fn push(
        &mut self,
        range: Range<usize>,
        label: &'static str,
        certainty: Certainty,
        from: usize,
    ) {
        self.found
            .push(Hit::new(Family::Secrets, label, range, certainty).from(from));
    }

    fn look(&mut self, trigger: Trigger, start: usize, end: usize) {
        match trigger {
            Trigger::Format(at) => self.format(at, start),
            Trigger::Jwt => {
                if let Some(range) = structures::json_web_token(self.text, start) {
                    self.push(range, "jwt", BY_FORMAT, start);
                }
            }
            Trigger::Pem => {
                if let Some(range) = self.pem.private_key(self.text, start) {
                    self.push(range, "private_key", BY_FORMAT, start);
                }
            }
            Trigger::At => {
                if let Some(range) = structures::url_password(self.text, start) {
                    self.push(range, "url_password", BY_STRUCTURE, start);
                }
            }
            Trigger::Scheme => self.scheme(start, end),
            Trigger::KeyName => {}
            Trigger::Discord if start < self.near_to => {}
            Trigger::Discord => {
                self.near_to = end + commands::LINE / 2;
                let found = commands::discord_near(self.text, end);
                self.told(found, "discord_token");
            }
            Trigger::Flag => {
                let found = commands::flag_password(self.text, start, end);
                self.told(found, "password");
            }
            Trigger::Signature => {
                let found = commands::url_signature(self.text, start, end);
                self.told(found, "azure_sas");
            }
            Trigger::Putty => {
                let found = commands::putty_lines(self.text, end);
                self.told(found, "private_key");
            }
            Trigger::Name => self.named(start, end),
        }
    }

    fn told(&mut self, found: Option<Range<usize>>, label: &'static str) {
        if let Some(range) = found {
            let from = range.start;
            self.push(range, label, BY_STRUCTURE, from);
        }
    }

    fn scheme(&mut self, start: usize, end: usize) {
        if start < self.scheme_to {
            return;
        }
        let Some((range, label)) = structures::scheme_credentials(self.text, start, end) else {
            return;
        };
        self.scheme_to = range.end;
        if let Some(label) = label {
            self.push(range, label, BY_STRUCTURE, start);
        }
    }

    fn format(&mut self, at: usize, start: usize) {
        let Some(format) = FORMATS.get(at) else {
            return;
        };
        // Literals upon literals: nobody's token holds so many.
        if start >= self.format_to {
            self.format_to = start + formats::LONG;
            self.formats = 0;
        }
        self.formats += 1;
        if self.formats > MOST_FORMATS {
            return;
        }
        let Some(range) = format.matches(self.text, start, self.seams, &mut self.runs) else {
            return;
        };
        if format.label == "aws_access_key_id" {
            self.aws_secret_near(&range);
        }
        self.push(range, format.label, BY_FORMAT, start);
    }

    /// The secret access key that stands near its id: forty characters of base64
    /// that are no hash.
    fn aws_secret_near(&mut self, id: &Range<usize>) {
        const NEAR: usize = 160;
        let bytes = self.text.as_bytes();
        let from = id.start.saturating_sub(NEAR);
        let to = (id.end + NEAR).min(bytes.len());
        let window = bytes.get(from..to).unwrap_or_default();
        let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'/' | b'+');
        let mut at = 0;
        while at < window.len() {
            let rest = window.get(at..).unwrap_or_default();
            let len = rest.iter().take_while(|b| is_part(**b)).count();
            let range = from + at..from + at + len;
            if len == 40 && self.text.get(range.clone()).is_some_and(is_aws_secret) {
                self.push(range, "aws_secret_access_key", BY_STRUCTURE, id.start);
            }
            at += len + 1;
        }
    }

    fn named(&mut self, start: usize, end: usize) {
        let Some((name, named)) = name_around(self.text.as_bytes(), start, end) else {
            return;
        };
        // The label of a placeholder names nothing.
        let head = self.text.get(..name.start).unwrap_or_default();
        if name.end <= self.read_to || head.ends_with("[REDACTED:") {
            return;
        }
        let Some(value) = assignments::value_of(self.text, &name) else {
            return;
        };
        let key = self.text.get(name.clone()).unwrap_or_default();
        match named {
            Named::Cookie => {
                let end = structures::header_end(self.text, value.range.start);
                for range in structures::cookies(self.text, value.range.start..end) {
                    self.push(range, "session_cookie", BY_STRUCTURE, name.start);
                }
                self.read_to = end;
            }
            Named::Header => self.header(value.range.start, name.start),
            Named::Password | Named::Key => {
                let text = self.text.get(value.range.clone()).unwrap_or_default();
                if value.range.len() > LONG_VALUE {
                    self.read_to = value.range.end;
                }
                if assignments::is_secret(named, value.form, text) {
                    let is_query = name
                        .start
                        .checked_sub(1)
                        .and_then(|at| self.text.as_bytes().get(at))
                        .is_some_and(|b| matches!(b, b'?' | b'&'));
                    let label = label_of(named, key, text, is_query);
                    self.read_to = value.range.end;
                    self.push(value.range, label, BY_NAME, name.start);
                }
            }
        }
    }

    /// `Authorization: <scheme> <credentials>`, whatever the scheme.
    fn header(&mut self, at: usize, from: usize) {
        let end = structures::header_end(self.text, at);
        self.read_to = end;
        let value = self.text.get(at..end).unwrap_or_default();
        let mut start = at;
        if value
            .get(..6)
            .is_some_and(|scheme| scheme.eq_ignore_ascii_case("basic "))
        {
            // Judged by what it decodes to.
            return;
        }
        for word in value.split(' ').take(3) {
            if judge::is_strong(word) {
                self.push(
                    start..start + word.len(),
                    "bearer_token",
                    BY_STRUCTURE,
                    from,
                );
            }
            start += word.len() + 1;
        }
    }

    /// The whole text as the value of a JSON key.
    fn whole(&mut self, key: &str) {
        let value = self.text.trim();
        let start = self.text.len() - self.text.trim_start().len();
        let range = start..start + value.len();
        if key == "keyName" && value.len() == 88 && value.ends_with("==") && judge::is_varied(value)
        {
            self.push(range, "azure_storage_key", BY_STRUCTURE, start);
            return;
        }
        match keys::class(key) {
            Some(Named::Cookie) => {
                for range in structures::cookies(self.text, range) {
                    self.push(range, "session_cookie", BY_STRUCTURE, start);
                }
            }
            Some(Named::Header) => self.header(start, start),
            Some(named) if assignments::is_secret(named, Form::Tight, value) => {
                let label = label_of(named, key, value, false);
                self.push(range, label, BY_NAME, start);
            }
            _ => {}
        }
    }
}

/// The label of a value that its name gave away.
fn label_of(named: Named, key: &str, value: &str, is_query: bool) -> &'static str {
    if named == Named::Password {
        return "password";
    }
    if keys::is_aws(key) && value.len() == 40 && is_aws_secret(value) {
        return "aws_secret_access_key";
    }
    if is_discord_token(value) {
        return "discord_token";
    }
    if is_query && key.eq_ignore_ascii_case("access_token") {
        return "bearer_token";
    }
    "generic_secret"
}

fn is_aws_secret(value: &str) -> bool {
    value.bytes().any(|b| b.is_ascii_uppercase())
        && value.bytes().any(|b| b.is_ascii_lowercase())
        && value
            .bytes()
            .any(|b| b.is_ascii_digit() || matches!(b, b'/' | b'+'))
        && judge::is_varied(value)
        && judge::entropy(value) > 4.0
}

/// A bot token: the id in base64, a time, a signature.
fn is_discord_token(value: &str) -> bool {
    let mut parts = value.split('.');
    let lengths = [parts.next(), parts.next(), parts.next()].map(|part| part.map_or(0, str::len));
    value.starts_with(['M', 'N', 'O'])
        && parts.next().is_none()
        && (23..=28).contains(&lengths[0])
        && lengths[1] == 6
        && lengths[2] >= 27
}

#[cfg(test)]
mod tests;
