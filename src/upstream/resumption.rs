//! Streams of a legacy session: its own, and those that are taken up again (MCP
//! 2025-11-25 transports, Resumability).

use std::time::Duration;

use ::http::HeaderValue;
use ::http::header::{ACCEPT, CONTENT_TYPE};

use super::UpstreamError;
use super::link::{LAST_EVENT_ID, Reading, add};
use super::session::Face;

/// How long to wait before a broken stream is taken up again, unless the server
/// said how long.
const RESUME: Duration = Duration::from_millis(200);
/// So often a stream is taken up again that gives nothing new.
const FRUITLESS: u32 = 5;

/// Takes up a stream that ended before its response (MCP 2025-11-25 transports,
/// Resumability), as often as it gives new event ids, and a few times without.
#[derive(Debug, Default)]
pub(super) struct Resumption {
    last_id: Option<String>,
    retry: Option<Duration>,
    fruitless: u32,
}

impl Resumption {
    /// Notes where `reading` has ended, and how long the server wants to be left
    /// alone now, where it said so.
    pub(super) fn note(&mut self, reading: &Reading) -> Result<Option<Duration>, UpstreamError> {
        let parser = reading.parser().ok_or(UpstreamError::Broken)?;
        if parser.ids_seen() > 0 {
            self.last_id = parser.last_id().map(str::to_owned);
            self.fruitless = 0;
        } else {
            self.fruitless += 1;
        }
        self.retry = parser.retry().or(self.retry);
        if self.fruitless > FRUITLESS {
            return Err(UpstreamError::Broken);
        }
        let fits = self.last_id.as_deref().is_some_and(fits_a_header);
        fits.then_some(parser.retry()).ok_or(UpstreamError::Broken)
    }

    /// The stream, from behind the last event on.
    pub(super) async fn resume(&mut self, face: &Face) -> Result<Reading, UpstreamError> {
        loop {
            tokio::time::sleep(self.retry.unwrap_or(RESUME)).await;
            match open_stream(face, self.last_id.as_deref()).await {
                Ok(Ok(reading)) => return Ok(reading),
                Ok(Err(500..)) | Err(_) if self.fruitless < FRUITLESS => self.fruitless += 1,
                Ok(Err(_)) | Err(_) => return Err(UpstreamError::Broken),
            }
        }
    }
}

fn fits_a_header(text: &str) -> bool {
    HeaderValue::try_from(text).is_ok()
}

/// Opens a session's stream by GET, after `last_id` where there is one. The inner
/// error is the status of a server that does not give it.
pub(super) async fn open_stream(
    face: &Face,
    last_id: Option<&str>,
) -> Result<Result<Reading, u16>, UpstreamError> {
    let mut headers = face.headers();
    headers.remove(CONTENT_TYPE);
    headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
    if let Some(id) = last_id {
        add(&mut headers, LAST_EVENT_ID, id);
    }
    let answer = face.link.get(headers).await?;
    let streams = answer.media_type().as_deref() == Some("text/event-stream");
    if answer.status == 200 && streams {
        return Ok(Ok(Reading::stream(answer, face.link.max_answer)));
    }
    // 200 with something else is as good as "not offered".
    Ok(Err(if answer.status == 200 {
        405
    } else {
        answer.status
    }))
}
