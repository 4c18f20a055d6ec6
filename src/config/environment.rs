//! The environment: the only place that reads it.

use std::collections::BTreeMap;
use std::fmt;

/// What every variable of ours begins with.
const OURS: &str = "TOOLGATE_";

/// Names the configuration file; it is no part of the configuration.
pub const CONFIG_VARIABLE: &str = "TOOLGATE_CONFIG";

/// The `TOOLGATE_…` variables. Their values may be secrets: `Debug` shows names alone.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// The value of a variable, by its whole name.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The variables that override a scalar of the configuration, in order of their names.
    pub fn overrides(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0
            .iter()
            .filter(|(name, _)| *name != CONFIG_VARIABLE && !is_service_link(name))
            .map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        let ours = variables
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .filter(|(name, _)| name.starts_with(OURS));
        Self(ours.collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// The `TOOLGATE_…` variables of this process.
pub fn environment() -> Environment {
    std::env::vars_os()
        .map(|(name, value)| {
            let text = |part: std::ffi::OsString| part.to_string_lossy().into_owned();
            (text(name), text(value))
        })
        .collect()
}

/// What a child process may inherit: where programs are, where it may write, its language.
pub fn inherited_environment() -> Vec<(String, String)> {
    ["PATH", "HOME", "LANG", "TMPDIR"]
        .into_iter()
        .filter_map(|name| Some((name.to_owned(), variable(name)?)))
        .collect()
}

/// The folders of `PATH`, for finding programs.
pub fn search_path() -> Vec<std::path::PathBuf> {
    let path = variable("PATH").unwrap_or_default();
    std::env::split_paths(&path).collect()
}

/// The home folder of who runs this.
pub fn home() -> Option<std::path::PathBuf> {
    variable("HOME")
        .filter(|home| !home.is_empty())
        .map(Into::into)
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Kubernetes tells every pod of the services beside it: for a service named
/// `toolgate` it sets `TOOLGATE_SERVICE_HOST`, `TOOLGATE_PORT_8080_TCP` and others.
/// None of our keys looks like that.
fn is_service_link(name: &str) -> bool {
    if name.contains("__") {
        return false;
    }
    let port = |rest: &str| {
        let mut parts = rest.split('_');
        let number = parts.next().is_some_and(|n| n.parse::<u16>().is_ok());
        number && matches!(parts.next(), Some("TCP" | "UDP" | "SCTP"))
    };
    name.ends_with("_SERVICE_HOST")
        || name.ends_with("_SERVICE_PORT")
        || name.contains("_SERVICE_PORT_")
        || name.ends_with("_PORT")
        || name
            .match_indices("_PORT_")
            .any(|(at, found)| name.get(at + found.len()..).is_some_and(port))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_of_variables_are_not_printed() {
        let environment: Environment = [("TOOLGATE_DATABASE__URL", "hunter2")]
            .into_iter()
            .collect();
        assert_eq!(format!("{environment:?}"), r#"{"TOOLGATE_DATABASE__URL"}"#);
    }

    #[test]
    fn what_kubernetes_sets_for_a_service_of_our_name_is_no_override() {
        let names = [
            "TOOLGATE_SERVICE_HOST",
            "TOOLGATE_SERVICE_PORT",
            "TOOLGATE_SERVICE_PORT_HTTP",
            "TOOLGATE_PORT",
            "TOOLGATE_PORT_8080_TCP",
            "TOOLGATE_PORT_8080_TCP_ADDR",
            "TOOLGATE_ADMIN_PORT_9090_TCP_PROTO",
            "TOOLGATE_CONFIG",
            "OTHER",
        ];
        let environment: Environment = names.into_iter().map(|name| (name, "x")).collect();
        assert_eq!(environment.overrides().count(), 0);
        let environment: Environment = ["TOOLGATE_KEYS_FILE", "TOOLGATE_SERVER__LISTEN"]
            .into_iter()
            .map(|name| (name, "x"))
            .collect();
        assert_eq!(environment.overrides().count(), 2);
    }
}
