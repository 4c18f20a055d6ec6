//! The tests that come in by the front door: the real server over its own
//! database, real clients and upstreams around it. One binary, a file per
//! behaviour; `support` holds what they share.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::too_many_lines,
    reason = "tests fail by panicking, read the real clock, make plain HTTP clients, and are as long as their tables"
)]

mod account;
mod admins;
mod answers;
mod audit_acts;
mod audit_crash;
mod audit_durability;
mod audit_partitions;
mod audit_roles;
mod audit_tamper;
mod changes;
mod chart;
mod cleaning;
mod combinations;
mod commands;
mod completion;
mod conformance;
mod conformance_authorization;
mod consent;
mod continuation;
mod discovery;
mod doctor;
mod doctor_deployment;
mod drain;
mod failures;
mod federation;
mod forwarding;
mod identity;
mod input_required;
mod isolation;
mod kit;
mod layering;
mod limits;
mod many_streams;
mod many_upstreams;
mod migrations;
mod nothing_lost;
mod oauth_attacks;
mod oauth_attacks_browser;
mod oauth_authorize;
mod oauth_discovery;
mod oauth_machines;
mod oauth_records;
mod oauth_refresh;
mod oauth_registration;
mod oauth_revocation;
mod oauth_token;
mod outage;
mod packaging;
mod pages;
mod pods;
mod prompts;
mod protocol;
mod quickstart;
mod real_clients;
mod real_sign_in;
mod real_upstreams;
mod records;
mod relay;
mod replicas;
mod resources;
mod resumption;
mod rewrap;
mod routes;
mod runbooks;
mod sanitize_command;
mod secrets;
mod sessions;
mod shared_limits;
mod sign_in;
mod smoke;
mod soak_replicas;
mod streams;
mod subscriptions;
mod support;
mod tasks;
mod telemetry;
mod threats;
mod tls;
mod tools;
mod translation;
mod wire_rules;
