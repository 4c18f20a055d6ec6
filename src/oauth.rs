//! The built-in authorization server's rules (RFC 6749 as OAuth 2.1 has it, RFC 7591,
//! 7636, 8252, 8707, 9068, 9207; MCP authorization). State is in Postgres, so any
//! replica serves any step.
//!
//! It knows no HTTP: `http::oauth` reads requests, renders answers and cookies, and
//! commits the [`Event`]s that rules return. How a person is found out is for
//! `login`; who a bearer token speaks for is for `identity`.

pub mod account;
mod event;
mod fault;
pub mod federation;
pub mod grants;
pub mod local;
mod person;
mod redirect;
mod request;
mod settings;
pub mod sign_ins;
mod site;

pub use event::Event;
pub use fault::{Refusal, StepFault};
pub use person::{Approval, Membership, Person};
pub use redirect::{RedirectKind, redirect_kind};
pub use request::{AuthorizationRequest, ClientFacts, ClientKind, Prompt, Resource};
pub use settings::{BASE_SCOPE, ConfiguredClient, OFFLINE_ACCESS, Settings, SettingsFault};
pub use site::{AuthorizationServer, Parts, Site};
