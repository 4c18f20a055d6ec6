//! Spans: where a request spends its time, from the client to the upstream.
//!
//! A [`Span`] ends when it is dropped. Which one is the current one travels with a
//! future ([`Span::around`], [`carried`]); what begins meanwhile is its child. Where
//! traces are not exported, or this one is not sampled, nothing is built or kept.

use std::borrow::Cow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use opentelemetry::trace::{
    FutureExt as _, Link, SpanBuilder, SpanKind, Status, TraceContextExt as _, Tracer as _,
};
use opentelemetry::{Context, KeyValue, Value};
use opentelemetry_sdk::trace::SdkTracer;
use tracing::Instrument as _;

use super::names::field;
use super::place::TraceContext;

/// Like the log's subscriber it is the process's, and is set up once.
static TRACER: OnceLock<SdkTracer> = OnceLock::new();

/// Whether anything is exported that could name a request.
static EXPORTED: AtomicBool = AtomicBool::new(false);

fn exported() -> bool {
    EXPORTED.load(Ordering::Relaxed)
}

/// Log records go out, and want to know what they are about.
pub(super) fn logs_are_exported() {
    EXPORTED.store(true, Ordering::Relaxed);
}

pub(super) fn install(tracer: SdkTracer) {
    // The second start-up is refused by the log's subscriber.
    let _ = TRACER.set(tracer);
}

/// One piece of work, from its making to its drop.
#[derive(Debug, Default)]
pub struct Span {
    /// `None` where no traces are exported, or nothing of this one.
    context: Option<Context>,
    records: bool,
}

impl Span {
    /// The work on a message that came in. `parent` is the place that the message
    /// names, `beside` that of the connection that brought it, where it is another.
    pub fn server(
        name: impl Into<Cow<'static, str>>,
        parent: Option<&TraceContext>,
        beside: Option<&TraceContext>,
    ) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self::default();
        };
        let around = Context::current();
        let parent = match parent {
            Some(place) => around.with_remote_span_context(place.remote()),
            None => around,
        };
        let links = beside.map(|place| vec![Link::with_context(place.remote())]);
        let mut builder = SpanBuilder::from_name(name).with_kind(SpanKind::Server);
        builder.links = links;
        Self::begin(tracer, builder, &parent)
    }

    /// A message that goes out, until its answer is there: part of the work that is
    /// under way, or of that at another place.
    pub fn client(name: impl Into<Cow<'static, str>>, within: Option<&TraceContext>) -> Self {
        let Some(tracer) = TRACER.get() else {
            return Self::default();
        };
        let around = Context::current();
        let parent = match within {
            Some(place) => around.with_remote_span_context(place.remote()),
            None => around,
        };
        let builder = SpanBuilder::from_name(name).with_kind(SpanKind::Client);
        Self::begin(tracer, builder, &parent)
    }

    /// A step of the work that is under way.
    pub fn step(name: &'static str) -> Self {
        match TRACER.get() {
            Some(tracer) if is_recorded() => {
                Self::begin(tracer, SpanBuilder::from_name(name), &Context::current())
            }
            _ => Self::default(),
        }
    }

    fn begin(tracer: &SdkTracer, builder: SpanBuilder, parent: &Context) -> Self {
        let span = tracer.build_with_context(builder, parent);
        let records = opentelemetry::trace::Span::is_recording(&span);
        Self {
            context: Some(parent.with_span(span)),
            records,
        }
    }

    /// Whether what is noted here is kept.
    pub fn records(&self) -> bool {
        self.records
    }

    /// Notes something.
    pub fn note(&self, key: &'static str, value: impl Into<Value>) {
        if let Some(context) = self.context.as_ref().filter(|_| self.records) {
            context.span().set_attribute(KeyValue::new(key, value));
        }
    }

    /// It failed: a word of the program, or a code, for the kind of failure.
    pub fn fail(&self, kind: impl Into<Value>) {
        if let Some(context) = self.context.as_ref().filter(|_| self.records) {
            failed(context, kind.into());
        }
    }

    /// Its own place; `None` where no traces are exported.
    pub fn place(&self) -> Option<TraceContext> {
        TraceContext::of(self.context.as_ref()?.span().span_context())
    }

    /// Runs a future as part of it.
    pub fn around<F: Future>(&self, work: F) -> impl Future<Output = F::Output> + use<F> {
        work.with_context(self.context.clone().unwrap_or_else(Context::current))
    }

    /// Gives it a name that says more.
    pub fn rename(&self, name: String) {
        if let Some(context) = self.context.as_ref().filter(|_| self.records) {
            context.span().update_name(name);
        }
    }

    /// Does something as part of it.
    pub fn within<T>(&self, work: impl FnOnce() -> T) -> T {
        let _entered = self.context.clone().map(Context::attach);
        work()
    }
}

impl Drop for Span {
    fn drop(&mut self) {
        if let Some(context) = self.context.as_ref().filter(|_| self.records) {
            context.span().end();
        }
    }
}

fn failed(context: &Context, kind: Value) {
    let span = context.span();
    span.set_attribute(KeyValue::new(field::ERROR_TYPE, kind));
    // No words of an error: they may hold what a caller or an upstream said.
    span.set_status(Status::error(""));
}

fn is_recorded() -> bool {
    Context::map_current(|context| context.has_active_span() && context.span().is_recording())
}

/// Runs a step that may refuse.
pub fn step<T, E>(name: &'static str, work: impl FnOnce() -> Result<T, E>) -> Result<T, E> {
    let span = Span::step(name);
    let outcome = span.within(work);
    if outcome.is_err() {
        span.fail("refused");
    }
    outcome
}

/// Runs a step that takes its time and may fail.
pub async fn stepping<T, E>(
    name: &'static str,
    work: impl Future<Output = Result<T, E>>,
) -> Result<T, E> {
    let span = Span::step(name);
    let outcome = span.around(work).await;
    if outcome.is_err() {
        span.fail("failed");
    }
    outcome
}

/// Notes something of the work that is under way. The value is made only where it is kept.
pub fn note<V: Into<Value>>(key: &'static str, value: impl FnOnce() -> V) {
    if is_recorded() {
        Context::map_current(|context| {
            let attribute = KeyValue::new(key, value());
            context.span().set_attribute(attribute);
        });
    }
}

/// Gives the work that is under way a name that says more.
pub fn rename(name: impl FnOnce() -> String) {
    if is_recorded() {
        Context::map_current(|context| context.span().update_name(name()));
    }
}

/// The work that is under way has to do with that place too.
pub fn link(place: &TraceContext) {
    if is_recorded() {
        Context::map_current(|context| context.span().add_link(place.remote(), Vec::new()));
    }
}

/// The place of the work that is under way; `None` where no traces are exported.
pub fn here() -> Option<TraceContext> {
    Context::map_current(|context| TraceContext::of(context.span().span_context()))
}

/// The id of the HTTP request that something is about.
#[derive(Debug)]
pub(super) struct RequestId(pub(super) Arc<str>);

/// Runs the handling of an HTTP request, so that what is said of it can name it.
pub fn of_request<F: Future>(id: &str, work: F) -> impl Future<Output = F::Output> + use<F> {
    let context = if exported() {
        Context::current_with_value(RequestId(id.into()))
    } else {
        Context::current()
    };
    work.with_context(context)
}

/// The place of the work that is under way, if it is kept: for an exemplar.
pub(super) fn example() -> Option<TraceContext> {
    is_recorded().then(here).flatten()
}

/// A future that stays part of the work that is under way, wherever it runs.
pub fn carried<F: Future>(work: F) -> impl Future<Output = F::Output> {
    work.with_current_context().in_current_span()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn without_a_collector_nothing_is_kept_and_everything_runs() {
        let span = Span::server("tools/call", None, None);
        assert!(!span.records() && span.place().is_none());
        span.note(field::TOOL, "never");
        span.fail("never");
        let answer = span.around(async { here() }).await;
        assert_eq!(answer, None);
        assert_eq!(step("limits", || Ok::<_, ()>(7)), Ok(7));
        assert_eq!(
            stepping("dispatch", async { Err::<(), _>(7) }).await,
            Err(7)
        );
        note::<&str>(field::TOOL, || unreachable!("nobody keeps it"));
        rename(|| unreachable!("nobody keeps it"));
    }
}
