//! Protocol revisions and the two eras they fall into.

use std::fmt;

/// How a conversation carries its version and capabilities (MCP 2026-07-28 versioning).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Era {
    /// Sessions opened by `initialize`: 2025-03-26 to 2025-11-25.
    Legacy,
    /// Per-request `_meta`: 2026-07-28.
    Modern,
}

impl Era {
    /// The word for records and logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Legacy => "legacy",
            Self::Modern => "modern",
        }
    }
}

/// A revision that is spoken here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Version {
    /// 2025-03-26: batches, no version header.
    V2025_03_26,
    /// 2025-06-18: structured content, elicitation.
    V2025_06_18,
    /// 2025-11-25: icons, URL elicitation.
    V2025_11_25,
    /// 2026-07-28: stateless.
    V2026_07_28,
}

impl Version {
    /// All of them, newest first.
    pub const ALL: [Self; 4] = [
        Self::V2026_07_28,
        Self::V2025_11_25,
        Self::V2025_06_18,
        Self::V2025_03_26,
    ];
    /// What an `initialize` for anything else is answered with.
    pub const NEWEST_LEGACY: Self = Self::V2025_11_25;
    /// The modern revision.
    pub const MODERN: Self = Self::V2026_07_28;

    /// The revision named by `text`, if it is spoken here.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|version| version.as_str() == text)
    }

    /// The revision's date, as on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The era it belongs to.
    pub fn era(self) -> Era {
        match self {
            Self::V2026_07_28 => Era::Modern,
            Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Legacy,
        }
    }

    /// Whether `text` has the form of a revision and is of the modern era or later.
    pub fn is_modern_date(text: &str) -> bool {
        let form = text.len() == 10
            && text.bytes().enumerate().all(|(at, byte)| {
                if at == 4 || at == 7 {
                    byte == b'-'
                } else {
                    byte.is_ascii_digit()
                }
            });
        form && text >= Self::MODERN.as_str()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
