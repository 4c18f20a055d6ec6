//! The rules for upstreams that types cannot hold.

use http::HeaderName;

use super::super::check::Check;
use super::{HeaderCredential, McpUpstream, StdioUpstream, Upstream, UpstreamKind};

impl Upstream {
    pub(in crate::config) fn validate(&self, check: &mut Check<'_>) {
        match self.kind() {
            Some(UpstreamKind::Mcp(mcp)) => check.within("mcp", |check| {
                mcp.validate(self.credentials.header.is_some(), check);
            }),
            Some(UpstreamKind::Stdio(stdio)) => {
                check.within("stdio", |check| stdio.validate(check));
            }
            None if self.mcp.is_some() => {
                check.key_fault("is both `mcp` and `stdio`", "make two upstreams of it");
            }
            None => check.key_fault("has neither `mcp` nor `stdio`", "write one of them"),
        }
        self.validate_names(check);
        check.positive("concurrent", u64::from(self.concurrent));
        check.positive("max_answer", self.max_answer.0 as u64);
        check.lasting("refresh", self.refresh);
        check.within("timeout", |check| {
            check.lasting("connect", self.timeout.connect);
            check.lasting("call", self.timeout.call);
        });
        check.within("breaker", |check| {
            check.positive("failures", u64::from(self.breaker.failures));
            check.lasting("open_for", self.breaker.open_for);
        });
        check.within("credentials", |check| {
            if let Some(header) = &self.credentials.header {
                check.within("header", |check| {
                    if self.stdio.is_some() {
                        check.key_fault(
                            "cannot be sent to a child process",
                            "hand the secret over by `stdio.env`",
                        );
                    }
                    check.within("name", |check| header.validate_name(check));
                });
            }
        });
    }

    fn validate_names(&self, check: &mut Check<'_>) {
        check.within("prefix", |check| {
            let possible = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
            if !self.prefix.chars().all(possible) || self.prefix.len() > 64 {
                check.fault(
                    "cannot begin the name of a tool",
                    "use at most 64 of A-Z, a-z, 0-9, `_`, `.` and `-`",
                );
            }
        });
        let Some(tenants) = &self.tenants else { return };
        if tenants.is_empty() {
            check.within("tenants", |check| {
                check.fault(
                    "is empty: nobody has this upstream",
                    "list tenants, or remove the key to give it to all",
                );
            });
        }
        check.each("tenants", tenants, |tenant, check| {
            check.refers("tenants", tenant.as_str());
        });
    }
}

impl McpUpstream {
    fn validate(&self, has_secret: bool, check: &mut Check<'_>) {
        check.within("url", |check| {
            let url = check.url(&self.url, "https://mcp.example.com/mcp");
            if has_secret && url.is_some_and(|url| !url.https && !url.loopback) {
                check.warning(
                    "is http: the credential can be read on the way",
                    "write https",
                );
            }
        });
        if let Some(tls) = &self.tls {
            let https = self.url.starts_with("https://");
            check.within("tls", |check| tls.validate(https, check));
        }
    }
}

impl StdioUpstream {
    fn validate(&self, check: &mut Check<'_>) {
        check.within("command", |check| {
            if self.command.trim().is_empty() || self.command.contains('\0') {
                check.fault(
                    "is no command",
                    "write the program alone, and its arguments in `args`",
                );
            }
        });
        check.each("args", &self.args, |argument, check| {
            if argument.contains('\0') {
                check.fault("holds a null character", "remove it");
            }
        });
        check.within("env", |check| {
            for (name, value) in &self.env {
                if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
                    check.within(name, |check| {
                        check.key_fault("is no environment variable", "use A-Z, 0-9 and `_`");
                    });
                }
            }
        });
    }
}

impl HeaderCredential {
    /// The gateway writes some headers itself, and some belong to one connection
    /// alone (RFC 9110 §7.6.1).
    fn validate_name(&self, check: &mut Check<'_>) {
        const OURS: [&str; 18] = [
            "accept",
            "accept-encoding",
            "connection",
            "expect",
            "host",
            "keep-alive",
            "last-event-id",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
            "te",
            "traceparent",
            "tracestate",
            "trailer",
            "trailers",
            "transfer-encoding",
            "upgrade",
            "user-agent",
        ];
        let Ok(name) = HeaderName::from_bytes(self.name.as_bytes()) else {
            check.fault("is no header name", "write one such as `Authorization`");
            return;
        };
        let name = name.as_str();
        if OURS.contains(&name) || name.starts_with("mcp-") || name.starts_with("content-") {
            check.fault(
                "is a header that the gateway writes itself",
                "write the one that the upstream takes its secret from, such as `Authorization`",
            );
        }
    }
}
