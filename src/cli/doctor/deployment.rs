//! `toolgate doctor` without a URL: looks at everything that a configuration rests on,
//! as the service would reach it, and changes nothing. Each finding that asks for a
//! change says what is wrong, why it matters and what to do.

mod clock;
mod connections;
mod database;
mod keys;
mod places;
mod providers;
mod services;

use std::time::Duration;

use super::report::Report;
use super::web::Web;
use crate::config::Loaded;
use crate::outgoing::Reach;

/// Looks at all of it, one part after the other: none needs another one's success.
pub(super) async fn look(
    loaded: &Loaded,
    patience: Duration,
    report: &mut Report,
) -> anyhow::Result<()> {
    let config = &loaded.config;
    report.ok("configuration", "the file is in order");
    for warning in &loaded.warnings {
        report.warn("configuration", warning.to_string());
    }
    keys::look(config, report);
    database::look(loaded, report).await;
    services::redis(config, report).await;
    let web = Web::over(&config.outgoing, Reach::Public, patience)?;
    providers::look(config, &web, report).await;
    let near = Web::over(&config.outgoing, Reach::Private, patience)?;
    services::collector(config, report).await;
    places::certificates(config, report);
    places::public_url(config, &near, report).await;
    places::upstreams(loaded, report).await;
    Ok(())
}
