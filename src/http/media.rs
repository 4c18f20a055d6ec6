//! Media types: what a body is, what a caller takes.

use axum::http::{HeaderMap, header};

use crate::mcp::Accept;

/// Whether a body says that it is JSON.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers
        .get(header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .unwrap_or_default();
    kind.split(';')
        .next()
        .is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
}

/// Which of the two media types are acceptable (RFC 9110 §12.5.1). No `Accept` takes anything.
pub(super) fn accept(headers: &HeaderMap) -> Accept {
    let mut accept = Accept {
        json: false,
        stream: false,
    };
    let mut given = false;
    for range in headers
        .get_all(header::ACCEPT)
        .iter()
        .filter_map(|line| line.to_str().ok())
        .flat_map(|line| line.split(','))
    {
        given = true;
        let mut parts = range.split(';').map(str::trim);
        let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
        let refused = parts.any(|part| {
            part.strip_prefix("q=")
                .is_some_and(|q| q.parse::<f32>().is_ok_and(|q| q <= 0.0))
        });
        if refused {
            continue;
        }
        accept.json |= matches!(kind.as_str(), "*/*" | "application/*" | "application/json");
        accept.stream |= matches!(kind.as_str(), "*/*" | "text/*" | "text/event-stream");
    }
    if given {
        accept
    } else {
        Accept {
            json: true,
            stream: true,
        }
    }
}
