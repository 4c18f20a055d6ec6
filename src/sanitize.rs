//! Cleans everything that an upstream says: the one place that opens [`Untrusted`].
//! Pure functions of their input and the tenant's rules; knows nothing of HTTP,
//! sessions or who asked.
//!
//! One look over the raw bytes ([`scan`], [`prefilter`]) lets clean text pass as
//! the same bytes. What it hits is walked leaf by leaf ([`leaves`]): a leaf is
//! unescaped ([`escapes`]), seen as its reader sees it ([`view`]) and once more with
//! its encoded parts decoded ([`encoded`]), searched by the detectors of every
//! family ([`detect`]), and edited in place ([`resolve`], [`edits`]). A leaf that
//! holds JSON is walked as JSON; text blocks side by side, and messages of a stream
//! ([`stream`]), are searched as one text.
//!
//! A new family is a line in [`detect`]; a new secret is a row in `secrets/formats.rs`.
//! Offsets lead back from every step, so a detector never needs to know how its
//! text was written.
//!
//! [`Untrusted`]: crate::protocol::Untrusted

mod clean;
mod detect;
mod edits;
mod encoded;
mod engine;
mod escapes;
mod excerpt;
mod excess;
mod explain;
mod findings;
mod fit;
mod injection;
mod invisible;
mod leaves;
mod markup;
#[cfg(test)]
mod matrix;
mod odd;
mod offsets;
mod personal;
mod prefilter;
mod resolve;
#[cfg(test)]
mod samples;
mod sanitizer;
mod scan;
mod secrets;
mod shown;
mod stream;
mod terminal;
mod traces;
mod view;

pub use clean::{CleanDefinition, CleanError, CleanEvent, CleanResult, CleanText, Unclean};
pub use excess::Remainder;
pub use explain::{Explanation, explain};
pub use findings::{Finding, Findings, INVISIBLE, Label, TERMINAL};
pub use sanitizer::Sanitizer;
pub use shown::shown;
pub use stream::{HOLD, Stream};
