//! What is known of a server, and how its era is told from its first answer
//! (MCP 2026-07-28 versioning, Backward Compatibility).

use super::{Abilities, UpstreamError};
use crate::protocol::{Era, Json, Version, codes};

/// What a server said of itself when it was first spoken to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Profile {
    /// The revision spoken with it.
    pub(super) version: Version,
    /// What it says that it can do.
    pub(super) abilities: Abilities,
    /// It has log messages to give.
    pub(super) logs: bool,
    /// Legacy over HTTP: it gave no session id, so there is nothing to keep apart.
    pub(super) sessionless: bool,
}

impl Profile {
    pub(super) fn era(&self) -> Era {
        self.version.era()
    }

    fn new(version: Version, capabilities: Option<&Json>) -> Self {
        let has = |name: &str| capabilities.and_then(|all| all.get(name));
        Self {
            version,
            abilities: Abilities::of(capabilities),
            logs: has("logging").is_some_and(|logging| logging.is_object()),
            sessionless: false,
        }
    }
}

/// What the answer to `server/discover` says.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It speaks the modern revision.
    Modern(Profile),
    /// It has to be greeted by `initialize`.
    Legacy,
    /// It shares no revision with us.
    Stranger,
}

const STRANGER: UpstreamError = UpstreamError::Garbage {
    what: "protocol revisions that are not spoken here",
};

impl Verdict {
    /// Judges the result or error object of `server/discover`.
    pub(super) fn of(outcome: &Result<Json, Json>) -> Self {
        match outcome {
            Ok(result) => match supported(result.get("supportedVersions").as_ref()) {
                Some(Era::Modern) => Self::Modern(Profile::new(
                    Version::MODERN,
                    result.get("capabilities").as_ref(),
                )),
                // A list without a revision of ours; without any list it is no
                // discovery result, and whoever made it knows nothing of discovery.
                None if result.get("supportedVersions").is_some() => Self::Stranger,
                Some(Era::Legacy) | None => Self::Legacy,
            },
            Err(error) if is_modern_error(error) => Self::of_modern_error(error),
            Err(_) => Self::Legacy,
        }
    }

    /// A modern error names the revisions that would do. The other modern errors
    /// come from a server that speaks ours.
    fn of_modern_error(error: &Json) -> Self {
        let named = error.get("data").and_then(|data| data.get("supported"));
        match (supported(named.as_ref()), named) {
            (Some(Era::Legacy), _) => Self::Legacy,
            (None, Some(_)) => Self::Stranger,
            (Some(Era::Modern) | None, _) => Self::Modern(Profile::new(Version::MODERN, None)),
        }
    }
}

/// The era of the newest revision in a list that is spoken here.
fn supported(list: Option<&Json>) -> Option<Era> {
    let newest = list?
        .elements()
        .filter_map(|item| Version::parse(&item.string()?))
        .max()?;
    Some(newest.era())
}

/// Whether an error object is one that only a modern server makes.
pub(super) fn is_modern_error(error: &Json) -> bool {
    let code = error.get("code").and_then(|code| code.integer());
    matches!(
        code,
        Some(
            codes::HEADER_MISMATCH
                | codes::MISSING_CLIENT_CAPABILITY
                | codes::UNSUPPORTED_PROTOCOL_VERSION
        )
    )
}

/// Reads the result of `initialize`.
pub(super) fn of_initialize(result: &Json) -> Result<Profile, UpstreamError> {
    let version = result.get("protocolVersion");
    let version = version.as_ref().and_then(Json::string);
    let version = version.as_deref().ok_or(UpstreamError::Garbage {
        what: "an initialize result without a protocol revision",
    })?;
    match Version::parse(version) {
        Some(version) if version.era() == Era::Legacy => {
            Ok(Profile::new(version, result.get("capabilities").as_ref()))
        }
        _ => Err(STRANGER),
    }
}

impl From<Verdict> for Result<Option<Profile>, UpstreamError> {
    fn from(verdict: Verdict) -> Self {
        match verdict {
            Verdict::Modern(profile) => Ok(Some(profile)),
            Verdict::Legacy => Ok(None),
            Verdict::Stranger => Err(STRANGER),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(outcome: Result<&'static str, &'static str>) -> &'static str {
        let outcome = outcome.map(Json::from_checked).map_err(Json::from_checked);
        match Verdict::of(&outcome) {
            Verdict::Modern(_) => "modern",
            Verdict::Legacy => "legacy",
            Verdict::Stranger => "stranger",
        }
    }

    #[test]
    fn the_first_answer_tells_the_era() {
        for (outcome, expected) in [
            (Ok(r#"{"supportedVersions":["2026-07-28"]}"#), "modern"),
            (
                Ok(r#"{"supportedVersions":["2025-11-25","2026-07-28"]}"#),
                "modern",
            ),
            (Ok(r#"{"supportedVersions":["2025-11-25"]}"#), "legacy"),
            (Ok(r#"{"supportedVersions":["2031-01-01"]}"#), "stranger"),
            (Ok(r#"{"whatever":1}"#), "legacy"),
            (
                Err(r#"{"code":-32022,"data":{"supported":["2025-06-18"]}}"#),
                "legacy",
            ),
            (
                Err(r#"{"code":-32022,"data":{"supported":["2031-01-01"]}}"#),
                "stranger",
            ),
            (Err(r#"{"code":-32020,"message":"x"}"#), "modern"),
            (Err(r#"{"code":-32601}"#), "legacy"),
            (Err(r#"{"code":-32602}"#), "legacy"),
            (Err(r#"{"code":-32000}"#), "legacy"),
            (Err("{}"), "legacy"),
        ] {
            assert_eq!(verdict(outcome), expected, "{outcome:?}");
        }
    }

    #[test]
    fn capabilities_are_read_and_unknown_revisions_refused() {
        let profile = of_initialize(&Json::from_checked(
            r#"{"protocolVersion":"2025-06-18","capabilities":{"tools":{"listChanged":true},"logging":{}}}"#,
        ))
        .unwrap();
        assert_eq!(profile.version, Version::V2025_06_18);
        assert!(profile.abilities.announces_tools && profile.logs);
        for wrong in [
            r#"{"protocolVersion":"2024-11-05"}"#,
            r#"{"protocolVersion":"2026-07-28"}"#,
            "{}",
        ] {
            assert!(
                of_initialize(&Json::from_checked(wrong)).is_err(),
                "{wrong}"
            );
        }
    }
}
