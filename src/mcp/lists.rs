//! Lists: what the caller may see, in pages, in a stable order. Tools, resources,
//! templates and prompts are listed alike.

use crate::catalog::{Family, Listed, View};
use crate::pipeline::Refusal;
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Era, Json, Request, Version};
use crate::tenancy::TenantContext;
use crate::visibility::{self, Visible};

use super::{Server, cursor, modern};

/// One page of the caller's tools.
pub(super) fn tools(
    server: &Server,
    context: &TenantContext,
    request: &Request,
    version: Version,
) -> Result<Json, Refusal> {
    let view = server.pipeline.catalog.view(context.tenant_id());
    reachable(&view)?;
    let visible = visibility::list(context, &view);
    let page = Page::of(server, context, request, "tools", &visible)?;
    Ok(page.result(version, view.ttl(), |tool| tool.listed(version)))
}

/// One page of what the caller may see of a family.
pub(super) fn items(
    server: &Server,
    context: &TenantContext,
    request: &Request,
    version: Version,
    family: Family,
) -> Result<Json, Refusal> {
    let view = server.pipeline.catalog.view(context.tenant_id());
    reachable(&view)?;
    let visible = visibility::list_items(context, &view, family);
    let page = Page::of(server, context, request, family.list(), &visible)?;
    Ok(page.result(version, view.ttl(), |item| &item.json))
}

/// Refuses where an empty list would say that there is nothing (`rules.md` §2.2).
fn reachable(view: &View) -> Result<(), Refusal> {
    if view.all_away() {
        return Err(Refusal::Failed {
            text: "None of the servers behind this one can be reached. Retry shortly.".to_owned(),
        });
    }
    Ok(())
}

/// The family that a method lists.
pub(super) fn family(method: &str) -> Option<Family> {
    Family::ALL
        .into_iter()
        .find(|family| family.method() == method)
}

/// A page, and where the next begins.
struct Page<'a, T> {
    list: &'static str,
    items: &'a [Visible<T>],
    next: Option<String>,
}

impl<'a, T: Listed> Page<'a, T> {
    fn of(
        server: &Server,
        context: &TenantContext,
        request: &Request,
        list: &'static str,
        visible: &'a [Visible<T>],
    ) -> Result<Self, Refusal> {
        let behind = position(server, context, request, list)?;
        let begin = behind.map_or(0, |name| {
            visible.partition_point(|item| item.key() <= name.as_str())
        });
        let rest = visible.get(begin..).unwrap_or_default();
        let more = rest.len() > server.page_size;
        let items = rest.get(..server.page_size).unwrap_or(rest);
        let last = items.last().filter(|_| more);
        let next =
            last.map(|item| cursor::seal(&server.cursors, context.principal(), list, item.key()));
        Ok(Self { list, items, next })
    }

    fn result<'b>(
        &self,
        version: Version,
        ttl: std::time::Duration,
        listed: impl Fn(&'b Visible<T>) -> &'b Json,
    ) -> Json
    where
        'a: 'b,
    {
        let mut list = ArrayBuilder::new();
        for item in self.items {
            list.push(listed(item));
        }
        let mut result = ObjectBuilder::with_capacity(4096).json(self.list, &list.build());
        if let Some(next) = &self.next {
            result = result.text("nextCursor", next);
        }
        if version.era() == Era::Legacy {
            return result.build();
        }
        let ttl = i64::try_from(ttl.as_millis()).unwrap_or(0);
        modern::complete(
            result
                .integer("ttlMs", ttl)
                .text("cacheScope", "private")
                .build(),
        )
    }
}

/// The key behind which the page begins.
fn position(
    server: &Server,
    context: &TenantContext,
    request: &Request,
    list: &str,
) -> Result<Option<String>, Refusal> {
    let Some(cursor) = request
        .params
        .as_ref()
        .and_then(|params| params.get("cursor"))
        .filter(|cursor| !cursor.is_null())
    else {
        return Ok(None);
    };
    let opened = cursor
        .string()
        .and_then(|text| cursor::open(&server.cursors, context.principal(), list, &text));
    opened.map(Some).ok_or_else(|| {
        Refusal::MalformedParams("`params.cursor` is not a cursor of this list: send `nextCursor` of the page before, or none to begin anew".to_owned())
    })
}
