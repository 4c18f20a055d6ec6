//! Cleans everything that an upstream says: the one place that opens [`Untrusted`].
//! Pure functions of their input and the tenant's rules; knows nothing of HTTP,
//! sessions or who asked.
//!
//! One look over the raw bytes ([`prefilter`]) lets clean text pass as the same
//! bytes. What it hits is walked leaf by leaf ([`leaves`]): a leaf is unescaped
//! ([`escapes`]), seen as its reader sees it ([`view`]), searched ([`secrets`]),
//! and edited in place ([`edits`]). A leaf that holds JSON is walked as JSON;
//! text blocks side by side are searched as one text.
//!
//! A new detector is a trigger in `secrets/literals.rs`, a reader, and a label; a
//! new family has its own action in [`edits`]. Offsets lead back from every step,
//! so a detector never needs to know how its text was written.
//!
//! [`Untrusted`]: crate::protocol::Untrusted

mod clean;
mod edits;
mod engine;
mod escapes;
mod excerpt;
mod findings;
mod invisible;
mod leaves;
mod odd;
mod offsets;
mod prefilter;
#[cfg(test)]
mod samples;
mod sanitizer;
mod secrets;
mod shown;
mod terminal;
mod view;

pub use clean::{CleanDefinition, CleanError, CleanEvent, CleanResult, CleanText, Unclean};
pub use findings::{Finding, Findings, INVISIBLE, Label, TERMINAL};
pub use sanitizer::Sanitizer;
pub use shown::shown;
