//! Whether a word stands before a number in raw JSON that could name it: the name of
//! its field or a word of its sentence. A cheap look over the few bytes before the
//! number, which may err towards yes.

use std::sync::LazyLock;

use super::cues;

/// So far before a number its word is looked for.
const WINDOW: usize = 64;

/// Bits of the hashed set of words.
const BITS: usize = 1 << 16;

/// Words of a phrase that say nothing alone.
const COMMON: &[&str] = &[
    "number",
    "num",
    "name",
    "the",
    "national",
    "file",
    "code",
    "bank",
    "line",
    "home",
    "work",
    "call",
    "called",
    "calling",
    "text",
    "ring",
    "reach",
    "reached",
    "messages",
    "registered",
    "desk",
    "office",
    "contact",
    "back",
    "resident",
    "individual",
    "unique",
    "personal",
    "address",
    "control",
    "direct",
    "deposit",
    "current",
    "member",
    "plan",
    "policy",
    "transit",
];

struct Words(Vec<u64>);

static WORDS: LazyLock<Words> = LazyLock::new(|| {
    let mut words = Words(vec![0; BITS / 64]);
    let parts = cues::phrases().flat_map(|phrase| phrase.split([' ', '(', ')']));
    for part in parts.filter(|part| part.len() > 2 && !COMMON.contains(part)) {
        words.add(part.as_bytes());
    }
    words
});

fn hash(word: &[u8]) -> usize {
    let mixed = word.iter().fold(0x811c_9dc5_u32, |hash, b| {
        (hash ^ u32::from(b.to_ascii_lowercase())).wrapping_mul(0x0100_0193)
    });
    (mixed ^ mixed >> 15) as usize % BITS
}

impl Words {
    fn add(&mut self, word: &[u8]) {
        let hash = hash(word);
        if let Some(bits) = self.0.get_mut(hash / 64) {
            *bits |= 1 << (hash % 64);
        }
    }

    fn has(&self, word: &[u8]) -> bool {
        let hash = hash(word);
        word.len() > 2
            && self
                .0
                .get(hash / 64)
                .is_some_and(|bits| bits >> (hash % 64) & 1 == 1)
    }
}

/// Whether what stands before a number could name it. `head` ends where it begins.
pub(super) fn by_word(head: &[u8]) -> bool {
    let between = |b: &u8| matches!(b, b'"' | b'\\' | b' ' | b':');
    let value = head.iter().rev().take_while(|b| between(b)).count();
    let (name, gap) = head.split_at(head.len() - value);
    let words = if gap.contains(&b':') && gap.first().is_some_and(|b| matches!(b, b'"' | b'\\')) {
        // The name of a field.
        name
    } else if matches!(
        head,
        [.., b',' | b';' | b'|'] | [.., b'|', b' '] | [.., b'\\', b't']
    ) {
        // A cell of a table, whose heading may stand far above.
        return true;
    } else {
        head
    };
    has_word(
        words
            .get(words.len().saturating_sub(WINDOW)..)
            .unwrap_or_default(),
    )
}

/// Whether one of the last words is known, up to the quote that begins the string.
fn has_word(bytes: &[u8]) -> bool {
    let is_letter = |b: u8| b.is_ascii_alphabetic() || !b.is_ascii();
    let mut end = bytes.len();
    while let Some(last) = end.checked_sub(1).and_then(|at| bytes.get(at)) {
        if *last == b'"' {
            return false;
        }
        // Scripts that write words together, or have other capitals.
        if *last >= 0x80 && begins_other_script(bytes, end - 1) {
            return true;
        }
        if !is_letter(*last) {
            end -= 1;
            continue;
        }
        let head = bytes.get(..end).unwrap_or_default();
        let count = head.iter().rev().take_while(|b| is_letter(**b)).count();
        let from = end - count;
        let hump = head
            .windows(2)
            .skip(from)
            .rposition(
                |pair| matches!(pair, [a, b] if a.is_ascii_lowercase() && b.is_ascii_uppercase()),
            )
            .map_or(from, |at| from + at + 1);
        let is_known = |from: usize| head.get(from..).is_some_and(|word| WORDS.has(word));
        // `n` of an escaped line's end belongs to no word. `IdNr` is one word, and
        // `bankAccount` two.
        let escaped = head.get(..from).is_some_and(|head| head.ends_with(b"\\"));
        if is_known(from) || is_known(hump) || escaped && is_known(from + 1) {
            return true;
        }
        end = hump;
    }
    false
}

/// Whether the byte belongs to a character behind those of Latin scripts.
fn begins_other_script(bytes: &[u8], at: usize) -> bool {
    let head = bytes.get(..=at).unwrap_or_default();
    let lead = head.iter().rev().take(4).find(|b| **b >= 0xc0);
    lead.is_some_and(|lead| *lead >= 0xce)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_words_before_a_number_are_seen() {
        for head in [
            r#"{"mrn": ""#,
            r#"{\"patientMrn\":\""#,
            r#""LegacyCard":"#,
            "\"PESEL: ",
            "\"Their numéro de sécurité sociale is ",
            r"name,idnr,plan\nSven Ramirez,",
            r"x\nBSN ",
            r"Their IdNr is ",
            r"x\nIdNr ",
            "身份证",
        ] {
            assert!(by_word(head.as_bytes()), "{head}");
        }
        for head in [r#""id": "#, r#""ssn":"","size":"#, "\"the build ", "["] {
            assert!(!by_word(head.as_bytes()), "{head}");
        }
    }
}
