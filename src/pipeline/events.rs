//! What travels beside the answer: that the call is on record, and the
//! upstream's cleaned progress, log messages and questions.

use std::time::Duration;

use tokio::sync::mpsc;

use crate::protocol::{Json, LogLevel, ServerRequest};

/// Events that may wait for a slow reader; then the upstream waits.
pub(super) const BACKLOG: usize = 32;

/// What the caller's stream hears before the answer. All of it is clean.
#[derive(Debug)]
pub enum CallEvent {
    /// The call is on record: headers may leave.
    Started,
    /// `notifications/progress`: its params without the token.
    Progress(Json),
    /// `notifications/message`: its level and params.
    Log(LogLevel, Json),
    /// `notifications/elicitation/complete`: its params.
    ElicitationComplete(Json),
    /// The upstream needs something of the client and waits for the reply.
    Asked(ServerRequest),
    /// The upstream has closed its stream for that long and goes on working.
    Pausing(Duration),
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

    /// Hands an event on and waits for room. A question that nobody takes is
    /// dropped, and so answered as unanswered.
    pub(super) async fn send(&self, event: CallEvent) {
        let _ = self.0.send(event).await;
    }
}
