//! Toolgate: the remote MCP endpoint that a company puts in front of its tools.
//!
//! Modules stand in import order: a module may use those above it, never those
//! below, and siblings of a row do not use each other. `tests/it/layering.rs`
//! holds the same list and fails on an upward import.

// Row 0: words everything else is made of.
pub mod clock;
pub mod ids;
pub mod secret;

// Row 1: pure building blocks.
pub mod config;
pub mod jose;
pub mod protocol;
pub mod seal;
pub mod telemetry;

// Row 2: the outside world, and the one place that opens what comes from it.
pub mod outgoing;
pub mod sanitize;
pub mod store;

// Row 3: who calls, what is recorded, where tools come from.
pub mod audit;
pub mod identity;
pub mod oauth;
pub mod sample;
pub mod upstream;

// Rows 4 to 9: the steps of a call, in their order.
pub mod credentials;
pub mod tenancy;

pub mod limits;

pub mod catalog;

pub mod visibility;

pub mod arguments;

pub mod dispatch;

// Rows 10 to 12: the steps put together, the protocol, the edge.
pub mod pipeline;

pub mod mcp;

pub mod http;

// Row 13: the program.
pub mod app;
pub mod cli;
pub mod lifecycle;
