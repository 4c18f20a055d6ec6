//! The record of every `tools/call`: durable before a tool runs, durable before
//! an answer leaves, chained so that nothing can be altered or removed
//! unnoticed.
//!
//! The proofs are made here and nowhere else: [`Recorded`] says that a call is
//! on record and may be dispatched, [`AuditReceipt`] that its outcome is and may
//! be told. Knows nothing of HTTP, MCP or SQL; what is recorded comes in as
//! [`CallFacts`] and [`Finish`], already cleaned.

mod auditor;
pub mod chain;
mod compose;
mod event;
mod facts;
mod job;
mod lane;
mod recovery;
mod refusals;
mod search;
mod tail;
#[cfg(test)]
mod tests;
mod upkeep;
mod writer;

pub use auditor::{AuditFault, AuditReceipt, AuditSettings, Auditor, ReceiptKind, Recorded};
pub use facts::{ArgumentsRecord, CallFacts, Finish, Outcome};
pub use job::{AuditObserver, LaneName, Unobserved};
pub use recovery::{Recovered, Recovery, RecoveryFault};
pub use search::{Entry, Filter, Page, SearchFault, search};
pub use tail::Tail;
pub use upkeep::{
    CloseChains, Hold, Maintained, Retention, UpkeepFault, maintain, partitions_ahead,
};
