//! Tests of the front door: every place × every kind of finding, and what must hold of
//! any input.

use proptest::prelude::*;

use super::*;
use crate::config::{Action, ByteSize};
use crate::protocol::{JsonLimits, LogLevel};
use crate::sanitize::samples::{self, Sample};

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), &JsonLimits::UPSTREAM).unwrap()
}

/// `text` as a JSON string.
fn quoted(text: &str) -> String {
    Json::from_text(text).as_str().to_owned()
}

fn cleaned(text: &str) -> CleanResult {
    Sanitizer::new()
        .result(Untrusted::new(json(text)), &Sanitize::default())
        .unwrap()
}

fn output(text: &str) -> String {
    cleaned(text).into_json().as_str().to_owned()
}

/// Every place of a result where an upstream's string can stand.
const PLACES: &[&str] = &[
    r#"{"content":[{"type":"text","text":@}]}"#,
    r#"{"content":[{"type":"text","text":"ok","annotations":{"audience":[@]}}]}"#,
    r#"{"content":[{"type":"text","text":"ok","_meta":{"a":@}}]}"#,
    r#"{"content":[{"type":"text","text":@}],"isError":true}"#,
    r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":@}}]}"#,
    r#"{"content":[{"type":"resource","resource":{"uri":@,"blob":"AAAA"}}]}"#,
    r#"{"content":[{"type":"resource_link","uri":@,"name":"n"}]}"#,
    r#"{"content":[{"type":"resource_link","uri":"file:///a","name":@,"title":"t"}]}"#,
    r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"n","title":@,"description":"d"}]}"#,
    r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"n","description":@}]}"#,
    r#"{"content":[{"type":"image","data":"iVBORw0K","mimeType":@}]}"#,
    r#"{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","_meta":{"x":@}}]}"#,
    r#"{"content":[{"type":"tool_result","toolUseId":"1","content":[{"type":"text","text":@}]}]}"#,
    r#"{"content":[{"type":"something_new","payload":{"deep":[[{"x":@}]]}}]}"#,
    r#"{"content":[],"structuredContent":{"a":{"b":[1,@]}}}"#,
    r#"{"content":[],"structuredContent":[@]}"#,
    r#"{"content":[],"structuredContent":{@:1}}"#,
    r#"{"content":[],"_meta":{"example.com/note":@}}"#,
    r#"{"content":[],"_meta":{@:"x"}}"#,
    r#"{"contents":[{"uri":"file:///a","text":@}]}"#,
    r#"{"messages":[{"role":"user","content":{"type":"text","text":@}}],"description":"d"}"#,
    r#"{"resources":[{"uri":"file:///a","name":"n","icons":[{"src":@}]}],"nextCursor":"c"}"#,
    r#"{"completion":{"values":[@],"hasMore":false}}"#,
    r#"{"resultType":"input_required","inputRequests":{"a":{"method":"elicitation/create","params":{"message":@}}}}"#,
    r#"{"futureField":@}"#,
    "@",
];

fn placed(place: &str, text: &str) -> String {
    place.replace('@', &quoted(text))
}

fn everything_found() -> Vec<Sample> {
    let mut samples = samples::all();
    let hidden = |label, text: &str, secret: &str| Sample {
        label,
        text: text.to_owned(),
        secret: secret.to_owned(),
    };
    samples.push(hidden(
        INVISIBLE,
        "ok\u{e0069}\u{e0067}\u{e006e}",
        "\u{e0069}",
    ));
    samples.push(hidden(INVISIBLE, "pay\u{200b}pal", "\u{200b}"));
    samples.push(hidden(INVISIBLE, "\u{202e}reversed\u{202c}", "\u{202e}"));
    samples.push(hidden(TERMINAL, "\u{1b}[2Jcleared", "[2J"));
    samples.push(hidden(TERMINAL, "\u{1b}]0;t1tle\u{7}x", "t1tle"));
    samples.push(hidden(TERMINAL, "abc\u{8}\u{8}x", "\u{8}"));
    samples
}

#[test]
fn every_kind_of_finding_is_found_in_every_place() {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    for place in PLACES {
        for sample in everything_found() {
            let text = placed(place, &sample.text);
            let clean = sanitizer
                .result(Untrusted::new(json(&text)), &rules)
                .unwrap();
            let out = clean.json().as_str();
            let gone = [
                sample.secret.clone(),
                quoted(&sample.secret).trim_matches('"').to_owned(),
            ];
            assert!(
                gone.iter().all(|secret| !out.contains(secret)),
                "{place} {} {out}",
                sample.label
            );
            assert!(
                clean.findings().count(sample.label) > 0,
                "{place} {}",
                sample.label
            );
            let again = json(out);
            let second = sanitizer
                .result(Untrusted::new(again.clone()), &rules)
                .unwrap();
            assert_eq!(
                second.json().as_str(),
                again.as_str(),
                "{place} {}",
                sample.label
            );
        }
    }
}

#[test]
fn clean_results_come_back_as_the_same_bytes() {
    for text in [
        r#"{"content":[{"type":"text","text":"commit ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7"}]}"#,
        "{ \"content\" : [ ] ,\n\t\"n\": 1.50e+3, \"big\": 12345678901234567890, \"z\": -0.0 }",
        r#"{"content":[{"type":"text","text":"\u00e9\u2019 \ud83d\ude80 \u003cb\u003e \/ \r\n \"q\" C:\\new"}]}"#,
        r#"{"content":[{"type":"text","text":"می‌خواهم 👩‍💻 ❤️ שלום‏"}]}"#,
        r#"{"content":[{"type":"text","text":"The password policy"},{"type":"text","text":"is long"}]}"#,
        r#"{"content":[{"type":"image","data":"AKIA/eyJ+ghp0SK0123456789abcdef0123456789abcdef","mimeType":"image/png"}]}"#,
    ] {
        let before = json(text);
        let clean = cleaned(text);
        assert_eq!(clean.json().as_str(), before.as_str());
        assert!(
            clean.findings().is_empty(),
            "{text} {}",
            clean.findings().summary()
        );
    }
    let shared = json(r#"{"content":[{"type":"text","text":"nothing here"}]}"#);
    let clean = Sanitizer::new()
        .result(Untrusted::new(shared.clone()), &Sanitize::default())
        .unwrap();
    assert_eq!(
        clean.json().as_str().as_ptr(),
        shared.as_str().as_ptr(),
        "no copy"
    );
}

#[test]
fn what_is_not_found_stays_byte_for_byte() {
    let token = &samples::formats()[0].secret;
    let text = format!(
        "{{ \"n\" : 1.50e+3,\"z\":0 ,\"a\":\"\\u00e9 {token} \\/ \\u003c\" , \"k\":[ true,null ] }}"
    );
    let right = text.replace(token, "[REDACTED:github_token]");
    assert_eq!(output(&text), right);
}

#[test]
fn what_json_escapes_hide_is_seen() {
    let rows = [
        (r#"{"a":"ok\udb40\udc69\udb40\udc67"}"#, r#"{"a":"ok"}"#),
        (r#"{"a":"\u001b[31mred\u001b[0m"}"#, r#"{"a":"red"}"#),
        (r#"{"a":"abc\b\b\bxyz\f1"}"#, "{\"a\":\"abcxyz\\n1\"}"),
        (r#"{"a":"10%\r20%"}"#, r#"{"a":"10%\n20%"}"#),
        (r#"{"a":"x\u200by\u0000"}"#, r#"{"a":"xy"}"#),
        (
            r#"{"a":"\u0070assword=\u0068unter2"}"#,
            r#"{"a":"\u0070assword=[REDACTED:password]"}"#,
        ),
        (r#"{"a\u001b[1mb":1}"#, r#"{"ab":1}"#),
    ];
    for (text, right) in rows {
        assert_eq!(output(text), right);
    }
}

#[test]
fn invisible_characters_hide_no_secret() {
    let token = &samples::formats()[0].secret;
    for between in [
        "\u{200b}",
        "\u{2060}",
        "\u{e0041}",
        "\u{1b}[1m",
        "\u{ad}",
        "\u{feff}",
        "\u{8}",
    ] {
        let hidden: Vec<String> = token.chars().map(String::from).collect();
        let hidden = hidden.join(between);
        let clean = cleaned(&format!(
            "{{\"a\":{}}}",
            quoted(&format!("key {hidden} end"))
        ));
        assert!(
            clean
                .json()
                .as_str()
                .contains("key [REDACTED:github_token]"),
            "{between:?} {:?}",
            clean.json().as_str()
        );
        assert!(!clean.json().as_str().contains(&token[10..20]));
    }
}

#[test]
fn a_secret_split_over_blocks_is_gone() {
    let sanitizer = Sanitizer::new();
    for sample in samples::formats() {
        for at in 1..sample.text.len() {
            let (one, two) = sample.text.split_at(at);
            let text = format!(
                r#"{{"content":[{{"type":"text","text":{}}},{{"type":"text","text":{}}}]}}"#,
                quoted(&format!("it is {one}")),
                quoted(&format!("{two} as said"))
            );
            let clean = sanitizer
                .result(Untrusted::new(json(&text)), &Sanitize::default())
                .unwrap();
            let out = clean.json().as_str();
            let half = sample.text.len() * 2 / 5;
            let left = (0..sample.text.len() - half)
                .any(|from| out.contains(&sample.text[from..from + half]));
            assert!(!left, "{} at {at}: {out}", sample.label);
            assert_eq!(
                clean.findings().count(sample.label),
                1,
                "{} at {at}: {out}",
                sample.label
            );
        }
    }
}

#[test]
fn what_a_tenants_own_pattern_finds_is_found_over_blocks() {
    let rules: Sanitize = serde_json::from_value(serde_json::json!({
        "patterns": [{"label": "employee_id", "pattern": r"EMP-\d{6}"}]
    }))
    .unwrap();
    let text =
        r#"{"content":[{"type":"text","text":"badge EMP-12"},{"type":"text","text":"3456 left"}]}"#;
    let clean = Sanitizer::new()
        .result(Untrusted::new(json(text)), &rules)
        .unwrap();
    let out = clean.json().as_str();
    assert!(!out.contains("EMP-12") && !out.contains("3456"), "{out}");
    assert!(out.contains("badge [REDACTED:employee_id]"), "{out}");
}

#[test]
fn an_answer_that_cleaning_made_unfit_is_told_from_one_that_never_fitted() {
    let sanitizer = Sanitizer::new();
    let outgrown = |accepts: &dyn Fn(&Json) -> bool| {
        let text = r#"{"content":[],"structuredContent":{"card":4111111111111111}}"#;
        sanitizer
            .result_fitting(Untrusted::new(json(text)), &Sanitize::default(), accepts)
            .unwrap()
            .is_outgrown()
    };
    let number = |json: &Json| json.to_value().unwrap()["card"].is_number();
    assert!(outgrown(&number));
    assert!(!outgrown(&|_| false));
    assert!(!outgrown(&|_| true));
}

#[test]
fn a_secret_in_three_blocks_is_gone_and_neighbours_stay() {
    let token = &samples::formats()[0].secret;
    let block = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, quoted(text));
    let text = format!(
        r#"{{"content":[{},{},{},{}]}}"#,
        block(&token[..3]),
        block(&token[3..20]),
        block(&token[20..]),
        block("Done.")
    );
    let out = output(&text);
    assert!(
        !out.contains(&token[3..20]) && out.contains(r#""text":"Done.""#),
        "{out}"
    );
    let whole = format!(
        r#"{{"content":[{},{}]}}"#,
        block(&format!("t: {token}")),
        block("Done.")
    );
    assert!(output(&whole).contains(r#""text":"Done.""#));
}

#[test]
fn text_that_mirrors_structured_content_gets_the_same_edits_and_parses() {
    for sample in everything_found() {
        let inner = format!(
            r#"{{"n":1.0,"note":{},"list":["a"]}}"#,
            quoted(&sample.text)
        );
        let text = format!(
            r#"{{"content":[{{"type":"text","text":{}}}],"structuredContent":{inner}}}"#,
            quoted(&inner)
        );
        let clean = cleaned(&text);
        let structured = clean.json().get("structuredContent").unwrap();
        let block = clean
            .json()
            .get("content")
            .unwrap()
            .elements()
            .next()
            .unwrap();
        let mirrored = block.get("text").unwrap();
        assert_eq!(
            mirrored.string().unwrap(),
            structured.as_str(),
            "{}",
            sample.label
        );
    }
}

#[test]
fn keys_that_become_equal_are_kept_apart() {
    let out = output("{\"a\":1,\"a\u{200b}\":2,\"\u{200b}a\":3,\"a#2\":4}");
    assert_eq!(out, r#"{"a":1,"a#3":2,"a#4":3,"a#2":4}"#);
}

#[test]
fn textual_blobs_are_cleaned_and_others_left() {
    use base64::Engine as _;
    let token = &samples::formats()[0].secret;
    let blob = base64::engine::general_purpose::STANDARD.encode(format!("key: {token}\n"));
    let resource = |mime: &str| {
        format!(
            r#"{{"content":[{{"type":"resource","resource":{{"uri":"f","mimeType":"{mime}","blob":"{blob}"}}}}]}}"#
        )
    };
    let clean = cleaned(&resource("text/plain"));
    assert_eq!(clean.findings().count("github_token"), 1);
    let right = base64::engine::general_purpose::STANDARD.encode("key: [REDACTED:github_token]\n");
    assert!(clean.json().as_str().contains(&right));
    assert_eq!(
        output(&resource("application/pdf")),
        resource("application/pdf")
    );
}

#[test]
fn findings_name_places_and_no_values() {
    let token = &samples::formats()[0].secret;
    let clean = cleaned(&format!(
        r#"{{"content":[{{"type":"text","text":"a {token} b {token}"}}],"{token}":"x\u200by"}}"#
    ));
    assert_eq!(
        clean.findings().summary(),
        "github_token=3@/content/0/text,/[REDACTED:github_token];invisible=1@/[REDACTED:github_token]"
    );
}

#[test]
fn actions_follow_the_rules() {
    let token = &samples::formats()[0].secret;
    let text = format!(r#"{{"a":"{token} x\u200by \u001b[1mb"}}"#);
    let run = |secrets, hidden| {
        let rules = Sanitize {
            secrets,
            invisible: hidden,
            terminal: hidden,
            max_answer: ByteSize(1000),
            ..Sanitize::default()
        };
        Sanitizer::new().result(Untrusted::new(json(&text)), &rules)
    };
    let masked = run(Action::Mask, Action::Mask).unwrap();
    assert_eq!(
        masked.json().as_str(),
        r#"{"a":"ghs_**** x[U+200B]y ␛[1mb"}"#
    );
    let flagged = run(Action::Flag, Action::Flag).unwrap();
    assert_eq!(
        (flagged.json().as_str(), flagged.findings().total()),
        (text.as_str(), 3)
    );
    for (secrets, hidden, label) in [
        (Action::Block, Action::Flag, "github_token"),
        (Action::Flag, Action::Block, INVISIBLE),
    ] {
        let unclean = run(secrets, hidden).unwrap_err();
        let findings = flagged.findings().clone();
        assert_eq!(unclean, Unclean::Blocked { label, findings });
    }
}

#[test]
fn an_answer_above_the_limit_is_withheld() {
    let rules = Sanitize {
        max_answer: ByteSize(10),
        ..Sanitize::default()
    };
    let result = Sanitizer::new().result(Untrusted::new(json(r#"{"content":[]}"#)), &rules);
    assert_eq!(result.unwrap_err(), Unclean::TooLarge { limit: 10 });
}

#[test]
fn identifiers_that_route_are_left_alone() {
    let token = &samples::formats().pop().unwrap().secret;
    let text = format!(
        r#"{{"resultType":"input_required","requestState":"{token}","inputRequests":{{"{token}":{{}}}}}}"#
    );
    assert_eq!(output(&text), text);
    let elsewhere = format!(r#"{{"structuredContent":{{"requestState":"{token}"}}}}"#);
    assert!(!output(&elsewhere).contains(token.as_str()));
}

#[test]
fn definitions_are_cleaned_and_judged() {
    let sanitizer = Sanitizer::new();
    let judge = |text: &str| sanitizer.definition(Untrusted::new(json(text)));
    let good = r#"{"name":"t","description":"Finds 👩‍💻.","inputSchema":{"properties":{"password":{"type":"string"}}}}"#;
    let plain = judge(good);
    assert!(!plain.suspicious && !plain.unfit_name && plain.findings.is_empty());
    assert_eq!(plain.json.as_str(), good);
    for bad in [
        "{\"name\":\"t\",\"description\":\"Finds\u{e0069}.\",\"inputSchema\":{}}",
        "{\"name\":\"t\",\"title\":\"A\u{202e}B\",\"inputSchema\":{}}",
        "{\"name\":\"t\u{200b}\",\"inputSchema\":{}}",
        r#"{"name":"t","inputSchema":{"properties":{"a":{"description":"x\u001b[8mhidden"}}}}"#,
        r#"{"name":"t","inputSchema":{"properties":{"a\u200bb":{}}}}"#,
        r#"{"name":"t","annotations":{"title":"a\u2060b"},"inputSchema":{}}"#,
    ] {
        let found = judge(bad);
        assert!(found.suspicious, "{bad}");
        assert!(!found.findings.is_empty());
    }
    let token = &samples::formats()[0].secret;
    let enumerated = judge(&format!(
        r#"{{"name":"t","inputSchema":{{"properties":{{"a":{{"enum":["{token}"]}}}}}}}}"#
    ));
    assert!(enumerated.suspicious);
    let example = judge(&format!(
        r#"{{"name":"t","description":"Use {token}.","inputSchema":{{}}}}"#
    ));
    assert!(!example.suspicious && !example.json.as_str().contains(token.as_str()));
    assert!(judge(r#"{"name":"a\u001b[1mb","inputSchema":{}}"#).unfit_name);
    assert!(judge(r#"{"name":"a\nb","inputSchema":{}}"#).unfit_name);
    assert!(!judge("{\"name\":\"a\",\"_meta\":{\"x\":\"y\u{200b}z\"}}").suspicious);
}

#[test]
fn events_are_cleaned() {
    let token = &samples::formats()[0].secret;
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let progress =
        UpstreamEvent::Progress(json(&format!(r#"{{"progress":1,"message":"at {token}"}}"#)));
    let log = UpstreamEvent::Log(
        LogLevel::Info,
        json(&format!(
            r#"{{"level":"info","logger":"a\u001b[1mb","data":{{"k":["{token}"]}}}}"#
        )),
    );
    for (event, right) in [
        (
            progress,
            r#"{"progress":1,"message":"at [REDACTED:github_token]"}"#,
        ),
        (
            log,
            r#"{"level":"info","logger":"ab","data":{"k":["[REDACTED:github_token]"]}}"#,
        ),
    ] {
        let clean = sanitizer.event(Untrusted::new(event), &rules).unwrap();
        let (UpstreamEvent::Progress(json) | UpstreamEvent::Log(_, json)) = clean.event() else {
            panic!("another event")
        };
        assert_eq!(json.as_str(), right);
        assert!(!clean.findings().is_empty());
    }
}

fn progress(text: &str) -> Untrusted<UpstreamEvent> {
    let json = Json::from_value(&serde_json::json!({ "progress": 1, "message": text }));
    Untrusted::new(UpstreamEvent::Progress(json))
}

/// The words of what has left a stream.
fn told(events: Vec<Result<CleanEvent, Unclean>>) -> Vec<String> {
    events
        .into_iter()
        .map(|event| stream::words(event.unwrap().event()).unwrap())
        .collect()
}

#[test]
fn a_secret_split_over_messages_of_a_stream_is_gone() {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let now = Instant::now();
    // Those of which the beginning could be any word or number do not wait for it.
    let waits = |sample: &Sample| !matches!(sample.label, "telegram_token" | "azure_client_secret");
    for sample in samples::formats().into_iter().filter(waits) {
        for at in 1..sample.text.len() {
            let (one, two) = sample.text.split_at(at);
            let mut stream = Stream::new();
            let mut out = Vec::new();
            for text in [format!("it is {one}"), format!("{two} as said")] {
                out.extend(sanitizer.next_event(&mut stream, progress(&text), now, &rules));
            }
            out.extend(sanitizer.release(&mut stream, &rules));
            let out = told(out);
            assert_eq!(out.len(), 2);
            let half = sample.text.len() * 2 / 5;
            let left = (0..sample.text.len() - half).any(|from| {
                let part = &sample.text[from..from + half];
                out.iter().any(|text| text.contains(part))
            });
            assert!(!left, "{} at {at}: {out:?}", sample.label);
        }
    }
}

#[test]
fn a_message_leaves_at_once_unless_its_end_could_begin_a_secret() {
    let sanitizer = Sanitizer::new();
    let rules = Sanitize::default();
    let now = Instant::now();
    let mut stream = Stream::new();
    let next = |stream: &mut Stream, text, now| {
        told(sanitizer.next_event(stream, progress(text), now, &rules))
    };
    assert_eq!(next(&mut stream, "Half done.", now), ["Half done."]);
    assert_eq!(next(&mut stream, "The token is ghp_", now).len(), 0);
    let late = stream.deadline().unwrap();
    assert_eq!(
        told(sanitizer.release(&mut stream, &rules)),
        ["The token is ghp_"]
    );
    assert!(stream.deadline().is_none() && late == now + crate::sanitize::HOLD);
    // What a name says does not reach into the next message.
    assert_eq!(next(&mut stream, "the password:", now), ["the password:"]);
    assert_eq!(next(&mut stream, "hunter2 or so.", now), ["hunter2 or so."]);
}

#[test]
fn a_key_whose_lines_are_strings_of_a_list_is_gone() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7";
    let text = format!(
        r#"{{"structuredContent":{{"lines":["x","-----BEGIN PRIVATE KEY-----","{line}","{line}","-----END PRIVATE KEY-----","y"]}}}}"#
    );
    let out = output(&text);
    assert!(
        !out.contains(line) && out.contains(r#""x""#) && out.contains(r#""y""#),
        "{out}"
    );
}

#[test]
fn what_is_encoded_is_found_where_it_stands() {
    let token = &samples::formats()[0].secret;
    let each = |form: fn(u32) -> String| token.chars().map(u32::from).map(form).collect::<String>();
    let hex = each(|c| format!("{c:02x}"));
    let percent = each(|c| format!("%{c:02X}"));
    let entities = each(|c| format!("&#{c};"));
    let escapes = each(|c| format!("\\u{c:04x}"));
    let spaced: String = token.chars().flat_map(|c| [c, ' ']).collect();
    let wide: String = token
        .chars()
        .map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap())
        .collect();
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, token);
    for hidden in [hex, percent, entities, escapes, spaced, wide, base64] {
        let text = format!(
            r#"{{"a":{}}}"#,
            quoted(&format!("now: {} end", hidden.trim()))
        );
        assert_eq!(
            output(&text),
            r#"{"a":"now: [REDACTED:github_token] end"}"#,
            "{hidden}"
        );
    }
}

#[test]
fn a_long_text_is_cut_and_handed_on() {
    let rules = Sanitize {
        max_text: Some(100),
        ..Sanitize::default()
    };
    let token = &samples::formats()[0].secret;
    let long = format!("{token} {}", "word ".repeat(100));
    let text = format!(
        r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
        quoted(&long)
    );
    let clean = Sanitizer::new()
        .result(Untrusted::new(json(&text)), &rules)
        .unwrap();
    assert!(
        clean
            .json()
            .as_str()
            .contains("of 524 characters are shown")
    );
    let [rest] = clean.remainders() else {
        panic!("one text was cut")
    };
    assert_eq!(rest.whole, long.replace(token, "[REDACTED:github_token]"));
    assert_eq!(clean.findings().count("oversize"), 1);
}

#[test]
fn recorded_arguments_believe_their_names() {
    let rules = Sanitize {
        secrets: Action::Flag,
        ..Sanitize::default()
    };
    let arguments = json(
        r#"{"user":"bob","password":"a b","api_key":1234,"deep":[{"clientSecret":"x"}],"n":5,"next_page_token":"abc"}"#,
    );
    let (recorded, findings) = Sanitizer::new().arguments(&arguments, &rules);
    assert_eq!(
        recorded.as_str(),
        r#"{"user":"bob","password":"[REDACTED:named_secret]","api_key":"[REDACTED:named_secret]","deep":[{"clientSecret":"[REDACTED:named_secret]"}],"n":5,"next_page_token":"abc"}"#
    );
    assert_eq!(findings.count("named_secret"), 3);
    let token = &samples::formats()[0].secret;
    let (recorded, _) = Sanitizer::new().arguments(&json(&format!(r#"{{"q":"{token}"}}"#)), &rules);
    assert_eq!(recorded.as_str(), r#"{"q":"[REDACTED:github_token]"}"#);
}

#[test]
fn texts_are_cleaned_before_they_are_cut() {
    let sanitizer = Sanitizer::new();
    let token = &samples::formats()[0].secret;
    let text = |text: &str, max| sanitizer.text(Untrusted::new(text.to_owned()), max);
    assert_eq!(text(&format!("ab {token}"), 12).as_str(), "ab…");
    let line = sanitizer.line(Untrusted::new("a\nb\u{1b}[1m\tc\r\nforged".to_owned()), 100);
    assert_eq!(line.as_str(), "a b c forged");
    let page = "<html><body><h1>502</h1>no route to crm.default.svc.cluster.local:80 (10.0.0.3)</body></html>";
    let excerpt = sanitizer.excerpt(Untrusted::new(page.to_owned()), 200);
    assert_eq!(
        excerpt.as_str(),
        "502 no route to [REDACTED:internal_host] ([REDACTED:internal_host])"
    );
    assert_eq!(excerpt.findings().count("internal_host"), 2);
    let huge = "x ".repeat(10_000_000);
    assert!(text(&huge, 100).as_str().len() <= 100);
}

#[test]
fn an_error_follows_the_tenant_s_rules_in_message_and_data() {
    let token = &samples::formats()[0].secret;
    let clean = |secrets| {
        let data = Untrusted::new(json(&format!(r#"{{"detail":"{token}"}}"#)));
        let message = Untrusted::new(format!("no: {token}"));
        let rules = Sanitize {
            secrets,
            ..Sanitize::default()
        };
        Sanitizer::new().error(message, Some(data), &rules, 300)
    };
    let redacted = clean(Action::Redact).unwrap();
    assert_eq!(redacted.message.as_str(), "no: [REDACTED:github_token]");
    assert_eq!(
        redacted.data.unwrap().as_str(),
        r#"{"detail":"[REDACTED:github_token]"}"#
    );
    assert_eq!(redacted.findings.count("github_token"), 2);
    let flagged = clean(Action::Flag).unwrap();
    assert_eq!(flagged.message.as_str(), format!("no: {token}"));
    assert_eq!(flagged.findings.count("github_token"), 2);
    let Err(Unclean::Blocked { label, findings }) = clean(Action::Block) else {
        panic!("not blocked")
    };
    assert_eq!((label, findings.total()), ("github_token", 1));
}

/// JSON with strings of awkward characters, and secrets among them.
fn awkward() -> impl Strategy<Value = serde_json::Value> {
    let secrets: Vec<String> = samples::all()
        .into_iter()
        .map(|sample| sample.text)
        .collect();
    let odd = "[ -~\n\r\t\u{0}\u{8}\u{1b}\u{9b}é\u{ad}\u{200b}-\u{200f}\u{202e}\u{2066}\u{2069}\u{feff}\u{fe0f}❤👩\u{e0041}न\u{94d}א\"\\\\]{0,24}";
    let string = prop_oneof![
        4 => odd,
        1 => prop::sample::select(secrets.clone()),
        1 => (odd, prop::sample::select(secrets), odd).prop_map(|(a, s, b)| format!("{a}{s}{b}")),
        1 => "(password|token|api_key|Bearer|://u:|@|=|: |\"|\\||eyJ|-----BEGIN |[a-z0-9]{1,9}| |\n){0,12}",
    ];
    let leaf = prop_oneof![
        6 => string.clone().prop_map(serde_json::Value::String),
        1 => string.clone().prop_map(|s| serde_json::Value::String(serde_json::json!({ "a": s }).to_string())),
        1 => any::<i64>().prop_map(serde_json::Value::from),
        1 => Just(serde_json::Value::Null),
    ];
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let key = prop_oneof![
            3 => prop::sample::select(vec!["a", "text", "password", "type", "name", "value", "data", "content", "blob"])
                .prop_map(str::to_owned),
            1 => string.clone(),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(serde_json::Value::Array),
            prop::collection::vec((key, inner), 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_stays_json_and_cleaning_twice_is_cleaning_once(value in awkward()) {
        let sanitizer = Sanitizer::new();
        let rules = Sanitize::default();
        let before = Json::from_value(&value);
        let once = sanitizer.result(Untrusted::new(before.clone()), &rules).unwrap();
        let out = once.json().as_str().to_owned();
        let checked = Json::parse(out.clone().into(), &JsonLimits::CALLER);
        prop_assert!(checked.is_ok(), "{:?} {}", checked, out);
        if once.findings().is_empty() {
            prop_assert_eq!(before.as_str(), out.as_str());
        }
        let twice = sanitizer.result(Untrusted::new(checked.unwrap()), &rules).unwrap();
        prop_assert_eq!(twice.json().as_str(), out.as_str());
    }

    #[test]
    fn any_text_is_cleaned_without_a_panic(text in any::<String>(), max in 0_usize..80) {
        let sanitizer = Sanitizer::new();
        prop_assert!(sanitizer.text(Untrusted::new(text.clone()), max).as_str().len() <= max);
        prop_assert!(sanitizer.excerpt(Untrusted::new(text), max).as_str().len() <= max);
    }
}
