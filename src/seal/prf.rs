//! Deriving for one use: a keyed function of a message, so that a value can be told
//! again, and recognised, without being stored.

use aws_lc_rs::hmac;
use zeroize::Zeroize as _;

use super::Keys;
use super::keys::{Key, KeyId, Length};
use super::sealer::Label;
use crate::secret;

/// Bytes of a tag: which key, and the derived value.
const TAG_LEN: usize = size_of::<KeyId>() + 32;

/// Derives and recognises for one use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Prf {
    keys: Keys,
    label: Label,
}

impl Prf {
    /// Bytes of a tag.
    pub const TAG: usize = TAG_LEN;

    pub(super) fn new(keys: Keys, label: Label) -> Self {
        Self { keys, label }
    }

    /// The tag of a message under the first key. The same message gives the same tag.
    pub fn tag(&self, message: &[u8]) -> Option<[u8; TAG_LEN]> {
        let key = self.keys.first()?;
        let mut tag = [0; TAG_LEN];
        let (id, value) = tag.split_at_mut(size_of::<KeyId>());
        id.copy_from_slice(&key.id);
        value.copy_from_slice(&self.value(key, message)?);
        Some(tag)
    }

    /// Whether a tag is that of the message, under whichever key. Constant in time.
    pub fn is_tag(&self, message: &[u8], tag: &[u8]) -> bool {
        let Some((id, value)) = tag.split_first_chunk::<{ size_of::<KeyId>() }>() else {
            return false;
        };
        self.keys
            .find(*id)
            .and_then(|key| self.value(key, message))
            .is_some_and(|known| secret::same(&known, value))
    }

    fn value(&self, key: &Key, message: &[u8]) -> Option<[u8; 32]> {
        let mut bytes = [0; 32];
        key.prk
            .expand(&[self.label.info(), b"\0prf"], Length(bytes.len()))
            .ok()?
            .fill(&mut bytes)
            .ok()?;
        let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, &bytes), message);
        bytes.zeroize();
        tag.as_ref().try_into().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_is_recognised_for_its_message_and_use_alone_and_after_a_rotation() {
        let (old, new) = (Keys::generate_line(), Keys::generate_line());
        let one = Keys::parse(&old).unwrap();
        let prf = one.prf(Label::RefreshToken);
        let tag = prf.tag(b"message").unwrap();
        assert_eq!(prf.tag(b"message").unwrap(), tag);
        assert!(prf.is_tag(b"message", &tag));
        assert!(!prf.is_tag(b"another", &tag));
        assert!(!one.prf(Label::Cookie).is_tag(b"message", &tag));
        for at in 0..TAG_LEN {
            let mut changed = tag;
            changed[at] ^= 1;
            assert!(!prf.is_tag(b"message", &changed), "{at}");
        }
        assert!(!prf.is_tag(b"message", &tag[..TAG_LEN - 1]));
        assert!(!prf.is_tag(b"message", b""));

        let rotated = Keys::parse(&format!("{new}\n{old}")).unwrap();
        assert!(rotated.prf(Label::RefreshToken).is_tag(b"message", &tag));
        assert_ne!(
            rotated.prf(Label::RefreshToken).tag(b"message").unwrap(),
            tag
        );
        let without = Keys::parse(&new).unwrap();
        assert!(!without.prf(Label::RefreshToken).is_tag(b"message", &tag));
    }
}
