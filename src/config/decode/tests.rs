//! Decoding: every fault in one look, in words, without the value.

use super::super::document::parse;
use super::*;
use crate::config::Config;

/// `path: wrong; instead`, in the order found.
fn faults(yaml: &str) -> Vec<String> {
    let (mut root, _) = parse(yaml).unwrap();
    decode::<Config>(&mut root)
        .misread
        .iter()
        .map(|m| format!("{}: {}; {}", m.path, m.wrong, m.instead))
        .collect()
}

const WRONG_VALUES: &[(&str, &str)] = &[
    ("server: 5", "server: is a single value; write a mapping"),
    (
        "server: {listen: localhost}",
        "server.listen: is no address with a port; write one such as `127.0.0.1:8080` or `[::1]:8080`",
    ),
    (
        "server: {listen: [1]}",
        "server.listen: is a list; write an address with a port, such as `127.0.0.1:8080`",
    ),
    (
        "server: {listen: }",
        "server.listen: has no value; write one, or remove the key",
    ),
    (
        "server: {listen: null}",
        "server.listen: is null; write an address with a port, such as `127.0.0.1:8080`",
    ),
    (
        "server: {trusted_proxies: [10.0.0.0/99]}",
        "server.trusted_proxies[0]: is no network; write one such as `10.0.0.0/8`",
    ),
    (
        "server: {body_limit: 4MB}",
        "server.body_limit: is no size; write a whole number with B, KiB, MiB or GiB, such as `10MiB`",
    ),
    (
        "server: {keep_alive: 5}",
        "server.keep_alive: is no length of time; write a whole number with ms, s, m, h or d, such as `5s`",
    ),
    (
        "database: {connections: many}",
        "database.connections: is text; write a whole number, not negative and not too large",
    ),
    (
        "database: {connections: -1}",
        "database.connections: is not a whole number, not negative and not too large; write a whole number, not negative and not too large",
    ),
    (
        "database: {connections: '8'}",
        "database.connections: is text in quotes; write a whole number, not negative and not too large",
    ),
    (
        "tenants: {a: {hide_without_scopes: yes}}",
        "tenants.a.hide_without_scopes: is text; write true or false",
    ),
    (
        "tenants: {a: {sanitize: {secrets: redakt}}}",
        "tenants.a.sanitize.secrets: unknown word; did you mean `redact`?",
    ),
    (
        "tenants: {a: {sanitize: {secrets: 'off'}}}",
        "tenants.a.sanitize.secrets: unknown word; write one of `redact`, `mask`, `flag` and `block`",
    ),
    (
        "tenants: {a: {limits: {per_user: {rate: 5}}}}",
        "tenants.a.limits.per_user.rate: is no rate; write a whole number above 0 per s, m or h, such as `20/s`",
    ),
    (
        "tenants: {a: {tools: {allow: [{}]}}}",
        "tenants.a.tools.allow[0]: says nothing; write match, upstream or read_only, or \"*\" for every tool",
    ),
    (
        "tenants: {a: {tools: {allow: [5]}}}",
        "tenants.a.tools.allow[0]: is a number; write a glob such as \"crm_*\", or a mapping with match, upstream or read_only",
    ),
    (
        "tenants: {a: }",
        "tenants.a: has no value; write one, or remove the key",
    ),
    (
        "upstreams: {a: {tenants: }}",
        "upstreams.a.tenants: has no value; write one, or remove the key",
    ),
    (
        "upstreams: {a: {mcp: {}}}",
        "upstreams.a.mcp: `url` is missing; add it",
    ),
    (
        "identity_providers: {a: {}}",
        "identity_providers.a: `issuer` is missing; add it",
    ),
    ("[1]", ": is a list; write a mapping"),
];

#[test]
fn a_wrong_value_is_said_in_words() {
    for (yaml, fault) in WRONG_VALUES {
        assert_eq!(faults(yaml), [*fault], "{yaml}");
    }
}

#[test]
fn an_unknown_key_names_the_nearest() {
    for (yaml, fault) in [
        ("sever: {}", "sever: unknown key; did you mean `server`?"),
        (
            "tenants: {acme: {limitz: {}}}",
            "tenants.acme.limitz: unknown key; did you mean `limits`?",
        ),
        (
            "tenants: {acme: {tools: {allow: [{mach: x}]}}}",
            "tenants.acme.tools.allow[0].mach: unknown key; did you mean `match`?",
        ),
        (
            "streams: {quux: 1}",
            "streams.quux: unknown key; known here: `per_user`, `total` and `input`",
        ),
    ] {
        assert_eq!(faults(yaml), [fault], "{yaml}");
    }
}

#[test]
fn all_faults_are_found_in_one_look() {
    let yaml = "
server: { listen: here, keep_alive: soon, quux: 1 }
tenants:
  acme: { limits: { per_user: { rate: fast, burst: much } }, tools: { allow: [{}, 'a', 5] } }
  globex: { sanitize: { secrets: maybe } }
upstreams:
  one: { mcp: { ur: x } }
tools:
  - { scopes: [a] }
  - { match: a, timeout: long }
";
    let mut paths: Vec<String> = faults(yaml)
        .iter()
        .filter_map(|fault| Some(fault.split_once(": ")?.0.to_owned()))
        .collect();
    paths.sort();
    assert_eq!(
        paths,
        [
            "server.keep_alive",
            "server.listen",
            "server.quux",
            "tenants.acme.limits.per_user.burst",
            "tenants.acme.limits.per_user.rate",
            "tenants.acme.tools.allow[0]",
            "tenants.acme.tools.allow[2]",
            "tenants.globex.sanitize.secrets",
            "tools[0]",
            "tools[1].timeout",
            "upstreams.one.mcp.ur",
        ]
    );
}

#[test]
fn text_is_kept_as_written_and_null_is_none() {
    let yaml = "
server: { public_url: null }
upstreams:
  a: { prefix: 007, stdio: { command: x, args: [1.10, true, 0x10, '~'], env: { PORT: 8080 } } }
";
    let (mut root, _) = parse(yaml).unwrap();
    let decoded = decode::<Config>(&mut root);
    assert!(decoded.misread.is_empty(), "{:?}", decoded.misread);
    let config = decoded.value.unwrap();
    assert_eq!(config.server.public_url, None);
    let upstream = &config.upstreams["a"];
    assert_eq!(upstream.prefix, "007");
    let stdio = upstream.stdio.as_ref().unwrap();
    assert_eq!(stdio.args, ["1.10", "true", "0x10", "~"]);
    assert_eq!(stdio.env["PORT"], "8080");
}

#[test]
fn the_search_for_faults_ends() {
    let many = (0..500)
        .map(|n| format!("  k{n}: 1"))
        .collect::<Vec<_>>()
        .join("\n");
    assert_eq!(faults(&format!("server:\n{many}")).len(), MOST_FAULTS);
}
