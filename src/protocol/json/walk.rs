//! Looking into a checked text. These readers rely on the check: on a text that
//! passed it they find every part; they never panic on any text.

use std::borrow::Cow;

use memchr::memchr2;

use super::Json;

/// The text of a JSON string given with its quotes.
pub(super) fn unescape(quoted: &str) -> Cow<'_, str> {
    let inner = quoted
        .get(1..quoted.len().saturating_sub(1))
        .unwrap_or_default();
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Cow::Borrowed(inner);
    }
    serde_json::from_str::<String>(quoted).map_or(Cow::Borrowed(inner), Cow::Owned)
}

/// The offset behind the value that starts at `at`.
fn end_of_value(text: &str, at: usize) -> usize {
    let bytes = text.as_bytes();
    match bytes.get(at) {
        Some(b'"') => end_of_string(bytes, at),
        Some(b'{' | b'[') => end_of_nest(bytes, at),
        _ => {
            let rest = bytes.get(at..).unwrap_or_default();
            let len = rest
                .iter()
                .position(|b| matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'));
            at + len.unwrap_or(rest.len())
        }
    }
}

fn end_of_string(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    loop {
        let rest = bytes.get(at..).unwrap_or_default();
        match memchr2(b'"', b'\\', rest) {
            None => return bytes.len(),
            Some(to) if rest.get(to) == Some(&b'"') => return at + to + 1,
            Some(to) => at += to + 2,
        }
    }
}

fn end_of_nest(bytes: &[u8], at: usize) -> usize {
    let mut depth = 0_usize;
    let mut at = at;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'"' => {
                at = end_of_string(bytes, at);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            _ => {}
        }
        at += 1;
    }
    bytes.len()
}

fn skip_space(text: &str, mut at: usize) -> usize {
    while let Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') = text.as_bytes().get(at) {
        at += 1;
    }
    at
}

/// Iterates over an object's members: name (unescaped) and value.
#[derive(Debug)]
pub struct Members<'a> {
    json: &'a Json,
    at: usize,
}

impl<'a> Members<'a> {
    pub(super) fn new(json: &'a Json) -> Self {
        let at = if json.is_object() {
            1
        } else {
            json.as_str().len()
        };
        Self { json, at }
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = (Cow<'a, str>, Json);

    fn next(&mut self) -> Option<Self::Item> {
        let text = self.json.as_str();
        let key_at = skip_space(text, self.at);
        if text.as_bytes().get(key_at) != Some(&b'"') {
            return None;
        }
        let key_end = end_of_string(text.as_bytes(), key_at);
        let value_at = skip_space(text, key_end);
        let value_end = end_of_value(text, value_at);
        self.at = value_end;
        Some((
            unescape(text.get(key_at..key_end)?),
            self.json.part(text.get(value_at..value_end)?),
        ))
    }
}

/// Iterates over an array's elements.
#[derive(Debug)]
pub struct Elements<'a> {
    json: &'a Json,
    at: usize,
}

impl<'a> Elements<'a> {
    pub(super) fn new(json: &'a Json) -> Self {
        let at = if json.as_str().starts_with('[') {
            1
        } else {
            json.as_str().len()
        };
        Self { json, at }
    }
}

impl Iterator for Elements<'_> {
    type Item = Json;

    fn next(&mut self) -> Option<Json> {
        let text = self.json.as_str();
        let at = skip_space(text, self.at);
        if matches!(text.as_bytes().get(at), None | Some(b']')) {
            return None;
        }
        let end = end_of_value(text, at);
        self.at = end;
        Some(self.json.part(text.get(at..end)?))
    }
}
