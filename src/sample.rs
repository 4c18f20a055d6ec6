//! The sample upstreams of `toolgate quickstart`: small MCP servers over standard
//! streams, in both eras, whose records are made up and hold what a gateway must
//! find: personal data, leaked secrets, hidden text.
//!
//! Knows the protocol and its own records; nothing of the gateway in front of it.

mod book;
mod server;

use tokio::io::{AsyncRead, AsyncWrite};

use book::Book;

/// Which sample. Two, so that two tenants see different tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Customers and orders of a made-up company.
    AcmeCrm,
    /// Shipments and stock of another.
    GlobexWarehouse,
}

impl Kind {
    /// All samples.
    pub const ALL: [Self; 2] = [Self::AcmeCrm, Self::GlobexWarehouse];

    /// The sample's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::AcmeCrm => "acme-crm",
            Self::GlobexWarehouse => "globex-warehouse",
        }
    }

    /// The sample of that name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// Serves until the input ends, as an MCP client ends a server.
///
/// # Errors
/// When a stream breaks.
pub async fn serve<R, W>(kind: Kind, input: R, output: W) -> std::io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    server::serve(Book::open(kind)?, input, output).await
}
