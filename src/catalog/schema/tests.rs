//! Which schemas are taken, and that no schema and no value makes much work.

use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

use super::*;
use crate::protocol::JsonLimits;

fn parse(text: &str) -> Json {
    Json::parse(Bytes::from(text.to_owned()), &JsonLimits::UPSTREAM).unwrap()
}

fn input(schema: &Value) -> Result<Schema, SchemaFault> {
    Schema::input(&parse(&schema.to_string()))
}

fn compiled(schema: &Value) -> Schema {
    input(schema).unwrap_or_else(|fault| panic!("{fault} in {schema}"))
}

#[test]
fn every_supported_dialect_is_taken_by_all_its_names() {
    for (dialect, fits) in [
        ("https://json-schema.org/draft/2020-12/schema", true),
        ("https://json-schema.org/draft/2020-12/schema#", true),
        ("https://json-schema.org/draft/2019-09/schema", true),
        ("http://json-schema.org/draft-07/schema#", true),
        ("http://json-schema.org/draft-07/schema", true),
        ("https://json-schema.org/draft-07/schema#", true),
        ("http://json-schema.org/draft-06/schema#", true),
        ("http://json-schema.org/draft-04/schema#", true),
        ("https://schema.example/unknown", false),
        ("", false),
    ] {
        let schema =
            json!({"$schema": dialect, "type": "object", "properties": {"x": {"type": "integer"}}});
        match input(&schema) {
            Ok(schema) => {
                assert!(fits, "{dialect}");
                assert!(schema.accepts(&json!({"x": 1})) && !schema.accepts(&json!({"x": "1"})));
            }
            Err(fault) => {
                assert!(!fits, "{dialect}: {fault}");
                assert!(matches!(fault, SchemaFault::UnknownDialect(_)));
            }
        }
    }
}

#[test]
fn dialects_mean_what_they_say() {
    let tuple = |dialect: &str| {
        compiled(&json!({"$schema": dialect, "type": "object", "properties":
            {"t": {"items": [{"type": "integer"}], "prefixItems": [{"type": "string"}]}}}))
    };
    let seven = tuple("http://json-schema.org/draft-07/schema#");
    assert!(seven.accepts(&json!({"t": [1]})) && !seven.accepts(&json!({"t": ["a"]})));
    let newest =
        json!({"type": "object", "properties": {"t": {"prefixItems": [{"type": "string"}]}}});
    assert!(compiled(&newest).accepts(&json!({"t": ["a"]})));
    assert!(!compiled(&newest).accepts(&json!({"t": [1]})));
    assert!(
        input(&json!({"type": "object", "properties": {"t": {"items": [{}]}}})).is_err(),
        "a list of items is not 2020-12"
    );
}

#[test]
fn an_input_schema_is_one_of_an_object() {
    for schema in [
        "{}",
        "true",
        "[]",
        "\"object\"",
        r#"{"type":"array"}"#,
        r#"{"type":["object"]}"#,
    ] {
        assert_eq!(
            Schema::input(&parse(schema)).unwrap_err(),
            SchemaFault::NotOfObject,
            "{schema}"
        );
    }
    assert!(Schema::output(&parse(r#"{"type":"array","items":{"type":"integer"}}"#)).is_ok());
    assert!(Schema::output(&parse("{}")).is_ok());
}

#[test]
fn references_inside_a_schema_work_and_others_are_refused() {
    let local = json!({"type":"object","additionalProperties":false,
        "properties":{"f":{"$ref":"#/$defs/F"}},"$defs":{"F":{"enum":["fast","exact"]}}});
    assert!(compiled(&local).accepts(&json!({"f": "fast"})));
    assert!(!compiled(&local).accepts(&json!({"f": "slow"})));
    let taken = [
        json!({"type":"object","properties":{"f":{"$ref":"#a"}},"$defs":{"F":{"$anchor":"a"}}}),
        json!({"$id":"https://x.example/s","type":"object","properties":{"f":{"$ref":"https://x.example/s#/$defs/F"}},"$defs":{"F":{}}}),
        json!({"type":"object","properties":{"f":{"$ref":"#/$defs/a~1b~0c"}},"$defs":{"a/b~c":{}}}),
        json!({"type":"object","properties":{"f":{"$ref":"#/$defs/a%20b"}},"$defs":{"a b":{}}}),
        json!({"type":"object","properties":{"$ref":{"type":"string"}}}),
        json!({"type":"object","properties":{"f":{"enum":[{"$ref":"http://x.example/"}]}}}),
        json!({"type":"object","default":{"$ref":"http://x.example/"}}),
        json!({"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"f":{"$ref":"#a"}},"definitions":{"F":{"$id":"#a"}}}),
    ];
    for schema in taken {
        compiled(&schema);
    }
    for reference in [
        "http://169.254.169.254/latest/meta-data/",
        "https://other.example/s.json#/A",
        "file:///secret.yaml",
        "/etc/passwd",
        "other.json",
        "//x.example/s",
        "http://json-schema.org/draft-07/schema#",
    ] {
        let schema = json!({"type":"object","properties":{"x":{"$ref":reference}}});
        let fault = input(&schema).unwrap_err();
        assert!(
            matches!(fault, SchemaFault::RemoteReference(_)),
            "{reference}: {fault}"
        );
        // Also where nothing leads to it.
        let shelved = json!({"type":"object","$defs":{"X":{"$ref":reference}}});
        assert!(
            input(&shelved).is_err() || reference.contains("json-schema.org"),
            "{reference}"
        );
    }
    for reference in ["#/$defs/Missing", "#nowhere", "#/properties/x/1"] {
        let schema = json!({"type":"object","properties":{"x":{"$ref":reference}}});
        assert!(
            matches!(input(&schema), Err(SchemaFault::DanglingReference(_))),
            "{reference}"
        );
    }
    let embedded = json!({"type":"object","properties":{"x":{"$id":"https://x.example/inner"}}});
    assert_eq!(input(&embedded).unwrap_err(), SchemaFault::EmbeddedResource);
    let named_id =
        json!({"type":"object","properties":{"id":{"type":"string"},"$id":{"type":"string"}}});
    compiled(&named_id);
}

#[test]
fn a_schema_may_be_recursive_but_must_go_deeper() {
    let tree = json!({"type":"object","properties":{"text":{"type":"string"},
        "kids":{"type":"array","items":{"$ref":"#"}},"parent":{"$ref":"#"}}});
    let schema = compiled(&tree);
    assert!(schema.accepts(&json!({"text":"a","kids":[{"kids":[{"text":"b"}]}]})));
    assert!(!schema.accepts(&json!({"kids":[{"kids":[{"text":1}]}]})));
    let endless = [
        json!({"type":"object","$ref":"#"}),
        json!({"type":"object","allOf":[{"$ref":"#"}]}),
        json!({"type":"object","properties":{"a":{"$ref":"#/$defs/A"}},
            "$defs":{"A":{"$ref":"#/$defs/B"},"B":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/A"}]}}}),
    ];
    for schema in endless {
        assert_eq!(
            input(&schema).unwrap_err(),
            SchemaFault::Endless,
            "{schema}"
        );
    }
}

#[test]
fn a_schema_that_makes_too_much_work_is_refused() {
    let wide: Vec<Value> = (0..10_000).map(|n| json!({"const": n})).collect();
    let wide = json!({"type":"object","properties":{"x":{"anyOf":wide}}});
    assert!(matches!(input(&wide), Err(SchemaFault::TooLarge(_))));

    let mut nested = json!({"type":"string"});
    for _ in 0..50 {
        nested = json!({"anyOf":[nested]});
    }
    let nested = json!({"type":"object","properties":{"x":nested}});
    assert!(matches!(input(&nested), Err(SchemaFault::TooLarge(_))));

    // Each refers to the next twice: 2^20 ways to the last.
    let mut shelf = serde_json::Map::new();
    for n in 0..20 {
        let next = format!("#/$defs/d{}", n + 1);
        shelf.insert(
            format!("d{n}"),
            json!({"anyOf":[{"$ref":next},{"$ref":next}]}),
        );
    }
    shelf.insert("d20".into(), json!({"type":"string"}));
    let doubling = json!({"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":shelf});
    assert!(matches!(input(&doubling), Err(SchemaFault::TooLarge(_))));

    // A chain of references, long but through parts.
    let mut shelf = serde_json::Map::new();
    for n in 0..9_000 {
        let next = format!("#/$defs/d{}", n + 1);
        shelf.insert(format!("d{n}"), json!({"properties":{"x":{"$ref":next}}}));
    }
    shelf.insert("d9000".into(), json!({}));
    let chain = json!({"type":"object","properties":{"x":{"$ref":"#/$defs/d0"}},"$defs":shelf});
    let begun = Instant::now();
    let _ = input(&chain);
    assert!(begun.elapsed() < Duration::from_secs(5));

    let patterns: serde_json::Map<_, _> = (0..200)
        .map(|n| {
            (
                format!("p{n}"),
                json!({"pattern": format!("^[a-z]{{{n}}}$")}),
            )
        })
        .collect();
    assert_eq!(
        input(&json!({"type":"object","properties":patterns})).unwrap_err(),
        SchemaFault::TooLarge("patterns")
    );
    let huge = json!({"type":"object","description":"x".repeat(600_000)});
    assert_eq!(input(&huge).unwrap_err(), SchemaFault::TooLarge("bytes"));
}

#[test]
fn an_invalid_schema_says_where_it_is_wrong() {
    let fault = input(&json!({"type":"object","properties":{"x":{"type":"strnig"}}})).unwrap_err();
    let SchemaFault::Invalid { at, .. } = &fault else {
        panic!("{fault}")
    };
    assert!(at.starts_with("/properties/x/type"), "{at}");
    assert!(input(&json!({"type":"object","required":"x"})).is_err());
    assert!(input(&json!({"type":"object","properties":{"x":{"pattern":"("}}})).is_err());
}

#[test]
fn patterns_take_linear_time() {
    let schema = compiled(&json!({"type":"object","properties":{"x":{"pattern":"^(a+)+$"}}}));
    assert_eq!(schema.most_bytes(), None);
    let begun = Instant::now();
    let long = format!("{}!", "a".repeat(200_000));
    assert!(!schema.accepts(&json!({"x": long})));
    assert!(schema.accepts(&json!({"x": "aaa"})));
    assert!(
        begun.elapsed() < Duration::from_secs(2),
        "{:?}",
        begun.elapsed()
    );
}

#[test]
fn patterns_that_look_around_work_and_are_bounded() {
    // What a widely used generator writes for an e-mail address.
    let email = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$";
    let schema = compiled(&json!({"type":"object","properties":{"x":{"pattern":email}}}));
    assert!(schema.most_bytes().is_some());
    assert!(schema.accepts(&json!({"x": "alice@example.com"})));
    assert!(!schema.accepts(&json!({"x": "a..b@example.com"})));
    for pattern in [
        r"^(?=(a+)+$)(a+)+b$",
        r"(?=.*x.*y.*z.*w)q",
        r"(a|aa|b(?=c))+$",
        r"^(\w+\s?)*(?<!x)$",
    ] {
        let schema = compiled(&json!({"type":"object","properties":{"x":{"pattern":pattern}}}));
        let most = schema.most_bytes().unwrap();
        for unit in ["a", "xyz", "a "] {
            let long = format!("{}!", unit.repeat(most / unit.len() - 16));
            let begun = Instant::now();
            let _ = schema.accepts(&json!({"x": long}));
            let took = begun.elapsed();
            assert!(
                took < Duration::from_secs(3),
                "{pattern} on {unit}: {took:?}"
            );
        }
    }
}

/// Values as deep as callers may send, against a schema that offers every level
/// twice and fails at the bottom. Runs on a thread with as little stack as a
/// worker has.
#[test]
fn deep_values_against_branching_recursion_end_soon() {
    let schemas = [
        json!({"type":"object","anyOf":[
            {"properties":{"a":{"$ref":"#"}},"required":["x"]},
            {"properties":{"a":{"$ref":"#"}},"required":["y"]},
            {"properties":{"a":{"$ref":"#"}}}]}),
        json!({"type":"object","allOf":[{"properties":{"a":{"$ref":"#"}}},{"properties":{"a":{"$ref":"#"}}}],
            "unevaluatedProperties":false}),
        json!({"type":"object","oneOf":[
            {"properties":{"a":{"$ref":"#"}},"required":["x"],"unevaluatedProperties":false},
            {"properties":{"a":{"$ref":"#"},"b":{"type":"string"}},"unevaluatedProperties":{"$ref":"#"}}]}),
        json!({"type":"object","if":{"properties":{"a":{"$ref":"#"}}},"then":{"properties":{"a":{"$ref":"#"}}},
            "else":{"properties":{"a":{"$ref":"#"}}},"not":{"properties":{"a":{"$ref":"#"}},"required":["q"]}}),
    ];
    for schema in schemas {
        let schema = compiled(&schema);
        let mut value = json!({"b": 1, "c": 2, "a": 7});
        for _ in 0..62 {
            value = json!({"b": "b", "c": "c", "a": value});
        }
        let begun = Instant::now();
        let _ = schema.accepts(&value);
        let _ = schema.faults(&value, 5);
        let took = begun.elapsed();
        assert!(
            took < Duration::from_secs(2),
            "{took:?} for {}",
            schema.value()
        );
    }
}

/// The longest way on the spot at each level of the deepest value.
#[test]
fn the_stack_is_deep_enough_for_what_is_taken() {
    let mut on_the_spot = json!({"properties":{"a":{"$ref":"#"}}});
    for _ in 0..20 {
        on_the_spot = json!({"allOf":[on_the_spot]});
    }
    on_the_spot["type"] = "object".into();
    let schema = compiled(&on_the_spot);
    let mut value = json!({"a": 7});
    for _ in 0..118 {
        value = json!({"a": value});
    }
    assert!(!schema.accepts(&value));
    let _ = schema.faults(&value, 5);
}

#[test]
fn formats_are_annotations_in_every_dialect() {
    for dialect in [
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    ] {
        let schema = json!({"$schema":dialect,"type":"object","properties":{"d":{"type":"string","format":"date"}}});
        assert!(compiled(&schema).accepts(&json!({"d": "tomorrow"})));
    }
}

fn told(schema: &Value, value: &Value) -> Vec<(String, String)> {
    let faults = compiled(schema).faults(value, 5);
    faults
        .into_iter()
        .map(|fault| {
            let text = match fault.kind {
                FaultKind::Missing { expected } => {
                    format!("missing {}", expected.unwrap_or_default())
                }
                FaultKind::Unknown { known } => format!("unknown, known: {}", known.join(" ")),
                FaultKind::Unfit { expected } => expected,
            };
            (fault.pointer, text)
        })
        .collect()
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table")]
fn faults_say_where_and_what_was_expected() {
    let object = |properties: Value| json!({"type":"object","properties":properties});
    let one = |schema: Value, value: Value| {
        let told = told(&object(json!({"x": schema})), &json!({"x": value}));
        told.into_iter()
            .map(|(at, text)| format!("{at} {text}"))
            .collect::<Vec<_>>()
            .join("; ")
    };
    for (schema, value, right) in [
        (json!({"type":"integer"}), json!("ten"), "/x integer"),
        (
            json!({"type":["integer","null"]}),
            json!("ten"),
            "/x null or integer",
        ),
        (json!({"type":"string"}), json!(null), "/x string"),
        (
            json!({"enum":["fast","exact"]}),
            json!("slow"),
            "/x one of \"fast\", \"exact\"",
        ),
        (json!({"const":1}), json!(2), "/x exactly 1"),
        (json!({"minimum":1}), json!(0), "/x a number of at least 1"),
        (
            json!({"exclusiveMaximum":1.5}),
            json!(2),
            "/x a number below 1.5",
        ),
        (
            json!({"multipleOf":0.5}),
            json!(0.3),
            "/x a multiple of 0.5",
        ),
        (json!({"multipleOf":10}), json!(3), "/x a multiple of 10"),
        (
            json!({"maxLength":3}),
            json!("abcd"),
            "/x text of at most 3 characters",
        ),
        (
            json!({"pattern":"^[a-z]+$"}),
            json!("A1"),
            "/x text that matches the pattern ^[a-z]+$",
        ),
        (
            json!({"uniqueItems":true}),
            json!([1, 1]),
            "/x items that all differ",
        ),
        (
            json!({"items":{"type":"integer"}}),
            json!([1, "b"]),
            "/x/1 integer",
        ),
        (json!({"maxItems":1}), json!([1, 2]), "/x at most 1 items"),
        (
            json!({"anyOf":[{"type":"string"},{"type":"integer"}]}),
            json!(true),
            "/x string or integer",
        ),
        (
            json!({"anyOf":[{"type":"null"},{"type":"object","required":["id"],"properties":{"id":{"type":"integer"}}}]}),
            json!({"id":"7"}),
            "/x/id integer (or another of 2 forms)",
        ),
        (
            json!({"oneOf":[{"properties":{"kind":{"const":"a"},"size":{"type":"integer"}},"required":["kind"]},
                         {"properties":{"kind":{"const":"b"},"name":{"type":"string"}},"required":["kind"]}]}),
            json!({"kind":"b","name":7}),
            "/x/name string (or another of 2 forms)",
        ),
        (
            json!({"oneOf":[{"type":"integer"},{"minimum":0}]}),
            json!(5),
            "/x a value of exactly one of the allowed forms",
        ),
        (
            json!({"not":{"type":"string"}}),
            json!("a"),
            "/x a value of another form: the schema excludes this one",
        ),
        (
            json!({"propertyNames":{"maxLength":2}}),
            json!({"long":1}),
            "/x names of members that are text of at most 2 characters",
        ),
        (json!(false), json!(1), "/x nothing here"),
    ] {
        assert_eq!(one(schema.clone(), value), right, "{schema}");
    }
}

#[test]
fn missing_and_unknown_members_are_named() {
    let schema = json!({"type":"object","additionalProperties":false,"required":["q","a/b"],
        "properties":{"q":{"type":"string"},"a/b":{"enum":[1,2]},"limit":{"type":"integer"}}});
    assert_eq!(
        told(&schema, &json!({"lmit": 1, "q": 1})),
        [
            ("/a~1b".to_owned(), "missing one of 1, 2".to_owned()),
            ("/q".to_owned(), "string".to_owned()),
            ("/lmit".to_owned(), "unknown, known: q a/b limit".to_owned()),
        ]
    );
    let through_reference = json!({"type":"object","properties":{"who":{"$ref":"#/$defs/Who"}},
        "$defs":{"Who":{"type":"object","required":["id"],"properties":{"id":{"type":"string","format":"uuid"}}}}});
    assert_eq!(
        told(&through_reference, &json!({"who": {}})),
        [(
            "/who/id".to_owned(),
            "missing string of the format uuid".to_owned()
        )]
    );
}
