//! What becomes a tool, what does not, and what survives.

use super::*;
use crate::catalog::sample::{json, judged};
use crate::config::{Audit, Durability, Pattern};
use crate::protocol::Version;

const OBJECT: &str = r#"{"type":"object"}"#;

fn reason(definition: &str) -> String {
    match judged("up", "", definition, &[]) {
        Ok(_) => "taken".to_owned(),
        Err(left_out) => left_out.reason.to_string(),
    }
}

#[test]
fn a_definition_is_kept_byte_for_byte_but_for_its_name() {
    let definition = r##"{"name":"find","x-unknown":{"b":1.50,"a":[ 1e2 ]},"inputSchema":{"type":"object","additionalProperties":false,"properties":{"f":{"$ref":"#/$defs/F"},"g":{"$ref":"#h"}},"$defs":{"F":{"enum":["fast","exact"]},"H":{"$anchor":"h"}},"x-vendor":true},"execution":{"taskSupport":"optional"},"icons":[{"src":"https://x.example/i.png"}]}"##;
    let tool = judged("crm", "crm_", definition, &[]).unwrap();
    assert_eq!(tool.exposed.as_str(), "crm_find");
    assert_eq!(&*tool.own_name, "find");
    let right = definition.replace(r#""name":"find""#, r#""name":"crm_find""#);
    assert_eq!(tool.listed(Version::MODERN).as_str(), right);
    assert_eq!(tool.listed(Version::V2025_03_26).as_str(), right);
    let plain = judged("crm", "", definition, &[]).unwrap();
    assert_eq!(plain.listed(Version::MODERN).as_str(), definition);
    assert_ne!(plain.digest, tool.digest);
}

#[test]
fn each_definition_that_clients_refuse_is_left_out_with_a_reason() {
    let named = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{OBJECT}}}"#);
    let with = |more: &str| format!(r#"{{"name":"a","inputSchema":{OBJECT},{more}}}"#);
    let long = "a".repeat(129);
    for (definition, right) in [
        (named("a"), "taken"),
        (named("DATA_EXPORT_v2.x-1"), "taken"),
        (named(&"a".repeat(128)), "taken"),
        (named(""), "is not 1 to 128"),
        (named(&long), "is not 1 to 128"),
        (named("a b"), "is not 1 to 128"),
        (named("查询"), "is not 1 to 128"),
        (named("a/b"), "is not 1 to 128"),
        (format!(r#"{{"inputSchema":{OBJECT}}}"#), "no name"),
        (r#"{"name":"a"}"#.to_owned(), "no name or no inputSchema"),
        (r#"{"name":"a","inputSchema":null}"#.to_owned(), "no name or no inputSchema"),
        (r#"{"name":7,"inputSchema":{"type":"object"}}"#.to_owned(), "no name"),
        (r#"{"name":"a","inputSchema":{"properties":{}}}"#.to_owned(), "needs \"type\": \"object\""),
        (r#"["a"]"#.to_owned(), "no name"),
        (with(r#""description":"Finds.\udb40\udc41\udb40\udc42\udb40\udc43\udb40\udc44""#), "tampered"),
        (named("a\\u0007"), "is not 1 to 128"),
        (with(r#""description":["x"]"#), "description"),
        (with(r#""title":7"#), "title"),
        (with(r#""annotations":{"readOnlyHint":"yes"}"#), "annotations"),
        (with(r#""annotations":{"readOnlyHint":true,"vendor":"x"}"#), "taken"),
        (with(r#""outputSchema":"string""#), "outputSchema"),
        (with(r#""outputSchema":{"$schema":"https://schema.example/unknown"}"#), "is not supported"),
        (with(r#""outputSchema":{"$ref":"http://169.254.169.254/"}"#), "nothing is fetched"),
        (r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":{"$ref":"http://169.254.169.254/latest/meta-data/"}}}}"#.to_owned(), "nothing is fetched"),
        (r#"{"name":"a","inputSchema":{"type":"object","properties":{"x":{"type":"number","x-mcp-header":"X"}}}}"#.to_owned(), "x-mcp-header"),
    ] {
        let reason = reason(&definition);
        assert!(reason.contains(right), "{definition}: {reason}");
    }
}

#[test]
fn the_prefix_counts_towards_the_name() {
    let definition = format!(r#"{{"name":"{}","inputSchema":{OBJECT}}}"#, "a".repeat(126));
    assert!(judged("up", "x_", &definition, &[]).is_ok());
    assert!(judged("up", "xy_", &definition, &[]).is_err());
}

#[test]
fn nulls_for_absent_fields_are_taken_out() {
    let definition = r#"{"name":"a","title":null,"description":null,"inputSchema":{"type":"object"},"outputSchema":null,"annotations":null,"_meta":null,"vendor":null}"#;
    let tool = judged("up", "", definition, &[]).unwrap();
    assert_eq!(
        tool.listed(Version::MODERN).as_str(),
        r#"{"name":"a","inputSchema":{"type":"object"},"vendor":null}"#
    );
    assert!(tool.output.is_none());
}

#[test]
fn legacy_callers_get_no_output_schema_that_is_no_object() {
    let with =
        |output: &str| format!(r#"{{"name":"a","inputSchema":{OBJECT},"outputSchema":{output}}}"#);
    for (output, legacy_has_it) in [
        (r#"{"type":"object"}"#, true),
        (r#"{"type":"array"}"#, false),
        ("{}", false),
        (r#"{"type":["object","null"]}"#, false),
    ] {
        let tool = judged("up", "", &with(output), &[]).unwrap();
        assert!(tool.listed(Version::MODERN).get("outputSchema").is_some());
        for version in [
            Version::V2025_03_26,
            Version::V2025_06_18,
            Version::V2025_11_25,
        ] {
            let listed = tool.listed(version).get("outputSchema").is_some();
            assert_eq!(listed, legacy_has_it, "{output}");
        }
    }
}

#[test]
fn an_output_is_held_to_its_schema() {
    let definition = format!(
        r#"{{"name":"a","inputSchema":{OBJECT},"outputSchema":{{"type":"object","required":["n"],"properties":{{"n":{{"type":"integer"}}}}}}}}"#
    );
    let tool = judged("up", "", &definition, &[]).unwrap();
    let check = |text: Option<&str>| tool.check_output(text.map(json).as_ref());
    assert_eq!(check(Some(r#"{"n":1}"#)), Ok(()));
    let fault = check(Some(r#"{"n":"hunter2"}"#)).unwrap_err();
    assert_eq!(
        fault,
        "structuredContent does not fit the output schema: /n is not integer"
    );
    assert!(check(Some("{}")).unwrap_err().contains("/n is missing"));
    assert!(
        check(Some("[1,2]"))
            .unwrap_err()
            .contains("the value is not object")
    );
    assert!(
        check(Some(r#"{"n":1e400}"#))
            .unwrap_err()
            .contains("out of range")
    );
    assert!(check(None).unwrap_err().contains("no structuredContent"));
    let without = format!(r#"{{"name":"a","inputSchema":{OBJECT}}}"#);
    assert_eq!(
        judged("up", "", &without, &[]).unwrap().check_output(None),
        Ok(())
    );
}

fn rule(glob: &str) -> ToolRule {
    ToolRule {
        name: Pattern::new(glob),
        scopes: None,
        limits: None,
        audit: None,
        timeout: None,
        idempotent: None,
    }
}

#[test]
fn of_several_rules_each_part_is_of_the_last_that_gives_it() {
    let strict = Audit {
        durability: Some(Durability::Strict),
        arguments: None,
    };
    let rules = [
        ToolRule {
            scopes: Some(vec!["crm.read".into()]),
            idempotent: Some(true),
            audit: Some(strict),
            ..rule("*")
        },
        ToolRule {
            scopes: Some(vec!["crm.admin".into()]),
            ..rule("crm_delete_*")
        },
        ToolRule {
            timeout: Some(crate::config::Interval::seconds(5)),
            audit: Some(Audit::default()),
            ..rule("crm_*")
        },
    ];
    let definition = |name: &str| format!(r#"{{"name":"{name}","inputSchema":{OBJECT}}}"#);
    let delete = judged("crm", "crm_", &definition("delete_all"), &rules).unwrap();
    assert_eq!(delete.rule.scopes, ["crm.admin".into()]);
    assert_eq!(delete.rule.timeout, Some(std::time::Duration::from_secs(5)));
    assert_eq!(delete.rule.audit.durability, Some(Durability::Strict));
    assert!(delete.may_repeat());
    let other = judged("up", "", &definition("search"), &rules).unwrap();
    assert_eq!(other.rule.scopes, ["crm.read".into()]);
    let tenant = Audit {
        durability: Some(Durability::Overlapped),
        arguments: None,
    };
    assert_eq!(other.rule.durability(&tenant), Durability::Strict);
    let alone = judged("up", "", &definition("search"), &[]).unwrap();
    assert_eq!(alone.rule.durability(&tenant), Durability::Overlapped);
    assert!(!alone.may_repeat());
}
