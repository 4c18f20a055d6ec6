//! Arguments and headers, with what a caller is told.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::*;
use crate::catalog::Tool;
use crate::catalog::sample::{self, json};
use crate::config::{Config, Pattern, Rule, Tenant};
use crate::identity::Principal;
use crate::tenancy::{Tenants, resolve};
use crate::visibility::{Visible, see};

fn tool(schema: &str) -> Visible<Tool> {
    let mut config = Config::default();
    let mut acme = Tenant::default();
    acme.tools.allow.push(Rule {
        name: Some(Pattern::new("*")),
        ..Rule::default()
    });
    config.tenants.insert("acme".into(), acme);
    let principal = Arc::new(Principal::sample("acme", "alice", &[], &[]));
    let caller = resolve(principal, None, &Tenants::new(&config)).unwrap();
    let view = sample::view(vec![sample::tool("up", "t", schema)]);
    see(&caller, &view, "t").unwrap()
}

fn with(properties: &str) -> Visible<Tool> {
    tool(&format!(r#"{{"type":"object","properties":{properties}}}"#))
}

fn told(tool: &Visible<Tool>, arguments: &str) -> String {
    match check(tool, Some(json(arguments))) {
        Ok(call) => {
            assert_eq!(call.arguments().as_str(), arguments);
            "fits".to_owned()
        }
        Err(fault) => fault.to_string(),
    }
}

#[test]
fn absent_null_and_empty_arguments_are_the_same() {
    let free = tool(r#"{"type":"object","properties":{"a":{"type":"string"}}}"#);
    let strict = tool(r#"{"type":"object","required":["a"],"properties":{"a":{"type":"string"}}}"#);
    for arguments in [None, Some("null"), Some("{}"), Some("{ }")] {
        let arguments = arguments.map(json);
        let call = check(&free, arguments.clone()).unwrap();
        assert_eq!(call.arguments().members().count(), 0);
        let fault = check(&strict, arguments).unwrap_err();
        assert_eq!(
            fault.to_string(),
            r#"Argument "/a" is missing: expected string. Example: {"a": "text"}"#
        );
    }
}

#[test]
fn arguments_that_are_no_object_are_a_malformed_request() {
    let tool = tool(r#"{"type":"object"}"#);
    for (arguments, came) in [
        ("[]", "array"),
        ("\"{}\"", "string"),
        ("7", "number"),
        ("true", "boolean"),
    ] {
        let fault = check(&tool, Some(json(arguments))).unwrap_err();
        assert_eq!(fault, ArgumentFault::NotAnObject { came });
    }
}

#[test]
fn a_message_says_where_what_and_how() {
    for (properties, arguments, right) in [
        (
            r#"{"limit":{"type":"integer"}}"#,
            r#"{"limit":"ten"}"#,
            r#"Argument "/limit": expected integer, got string "ten". Example: {"limit": 10}"#,
        ),
        (
            r#"{"limit":{"type":"integer"}}"#,
            r#"{"limit":null}"#,
            r#"Argument "/limit": expected integer, got null. Leave it out if there is no value. Example: {"limit": 10}"#,
        ),
        (
            r#"{"limit":{"type":"integer"}}"#,
            r#"{"limit":1.5}"#,
            r#"Argument "/limit": expected integer, got number 1.5. Example: {"limit": 10}"#,
        ),
        (
            r#"{"limit":{"type":"integer","maximum":5}}"#,
            r#"{"limit":7}"#,
            r#"Argument "/limit": expected a number of at most 5, got integer 7. Example: {"limit": 5}"#,
        ),
        (
            r#"{"nick":{"type":["string","null"]}}"#,
            r#"{"nick":null}"#,
            "fits",
        ),
        (
            r#"{"when":{"type":"object","properties":{"day":{"type":"string","format":"date"}},"required":["day"]}}"#,
            r#"{"when":{}}"#,
            r#"Argument "/when/day" is missing: expected string of the format date. Example: {"when": {"day": "2026-01-31"}}"#,
        ),
        (
            r#"{"ids":{"type":"array","items":{"type":"integer"}}}"#,
            r#"{"ids":[1,[2]]}"#,
            r#"Argument "/ids/1": expected integer, got array of 1 items. Example: {"ids": [10]}"#,
        ),
        (
            r#"{"mode":{"enum":["fast","exact"]}}"#,
            r#"{"mode":"slow"}"#,
            r#"Argument "/mode": expected one of "fast", "exact", got string "slow". Example: {"mode": "fast"}"#,
        ),
        (
            r#"{"tz":{"type":"string","examples":["Europe/Berlin"],"pattern":"^[A-Z][a-z]+/"}}"#,
            r#"{"tz":"cet"}"#,
            r#"Argument "/tz": expected text that matches the pattern ^[A-Z][a-z]+/, got string "cet". Example: {"tz": "Europe/Berlin"}"#,
        ),
        (
            r#"{"code":{"type":"string","pattern":"^[0-9]{4}$"}}"#,
            r#"{"code":"x"}"#,
            r#"Argument "/code": expected text that matches the pattern ^[0-9]{4}$, got string "x". Example: {}"#,
        ),
    ] {
        assert_eq!(told(&with(properties), arguments), right);
    }
}

#[test]
fn unknown_arguments_are_named_with_the_nearest_known_one() {
    let schema = r#"{"type":"object","additionalProperties":false,"properties":{"query":{"type":"string"},"page_size":{"type":"integer"}}}"#;
    for (arguments, right) in [
        (
            r#"{"qeury":"a"}"#,
            r#"Argument "/qeury" is not known; did you mean "query"? Example: {}"#,
        ),
        (
            r#"{"PageSize":1}"#,
            r#"Argument "/PageSize" is not known; did you mean "page_size"? Example: {}"#,
        ),
        (
            r#"{"unknown":1}"#,
            r#"Argument "/unknown" is not known; known are query, page_size. Example: {}"#,
        ),
    ] {
        assert_eq!(told(&tool(schema), arguments), right);
    }
    let none = tool(r#"{"type":"object","additionalProperties":false}"#);
    let message = told(&none, r#"{"x":1}"#);
    assert!(message.contains("none are taken here"), "{message}");
}

#[test]
fn several_faults_are_told_but_not_all_of_many() {
    let properties: Vec<String> = (0..9)
        .map(|n| format!(r#""a{n}":{{"type":"integer"}}"#))
        .collect();
    let tool = with(&format!("{{{}}}", properties.join(",")));
    let wrong: Vec<String> = (0..9).map(|n| format!(r#""a{n}":"x""#)).collect();
    let message = told(&tool, &format!("{{{}}}", wrong.join(",")));
    assert_eq!(message.matches("expected integer").count(), 5);
    assert!(message.contains("More arguments are wrong."));
}

#[test]
fn little_of_a_value_is_shown_and_nothing_of_a_secret() {
    let tool = with(
        r#"{"text":{"type":"integer"},"api_key":{"type":"integer"},"auth":{"properties":{"accessToken":{"type":"integer"}}},"Password":{"maxLength":3}}"#,
    );
    let long = format!(r#"{{"text":"{}"}}"#, "a".repeat(500));
    let message = told(&tool, &long);
    assert!(
        message.contains(&format!("\"{}…\"", "a".repeat(40))),
        "{message}"
    );
    let odd = told(&tool, r#"{"text":"\u001b[31m\u202e\"\n"}"#);
    assert!(
        odd.contains(r#"got string "\u{1b}[31m\u{202e}\"\n"."#),
        "{odd}"
    );
    for (arguments, at) in [
        (r#"{"api_key":"hunter2"}"#, "/api_key"),
        (r#"{"auth":{"accessToken":"hunter2"}}"#, "/auth/accessToken"),
        (r#"{"Password":"hunter2"}"#, "/Password"),
    ] {
        let message = told(&tool, arguments);
        assert!(
            message.contains(at) && message.contains("(not shown)"),
            "{message}"
        );
        assert!(!message.contains("hunter2"), "{message}");
    }
    let odd_key = tool_closed();
    let message = told(&odd_key, r#"{"\u001b[31mkey":1}"#);
    assert!(!message.contains('\u{1b}'), "{message}");
}

fn tool_closed() -> Visible<Tool> {
    tool(r#"{"type":"object","additionalProperties":false,"properties":{"a":{}}}"#)
}

#[test]
fn numbers_out_of_range_are_named_and_large_ones_go_on_as_they_came() {
    let tool = with(r#"{"a":{"type":"array","items":{"type":"number"}},"n":{"type":"integer"}}"#);
    assert_eq!(
        told(&tool, r#"{"a":[1,-1e400]}"#),
        r#"Argument "/a/1": the number -1e400 is out of range; send a number that fits a double, or a string."#
    );
    assert_eq!(
        told(&tool, r#"{"n":123456789012345678901234567890}"#),
        "fits"
    );
    assert_eq!(told(&tool, r#"{"n":1.0,"a":[1e-400,0.10]}"#), "fits");
}

#[test]
fn alternatives_are_told_by_the_closest_one() {
    let tool = with(
        r#"{"filter":{"anyOf":[{"type":"object","required":["and"],"properties":{"and":{"type":"array"}}},{"type":"object","required":["field","value"],"properties":{"field":{"type":"string"},"value":{"type":["string","number"]}}}]}}"#,
    );
    let message = told(&tool, r#"{"filter":{"field":"a","value":[]}}"#);
    assert!(
        message.contains(r#"Argument "/filter/value": expected"#),
        "{message}"
    );
    let nothing = told(&tool, r#"{"filter":"a"}"#);
    assert!(
        nothing.contains(r#"Argument "/filter": expected object"#),
        "{nothing}"
    );
}

#[test]
fn every_example_passes_its_own_schema() {
    for schema in [
        r##"{"type":"object","required":["a"],"properties":{"a":{"$ref":"#/$defs/A"}},"$defs":{"A":{"type":"object","required":["b"],"properties":{"b":{"type":"integer","multipleOf":7,"minimum":20}}}}}"##,
        r#"{"type":"object","allOf":[{"required":["x"],"properties":{"x":{"const":5}}},{"required":["y"],"properties":{"y":{"type":"boolean"}}}]}"#,
        r#"{"type":"object","required":["x"],"properties":{"x":{"anyOf":[{"type":"null"},{"type":"array","items":{"type":"string","format":"uuid"},"minItems":2}]}}}"#,
        r##"{"type":"object","required":["kids"],"properties":{"kids":{"type":"array","items":{"$ref":"#"},"minItems":0,"maxItems":0}}}"##,
        r#"{"type":"object","required":["n"],"properties":{"n":{"type":"number","exclusiveMinimum":0,"exclusiveMaximum":1}}}"#,
    ] {
        let tool = tool(schema);
        let message = told(&tool, r#"{"zzz":0}"#);
        if let Some((_, example)) = message.split_once("Example: ") {
            check(&tool, Some(json(example))).unwrap();
        } else {
            assert!(schema.contains("exclusiveMaximum"), "{message}");
        }
    }
}

#[test]
fn large_arguments_take_bounded_time() {
    let slow = with(r#"{"x":{"type":"string","pattern":"^(a+)+$"},"list":{"uniqueItems":true}}"#);
    let begun = Instant::now();
    let long = format!(r#"{{"x":"{}!"}}"#, "a".repeat(1_000_000));
    assert!(told(&slow, &long).contains("expected text that matches"));
    let objects: Vec<String> = (0..20_000).map(|n| format!(r#"{{"n":{n}}}"#)).collect();
    assert_eq!(
        told(&slow, &format!(r#"{{"list":[{}]}}"#, objects.join(","))),
        "fits"
    );
    assert!(
        begun.elapsed() < Duration::from_secs(8),
        "{:?}",
        begun.elapsed()
    );
    let looking_around = with(r#"{"x":{"type":"string","pattern":"^(?!a)b"}}"#);
    assert_eq!(told(&looking_around, r#"{"x":"bc"}"#), "fits");
    assert!(told(&looking_around, &long).contains("are taken. Send less."));
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn headers_and_arguments_must_say_the_same() {
    let schema = r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"at":{"type":"object","properties":{"row":{"type":["integer","null"],"x-mcp-header":"Row"}}},"dry":{"type":"boolean","x-mcp-header":"Dry"}}}"#;
    let tool = tool(schema);
    let headers = |text: &str| -> Vec<(String, String)> {
        let pairs = text.split(';').filter(|pair| !pair.is_empty());
        pairs
            .filter_map(|pair| pair.split_once(':'))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    for (arguments, sent, right) in [
        ("{}", "", "fits"),
        (
            r#"{"region":"us-west1"}"#,
            "mcp-param-region:us-west1",
            "fits",
        ),
        (
            r#"{"region":"us-west1"}"#,
            "Mcp-Param-Region:us-west1;Mcp-Param-Other:x",
            "fits",
        ),
        (
            r#"{"region":"Hello, 世界"}"#,
            "Mcp-Param-Region:=?base64?SGVsbG8sIOS4lueVjA==?=",
            "fits",
        ),
        (
            r#"{"region":"=?base64?literal?="}"#,
            "Mcp-Param-Region:=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=",
            "fits",
        ),
        (
            r#"{"region":"=?base64?literal?="}"#,
            "Mcp-Param-Region:=?base64?literal?=",
            "malformed",
        ),
        (r#"{"region":""}"#, "Mcp-Param-Region:", "fits"),
        (
            r#"{"region":"us-west1"}"#,
            "Mcp-Param-Region:US-WEST1",
            "does not match",
        ),
        (r#"{"region":"us-west1"}"#, "", "is missing"),
        (r#"{"region":null}"#, "", "fits"),
        (
            r#"{"region":null}"#,
            "Mcp-Param-Region:null",
            "is given, but",
        ),
        ("{}", "Mcp-Param-Region:x", "is given, but"),
        (r#"{"at":{"row":42}}"#, "Mcp-Param-Row:42", "fits"),
        (r#"{"at":{"row":42}}"#, "Mcp-Param-Row:42.0", "fits"),
        (r#"{"at":{"row":42.0}}"#, "Mcp-Param-Row:4.2e1", "fits"),
        (r#"{"at":{"row":42}}"#, "Mcp-Param-Row:43", "does not match"),
        (
            r#"{"at":{"row":42}}"#,
            "Mcp-Param-Row:fortytwo",
            "does not match",
        ),
        (
            r#"{"at":{"row":42}}"#,
            "Mcp-Param-Row:42 ",
            "does not match",
        ),
        (r#"{"at":{"row":null}}"#, "", "fits"),
        (r#"{"at":7}"#, "", "fits"),
        (r#"{"dry":true}"#, "Mcp-Param-Dry:true", "fits"),
        (r#"{"dry":true}"#, "Mcp-Param-Dry:True", "does not match"),
        (r#"{"region":"ä"}"#, "Mcp-Param-Region:ä", "malformed"),
        (
            r#"{"region":"a"}"#,
            "Mcp-Param-Region:a;mcp-param-region:a",
            "malformed",
        ),
        (r#"{"region":["a"]}"#, "", "fits"),
    ] {
        let told = match check_headers(&tool, Some(&json(arguments)), &headers(sent)) {
            Ok(()) => "fits".to_owned(),
            Err(fault) => fault.to_string(),
        };
        assert!(told.contains(right), "{arguments} with {sent}: {told}");
        assert!(!told.contains("us-west1"), "values are not quoted");
    }
    assert_eq!(check_headers(&tool, None, &[]), Ok(()));
    assert!(check_headers(&tool, None, &headers("Mcp-Param-Dry:true")).is_err());
}

#[test]
fn arguments_are_mirrored_to_the_upstream_as_plain_values() {
    let tool = tool(
        r#"{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"},"row":{"type":"integer","x-mcp-header":"Row"},"dry":{"type":["boolean","null"],"x-mcp-header":"Dry"}}}"#,
    );
    let call = check(
        &tool,
        Some(json(r#"{"row":4.2e1,"dry":null,"region":"Hello, 世界"}"#)),
    )
    .unwrap();
    assert_eq!(
        call.param_headers(),
        [
            ("Mcp-Param-Region".to_owned(), "Hello, 世界".to_owned()),
            ("Mcp-Param-Row".to_owned(), "42".to_owned()),
        ]
    );
    assert_eq!(call.tool().exposed.as_str(), "t");
    for row in [
        "9007199254740992",
        "-9007199254740992",
        "123456789012345678901234567890",
    ] {
        let fault = told(&tool, &format!(r#"{{"row":{row}}}"#));
        assert!(fault.contains("between -9007199254740991 and"), "{fault}");
    }
}
