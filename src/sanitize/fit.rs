//! A cleaned answer and its output schema (rules §6.2): where a placeholder is not
//! of the schema's shape, one that is takes its place. The schema itself is known
//! here only as a function that says yes or no.

use super::escapes::{decode, encode};
use super::leaves::{Kind, Leaf, Leaves, Walk};
use crate::protocol::Json;

/// Leaves that are tried; more have to fit as they are.
const MOST_LEAVES: usize = 64;

const WALK: Walk = Walk {
    spare_identifiers: false,
};

/// What stands for a value of a kind that a schema may ask for by format, without
/// meaning anybody or anything (RFC 2606 §2 for names).
const STAND_INS: &[&str] = &[
    "null",
    "\"[REDACTED]\"",
    "\"redacted@redacted.invalid\"",
    "\"https://redacted.invalid/\"",
    "\"0001-01-01\"",
    "\"0001-01-01T00:00:00Z\"",
    "\"00:00:00Z\"",
    "\"00000000-0000-0000-0000-000000000000\"",
    "\"0.0.0.0\"",
    "\"::\"",
    "\"redacted.invalid\"",
    "\"\"",
];

/// A leaf that cleaning changed, by its number.
struct Changed {
    number: usize,
    /// What stands there instead, as JSON.
    instead: String,
}

/// `after` with placeholders of the shape that `accepts` wants; `before` is what it
/// was cleaned from, which the schema accepts. `None` where there are none.
fn fitted(before: &Json, after: &Json, accepts: &dyn Fn(&Json) -> bool) -> Option<Vec<Changed>> {
    let old = Leaves::of(before.as_str(), WALK);
    let new = Leaves::of(after.as_str(), WALK);
    if old.all.len() != new.all.len() || !accepts(before) {
        return None;
    }
    let mut changed = Vec::new();
    for (number, (was, is)) in old.all.iter().zip(&new.all).enumerate() {
        if raw(before, was) == raw(after, is) {
            continue;
        }
        if was.kind == Kind::Key || changed.len() == MOST_LEAVES {
            return None;
        }
        let fits = |instead: &str| {
            let text = replaced(before.as_str(), &old, &[(number, instead)]);
            accepts(&Json::from_checked(text))
        };
        let placeholder = whole(after, is);
        if fits(placeholder) {
            continue;
        }
        let instead = candidates(raw(before, was), was.kind).find(|instead| fits(instead))?;
        changed.push(Changed { number, instead });
    }
    let fitted = with(after, &changed);
    accepts(&fitted).then_some(changed)
}

/// A result in whose `structuredContent` cleaning left something that its schema
/// does not accept, made to fit. Text that mirrors it gets the same. `None` where
/// no placeholder fits.
pub(super) fn result(before: &Json, after: &Json, accepts: &dyn Fn(&Json) -> bool) -> Option<Json> {
    let old = before.get("structuredContent")?;
    let new = after.get("structuredContent")?;
    let changed = fitted(&old, &new, accepts)?;
    let leaves = Leaves::of(new.as_str(), WALK);
    let mut result = after.with_member("structuredContent", &with(&new, &changed));
    if let Some(content) = result.get("content") {
        let mut blocks = crate::protocol::json::ArrayBuilder::new();
        for block in content.elements() {
            blocks.push(&mirrored(&block, &new, &leaves, &changed).unwrap_or(block));
        }
        result = result.with_member("content", &blocks.build());
    }
    Some(result)
}

/// The block with the same changes, where its text is the same JSON.
fn mirrored(block: &Json, structured: &Json, leaves: &Leaves, changed: &[Changed]) -> Option<Json> {
    let text = block.get("text")?.string()?.into_owned();
    let limits = &crate::protocol::JsonLimits::CALLER;
    let json = Json::parse(text.into(), limits).ok()?;
    let own = Leaves::of(json.as_str(), WALK);
    let same = own.all.len() == leaves.all.len()
        && own
            .all
            .iter()
            .zip(&leaves.all)
            .all(|(own, leaf)| decode(raw(&json, own)).0 == decode(raw(structured, leaf)).0);
    let changed = with(&json, changed);
    same.then(|| block.with_member("text", &Json::from_text(changed.as_str())))
}

fn with(json: &Json, changed: &[Changed]) -> Json {
    let leaves = Leaves::of(json.as_str(), WALK);
    let instead: Vec<(usize, &str)> = changed
        .iter()
        .map(|changed| (changed.number, changed.instead.as_str()))
        .collect();
    Json::from_checked(replaced(json.as_str(), &leaves, &instead))
}

fn raw<'a>(json: &'a Json, leaf: &Leaf) -> &'a str {
    json.as_str().get(leaf.raw.clone()).unwrap_or_default()
}

/// Where a value stands, with its quotes.
fn range(leaf: &Leaf) -> std::ops::Range<usize> {
    match leaf.kind {
        Kind::Number => leaf.raw.clone(),
        _ => leaf.raw.start.saturating_sub(1)..leaf.raw.end + 1,
    }
}

fn whole<'a>(json: &'a Json, leaf: &Leaf) -> &'a str {
    json.as_str().get(range(leaf)).unwrap_or_default()
}

fn replaced(text: &str, leaves: &Leaves, changes: &[(usize, &str)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for (number, instead) in changes {
        let Some(leaf) = leaves.all.get(*number) else {
            continue;
        };
        let range = range(leaf);
        out.push_str(text.get(at..range.start).unwrap_or_default());
        out.push_str(instead);
        at = range.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// What may stand in a value's place, best first. A number becomes null or a
/// string, never another number.
fn candidates(raw: &str, kind: Kind) -> impl Iterator<Item = String> {
    let outline: String = match kind {
        Kind::Number => String::new(),
        _ => decode(raw).0.chars().map(outlined).collect(),
    };
    let outline = (kind != Kind::Number).then(|| format!("\"{}\"", encode(&outline)));
    STAND_INS
        .iter()
        .map(|stand_in| (*stand_in).to_owned())
        .chain(outline)
}

/// The form of a value without the value, for patterns and lengths.
fn outlined(c: char) -> char {
    match c {
        '0'..='9' => '0',
        'a'..='z' => 'x',
        'A'..='Z' => 'X',
        c if c.is_alphanumeric() => 'x',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit(
        before: &str,
        after: &str,
        accepts: impl Fn(&serde_json::Value) -> bool,
    ) -> Option<String> {
        let json = |text: &str| Json::from_checked(text.to_owned());
        let accepts = |json: &Json| accepts(&json.to_value().unwrap());
        result(&json(before), &json(after), &accepts).map(|json| json.as_str().to_owned())
    }

    #[test]
    fn a_placeholder_takes_the_shape_that_the_schema_wants() {
        let before = r#"{"structuredContent":{"n":1.50,"ssn":"123-45-6789"}}"#;
        let after = r#"{"structuredContent":{"n":1.50,"ssn":"[REDACTED:us_ssn]"}}"#;
        let short = |value: &serde_json::Value| {
            value["ssn"]
                .as_str()
                .is_some_and(|text| text.len() == 11 && text.as_bytes()[3] == b'-')
        };
        assert_eq!(
            fit(before, after, short).as_deref(),
            Some(
                r#"{"structuredContent":{"n":1.50,"ssn":"000-00-0000"},"content":[]}"#
                    .replace(r#","content":[]"#, "")
                    .as_str()
            )
        );
    }

    #[test]
    fn a_number_becomes_null_or_a_string_and_mirrors_follow() {
        let before = r#"{"content":[{"type":"text","text":"{\"card\": 4111}"}],"structuredContent":{"card":4111}}"#;
        let after = r#"{"content":[{"type":"text","text":"{\"card\": \"[REDACTED:x]\"}"}],"structuredContent":{"card":"[REDACTED:x]"}}"#;
        let nullable =
            |value: &serde_json::Value| value["card"].is_number() || value["card"].is_null();
        assert_eq!(
            fit(before, after, nullable).as_deref(),
            Some(
                r#"{"content":[{"type":"text","text":"{\"card\": null}"}],"structuredContent":{"card":null}}"#
            )
        );
        let number = |value: &serde_json::Value| value["card"].is_number();
        assert_eq!(fit(before, after, number), None);
    }
}
