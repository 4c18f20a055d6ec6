//! Checkpoints: what a writer signs each second, and at its end, about its chains.
//!
//! A checkpoint is a compact JWS (RFC 7515, `EdDSA`), so that anybody who has the
//! public key can check it with any library, and a line of a log that has one in it
//! is evidence. Its header's `typ` is [`TYPE`], its `kid` the key's thumbprint. Claims:
//!
//! ```text
//! writer    id in audit_writers          replica, lane   who that is
//! number    from 1, without a gap        previous        SHA-256 of the token before, hexadecimal
//! at        microseconds since 1970      final           true for the last of a writer
//! chains    [[tenant, count, link], …]   those that moved since the checkpoint before:
//!                                        events so far, and the last link, hexadecimal
//! ```
//!
//! The key is Ed25519, derived from each line of the keys file ([`Label::Checkpoint`]):
//! the first line signs, all verify. The database never sees it, so its owner cannot sign.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use time::OffsetDateTime;
use uuid::Uuid;

use super::chain::{Digest, sha256};
use super::event::hexadecimal;
use crate::jose::{self, Algorithm, JoseFault, KeySet, KeySetFault, SigningFault, SigningKey};
use crate::seal::{Keys, Label};

/// `typ` of a checkpoint.
pub const TYPE: &str = "toolgate-checkpoint";
/// `typ` of what is signed about a day before it is dropped.
pub const CLOSING_TYPE: &str = "toolgate-closing";

/// The most chains in one checkpoint: a token has at most 16 KiB.
pub(super) const CHAINS_MAX: usize = 24;

/// What a checkpoint says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// Id of the writer.
    pub writer: i32,
    /// Its process.
    pub replica: Uuid,
    /// Its lane.
    pub lane: i16,
    /// From 1.
    pub number: i64,
    /// Digest of the token before, in hexadecimal; 64 zeros before the first.
    pub previous: String,
    /// Microseconds since 1970.
    pub at: i64,
    /// Whether it is the writer's last.
    #[serde(rename = "final", default, skip_serializing_if = "std::ops::Not::not")]
    pub last: bool,
    /// Tenant, events so far, last link in hexadecimal.
    pub chains: Vec<(String, i64, String)>,
}

impl Checkpoint {
    /// When it was signed.
    pub fn time(&self) -> OffsetDateTime {
        from_micros(self.at)
    }
}

pub(super) fn from_micros(at: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp_nanos(i128::from(at) * 1_000)
        .unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

pub(super) fn to_micros(at: OffsetDateTime) -> i64 {
    i64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX)
}

/// Digest of a token, as the next one names it.
pub fn token_digest(token: &str) -> Digest {
    sha256(token.as_bytes())
}

/// Signs checkpoints with the first key of the keys file.
#[derive(Debug)]
pub struct Signer(SigningKey);

impl Signer {
    /// The signer of a deployment.
    ///
    /// # Errors
    /// When the cryptographic library fails.
    pub fn new(keys: &Keys) -> Result<Self, SigningFault> {
        let seeds = keys.seeds(Label::Checkpoint);
        let seed = seeds.first().ok_or(SigningFault::NotAKey)?;
        SigningKey::from_seed(seed.expose()).map(Self)
    }

    pub(super) fn sign(&self, claims: &impl Serialize, typ: &str) -> Result<String, SigningFault> {
        match serde_json::to_value(claims) {
            Ok(Value::Object(claims)) => self.0.sign(&claims, typ),
            _ => Err(SigningFault::Library),
        }
    }
}

/// The public keys that verify this deployment's checkpoints, as a JWK set. Keep it
/// where the database's owner cannot write, and beyond the life of the keys: a
/// checkpoint outlives the line of the keys file that signed it.
///
/// # Errors
/// When the cryptographic library fails.
pub fn public_keys(keys: &Keys) -> Result<Value, SigningFault> {
    let keys = keys
        .seeds(Label::Checkpoint)
        .iter()
        .map(|seed| Ok(SigningKey::from_seed(seed.expose())?.public_jwk()))
        .collect::<Result<Vec<Value>, SigningFault>>()?;
    Ok(json!({ "keys": keys }))
}

/// Who may have signed.
#[derive(Debug)]
pub struct Verifier(KeySet);

impl Verifier {
    /// Takes a JWK set such as [`public_keys`] gives.
    ///
    /// # Errors
    /// When it is none.
    pub fn parse(jwks: &str) -> Result<Self, KeySetFault> {
        KeySet::parse(jwks).map(Self)
    }

    /// What a checkpoint says, once its signature has been checked.
    ///
    /// # Errors
    /// `UnknownKey` when another key of the deployment may have signed it.
    pub fn checkpoint(&self, token: &str) -> Result<Checkpoint, JoseFault> {
        self.read(token, TYPE)
    }

    pub(super) fn read<T: for<'de> Deserialize<'de>>(
        &self,
        token: &str,
        typ: &str,
    ) -> Result<T, JoseFault> {
        if jose::header(token)?.typ.as_deref() != Some(typ) {
            return Err(JoseFault::Malformed);
        }
        let claims = jose::verify(token, &self.0, &[Algorithm::EdDsa])?;
        serde_json::from_value(Value::Object(claims)).map_err(|_| JoseFault::Malformed)
    }
}

/// The tokens in a line of a log, whatever else is in it.
pub fn tokens(line: &str) -> impl Iterator<Item = &str> {
    line.split(|character: char| {
        !(character.is_ascii_alphanumeric() || matches!(character, '-' | '_' | '.'))
    })
    .filter(|word| word.starts_with("eyJ") && word.matches('.').count() == 2)
}

/// Where a writer's checkpoints stand: composing one changes nothing, only a stored
/// one moves on.
#[derive(Debug, Default)]
pub(super) struct Signing {
    number: i64,
    previous: Digest,
    /// The checkpoint that was composed and of which nobody knows yet that it is stored.
    pub(super) pending: Option<(Checkpoint, String)>,
    pub(super) ended: bool,
}

impl Signing {
    /// Composes and signs what follows, unless something is pending already.
    pub(super) fn compose(
        &mut self,
        signer: &Signer,
        who: (i32, Uuid, i16),
        at: OffsetDateTime,
        heads: &BTreeMap<String, (i64, Digest)>,
        last: bool,
    ) -> Result<(), SigningFault> {
        if self.pending.is_some() {
            return Ok(());
        }
        let (writer, replica, lane) = who;
        let checkpoint = Checkpoint {
            writer,
            replica,
            lane,
            number: self.number + 1,
            previous: hexadecimal(&self.previous),
            at: to_micros(at),
            last: last && heads.len() <= CHAINS_MAX,
            chains: heads
                .iter()
                .take(CHAINS_MAX)
                .map(|(tenant, (count, link))| (tenant.clone(), *count, hexadecimal(link)))
                .collect(),
        };
        let token = signer.sign(&checkpoint, TYPE)?;
        self.pending = Some((checkpoint, token));
        Ok(())
    }

    /// The pending one is stored.
    pub(super) fn advance(&mut self) -> Option<(Checkpoint, String)> {
        let (checkpoint, token) = self.pending.take()?;
        self.number = checkpoint.number;
        self.previous = token_digest(&token);
        self.ended = checkpoint.last;
        Some((checkpoint, token))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";

    fn signed(last: bool) -> (String, Verifier) {
        let keys = Keys::parse(KEY).unwrap();
        let mut signing = Signing::default();
        let heads = BTreeMap::from([("acme".to_owned(), (7, [0xab; 32]))]);
        let at = OffsetDateTime::UNIX_EPOCH;
        let signer = Signer::new(&keys).unwrap();
        signing
            .compose(&signer, (3, Uuid::nil(), 1), at, &heads, last)
            .unwrap();
        let (_, token) = signing.advance().unwrap();
        let jwks = public_keys(&keys).unwrap().to_string();
        (token, Verifier::parse(&jwks).unwrap())
    }

    #[test]
    fn the_public_key_alone_verifies_a_checkpoint() {
        let (token, verifier) = signed(true);
        let read = verifier.checkpoint(&token).unwrap();
        assert_eq!((read.writer, read.number, read.last), (3, 1, true));
        assert_eq!(read.chains, [("acme".to_owned(), 7, "ab".repeat(32))]);
        let other = Keys::parse(&KEY.replace("00", "ff")).unwrap();
        let other = Verifier::parse(&public_keys(&other).unwrap().to_string()).unwrap();
        assert_eq!(other.checkpoint(&token), Err(JoseFault::UnknownKey));
    }

    #[test]
    fn a_token_is_found_in_any_line_of_a_log() {
        let (token, verifier) = signed(false);
        for line in [
            format!(r#"{{"level":"INFO","fields":{{"checkpoint":"{token}"}}}}"#),
            format!("2026-07-28T12:00:00Z INFO signed checkpoint={token} lane=started"),
            token.clone(),
        ] {
            let found: Vec<&str> = tokens(&line).collect();
            assert_eq!(found, [token.as_str()], "{line}");
            assert!(verifier.checkpoint(found[0]).is_ok());
        }
        assert_eq!(tokens("nothing.to see.here eyJ").count(), 0);
    }

    #[test]
    fn the_largest_checkpoint_is_a_token_that_can_be_read() {
        let keys = Keys::parse(KEY).unwrap();
        let heads: BTreeMap<String, (i64, Digest)> = (0..CHAINS_MAX + 5)
            .map(|n| (format!("{n:0>256}"), (i64::MAX, [0xff; 32])))
            .collect();
        let mut signing = Signing::default();
        let at = OffsetDateTime::UNIX_EPOCH;
        let signer = Signer::new(&keys).unwrap();
        signing
            .compose(&signer, (i32::MAX, Uuid::max(), 3), at, &heads, true)
            .unwrap();
        let (checkpoint, token) = signing.advance().unwrap();
        assert_eq!(checkpoint.chains.len(), CHAINS_MAX);
        assert!(
            !checkpoint.last,
            "chains are left: there is one more to come"
        );
        let jwks = public_keys(&keys).unwrap().to_string();
        assert!(Verifier::parse(&jwks).unwrap().checkpoint(&token).is_ok());
    }
}
