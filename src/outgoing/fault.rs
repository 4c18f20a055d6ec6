//! What can go wrong with an outgoing request. No URL beyond its host, no header
//! and no body is in any of it.

use std::convert::Infallible;
use std::error::Error;
use std::io;
use std::net::IpAddr;

use thiserror::Error;

use super::resolver::BlockedName;

/// Why there is no answer, or not all of it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum OutgoingFault {
    /// Not an absolute `http` or `https` URL, or one with a user name in it.
    #[error("not a URL that can be asked: it must be http or https, with a host and no user name")]
    BadUrl,
    /// A header that HTTP does not allow.
    #[error("a header has a name or value that HTTP does not allow")]
    BadHeader,
    /// The host is at an address that must not be connected to.
    #[error(
        "{host} is at {address}, which is not a public address; if that is meant, allow it with \
         `upstreams.<id>.mcp.allow_private: true` or `outgoing.allow_networks`"
    )]
    Blocked {
        /// The host that was asked for.
        host: String,
        /// One of its addresses.
        address: IpAddr,
    },
    /// No connection.
    #[error("no connection to {host}: {why}")]
    Connect {
        /// The host that was asked for.
        host: String,
        /// What the system says.
        why: &'static str,
    },
    /// A connection, but not a trusted one.
    #[error("no trusted TLS connection to {host}: {why}")]
    Tls {
        /// The host that was asked for.
        host: String,
        /// What the TLS library says.
        why: String,
    },
    /// The connection did not stand, or the answer did not come, in time.
    #[error("{host} did not answer in time")]
    TimedOut {
        /// The host that was asked for.
        host: String,
    },
    /// The connection broke, or what came is not HTTP.
    #[error("the connection to {host} broke before the answer was complete")]
    Broken {
        /// The host that was asked for.
        host: String,
    },
    /// The answer is longer than may be read.
    #[error("the answer is longer than {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
    /// An answer, but not the document that was asked for. Redirects are here too.
    #[error("{host} answered with status {status}")]
    Status {
        /// The host that was asked for.
        host: String,
        /// Its status.
        status: u16,
    },
    /// A document that is not UTF-8.
    #[error("{host} answered with text that is not UTF-8")]
    NotText {
        /// The host that was asked for.
        host: String,
    },
    /// The HTTP client could not be made.
    #[error("the HTTP client could not be made")]
    NoClient,
}

impl From<Infallible> for OutgoingFault {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

impl OutgoingFault {
    /// What the HTTP client's error means. Its own text may show the URL and is dropped.
    pub(super) fn of(error: &reqwest::Error, host: &str) -> Self {
        let host = host.to_owned();
        if let Some(blocked) = find::<BlockedName>(error) {
            return Self::Blocked {
                host,
                address: blocked.address,
            };
        }
        if error.is_timeout() {
            return Self::TimedOut { host };
        }
        if let Some(tls) = find::<rustls::Error>(error) {
            return Self::Tls {
                host,
                why: tls.to_string(),
            };
        }
        if error.is_connect() {
            let why = find::<io::Error>(error).map_or("it failed", |error| reason(error.kind()));
            return Self::Connect { host, why };
        }
        if error.is_builder() {
            return Self::BadUrl;
        }
        Self::Broken { host }
    }
}

fn reason(kind: io::ErrorKind) -> &'static str {
    match kind {
        io::ErrorKind::ConnectionRefused => "it is refused",
        io::ErrorKind::ConnectionReset | io::ErrorKind::UnexpectedEof => "it is closed at once",
        io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => {
            "there is no way to it"
        }
        io::ErrorKind::TimedOut => "it timed out",
        // The resolver's errors have no kind of their own.
        _ => "its name has no address, or the network failed",
    }
}

/// Looks for a cause of one type. An [`io::Error`] hides what it wraps from
/// `source`, so it is opened.
fn find<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<T>() {
            return Some(found);
        }
        next = match error
            .downcast_ref::<io::Error>()
            .and_then(io::Error::get_ref)
        {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}
