//! The messages of a listen stream that do not depend on what happened.

use crate::protocol::json::ObjectBuilder;
use crate::protocol::{Json, RequestId, meta, result_message};

pub(super) fn subscription_meta(id: &RequestId) -> Json {
    ObjectBuilder::new()
        .json(meta::SUBSCRIPTION_ID, id.json())
        .build()
}

pub(super) fn notification(method: &str, params: &Json) -> Json {
    ObjectBuilder::new()
        .text("jsonrpc", "2.0")
        .text("method", method)
        .json("params", params)
        .build()
}

/// The end, as one page of the specification has it (cancellation) …
pub(super) fn cancelled(id: &RequestId) -> Json {
    let params = ObjectBuilder::new()
        .json("_meta", &subscription_meta(id))
        .json("requestId", id.json())
        .build();
    notification("notifications/cancelled", &params)
}

/// … and as the other has it (subscriptions, Graceful Closure).
pub(super) fn ended(id: &RequestId) -> Json {
    let result = ObjectBuilder::new()
        .text("resultType", "complete")
        .json("_meta", &subscription_meta(id))
        .build();
    result_message(id, &result)
}
