//! `redis`: where replicas count limits together.

use std::path::PathBuf;

use serde::Deserialize;

use super::Interval;
use super::check::Check;
use crate::secret::Secret;

/// `redis`
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Redis {
    /// Where Redis or Valkey is: `redis://host:port/database`, or `rediss://` over TLS. May
    /// hold a name and a password: prefer `password_file`. Without it every replica counts alone.
    pub url: Option<Secret<String>>,
    /// File with the password.
    pub password_file: Option<PathBuf>,
    /// Certificates (PEM) that vouch for `rediss://`, instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// What limits do while it is away, where a limit does not say so itself.
    pub when_away: WhenAway,
    /// How long an answer may take. Later than that it counts as away.
    pub timeout: Interval,
}

/// `redis.when_away`, and `when_away` of a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenAway {
    /// Every replica counts alone, its share of the limit.
    #[default]
    Local,
    /// Requests that would be counted are refused.
    Refuse,
}

impl Default for Redis {
    fn default() -> Self {
        Self {
            url: None,
            password_file: None,
            ca_file: None,
            when_away: WhenAway::Local,
            timeout: Interval(std::time::Duration::from_millis(250)),
        }
    }
}

impl Redis {
    pub(super) fn validate(&self, check: &mut Check<'_>) {
        check.lasting("timeout", self.timeout);
        match &self.url {
            Some(url) => check.within("url", |check| validate_url(url.expose(), check)),
            None => {
                let given = [
                    ("password_file", self.password_file.is_some()),
                    ("ca_file", self.ca_file.is_some()),
                ];
                for (key, _) in given.into_iter().filter(|(_, given)| *given) {
                    check.within(key, |check| {
                        check.fault("has no meaning without `url`", "write `redis.url`");
                    });
                }
            }
        }
        let tls = |url: &Secret<String>| url.expose().starts_with("rediss://");
        if self.ca_file.is_some() && self.url.as_ref().is_some_and(|url| !tls(url)) {
            check.within("ca_file", |check| {
                check.fault(
                    "has no meaning without TLS",
                    "write `rediss://` in `redis.url`",
                );
            });
        }
    }
}

fn validate_url(url: &str, check: &mut Check<'_>) {
    let rest = url
        .strip_prefix("redis://")
        .or_else(|| url.strip_prefix("rediss://"));
    let Some(rest) = rest else {
        return check.fault(
            "is no address of Redis",
            "write `redis://host:6379`, or `rediss://host:6379` over TLS",
        );
    };
    if rest.contains('#') {
        check.fault(
            "has a part behind `#`",
            "remove it: certificates are always checked, and `ca_file` names those to trust",
        );
    }
    let host = rest.rsplit('@').next().unwrap_or_default();
    if host.is_empty() || host.starts_with([':', '/', '?']) {
        check.fault("names no host", "write `redis://host:6379`");
    }
}
