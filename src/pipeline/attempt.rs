//! What the record says of a request itself, whatever becomes of it.

use std::net::IpAddr;

use bytes::Bytes;

use crate::protocol::{Era, Version};
use crate::upstream::CallerKey;

/// What is known of a request before anybody looked at what it asks for.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// The caller's address, as a trusted proxy gives it.
    pub address: Option<IpAddr>,
    /// The era that the request is of.
    pub era: Era,
    /// The revision that the request is of.
    pub version: Version,
    /// The client's own word for itself, unverified.
    pub client_info: Option<String>,
    /// Digest of the configuration that was in force.
    pub config_digest: [u8; 32],
    /// Keys upstream sessions.
    pub caller: CallerKey,
    /// Bytes of the request's body.
    pub request_bytes: usize,
    /// The request's body, where it could not be read: its digest is kept.
    pub unread: Option<Bytes>,
    /// The trace that the request belongs to (W3C Trace Context §3.2.2.3).
    pub trace_id: Option<[u8; 16]>,
}
