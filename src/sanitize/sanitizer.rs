//! The front door: one function for each kind of thing that an upstream says.

use std::time::Instant;

use super::clean::{CleanDefinition, CleanError, CleanEvent, CleanResult, CleanText, Unclean};
use super::detect::Place;
use super::edits::{Edit, Policy, edits_total};
use super::engine::{Engine, Found, Ground, blocking, edited};
use super::excerpt::{Excerpts, INTERNAL_HOST, cut, one_line, without_markup};
use super::excess;
use super::findings::{Findings, INVISIBLE, TERMINAL};
use super::fit;
use super::stream::{self, Stream};
use crate::config::Sanitize;
use crate::protocol::{Json, ServerRequest, Untrusted, UpstreamEvent};

/// A text is cut down to this many times its final length before it is cleaned, so
/// that a huge one costs no more than a large one.
const MARGIN: usize = 4;

/// Never cut before this many bytes: what is removed must not leave too little.
const AT_LEAST: usize = 64 << 10;

/// Longest address of a page that a person is sent to.
const LONGEST_URL: usize = 4096;

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
        self.result_fitting(result, rules, &|_| true)
    }

    /// The same for a result whose `structuredContent` has a schema: where a
    /// placeholder is not of its shape, one that is takes its place, if there is
    /// one. Whether the outcome fits is for the caller to check.
    ///
    /// # Errors
    /// [`Unclean`] when it is too large, or holds what the tenant blocks.
    pub fn result_fitting(
        &self,
        result: Untrusted<Json>,
        rules: &Sanitize,
        accepts: &dyn Fn(&Json) -> bool,
    ) -> Result<CleanResult, Unclean> {
        let before = result.open();
        let (mut json, mut findings) = self.checked(&before, rules, Ground::Answer)?;
        let fits = |json: &Json| json.get("structuredContent").is_none_or(|it| accepts(&it));
        let mut outgrown = false;
        if !findings.is_empty() && !fits(&json) {
            match fit::result(&before, &json, accepts) {
                Some(fitted) => json = fitted,
                None => outgrown = fits(&before),
            }
        }
        let Some(most) = rules.max_text else {
            return Ok(CleanResult::new(json, findings).outgrown(outgrown));
        };
        let (json, remainders) = excess::cut(&json, most, &mut findings);
        Ok(CleanResult::new(json, findings)
            .with_remainders(remainders)
            .outgrown(outgrown))
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
        self.open_event(event.open(), rules)
    }

    fn open_event(&self, event: UpstreamEvent, rules: &Sanitize) -> Result<CleanEvent, Unclean> {
        let (event, findings) = match event {
            UpstreamEvent::Progress(json) => {
                let (json, findings) = self.checked(&json, rules, Ground::Event)?;
                (UpstreamEvent::Progress(json), findings)
            }
            UpstreamEvent::Log(level, json) => {
                let (json, findings) = self.checked(&json, rules, Ground::Event)?;
                (UpstreamEvent::Log(level, json), findings)
            }
            UpstreamEvent::Request(request) => {
                let (params, findings) = self.checked(&request.params, rules, Ground::Answer)?;
                (
                    UpstreamEvent::Request(ServerRequest { params, ..request }),
                    findings,
                )
            }
            UpstreamEvent::ElicitationComplete(json) => {
                let (json, findings) = self.checked(&json, rules, Ground::Event)?;
                (UpstreamEvent::ElicitationComplete(json), findings)
            }
            UpstreamEvent::AskedAll => (UpstreamEvent::AskedAll, Findings::none()),
            UpstreamEvent::Pausing(time) => (UpstreamEvent::Pausing(time), Findings::none()),
        };
        Ok(CleanEvent::new(event, findings))
    }

    /// Takes the next notification of a stream in, and returns those that may leave
    /// now, in order: one whose end could begin a secret waits until
    /// [`Stream::deadline`], when [`Sanitizer::release`] is to be called.
    pub fn next_event(
        &self,
        stream: &mut Stream,
        event: Untrusted<UpstreamEvent>,
        now: Instant,
        rules: &Sanitize,
    ) -> Vec<Result<CleanEvent, Unclean>> {
        let ready = stream.push(event.open(), now);
        self.cleaned_together(ready, rules)
    }

    /// The notifications that still wait: the time is over, or the stream is.
    pub fn release(
        &self,
        stream: &mut Stream,
        rules: &Sanitize,
    ) -> Vec<Result<CleanEvent, Unclean>> {
        self.cleaned_together(stream.take(), rules)
    }

    /// Cleans messages that were held together as the one text that they are.
    fn cleaned_together(
        &self,
        events: Vec<UpstreamEvent>,
        rules: &Sanitize,
    ) -> Vec<Result<CleanEvent, Unclean>> {
        let mut joined = Findings::none();
        let mut events = events;
        if events.len() > 1
            && let Ok((list, findings)) =
                self.checked(&stream::listed(&events), rules, Ground::Messages)
            && !findings.is_empty()
        {
            joined = findings;
            events = events
                .into_iter()
                .zip(list.elements())
                .map(|(event, text)| stream::with_words(event, &text))
                .collect();
        }
        let mut out: Vec<_> = events
            .into_iter()
            .map(|event| self.open_event(event, rules))
            .collect();
        if let Some(Ok(first)) = out.iter_mut().find(|event| event.is_ok()) {
            first.found(joined);
        }
        out
    }

    fn checked(
        &self,
        json: &Json,
        rules: &Sanitize,
        ground: Ground,
    ) -> Result<(Json, Findings), Unclean> {
        let limit = rules.max_answer.0;
        if json.as_str().len() > limit {
            return Err(Unclean::TooLarge { limit });
        }
        let policy = Policy::of(rules);
        let cleaned = self.engine.json(json, ground, policy, false);
        match cleaned.blocked {
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
        let message = message.open();
        let text = shortened(&message, max);
        let edits = self.engine.text(text, Place::Error, policy);
        let mut findings = counted(&edits);
        if let Some(label) = blocking(&edits) {
            return Err(Unclean::Blocked { label, findings });
        }
        let message = CleanText::new(
            cut(edited(text, &edits).into_owned(), max),
            findings.clone(),
        );
        let Some(data) = data else {
            return Ok(CleanError {
                message,
                data: None,
                findings,
            });
        };
        let (data, more) = self.checked(&data.open(), rules, Ground::Failure)?;
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
        let cleaned = self
            .engine
            .json(&json, Ground::Definition, Policy::REDACT, true);
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
        let cleaned = self
            .engine
            .json(arguments, Ground::Arguments, policy, false);
        (cleaned.json, cleaned.findings)
    }

    /// Cleans a text and cuts it to `max` bytes at a character's end.
    pub fn text(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let (text, findings) = self.plain(&text.open(), max);
        CleanText::new(cut(text, max), findings)
    }

    /// The same on one line: for logs and `www-authenticate`-like places.
    pub fn line(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let (text, findings) = self.plain(&text.open(), max);
        CleanText::new(cut(one_line(&text), max), findings)
    }

    /// What may be told of an upstream's error page: one line, no markup, no names
    /// or addresses of inner hosts.
    pub fn excerpt(&self, text: Untrusted<String>, max: usize) -> CleanText {
        let text = text.open();
        let text = shortened(&text, max);
        let (text, mut findings) = self.plain(&without_markup(text), max);
        let (text, hosts) = self.excerpts.without_hosts(&text);
        if hosts > 0 {
            findings.add(INTERNAL_HOST, hosts, String::new);
        }
        CleanText::new(cut(one_line(&text), max), findings)
    }

    /// A page that a server wants a person to open, as it came: whoever cleaned it would
    /// break it, so it goes nowhere but to that person, behind a page of ours that says
    /// where it leads. `None` where browsers or people could take it for another place.
    #[expect(clippy::unused_self, reason = "the front door is a value")]
    pub fn destination(&self, url: Untrusted<String>) -> Option<String> {
        let url = url.open();
        let (scheme, rest) = url.split_once("://")?;
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let plain = url
            .bytes()
            .all(|b| b.is_ascii_graphic() && !b"\"<>\\^`{|}".contains(&b));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.ends_with(']') => (host, port),
            _ => (authority, "443"),
        };
        let named = !host.is_empty() && !authority.contains('@') && port.parse::<u16>().is_ok();
        let safe = match scheme {
            "https" => true,
            "http" => matches!(host, "localhost" | "127.0.0.1" | "[::1]"),
            _ => false,
        };
        (url.len() <= LONGEST_URL && plain && named && safe).then_some(url)
    }

    fn plain(&self, text: &str, max: usize) -> (String, Findings) {
        let text = shortened(text, max);
        let edits = self.engine.text(text, Place::Error, Policy::REDACT);
        (edited(text, &edits).into_owned(), counted(&edits))
    }
}

fn counted(edits: &[Edit]) -> Findings {
    let mut findings = Findings::none();
    for (label, count) in edits_total(edits) {
        findings.add(label, count, String::new);
    }
    findings
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
