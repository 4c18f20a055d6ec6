//! Texts above the soft limit (rules §6.4): cut where nothing is torn apart, with a
//! word about it, and the whole handed to whoever keeps it. JSON in a text stays
//! JSON.

use unicode_segmentation::GraphemeCursor;

use super::findings::{Findings, Label};
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Json, JsonLimits};

/// The finding.
pub(super) const OVERSIZE: Label = "oversize";

const NOTICE: &str = "[TRUNCATED: ";

/// A text of which only the beginning was passed on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Remainder {
    /// JSON pointer of the text in the result.
    pub place: String,
    /// All of the text, cleaned.
    pub whole: String,
    /// Characters of it that were passed on.
    pub shown: usize,
}

/// Cuts the texts of a result's blocks to `most` characters.
pub(super) fn cut(result: &Json, most: usize, findings: &mut Findings) -> (Json, Vec<Remainder>) {
    let mut remainders = Vec::new();
    if result.as_str().len() <= most {
        return (result.clone(), remainders);
    }
    let mut out = result.clone();
    for name in ["content", "contents"] {
        let Some(blocks) = result.get(name) else {
            continue;
        };
        let before = remainders.len();
        let mut kept = ArrayBuilder::new();
        for (index, block) in blocks.elements().enumerate() {
            let place = format!("/{name}/{index}");
            shorten_block(&block, most, &place, &mut kept, &mut remainders);
        }
        if remainders.len() > before {
            out = out.with_member(name, &kept.build());
        }
    }
    if let Some(error) = result.get("error")
        && let Some((shorter, _)) =
            shortened_member(&error, "message", most, "/error", &mut remainders)
    {
        out = out.with_member("error", &shorter);
    }
    for remainder in &remainders {
        findings.add(OVERSIZE, 1, || remainder.place.clone());
    }
    (out, remainders)
}

/// Pushes a block, shortened where its text is too long; where the text is JSON, a
/// block that says so follows.
fn shorten_block(
    block: &Json,
    most: usize,
    place: &str,
    out: &mut ArrayBuilder,
    remainders: &mut Vec<Remainder>,
) {
    let mut shorter = shortened_member(block, "text", most, place, remainders);
    if shorter.is_none()
        && let Some(resource) = block.get("resource")
        && let Some((inner, note)) = shortened_member(
            &resource,
            "text",
            most,
            &format!("{place}/resource"),
            remainders,
        )
    {
        shorter = Some((block.with_member("resource", &inner), note));
    }
    match shorter {
        None => out.push(block),
        Some((block, note)) => {
            out.push(&block);
            if let Some(note) = note {
                let note = ObjectBuilder::new()
                    .text("type", "text")
                    .text("text", &note);
                out.push(&note.build());
            }
        }
    }
}

/// The object with a shorter member, and a note that has to stand elsewhere.
fn shortened_member(
    object: &Json,
    name: &str,
    most: usize,
    place: &str,
    remainders: &mut Vec<Remainder>,
) -> Option<(Json, Option<String>)> {
    let text = object.get(name)?.string()?.into_owned();
    if text.len() <= most {
        return None;
    }
    let total = text.chars().count();
    if total <= most || is_cut(&text, most) {
        return None;
    }
    let is_json = Json::parse(text.clone().into(), &JsonLimits::CALLER).is_ok();
    let (short, note) = if let Some(short) = is_json.then(|| shorter_json(&text, most)).flatten() {
        let note = notice(short.chars().count(), total);
        (short, Some(note))
    } else {
        let head = head(&text, most);
        let note = notice(head.chars().count(), total);
        (format!("{head}\n{note}"), None)
    };
    remainders.push(Remainder {
        place: format!("{place}/{name}"),
        shown: short.chars().count().min(most),
        whole: text,
    });
    Some((object.with_member(name, &Json::from_text(&short)), note))
}

fn notice(shown: usize, total: usize) -> String {
    format!("{NOTICE}{shown} of {total} characters are shown.]")
}

/// Whether a text was cut before.
fn is_cut(text: &str, most: usize) -> bool {
    text.ends_with(']')
        && text
            .rfind(NOTICE)
            .and_then(|at| Some((text.get(..at)?, text.get(at..)?)))
            .is_some_and(|(head, note)| head.chars().count() <= most + 1 && note.len() <= 120)
}

/// At most `most` characters, whole clusters and whole placeholders.
fn head(text: &str, most: usize) -> &str {
    let end = text
        .char_indices()
        .nth(most)
        .map_or(text.len(), |(offset, _)| offset);
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    let end = match cursor.is_boundary(text, 0) {
        Ok(false) => cursor.prev_boundary(text, 0).ok().flatten().unwrap_or(0),
        _ => end,
    };
    let head = text.get(..end).unwrap_or_default();
    let torn = head.rfind("[REDACTED:").filter(|open| {
        let rest = head.get(*open..).unwrap_or_default();
        !rest.contains(']')
    });
    torn.and_then(|open| head.get(..open)).unwrap_or(head)
}

/// The longest beginning of a JSON text that can be closed within `most`
/// characters; counts bytes, which are no fewer.
#[expect(clippy::too_many_lines, reason = "one form of JSON after another")]
fn shorter_json(text: &str, most: usize) -> Option<String> {
    let mut closers = String::new();
    let mut safe: Option<(usize, String)> = None;
    let mut expects_key = false;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let mut complete = false;
        match byte {
            b'{' | b'[' => {
                let object = *byte == b'{';
                closers.push(if object { '}' } else { ']' });
                expects_key = object;
                complete = true;
                at += 1;
            }
            b'}' | b']' => {
                closers.pop();
                expects_key = false;
                complete = true;
                at += 1;
            }
            b',' => {
                expects_key = closers.ends_with('}');
                at += 1;
            }
            b':' => {
                expects_key = false;
                at += 1;
            }
            b'"' => {
                at = string_end(bytes, at);
                complete = !expects_key;
            }
            b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                let rest = bytes.get(at..).unwrap_or_default();
                let len = rest
                    .iter()
                    .take_while(|b| !matches!(b, b',' | b'}' | b']' | b' ' | b'\n' | b'\r' | b'\t'))
                    .count();
                at += len.max(1);
                complete = true;
            }
        }
        if at + closers.len() > most {
            break;
        }
        if complete {
            let open = match &mut safe {
                Some((offset, open)) => {
                    *offset = at;
                    open.clear();
                    open
                }
                None => &mut safe.insert((at, String::new())).1,
            };
            open.extend(closers.chars().rev());
        }
    }
    let (offset, open) = safe?;
    Some(format!("{}{open}", text.get(..offset)?))
}

fn string_end(bytes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while let Some(byte) = bytes.get(end) {
        match byte {
            b'\\' => end += 2,
            b'"' => return end + 1,
            _ => end += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str, most: usize) -> (String, Vec<Remainder>) {
        let json = ObjectBuilder::new()
            .text("type", "text")
            .text("text", text)
            .build();
        let result = ObjectBuilder::new()
            .json("content", &ArrayBuilder::from_iter([&json]).build())
            .build();
        let (out, rest) = cut(&result, most, &mut Findings::none());
        (out.as_str().to_owned(), rest)
    }

    #[test]
    fn a_long_text_is_cut_between_clusters_and_the_whole_is_handed_on() {
        let family = "👨\u{200d}👩\u{200d}👧";
        let text = format!("abc{family}def");
        let (out, rest) = run(&text, 5);
        assert!(
            out.contains(r#""abc\n[TRUNCATED: 3 of 11 characters are shown.]""#),
            "{out}"
        );
        assert_eq!(rest.len(), 1);
        assert_eq!((rest[0].whole.as_str(), rest[0].shown), (text.as_str(), 5));
        assert_eq!(rest[0].place, "/content/0/text");
        assert_eq!(run("short", 5).1, []);
    }

    #[test]
    fn cutting_twice_is_cutting_once() {
        let json = Json::from_checked(run(&"word ".repeat(100), 50).0);
        let (again, rest) = cut(&json, 50, &mut Findings::none());
        assert_eq!((again.as_str(), rest.len()), (json.as_str(), 0));
    }

    #[test]
    fn json_stays_json_however_it_is_cut() {
        let text = r#"{"a": [1, "two", {"b": null}], "c,": "d\"e", "f": {}}"#;
        for most in 0..text.len() {
            let Some(short) = shorter_json(text, most) else {
                assert!(most < 2);
                continue;
            };
            assert!(short.len() <= most, "{short}");
            assert!(
                serde_json::from_str::<serde_json::Value>(&short).is_ok(),
                "{most} {short}"
            );
        }
        let (out, rest) = run(&format!("[{}1]", "1,".repeat(100)), 20);
        assert!(out.contains(r#""text":"[1,1,1,1,1,1,1,1,1]""#), "{out}");
        assert!(out.contains("characters are shown"));
        assert_eq!(rest.len(), 1);
    }

    #[test]
    fn a_placeholder_is_not_torn() {
        assert_eq!(head("ab [REDACTED:password] c", 15), "ab ");
    }
}
