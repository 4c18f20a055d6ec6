//! Where acts come in.

use std::time::Duration;

use tokio::time::Instant;

use super::{AuditFault, AuditReceipt, Auditor, ReceiptKind};
use crate::audit::act::Act;
use crate::audit::job::Fallback;
use crate::audit::lane::BUDGET;
use crate::clock::{call_id_at, new_call_id};
use crate::ids::CallId;

impl Auditor {
    /// Puts an act on record: durable when this returns. What it tells of must not
    /// take effect without.
    pub async fn act(&self, act: Act) -> Result<AuditReceipt, AuditFault> {
        self.record(&act).await?;
        Ok(AuditReceipt(ReceiptKind::Committed))
    }

    /// The same where something else has to name the record: gives its id.
    pub async fn record(&self, act: &Act) -> Result<CallId, AuditFault> {
        let id = new_call_id(&*self.clock);
        let event = act.event(id, self.clock.now(), None);
        self.at(|doors| doors.refused.submit(event, Fallback::Drop))?
            .wait(Instant::now() + BUDGET)
            .await?;
        Ok(id)
    }

    /// Puts on record what has happened anyway: at once handed over, written
    /// whenever it can be.
    pub fn note(&self, act: &Act) {
        let event = act.event(new_call_id(&*self.clock), self.clock.now(), None);
        if self.at(|doors| doors.refused.hand_over(event)).is_err() {
            // Said once here: nobody waits, so nobody else can say it.
            tracing::error!(
                kind = act.kind.word(),
                action = act.action,
                "The audit has no room for an act; it is not on record."
            );
        }
    }

    /// Puts on record what strangers can cause as often as they like: ten a second
    /// of a kind and reason by themselves, all others as a count. Never waits, and
    /// never takes more memory than its bound.
    pub fn count(&self, act: &Act) {
        let now = self.clock.now();
        if !self.knocks.admit(act, now) {
            return;
        }
        let event = act.event(new_call_id(&*self.clock), now, None);
        if self.at(|doors| doors.refused.hand_over(event)).is_err() {
            self.knocks.count(act, now);
        }
    }

    /// Hands over the counts of seconds that are over, or all.
    pub(super) fn hand_over_counts(&self, all: bool) {
        let now = self.clock.now();
        for (knock, count) in self.knocks.take((!all).then_some(now)) {
            let at = time::OffsetDateTime::from_unix_timestamp(knock.second).unwrap_or(now);
            let event = knock.clone().act().event(call_id_at(at), at, Some(count));
            if self.at(|doors| doors.refused.hand_over(event)).is_err() {
                self.knocks.put_back(knock, count);
            }
        }
    }

    /// Writes counts each second. Runs for as long as the service does.
    pub async fn keep_counts(&self) {
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.hand_over_counts(false);
        }
    }
}
