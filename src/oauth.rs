//! The built-in authorization server's rules (RFC 6749 as OAuth 2.1 has it, RFC 7591,
//! 7636, 8252, 8707, 9068, 9207; MCP authorization). State is in Postgres, so any
//! replica serves any step.
//!
//! It knows no HTTP: `http::oauth` reads requests, renders answers and cookies, and
//! is the [`Ledger`] that each [`Event`] is on before it takes effect. How a person is found out is for
//! `login`; who a bearer token speaks for is for `identity`.

pub mod account;
pub mod administration;
mod authenticate;
mod authorize;
mod bucket;
mod clients;
pub mod continuations;
mod discovery;
mod documents;
mod event;
mod exchange;
mod fault;
pub mod federation;
pub mod grants;
mod id_tokens;
mod keys;
mod ledger;
pub mod local;
mod machines;
mod person;
mod redirect;
mod registration;
mod request;
mod resource;
mod revocation;
mod settings;
pub mod sign_ins;
mod site;
mod standing;
mod text;
mod tokens;

pub use authenticate::{ASSERTION_TYPE, Presented};
pub use authorize::{AuthorizeFault, PageFault, Parameters};
pub use clients::{Client, ClientFault};
pub use documents::DocumentFault;
pub use event::Event;
pub use fault::{Refusal, StepFault, TokenFault};
pub use id_tokens::{Describe, IdTokens, Verify};
pub use keys::KeysFault;
pub use ledger::{Ledger, Unrecorded};
pub use machines::{Assertion, JWT_BEARER};
pub use person::{Approval, Membership, Person, own_subject};
pub use redirect::RedirectKind;
pub use registration::RegistrationFault;
pub use request::{AuthorizationRequest, ClientFacts, ClientKind, Prompt, Resource};
pub use resource::{endpoint_path, endpoint_url};
pub use settings::{BASE_SCOPE, ConfiguredClient, OFFLINE_ACCESS, Settings, SettingsFault};
pub use site::{AuthorizationServer, Parts, Site};
pub use standing::Standing;
pub use tokens::Tokens;
