//! Fetching a small document: key sets and metadata.

use std::time::Duration;

use http::HeaderMap;
use http::header::{ACCEPT, AGE, CACHE_CONTROL};

use super::{Outgoing, OutgoingFault, Reach, Target};

/// A document and how long its server says it may be kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The document.
    pub text: String,
    /// `max-age` less `Age`; zero for `no-store` and `no-cache`; `None` where the
    /// server does not say (RFC 9111 §5.2.2).
    pub max_age: Option<Duration>,
}

impl Outgoing {
    /// Fetches a JSON document from a public address (or an allowed one) within
    /// `limit` bytes and `timeout` for all of it.
    ///
    /// # Errors
    /// [`OutgoingFault`]; any status but 200 is one, redirects included.
    pub async fn fetch_json(
        &self,
        url: &str,
        limit: usize,
        timeout: Duration,
    ) -> Result<Fetched, OutgoingFault> {
        let target = Target::try_from(url)?;
        let host = target.host().to_owned();
        tokio::time::timeout(timeout, self.fetch(target, limit, timeout))
            .await
            .unwrap_or(Err(OutgoingFault::TimedOut { host }))
    }

    async fn fetch(
        &self,
        target: Target,
        limit: usize,
        timeout: Duration,
    ) -> Result<Fetched, OutgoingFault> {
        let client = self.client(Reach::Public, timeout);
        let headers = [(ACCEPT, "application/json")];
        let answer = client.get(target, headers).await?;
        let host = answer.host().to_owned();
        if answer.status != 200 {
            return Err(OutgoingFault::Status {
                host,
                status: answer.status,
            });
        }
        let max_age = max_age(answer.headers());
        let body = answer.body(limit).await?;
        let text = String::from_utf8(body.into()).map_err(|_| OutgoingFault::NotText { host })?;
        Ok(Fetched { text, max_age })
    }
}

fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let mut found = None;
    let lines = headers.get_all(CACHE_CONTROL);
    for directive in lines
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
    {
        let (name, value) = directive.split_once('=').unwrap_or((directive, ""));
        match name.trim().to_ascii_lowercase().as_str() {
            "no-store" | "no-cache" => return Some(Duration::ZERO),
            "max-age" => found = value.trim().trim_matches('"').parse().ok().or(found),
            _ => {}
        }
    }
    let age = headers
        .get(AGE)
        .and_then(|value| value.to_str().ok()?.trim().parse::<u64>().ok())
        .unwrap_or(0);
    found.map(|seconds: u64| Duration::from_secs(seconds.saturating_sub(age)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_age_of_a_document_is_read_from_its_headers() {
        type Row = (&'static [(&'static str, &'static str)], Option<u64>);
        let table: [Row; 9] = [
            (&[], None),
            (&[("cache-control", "public")], None),
            (&[("cache-control", "public, max-age=300")], Some(300)),
            (&[("cache-control", "Max-Age = \"300\"")], Some(300)),
            (
                &[("cache-control", "max-age=300"), ("age", "100")],
                Some(200),
            ),
            (&[("cache-control", "max-age=300"), ("age", "900")], Some(0)),
            (&[("cache-control", "max-age=300, no-store")], Some(0)),
            (
                &[
                    ("cache-control", "no-cache"),
                    ("cache-control", "max-age=9"),
                ],
                Some(0),
            ),
            (&[("cache-control", "max-age=soon")], None),
        ];
        for (lines, seconds) in table {
            let mut headers = HeaderMap::new();
            for (name, value) in lines {
                headers.append(*name, value.parse().unwrap());
            }
            assert_eq!(
                max_age(&headers),
                seconds.map(Duration::from_secs),
                "{lines:?}"
            );
        }
    }
}
