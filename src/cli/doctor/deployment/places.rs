//! Where callers come in and where tools are.

use serde_json::Value;

use super::clock;
use crate::app;
use crate::catalog::HealthState;
use crate::cli::doctor::endpoint;
use crate::cli::doctor::report::{Level, Report, Trouble};
use crate::cli::doctor::web::Web;
use crate::config::{Config, Loaded};
use crate::http::Tls;

/// Whether clients find this deployment at its public URL.
pub(super) async fn public_url(config: &Config, web: &Web, report: &mut Report) {
    const STEP: &str = "public URL";
    let Some(url) = &config.server.public_url else {
        return report.note(STEP, "not given: for development, on this machine alone");
    };
    let url = url.trim_end_matches('/');
    if !endpoint::is_safe(url) {
        return report.fail(
            STEP,
            format!("{url} is plain http away from this machine: clients refuse it"),
        );
    }
    let resource = format!("{url}/mcp");
    let Some((origin, path)) = endpoint::parts(&resource) else {
        return;
    };
    let document = format!("{origin}/.well-known/oauth-protected-resource{path}");
    let page = match web.get(&document, &[]).await {
        Ok(page) => page,
        Err(why) => {
            let what = format!("{url} is not answered from here: {why}");
            return report.trouble(
                Level::Warning,
                STEP,
                Trouble { what: &what, why: "clients may not reach it either", change: "where the service runs already: check DNS, the load balancer, its certificate and the network policy" },
            );
        }
    };
    clock::of_page(STEP, "the public listener's", &page, report);
    let document = page.object().unwrap_or_default();
    let named = document.get("resource").and_then(Value::as_str);
    if page.status == 200 && named == Some(resource.as_str()) {
        return report.ok(
            STEP,
            format!("{url} leads to this deployment; `toolgate doctor {resource}` walks a sign-in"),
        );
    }
    let what = match named {
        Some(named) => format!("{url} is answered by a server that calls itself {named}"),
        None => format!(
            "{url} is answered with status {} and no metadata",
            page.status
        ),
    };
    report.trouble(
        Level::Failure,
        STEP,
        Trouble { what: &what, why: "clients compare the name byte for byte and send their tokens nowhere else", change: "let the load balancer pass /.well-known/ and the Host header, and let every replica have the same server.public_url" },
    );
}

/// Whether the listeners can show a certificate.
pub(super) fn certificates(config: &Config, report: &mut Report) {
    let server = &config.server;
    let listeners = [
        ("server.tls", &server.tls),
        ("server.admin_tls", &server.admin_tls),
    ];
    for (key, tls) in listeners {
        let Some(tls) = tls else { continue };
        match Tls::load(tls) {
            Ok(_) => report.ok("TLS", format!("{key}: the certificate and its key fit")),
            Err(fault) => report.trouble(
                Level::Failure,
                "TLS",
                Trouble {
                    what: &format!("{key}: {fault}"),
                    why: "the service does not start",
                    change: "give the certificate with those that lead to its authority, and its own key, both in PEM form",
                },
            ),
        }
    }
}

/// Whether each upstream lists its tools.
pub(super) async fn upstreams(loaded: &Loaded, report: &mut Report) {
    const STEP: &str = "upstreams";
    if loaded.config.upstreams.is_empty() {
        return report.note(STEP, "there is none: nobody has a tool to call");
    }
    let upstreams = match app::upstreams(loaded).await {
        Ok(upstreams) => upstreams,
        Err(fault) => return report.fail(STEP, format!("{fault:#}")),
    };
    for (id, health) in upstreams {
        if health.state == HealthState::Up {
            report.ok(STEP, format!("{id} offers {} tool(s)", health.tools));
            for left_out in health.left_out.iter() {
                report.warn(
                    STEP,
                    format!("{id}: {} is left out: {}", left_out.name, left_out.reason),
                );
            }
            continue;
        }
        let what = format!(
            "{id}: {}",
            health.reason.unwrap_or("it did not list its tools in time")
        );
        let (level, why) = if health.required {
            (
                Level::Failure,
                "it is `required`: no replica becomes ready without it",
            )
        } else {
            (
                Level::Warning,
                "its tools are missing, or fail; others are not touched",
            )
        };
        report.trouble(
            level,
            STEP,
            Trouble { what: &what, why, change: "check that it runs, its address, its credentials, and outgoing.* for the way there" },
        );
    }
}
