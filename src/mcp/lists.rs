//! `tools/list`: what the caller may see, in pages, in a stable order.

use crate::pipeline::Refusal;
use crate::protocol::json::{ArrayBuilder, ObjectBuilder};
use crate::protocol::{Era, Json, Request, Version};
use crate::tenancy::TenantContext;
use crate::visibility;

use super::{Server, cursor, modern};

/// One page of the caller's tools.
pub(super) fn tools(
    server: &Server,
    context: &TenantContext,
    request: &Request,
    version: Version,
) -> Result<Json, Refusal> {
    let view = server.pipeline.catalog.view(context.tenant_id());
    let behind = position(server, context, request)?;
    let visible = visibility::list(context, &view);
    let begin = behind.map_or(0, |name| {
        visible.partition_point(|tool| tool.exposed.as_str() <= name.as_str())
    });
    let page = visible.iter().skip(begin).take(server.page_size);
    let mut listed = ArrayBuilder::new();
    let mut last = None;
    for tool in page {
        listed.push(tool.listed(version));
        last = Some(tool.exposed.as_str());
    }
    let more = begin + server.page_size < visible.len();
    let next = last
        .filter(|_| more)
        .map(|name| cursor::seal(&server.cursors, context.principal(), "tools", name));
    let mut result = ObjectBuilder::with_capacity(4096).json("tools", &listed.build());
    if let Some(next) = next {
        result = result.text("nextCursor", &next);
    }
    if version.era() == Era::Legacy {
        return Ok(result.build());
    }
    let ttl = i64::try_from(view.ttl().as_millis()).unwrap_or(0);
    Ok(modern::complete(
        result
            .integer("ttlMs", ttl)
            .text("cacheScope", "private")
            .build(),
    ))
}

/// The name behind which the page begins.
fn position(
    server: &Server,
    context: &TenantContext,
    request: &Request,
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
        .and_then(|text| cursor::open(&server.cursors, context.principal(), "tools", &text));
    opened.map(Some).ok_or_else(|| {
        Refusal::MalformedParams("`params.cursor` is not a cursor of this list: send `nextCursor` of the page before, or none to begin anew".to_owned())
    })
}
