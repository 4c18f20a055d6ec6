//! The first words with a server on streams: `server/discover`, then `initialize`
//! where that is not a modern server's to answer (MCP 2026-07-28 stdio, Backward
//! Compatibility).

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::connection::{Connection, Outcome};
use super::profile::{self, Profile, Verdict};
use super::{UpstreamError, message};
use crate::protocol::{ClientCapabilities, Json};

/// How long a modern server's answer is waited for alone.
const PROBE: Duration = Duration::from_secs(2);

/// Finds out what the server is. `probe`: whether it bears a request before
/// `initialize`; some legacy servers exit at it.
pub(super) async fn greet(
    connection: &Arc<Connection>,
    probe: bool,
) -> Result<Profile, UpstreamError> {
    let mut discovered = pin!(async {
        if !probe {
            return std::future::pending().await;
        }
        let id = connection.next_id();
        connection.ask(id, message::discover(id)).await
    });
    if probe && let Ok(answered) = timeout(PROBE, &mut discovered).await {
        return match Result::from(Verdict::of(&answered?))? {
            Some(profile) => Ok(profile),
            None => initialise(connection).await,
        };
    }
    // It is silent, or slow to start. Both questions stand; the first answer that
    // says something decides.
    let mut initialised = pin!(initialise(connection));
    tokio::select! {
        greeted = &mut initialised => match greeted {
            Ok(profile) => Ok(profile),
            Err(fault) => modern(discovered.await).ok_or(fault),
        },
        answered = &mut discovered => match modern(answered) {
            Some(profile) => Ok(profile),
            None => initialised.await,
        },
    }
}

fn modern(answered: Result<Outcome, UpstreamError>) -> Option<Profile> {
    match Verdict::of(&answered.ok()?) {
        Verdict::Modern(profile) => Some(profile),
        Verdict::Legacy | Verdict::Stranger => None,
    }
}

/// What one child is told for all its callers. Not their roots: what a server makes
/// of them it keeps, and another caller would have the use of it.
fn shared_capabilities() -> Json {
    let all = ClientCapabilities::of_gateway().relayed(false);
    all.without_members(|name| name == "roots")
}

async fn initialise(connection: &Arc<Connection>) -> Result<Profile, UpstreamError> {
    let id = connection.next_id();
    let answered = connection
        .ask(id, message::initialize(id, &shared_capabilities()))
        .await?;
    let result = super::hearing::outcome(answered)?;
    let profile = profile::of_initialize(&result)?;
    connection.tell(message::initialized()).await;
    Ok(profile)
}
