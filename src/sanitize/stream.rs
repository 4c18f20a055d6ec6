//! Messages of one response stream (rules §6.3). A reader sees them one after
//! another, so a secret may begin in one and end in the next: a message whose end
//! could begin a secret of fixed format waits until what follows decides, for one
//! second, or for the end. Entropy and names do not span messages.

use std::time::{Duration, Instant};

use super::secrets::may_go_on;
use crate::protocol::json::ArrayBuilder;
use crate::protocol::{Json, UpstreamEvent};

/// How long a message waits at most.
pub const HOLD: Duration = Duration::from_secs(1);

/// Bytes that wait at most; more are let go.
const MOST_HELD: usize = 64 << 10;

/// The messages of one stream that wait.
#[derive(Debug, Default)]
pub struct Stream {
    held: Vec<UpstreamEvent>,
    bytes: usize,
    since: Option<Instant>,
}

impl Stream {
    /// A stream that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// When the waiting messages have to leave, if any wait.
    pub fn deadline(&self) -> Option<Instant> {
        self.since.map(|since| since + HOLD)
    }

    /// Takes the next message in. Returns those that need not wait any longer, in
    /// their order, to be cleaned together.
    pub(super) fn push(&mut self, event: UpstreamEvent, now: Instant) -> Vec<UpstreamEvent> {
        let Some(body) = body(&event) else {
            // No text of the stream: what waits leaves before it.
            self.held.push(event);
            return self.take();
        };
        self.bytes += body.as_str().len();
        self.held.push(event);
        let since = *self.since.get_or_insert(now);
        let texts: String = self.held.iter().filter_map(words).collect();
        let waits = may_go_on(&texts) && now < since + HOLD && self.bytes <= MOST_HELD;
        if waits { Vec::new() } else { self.take() }
    }

    /// All that waits: the time is over, or the stream is.
    pub(super) fn take(&mut self) -> Vec<UpstreamEvent> {
        self.since = None;
        self.bytes = 0;
        std::mem::take(&mut self.held)
    }
}

/// The message's params; `None` for what is no message.
fn body(event: &UpstreamEvent) -> Option<&Json> {
    match event {
        UpstreamEvent::Progress(json) | UpstreamEvent::Log(_, json) => Some(json),
        UpstreamEvent::Request(_)
        | UpstreamEvent::ElicitationComplete(_)
        | UpstreamEvent::AskedAll
        | UpstreamEvent::Pausing(_) => None,
    }
}

fn member(event: &UpstreamEvent) -> &'static str {
    match event {
        UpstreamEvent::Log(..) => "data",
        _ => "message",
    }
}

/// What a person reads of a message.
pub(super) fn words(event: &UpstreamEvent) -> Option<String> {
    let text = body(event)?.get(member(event))?;
    text.string().map(std::borrow::Cow::into_owned)
}

/// The words of several messages as one list, for the engine.
pub(super) fn listed(events: &[UpstreamEvent]) -> Json {
    let mut list = ArrayBuilder::new();
    for event in events {
        list.push(&Json::from_text(&words(event).unwrap_or_default()));
    }
    list.build()
}

/// The message with other words.
pub(super) fn with_words(event: UpstreamEvent, text: &Json) -> UpstreamEvent {
    if words(&event).is_none() {
        return event;
    }
    let name = member(&event);
    match event {
        UpstreamEvent::Progress(json) => UpstreamEvent::Progress(json.with_member(name, text)),
        UpstreamEvent::Log(level, json) => UpstreamEvent::Log(level, json.with_member(name, text)),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn progress(text: &str) -> UpstreamEvent {
        let json = serde_json::json!({ "progress": 1, "message": text });
        UpstreamEvent::Progress(Json::from_value(&json))
    }

    #[test]
    fn only_what_could_begin_a_secret_waits() {
        let now = Instant::now();
        let mut stream = Stream::new();
        assert_eq!(stream.push(progress("Reading 3 of 9."), now).len(), 1);
        assert_eq!(stream.deadline(), None);
        assert_eq!(stream.push(progress("the token is gh"), now).len(), 0);
        assert_eq!(stream.deadline(), Some(now + HOLD));
        assert_eq!(stream.push(progress("p_ab"), now).len(), 0);
        assert_eq!(stream.push(progress(" is no token."), now).len(), 3);
        assert_eq!(stream.push(progress("again AKI"), now).len(), 0);
        assert_eq!(stream.push(progress("AB"), now + HOLD).len(), 2);
        assert_eq!(
            stream
                .push(progress("-----BEGIN PRIVATE KEY-----\nabc\n"), now)
                .len(),
            0
        );
        assert_eq!(stream.take().len(), 1);
    }
}
