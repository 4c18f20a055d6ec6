//! Keys of the shared store. Each begins with its tenant, between the braces by which a
//! cluster chooses a slot: all that one admission asks for lies in one. Whoever is meant
//! in the tenant is a digest, so that no caller's text is in a key.

use aws_lc_rs::digest::{Context, SHA256};

use super::super::charge::Charge;
use super::super::meter::Settings;
use crate::ids::TenantId;

/// The key of a bucket. It belongs to its settings: changed ones begin full.
pub(super) fn bucket(tenant: &TenantId, charge: &Charge<'_>, settings: Settings) -> String {
    let one = settings.one.as_nanos().to_be_bytes();
    let settings: [&[u8]; 2] = [&one, &settings.burst.to_be_bytes()];
    key(tenant, "bucket", charge, &settings)
}

/// The key of the places under a cap: the same ones whatever the cap is.
pub(super) fn places(tenant: &TenantId, charge: &Charge<'_>) -> String {
    key(tenant, "places", charge, &[])
}

fn key(tenant: &TenantId, kind: &str, charge: &Charge<'_>, more: &[&[u8]]) -> String {
    let mut digest = Context::new(&SHA256);
    let who = charge.who.iter().map(|part| part.as_bytes());
    for part in who.chain(more.iter().copied()) {
        // Behind its length, so that no two lists of parts are the same bytes.
        digest.update(&(part.len() as u64).to_be_bytes());
        digest.update(part);
    }
    let digest = digest.finish();
    let mut key = format!("{{{tenant}}}:{kind}:{}:", charge.policy);
    for byte in digest.as_ref().iter().take(16) {
        for digit in [byte >> 4, byte & 15] {
            key.push(char::from_digit(digit.into(), 16).unwrap_or_default());
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Bucket;

    fn sample(who: [&'static str; 2], policy: &'static str, rate: &str) -> (String, String) {
        let bucket = Bucket {
            rate: rate.parse().unwrap(),
            burst: Some(5),
            concurrent: None,
            when_away: None,
        };
        let charge = Charge {
            policy,
            bucket: &bucket,
            who,
        };
        let tenant = TenantId::new("acme");
        (
            super::bucket(&tenant, &charge, Settings::of(&bucket)),
            places(&tenant, &charge),
        )
    }

    #[test]
    fn a_key_begins_with_the_tenant_and_shows_nobody() {
        let (bucket, places) = sample(["https://idp", "alice}{@acme"], "user", "5/m");
        assert!(bucket.starts_with("{acme}:bucket:user:"), "{bucket}");
        assert!(places.starts_with("{acme}:places:user:"), "{places}");
        for key in [bucket, places] {
            assert_eq!(key.len(), "{acme}:bucket:user:".len() + 32);
            assert!(!key.contains("alice") && !key.contains("idp"));
        }
    }

    #[test]
    fn whoever_is_another_has_another_key() {
        let alice = sample(["a", "bc"], "user", "5/m");
        for other in [
            sample(["ab", "c"], "user", "5/m"),
            sample(["a", "bd"], "user", "5/m"),
            sample(["a", "bc"], "browse", "5/m"),
        ] {
            assert_ne!(alice.0, other.0);
            assert_ne!(alice.1, other.1);
        }
        let changed = sample(["a", "bc"], "user", "6/m");
        assert_ne!(alice.0, changed.0, "a bucket belongs to its settings");
        assert_eq!(alice.1, changed.1, "a place does not");
    }
}
