//! Lines of a child's output, bounded. A line that is too long is skipped to its
//! end; its head and its tail are kept, to tell what it was.

use std::collections::VecDeque;
use std::io;

use bytes::{Bytes, BytesMut};
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};

/// How much of a long line's ends is kept.
const ENDS: usize = 256;

/// A line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// All of it.
    Whole(Bytes),
    /// The ends of one that was too long.
    Cut {
        /// Its first bytes.
        head: Bytes,
        /// Its last bytes.
        tail: Bytes,
    },
}

/// Reads lines.
pub(super) struct Lines<R> {
    reader: BufReader<R>,
    limit: usize,
    line: BytesMut,
    /// The last bytes of a line that has become too long.
    tail: Option<VecDeque<u8>>,
}

impl<R: AsyncRead + Unpin> Lines<R> {
    /// `limit`: most bytes of a line.
    pub(super) fn new(reader: R, limit: usize) -> Self {
        Self {
            reader: BufReader::with_capacity(64 << 10, reader),
            limit,
            line: BytesMut::new(),
            tail: None,
        }
    }

    /// The next line; `None` at the end. A last line without an end counts.
    pub(super) async fn next(&mut self) -> io::Result<Option<Line>> {
        loop {
            let chunk = self.reader.fill_buf().await?;
            if chunk.is_empty() {
                let nothing = self.line.is_empty() && self.tail.is_none();
                return Ok((!nothing).then(|| self.take()));
            }
            let end = memchr::memchr(b'\n', chunk);
            let part = chunk.get(..end.unwrap_or(chunk.len())).unwrap_or_default();
            let used = part.len() + usize::from(end.is_some());
            add(&mut self.line, &mut self.tail, part, self.limit);
            self.reader.consume(used);
            if end.is_some() {
                return Ok(Some(self.take()));
            }
        }
    }

    fn take(&mut self) -> Line {
        let mut line = self.line.split();
        if let Some(tail) = self.tail.take() {
            // The long line's memory goes with it.
            self.line = BytesMut::new();
            line.truncate(ENDS);
            return Line::Cut {
                head: Bytes::copy_from_slice(&line),
                tail: tail.into_iter().collect(),
            };
        }
        if line.ends_with(b"\r") {
            line.truncate(line.len() - 1);
        }
        Line::Whole(line.freeze())
    }
}

fn add(line: &mut BytesMut, tail: &mut Option<VecDeque<u8>>, part: &[u8], limit: usize) {
    if tail.is_none() && line.len() + part.len() <= limit {
        line.extend_from_slice(part);
        return;
    }
    if tail.is_none() {
        let room = limit.saturating_sub(line.len());
        line.extend_from_slice(part.get(..room).unwrap_or(part));
        let seen = line.iter().rev().take(ENDS).rev();
        *tail = Some(seen.copied().collect());
    }
    if let Some(tail) = tail {
        let from = part.len().saturating_sub(ENDS);
        tail.extend(part.get(from..).unwrap_or_default());
        let excess = tail.len().saturating_sub(ENDS);
        tail.drain(..excess);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(text: &[u8], limit: usize) -> Vec<Line> {
        let mut lines = Lines::new(text, limit);
        let mut out = Vec::new();
        while let Some(line) = lines.next().await.unwrap() {
            out.push(line);
        }
        out
    }

    fn whole(text: &'static str) -> Line {
        Line::Whole(Bytes::from_static(text.as_bytes()))
    }

    #[tokio::test]
    async fn lines_end_with_lf_or_crlf_and_the_last_may_have_no_end() {
        assert_eq!(
            lines("a\r\n\nb\u{2028}c\nd".as_bytes(), 100).await,
            [whole("a"), whole(""), whole("b\u{2028}c"), whole("d")]
        );
    }

    #[tokio::test]
    async fn of_a_long_line_the_ends_are_kept() {
        let text = format!("{{\"id\":1{}\"end\"}}\nshort\n", "x".repeat(200_000));
        let lines = lines(text.as_bytes(), 1000).await;
        let Line::Cut { head, tail } = &lines[0] else {
            panic!("not cut")
        };
        assert!(head.starts_with(b"{\"id\":1xxx") && head.len() == ENDS);
        assert!(tail.ends_with(b"xxx\"end\"}") && tail.len() == ENDS);
        assert_eq!(lines[1], whole("short"));
    }
}
