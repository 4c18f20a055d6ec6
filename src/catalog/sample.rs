//! Makers for the tests of this and later steps.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;

use super::judge::{Bench, LeftOut};
use super::tool::Tool;
use super::view::{Stock, View};
use crate::config::{DefinitionPolicy, ResourceUris, ToolRule};
use crate::ids::UpstreamId;
use crate::protocol::{Json, JsonLimits, Untrusted};
use crate::sanitize::Sanitizer;

/// A text as checked JSON.
pub(crate) fn json(text: &str) -> Json {
    Json::parse(Bytes::from(text.to_owned()), &JsonLimits::UPSTREAM).unwrap()
}

/// A definition, judged as one of `upstream`.
pub(crate) fn judged(
    upstream: &str,
    prefix: &str,
    definition: &str,
    rules: &[ToolRule],
) -> Result<Tool, LeftOut> {
    let bench = Bench {
        upstream: &UpstreamId::from(upstream),
        prefix,
        suspicious: DefinitionPolicy::Quarantine,
        rules,
        uris: ResourceUris::Keep,
    };
    bench.judge(&Sanitizer::new().definition(Untrusted::new(json(definition))))
}

/// A tool of `upstream` with a name and an input schema.
pub(crate) fn tool(upstream: &str, name: &str, input_schema: &str) -> Tool {
    let definition = format!(r#"{{"name":"{name}","inputSchema":{input_schema}}}"#);
    judged(upstream, "", &definition, &[]).unwrap()
}

/// A view of some tools.
pub(crate) fn view(tools: Vec<Tool>) -> View {
    let stock = Stock {
        tools: tools.into_iter().map(Arc::new).collect(),
        ..Stock::default()
    };
    View::new(stock, 1, Duration::from_mins(1))
}
