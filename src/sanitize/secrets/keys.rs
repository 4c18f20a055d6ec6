//! What a name says about its value: `DB_PASSWORD`, `clientSecret`, `x-api-key`
//! name secrets; `next_page_token`, `secretName` and `public_key` do not.

/// What kind of secret a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    /// A secret whatever its entropy.
    Password,
    /// A key, secret or token: random, or it is none.
    Key,
    /// `Authorization` and its kin: a scheme may stand before the value.
    Header,
    /// `Cookie`, `Set-Cookie`.
    Cookie,
}

/// Words before `token` that make it none.
const HARMLESS_TOKENS: &[&str] = &[
    "bos",
    "cancel",
    "cancellation",
    "cls",
    "completion",
    "continuation",
    "cursor",
    "design",
    "end",
    "eos",
    "first",
    "idempotency",
    "input",
    "iteration",
    "last",
    "list",
    "mask",
    "max",
    "min",
    "next",
    "output",
    "pad",
    "page",
    "pagination",
    "paging",
    "prev",
    "previous",
    "progress",
    "prompt",
    "public",
    "resume",
    "scroll",
    "sep",
    "special",
    "start",
    "stop",
    "sync",
    "total",
    "unk",
];

/// Words before `key` that make it a secret.
const SECRET_KEYS: &[&str] = &[
    "access",
    "account",
    "admin",
    "aes",
    "api",
    "app",
    "application",
    "auth",
    "client",
    "consumer",
    "decryption",
    "deploy",
    "encrypt",
    "encryption",
    "functions",
    "hmac",
    "ingest",
    "ingestion",
    "instrumentation",
    "integration",
    "jwt",
    "license",
    "master",
    "private",
    "provisioning",
    "root",
    "secret",
    "service",
    "shared",
    "signing",
    "storage",
    "subscription",
    "token",
    "vault",
    "webhook",
    "write",
];

/// Whether bytes belong to a name: `DB_PASSWORD`, `X-Api-Key`, `spring.password`.
pub(super) fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'$')
}

/// The words of a name, last first: `imagePullSecrets` has three.
fn words(name: &str) -> impl Iterator<Item = &str> {
    let mut rest = name;
    std::iter::from_fn(move || {
        rest = rest.trim_end_matches(|c: char| !c.is_ascii_alphabetic());
        let bytes = rest.as_bytes();
        let mut start = bytes.len();
        while let Some(at) = start.checked_sub(1) {
            let byte = bytes.get(at).copied().unwrap_or(b'_');
            if !byte.is_ascii_alphabetic() {
                break;
            }
            start = at;
            let next_lower = bytes.get(at + 1).is_some_and(u8::is_ascii_lowercase);
            let before = at.checked_sub(1).and_then(|at| bytes.get(at));
            let begins_word = byte.is_ascii_uppercase()
                && before.is_some_and(|b| {
                    b.is_ascii_lowercase() || (b.is_ascii_uppercase() && next_lower)
                });
            if begins_word {
                break;
            }
        }
        let (left, word) = rest.split_at_checked(start)?;
        rest = left;
        (!word.is_empty()).then_some(word)
    })
}

fn is_one_of(word: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| entry.eq_ignore_ascii_case(word))
}

fn ends_with(word: &str, end: &str) -> bool {
    word.len()
        .checked_sub(end.len())
        .and_then(|at| word.get(at..))
        .is_some_and(|tail| tail.eq_ignore_ascii_case(end))
}

/// What the name stands for; `None` for names of anything else.
pub(super) fn class(name: &str) -> Option<Named> {
    // A sentence, or a placeholder, is no name.
    if name.len() > 128 || !name.bytes().all(|b| is_name_byte(b) || b == b' ') {
        return None;
    }
    let mut words = words(name);
    let last = words.next()?;
    let before = words.next();
    let is_before = |list: &[&str]| before.is_some_and(|word| is_one_of(word, list));
    if is_before(&[
        "public", "no", "without", "allow", "require", "show", "forgot", "reset", "hide",
    ]) {
        return None;
    }
    let password = [
        "password",
        "passwd",
        "passphrase",
        "passwort",
        "kennwort",
        "wachtwoord",
        "senha",
    ];
    if password.iter().any(|end| ends_with(last, end))
        || is_one_of(last, &["pass", "pwd", "passcode", "dbpass"])
    {
        return Some(Named::Password);
    }
    if ends_with(last, "token") {
        let harmless = is_before(HARMLESS_TOKENS)
            || ["pagetoken", "nexttoken", "synctoken"]
                .iter()
                .any(|end| ends_with(last, end));
        return (!harmless).then_some(Named::Key);
    }
    if ends_with(last, "secret") || is_one_of(last, &["credential", "credentials"]) {
        return Some(Named::Key);
    }
    if ends_with(last, "key") {
        let glued = [
            "apikey",
            "accesskey",
            "secretkey",
            "privatekey",
            "accountkey",
            "authkey",
            "signingkey",
        ];
        let named = if last.len() == 3 {
            is_before(SECRET_KEYS)
        } else {
            glued.iter().any(|end| ends_with(last, end))
        };
        return named.then_some(Named::Key);
    }
    if is_one_of(last, &["authorization", "bearer"]) {
        return Some(Named::Header);
    }
    is_one_of(last, &["cookie", "cookies"]).then_some(Named::Cookie)
}

/// Whether the name is one of an AWS secret access key.
pub(super) fn is_aws(name: &str) -> bool {
    let lower = name.to_ascii_lowercase().replace(['_', '-', ' ', '.'], "");
    lower.contains("aws") || lower.contains("secretaccesskey")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets_are_known_in_every_spelling() {
        for name in [
            "password",
            "DB_PASSWORD",
            "smtp_pass",
            "dbPass",
            "userPassword",
            "PGPASSWORD",
            "pwd",
            "password2",
        ] {
            assert_eq!(class(name), Some(Named::Password), "{name}");
        }
        for name in [
            "api_key",
            "apiKey",
            "API_KEY",
            "X-Api-Key",
            "APIKey",
            "clientSecret",
            "client_secret",
            "access_token",
            "ACCESS_TOKEN",
            "authToken",
            "signing_secret",
            "ENCRYPTION_KEY",
            "AccountKey",
            "aws_secret_access_key",
            "SecretAccessKey",
            "token",
            "private_key",
        ] {
            assert_eq!(class(name), Some(Named::Key), "{name}");
        }
        assert_eq!(class("Authorization"), Some(Named::Header));
        assert_eq!(class("Set-Cookie"), Some(Named::Cookie));
    }

    #[test]
    fn names_of_other_things_are_not() {
        for name in [
            "next_page_token",
            "page_token",
            "nextPageToken",
            "tokens",
            "tokenExpirationSeconds",
            "token_type",
            "secretName",
            "secret_name",
            "imagePullSecrets",
            "primary_key",
            "cache_key",
            "public_key",
            "kms_key_id",
            "aws_access_key_id",
            "passed",
            "bypass_count",
            "compass",
            "password_policy",
            "max_tokens",
            "idempotency_key",
            "keyName",
            "key",
            "tokenizer",
            "",
        ] {
            assert_eq!(class(name), None, "{name}");
        }
    }
}
