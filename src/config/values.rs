//! Values with a notation of their own: rates, intervals, sizes. What is wrong
//! with one is said as "what; what to write", without repeating it.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer};
use time::Date;
use time::macros::format_description;

/// A rate: `100/s`, `20/m`, `5/h`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// How many.
    pub count: u32,
    /// In how long.
    pub per: Duration,
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || "is no rate; write a whole number above 0 per s, m or h, such as `20/s`".to_owned();
        let (count, unit) = text.split_once('/').ok_or_else(wrong)?;
        let seconds = match unit.trim() {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return Err(wrong()),
        };
        let count = count
            .trim()
            .parse()
            .ok()
            .filter(|count| *count > 0)
            .ok_or_else(wrong)?;
        Ok(Self {
            count,
            per: Duration::from_secs(seconds),
        })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = match self.per.as_secs() {
            1 => "s",
            60 => "m",
            _ => "h",
        };
        write!(f, "{}/{unit}", self.count)
    }
}

/// A length of time: `250ms`, `5s`, `2m`, `1h`, `7d`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interval(pub Duration);

impl Interval {
    /// So many seconds.
    pub const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "is no length of time; write a whole number with ms, s, m, h or d, such as `5s`"
                .to_owned()
        };
        let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, unit) = text.split_at(at);
        let number: u64 = number.parse().map_err(|_| wrong())?;
        let millis = match unit.trim() {
            "ms" => Some(number),
            "s" => number.checked_mul(1_000),
            "m" => number.checked_mul(60_000),
            "h" => number.checked_mul(3_600_000),
            "d" => number.checked_mul(86_400_000),
            _ => None,
        };
        millis
            .map(|millis| Self(Duration::from_millis(millis)))
            .ok_or_else(wrong)
    }
}

/// A size: `512KiB`, `10MiB`, or plain bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ByteSize(pub usize);

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            "is no size; write a whole number with B, KiB, MiB or GiB, such as `10MiB`".to_owned()
        };
        let at = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(at);
        let number: usize = number.parse().map_err(|_| wrong())?;
        let factor = match unit.trim() {
            "" | "B" => 1_usize,
            "KiB" => 1 << 10,
            "MiB" => 1 << 20,
            "GiB" => 1 << 30,
            _ => return Err(wrong()),
        };
        number.checked_mul(factor).map(Self).ok_or_else(wrong)
    }
}

/// A day of the calendar: `2026-07-28`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Day(pub Date);

impl FromStr for Day {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Date::parse(text, format_description!("[year]-[month]-[day]"))
            .map(Self)
            .map_err(|_| "is no day; write such as `2026-07-28`".to_owned())
    }
}

macro_rules! from_text {
    ($($name:ident),*) => {$(
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = String::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
from_text!(Rate, Interval, ByteSize, Day);
