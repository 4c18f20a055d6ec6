//! An answer, read as it comes.

use std::fmt;

use bytes::{Bytes, BytesMut};
use http::header::WWW_AUTHENTICATE;
use http::{HeaderMap, HeaderValue};

use super::{Challenge, MalformedChallenge, OutgoingFault, parse_challenges};

/// An answer whose head is here and whose body is on its way. Dropping it closes
/// the connection if the body is not complete.
pub struct HttpAnswer {
    /// The status.
    pub status: u16,
    response: reqwest::Response,
}

impl HttpAnswer {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self {
            status: response.status().as_u16(),
            response,
        }
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// The first value of a header, if it is visible ASCII.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers().get(name)?.to_str().ok()
    }

    /// The media type of the body in lower case, without its parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = self.header("content-type")?;
        let essence = value.split(';').next().unwrap_or_default().trim();
        Some(essence.to_ascii_lowercase())
    }

    /// The challenges of `WWW-Authenticate`, all lines together.
    ///
    /// # Errors
    /// When one of them is malformed; then none is to be used.
    pub fn challenges(&self) -> Result<Vec<Challenge>, MalformedChallenge> {
        let lines = self.headers().get_all(WWW_AUTHENTICATE);
        parse_challenges(lines.iter().map(HeaderValue::as_bytes))
    }

    /// The next bytes of the body as they came; `None` at its end.
    ///
    /// # Errors
    /// When the connection breaks.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, OutgoingFault> {
        match self.response.chunk().await {
            Ok(chunk) => Ok(chunk),
            Err(error) => Err(OutgoingFault::of(&error, self.host())),
        }
    }

    /// The whole body.
    ///
    /// # Errors
    /// `TooLarge` as soon as it is known that the body has more than `limit`
    /// bytes; no more than one chunk beyond that is held.
    pub async fn body(mut self, limit: usize) -> Result<Bytes, OutgoingFault> {
        let announced = self.response.content_length().unwrap_or(0);
        if usize::try_from(announced).is_ok_and(|length| length <= limit) {
            self.collect(limit).await
        } else {
            Err(OutgoingFault::TooLarge { limit })
        }
    }

    async fn collect(&mut self, limit: usize) -> Result<Bytes, OutgoingFault> {
        let Some(first) = self.chunk().await? else {
            return Ok(Bytes::new());
        };
        if first.len() > limit {
            return Err(OutgoingFault::TooLarge { limit });
        }
        let Some(second) = self.chunk().await? else {
            // Most answers are one chunk: nothing is copied.
            return Ok(first);
        };
        let mut all = BytesMut::with_capacity(first.len() + second.len());
        all.extend_from_slice(&first);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if all.len() + chunk.len() > limit {
                return Err(OutgoingFault::TooLarge { limit });
            }
            all.extend_from_slice(&chunk);
            next = self.chunk().await?;
        }
        Ok(all.freeze())
    }

    pub(super) fn host(&self) -> &str {
        self.response.url().host_str().unwrap_or_default()
    }
}

impl fmt::Debug for HttpAnswer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpAnswer")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}
