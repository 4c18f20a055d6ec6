//! Keys that leave the keys file and are still needed to read what is not sealed anew.

use zeroize::Zeroizing;

use super::keys::{Key, lines};
use super::{Keys, KeysFault, Label};

/// Such a key, sealed under the first of the file: without that file it tells nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetiredKey {
    /// Which key: the id that stands in what it sealed.
    pub key_id: Vec<u8>,
    /// The key, sealed for its id.
    pub sealed: String,
}

impl RetiredKey {
    /// Every key of a keys file but the first.
    ///
    /// # Errors
    /// [`KeysFault`], as [`Keys::parse`].
    pub fn of_lines(text: &str) -> Result<Vec<Self>, KeysFault> {
        let sealer = Keys::parse(text)?.sealer(Label::RetiredKey);
        let old = lines(text).skip(1).filter_map(|(_, bytes)| bytes);
        let retired = old.map(|bytes| {
            let key_id = Key::new(&bytes).id;
            Self {
                key_id: key_id.to_vec(),
                sealed: sealer.seal(&*bytes, &key_id),
            }
        });
        Ok(retired.collect())
    }
}

impl Keys {
    /// These keys, and behind them retired ones that one of these opens.
    #[must_use]
    pub fn with_retired(&self, retired: &[RetiredKey]) -> Self {
        let sealer = self.sealer(Label::RetiredKey);
        let opened = retired.iter().filter_map(|retired| {
            let bytes = Zeroizing::new(sealer.open(&retired.sealed, &retired.key_id).ok()?);
            Some(Key::new(bytes.as_slice().try_into().ok()?))
        });
        let mut keys = self.0.to_vec();
        for key in opened {
            if !keys.iter().any(|known| known.id == key.id) {
                keys.push(key);
            }
        }
        Self(keys.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retired_key_opens_what_it_sealed_after_its_line_is_gone() {
        let (old, new) = (Keys::generate_line(), Keys::generate_line());
        let sealed = Keys::parse(&old)
            .unwrap()
            .sealer(Label::AuditBody)
            .seal(b"x", b"");
        let both = format!("{new}\n\n{old}\n");
        let retired = RetiredKey::of_lines(&both).unwrap();
        assert_eq!(retired.len(), 1);
        let without = Keys::parse(&new).unwrap();
        assert!(without.sealer(Label::AuditBody).open(&sealed, b"").is_err());
        let reading = without.with_retired(&retired);
        assert_eq!(
            reading.sealer(Label::AuditBody).open(&sealed, b"").unwrap(),
            b"x"
        );
        let again = without.with_retired(&RetiredKey::of_lines(&both).unwrap());
        assert_eq!(format!("{again:?}"), "Keys(2)");
        let stranger = Keys::parse(&Keys::generate_line()).unwrap();
        assert_eq!(format!("{:?}", stranger.with_retired(&retired)), "Keys(1)");
    }

    #[test]
    fn what_the_first_key_sealed_is_known_by_its_beginning() {
        let (old, new) = (Keys::generate_line(), Keys::generate_line());
        let both = Keys::parse(&format!("{new}\n{old}")).unwrap();
        let only_old = Keys::parse(&old).unwrap();
        for _ in 0..50 {
            let begins = |keys: &Keys| {
                let text = keys.sealer(Label::Session).seal(b"x", b"");
                both.marks()
                    .iter()
                    .any(|mark| text.starts_with(mark.as_str()))
            };
            assert!(begins(&both));
            assert!(!begins(&only_old));
        }
    }
}
