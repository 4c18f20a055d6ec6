//! The record of every `tools/call`: durable before a tool runs, durable before
//! an answer leaves, chained so that nothing can be altered or removed
//! unnoticed.
//!
//! The proofs are made here and nowhere else: [`Recorded`] says that a call is
//! on record and may be dispatched, [`AuditReceipt`] that its outcome is and may
//! be told. Knows nothing of HTTP, MCP or SQL; what is recorded comes in as
//! [`CallFacts`] and [`Finish`], already cleaned.

pub mod act;
mod auditor;
pub mod chain;
pub mod checkpoint;
pub mod closing;
mod compose;
mod erase;
mod event;
mod export;
mod facts;
mod job;
mod knocks;
mod lane;
mod recovery;
mod refusals;
mod search;
mod tail;
#[cfg(test)]
mod tests;
mod upkeep;
pub mod verify;
mod writer;

pub use act::{Act, ActKind, ActOutcome, Actor};
pub use auditor::{AuditFault, AuditReceipt, AuditSettings, Auditor, ReceiptKind, Recorded};
pub(crate) use event::hexadecimal;

pub use erase::{EraseFault, Erased, Erasure, erase};
pub use export::{Export, FIELDS, cells, open};
pub use facts::{ArgumentsRecord, CallFacts, Finish, Outcome};
pub use job::{AuditObserver, LaneName, Unobserved};
pub use recovery::{Recovered, Recovery, RecoveryFault};
pub use search::{Entry, Filter, Kinds, Page, SearchFault, search};
pub use tail::Tail;
pub use upkeep::{
    CloseChains, Hold, Maintained, Retention, UpkeepFault, maintain, partitions_ahead,
};
