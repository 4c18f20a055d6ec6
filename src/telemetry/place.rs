//! A place in a trace, as it travels from process to process (W3C Trace Context).

use std::str::FromStr as _;

use opentelemetry::trace::{SpanContext, SpanId, TraceFlags, TraceId, TraceState};

/// Longest `tracestate` that is passed on (W3C Trace Context §3.3.1.5).
const LONGEST_STATE: usize = 512;

/// What `traceparent` and `tracestate` say, checked. `baggage` never travels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceContext {
    parent: String,
    state: Option<String>,
}

struct Parts {
    trace: u128,
    parent: u64,
    flags: u8,
}

impl TraceContext {
    /// Reads both texts. `None` where the first is none: it is ignored, and the
    /// second with it (W3C Trace Context §3.2.2, §3.3).
    pub fn read(parent: Option<&str>, state: Option<&str>) -> Option<Self> {
        let parent = parent?;
        parts(parent)?;
        let state = state
            .filter(|text| !text.is_empty() && text.len() <= LONGEST_STATE)
            .filter(|text| text.bytes().all(|byte| (b' '..=b'~').contains(&byte)))
            .filter(|text| TraceState::from_str(text).is_ok());
        Some(Self {
            parent: parent.to_owned(),
            state: state.map(str::to_owned),
        })
    }

    /// `traceparent`
    pub fn parent(&self) -> &str {
        &self.parent
    }

    /// `tracestate`
    pub fn state(&self) -> Option<&str> {
        self.state.as_deref()
    }

    /// The trace's id.
    pub fn trace_id(&self) -> [u8; 16] {
        parts(&self.parent).map_or([0; 16], |parts| parts.trace.to_be_bytes())
    }

    /// The trace's id in hexadecimal digits, as logs and exemplars have it.
    pub fn trace_digits(&self) -> &str {
        self.parent.get(3..35).unwrap_or_default()
    }

    /// The span's id in hexadecimal digits.
    pub fn span_digits(&self) -> &str {
        self.parent.get(36..52).unwrap_or_default()
    }

    pub(super) fn remote(&self) -> SpanContext {
        let Some(parts) = parts(&self.parent) else {
            return SpanContext::empty_context();
        };
        let state = self.state.as_deref().map(TraceState::from_str);
        SpanContext::new(
            TraceId::from(parts.trace),
            SpanId::from(parts.parent),
            TraceFlags::new(parts.flags) & TraceFlags::SAMPLED,
            true,
            state.and_then(Result::ok).unwrap_or_default(),
        )
    }

    pub(super) fn of(context: &SpanContext) -> Option<Self> {
        let state = context.trace_state().header();
        context.is_valid().then(|| Self {
            parent: format!(
                "00-{}-{}-{:02x}",
                context.trace_id(),
                context.span_id(),
                context.trace_flags()
            ),
            state: (!state.is_empty()).then_some(state),
        })
    }
}

/// The parts of a `traceparent` of this version, or of a later one that begins alike.
fn parts(text: &str) -> Option<Parts> {
    let mut parts = text.split('-');
    let mut field = |length: usize| {
        let part = parts.next().filter(|part| part.len() == length)?;
        let digits = part
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        u128::from_str_radix(part, 16).ok().filter(|_| digits)
    };
    let (version, trace, parent, flags) = (field(2)?, field(32)?, field(16)?, field(2)?);
    let whole = version != 0 || parts.next().is_none();
    let valid = version != 0xff && trace != 0 && parent != 0 && whole;
    valid.then_some(Parts {
        trace,
        parent: u64::try_from(parent).ok()?,
        flags: u8::try_from(flags).ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn a_trace_is_taken_only_in_its_form() {
        let good = TraceContext::read(Some(GOOD), Some("rojo=1,congo=t61")).unwrap();
        assert_eq!(good.trace_digits(), "0af7651916cd43dd8448eb211c80319c");
        assert_eq!((good.trace_id()[0], good.trace_id()[15]), (0x0a, 0x9c));
        assert_eq!(good.state(), Some("rojo=1,congo=t61"));
        let later = "01-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more";
        assert!(TraceContext::read(Some(later), None).is_some());
        for bad in [
            "",
            "00-0-0-0",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-more",
            "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7",
            "ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
            "00-+af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01",
        ] {
            assert_eq!(TraceContext::read(Some(bad), Some("a=b")), None, "{bad}");
        }
    }

    #[test]
    fn a_state_that_is_none_costs_the_state_alone() {
        let long = format!("a={}", "x".repeat(LONGEST_STATE));
        for bad in ["", "no pair", long.as_str(), "a=b\r\nX-Evil: 1"] {
            let read = TraceContext::read(Some(GOOD), Some(bad)).unwrap();
            assert_eq!((read.parent(), read.state()), (GOOD, None), "{bad}");
        }
    }

    #[test]
    fn what_is_read_is_what_is_written() {
        let read = TraceContext::read(Some(GOOD), Some("a=b")).unwrap();
        assert_eq!(TraceContext::of(&read.remote()), Some(read));
        assert_eq!(TraceContext::of(&SpanContext::empty_context()), None);
    }
}
