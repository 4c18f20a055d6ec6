//! What stands together in a sentence or two, added up.

use std::ops::Range;

use super::words::{self, Feature, Word};

/// From here on it is an attempt.
const ATTEMPT: i32 = 3;

/// How far words of one thought stand apart at most, in bytes.
const NEAR: usize = 120;

/// One or two sentences and what was read in them.
struct Thought<'a> {
    text: &'a str,
    range: Range<usize>,
    words: Vec<&'a Word>,
}

/// Stretches of a part of a text that are attempts, in order.
pub(super) fn attempts(text: &str, window: Range<usize>) -> Vec<Range<usize>> {
    let words = words::of(text, window.clone());
    if words.is_empty() {
        return Vec::new();
    }
    let sentences = sentences(text, window);
    let mut out: Vec<Range<usize>> = Vec::new();
    let mut from = 0;
    while let Some(first) = sentences.get(from) {
        let mut found = None;
        for count in 1..=3 {
            let Some(last) = sentences.get(from + count - 1) else {
                break;
            };
            let thought = Thought::of(text, first.start..last.end, &words, &sentences);
            if thought.score() >= ATTEMPT {
                found = Some((thought.extent(), count));
                break;
            }
        }
        match found {
            Some((range, count)) => {
                out.push(range);
                from += count;
            }
            None => from += 1,
        }
    }
    out
}

/// Sentences: up to a full stop, a question or exclamation mark before a space, the
/// signs of other scripts, or an empty line.
fn sentences(text: &str, window: Range<usize>) -> Vec<Range<usize>> {
    let part = text.get(window.clone()).unwrap_or_default();
    let mut out = Vec::new();
    let mut start = 0;
    let mut chars = part.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let next = chars.peek().map(|(_, next)| *next);
        let ends = match c {
            '.' | '!' | '?' => next.is_none_or(char::is_whitespace),
            '。' | '！' | '？' | '।' | '؟' => true,
            '\n' => next == Some('\n'),
            _ => false,
        };
        if ends {
            let end = at + c.len_utf8();
            out.push(window.start + start..window.start + end);
            start = end;
        }
    }
    if start < part.len() {
        out.push(window.start + start..window.end);
    }
    out
}

impl<'a> Thought<'a> {
    /// The words of a stretch that count: in a text about attempts, what it quotes
    /// and what it only tells of do not.
    fn of(
        text: &'a str,
        range: Range<usize>,
        words: &'a [Word],
        sentences: &[Range<usize>],
    ) -> Self {
        let from = words.partition_point(|word| word.range.start < range.start);
        let inside = || {
            words
                .iter()
                .skip(from)
                .take_while(|word| word.range.end <= range.end)
        };
        let before = sentences
            .iter()
            .rev()
            .find(|sentence| sentence.end <= range.start)
            .map_or(range.start, |sentence| sentence.start);
        let near = words.partition_point(|word| word.range.start < before);
        let about = words
            .iter()
            .skip(near)
            .take_while(|word| word.range.start < range.end)
            .any(|word| word.features.contains(&Feature::About));
        let words = inside()
            .filter(|word| !about || (!is_quoted(text, word) && is_told_to_reader(text, word)))
            .collect();
        Self { text, range, words }
    }

    fn each(&self, feature: Feature) -> impl Iterator<Item = &Word> {
        self.words
            .iter()
            .copied()
            .filter(move |word| word.features.contains(&feature))
    }

    fn has(&self, feature: Feature) -> bool {
        self.each(feature).next().is_some()
    }

    fn extent(&self) -> Range<usize> {
        let start = self.words.iter().map(|word| word.range.start).min();
        let end = self.words.iter().map(|word| word.range.end).max();
        start.unwrap_or(self.range.start)..end.unwrap_or(self.range.end)
    }

    fn score(&self) -> i32 {
        let weight = |feature, weight: i32| if self.has(feature) { weight } else { 0 };
        let silence = weight(Feature::Silence, 2).max(self.quietly());
        let role = weight(Feature::Role, 2).max(weight(Feature::WeakRole, 1));
        self.overriding()
            + self.taking()
            + self.signs()
            + weight(Feature::Address, 2)
            + silence
            + weight(Feature::Claim, 2)
            + role
            + weight(Feature::When, 1)
            + weight(Feature::Obey, 1)
            + self.tool_call()
    }

    /// `silently` says something of an order only.
    fn quietly(&self) -> i32 {
        i32::from(self.has(Feature::Quiet) && (self.has(Feature::Act) || self.has(Feature::Send)))
    }

    /// To set aside what came before.
    fn overriding(&self) -> i32 {
        let mut best = 0;
        for (verb, weak) in [(Feature::Override, 0), (Feature::WeakOverride, 1)] {
            for verb in self.each(verb).filter(|verb| !self.is_negated(verb)) {
                let own = self
                    .each(Feature::Own)
                    .any(|own| self.is_near(verb, own) && verb.range.start != own.range.start);
                if own {
                    best = best.max(3);
                }
                for (orders, weaker) in [(Feature::Orders, 0), (Feature::WeakOrders, 1)] {
                    for orders in self
                        .each(orders)
                        .filter(|orders| self.is_near(verb, orders))
                    {
                        if let Some(whose) = self.whose(verb, orders) {
                            best = best.max(3 - weak - weaker - whose);
                        }
                    }
                }
            }
        }
        best
    }

    /// How little a word says whose orders they are; `None` where none says it.
    fn whose(&self, verb: &Word, orders: &Word) -> Option<i32> {
        let start = verb.range.start.min(orders.range.start);
        let end = verb.range.end.max(orders.range.end) + 24;
        let start = start.saturating_sub(40);
        let says = |feature| {
            self.each(feature).any(|word| {
                word.range.start >= start
                    && word.range.end <= end
                    && word.range.start != orders.range.start
                    && word.range.start != verb.range.start
            })
        };
        match () {
            () if says(Feature::Earlier) => Some(0),
            () if says(Feature::WeakEarlier) || says(Feature::All) => Some(1),
            () => None,
        }
    }

    /// To take what is private: a verb, what is taken, where it goes.
    fn taking(&self) -> i32 {
        let verbs = [Feature::Send, Feature::Reveal, Feature::Act];
        let takes = |what: Feature, verbs: &[Feature]| {
            verbs.iter().any(|verb| {
                self.each(*verb)
                    .filter(|verb| !self.is_negated(verb))
                    .any(|verb| self.each(what).any(|what| self.is_near(verb, what)))
            })
        };
        let private = if takes(Feature::Private, &verbs[..2]) {
            2
        } else {
            0
        };
        let theirs = i32::from(takes(Feature::Theirs, &verbs[..2]));
        let key = i32::from(takes(Feature::Key, &verbs));
        let sends = self.each(Feature::Send).any(|verb| !self.is_negated(verb));
        let goes = sends && private + theirs + key > 0 && self.has_destination();
        private + theirs + key + i32::from(goes)
    }

    fn has_destination(&self) -> bool {
        let text = self.text.get(self.range.clone()).unwrap_or_default();
        let mail = text.find('@').is_some_and(|at| {
            text.get(at + 1..).is_some_and(|tail| {
                tail.split_whitespace()
                    .next()
                    .is_some_and(|domain| domain.trim_end_matches('.').contains('.'))
            })
        });
        text.contains("://") || mail || text.contains("[REDACTED:email]") || text.contains("www.")
    }

    /// Signs of a chat, in a text that is more than the sign.
    fn signs(&self) -> i32 {
        let alone = self.text.trim().len() <= 24;
        let sign = self
            .each(Feature::Sign)
            .map(|word| {
                if alone || is_code(self.text, word) {
                    i32::from(!alone)
                } else {
                    3
                }
            })
            .max()
            .unwrap_or(0);
        let half = if self.has(Feature::HalfSign) && !alone {
            2
        } else {
            0
        };
        let line = self
            .each(Feature::LineSign)
            .any(|word| begins_line(self.text, word.range.start));
        sign.max(half).max(i32::from(line))
    }

    /// `call send_email`: a verb and a name as tools have it.
    fn tool_call(&self) -> i32 {
        let named = self.each(Feature::Act).any(|verb| {
            let tail = self.text.get(verb.range.end..).unwrap_or_default();
            let mut words =
                tail.split(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.')));
            words
                .by_ref()
                .filter(|word| !word.is_empty())
                .take(3)
                .any(|word| word.contains('_') && !word.starts_with('_'))
        });
        i32::from(named)
    }

    fn is_near(&self, a: &Word, b: &Word) -> bool {
        let start = a.range.end.min(b.range.end);
        let end = a.range.start.max(b.range.start);
        let between = self.text.get(start..end.max(start)).unwrap_or_default();
        between.len() <= NEAR && !between.contains(['!', '?', '。']) && !between.contains(". ")
    }

    /// `do not share`, `never send`.
    fn is_negated(&self, verb: &Word) -> bool {
        let start = self
            .text
            .floor_char_boundary(verb.range.start.saturating_sub(14));
        let head = self
            .text
            .get(start..verb.range.start)
            .unwrap_or_default()
            .to_lowercase();
        [
            "not ", "n't ", "n’t ", "never ", "cannot ", "without ", "nicht ", "ne pas ", "no ",
            "non ", "não ", "nie ", "не ", "不要", "请勿", "勿",
        ]
        .iter()
        .any(|word| head.ends_with(word))
    }
}

/// Whether a word stands in quotation marks, on its line.
fn is_quoted(text: &str, word: &Word) -> bool {
    let (head, tail) = line_around(text, word);
    let pairs = [('“', '”'), ('«', '»'), ('„', '“'), ('「', '」'), ('‘', '’')];
    let odd = |mark: char| head.matches(mark).count() % 2 == 1 && tail.contains(mark);
    let open = |(start, end): (char, char)| {
        head.rfind(start).is_some_and(|at| {
            head.get(at..)
                .is_some_and(|inner| !inner.contains(end) || start == end)
        }) && tail.contains(end)
    };
    let single = head.rfind(" '").is_some_and(|at| {
        head.get(at + 2..)
            .is_some_and(|inner| !inner.contains("' "))
    }) && tail.contains('\'');
    odd('"') || odd('`') || single || pairs.into_iter().any(open)
}

/// Whether a word stands in a span of code.
fn is_code(text: &str, word: &Word) -> bool {
    let (head, tail) = line_around(text, word);
    head.matches('`').count() % 2 == 1 && tail.contains('`')
}

fn line_around<'a>(text: &'a str, word: &Word) -> (&'a str, &'a str) {
    let start = text.floor_char_boundary(word.range.start.saturating_sub(400));
    let end = text.ceil_char_boundary((word.range.end + 400).min(text.len()));
    let head = text.get(start..word.range.start).unwrap_or_default();
    let tail = text.get(word.range.end..end).unwrap_or_default();
    (
        head.rsplit('\n').next().unwrap_or_default(),
        tail.split('\n').next().unwrap_or_default(),
    )
}

/// In a text about attempts a verb counts where it speaks to its reader: at the
/// beginning of a clause. What an attacker "asks a model to ignore" does not.
fn is_told_to_reader(text: &str, word: &Word) -> bool {
    let is_verb = word.features.iter().any(|feature| {
        matches!(
            feature,
            Feature::Override
                | Feature::WeakOverride
                | Feature::Send
                | Feature::Reveal
                | Feature::Act
                | Feature::Silence
                | Feature::Role
                | Feature::Claim
                | Feature::Sign
                | Feature::HalfSign
                | Feature::Address
                | Feature::When
        )
    });
    if !is_verb {
        return true;
    }
    let start = text.floor_char_boundary(word.range.start.saturating_sub(24));
    let head = text.get(start..word.range.start).unwrap_or_default();
    let trimmed = head.trim_end_matches([' ', '\t', '*', '_']);
    let lower = trimmed.to_lowercase();
    trimmed.is_empty()
        || trimmed.ends_with([
            '.', '!', '?', '\n', ':', '|', '>', '#', '/', ']', ')', '。', '，', '-', ';',
        ])
        || [
            " please", " now", " then", " must", " should", " and", " you", " just", " also",
        ]
        .iter()
        .any(|word| lower.ends_with(word))
}

/// Whether only signs of comments and lists stand before it on its line.
fn begins_line(text: &str, at: usize) -> bool {
    let head = text.get(..at).unwrap_or_default();
    let line = head.rsplit('\n').next().unwrap_or_default();
    line.rsplit('|')
        .next()
        .unwrap_or_default()
        .chars()
        .all(|c| c.is_whitespace() || "/#*->;\"'[(=".contains(c))
        || head.ends_with(". ")
}
