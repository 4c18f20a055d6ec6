//! A definition's digest: what was listed, recorded and (later) pinned is the
//! same thing if and only if the digests are the same.
//!
//! The form that is digested follows RFC 8785: members sorted by their UTF-16
//! units, no white space, strings with the shortest escapes. Numbers stay as
//! they were written: reading them as doubles would make two different
//! definitions one.

use std::fmt::Write as _;

use aws_lc_rs::digest::{SHA256, digest};

use crate::protocol::Json;
use crate::protocol::json::Kind;

/// SHA-256 of the canonical form.
pub fn of(json: &Json) -> [u8; 32] {
    let mut text = String::with_capacity(json.as_str().len());
    write(json, &mut text);
    sha256(text.as_bytes())
}

pub(super) fn sha256(bytes: &[u8]) -> [u8; 32] {
    let mut out = [0; 32];
    out.copy_from_slice(digest(&SHA256, bytes).as_ref());
    out
}

fn write(json: &Json, out: &mut String) {
    match json.kind() {
        Kind::Object => {
            let mut members: Vec<_> = json.members().collect();
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (at, (name, value)) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_text(name, out);
                out.push(':');
                write(value, out);
            }
            out.push('}');
        }
        Kind::Array => {
            out.push('[');
            for (at, value) in json.elements().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(&value, out);
            }
            out.push(']');
        }
        Kind::String => write_text(&json.string().unwrap_or_default(), out),
        Kind::Null | Kind::Bool | Kind::Number => out.push_str(json.as_str()),
    }
}

/// RFC 8785 §3.2.2.2.
fn write_text(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a String does not fail.
            c if c < ' ' => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::protocol::JsonLimits;

    fn parse(text: &str) -> Json {
        Json::parse(Bytes::from(text.to_owned()), &JsonLimits::UPSTREAM).unwrap()
    }

    #[test]
    fn the_form_is_that_of_rfc_8785_but_for_numbers() {
        let mut text = String::new();
        let json = r#"{ "b" : [1.0, 1e2, "\u0041\/\u000f\u20ac"], "\u20ac":0, "a":{"\r":null,"\ufb33":1,"\ud83d\ude00":2} }"#;
        write(&parse(json), &mut text);
        // U+FB33 sorts behind the surrogates of U+1F600 (RFC 8785 §3.2.3).
        assert_eq!(
            text,
            "{\"a\":{\"\\r\":null,\"\u{1f600}\":2,\"\u{fb33}\":1},\"b\":[1.0,1e2,\"A/\\u000f\u{20ac}\"],\"\u{20ac}\":0}"
        );
    }

    #[test]
    fn order_and_white_space_do_not_matter_and_everything_else_does() {
        let one = of(&parse(r#"{"name":"a","x":{"p":1,"q":[1,2]}}"#));
        assert_eq!(
            one,
            of(&parse(
                "{ \"x\": {\"q\":[1, 2],\n\"p\":1}, \"name\":\"\\u0061\" }"
            ))
        );
        for other in [
            r#"{"name":"b","x":{"p":1,"q":[1,2]}}"#,
            r#"{"name":"a","x":{"p":1,"q":[2,1]}}"#,
            r#"{"name":"a","x":{"p":1.0,"q":[1,2]}}"#,
            r#"{"name":"a","x":{"p":"1","q":[1,2]}}"#,
            r#"{"name":"a","x":{"p":1,"q":[1,2]},"y":null}"#,
        ] {
            assert_ne!(one, of(&parse(other)), "{other}");
        }
    }
}
