//! The way to the store: its address, TLS, and a connection that has been seen to count.

use std::error::Error as _;
use std::io;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, ConnectionInfo, ErrorKind, IntoConnectionInfo, RedisError,
    TlsCertificates,
};
use thiserror::Error;
use tokio::time::timeout;

use super::{LEASE, Shared, SharedSettings};

/// Why the store can never be reached. Without the address: it may hold a password.
#[derive(Debug, Error)]
pub enum SharedFault {
    /// The address cannot be read.
    #[error("`redis.url` cannot be read: write `redis://host:6379` or `rediss://host:6379`")]
    Address,
    /// The certificates cannot be read.
    #[error("`redis.ca_file` holds no certificates in PEM form")]
    Certificates,
}

/// What opens connections.
pub(super) fn client(settings: &SharedSettings<'_>) -> Result<Client, SharedFault> {
    let info = address(settings)?;
    match &settings.ca {
        None => Client::open(info).map_err(|_| SharedFault::Address),
        Some(ca) => {
            let certificates = TlsCertificates {
                client_tls: None,
                root_cert: Some(ca.clone()),
            };
            Client::build_with_tls(info, certificates).map_err(|_| SharedFault::Certificates)
        }
    }
}

fn address(settings: &SharedSettings<'_>) -> Result<ConnectionInfo, SharedFault> {
    let url = settings.redis.url.as_ref().ok_or(SharedFault::Address)?;
    let info = url
        .expose()
        .as_str()
        .into_connection_info()
        .map_err(|_| SharedFault::Address)?;
    Ok(match &settings.password {
        None => info,
        Some(password) => {
            let session = info.redis_settings().clone();
            info.set_redis_settings(session.set_password(password.expose()))
        }
    })
}

/// What went wrong, in words for a log: nothing of an address or a password.
pub(super) fn reason(error: &RedisError) -> String {
    let words = match error.kind() {
        ErrorKind::Io => {
            let source = error
                .source()
                .and_then(|source| source.downcast_ref::<io::Error>());
            source.map(|source| source.kind().to_string())
        }
        ErrorKind::AuthenticationFailed => {
            Some("it does not know the name or the password".to_owned())
        }
        _ => None,
    };
    match (words, error.code()) {
        (Some(words), _) => words,
        (None, Some(code)) => format!("it answered {code}"),
        (None, None) => error.category().to_owned(),
    }
}

impl Shared {
    /// A connection over which the store has just counted something: one that is
    /// loading, full or may only be read is as good as away.
    pub(super) async fn connect(&self) -> Result<MultiplexedConnection, String> {
        let settings = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.timeout))
            .set_response_timeout(Some(self.timeout));
        let connecting = async {
            let mut line = self
                .client
                .get_multiplexed_async_connection_with_config(&settings)
                .await?;
            let mut probe = self.admit.arg("probe");
            probe
                .arg(LEASE.as_micros())
                .key("{}:probe:bucket")
                .key("{}:probe:places")
                .arg(1)
                .arg(1_000_000)
                .arg(0);
            let _: Vec<i64> = probe.invoke_async(&mut line).await?;
            Ok::<_, RedisError>(line)
        };
        // Name, TCP, TLS, sign-in, script: a few answers rather than one.
        match timeout(self.timeout.saturating_mul(4), connecting).await {
            Ok(Ok(line)) => Ok(line),
            Ok(Err(error)) => Err(reason(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}
