//! The way from the root of a configuration to one of its values.

use std::fmt;
use std::sync::Arc;

/// One step into a mapping or a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Into a mapping.
    Key(Arc<str>),
    /// Into a list, counted from 0.
    Index(usize),
}

/// The steps from the root. Written `tenants.acme.limits`, `tools[2].match`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct KeyPath(pub(super) Vec<Step>);

impl KeyPath {
    /// This path and one key more.
    pub(super) fn key(&self, key: &str) -> Self {
        let mut steps = self.0.clone();
        steps.push(Step::Key(key.into()));
        Self(steps)
    }

    /// Whether one of the two lies within the other.
    pub(super) fn touches(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).all(|(a, b)| a == b)
    }

    /// The path without its last step.
    pub(super) fn parent(&self) -> Option<Self> {
        let (_, rest) = self.0.split_last()?;
        Some(Self(rest.to_vec()))
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if at > 0 {
                        f.write_str(".")?;
                    }
                    write_key(f, key)?;
                }
            }
        }
        Ok(())
    }
}

/// A key that could be mistaken for several, or that would move the cursor, is quoted.
fn write_key(f: &mut fmt::Formatter<'_>, key: &str) -> fmt::Result {
    let key = &without_secrets(key);
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | ':' | '*');
    if !key.is_empty() && key.chars().all(plain) {
        f.write_str(key)
    } else {
        write!(f, "{key:?}")
    }
}

/// A forgotten space makes a key of a value (`url:postgres://user:password@host`).
/// User and password are covered, should such a key be repeated.
fn without_secrets(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("://") {
        let (head, tail) = rest.split_at(at + 3);
        clean.push_str(head);
        let end = tail.find(char::is_whitespace).unwrap_or(tail.len());
        let (address, after) = tail.split_at(end);
        match address.rfind('@') {
            Some(host) => {
                clean.push_str("[secret]");
                clean.push_str(address.get(host..).unwrap_or_default());
            }
            None => clean.push_str(address),
        }
        rest = after;
    }
    clean.push_str(rest);
    clean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_written_as_people_would() {
        let path = KeyPath(vec![
            Step::Key("tools".into()),
            Step::Index(2),
            Step::Key("match".into()),
        ]);
        assert_eq!(path.to_string(), "tools[2].match");
        assert_eq!(
            KeyPath::default().key("roles").key("a.b\u{1b}").to_string(),
            "roles.\"a.b\\u{1b}\""
        );
    }

    #[test]
    fn a_path_touches_what_holds_it_and_what_it_holds() {
        let tenant = KeyPath::default().key("tenants").key("acme");
        assert!(tenant.touches(&tenant.key("limits")));
        assert!(tenant.key("limits").touches(&tenant));
        assert!(!tenant.key("limits").touches(&tenant.key("tools")));
    }

    #[test]
    fn a_password_in_a_misread_key_is_covered() {
        for (path, clean) in [
            (
                "database.url:postgres://u:hunter2@h/db",
                "database.url:postgres://[secret]@h/db",
            ),
            ("postgres://u:p@ss@h", "postgres://[secret]@h"),
            ("https://host/path", "https://host/path"),
        ] {
            assert_eq!(without_secrets(path), clean);
        }
    }
}
