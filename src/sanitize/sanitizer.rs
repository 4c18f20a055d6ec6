//! The front door: one function for each kind of thing that an upstream says.

use super::clean::{CleanDefinition, CleanError, CleanEvent, CleanResult, CleanText, Unclean};
use super::edits::{Policy, edits_total};
use super::engine::{Engine, Found, blocked, edited};
use super::excerpt::{Excerpts, INTERNAL_HOST, cut, one_line, without_markup};
use super::findings::{Findings, INVISIBLE, TERMINAL};
use super::leaves::Walk;
use crate::config::Sanitize;
use crate::protocol::{Json, ServerRequest, Untrusted, UpstreamEvent};

/// A text is cut down to this many times its final length before it is cleaned, so
/// that a huge one costs no more than a large one.
const MARGIN: usize = 4;

/// Never cut before this many bytes: what is removed must not leave too little.
const AT_LEAST: usize = 64 << 10;

const ANSWER: Walk = Walk {
    spare_identifiers: true,
    numbers: false,
};
const EVERYTHING: Walk = Walk {
    spare_identifiers: false,
    numbers: false,
};
const WITH_NUMBERS: Walk = Walk {
    spare_identifiers: false,
    numbers: true,
};

/// Cleans what comes from outside. Built once and shared; holds no state, so the
/// same input gives the same output on every replica.
pub struct Sanitizer {
    engine: Engine,
    excerpts: Excerpts,
}

impl Default for Sanitizer {
    fn default() -> Self {
        Self::new()
    }
}

impl Sanitizer {
    /// Compiles the rules.
    pub fn new() -> Self {
        Self {
            engine: Engine::new(),
            excerpts: Excerpts::new(),
        }
    }

    /// Cleans the result of a request: every string of it, keys too. A clean one
    /// comes back as the same bytes.
    ///
    /// # Errors
    /// [`Unclean`] when it is too large, or holds what the tenant blocks.
    pub fn result(
        &self,
        result: Untrusted<Json>,
        rules: &Sanitize,
    ) -> Result<CleanResult, Unclean> {
        let json = result.open();
        let (json, findings) = self.checked(&json, rules, ANSWER)?;
        Ok(CleanResult::new(json, findings))
    }

    /// Cleans a notification about a request in flight.
    ///
    /// # Errors
    /// [`Unclean`] when it is too large, or holds what the tenant blocks.
    pub fn event(
        &self,
        event: Untrusted<UpstreamEvent>,
        rules: &Sanitize,
    ) -> Result<CleanEvent, Unclean> {
        let (event, findings) = match event.open() {
            UpstreamEvent::Progress(json) => {
                let (json, findings) = self.checked(&json, rules, EVERYTHING)?;
                (UpstreamEvent::Progress(json), findings)
            }
            UpstreamEvent::Log(level, json) => {
                let (json, findings) = self.checked(&json, rules, EVERYTHING)?;
                (UpstreamEvent::Log(level, json), findings)
            }
            UpstreamEvent::Request(request) => {
                let (params, findings) = self.checked(&request.params, rules, ANSWER)?;
                (
                    UpstreamEvent::Request(ServerRequest { params, ..request }),
                    findings,
                )
            }
            UpstreamEvent::ElicitationComplete(json) => {
                let (json, findings) = self.checked(&json, rules, EVERYTHING)?;
                (UpstreamEvent::ElicitationComplete(json), findings)
            }
            UpstreamEvent::Pausing(time) => (UpstreamEvent::Pausing(time), Findings::none()),
        };
        Ok(CleanEvent::new(event, findings))
    }

    fn checked(
        &self,
        json: &Json,
        rules: &Sanitize,
        walk: Walk,
    ) -> Result<(Json, Findings), Unclean> {
        let limit = rules.max_answer.0;
        if json.as_str().len() > limit {
            return Err(Unclean::TooLarge { limit });
        }
        let policy = Policy::of(rules);
        let cleaned = self.engine.json(json, policy, walk, false);
        match blocked(&cleaned.findings, policy) {
            Some(label) => Err(Unclean::Blocked {
                label,
                findings: cleaned.findings,
            }),
            None => Ok((cleaned.json, cleaned.findings)),
        }
    }

    /// Cleans a JSON-RPC error; its message is cut to `max` bytes.
    ///
    /// # Errors
    /// [`Unclean`] when its data is too large, or it holds what the tenant blocks.
    pub fn error(
        &self,
        message: Untrusted<String>,
        data: Option<Untrusted<Json>>,
        rules: &Sanitize,
        max: usize,
    ) -> Result<CleanError, Unclean> {
        let policy = Policy::of(rules);
        let (text, mut findings) = self.plain(&message.open(), policy, max);
        let message = CleanText::new(cut(text, max), findings.clone());
        if let Some(label) = blocked(&findings, policy) {
            return Err(Unclean::Blocked { label, findings });
        }
        let Some(data) = data else {
            return Ok(CleanError {
                message,
                data: None,
                findings,
            });
        };
        let (data, more) = self.checked(&data.open(), rules, EVERYTHING)?;
        findings.merge(more);
        Ok(CleanError {
            message,
            data: Some(data),
            findings,
        })
    }

    /// Cleans a tool's definition, which no tenant's rules reach: it is shared by
    /// all who see the tool.
    pub fn definition(&self, definition: Untrusted<Json>) -> CleanDefinition {
        let json = definition.open();
        let unfit_name = json.get("name").is_some_and(|name| {
            name.string()
                .is_none_or(|name| name.contains(char::is_control))
        });
        let cleaned = self.engine.json(&json, Policy::REDACT, EVERYTHING, true);
        CleanDefinition {
            suspicious: cleaned.found.iter().any(makes_suspicious),
            unfit_name,
            json: cleaned.json,
            findings: cleaned.findings,
        }
    }

    /// A copy of a caller's arguments for the audit. A name that says secret is
    /// believed, whatever its value looks like.
    pub fn arguments(&self, arguments: &Json, rules: &Sanitize) -> (Json, Findings) {
        let policy = Policy::for_record(rules);
        let cleaned = self.engine.json(arguments, policy, WITH_NUMBERS, false);
        (cleaned.json, cleaned.findings)
    }

    /// Cleans a text and cuts it to `max` bytes at a character's end.
    pub fn text(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let (text, findings) = self.plain(&text.open(), Policy::REDACT, max);
        CleanText::new(cut(text, max), findings)
    }

    /// The same on one line: for logs and `www-authenticate`-like places.
    pub fn line(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let (text, findings) = self.plain(&text.open(), Policy::REDACT, max);
        CleanText::new(cut(one_line(&text), max), findings)
    }

    /// What may be told of an upstream's error page: one line, no markup, no names
    /// or addresses of inner hosts.
    pub fn excerpt(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let text = text.open();
        let text = shortened(&text, max);
        let (text, mut findings) = self.plain(&without_markup(text), Policy::REDACT, max);
        let (text, hosts) = self.excerpts.without_hosts(&text);
        if hosts > 0 {
            findings.add(INTERNAL_HOST, hosts, String::new);
        }
        CleanText::new(cut(one_line(&text), max), findings)
    }

    fn plain(&self, text: &str, policy: Policy, max: usize) -> (String, Findings) {
        let text = shortened(text, max);
        let edits = self.engine.text(text, policy);
        let mut findings = Findings::none();
        for (label, count) in edits_total(&edits) {
            findings.add(label, count, String::new);
        }
        (edited(text, &edits).into_owned(), findings)
    }
}

fn shortened(text: &str, max: usize) -> &str {
    let most = max.saturating_mul(MARGIN).max(AT_LEAST);
    text.get(..text.floor_char_boundary(most)).unwrap_or(text)
}

/// Hidden text in what is read; anything in what carries arguments.
fn makes_suspicious(found: &Found) -> bool {
    let top = found.keys.first().map(String::as_str);
    let is_schema = matches!(top, Some("inputSchema" | "outputSchema"));
    let is_read =
        matches!(top, Some("name" | "title" | "description" | "annotations")) || is_schema;
    let hidden = matches!(found.label, INVISIBLE | TERMINAL) && is_read;
    let carries = found.in_key || found.keys.iter().any(|key| key == "enum" || key == "const");
    hidden || (is_schema && carries)
}

#[cfg(test)]
mod tests;
