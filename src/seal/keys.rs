//! The deployment's keys: the lines of the keys file.

use std::fmt;
use std::sync::Arc;

use aws_lc_rs::hkdf::{HKDF_SHA256, Prk, Salt};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;
use zeroize::{Zeroize, Zeroizing};

use super::{Label, Prf, Sealer};
use crate::clock;
use crate::secret::Secret;

/// The deployment's keys: the first seals, all open. Prints as its number of keys.
#[derive(Clone)]
pub struct Keys(pub(super) Arc<[Key]>);

/// One key, in the only form that is needed: ready to derive others from.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) id: KeyId,
    pub(super) prk: Prk,
}

/// Which key sealed a text: derived from the key, telling nothing about it.
pub(super) type KeyId = [u8; 4];

/// Why the keys file is refused. Lines are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum KeysFault {
    /// There is no key.
    #[error("the keys file has no key: put a line of 64 hexadecimal digits in it")]
    Empty,
    /// A line is not a key.
    #[error("line {line} of the keys file is not a key: it needs exactly 64 hexadecimal digits")]
    NotAKey {
        /// Its number.
        line: usize,
    },
    /// A line repeats an earlier one.
    #[error("line {line} of the keys file repeats an earlier key")]
    Repeated {
        /// Its number.
        line: usize,
    },
}

impl Keys {
    /// Reads the text of a keys file: one 256-bit key a line as 64 hexadecimal
    /// digits. Empty lines are skipped.
    ///
    /// # Errors
    /// [`KeysFault`] names the line, never its content.
    pub fn parse(text: &str) -> Result<Self, KeysFault> {
        let mut keys: Vec<Key> = Vec::new();
        for (line, bytes) in lines(text) {
            let bytes = bytes.ok_or(KeysFault::NotAKey { line })?;
            let key = Key::new(&bytes);
            // Two keys with one id would be told apart by trying; a repeated
            // line is a rotation that did not happen.
            if keys.iter().any(|known| known.id == key.id) {
                return Err(KeysFault::Repeated { line });
            }
            keys.push(key);
        }
        if keys.is_empty() {
            return Err(KeysFault::Empty);
        }
        Ok(Self(keys.into()))
    }

    /// A new line for a keys file.
    pub fn generate_line() -> String {
        use std::fmt::Write as _;
        let mut line = String::with_capacity(64);
        for byte in clock::random::<32>() {
            // Writing to a String cannot fail.
            let _ = write!(line, "{byte:02x}");
        }
        line
    }

    /// What seals and opens for one use. A text sealed for one use opens for no other.
    pub fn sealer(&self, label: Label) -> Sealer {
        Sealer::new(self.clone(), label)
    }

    /// 32 bytes of each key for one use, the sealing key's first: seeds of signing
    /// keys. No sealed text shares them: its keys are derived with a longer label.
    pub fn seeds(&self, label: Label) -> Vec<Secret<[u8; 32]>> {
        let seed = |key: &Key| {
            let mut seed = [0; 32];
            key.prk
                .expand(&[label.info(), b"\0seed"], Length(seed.len()))
                .ok()?
                .fill(&mut seed)
                .ok()?;
            let secret = Secret::new(seed);
            seed.zeroize();
            Some(secret)
        };
        self.0.iter().filter_map(seed).collect()
    }

    /// What derives for one use.
    pub fn prf(&self, label: Label) -> Prf {
        Prf::new(self.clone(), label)
    }

    /// What a text begins with that the first key has sealed: one of these.
    pub fn marks(&self) -> Vec<String> {
        let Some(key) = self.first() else {
            return Vec::new();
        };
        // The last of the seven characters has two bits of what follows the key's id.
        let mark = |next: u8| {
            let mut head = vec![super::sealer::VERSION];
            head.extend_from_slice(&key.id);
            head.push(next << 6);
            let mut text = URL_SAFE_NO_PAD.encode(head);
            text.truncate(7);
            text
        };
        (0..4).map(mark).collect()
    }

    pub(super) fn first(&self) -> Option<&Key> {
        self.0.first()
    }

    pub(super) fn find(&self, id: KeyId) -> Option<&Key> {
        self.0.iter().find(|key| key.id == id)
    }
}

impl fmt::Debug for Keys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Keys({})", self.0.len())
    }
}

impl Key {
    pub(super) fn new(bytes: &[u8; 32]) -> Self {
        let prk = Salt::new(HKDF_SHA256, b"toolgate/1").extract(bytes);
        let mut id = KeyId::default();
        if let Ok(okm) = prk.expand(&[b"key id"], Length(id.len())) {
            let _ = okm.fill(&mut id);
        }
        Self { id, prk }
    }
}

/// How many bytes HKDF shall give.
pub(super) struct Length(pub(super) usize);

impl aws_lc_rs::hkdf::KeyType for Length {
    fn len(&self) -> usize {
        self.0
    }
}

/// The lines that are not empty, with their numbers; none where it is no key.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, Option<Zeroizing<[u8; 32]>>)> {
    (1..)
        .zip(text.lines().map(str::trim))
        .filter(|(_, line)| !line.is_empty())
        .map(|(number, line)| (number, decode(line).map(Zeroizing::new)))
}

fn decode(text: &str) -> Option<[u8; 32]> {
    let digits = text.as_bytes();
    if digits.len() != 64 {
        return None;
    }
    let mut bytes = [0; 32];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        let &[high, low] = pair else { return None };
        *byte = digit(high)? << 4 | digit(low)?;
    }
    Some(bytes)
}

fn digit(character: u8) -> Option<u8> {
    let value = char::from(character).to_digit(16)?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const B: &str = "F00102030405060708090A0B0C0D0E0F101112131415161718191A1B1C1D1E1F";

    #[test]
    fn a_keys_file_is_read_line_by_line() {
        let keys = Keys::parse(&format!("{A}\r\n\n  {B}\n")).unwrap();
        assert_eq!(format!("{keys:?}"), "Keys(2)");
        assert_eq!(Keys::parse("\n \n").unwrap_err(), KeysFault::Empty);
    }

    #[test]
    fn a_wrong_line_is_named_and_not_shown() {
        for wrong in ["abc", &A[..63], &format!("{A}0"), &A.replace('0', "g")] {
            let fault = Keys::parse(&format!("{B}\n{wrong}\n")).unwrap_err();
            assert_eq!(fault, KeysFault::NotAKey { line: 2 });
            assert!(!fault.to_string().contains(wrong));
        }
    }

    #[test]
    fn a_repeated_line_is_refused_whatever_its_case() {
        let text = format!("{A}\n{}\n", A.to_uppercase());
        assert_eq!(
            Keys::parse(&text).unwrap_err(),
            KeysFault::Repeated { line: 2 }
        );
    }

    #[test]
    fn every_key_gives_a_seed_of_its_own_for_each_use() {
        let keys = Keys::parse(&format!("{A}\n{B}")).unwrap();
        let seeds = |label| -> Vec<[u8; 32]> {
            keys.seeds(label)
                .iter()
                .map(|seed| *seed.expose())
                .collect()
        };
        let checkpoint = seeds(Label::Checkpoint);
        assert_eq!(checkpoint.len(), 2);
        assert_ne!(checkpoint[0], checkpoint[1]);
        assert_eq!(checkpoint, seeds(Label::Checkpoint));
        assert_ne!(checkpoint[0], seeds(Label::Cookie)[0]);
    }

    #[test]
    fn a_generated_line_is_a_key_and_never_the_same() {
        let line = Keys::generate_line();
        assert!(Keys::parse(&line).is_ok());
        assert_ne!(line, Keys::generate_line());
    }
}
