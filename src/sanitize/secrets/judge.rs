//! Whether a value can be a secret: placeholders, references and words are none.
//! Pure judgement on one value; where it stands is for the callers to know.

mod words;

use words::{MARKED, NAMES, WORDS};

fn contains_any(value: &str, parts: &[&str]) -> bool {
    parts.iter().any(|part| value.contains(part))
}

/// Longest run of one byte.
fn longest_run(value: &str) -> usize {
    let (mut longest, mut run, mut last) = (0, 0, None);
    for byte in value.bytes() {
        run = if last == Some(byte) { run + 1 } else { 1 };
        last = Some(byte);
        longest = longest.max(run);
    }
    longest
}

/// Whether a run of six goes up or down one by one, or along the keyboard: no
/// random generator makes it.
fn has_sequence(lower: &str) -> bool {
    let (mut up, mut down, mut last) = (1, 1, 0_u8);
    for byte in lower.bytes() {
        up = if byte == last.wrapping_add(1) {
            up + 1
        } else {
            1
        };
        down = if byte == last.wrapping_sub(1) {
            down + 1
        } else {
            1
        };
        if up >= 6 || down >= 6 {
            return true;
        }
        last = byte;
    }
    lower.contains("qwerty")
}

/// Bits of Shannon entropy per byte.
pub(super) fn entropy(value: &str) -> f64 {
    let mut counts = [0_u32; 256];
    for byte in value.bytes() {
        if let Some(count) = counts.get_mut(usize::from(byte)) {
            *count += 1;
        }
    }
    let len = value.len().max(1);
    let total = f64::from(u32::try_from(len).unwrap_or(u32::MAX));
    counts
        .iter()
        .filter(|count| **count > 0)
        .map(|count| f64::from(*count) / total)
        .map(|share| -share * share.log2())
        .sum()
}

/// A template, a variable, a call or a path instead of a value.
fn is_reference(value: &str) -> bool {
    let starts = [
        "${", "$(", "{{", "<", "%(", "#{", "[", "@{", "{%", "$ENV", "!vault", "!secret", "!Ref",
        "!Sub", "!GetAtt", "!ENV", "ENC[",
    ];
    let value = value.trim_start_matches(['&', '*']);
    let is_format = value.starts_with('{') && value.contains('}');
    if is_format || starts.iter().any(|start| value.starts_with(start)) {
        return true;
    }
    if let Some(name) = value.strip_prefix('$') {
        return name.split('_').all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|b| b.is_ascii_uppercase() || b.is_ascii_digit())
        }) || is_identifier(name)
            && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    }
    if value.len() > 2 && value.starts_with('%') && value.ends_with('%') {
        return true;
    }
    is_call(value) || is_member(value) || is_path(value)
}

fn is_identifier(value: &str) -> bool {
    !value.is_empty()
        && !value.starts_with(|c: char| c.is_ascii_digit())
        && value
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// `os.getenv(…`, `hash(password)`.
fn is_call(value: &str) -> bool {
    value.split_once('(').is_some_and(|(name, _)| {
        !name.is_empty()
            && name
                .split(['.', ':'])
                .all(|part| part.is_empty() || is_identifier(part))
    })
}

/// `user.password`, `process.env.DB_PASSWORD`, `secrets.API_KEY`, `row["x"]`.
fn is_member(value: &str) -> bool {
    let (path, index) = value.split_once('[').unwrap_or((value, ""));
    let mut parts = 0;
    let named = path
        .split(['.', '?', ':'])
        .filter(|part| !part.is_empty())
        .all(|part| {
            parts += 1;
            is_identifier(part) && (is_wordlike(part) || part.len() < 12)
        });
    named && (parts > 1 || (!index.is_empty() && parts == 1))
}

/// Letters and underscores of one case, or camel case, without digits.
fn is_wordlike(part: &str) -> bool {
    part.bytes().all(|b| b.is_ascii_alphabetic() || b == b'_')
}

fn is_path(value: &str) -> bool {
    let rooted = value.starts_with('/') || value.starts_with("./") || value.starts_with("~/");
    let prefixed =
        value.starts_with("file:") || value.starts_with("arn:") || value.starts_with("vault:");
    let wordy = || {
        value
            .split('/')
            .filter(|part| !part.is_empty())
            .all(|part| part.len() < 4 || (is_wordy(part) && part.len() < 40))
    };
    prefixed || (rooted && value.matches('/').count() > 1 && wordy())
}

/// Nothing but words and a few digits: `prod-db-main`, `PrivateDecryptingKey2`.
pub(super) fn is_wordy(value: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let mut segments = 0;
    let mut letters = 0;
    let all_words = value
        .split(|c: char| !c.is_ascii_alphabetic())
        .filter(|segment| !segment.is_empty())
        .all(|segment| {
            segments += 1;
            letters += segment.len();
            is_word(segment)
        });
    let numbers_only = segments == 0 && value.split('-').all(|part| part.len() <= 4);
    numbers_only || (all_words && digits <= 5 && letters >= 3 * segments && segments > 0)
}

/// Letters of one case, or in camel case: a capital begins a word of three.
fn is_word(segment: &str) -> bool {
    let bytes = segment.as_bytes();
    let one_case =
        bytes.iter().all(u8::is_ascii_lowercase) || bytes.iter().all(u8::is_ascii_uppercase);
    let camel = || {
        (0..bytes.len()).all(|at| match bytes.get(at..) {
            Some([capital, rest @ ..]) if capital.is_ascii_uppercase() => {
                rest.len() >= 2 && rest.iter().take(2).all(u8::is_ascii_lowercase)
            }
            _ => true,
        })
    };
    one_case && segment.len() < 24 || camel()
}

fn case_changes(part: &str) -> usize {
    let upper: Vec<bool> = part.bytes().map(|b| b.is_ascii_uppercase()).collect();
    upper
        .windows(2)
        .filter(|pair| pair.first() != pair.last())
        .count()
}

/// Whether a value stands for a secret without being one.
pub(super) fn is_placeholder(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let bare = lower.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    bare.is_empty()
        || WORDS.binary_search(&bare).is_ok()
        || MARKED.is_match(value)
        || longest_run(&lower) == lower.len()
        || is_named_after_itself(value)
        || is_reference(value)
}

/// `password`, `my_token`, `db-secret`: the name of the thing as its value.
fn is_named_after_itself(value: &str) -> bool {
    value
        .bytes()
        .all(|b| b.is_ascii_alphabetic() || matches!(b, b'_' | b'-'))
        && NAMES.is_match(value)
}

/// Whether the random part of a fixed format is random: varied, no sequence, no
/// marker of an example.
pub(super) fn is_varied(value: &str) -> bool {
    let lower = value.to_ascii_lowercase();
    let floor = if value.len() < 24 { 2.6 } else { 3.0 };
    longest_run(value) < 6
        && !contains_any(&lower, &["example", "xxxx", "placeholder", "redacted"])
        && !has_sequence(&lower)
        && entropy(value) >= floor
}

/// Whether a value is random enough to be a key or a token by its looks alone.
pub(super) fn is_strong(value: &str) -> bool {
    if value.len() < 12 || value.chars().any(char::is_whitespace) || is_placeholder(value) {
        return false;
    }
    let lower = value.to_ascii_lowercase();
    if longest_run(value) >= 8 || has_sequence(&lower) || is_wordy(value) {
        return false;
    }
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let letters = value.bytes().filter(u8::is_ascii_alphabetic).count();
    let bits = entropy(value);
    if digits > 0 && letters > 1 {
        return bits >= if value.len() < 20 { 2.8 } else { 3.0 };
    }
    letters >= 16 && case_changes(value) >= 4 && bits >= 3.3
}

/// Whether a value can be a password where nothing but its looks says so: it has
/// a digit, a symbol or an odd capital.
pub(super) fn is_password_like(value: &str) -> bool {
    let inner = value.trim_end_matches(['.', ',', ';', ':', '!', '?', ')']);
    let digit = inner.bytes().any(|b| b.is_ascii_digit());
    let symbol = inner.bytes().any(|b| {
        b.is_ascii_punctuation() && !matches!(b, b'-' | b'\'' | b'/' | b'_' | b'.' | b',')
    });
    let letters = inner.bytes().filter(u8::is_ascii_alphabetic).count();
    value.len() >= 6
        && letters >= 2
        && (digit || symbol || case_changes(inner) > 2)
        && !is_placeholder(value)
}

/// Whether a value can be a password where the text says that it is one.
pub(super) fn is_password(value: &str) -> bool {
    let len = value.chars().count();
    (4..=512).contains(&len) && !value.chars().any(char::is_whitespace) && !is_placeholder(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_sorted_for_the_search() {
        assert!(WORDS.is_sorted());
    }

    #[test]
    fn placeholders_and_references_are_no_secrets() {
        for value in [
            "${DB_PASSWORD}",
            "{{ secrets.API_KEY }}",
            "<your-token-here>",
            "********",
            "xxxxxxxx",
            "$PASSWORD",
            "%PASSWORD%",
            "os.environ[\"X\"]",
            "process.env.TOKEN",
            "getenv(\"X\")",
            "user.password",
            "my_secret_token",
            "changeme",
            "none",
            "String",
            "[REDACTED:password]",
            "/run/secrets/db",
            "your-api-key",
            "AKIAIOSFODNN7EXAMPLE",
            "REDACTED",
            "...",
        ] {
            assert!(is_placeholder(value), "{value}");
        }
    }

    #[test]
    fn passwords_are_secrets_whatever_their_entropy() {
        for value in [
            "letmein",
            "hunter2",
            "Sunset2011$",
            "lfqf7s-5dl9dl-9b5sdh",
            "p@ss;word",
            "$2y$abcdef",
            "V2ludGVyMjAxNSM=",
        ] {
            assert!(is_password(value), "{value}");
        }
        assert!(is_password_like("hunter2") && !is_password_like("required."));
    }

    #[test]
    fn strong_values_are_told_from_names() {
        for value in [
            "264890d4281b871af1e6ee892c1166174e9253fc",
            "wlkyAc5zPA5TTdRgIM19rkVjai39",
            "fpenC-82jrGFYd48z7lxihKtRVZ9",
            "Vt1dcDPiI9mLGTLJsH8orxRZkewAUwMG",
        ] {
            assert!(is_strong(value), "{value}");
        }
        for value in [
            "prod/db/main",
            "app-tls",
            "xoxb-my-bot-token",
            "kubernetes-dashboard",
            "12345678901234",
            "abcdefghijklmnop",
        ] {
            assert!(!is_strong(value), "{value}");
        }
    }
}
