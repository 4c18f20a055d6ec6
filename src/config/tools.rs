//! Rules about tools: which, and what holds for them.

use std::fmt;

use serde::{Deserialize, Deserializer};

use super::check::Check;
use super::{Audit, Interval, ToolLimits};
use crate::ids::{Scope, UpstreamId};

/// A glob over exposed tool names: `*` stands for any run of characters, `?` for one.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Pattern(String);

impl Pattern {
    /// Takes a glob.
    pub fn new(glob: impl Into<String>) -> Self {
        Self(glob.into())
    }

    /// The glob as written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a name fits. Time is bounded by pattern length times name length.
    pub fn matches(&self, name: &str) -> bool {
        let (pattern, name): (Vec<char>, Vec<char>) =
            (self.0.chars().collect(), name.chars().collect());
        let (mut p, mut n) = (0, 0);
        let mut star: Option<(usize, usize)> = None;
        while n < name.len() {
            match pattern.get(p) {
                Some('*') => {
                    star = Some((p, n));
                    p += 1;
                }
                Some(c) if *c == '?' || Some(c) == name.get(n) => {
                    p += 1;
                    n += 1;
                }
                _ => {
                    let Some((at, from)) = star else { return false };
                    star = Some((at, from + 1));
                    p = at + 1;
                    n = from + 1;
                }
            }
        }
        pattern.iter().skip(p).all(|c| *c == '*')
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self)
    }
}

/// `allow` and `deny`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RuleSet {
    /// What may be used.
    pub allow: Vec<Rule>,
    /// What may not, whatever else allows it.
    pub deny: Vec<Rule>,
}

/// One rule: a glob, or a mapping whose every given part must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rule {
    /// Glob over exposed names.
    pub name: Option<Pattern>,
    /// The upstream that the tool comes from.
    pub upstream: Option<UpstreamId>,
    /// Whether the tool says that it only reads (`readOnlyHint`, an upstream's word).
    pub read_only: Option<bool>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleParts {
    #[serde(rename = "match")]
    name: Option<Pattern>,
    upstream: Option<UpstreamId>,
    read_only: Option<bool>,
}

impl<'de> Deserialize<'de> for Rule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = Rule;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "a glob such as \"crm_*\", or a mapping with match, upstream or read_only",
                )
            }

            fn visit_str<E: serde::de::Error>(self, glob: &str) -> Result<Rule, E> {
                Ok(Rule {
                    name: Some(Pattern::new(glob)),
                    ..Rule::default()
                })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Rule, A::Error> {
                let parts =
                    RuleParts::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
                if parts.name.is_none() && parts.upstream.is_none() && parts.read_only.is_none() {
                    return Err(serde::de::Error::custom(
                        "says nothing; write match, upstream or read_only, or \"*\" for every tool",
                    ));
                }
                Ok(Rule {
                    name: parts.name,
                    upstream: parts.upstream,
                    read_only: parts.read_only,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

/// One entry of `tools`: what holds for the tools that match, in every tenant.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolRule {
    /// Glob over exposed names.
    #[serde(rename = "match")]
    pub name: Pattern,
    /// Scopes that a token needs to call the tool.
    #[serde(default)]
    pub scopes: Option<Vec<Scope>>,
    /// A bucket for each tenant's calls of the matching tools together.
    #[serde(default)]
    pub limits: Option<ToolLimits>,
    /// How its calls are recorded.
    #[serde(default)]
    pub audit: Option<Audit>,
    /// How long a call may take.
    #[serde(default)]
    pub timeout: Option<Interval>,
    /// Whether the operator vouches that repeating a call does no harm.
    #[serde(default)]
    pub idempotent: Option<bool>,
}

impl Pattern {
    /// A pattern that can match no name is a mistake, and in a `deny` a dangerous one.
    fn can_match(&self) -> bool {
        let possible = |c: char| c.is_ascii_alphanumeric() || "_.-*?".contains(c);
        !self.0.is_empty() && self.0.chars().all(possible)
    }

    fn validate(&self, check: &mut Check<'_>) {
        if !self.can_match() {
            check.fault(
                "can match no tool",
                "use A-Z, a-z, 0-9, `_`, `.` and `-`; `*` for any characters and `?` for one",
            );
        }
    }
}

impl RuleSet {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        for (key, rules) in [("allow", &self.allow), ("deny", &self.deny)] {
            check.each(key, rules, Rule::validate);
        }
    }
}

impl Rule {
    fn validate_upstream(&self, check: &mut Check<'_>) {
        if let Some(upstream) = &self.upstream {
            check.within("upstream", |check| {
                check.refers("upstreams", upstream.as_str());
            });
        }
    }

    fn validate(&self, check: &mut Check<'_>) {
        if let Some(pattern) = self.name.as_ref().filter(|name| !name.can_match()) {
            // A rule is a glob or a mapping with one.
            if check.holds("match") {
                check.within("match", |check| pattern.validate(check));
            } else {
                pattern.validate(check);
            }
        }
        self.validate_upstream(check);
    }
}

impl ToolRule {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.within("match", |check| self.name.validate(check));
        check.each(
            "scopes",
            self.scopes.as_deref().unwrap_or_default(),
            |scope, check| {
                if !is_scope(scope) {
                    check.fault("is no scope", SCOPE_CHARACTERS);
                }
            },
        );
        if let Some(limits) = self.limits {
            check.within("limits", |check| limits.validate(check));
        }
        if let Some(timeout) = self.timeout {
            check.lasting("timeout", timeout);
        }
    }
}

/// What to write instead of what is no scope.
pub(super) const SCOPE_CHARACTERS: &str =
    "use visible ASCII characters but `\"` and `\\`, and no spaces";

/// Whether a text may be a scope (RFC 6749 §3.3).
pub(super) fn is_scope(scope: &Scope) -> bool {
    let possible = |c: char| matches!(c, '\u{21}' | '\u{23}'..='\u{5b}' | '\u{5d}'..='\u{7e}');
    !scope.as_str().is_empty() && scope.as_str().chars().all(possible)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_whole_names() {
        for (glob, name, fits) in [
            ("crm_*", "crm_find", true),
            ("crm_*", "xcrm_find", false),
            ("*", "", true),
            ("a?c", "abc", true),
            ("a?c", "ac", false),
            ("*_delete_*", "crm_delete_customer", true),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-b", false),
            ("search", "search2", false),
        ] {
            assert_eq!(Pattern::new(glob).matches(name), fits, "{glob} {name}");
        }
    }
}
