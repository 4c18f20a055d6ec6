//! Rules about resources and prompts, by what callers name them by. They are rules
//! like those about tools, but for what only a tool says of itself.

use serde::{Deserialize, Deserializer};

use super::check::Check;
use super::{Pattern, Rule};
use crate::ids::UpstreamId;

/// `allow` and `deny` for resources or prompts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NameRules {
    /// What may be used.
    pub allow: Vec<NameRule>,
    /// What may not, whatever else allows it.
    pub deny: Vec<NameRule>,
}

/// One rule: a glob, or a mapping whose every given part must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NameRule {
    /// Glob over exposed URIs or names.
    pub name: Option<Pattern>,
    /// The upstream that it comes from.
    pub upstream: Option<UpstreamId>,
}

impl From<&NameRule> for Rule {
    fn from(rule: &NameRule) -> Self {
        Self {
            name: rule.name.clone(),
            upstream: rule.upstream.clone(),
            read_only: None,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NameRuleParts {
    #[serde(rename = "match")]
    name: Option<Pattern>,
    upstream: Option<UpstreamId>,
}

impl<'de> Deserialize<'de> for NameRule {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = NameRule;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a glob such as \"docs://*\", or a mapping with match or upstream")
            }

            fn visit_str<E: serde::de::Error>(self, glob: &str) -> Result<NameRule, E> {
                Ok(NameRule {
                    name: Some(Pattern::new(glob)),
                    upstream: None,
                })
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<NameRule, A::Error> {
                let map = serde::de::value::MapAccessDeserializer::new(map);
                let parts = NameRuleParts::deserialize(map)?;
                if parts.name.is_none() && parts.upstream.is_none() {
                    return Err(serde::de::Error::custom(
                        "says nothing; write match or upstream, or \"*\" for everything",
                    ));
                }
                Ok(NameRule {
                    name: parts.name,
                    upstream: parts.upstream,
                })
            }
        }
        deserializer.deserialize_any(Visitor)
    }
}

impl NameRules {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        for (key, rules) in [("allow", &self.allow), ("deny", &self.deny)] {
            check.each(key, rules, NameRule::validate);
        }
    }
}

impl NameRule {
    fn validate(&self, check: &mut Check<'_>) {
        let empty =
            |glob: &Pattern| glob.as_str().is_empty() || glob.as_str().contains(char::is_control);
        if self.name.as_ref().is_some_and(empty) {
            check.fault(
                "can match nothing",
                "write a glob such as `docs://*`; `*` for any characters and `?` for one",
            );
        }
        if let Some(upstream) = &self.upstream {
            check.within("upstream", |check| {
                check.refers("upstreams", upstream.as_str());
            });
        }
    }
}
