//! JSON-RPC and MCP on the wire: shapes, codes and names, no behaviour. What is
//! here holds the modern form (2026-07-28); `upstream` lifts legacy servers to
//! it and `mcp` lowers it for legacy clients. Nothing here knows HTTP.

mod ask;
mod capabilities;
pub mod codes;
mod envelope;
mod event;
pub mod json;
pub mod meta;
mod method;
mod tool;
mod untrusted;
mod version;

pub use ask::{PendingReply, Replied, ReplySlot, ServerMethod, ServerRequest};
pub use capabilities::ClientCapabilities;
pub use envelope::{
    EnvelopeFault, Message, Notification, Request, RequestId, Response, error_message,
    error_object, notification_message, request_message, result_message,
};
pub use event::{LogLevel, UpstreamEvent};
pub use json::{Json, JsonFault, JsonLimits};
pub use meta::RequestMeta;
pub use method::Method;
pub use tool::ToolDefinition;
pub use untrusted::{
    InputRequest, InputRequired, ListPage, Task, TaskError, TaskStatus, Untrusted, destination,
};
pub use version::{Era, Version};
