//! Candidates: words of letters and digits, and words that single separators join.

/// Letters and digits that the longest kind has, and one more.
const MOST: usize = 35;

/// Groups that one may be written in.
const MOST_GROUPS: usize = 20;

/// Where a group of a token ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stop {
    /// In the text.
    pub(super) end: usize,
    /// Letters and digits up to there.
    pub(super) len: usize,
}

/// Words that may be the groups of one number.
pub(super) struct Token {
    body: Vec<u8>,
    stops: Vec<Stop>,
}

/// Where the run of letters and digits at `at` ends.
pub(super) fn word_end(bytes: &[u8], at: usize) -> usize {
    let tail = bytes.get(at..).unwrap_or_default();
    at + tail
        .iter()
        .take_while(|b| b.is_ascii_alphanumeric())
        .count()
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'-' | b'.' | b'/')
}

/// Whether a word begins here: no letter, digit or underscore stands before it, but
/// what ends an escape (`\n`) is none.
pub(super) fn begins(bytes: &[u8], at: usize) -> bool {
    match bytes.get(..at).unwrap_or_default() {
        [.., b'\\', b'n' | b'r' | b't'] | [] => true,
        [.., last] => !last.is_ascii_alphanumeric() && *last != b'_',
    }
}

/// Whether nothing before it makes it part of a longer name.
pub(super) fn stands_free(bytes: &[u8], at: usize) -> bool {
    !matches!(
        bytes.get(..at).unwrap_or_default(),
        [
            ..,
            b'-' | b'.' | b'/' | b'@' | b'%' | b'&' | b'~' | b'+' | b'$'
        ]
    )
}

/// Whether a number may end here.
pub(super) fn ends(bytes: &[u8], at: usize) -> bool {
    match bytes.get(at..).unwrap_or_default() {
        [b'_' | b'@' | b'%', ..] => false,
        [next, ..] => !next.is_ascii_alphanumeric(),
        [] => true,
    }
}

/// Whether a word without digits may begin a number: `AB 12 34 56 C`, `MRN-1234`.
pub(super) fn may_begin(bytes: &[u8], at: usize, end: usize) -> bool {
    end - at <= 3
        && bytes
            .get(at..end)
            .is_some_and(|word| word.iter().all(u8::is_ascii_uppercase))
        && matches!(bytes.get(end..), Some([b' ' | b'-', next, ..]) if next.is_ascii_digit())
}

impl Token {
    /// The words from `at` on.
    pub(super) fn read(text: &str, at: usize) -> Option<Self> {
        let bytes = text.as_bytes();
        let mut token = Self {
            body: Vec::with_capacity(MOST),
            stops: Vec::new(),
        };
        let mut start = at;
        while token.stops.len() < MOST_GROUPS {
            let end = word_end(bytes, start);
            let word = bytes.get(start..end).filter(|word| !word.is_empty())?;
            let has_digit = word.iter().any(u8::is_ascii_digit);
            let is_code = word.len() <= 5 && word.iter().all(u8::is_ascii_uppercase);
            if token.body.len() + word.len() > MOST || !(has_digit || is_code) {
                break;
            }
            token.body.extend(word.iter().map(u8::to_ascii_uppercase));
            token.stops.push(Stop {
                end,
                len: token.body.len(),
            });
            match bytes.get(end..) {
                Some([separator, next, ..])
                    if is_separator(*separator) && next.is_ascii_alphanumeric() =>
                {
                    start = end + 1;
                }
                _ => break,
            }
        }
        (!token.stops.is_empty()).then_some(token)
    }

    pub(super) fn stops(&self) -> impl Iterator<Item = Stop> + '_ {
        self.stops.iter().copied()
    }

    pub(super) fn body(&self, len: usize) -> Option<&[u8]> {
        self.body.get(..len)
    }

    /// Whether the groups up to a stop are not the middle of a longer row of groups:
    /// a tracking number begins with what could be a card.
    pub(super) fn is_whole(bytes: &[u8], at: usize, stop: Stop) -> bool {
        let group = |end: usize| word_end(bytes, end + 1) - (end + 1);
        let digits_follow = matches!(bytes.get(stop.end..), Some([separator, next, ..])
            if is_separator(*separator) && next.is_ascii_digit());
        let joined = matches!(bytes.get(stop.end), Some(b'-' | b'.' | b'/'))
            && bytes
                .get(stop.end + 1)
                .is_some_and(u8::is_ascii_alphanumeric);
        let solid = stop.len == stop.end - at;
        if joined {
            return false;
        }
        if solid {
            return true;
        }
        let digits_before =
            matches!(bytes.get(..at), Some([.., before, b' ']) if before.is_ascii_digit());
        let first = word_end(bytes, at) - at;
        let before = bytes
            .get(..at.saturating_sub(1))
            .unwrap_or_default()
            .iter()
            .rev()
            .take_while(|b| b.is_ascii_digit())
            .count();
        !(digits_follow && group(stop.end) >= 3 || digits_before && before == first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_are_joined_by_single_separators() {
        let token = Token::read("GB42 TGIK 7874 3115, x", 0).unwrap();
        assert_eq!(token.body, b"GB42TGIK78743115");
        let token = Token::read("12  34", 0).unwrap();
        assert_eq!(token.body, b"12");
        let token = Token::read("1234 please", 0).unwrap();
        assert_eq!(token.body, b"1234");
    }

    #[test]
    fn a_word_begins_where_no_name_goes_on() {
        assert!(begins(b"a 1", 2));
        assert!(begins(b"a\\n1", 3));
        assert!(!begins(b"a1", 1));
        assert!(!begins(b"a_1", 2));
    }
}
