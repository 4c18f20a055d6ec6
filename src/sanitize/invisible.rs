//! Invisible characters: which always go, and which stay because a script or an
//! emoji needs them. The policy:
//!
//! - Tags stay only as the three registered flags (UTS #51 ED-14a: gbeng, gbsct,
//!   gbwls).
//! - A zero-width joiner stays inside an emoji sequence; both joiners stay behind
//!   a letter of a script that uses them (Arabic, Indic, South-East Asian…).
//! - Zero-width space stays beside scripts that are written without spaces.
//! - A variation selector stays, one to a base: VS15/16 behind emoji and key caps,
//!   the others behind ideographs, symbols and Mongolian.
//! - Direction marks, balanced embeddings and isolates stay in text that has
//!   right-to-left letters (UAX #9). Overrides always go.
//! - A soft hyphen between letters stays, and is looked through by the detectors.
//! - Fillers, word joiners, invisible operators, byte order marks and characters
//!   that Unicode has not assigned but calls ignorable always go.
//!
//! A decision looks at what was kept before and at a plain character behind, so
//! that a second pass over the result decides the same.

use super::odd;

/// What a character is to this policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Visible, or none of our business.
    Plain,
    /// Always removed.
    Hidden,
    /// Removed unless its neighbours need it.
    Conditional,
}

/// Classes of all characters that [`odd::find`] stops at, controls excepted.
pub(super) fn class(c: char) -> Class {
    match c {
        '\r'
        | '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202c}'
        | '\u{2066}'..='\u{2069}'
        | '\u{fe00}'..='\u{fe0f}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0020}'..='\u{e007f}'
        | '\u{e0100}'..='\u{e01ef}' => Class::Conditional,
        '\u{202d}'
        | '\u{202e}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{e0000}'..='\u{e0fff}' => Class::Hidden,
        _ => Class::Plain,
    }
}

/// What becomes of a conditional character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Stays,
    /// Stays, but detectors look through it.
    Transparent,
    Goes,
    /// A carriage return that would overwrite its line.
    BecomesLineFeed,
    /// A carriage return that does nothing.
    Drops,
}

/// The registered flags: tag characters behind U+1F3F4.
const FLAGS: [&str; 3] = [
    "\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}",
    "\u{e0067}\u{e0062}\u{e0077}\u{e006c}\u{e0073}\u{e007f}",
];

/// Bytes of the registered flag that `rest` begins with, behind a black flag.
pub(super) fn flag_len(previous: Option<char>, rest: &str) -> Option<usize> {
    FLAGS
        .iter()
        .find(|flag| previous == Some('\u{1f3f4}') && rest.starts_with(**flag))
        .map(|flag| flag.len())
}

/// One text in which controls and always hidden characters are gone already.
pub(super) struct Surroundings {
    /// Offsets of direction characters that stay; `None` where nothing is written
    /// from right to left.
    directional: Option<Vec<usize>>,
}

impl Surroundings {
    pub(super) fn of(text: &str) -> Self {
        let directional = text
            .chars()
            .any(is_right_to_left)
            .then(|| balanced_directions(text));
        Self { directional }
    }

    /// What becomes of the conditional character `c` at `at`, between a kept
    /// character and what follows.
    pub(super) fn fate(
        &self,
        (at, c): (usize, char),
        previous: Option<char>,
        next: Option<char>,
    ) -> Fate {
        let plain_next = next.filter(|c| class(*c) == Class::Plain);
        let stays = match c {
            '\r' => return carriage_return(next),
            '\u{ad}' => return soft_hyphen(previous, plain_next),
            '\u{200d}' => {
                previous.is_some_and(uses_joiners)
                    || (previous.is_some_and(ends_emoji) && plain_next.is_some_and(is_pictograph))
            }
            '\u{200c}' => previous.is_some_and(uses_joiners),
            '\u{200b}' => {
                previous.is_some_and(writes_without_spaces)
                    || plain_next.is_some_and(writes_without_spaces)
            }
            '\u{200e}' | '\u{200f}' | '\u{61c}' => self.directional.is_some(),
            '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => self
                .directional
                .as_ref()
                .is_some_and(|kept| kept.binary_search(&at).is_ok()),
            '\u{fe0e}' | '\u{fe0f}' => {
                previous.is_some_and(takes_presentation)
                    || (previous.is_some_and(is_key_cap) && next == Some('\u{20e3}'))
            }
            '\u{fe00}'..='\u{fe0d}' => previous.is_some_and(takes_variation),
            '\u{e0100}'..='\u{e01ef}' => previous.is_some_and(is_ideograph),
            '\u{180b}'..='\u{180f}' => previous.is_some_and(|c| {
                ('\u{1800}'..='\u{18af}').contains(&c) && class(c) == Class::Plain
            }),
            '\u{115f}' => plain_next.is_some_and(is_jamo),
            '\u{1160}' => previous.is_some_and(is_jamo),
            '\u{17b4}' | '\u{17b5}' => {
                previous.is_some_and(|c| ('\u{1780}'..='\u{17b3}').contains(&c))
            }
            '\u{34f}' => previous.is_some_and(is_mark),
            '\u{1d173}'..='\u{1d17a}' => {
                let is_music = |c: char| ('\u{1d100}'..='\u{1d1ff}').contains(&c);
                previous.is_some_and(is_music) || plain_next.is_some_and(is_music)
            }
            _ => false,
        };
        if stays { Fate::Stays } else { Fate::Goes }
    }
}

/// CR LF stays; CR before CR does nothing; a lone one begins a new line, so that
/// nothing is overwritten and no two lines run together.
fn carriage_return(next: Option<char>) -> Fate {
    match next {
        Some('\n') => Fate::Stays,
        Some('\r') => Fate::Drops,
        _ => Fate::BecomesLineFeed,
    }
}

fn soft_hyphen(previous: Option<char>, next: Option<char>) -> Fate {
    let between_letters =
        previous.is_some_and(char::is_alphabetic) && next.is_some_and(char::is_alphabetic);
    if between_letters {
        Fate::Transparent
    } else {
        Fate::Goes
    }
}

/// Offsets of the marks, and of the openers and closers that have each other on
/// the same line.
fn balanced_directions(text: &str) -> Vec<usize> {
    let mut kept = Vec::new();
    let (mut embeddings, mut isolates) = (Vec::new(), Vec::new());
    let mut at = 0;
    while let Some(found) = odd::find(text.as_bytes(), at, false) {
        let line_ended = text
            .get(at..found)
            .is_some_and(|between| between.contains(['\n', '\r', '\u{2029}']));
        if line_ended {
            embeddings.clear();
            isolates.clear();
        }
        let c = text.get(found..).and_then(|rest| rest.chars().next());
        match c {
            Some('\u{202a}' | '\u{202b}') => embeddings.push(found),
            Some('\u{2066}'..='\u{2068}') => isolates.push(found),
            Some('\u{202c}') => kept.extend(embeddings.pop().map(|open| [open, found])),
            Some('\u{2069}') => kept.extend(isolates.pop().map(|open| [open, found])),
            _ => {}
        }
        at = found + c.map_or(1, char::len_utf8);
    }
    let mut kept: Vec<usize> = kept.into_iter().flatten().collect();
    kept.sort_unstable();
    kept
}

fn is_right_to_left(c: char) -> bool {
    matches!(c, '\u{590}'..='\u{61b}' | '\u{61d}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}'
        | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}')
}

fn uses_joiners(c: char) -> bool {
    class(c) == Class::Plain
        && matches!(c, '\u{600}'..='\u{dff}' | '\u{f00}'..='\u{109f}' | '\u{1700}'..='\u{18af}'
            | '\u{1900}'..='\u{1cff}' | '\u{a800}'..='\u{a8ff}' | '\u{a980}'..='\u{aadf}'
            | '\u{abc0}'..='\u{abff}' | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}'
            | '\u{10a00}'..='\u{10a5f}' | '\u{10d00}'..='\u{10d3f}' | '\u{11000}'..='\u{11fff}'
            | '\u{1e900}'..='\u{1e95f}')
}

fn writes_without_spaces(c: char) -> bool {
    class(c) == Class::Plain
        && matches!(c, '\u{e00}'..='\u{109f}' | '\u{1780}'..='\u{17ff}' | '\u{1950}'..='\u{19ff}'
            | '\u{1a20}'..='\u{1aaf}' | '\u{1b00}'..='\u{1b7f}' | '\u{a980}'..='\u{a9df}'
            | '\u{aa60}'..='\u{aadf}')
}

/// What may stand before the joiner of an emoji sequence.
fn ends_emoji(c: char) -> bool {
    is_pictograph(c) || matches!(c, '\u{fe0f}' | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e007f}')
}

fn takes_presentation(c: char) -> bool {
    is_pictograph(c) || matches!(c, '\u{2190}'..='\u{2bff}' | '\u{1f1e6}'..='\u{1f3ff}')
}

fn is_key_cap(c: char) -> bool {
    matches!(c, '0'..='9' | '#' | '*')
}

fn takes_variation(c: char) -> bool {
    is_ideograph(c)
        || matches!(c, '\u{1000}'..='\u{109f}' | '\u{2205}'..='\u{2aff}' | '\u{3000}'..='\u{30ff}'
            | '\u{a840}'..='\u{a87f}' | '\u{ff01}'..='\u{ff1f}' | '\u{10ac0}'..='\u{10aff}'
            | '\u{13000}'..='\u{1342f}')
}

fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{17000}'..='\u{18cff}' | '\u{20000}'..='\u{323af}')
}

fn is_jamo(c: char) -> bool {
    class(c) == Class::Plain
        && matches!(c, '\u{1100}'..='\u{11ff}' | '\u{a960}'..='\u{a97f}' | '\u{d7b0}'..='\u{d7ff}')
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{34e}' | '\u{350}'..='\u{36f}' | '\u{591}'..='\u{5c7}'
        | '\u{64b}'..='\u{65f}' | '\u{1ab0}'..='\u{1aff}' | '\u{1dc0}'..='\u{1dff}')
}

/// `Extended_Pictographic` (UTS #51, emoji-data.txt), a little coarser where the
/// gaps between are unassigned.
fn is_pictograph(c: char) -> bool {
    matches!(c, '\u{a9}' | '\u{ae}' | '\u{203c}' | '\u{2049}' | '\u{2122}' | '\u{2139}'
        | '\u{2194}'..='\u{2199}' | '\u{21a9}'..='\u{21aa}' | '\u{231a}'..='\u{231b}' | '\u{2328}'
        | '\u{2388}' | '\u{23cf}' | '\u{23e9}'..='\u{23f3}' | '\u{23f8}'..='\u{23fa}' | '\u{24c2}'
        | '\u{25aa}'..='\u{25ab}' | '\u{25b6}' | '\u{25c0}' | '\u{25fb}'..='\u{25fe}'
        | '\u{2600}'..='\u{2605}' | '\u{2607}'..='\u{2612}' | '\u{2614}'..='\u{2685}'
        | '\u{2690}'..='\u{2705}' | '\u{2708}'..='\u{2712}' | '\u{2714}' | '\u{2716}' | '\u{271d}'
        | '\u{2721}' | '\u{2728}' | '\u{2733}'..='\u{2734}' | '\u{2744}' | '\u{2747}' | '\u{274c}'
        | '\u{274e}' | '\u{2753}'..='\u{2755}' | '\u{2757}' | '\u{2763}'..='\u{2767}'
        | '\u{2795}'..='\u{2797}' | '\u{27a1}' | '\u{27b0}' | '\u{27bf}' | '\u{2934}'..='\u{2935}'
        | '\u{2b05}'..='\u{2b07}' | '\u{2b1b}'..='\u{2b1c}' | '\u{2b50}' | '\u{2b55}' | '\u{3030}'
        | '\u{303d}' | '\u{3297}' | '\u{3299}' | '\u{1f000}'..='\u{1f1e5}'
        | '\u{1f201}'..='\u{1f3fa}' | '\u{1f400}'..='\u{1faff}' | '\u{1fc00}'..='\u{1fffd}')
}
