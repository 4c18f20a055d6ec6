//! Sealing and opening for one use.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use thiserror::Error;
use zeroize::Zeroize;

use super::Keys;
use super::keys::{Key, KeyId, Length};
use crate::clock;

/// The form of a sealed text; the first byte of each.
const VERSION: u8 = 1;
/// Bytes that make each message's key its own, beside its random nonce. With a
/// key per message the bound of 2^32 random nonces under one key (NIST SP
/// 800-38D §8.3) is out of reach, so keys need no rotation by count.
const SALT_LEN: usize = 12;
const ID_LEN: usize = size_of::<KeyId>();
/// Version and key id: what stands before the random part.
const HEAD_LEN: usize = 1 + ID_LEN;

/// What a sealed text is for. Each use has its own keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// `Mcp-Session-Id`.
    Session,
    /// Cursors of lists.
    Cursor,
    /// `requestState`.
    RequestState,
    /// What replicas tell each other.
    Relay,
    /// Cookies of sign-in and console.
    Cookie,
    /// Refresh tokens.
    RefreshToken,
    /// Users' credentials for upstreams.
    UpstreamCredential,
    /// Bodies in the audit.
    AuditBody,
    /// Checkpoints of the audit's chains.
    Checkpoint,
    /// Keys that access tokens are signed with.
    SigningKey,
    /// Refresh tokens of identity providers.
    ProviderToken,
    /// Pages that tool servers want people to open.
    Continuation,
}

impl Label {
    // These texts are part of what is stored: changing one loses what it sealed.
    pub(super) fn info(self) -> &'static [u8] {
        match self {
            Self::Session => b"session",
            Self::Cursor => b"cursor",
            Self::RequestState => b"request state",
            Self::Relay => b"relay",
            Self::Cookie => b"cookie",
            Self::RefreshToken => b"refresh token",
            Self::UpstreamCredential => b"upstream credential",
            Self::AuditBody => b"audit body",
            Self::Checkpoint => b"checkpoint",
            Self::SigningKey => b"signing key",
            Self::ProviderToken => b"provider token",
            Self::Continuation => b"continuation",
        }
    }
}

/// Why a text did not open. The caller learns no more than that it did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum SealFault {
    /// Not a sealed text of ours.
    #[error("not a sealed text")]
    Malformed,
    /// Sealed with a key that is no longer, or not yet, in the keys file.
    #[error("sealed with a key that is not in the keys file")]
    UnknownKey,
    /// Changed, sealed for another use, or bound to other data.
    #[error("sealed for something else, or changed")]
    Forged,
}

/// Seals and opens for one use. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Sealer {
    keys: Keys,
    label: Label,
}

impl Sealer {
    pub(super) fn new(keys: Keys, label: Label) -> Self {
        Self { keys, label }
    }

    /// Seals `plain` with the first key, bound to `aad`: base64url of
    /// version, key id, salt, nonce, ciphertext and tag. 60 characters longer than
    /// the base64url of the text itself.
    ///
    /// # Panics
    /// When the cryptographic library cannot seal: never below 64 GiB.
    pub fn seal(&self, plain: &[u8], aad: &[u8]) -> String {
        #[expect(
            clippy::expect_used,
            reason = "Keys::parse refuses an empty file, and AES-256-GCM fails only beyond 64 GiB"
        )]
        self.try_seal(plain, aad).expect("sealing works")
    }

    fn try_seal(&self, plain: &[u8], aad: &[u8]) -> Option<String> {
        let key = self.keys.first()?;
        let salt = clock::random::<SALT_LEN>();
        let nonce = clock::random::<NONCE_LEN>();
        let mut head = [VERSION; HEAD_LEN];
        head.get_mut(1..)?.copy_from_slice(&key.id);

        let mut out = Vec::with_capacity(HEAD_LEN + SALT_LEN + NONCE_LEN + plain.len() + 16);
        out.extend_from_slice(&head);
        out.extend_from_slice(&salt);
        out.extend_from_slice(&nonce);
        out.extend_from_slice(plain);
        let body = out.get_mut(HEAD_LEN + SALT_LEN + NONCE_LEN..)?;
        let tag = self
            .message_key(key, &salt)?
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound(head, aad)),
                body,
            )
            .ok()?;
        out.extend_from_slice(tag.as_ref());
        Some(URL_SAFE_NO_PAD.encode(&out))
    }

    /// Opens a text that was sealed for this use and bound to the same `aad`.
    ///
    /// # Errors
    /// [`SealFault`]; for the log, not for whoever sent the text.
    pub fn open(&self, text: &str, aad: &[u8]) -> Result<Vec<u8>, SealFault> {
        let bytes = URL_SAFE_NO_PAD
            .decode(text)
            .map_err(|_| SealFault::Malformed)?;
        let (head, rest) = split::<HEAD_LEN>(&bytes)?;
        let (salt, rest) = split::<SALT_LEN>(rest)?;
        let (nonce, body) = split::<NONCE_LEN>(rest)?;
        let [version, id @ ..] = head;
        if version != VERSION {
            return Err(SealFault::Malformed);
        }
        let key = self.keys.find(id).ok_or(SealFault::UnknownKey)?;
        let mut body = body.to_vec();
        let length = self
            .message_key(key, &salt)
            .ok_or(SealFault::Forged)?
            .open_in_place(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(bound(head, aad)),
                &mut body,
            )
            .map_err(|_| SealFault::Forged)?
            .len();
        body.truncate(length);
        Ok(body)
    }

    fn message_key(&self, key: &Key, salt: &[u8; SALT_LEN]) -> Option<LessSafeKey> {
        let mut bytes = [0; 32];
        key.prk
            .expand(&[self.label.info(), b"\0", salt], Length(bytes.len()))
            .ok()?
            .fill(&mut bytes)
            .ok()?;
        let unbound = UnboundKey::new(&AES_256_GCM, &bytes).ok();
        bytes.zeroize();
        unbound.map(LessSafeKey::new)
    }
}

/// What a message is bound to: its own head, then what the caller says.
fn bound(head: [u8; HEAD_LEN], aad: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(HEAD_LEN + aad.len());
    out.extend_from_slice(&head);
    out.extend_from_slice(aad);
    out
}

fn split<const N: usize>(bytes: &[u8]) -> Result<([u8; N], &[u8]), SealFault> {
    bytes
        .split_first_chunk::<N>()
        .map(|(first, rest)| (*first, rest))
        .ok_or(SealFault::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(lines: &[&str]) -> Keys {
        Keys::parse(&lines.join("\n")).unwrap()
    }

    const OLD: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    const NEW: &str = "f00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    #[test]
    fn what_is_sealed_opens_again_and_looks_like_nothing() {
        let sealer = keys(&[OLD]).sealer(Label::Session);
        for plain in [&b""[..], b"a", &[7; 300]] {
            let text = sealer.seal(plain, b"acme");
            assert!(
                text.bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_')
            );
            assert_eq!(sealer.open(&text, b"acme").unwrap(), plain);
            assert_ne!(sealer.seal(plain, b"acme"), text);
        }
    }

    #[test]
    fn it_opens_for_no_other_use_and_no_other_caller() {
        let keys = keys(&[OLD]);
        let text = keys.sealer(Label::Session).seal(b"x", b"acme");
        assert_eq!(
            keys.sealer(Label::Cursor).open(&text, b"acme"),
            Err(SealFault::Forged)
        );
        assert_eq!(
            keys.sealer(Label::Session).open(&text, b"globex"),
            Err(SealFault::Forged)
        );
    }

    #[test]
    fn no_bit_of_it_can_be_changed() {
        let sealer = keys(&[OLD]).sealer(Label::RequestState);
        let bytes = URL_SAFE_NO_PAD.decode(sealer.seal(b"state", b"")).unwrap();
        for at in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[at / 8] ^= 1 << (at % 8);
            assert!(
                sealer.open(&URL_SAFE_NO_PAD.encode(&changed), b"").is_err(),
                "bit {at}"
            );
        }
        for length in 0..bytes.len() {
            assert!(
                sealer
                    .open(&URL_SAFE_NO_PAD.encode(&bytes[..length]), b"")
                    .is_err()
            );
        }
        assert_eq!(sealer.open("no base64!", b""), Err(SealFault::Malformed));
    }

    #[test]
    fn an_old_key_opens_until_its_line_is_removed() {
        let text = keys(&[OLD]).sealer(Label::Session).seal(b"x", b"");
        let rotated = keys(&[NEW, OLD]).sealer(Label::Session);
        assert_eq!(rotated.open(&text, b"").unwrap(), b"x");
        let newer = rotated.seal(b"x", b"");
        assert_eq!(
            keys(&[OLD]).sealer(Label::Session).open(&newer, b""),
            Err(SealFault::UnknownKey)
        );
        assert_eq!(
            keys(&[NEW]).sealer(Label::Session).open(&text, b""),
            Err(SealFault::UnknownKey)
        );
    }

    #[test]
    fn the_stored_form_stays_what_it_is() {
        // Made by another implementation. A release that cannot open it loses
        // what is sealed.
        let sealer = keys(&[OLD]).sealer(Label::Session);
        let text = concat!(
            "ATfR9tEAAQIDBAUGBwgJCgtkZWZnaGlqa2xtbm_OAB8VJ-mvbgED_",
            "AUzI4dO0LUytUewHu3WyZ-vkw"
        );
        assert_eq!(sealer.open(text, b"acme").unwrap(), b"session facts");
    }
}
