//! What the claims of an ID token must say (`OpenID` Connect Core §3.1.3.7). Its
//! signature was verified before.

use serde_json::Value;
use thiserror::Error;

use crate::jose::Claims;
use crate::secret::same;

/// How far the clocks of provider and service may differ, in seconds.
const LEEWAY: i64 = 30;
/// Oldest ID token that is taken: they are made for the exchange at hand.
const MAX_AGE: i64 = 10 * 60;

/// What is expected.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    /// The provider's issuer.
    pub issuer: &'a str,
    /// Our client id there.
    pub client_id: &'a str,
    /// The nonce that was sent; none where the token came of a refresh.
    pub nonce: Option<&'a str>,
    /// Seconds since the Unix epoch.
    pub now: i64,
}

/// Why an ID token is refused. Nothing of it is in here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum IdTokenFault {
    /// `iss`
    #[error("the ID token is of another issuer")]
    Issuer,
    /// `aud`
    #[error("the ID token is for another client")]
    Audience,
    /// `azp`
    #[error("the ID token was issued to another client")]
    AuthorizedParty,
    /// `nonce`
    #[error("the ID token answers another sign-in")]
    Nonce,
    /// `exp`, `iat`, `nbf`
    #[error("the ID token has expired or is not valid yet")]
    Time,
}

/// Holds the claims of an ID token against what is expected.
///
/// # Errors
/// The first that does not hold.
pub fn judge(claims: &Claims, expected: Expected<'_>) -> Result<(), IdTokenFault> {
    let text = |name: &str| claims.get(name).and_then(Value::as_str);
    if text("iss") != Some(expected.issuer) {
        return Err(IdTokenFault::Issuer);
    }
    let ours = |value: &Value| value.as_str() == Some(expected.client_id);
    let (meant, several) = match claims.get("aud") {
        Some(Value::Array(all)) => (all.iter().any(ours), all.len() > 1),
        Some(one) => (ours(one), false),
        None => (false, false),
    };
    if !meant {
        return Err(IdTokenFault::Audience);
    }
    match claims.get("azp") {
        Some(azp) if !ours(azp) => return Err(IdTokenFault::AuthorizedParty),
        None if several => return Err(IdTokenFault::AuthorizedParty),
        _ => {}
    }
    if let Some(nonce) = expected.nonce {
        let fits = text("nonce").is_some_and(|given| same(given.as_bytes(), nonce.as_bytes()));
        if !fits {
            return Err(IdTokenFault::Nonce);
        }
    }
    timely(claims, expected.now)
}

fn timely(claims: &Claims, now: i64) -> Result<(), IdTokenFault> {
    let date = |name: &str| claims.get(name).map(Value::as_f64);
    #[expect(
        clippy::cast_precision_loss,
        reason = "seconds since 1970 are far below the precision of f64"
    )]
    let (now, leeway, oldest) = (now as f64, LEEWAY as f64, (MAX_AGE + LEEWAY) as f64);
    let expires = date("exp").flatten().ok_or(IdTokenFault::Time)?;
    let issued = date("iat").flatten().ok_or(IdTokenFault::Time)?;
    let from = match date("nbf") {
        None => issued,
        Some(from) => from.ok_or(IdTokenFault::Time)?,
    };
    let good = expires + leeway > now
        && issued < now + leeway
        && issued + oldest > now
        && from < now + leeway;
    good.then_some(()).ok_or(IdTokenFault::Time)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: i64 = 1_800_000_000;

    fn judged(change: &[(&str, Option<Value>)]) -> Result<(), IdTokenFault> {
        let mut claims = json!({
            "iss": "https://idp.example.com", "aud": "toolgate", "nonce": "n1", "sub": "1",
            "iat": NOW - 5, "exp": NOW + 300,
        });
        let claims = claims.as_object_mut().unwrap();
        for (name, value) in change {
            match value {
                Some(value) => claims.insert((*name).to_owned(), value.clone()),
                None => claims.shift_remove(*name),
            };
        }
        judge(
            claims,
            Expected {
                issuer: "https://idp.example.com",
                client_id: "toolgate",
                nonce: Some("n1"),
                now: NOW,
            },
        )
    }

    #[test]
    fn every_claim_has_to_fit() {
        use IdTokenFault::{Audience, AuthorizedParty, Issuer, Nonce, Time};
        type Row = (&'static str, Option<Value>, Result<(), IdTokenFault>);
        let some = |value: Value| Some(value);
        let table: Vec<Row> = vec![
            ("sub", some(json!("2")), Ok(())),
            ("iss", some(json!("https://idp.example.com/")), Err(Issuer)),
            ("iss", None, Err(Issuer)),
            ("aud", some(json!(["toolgate"])), Ok(())),
            ("aud", some(json!(["toolgate", "x"])), Err(AuthorizedParty)),
            (
                "aud",
                some(json!("https://gw.example.com/mcp")),
                Err(Audience),
            ),
            ("aud", some(json!([])), Err(Audience)),
            ("aud", None, Err(Audience)),
            ("azp", some(json!("toolgate")), Ok(())),
            ("azp", some(json!("other")), Err(AuthorizedParty)),
            ("nonce", some(json!("n2")), Err(Nonce)),
            ("nonce", some(json!(1)), Err(Nonce)),
            ("nonce", None, Err(Nonce)),
            ("exp", some(json!(NOW - 31)), Err(Time)),
            ("exp", some(json!(NOW - 10)), Ok(())),
            ("exp", None, Err(Time)),
            ("exp", some(json!("soon")), Err(Time)),
            ("iat", some(json!(NOW + 60)), Err(Time)),
            ("iat", some(json!(NOW - 3600)), Err(Time)),
            ("iat", None, Err(Time)),
            ("nbf", some(json!(NOW + 60)), Err(Time)),
        ];
        for (name, value, right) in table {
            assert_eq!(judged(&[(name, value.clone())]), right, "{name} {value:?}");
        }
        let both = [
            ("aud", some(json!(["toolgate", "x"]))),
            ("azp", some(json!("toolgate"))),
        ];
        assert_eq!(judged(&both), Ok(()));
    }
}
