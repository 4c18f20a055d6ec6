//! What travels beside the answer: that the call is on record, and the
//! upstream's cleaned progress and log messages.

use tokio::sync::mpsc;

use crate::config;
use crate::protocol::{Untrusted, UpstreamEvent};
use crate::sanitize::{CleanEvent, Findings, Sanitizer, Stream, Unclean};

/// Events that may wait for a slow reader; then the upstream waits.
pub(super) const BACKLOG: usize = 32;

/// What the caller's stream hears before the answer.
#[derive(Debug)]
pub enum CallEvent {
    /// The call is on record: headers may leave.
    Started,
    /// A progress or log message, cleaned.
    Message(CleanEvent),
}

/// Where a call's events go. A reader that is gone is no fault.
#[derive(Clone, Debug)]
pub struct EventSink(mpsc::Sender<CallEvent>);

/// A sink and its reading end.
pub fn event_channel() -> (EventSink, mpsc::Receiver<CallEvent>) {
    let (sender, receiver) = mpsc::channel(BACKLOG);
    (EventSink(sender), receiver)
}

impl EventSink {
    pub(super) fn started(&self) {
        // The first event of an empty channel: there is room, or nobody reads.
        let _ = self.0.try_send(CallEvent::Started);
    }

    async fn message(&self, event: CleanEvent) {
        let _ = self.0.send(CallEvent::Message(event)).await;
    }
}

/// Cleans events and hands them on until the upstream is done. A message whose end
/// could begin a secret waits for what follows it, a second at most. Returns what
/// was found.
pub(super) async fn clean(
    mut events: mpsc::Receiver<Untrusted<UpstreamEvent>>,
    sanitizer: &Sanitizer,
    rules: &config::Sanitize,
    sink: &EventSink,
) -> Findings {
    let mut findings = Findings::default();
    let mut stream = Stream::new();
    loop {
        let next = match stream.deadline() {
            None => Some(events.recv().await),
            Some(deadline) => tokio::time::timeout_at(deadline.into(), events.recv())
                .await
                .ok(),
        };
        let ended = matches!(next, Some(None));
        let ready = match next {
            Some(Some(event)) => {
                let now = tokio::time::Instant::now().into_std();
                sanitizer.next_event(&mut stream, event, now, rules)
            }
            Some(None) | None => sanitizer.release(&mut stream, rules),
        };
        for event in ready {
            // A message that may not pass is dropped: the answer is what counts.
            match event {
                Ok(clean) => {
                    findings.merge(clean.findings().clone());
                    sink.message(clean).await;
                }
                Err(Unclean::Blocked { findings: more, .. }) => findings.merge(more),
                Err(Unclean::TooLarge { .. }) => {}
            }
        }
        if ended {
            return findings;
        }
    }
}
