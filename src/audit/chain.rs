//! The chain that makes tampering evident. Pure: the writer computes with these
//! functions what it stores, and verification computes the same from what it
//! reads back.
//!
//! # Format 1
//!
//! Every field is written as its length (four bytes, big endian) and its bytes;
//! a field that is absent is the length `ff ff ff ff` and nothing more, so that
//! absent and empty differ and no two lists of fields give the same bytes.
//! Integers are eight bytes, big endian, two's complement; texts are UTF-8 **as
//! stored** (NUL already escaped); ids are the 16 bytes of the UUID.
//!
//! ```text
//! caller = SHA-256( salt(16) ‖ fields: issuer, subject, client, grant, token id, address, client info )
//! body   = SHA-256( salt(16) ‖ fields: marks, arguments digest(32), arguments, tool, reason,
//!                                      findings )
//! leaf   = SHA-256( fields: format (1 byte, the value 1), writer, tenant, sequence,
//!                   microseconds since 1970, call id, event, linked call id, version, tool,
//!                   upstream, upstream tool, definition digest (hexadecimal text),
//!                   configuration digest (hexadecimal text), arguments mode, outcome,
//!                   request bytes, arguments bytes, response bytes, upstream microseconds,
//!                   total microseconds, refused count, trace id(16), caller(32), body(32) )
//! link   = SHA-256( previous link(32) ‖ leaf(32) )
//! ```
//!
//! A chain belongs to one writer and one tenant; its sequences count from 1 and
//! the link before the first is 32 zero bytes. Names are hashed as texts, though
//! stored as ids: renaming an entry of the dictionary breaks the leaf. Caller and
//! body enter by digest, so erasing their text and salt leaves the chain whole.

use aws_lc_rs::digest::{Context, SHA256};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::store::audit_chain::StoredEvent;
use crate::store::audit_rows::{Measures, StoredBody, StoredCaller};

/// The version of the format above.
pub const FORMAT: u8 = 1;

/// The link before the first of a chain.
pub const GENESIS: [u8; 32] = [0; 32];

/// SHA-256 in a fixed array.
pub type Digest = [u8; 32];

struct Fields(Context);

impl Fields {
    fn new() -> Self {
        Self(Context::new(&SHA256))
    }

    fn salted(salt: &[u8]) -> Self {
        let mut fields = Self::new();
        fields.0.update(salt);
        fields
    }

    fn bytes(mut self, value: Option<&[u8]>) -> Self {
        match value {
            Some(value) => {
                // Nothing here comes near four GiB; a length that did would be the absent mark.
                let length = u32::try_from(value.len()).unwrap_or(u32::MAX);
                self.0.update(&length.to_be_bytes());
                self.0.update(value);
            }
            None => self.0.update(&u32::MAX.to_be_bytes()),
        }
        self
    }

    fn text(self, value: Option<&str>) -> Self {
        self.bytes(value.map(str::as_bytes))
    }

    fn number(self, value: Option<impl Into<i64>>) -> Self {
        match value {
            Some(value) => self.bytes(Some(&value.into().to_be_bytes())),
            None => self.bytes(None),
        }
    }

    fn digest(self) -> Digest {
        let mut digest = [0; 32];
        digest.copy_from_slice(self.0.finish().as_ref());
        digest
    }
}

/// SHA-256 of some bytes.
pub fn sha256(bytes: &[u8]) -> Digest {
    Fields::salted(bytes).digest()
}

/// The digest of a caller under its salt.
pub fn caller_digest(salt: &[u8], caller: &StoredCaller) -> Digest {
    Fields::salted(salt)
        .text(caller.issuer.as_deref())
        .text(caller.subject.as_deref())
        .text(caller.client.as_deref())
        .text(caller.grant.as_deref())
        .text(caller.token_id.as_deref())
        .text(caller.address.as_deref())
        .text(caller.client_info.as_deref())
        .digest()
}

/// The digest of a body under its salt.
pub fn body_digest(salt: &[u8], body: &StoredBody) -> Digest {
    Fields::salted(salt)
        .number(Some(body.marks))
        .bytes(body.arguments_digest.as_deref())
        .text(body.arguments.as_deref())
        .text(body.tool.as_deref())
        .text(body.reason.as_deref())
        .text(body.findings.as_deref())
        .digest()
}

/// What a leaf covers.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "the fields of the format above, in its words")]
pub struct Leaf<'a> {
    pub writer: i32,
    pub tenant: &'a str,
    pub sequence: i64,
    pub at: OffsetDateTime,
    pub call_id: Uuid,
    pub event: i16,
    pub linked_call_id: Option<Uuid>,
    pub version: Option<&'a str>,
    pub tool: Option<&'a str>,
    pub upstream: Option<&'a str>,
    pub upstream_tool: Option<&'a str>,
    pub definition: Option<&'a str>,
    pub configuration: Option<&'a str>,
    pub arguments_mode: Option<i16>,
    pub outcome: Option<&'a str>,
    pub measures: Measures,
    pub trace_id: Option<&'a [u8]>,
    pub caller: Option<&'a [u8]>,
    pub body: Option<&'a [u8]>,
}

impl Leaf<'_> {
    /// The leaf's digest.
    pub fn digest(&self) -> Digest {
        let micros = i64::try_from(self.at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX);
        Fields::new()
            .bytes(Some(&[FORMAT]))
            .number(Some(self.writer))
            .text(Some(self.tenant))
            .number(Some(self.sequence))
            .number(Some(micros))
            .bytes(Some(self.call_id.as_bytes()))
            .number(Some(self.event))
            .bytes(
                self.linked_call_id
                    .as_ref()
                    .map(|id| id.as_bytes().as_slice()),
            )
            .text(self.version)
            .text(self.tool)
            .text(self.upstream)
            .text(self.upstream_tool)
            .text(self.definition)
            .text(self.configuration)
            .number(self.arguments_mode)
            .text(self.outcome)
            .number(self.measures.request_bytes)
            .number(self.measures.arguments_bytes)
            .number(self.measures.response_bytes)
            .number(self.measures.upstream_micros)
            .number(self.measures.total_micros)
            .number(self.measures.refused_count)
            .bytes(self.trace_id)
            .bytes(self.caller)
            .bytes(self.body)
            .digest()
    }
}

impl<'a> From<&'a StoredEvent> for Leaf<'a> {
    fn from(stored: &'a StoredEvent) -> Self {
        Self {
            writer: stored.writer,
            tenant: &stored.tenant,
            sequence: stored.sequence,
            at: stored.at,
            call_id: stored.call_id,
            event: stored.event,
            linked_call_id: stored.linked_call_id,
            version: stored.version.as_deref(),
            tool: stored.tool.as_deref(),
            upstream: stored.upstream.as_deref(),
            upstream_tool: stored.upstream_tool.as_deref(),
            definition: stored.definition.as_deref(),
            configuration: stored.configuration.as_deref(),
            arguments_mode: stored.arguments_mode,
            outcome: stored.outcome.as_deref(),
            measures: stored.measures,
            trace_id: stored.trace_id.as_deref(),
            caller: stored
                .caller
                .as_ref()
                .map(|caller| caller.digest.as_slice()),
            body: stored.body.as_ref().map(|body| body.digest.as_slice()),
        }
    }
}

/// The next link of a chain.
pub fn link(previous: &Digest, leaf: &Digest) -> Digest {
    let mut context = Fields::salted(previous);
    context.0.update(leaf);
    context.digest()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::event::hexadecimal;

    fn sample() -> Leaf<'static> {
        Leaf {
            writer: 7,
            tenant: "acme",
            sequence: 1,
            at: OffsetDateTime::UNIX_EPOCH + time::Duration::microseconds(1_700_000_000_000_001),
            call_id: Uuid::from_u128(0x0190_0000_0000_7000_8000_0000_0000_0001),
            event: 1,
            linked_call_id: None,
            version: Some("2026-07-28"),
            tool: Some("crm_find"),
            upstream: Some("crm"),
            upstream_tool: Some("find"),
            definition: None,
            configuration: Some("00"),
            arguments_mode: Some(1),
            outcome: None,
            measures: Measures {
                request_bytes: Some(120),
                ..Measures::default()
            },
            trace_id: None,
            caller: None,
            body: None,
        }
    }

    // Both values were computed a second time, from the description above, by other means.
    #[test]
    fn the_format_does_not_change_by_accident() {
        let leaf = sample().digest();
        insta::assert_snapshot!(hexadecimal(&leaf), @"2c5ba0915e16420a5af11ee3c5e26ce520119a277883ec7055a232f14e1c9eea");
        let link = link(&GENESIS, &leaf);
        insta::assert_snapshot!(hexadecimal(&link), @"16e1a4e816809b66fc65f3f6dc1a17b10ba450f2383a2dd1f3377167ce450a35");
    }

    #[test]
    fn absent_and_empty_and_shifted_fields_differ() {
        let base = sample().digest();
        let empty = Leaf {
            definition: Some(""),
            ..sample()
        };
        let shifted = Leaf {
            tool: Some("crm_findc"),
            upstream: Some("rm"),
            ..sample()
        };
        assert_ne!(base, empty.digest());
        assert_ne!(base, shifted.digest());
        let moved = Measures {
            arguments_bytes: Some(120),
            ..Measures::default()
        };
        let moved = Leaf {
            measures: moved,
            ..sample()
        };
        assert_ne!(base, moved.digest());
    }
}
