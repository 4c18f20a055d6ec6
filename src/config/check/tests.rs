//! Every rule that types cannot hold: one wrong configuration each.

use std::path::Path;

use super::super::{Environment, Severity, parse};

/// A configuration in order, into which each row puts one thing that is not.
const RIGHT: &str = "
server: { public_url: https://gw.example.com }
database: { url_file: db }
keys_file: keys
identity_providers: { corporate: { issuer: https://login.example.com } }
tenants: { acme: {}, globex: {} }
upstreams: { search: { mcp: { url: https://mcp.example.com/mcp } } }
";

/// `severity path: wrong` of every fault of a configuration in which the sections
/// of `change` replace those of the right one.
fn faults(change: &str) -> Vec<String> {
    let replaced: Vec<&str> = change
        .lines()
        .filter(|line| !line.starts_with(' '))
        .filter_map(|line| line.split_once(':'))
        .map(|(section, _)| section)
        .collect();
    let kept = RIGHT.lines().filter(|line| {
        !replaced
            .iter()
            .any(|section| line.starts_with(&format!("{section}:")))
    });
    let yaml = format!(
        "{}\n{}\n",
        kept.collect::<Vec<_>>().join("\n"),
        change.strip_prefix("-").unwrap_or(change)
    );
    let found = match parse(
        Path::new("t.yaml"),
        yaml.as_bytes(),
        &Environment::default(),
    ) {
        Ok(loaded) => loaded.warnings,
        Err(faults) => faults.0,
    };
    found
        .iter()
        .map(|fault| {
            let severity = match fault.severity {
                Severity::Error => "",
                Severity::Warning => "warning ",
            };
            format!("{severity}{}: {}", fault.path, fault.wrong)
        })
        .collect()
}

#[test]
fn a_configuration_in_order_passes() {
    assert_eq!(faults("telemetry: {}"), [""; 0]);
}

#[track_caller]
fn refused(rows: &[(&str, &str)]) {
    for (change, fault) in rows {
        assert_eq!(faults(change), [*fault], "{change}");
    }
}

#[track_caller]
fn accepted(changes: &[&str]) {
    for change in changes {
        assert_eq!(faults(change), [""; 0], "{change}");
    }
}

#[test]
fn the_public_url_is_one_that_clients_can_use() {
    refused(&[
        (
            "server: { listen: '0.0.0.0:8080' }",
            "server.public_url: is missing, while `server.listen` can be reached from other machines",
        ),
        (
            "server: { public_url: gw.example.com }",
            "server.public_url: is no absolute http or https URL",
        ),
        (
            "server: { public_url: '' }",
            "server.public_url: is no absolute http or https URL",
        ),
        (
            "server: { public_url: 'https://gw.example.com?x=1' }",
            "server.public_url: has a query (`?…`)",
        ),
        (
            "server: { public_url: 'https://gw.example.com#x' }",
            "server.public_url: has a fragment (`#…`)",
        ),
        (
            "server: { public_url: 'https://me:pw@gw.example.com' }",
            "server.public_url: has a user name or password in it",
        ),
        (
            "server: { public_url: http://gw.example.com }",
            "server.public_url: is http, where everybody on the way can read and change what is sent",
        ),
        (
            "server: { public_url: https://gw.example.com/ }",
            "warning server.public_url: ends with a slash, which clients will see in every URL and must repeat exactly",
        ),
    ]);
    accepted(&[
        "server: { listen: '127.0.0.1:1' }",
        "server: { listen: '[::1]:1' }",
        "server: { public_url: 'http://localhost:8080' }",
        "server: { public_url: https://gw.example.com/base, listen: '0.0.0.0:1' }",
    ]);
}

#[test]
fn origins_hosts_and_listeners_are_what_they_are_compared_with() {
    refused(&[
        (
            "server: { allowed_origins: ['*'] }",
            "server.allowed_origins[0]: would let pages of every site call",
        ),
        (
            "server: { allowed_origins: ['https://*.example.com'] }",
            "server.allowed_origins[0]: would let pages of every site call",
        ),
        (
            "server: { allowed_origins: ['null'] }",
            "server.allowed_origins[0]: is no origin",
        ),
        (
            "server: { allowed_origins: ['https://a.example/'] }",
            "server.allowed_origins[0]: is more than an origin",
        ),
        (
            "server: { allowed_origins: ['https://A.example'] }",
            "server.allowed_origins[0]: is no origin as browsers send it",
        ),
        (
            "server: { allowed_origins: ['https://ok.example', 'https://a.example:443'] }",
            "server.allowed_origins[1]: names the default port, which browsers leave out",
        ),
        (
            "server: { allowed_hosts: ['https://a.example'] }",
            "server.allowed_hosts[0]: is no host name",
        ),
        (
            "server: { allowed_hosts: ['*.example'] }",
            "server.allowed_hosts[0]: is no host name",
        ),
        (
            "server: { admin_listen: '127.0.0.1:8080' }",
            "server.admin_listen: is the same as `server.listen`",
        ),
        (
            "server: { trusted_proxies: [0.0.0.0/0] }",
            "warning server.trusted_proxies[0]: believes the forwarded headers of everybody",
        ),
        ("server: { body_limit: 0 }", "server.body_limit: is 0"),
        ("server: { page_size: 0 }", "server.page_size: is 0"),
        (
            "server: { keep_alive: 0s }",
            "server.keep_alive: is no time at all",
        ),
    ]);
    accepted(&[
        "server: { allowed_origins: ['https://a.example:8443', 'vscode-webview://x', 'http://localhost:6274'] }",
        "server: { allowed_hosts: [gw.internal, 10.0.0.1, '[::1]'] }",
        "server: { listen: '127.0.0.1:0', admin_listen: '127.0.0.1:0' }",
    ]);
}

#[test]
fn there_is_exactly_one_database_and_keys_where_they_are_needed() {
    refused(&[
        (
            "database: {}",
            "database: says nothing of where the database is",
        ),
        (
            "database: { url: postgres://h/d, url_file: db }",
            "database: names more than one database",
        ),
        (
            "database: { url_file: db, embedded: { data_dir: d } }",
            "database: names more than one database",
        ),
        (
            "database: { url: 'mysql://u:hunter2@h/d' }",
            "database.url: is no connection string",
        ),
        (
            "database: { url_file: db, direct_url: 'h' }",
            "database.direct_url: is no connection string",
        ),
        (
            "database: { embedded: { data_dir: d }, direct_url: 'postgres://h/d' }",
            "database.direct_url: has no meaning beside `embedded`",
        ),
        (
            "database: { url_file: db, connections: 0 }",
            "database.connections: is 0",
        ),
        (
            "database: { url_file: db, audit_connections: 0 }",
            "database.audit_connections: is 0",
        ),
        (
            "database: { url_file: db, timeout: 0s }",
            "database.timeout: is no time at all",
        ),
        ("keys_file: null", "keys_file: is missing"),
    ]);
    accepted(&["database: { embedded: { data_dir: d } }\nkeys_file: null"]);
}

const WRONG_PROVIDERS: &[(&str, &str)] = &[
    (
        "identity_providers: {}",
        "warning identity_providers: is empty: nobody can call",
    ),
    (
        "identity_providers: { Corp: { issuer: https://a.example } }",
        "identity_providers.Corp: is no id",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, tenants: [acne] } }",
        "identity_providers.a.tenants[0]: is not in `tenants`",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example }, b: { issuer: https://b.example, tenants: [acme] } }",
        "identity_providers.a.tenants: is missing, and there are several providers",
    ),
    (
        "identity_providers:\n  a: { issuer: https://a.example, tenants: [acme] }\n  b: { issuer: https://a.example, tenants: [globex] }",
        "identity_providers.b.issuer: is the issuer of `a` on line 8 too",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, jwks_file: k, jwks_url: https://a.example/k } }",
        "identity_providers.a.jwks_url: stands beside `jwks_file`",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, jwks_url: http://a.example/k } }",
        "identity_providers.a.jwks_url: is http, where everybody on the way can read and change what is sent",
    ),
    (
        "identity_providers: { a: { issuer: http://a.example } }",
        "identity_providers.a.issuer: is http, where everybody on the way can read and change what is sent",
    ),
    (
        "identity_providers: { a: { issuer: corp } }",
        "identity_providers.a.issuer: is no absolute http or https URL",
    ),
    (
        "identity_providers: { a: { issuer: '', jwks_file: k } }",
        "identity_providers.a.issuer: is no issuer",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, algorithms: [] } }",
        "identity_providers.a.algorithms: is empty",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, algorithms: [HS256] } }",
        "identity_providers.a.algorithms[0]: unknown word",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, audiences: [''] } }",
        "identity_providers.a.audiences[0]: is empty",
    ),
    (
        "identity_providers: { a: { issuer: https://a.example, claims: { roles: 'a..b' } } }",
        "identity_providers.a.claims.roles: is no claim",
    ),
];

#[test]
fn identity_providers_are_told_apart_and_bound_to_tenants() {
    refused(WRONG_PROVIDERS);
    accepted(&[
        "identity_providers: { a: { issuer: urn:corp, jwks_file: k } }",
        "identity_providers: { a: { issuer: 'http://127.0.0.1:9', jwks_url: 'http://127.0.0.1:9/k' } }",
        // The slash makes another issuer (RFC 9207 §2.4).
        "identity_providers: { a: { issuer: https://a.example, tenants: [acme] }, b: { issuer: https://a.example/, tenants: [acme] } }",
    ]);
}

const WRONG_RULES: &[(&str, &str)] = &[
    ("tenants: {}", "tenants: has no tenant"),
    ("tenants: { Acme: {} }", "tenants.Acme: is no id"),
    ("tenants: { -a: {} }", "tenants.-a: is no id"),
    (
        "tenants: { acme: { limits: { per_user: { rate: 5/s, burst: 0 } } } }",
        "tenants.acme.limits.per_user.burst: is 0",
    ),
    (
        "tenants: { acme: { limits: { per_tenant: { rate: 5/s, concurrent: 0 } } } }",
        "tenants.acme.limits.per_tenant.concurrent: is 0",
    ),
    (
        "tenants: { acme: { sanitize: { max_answer: 0 } } }",
        "tenants.acme.sanitize.max_answer: is 0",
    ),
    (
        "tenants: { acme: { sanitize: { labels: { emial: mask } } } }",
        "tenants.acme.sanitize.labels.emial: names `emial`, which nothing is labelled",
    ),
    (
        "tenants: { acme: { sanitize: { allow: { fields: [{ pointer: /a, labels: [credit_cart] }] } } } }",
        "tenants.acme.sanitize.allow.fields[0].labels[0]: names `credit_cart`, which nothing is labelled",
    ),
    (
        "tenants: { acme: { tools: { deny: ['/crm/'] } } }",
        "tenants.acme.tools.deny[0]: can match no tool",
    ),
    (
        "tenants: { acme: { tools: { allow: [{ match: '' }] } } }",
        "tenants.acme.tools.allow[0].match: can match no tool",
    ),
    (
        "tenants: { acme: { tools: { allow: [{ upstream: serach }] } } }",
        "tenants.acme.tools.allow[0].upstream: is not in `upstreams`",
    ),
    (
        "tenants: { acme: { roles: { support: { tools: { allow: ['a b'] } } } } }",
        "tenants.acme.roles.support.tools.allow[0]: can match no tool",
    ),
    (
        "tenants: { acme: { roles: { ' ': {} } } }",
        "tenants.acme.roles.\" \": is no role",
    ),
    (
        "tools: [{ match: 'a|b' }]",
        "tools[0].match: can match no tool",
    ),
    (
        "tools: [{ match: a, scopes: ['a b'] }]",
        "tools[0].scopes[0]: is no scope",
    ),
    (
        "tools: [{ match: a, limits: { rate: 5/m, burst: 0 } }]",
        "tools[0].limits.burst: is 0",
    ),
    (
        "tools: [{ match: a, timeout: 0s }]",
        "tools[0].timeout: is no time at all",
    ),
    (
        "edge: { per_address: { rate: 1/s, burst: 0 } }",
        "edge.per_address.burst: is 0",
    ),
    ("streams: { total: 0 }", "streams.total: is 0"),
];

#[test]
fn tenants_and_tool_rules_say_what_can_hold() {
    refused(WRONG_RULES);
    accepted(&[
        "tenants: { acme: { roles: { Domain Users: {} }, tools: { allow: ['*', { read_only: true }] } } }",
    ]);
}

const WRONG_UPSTREAMS: &[(&str, &str)] = &[
    (
        "upstreams: { a: {} }",
        "upstreams.a: has neither `mcp` nor `stdio`",
    ),
    (
        "upstreams: { a: { mcp: { url: https://a.example }, stdio: { command: x } } }",
        "upstreams.a: is both `mcp` and `stdio`",
    ),
    (
        "upstreams: { A: { stdio: { command: x } } }",
        "upstreams.A: is no id",
    ),
    (
        "upstreams: { a: { mcp: { url: a.example } } }",
        "upstreams.a.mcp.url: is no absolute http or https URL",
    ),
    (
        "upstreams: { a: { mcp: { url: 'https://u:hunter2@a.example' } } }",
        "upstreams.a.mcp.url: has a user name or password in it",
    ),
    (
        "upstreams: { a: { stdio: { command: '' } } }",
        "upstreams.a.stdio.command: is no command",
    ),
    (
        "upstreams: { a: { stdio: { command: x, env: { 'A=B': c } } } }",
        "upstreams.a.stdio.env.\"A=B\": is no environment variable",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, prefix: 'a b' } }",
        "upstreams.a.prefix: cannot begin the name of a tool",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, tenants: [nobody] } }",
        "upstreams.a.tenants[0]: is not in `tenants`",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, tenants: [] } }",
        "upstreams.a.tenants: is empty: nobody has this upstream",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, concurrent: 0 } }",
        "upstreams.a.concurrent: is 0",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, max_answer: 0 } }",
        "upstreams.a.max_answer: is 0",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, timeout: { call: 0s } } }",
        "upstreams.a.timeout.call: is no time at all",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, breaker: { failures: 0 } } }",
        "upstreams.a.breaker.failures: is 0",
    ),
    (
        "upstreams: { a: { stdio: { command: x }, credentials: { header: { name: X-Key, value_file: f } } } }",
        "upstreams.a.credentials.header: cannot be sent to a child process",
    ),
    (
        "upstreams: { a: { mcp: { url: http://a.example }, credentials: { header: { name: X-Key, value_file: f } } } }",
        "warning upstreams.a.mcp.url: is http: the credential can be read on the way",
    ),
];

#[test]
fn an_upstream_is_one_thing_with_a_usable_name() {
    refused(WRONG_UPSTREAMS);
}

#[test]
fn a_credential_takes_no_header_that_the_gateway_writes() {
    let with = |name: &str| {
        format!(
            "upstreams: {{ a: {{ mcp: {{ url: https://a.example }}, credentials: {{ header: {{ name: '{name}', value_file: f }} }} }} }}"
        )
    };
    for name in ["Authorization", "X-API-Key", "Cookie"] {
        assert_eq!(faults(&with(name)), [""; 0], "{name}");
    }
    for name in [
        "Host",
        "connection",
        "Mcp-Session-Id",
        "Content-Type",
        "Transfer-Encoding",
        "Accept",
    ] {
        let fault =
            "upstreams.a.credentials.header.name: is a header that the gateway writes itself";
        assert_eq!(faults(&with(name)), [fault], "{name}");
    }
    for name in ["X Key", "", "X-Key:"] {
        let fault = "upstreams.a.credentials.header.name: is no header name";
        assert_eq!(faults(&with(name)), [fault], "{name}");
    }
}

#[test]
fn outgoing_connections_and_logs_can_be_understood() {
    refused(&[
        (
            "outgoing: { proxy: 'socks5://h:1' }",
            "outgoing.proxy: is no http or https URL",
        ),
        (
            "outgoing: { resolve: { chatgpt.com: '127.0.0.1:1' } }",
            "outgoing.resolve.\"chatgpt.com\": is no host with a port",
        ),
        (
            "telemetry: { log_filter: 'toolgate=loud' }",
            "telemetry.log_filter: is no log filter",
        ),
        (
            "telemetry: { log_filter: inf }",
            "telemetry.log_filter: is no log filter",
        ),
        (
            "telemetry: { log_filter: '' }",
            "telemetry.log_filter: is no log filter",
        ),
    ]);
    accepted(&[
        "outgoing: { proxy: 'http://user:p@ss@egress:3128', resolve: { 'chatgpt.com:443': '127.0.0.1:1' } }",
        "telemetry: { log_filter: 'warn,toolgate=debug,toolgate::audit=TRACE' }",
    ]);
}

#[test]
fn what_follows_from_a_fault_is_not_reported_again() {
    refused(&[
        (
            "upstreams: { a: { mpc: { url: https://a.example } } }",
            "upstreams.a.mpc: unknown key",
        ),
        (
            "upstreams: { a: { mcp: { ulr: https://a.example } } }",
            "upstreams.a.mcp.ulr: unknown key",
        ),
        (
            "upstreams: { a: { mcp: { url: [] } } }",
            "upstreams.a.mcp.url: is a list",
        ),
        ("database: { url_fil: db }", "database.url_fil: unknown key"),
    ]);
    assert_eq!(
        faults("tenants: null\ntenantz: { acme: {} }").len(),
        2,
        "null is no mapping, and the key is unknown"
    );
    // A tenant that is faulty exists all the same.
    assert_eq!(
        faults(
            "tenants: { acme: { limits: 5 } }\nupstreams: { a: { stdio: { command: x }, tenants: [acme] } }"
        ),
        ["tenants.acme.limits: is a single value"]
    );
}

#[test]
fn elements_keep_their_numbers_when_one_before_them_is_faulty() {
    assert_eq!(
        faults("tools: [{ match: 5, timeout: x }, { match: 'a|b' }]"),
        [
            "tools[0].timeout: is no length of time",
            "tools[1].match: can match no tool"
        ]
    );
    assert_eq!(
        faults("server: { trusted_proxies: [x, 0.0.0.0/0] }"),
        [
            "server.trusted_proxies[0]: is no network",
            "warning server.trusted_proxies[1]: believes the forwarded headers of everybody"
        ]
    );
}
