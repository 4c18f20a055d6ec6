//! Server-sent events (WHATWG HTML §9.2.5, §9.2.6), parsed as bytes: a character
//! cut in two by a chunk is whole again before anyone decodes it, and only CR, LF
//! and CRLF end lines. Memory is bounded by one limit.

use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use memchr::memchr2;

/// An event with data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SseEvent {
    /// Its data lines, joined with LF.
    pub(super) data: Bytes,
}

/// A line or an event grew larger than the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SseTooLarge;

/// Takes chunks and gives events. Nothing is parsed ahead of the event asked for.
#[derive(Debug)]
pub(super) struct SseParser {
    limit: usize,
    chunk: Bytes,
    line: BytesMut,
    /// The data so far, once there is a data line.
    data: Option<BytesMut>,
    /// Whether the event has a type other than `message`.
    foreign: bool,
    first_line: bool,
    /// The last chunk byte was a CR: an LF right after it belongs to it.
    after_cr: bool,
    pending_id: Option<String>,
    last_id: Option<String>,
    ids_seen: u64,
    retry: Option<Duration>,
}

const BOM: &[u8] = b"\xef\xbb\xbf";

impl SseParser {
    /// `limit`: most bytes of a line, and of an event's data.
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit,
            chunk: Bytes::new(),
            line: BytesMut::new(),
            data: None,
            foreign: false,
            first_line: true,
            after_cr: false,
            pending_id: None,
            last_id: None,
            ids_seen: 0,
            retry: None,
        }
    }

    /// Gives the next chunk. Call it when [`Self::next`] has nothing more.
    pub(super) fn feed(&mut self, chunk: Bytes) {
        if self.chunk.is_empty() {
            self.chunk = chunk;
        } else {
            let mut joined = BytesMut::from(&self.chunk[..]);
            joined.extend_from_slice(&chunk);
            self.chunk = joined.freeze();
        }
    }

    /// The next event of what was fed.
    pub(super) fn next(&mut self) -> Result<Option<SseEvent>, SseTooLarge> {
        while !self.chunk.is_empty() {
            if std::mem::take(&mut self.after_cr) && self.chunk.first() == Some(&b'\n') {
                self.chunk.advance(1);
                continue;
            }
            let Some(end) = memchr2(b'\r', b'\n', &self.chunk) else {
                let rest = std::mem::take(&mut self.chunk);
                self.check(self.line.len() + rest.len())?;
                self.line.extend_from_slice(&rest);
                return Ok(None);
            };
            self.check(self.line.len() + end)?;
            let tail = self.chunk.split_to(end);
            self.after_cr = self.chunk.first() == Some(&b'\r');
            self.chunk.advance(1);
            // Most lines lie in one chunk: they are read where they are.
            let line = if self.line.is_empty() {
                tail
            } else {
                self.line.extend_from_slice(&tail);
                self.line.split().freeze()
            };
            if let Some(event) = self.take_line(&line)? {
                return Ok(Some(event));
            }
        }
        Ok(None)
    }

    fn check(&self, bytes: usize) -> Result<(), SseTooLarge> {
        // Room for the field's name.
        (bytes <= self.limit.saturating_add(64))
            .then_some(())
            .ok_or(SseTooLarge)
    }

    fn take_line(&mut self, line: &Bytes) -> Result<Option<SseEvent>, SseTooLarge> {
        let mut line = line.clone();
        if std::mem::take(&mut self.first_line) && line.starts_with(BOM) {
            line.advance(BOM.len());
        }
        if line.is_empty() {
            return Ok(self.dispatch());
        }
        let colon = memchr::memchr(b':', &line).unwrap_or(line.len());
        let name = line.split_to(colon);
        if !line.is_empty() {
            line.advance(1);
        }
        if line.first() == Some(&b' ') {
            line.advance(1);
        }
        self.field(&name, &line)?;
        Ok(None)
    }

    fn field(&mut self, name: &[u8], value: &[u8]) -> Result<(), SseTooLarge> {
        match name {
            b"data" => {
                let so_far = self.data.as_ref().map_or(0, BytesMut::len);
                self.check(so_far + value.len() + 1)?;
                match &mut self.data {
                    None => self.data = Some(BytesMut::from(value)),
                    Some(data) => {
                        data.extend_from_slice(b"\n");
                        data.extend_from_slice(value);
                    }
                }
            }
            b"event" => self.foreign = !matches!(value, b"" | b"message"),
            b"id" if !value.contains(&0) => {
                self.pending_id = Some(String::from_utf8_lossy(value).into_owned());
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let millis = std::str::from_utf8(value)
                    .ok()
                    .and_then(|text| text.parse().ok())
                    .unwrap_or(u64::MAX);
                self.retry = Some(Duration::from_millis(millis));
            }
            _ => {}
        }
        Ok(())
    }

    fn dispatch(&mut self) -> Option<SseEvent> {
        // The id holds from the end of its event on, data or not.
        if let Some(id) = self.pending_id.take() {
            self.last_id = (!id.is_empty()).then_some(id);
            self.ids_seen += 1;
        }
        let foreign = std::mem::take(&mut self.foreign);
        let data = self.data.take()?.freeze();
        (!foreign && !data.is_empty()).then_some(SseEvent { data })
    }

    /// The id of the last whole event that had one.
    pub(super) fn last_id(&self) -> Option<&str> {
        self.last_id.as_deref()
    }

    /// How many events gave an id.
    pub(super) fn ids_seen(&self) -> u64 {
        self.ids_seen
    }

    /// How long to wait before reconnecting, where the server said so.
    pub(super) fn retry(&self) -> Option<Duration> {
        self.retry
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn events(chunks: &[&[u8]]) -> (Vec<String>, SseParser) {
        let mut parser = SseParser::new(1 << 20);
        let mut out = Vec::new();
        for chunk in chunks {
            parser.feed(Bytes::copy_from_slice(chunk));
            while let Some(event) = parser.next().unwrap() {
                out.push(String::from_utf8_lossy(&event.data).into_owned());
            }
        }
        (out, parser)
    }

    #[test]
    fn cr_lf_and_crlf_end_lines_and_nothing_else_does() {
        let text = "data: a\u{2028}b\u{85}c\r\rdata: d\n\ndata: e\r\n\r\n";
        let (out, _) = events(&[text.as_bytes()]);
        assert_eq!(out, ["a\u{2028}b\u{85}c", "d", "e"]);
    }

    #[test]
    fn data_lines_join_with_lf_and_lose_one_leading_space() {
        let (out, _) = events(&[b"data:  a\ndata\ndata:b\n\n"]);
        assert_eq!(out, [" a\n\nb"]);
    }

    #[test]
    fn comments_foreign_events_and_empty_events_are_silent() {
        let (out, _) = events(&[
            b": keep-alive\n\nevent: ping\ndata: x\n\nevent: message\ndata: y\n\nnonsense\n\ndata\n\n",
        ]);
        assert_eq!(out, ["y"]);
    }

    #[test]
    fn a_byte_order_mark_is_dropped_even_when_it_is_cut() {
        let (out, _) = events(&[b"\xef", b"\xbb", b"\xbfdata: x\n\n"]);
        assert_eq!(out, ["x"]);
    }

    #[test]
    fn an_id_holds_once_its_event_is_whole() {
        let (_, parser) = events(&[b"id: 7\ndata:\n\nid: 8\nda"]);
        assert_eq!(parser.last_id(), Some("7"));
        let (_, parser) = events(&[b"id: 7\n\nid: a\0b\n\nretry: 250\nretry: x\n\n"]);
        assert_eq!(parser.last_id(), Some("7"));
        assert_eq!(parser.retry(), Some(Duration::from_millis(250)));
        let (_, parser) = events(&[b"id: 7\n\nid\n\n"]);
        assert_eq!(parser.last_id(), None);
        assert_eq!(parser.ids_seen(), 2);
    }

    #[test]
    fn what_is_unfinished_at_the_end_is_no_event() {
        let (out, _) = events(&[b"data: whole\n\ndata: half\n"]);
        assert_eq!(out, ["whole"]);
    }

    #[test]
    fn a_line_or_an_event_over_the_limit_is_refused() {
        let mut parser = SseParser::new(10);
        parser.feed(Bytes::from(vec![b'x'; 200]));
        assert_eq!(parser.next(), Err(SseTooLarge));
        let mut parser = SseParser::new(10);
        let mut refused = false;
        for _ in 0..30 {
            parser.feed(Bytes::from_static(b"data: 12345678\n"));
            refused |= parser.next().is_err();
        }
        assert!(refused);
    }

    proptest! {
        #[test]
        fn chunks_do_not_change_what_is_read(
            lines in proptest::collection::vec("(data|id|event|retry)?:? ?[a-z✅\u{2028}]{0,6}(\r|\n|\r\n)", 0..12),
            cuts in proptest::collection::vec(0_usize..80, 0..6),
        ) {
            let text: String = lines.concat() + "\n\n";
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            let (whole, one) = events(&[bytes]);
            let (cut, other) = events(&chunks);
            prop_assert_eq!(whole, cut);
            prop_assert_eq!(one.last_id(), other.last_id());
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut parser = SseParser::new(64);
            parser.feed(Bytes::from(bytes));
            while let Ok(Some(_)) = parser.next() {}
        }
    }
}
