//! Pages that a tool server wants the caller's person to open: a link of ours stands in
//! the place of each, and is told where the client has no way to show it (`rules.md` §6.1).

use crate::oauth::continuations::Destination;
use crate::protocol::json::ArrayBuilder;
use crate::protocol::{Json, ServerMethod, Untrusted};
use crate::sanitize::CleanResult;

use super::converse::Talk;
use super::{Refusal, result};

/// What is told in the place of a question.
type Told = Result<CleanResult, Refusal>;

impl Talk<'_> {
    /// The cleaned parameters of a question with our link in the place of the page. They
    /// stay as they are where nothing is to be opened, or the person cannot sign in here.
    pub(super) async fn with_link(
        &mut self,
        params: Json,
        destination: Option<Untrusted<String>>,
    ) -> Result<Json, Told> {
        match destination {
            Some(destination) if self.call.visitor.is_some() => {
                let link = self.link(destination).await?;
                Ok(params.with_member("url", &Json::from_text(&link)))
            }
            _ => Ok(params),
        }
    }

    /// The cleaned data of a -32042, with our links.
    pub(super) async fn with_links(
        &mut self,
        data: Json,
        destinations: Vec<Untrusted<String>>,
    ) -> Result<Json, Told> {
        let Some(given) = data.get("elicitations") else {
            return Ok(data);
        };
        let mut destinations = destinations.into_iter();
        let mut all = ArrayBuilder::new();
        for params in given.elements() {
            let opens = crate::protocol::destination(ServerMethod::Elicit, &params).is_some();
            let destination = if opens { destinations.next() } else { None };
            all.push(&self.with_link(params, destination).await?);
        }
        Ok(data.with_member("elicitations", &all.build()))
    }

    /// What a caller is told who cannot be shown a page, or asked at all. `needed`: the
    /// capability that it lacks.
    pub(super) async fn cannot_ask(
        &mut self,
        needed: Json,
        destination: Option<Untrusted<String>>,
    ) -> Told {
        match destination {
            Some(destination) if self.call.visitor.is_some() => self.told(destination).await,
            _ => self.lacks(needed),
        }
    }

    /// The link in words, for a model to hand on.
    pub(super) async fn told(&mut self, destination: Untrusted<String>) -> Told {
        let link = match self.link(destination).await {
            Ok(link) => link,
            Err(told) => return told,
        };
        self.record.upstream_failed("needs a page opened");
        let words = format!(
            "The server needs the user to open a page before it goes on. Give the user this link, it is good for an hour and for them alone: {link} . When they have done what it asks for, call again."
        );
        result::say(self.call.ask.method, &words)
    }

    async fn link(&mut self, destination: Untrusted<String>) -> Result<String, Told> {
        let method = self.call.ask.method;
        let Some(url) = self.pipeline.sanitizer.destination(destination) else {
            self.record
                .upstream_failed("wants a page opened that may not be");
            return Err(result::say(
                method,
                "The server wants the user to open an address that may not pass: it has to be at https, without a user name. Do not retry; tell the operator.",
            ));
        };
        let destination = Destination {
            url,
            upstream: self.ready.errand.upstream().clone(),
        };
        let kept = match &self.call.visitor {
            Some(visitor) => {
                let links = &self.pipeline.continuations;
                links.keep(visitor, &destination).await
            }
            None => return Ok(destination.url),
        };
        kept.map_err(|error| {
            tracing::error!(%error, "A link for a page that a server wants opened could not be kept.");
            self.record.upstream_failed("its page could not be kept");
            result::say(
                method,
                "The server needs the user to open a page, and the link to it could not be kept. Retry shortly.",
            )
        })
    }
}
