//! What an upstream says reaches a client clean, wherever it says it (C31, C32,
//! design §9): secrets, invisible text and terminal sequences, in results, errors,
//! notifications and definitions, in both eras; and none of it gets into logs or
//! records.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

use futures_util::StreamExt as _;

use super::support::answer::Answer;
use super::support::folder::Folder;
use super::support::session::Session;
use super::support::upstream::stdio_example;
use super::support::{Era, Gateway, Helper, Setup, Value, both, config, eventually, json};

const ALNUM: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";
const BASE32: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// Made-up characters that look like a secret's, the same in each run.
fn random(of: &str, len: usize, seed: u64) -> String {
    let letters: Vec<char> = of.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            letters[usize::try_from(state >> 33).unwrap() % letters.len()]
        })
        .collect()
}

/// Something that must not pass: what it is called, a text that holds it, and
/// what of it must be gone.
#[derive(Clone, Debug)]
struct Dirt {
    label: &'static str,
    text: String,
    gone: String,
}

fn dirt(label: &'static str, text: &str, gone: &str) -> Dirt {
    Dirt {
        label,
        text: text.to_owned(),
        gone: gone.to_owned(),
    }
}

fn github_token() -> String {
    format!("ghs_{}", random(ALNUM, 36, 7))
}

fn secrets() -> Vec<Dirt> {
    let token = github_token();
    let aws = format!("AKIA{}", random(BASE32, 16, 8));
    let slack = format!("xoxb-123456789012-210987654321-{}", random(ALNUM, 24, 9));
    let jwt = format!(
        "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJ{}.{}",
        random(ALNUM, 60, 10),
        random(ALNUM, 43, 11)
    );
    let line = random(ALNUM, 64, 12);
    let pem = format!(
        "-----BEGIN PRIVATE KEY-----\n{line}\n{}\n{}\n-----END PRIVATE KEY-----",
        random(ALNUM, 64, 13),
        random(ALNUM, 64, 14)
    );
    let bearer = random(ALNUM, 32, 15);
    let hidden: String = token.chars().flat_map(|c| [c, '\u{200b}']).collect();
    let coloured = token.replace("s_", "s_\u{1b}[1m");
    vec![
        dirt(
            "github_token",
            &format!("the key is {token}, keep it"),
            &token[10..],
        ),
        dirt(
            "github_token",
            &format!("hidden {hidden} end"),
            &token[10..],
        ),
        dirt(
            "github_token",
            &format!("coloured {coloured} end"),
            &token[10..],
        ),
        dirt("aws_access_key_id", &format!("id {aws} in use"), &aws),
        dirt("slack_token", &slack, &slack[20..]),
        dirt("jwt", &format!("session {jwt}"), &jwt[60..]),
        dirt("private_key", &format!("key:\n{pem}\nbye"), &line),
        dirt(
            "bearer_token",
            &format!("Authorization: Bearer {bearer}"),
            &bearer,
        ),
        dirt(
            "url_password",
            "postgres://app:h0FABEVlyFk@db:5432/x",
            "h0FABEVlyFk",
        ),
        dirt("password", "DB_PASSWORD=hunter2x9", "hunter2x9"),
    ]
}

/// C31 and C32.
fn tricks() -> Vec<Dirt> {
    let tags = "\u{e0069}\u{e0067}\u{e006e}\u{e006f}\u{e0072}\u{e0065}";
    vec![
        dirt("invisible", &format!("ok{tags}"), "\u{e0069}"),
        dirt(
            "invisible",
            &format!("\u{1f3f4}{tags}\u{e007f} go"),
            "\u{e0069}",
        ),
        dirt("invisible", "\u{202e}reversed\u{202c} text", "\u{202e}"),
        dirt("invisible", "a \u{2066}b\u{2069} c", "\u{2066}"),
        dirt("invisible", "pay\u{200b}pal", "\u{200b}"),
        dirt("terminal", "\u{1b}[2Jcleared", "[2J"),
        dirt("terminal", "\u{1b}[31mred\u{1b}[0m", "[31m"),
        dirt("terminal", "\u{1b}]0;t1tle\u{7}after", "t1tle"),
        dirt(
            "terminal",
            "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
            "evil.example",
        ),
        dirt("terminal", "c1 \u{9b}31m red", "\u{9b}"),
        dirt("terminal", "abc\u{8}\u{8}\u{8}xyz", "\u{8}"),
        dirt("terminal", "100%\rwiped", "\r"),
        dirt("terminal", "nul\u{0}byte", "\u{0}"),
    ]
}

fn everything() -> Vec<Dirt> {
    let mut all = secrets();
    all.extend(tricks());
    all
}

/// Where an upstream can say something; `@` is a JSON string.
enum Place {
    Result(&'static str),
    Error(&'static str),
    Event(&'static str),
}

use Place::{Error, Event, Result};

/// Every content type of a result, and everything beside results.
const PLACES: &[Place] = &[
    Result(r#"{"content":[{"type":"text","text":@}]}"#),
    Result(r#"{"content":[{"type":"text","text":@}],"isError":true}"#),
    Result(r#"{"content":[{"type":"text","text":"ok","annotations":{"note":@}}]}"#),
    Result(r#"{"content":[{"type":"text","text":"ok","_meta":{"a":@}}]}"#),
    Result(
        r#"{"content":[{"type":"image","data":"iVBORw0K","mimeType":"image/png","_meta":{"a":@}}]}"#,
    ),
    Result(
        r#"{"content":[{"type":"audio","data":"UklGRg==","mimeType":"audio/wav","annotations":{"a":@}}]}"#,
    ),
    Result(
        r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","mimeType":"text/plain","text":@}}]}"#,
    ),
    Result(r#"{"content":[{"type":"resource","resource":{"uri":@,"blob":"AAAA"}}]}"#),
    Result(r#"{"content":[{"type":"resource_link","uri":@,"name":"n"}]}"#),
    Result(r#"{"content":[{"type":"resource_link","uri":"file:///a","name":@}]}"#),
    Result(r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"n","title":@}]}"#),
    Result(
        r#"{"content":[{"type":"resource_link","uri":"file:///a","name":"n","description":@}]}"#,
    ),
    Result(r#"{"content":[{"type":"something_new","deep":[[{"x":@}]]}]}"#),
    Result(r#"{"content":[],"structuredContent":{"a":{"b":[1,@]}}}"#),
    Result(r#"{"content":[],"structuredContent":{@:1}}"#),
    Result(r#"{"content":[],"_meta":{"example.com/note":@}}"#),
    Result(r#"{"content":[],"_meta":{@:"x"}}"#),
    Error(r#"{"code":-32603,"message":@}"#),
    Error(r#"{"code":-32000,"message":"no","data":{"detail":[@]}}"#),
    Error(r#"{"code":1234,"message":"no","data":{@:1}}"#),
    Event(
        r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"@token","progress":1,"message":@}}"#,
    ),
    Event(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":"l","data":{"a":@}}}"#,
    ),
    Event(
        r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"error","logger":@,"data":"x"}}"#,
    ),
];

impl Place {
    fn saying(&self, quoted: &str) -> Value {
        let put = |form: &str| {
            // Not the `@` of the token's name.
            form.replace("\"@token\"", "\u{1}")
                .replace('@', quoted)
                .replace('\u{1}', "\"@token\"")
        };
        match self {
            Result(form) => json!({"result": put(form)}),
            Error(form) => json!({"error": put(form)}),
            Event(form) => {
                json!({"events": [put(form)], "result": r#"{"content":[{"type":"text","text":"done"}]}"#})
            }
        }
    }

    fn form(&self) -> &'static str {
        match self {
            Result(form) | Error(form) | Event(form) => form,
        }
    }
}

/// `text` as a JSON string, with everything escaped that may be.
fn escaped(text: &str) -> String {
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        let plain = u8::try_from(unit).is_ok_and(|byte| byte.is_ascii_alphanumeric());
        if plain && unit % 2 == 0 {
            out.push(char::from(u8::try_from(unit).unwrap()));
        } else {
            write!(out, "\\u{unit:04x}").unwrap();
        }
    }
    out + "\""
}

fn plain(text: &str) -> String {
    json!(text).to_string()
}

/// A server that says what it is told to, and a gateway in front of it.
struct Dirty {
    gateway: Gateway,
    url: String,
    http: reqwest::Client,
}

impl Dirty {
    async fn start(fragment: &str, definitions: &str) -> Self {
        let server = Helper::example("upstream_dirty", &[]).await;
        let url = server.url_of("");
        let http = super::support::server::http_client();
        let defined = http
            .post(format!("{url}/define"))
            .body(definitions.to_owned());
        assert!(defined.send().await.unwrap().status().is_success());
        let setup = Setup::new().yaml(fragment).over("up", server);
        Self {
            gateway: setup.start().await,
            url,
            http,
        }
    }

    /// Makes the server say this in answer to a call.
    async fn call(&self, session: &mut Session, saying: &Value) -> Answer {
        let told = self.http.post(format!("{}/say", self.url));
        let told = told.body(saying.to_string()).send().await.unwrap();
        let number: u64 = told.text().await.unwrap().parse().unwrap();
        let params = json!({
            "name": "say", "arguments": {"number": number},
            "_meta": {"progressToken": "p", "io.modelcontextprotocol/logLevel": "debug"},
        });
        session.request("tools/call", params).await
    }

    async fn result(&self, session: &mut Session, result: &str) -> Answer {
        self.call(session, &json!({ "result": result })).await
    }

    async fn session(&self, who: &str, era: Era) -> Session {
        let mut session = self.gateway.user(who).connect(era).await;
        if era == Era::Legacy {
            let level = json!({"level": "debug"});
            let answer = session.request("logging/setLevel", level).await;
            assert_eq!(answer.status, 200, "{answer:?}");
        }
        session
    }

    /// All that is on record, as text.
    async fn records(&self) -> String {
        let mut all = String::new();
        for table in [
            "audit_events",
            "audit_bodies",
            "audit_callers",
            "audit_names",
        ] {
            for row in self.gateway.rows(&format!("select * from {table}")).await {
                all.push_str(&row.to_string());
                all.push('\n');
            }
        }
        all
    }
}

/// Everything that a client reads in an answer: the bytes, and its strings decoded.
fn read(answer: &Answer) -> String {
    fn strings(value: &Value, out: &mut String) {
        match value {
            Value::String(text) => {
                out.push_str(text);
                out.push('\u{1f}');
            }
            Value::Array(all) => all.iter().for_each(|one| strings(one, out)),
            Value::Object(members) => {
                for (name, value) in members {
                    out.push_str(name);
                    out.push('\u{1f}');
                    strings(value, out);
                }
            }
            _ => {}
        }
    }
    let mut out = answer.body.clone();
    for message in &answer.messages {
        strings(message, &mut out);
    }
    out
}

/// Nothing of the dirt is in the program's log, and no line of it moves a cursor.
fn assert_clean_log(gateway: &Gateway, all: &[Dirt]) {
    let lines = gateway.logs().lines();
    assert!(!lines.is_empty());
    for line in lines {
        let moves = |c: char| c.is_control() || matches!(c, '\u{202a}'..='\u{202e}');
        assert!(!line.contains(moves), "{line:?}");
        for one in all.iter().filter(|one| one.gone.len() > 6) {
            assert!(!line.contains(&one.gone), "{}: {line}", one.label);
        }
    }
}

#[tokio::test]
async fn nothing_dirty_passes_from_any_place_in_either_era() {
    let dirty = Dirty::start("", "[]").await;
    let mut cases = Vec::new();
    for era in both() {
        cases.extend(PLACES.iter().map(|place| (era, place)));
    }
    futures_util::stream::iter(cases)
        .for_each_concurrent(6, |(era, place)| {
            let dirty = &dirty;
            async move {
                let mut session = dirty.session("alice@acme", era).await;
                for (nth, one) in everything().into_iter().enumerate() {
                    // Half of them as JSON escapes.
                    let write = if nth % 2 == 0 { plain } else { escaped };
                    let saying = place.saying(&write(&one.text));
                    let answer = dirty.call(&mut session, &saying).await;
                    let at = format!("{era:?} {} {one:?} {answer:?}", place.form());
                    assert_eq!(answer.status, 200, "{at}");
                    let seen = read(&answer);
                    assert!(!seen.contains(&one.gone), "{at}");
                    if matches!(place, Event(_)) {
                        assert_eq!(answer.messages.len(), 2, "{at}");
                        assert_eq!(answer.text(), "done", "{at}");
                    }
                }
            }
        })
        .await;
    // What was found is on record by kind and place, and what it was is nowhere.
    let records = dirty.gateway.audit(&["--limit", "5000"]);
    assert_eq!(records.len(), 2 * PLACES.len() * everything().len());
    let mut found: BTreeMap<&str, usize> = BTreeMap::new();
    for record in &records {
        let findings = record["findings"].as_str().unwrap_or_default();
        for one in everything() {
            if findings.contains(&format!("{}=", one.label)) {
                *found.entry(one.label).or_default() += 1;
            }
        }
        assert!(!findings.is_empty(), "{record}");
    }
    for one in everything() {
        assert!(found[one.label] >= 2 * PLACES.len(), "{found:?}");
    }
    let all = format!("{records:?}{}", dirty.records().await);
    for one in everything().iter().filter(|one| one.gone.len() > 6) {
        assert!(!all.contains(&one.gone), "{} is on record", one.label);
    }
    assert_clean_log(&dirty.gateway, &everything());
}

#[tokio::test]
async fn what_is_clean_stays_byte_for_byte() {
    let dirty = Dirty::start("", "[]").await;
    for era in both() {
        let mut alice = dirty.session("alice@acme", era).await;
        for result in [
            // C31 c, d: flags, families, hearts, joiners that belong.
            "{\"content\":[{\"type\":\"text\",\"text\":\"\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} 👩‍👩‍👧‍👦 ❤️ 👍🏽 می‌خواهم क्‍ष שלום עולם\u{200f} tab\\tline\\nend\"}]}",
            r#"{"content":[{"type":"text","text":"\ud83c\udff4\udb40\udc67\udb40\udc62\udb40\udc73\udb40\udc63\udb40\udc74\udb40\udc7f \u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645"}]}"#,
            r#"{"content":[ ],"structuredContent":{ "n" : 1.50e+3,"big":12345678901234567890123,"z":-0.0,  "id":4111111111111111}}"#,
            r#"{"content":[{"type":"image","data":"AKIAIOSFODNN7EXAMPLEghp0SK0123456789abcdef0123456789abcdef++//","mimeType":"image/png"}]}"#,
            r#"{"content":[{"type":"resource","resource":{"uri":"file:///a","blob":"eyJhbGciOiJIUzI1NiJ9AAAA","mimeType":"application/octet-stream"}}]}"#,
            r#"{"content":[{"type":"text","text":"commit ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7 \u00e9 \/ \u003cb\u003e C:\\new"}]}"#,
            r#"{"content":[{"type":"text","text":"The password policy"},{"type":"text","text":"is 12 letters"}],"x-new-field":[true,null]}"#,
        ] {
            let answer = dirty.result(&mut alice, result).await;
            // The modern form may add a member of ours; everything else is untouched.
            let inside = result.strip_prefix('{').unwrap();
            let inside = inside.strip_suffix('}').unwrap();
            assert!(answer.body.contains(inside), "{era:?} {answer:?}");
        }
    }
    let records = dirty.gateway.audit(&[]);
    assert!(
        records
            .iter()
            .all(|record| record["findings"].as_str().unwrap_or_default().is_empty()),
        "{records:?}"
    );
}

#[tokio::test]
async fn words_survive_what_is_removed_around_them() {
    // C31 a, b, e; C32
    let dirty = Dirty::start("", "[]").await;
    let mut alice = dirty.session("alice@acme", Era::Modern).await;
    for (text, right) in [
        ("ok\u{e0069}\u{e0067}", "ok"),
        ("\u{1f3f4}\u{e0069}\u{e0067}\u{e007f}", "\u{1f3f4}"),
        ("a\u{1b}[2Jb \u{1b}[31mred\u{1b}[0m", "ab red"),
        ("\u{1b}]0;title\u{7}shown", "shown"),
        (
            "x \u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\ y",
            "x link y",
        ),
        ("\u{9b}31mred\ttab\nline", "red\ttab\nline"),
        ("nul\u{0}byte", "nulbyte"),
        ("abc\u{8}\u{8}\u{8}xyz", "abcxyz"),
        (
            "unterminated \u{1b}] eats nothing\nmore",
            "unterminated  eats nothing\nmore",
        ),
    ] {
        for write in [plain, escaped] {
            let result = format!(
                r#"{{"content":[{{"type":"text","text":{}}}]}}"#,
                write(text)
            );
            let answer = dirty.result(&mut alice, &result).await;
            assert_eq!(answer.text(), right, "{text:?}");
        }
    }
}

#[tokio::test]
async fn a_secret_in_pieces_is_found() {
    let token = github_token();
    let (head, tail) = token.split_at(17);
    let dirty = Dirty::start("", "[]").await;
    for era in both() {
        let mut alice = dirty.session("alice@acme", era).await;
        for result in [
            format!(
                r#"{{"content":[{{"type":"text","text":"key {head}"}},{{"type":"text","text":"{tail} end"}}]}}"#
            ),
            format!(
                r#"{{"content":[{{"type":"text","text":"{head}"}},{{"type":"resource","resource":{{"uri":"a:b","text":"{tail}"}}}}]}}"#
            ),
            // JSON in text, as servers mirror what is structured.
            format!(
                r#"{{"content":[{{"type":"text","text":"{{\"a\":\"\\u0067{}\"}}"}}],"structuredContent":{{"a":"{token}"}}}}"#,
                &token[1..]
            ),
        ] {
            let answer = dirty.result(&mut alice, &result).await;
            let seen = read(&answer);
            assert!(
                !seen.contains(tail) && seen.contains("[REDACTED:github_token]"),
                "{era:?} {seen}"
            );
            if answer.result().get("structuredContent").is_some() {
                let mirrored: Value = serde_json::from_str(&answer.text()).unwrap();
                assert_eq!(mirrored, answer.result()["structuredContent"]);
            }
        }
    }
    assert!(!dirty.records().await.contains(tail));
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, or one table, read from top to bottom"
)]
async fn each_tenant_s_rules_decide() {
    let dirty = Dirty::start(
        r#"
        identity_providers: { corporate: { tenants: [acme, globex, masked, flagged, blocked] } }
        tenants:
          masked: { tools: { allow: ["*"] }, sanitize: { secrets: mask, invisible: mask, terminal: mask } }
          flagged: { tools: { allow: ["*"] }, sanitize: { secrets: flag, invisible: flag, terminal: flag } }
          blocked: { tools: { allow: ["*"] }, sanitize: { secrets: block } }
        "#,
        "[]",
    )
    .await;
    let token = github_token();
    let text = format!("key {token} x\u{200b}y");
    let sayings = [
        Result(r#"{"content":[{"type":"text","text":@}]}"#),
        Error(r#"{"code":-32603,"message":@}"#),
        Error(r#"{"code":-32603,"message":"no","data":@}"#),
        Event(
            r#"{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"@token","progress":1,"message":@}}"#,
        ),
    ];
    for era in both() {
        for (who, right) in [
            ("a@acme", Some("key [REDACTED:github_token] xy".to_owned())),
            ("a@masked", Some("key ghs_**** x[U+200B]y".to_owned())),
            ("a@flagged", Some(text.clone())),
            ("a@blocked", None),
        ] {
            let mut session = dirty.session(who, era).await;
            for place in &sayings {
                let answer = dirty.call(&mut session, &place.saying(&plain(&text))).await;
                let seen = read(&answer);
                let at = format!("{era:?} {who} {} {answer:?}", place.form());
                if let Some(right) = &right {
                    assert!(seen.contains(right.as_str()), "{at}");
                } else {
                    let leaks = seen.contains("key ") || seen.contains(&token[10..]);
                    assert!(!leaks, "{at}");
                    // A message may be missing; an answer may not.
                    let kept_back = !matches!(place, Event(_));
                    assert_eq!(answer.is_error(), kept_back, "{at}");
                }
            }
        }
    }
    for (tenant, outcome, count) in [
        ("blocked", "withheld", 6),
        ("flagged", "ok", 4),
        ("masked", "upstream_error", 4),
    ] {
        let filters = [
            "--tenant",
            tenant,
            "--outcome",
            outcome,
            "--finding",
            "github_token",
        ];
        let records = dirty.gateway.audit(&filters);
        assert_eq!(records.len(), count, "{tenant}: {records:?}");
    }
    assert!(!dirty.records().await.contains(&token[10..]));
}

/// Definitions with hidden text, each in another place.
fn suspicious_definitions() -> Vec<(&'static str, String)> {
    let tags = "\u{e0069}\u{e0067}\u{e006e}";
    let object = r#""inputSchema":{"type":"object"}"#;
    vec![
        (
            "in_description",
            format!(r#"{{"name":"in_description","description":"Reads.{tags}",{object}}}"#),
        ),
        (
            "in_title",
            format!(r#"{{"name":"in_title","title":"T{tags}","description":"d",{object}}}"#),
        ),
        (
            "in_annotations",
            format!(
                r#"{{"name":"in_annotations","description":"d","annotations":{{"title":"T{tags}"}},{object}}}"#
            ),
        ),
        (
            "in_schema",
            format!(
                r#"{{"name":"in_schema","description":"d","inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","description":"A.{tags}"}}}}}}}}"#
            ),
        ),
        (
            "in_escapes",
            format!(
                r#"{{"name":"in_escapes","description":"a\udb40\udc69\udb40\udc67 b",{object}}}"#
            ),
        ),
        (
            "with_terminal",
            format!(
                r#"{{"name":"with_terminal","description":"\u001b[8mhidden\u001b[0m",{object}}}"#
            ),
        ),
        (
            "with_bidi",
            format!(r#"{{"name":"with_bidi","description":"a\u202eb",{object}}}"#),
        ),
    ]
}

fn definitions() -> String {
    let token = github_token();
    let mut all: Vec<String> = suspicious_definitions()
        .into_iter()
        .map(|(_, definition)| definition)
        .collect();
    let object = r#""inputSchema":{"type":"object"}"#;
    all.push(format!(r#"{{"name":"leaks","title":"T {token}","description":"Uses {token}.","annotations":{{"title":"{token}"}},"_meta":{{"k":"{token}"}},"inputSchema":{{"type":"object","properties":{{"a":{{"type":"string","description":"like {token}"}}}}}}}}"#));
    all.push(format!(r#"{{"name":"flags","description":"Flags: \ud83c\udff4\udb40\udc67\udb40\udc62\udb40\udc65\udb40\udc6e\udb40\udc67\udb40\udc7f and 👩‍👧.",{object}}}"#));
    all.push(format!(r#"{{"name":"in_enum","description":"d","inputSchema":{{"type":"object","properties":{{"a":{{"enum":["{token}"]}}}}}}}}"#));
    all.push(format!(
        r#"{{"name":"control\u001b[2Jname","description":"d",{object}}}"#
    ));
    all.push(format!(
        r#"{{"name":"line\nname","description":"d",{object}}}"#
    ));
    all.push(format!(
        r#"{{"name":"na\u200bme","description":"d",{object}}}"#
    ));
    format!("[{}]", all.join(","))
}

#[tokio::test]
async fn definitions_with_hidden_text_are_quarantined() {
    let dirty = Dirty::start("", &definitions()).await;
    for era in both() {
        let mut alice = dirty.session("alice@acme", era).await;
        let listed = alice.request("tools/list", json!({})).await;
        let mut names = alice.names().await;
        names.sort();
        assert_eq!(names, ["flags", "leaks", "say"], "{era:?}");
        let seen = read(&listed);
        assert!(!seen.contains(&github_token()[10..]), "{seen}");
        assert!(seen.contains("Uses [REDACTED:github_token]."), "{seen}");
        assert!(
            seen.contains("\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f} and 👩‍👧"),
            "{seen}"
        );
        for (name, _) in suspicious_definitions() {
            let answer = alice.call(name, json!({})).await;
            assert_eq!(answer.code(), -32602, "{name}");
        }
    }
    dirty.gateway.logs().line_with("in_schema").await;
    assert_clean_log(&dirty.gateway, &everything());
}

#[tokio::test]
async fn an_operator_may_have_definitions_cleaned_and_listed() {
    let dirty = Dirty::start("upstreams: { up: { suspicious: clean } }", &definitions()).await;
    for era in both() {
        let mut alice = dirty.session("alice@acme", era).await;
        let listed = alice.list().await;
        let named = |name: &str| {
            let found = listed.iter().find(|tool| tool["name"] == name);
            found.unwrap_or_else(|| panic!("{name} is not listed: {listed:?}"))
        };
        for (name, _) in suspicious_definitions() {
            named(name);
        }
        assert_eq!(named("in_description")["description"], "Reads.");
        assert_eq!(named("with_terminal")["description"], "hidden");
        assert_eq!(named("with_bidi")["description"], "ab");
        assert_eq!(named("in_annotations")["annotations"]["title"], "T");
        let schema = &named("in_schema")["inputSchema"];
        assert_eq!(schema["properties"]["a"]["description"], "A.");
        let all = format!("{listed:?}");
        assert!(
            !all.contains(&github_token()[10..]) && !all.contains('\u{e0069}'),
            "{all}"
        );
        // C32: a name with control characters is refused, whatever the policy.
        assert!(!all.contains("control") && !all.contains("line"), "{all}");
    }
    assert_clean_log(&dirty.gateway, &everything());
}

#[tokio::test]
async fn an_error_page_tells_little_and_nothing_secret() {
    let dirty = Dirty::start("", "[]").await;
    for era in both() {
        let mut alice = dirty.session("alice@acme", era).await;
        for one in everything() {
            let page = format!(
                "<h1>Oops</h1> {} at db-07.prod.svc.cluster.local (10.0.0.3)",
                one.text
            );
            let answer = dirty.call(&mut alice, &json!({ "page": page })).await;
            assert!(answer.is_error(), "{answer:?}");
            let seen = read(&answer);
            assert!(!seen.contains(&one.gone), "{one:?} {seen}");
            assert!(!seen.contains("db-07") && !seen.contains("<h1>"), "{seen}");
        }
    }
    let found = dirty.gateway.audit(&["--finding", "github_token"]);
    assert!(found.len() >= 2, "{found:?}");
    assert_clean_log(&dirty.gateway, &everything());
}

#[tokio::test]
async fn what_a_caller_sends_is_on_record_without_its_secrets() {
    let gateway = Gateway::over(Helper::example("upstream_rmcp", &[]).await).await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for one in everything() {
            let sent = json!({"text": one.text, "password": "correct-horse-9", "more": [one.text]});
            assert_eq!(alice.call("echo", sent).await.status, 200);
            // Names that nobody knows are text of the caller's as well.
            alice.call(&format!("no {}", one.text), json!({})).await;
        }
    }
    let records = format!(
        "{:?}",
        gateway.audit(&["--limit", "1000", "--tool", "echo"])
    );
    // What is hidden or a control character is shown to the auditor by a sign of its own.
    let is_sign = |one: &&Dirt| matches!(one.label, "invisible" | "terminal");
    for one in everything().iter().filter(|one| !is_sign(one)) {
        assert!(!records.contains(&one.gone), "{}", one.label);
    }
    let odd = |c: char| c.is_control() || ('\u{e0000}'..='\u{e007f}').contains(&c);
    assert!(!records.contains(odd));
    assert!(!records.contains("correct-horse-9"));
    assert_clean_log(&gateway, &everything());
}

#[tokio::test]
async fn a_child_s_standard_error_is_logged_clean() {
    let mut child = stdio_example("upstream_rmcp", &["--stdio"]);
    let program = child["stdio"]["command"].as_str().unwrap().to_owned();
    let token = github_token();
    let script = format!(
        "printf 'begin \\033[2J\\033]0;title\\007 {token} DB_PASSWORD=hunter2x9 \\302\\23331m end\\n' >&2; exec {program} --stdio"
    );
    child["stdio"] = json!({"command": "sh", "args": ["-c", script]});
    let gateway = Setup::new().upstream("up", child).start().await;
    let line = gateway.logs().line_with("begin").await;
    assert!(line.contains("end") && line.contains("REDACTED"), "{line}");
    eventually("the tools are there", async || {
        let mut alice = gateway.user("alice@acme").modern();
        alice
            .names()
            .await
            .contains(&"echo".to_owned())
            .then_some(())
    })
    .await;
    assert_clean_log(&gateway, &everything());
}

#[tokio::test]
#[expect(
    clippy::too_many_lines,
    reason = "one story, or one table, read from top to bottom"
)]
async fn no_command_and_no_log_shows_a_secret_of_the_configuration() {
    let secret = "Sup3rS3cretPassw0rd";
    let folder = Folder::new();
    let keys = folder.file("keys", &config::deployment_key());
    let check = |text: &str, variables: &[(&str, &str)]| {
        let file = folder.file("toolgate.yaml", text);
        let mut said = String::new();
        for json in [&["--json"][..], &[]] {
            let output = Command::new(config::TOOLGATE)
                .args(["check", "--config"])
                .arg(&file)
                .args(json)
                .envs(variables.iter().copied())
                .output()
                .unwrap();
            assert_eq!(output.status.code(), Some(1), "{text}");
            said.push_str(&String::from_utf8_lossy(&output.stdout));
            said.push_str(&String::from_utf8_lossy(&output.stderr));
        }
        assert!(!said.contains(secret), "{said}");
        said
    };
    for wrong in [
        format!("database: {{ url: 'mysql://u:{secret}@h/d' }}"),
        format!("database: {{ url: ['postgres://u:{secret}@h/d'] }}"),
        format!("database: {{ url: 'postgres://u@h/d', connections: '{secret}' }}"),
        format!("database: {{ url: 'postgres://u@h/d', direct_url: '{secret}' }}"),
        format!("database: {{ urll: 'postgres://u:{secret}@h/d' }}"),
        format!(
            "database: {{ url: 'postgres://u@h/d' }}\nserver: {{ public_url: 'https://u:{secret}@h' }}"
        ),
        format!(
            "database: {{ url: 'postgres://u@h/d' }}\noutgoing: {{ proxy: 'ftp://u:{secret}@h' }}"
        ),
        format!(
            "database: {{ url: 'postgres://u@h/d' }}\nupstreams: {{ a: {{ mcp: {{ url: 'https://u:{secret}@h/mcp' }} }} }}"
        ),
        format!(
            "database: {{ url: 'postgres://u@h/d' }}\nupstreams: {{ a: {{ stdio: {{ command: x, env: {{ A: [{secret}] }} }} }} }}"
        ),
        format!("database: {{ url: \"postgres://u:{secret}@h/d }}\n  x: : y"),
        secret.to_owned(),
    ] {
        check(&wrong, &[]);
    }
    let said = check(
        "database: {}",
        &[("TOOLGATE_DATABASE__URL", &format!("mysql://u:{secret}@h/d"))],
    );
    assert!(said.contains("TOOLGATE_DATABASE__URL"), "{said}");

    // A server whose database refuses it says why, and not with what.
    let text = json!({
        "server": {"listen": "127.0.0.1:0", "admin_listen": "127.0.0.1:0"},
        "database": {"url": format!("postgres://nobody:{secret}@127.0.0.1:9/none?application_name={secret}")},
        "keys_file": keys, "tenants": {"acme": {}}, "telemetry": {"log_filter": "trace"},
    });
    let file = folder.file("serve.yaml", &text.to_string());
    let mut command = Command::new(config::TOOLGATE);
    let mut process = super::support::process::Process::start(
        "toolgate",
        command.args(["serve", "--config"]).arg(&file),
    );
    process.output().line_with("Serving").await;
    process.signal(nix::sys::signal::Signal::SIGTERM);
    process.wait(super::support::PATIENCE).unwrap();
    assert!(
        !process.output().contains(secret),
        "{}",
        process.output().tail(50)
    );
    let key = std::fs::read_to_string(keys).unwrap();
    assert!(!process.output().contains(key.trim()));
}
