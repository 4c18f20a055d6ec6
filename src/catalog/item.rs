//! What upstreams offer besides tools: resources, templates of resources, prompts.

use std::fmt;
use std::sync::Arc;

use super::digest;
use super::shelf::Listed;
use super::template::UriTemplate;
use crate::ids::{Scope, UpstreamId};
use crate::protocol::Json;

/// A kind of list besides `tools/list`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Family {
    /// `resources/list`
    Resources,
    /// `resources/templates/list`
    Templates,
    /// `prompts/list`
    Prompts,
}

impl Family {
    /// All of them, in the order in which they are read.
    pub const ALL: [Self; 3] = [Self::Resources, Self::Templates, Self::Prompts];

    /// The method that lists it.
    pub fn method(self) -> &'static str {
        match self {
            Self::Resources => "resources/list",
            Self::Templates => "resources/templates/list",
            Self::Prompts => "prompts/list",
        }
    }

    /// The member of the result that holds the list.
    pub fn list(self) -> &'static str {
        match self {
            Self::Resources => "resources",
            Self::Templates => "resourceTemplates",
            Self::Prompts => "prompts",
        }
    }

    /// The member of a definition that callers name it by.
    pub(super) fn key(self) -> &'static str {
        match self {
            Self::Resources => "uri",
            Self::Templates => "uriTemplate",
            Self::Prompts => "name",
        }
    }
}

/// A resource, a template or a prompt: cleaned and under the key that callers use.
pub struct Item {
    /// What it is.
    pub family: Family,
    /// The URI, template or name that callers use.
    pub exposed: String,
    /// The upstream's own.
    pub own: String,
    /// Where it comes from.
    pub upstream: UpstreamId,
    /// The definition as it is listed.
    pub json: Json,
    /// What a template stands for.
    pub(super) template: Option<UriTemplate>,
    digest: [u8; 32],
}

impl Item {
    pub(super) fn new(
        family: Family,
        upstream: &UpstreamId,
        own: String,
        exposed: String,
        json: Json,
    ) -> Self {
        let template = (family == Family::Templates).then(|| UriTemplate::new(&exposed));
        Self {
            family,
            digest: digest::of(&json),
            template: template.flatten(),
            exposed,
            own,
            upstream: upstream.clone(),
            json,
        }
    }

    /// Whether it is a template that can stand for this URI.
    pub(super) fn stands_for(&self, uri: &str) -> bool {
        let template = self.template.as_ref();
        template.is_some_and(|template| template.matches(uri))
    }
}

impl Listed for Item {
    fn key(&self) -> &str {
        &self.exposed
    }

    fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    fn upstream(&self) -> &UpstreamId {
        &self.upstream
    }

    fn scopes(&self) -> &[Scope] {
        &[]
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:?}({} of {})",
            self.family, self.exposed, self.upstream
        )
    }
}

/// The items of one upstream, by family.
#[derive(Clone, Debug, Default)]
pub(super) struct Items([Arc<[Arc<Item>]>; 3]);

impl Items {
    pub(super) fn of(&self, family: Family) -> &Arc<[Arc<Item>]> {
        let [resources, templates, prompts] = &self.0;
        match family {
            Family::Resources => resources,
            Family::Templates => templates,
            Family::Prompts => prompts,
        }
    }

    pub(super) fn set(&mut self, family: Family, items: Vec<Item>) {
        let [resources, templates, prompts] = &mut self.0;
        let place = match family {
            Family::Resources => resources,
            Family::Templates => templates,
            Family::Prompts => prompts,
        };
        *place = items.into_iter().map(Arc::new).collect();
    }
}
