//! Secrets that a text ends in the middle of.

use super::formats::FORMATS;
use super::literals;

/// Whether a text could be going on with a secret of fixed format where it ends:
/// it ends in one, or with the beginning of one's literal, or inside a private key.
pub(in crate::sanitize) fn may_go_on(text: &str) -> bool {
    const LONG: usize = 4 << 10;
    if let Some(begin) = text.rfind("-----BEGIN")
        && text
            .get(begin..)
            .is_some_and(|key| !key.contains("-----END"))
        && text.len() - begin < 4 * LONG
    {
        return true;
    }
    let bytes = text.as_bytes();
    let ends = |b: &u8| b.is_ascii_whitespace() || matches!(b, b'"' | b'\'' | b'<' | b'>' | b'`');
    let start = bytes
        .iter()
        .rposition(ends)
        .map_or(0, |at| at + 1)
        .max(text.len().saturating_sub(LONG));
    let tail = bytes.get(start..).unwrap_or_default();
    // Bot tokens of Telegram begin with a number.
    let digits = tail.iter().rev().take_while(|b| b.is_ascii_digit()).count();
    if (8..=10).contains(&digits) {
        return true;
    }
    let mut literals =
        FORMATS
            .iter()
            .map(|format| format.literal)
            .chain(["eyJ", "sk-", "-----BEGIN"]);
    literals.any(|literal| {
        let literal = literal.as_bytes();
        let begun = (1..literal.len().min(tail.len() + 1)).any(|len| {
            let (Some(part), Some(from)) = (literal.get(..len), tail.len().checked_sub(len)) else {
                return false;
            };
            tail.ends_with(part) && (len > 2 || literals::starts_free(tail, from))
        });
        begun || memchr::memmem::find(tail, literal).is_some()
    })
}
