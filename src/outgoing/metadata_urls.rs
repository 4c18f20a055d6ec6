//! Where an issuer's metadata is.

/// The places of an issuer's metadata: that of `OpenID Connect Discovery` §4, then
/// that of RFC 8414 §3.1.
pub fn metadata_urls(issuer: &str) -> Vec<String> {
    let trimmed = issuer.strip_suffix('/').unwrap_or(issuer);
    let appended = format!("{trimmed}/.well-known/openid-configuration");
    let authority = trimmed.find("://").map_or(0, |at| at + 3);
    let path = trimmed
        .get(authority..)
        .and_then(|rest| rest.find('/'))
        .map_or(trimmed.len(), |at| authority + at);
    let (origin, path) = trimmed.split_at(path);
    let inserted = format!("{origin}/.well-known/oauth-authorization-server{path}");
    vec![appended, inserted]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_places_of_metadata_are_those_of_the_specifications() {
        for (issuer, appended, inserted) in [
            (
                "https://idp.example.com",
                "https://idp.example.com/.well-known/openid-configuration",
                "https://idp.example.com/.well-known/oauth-authorization-server",
            ),
            (
                "https://idp.example.com/",
                "https://idp.example.com/.well-known/openid-configuration",
                "https://idp.example.com/.well-known/oauth-authorization-server",
            ),
            (
                "https://idp.example.com:8443/realms/acme",
                "https://idp.example.com:8443/realms/acme/.well-known/openid-configuration",
                "https://idp.example.com:8443/.well-known/oauth-authorization-server/realms/acme",
            ),
        ] {
            assert_eq!(metadata_urls(issuer), [appended, inserted]);
        }
    }
}
