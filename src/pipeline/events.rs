//! What travels beside the answer: that the call is on record, and the
//! upstream's cleaned progress and log messages.

use tokio::sync::mpsc;

use crate::config;
use crate::protocol::{Untrusted, UpstreamEvent};
use crate::sanitize::{CleanEvent, Findings, Sanitizer, Unclean};

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

/// Cleans events and hands them on until the upstream is done. Returns what was found.
pub(super) async fn clean(
    mut events: mpsc::Receiver<Untrusted<UpstreamEvent>>,
    sanitizer: &Sanitizer,
    rules: &config::Sanitize,
    sink: &EventSink,
) -> Findings {
    let mut findings = Findings::default();
    while let Some(event) = events.recv().await {
        // A message that may not pass is dropped: the answer is what counts.
        match sanitizer.event(event, rules) {
            Ok(clean) => {
                findings.merge(clean.findings().clone());
                sink.message(clean).await;
            }
            Err(Unclean::Blocked { findings: more, .. }) => findings.merge(more),
            Err(Unclean::TooLarge { .. }) => {}
        }
    }
    findings
}
