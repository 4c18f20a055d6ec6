//! Sealing: what leaves the service and must come back unread and unchanged
//! (session ids, cursors, `requestState`), and what is stored unreadable.
//!
//! What need not be stored at all is derived (`Prf`): refresh tokens.
//!
//! AES-256-GCM under keys that come from the deployment's keys by HKDF, one per
//! use and message. It knows no file, no session and no caller.

mod keys;
mod prf;
mod retired;
mod sealer;

pub use keys::{Keys, KeysFault};
pub use prf::Prf;
pub use retired::RetiredKey;
pub use sealer::{Label, SealFault, Sealer};
