//! Hostile results for the sanitizer: whatever comes in, what goes out is JSON, is
//! not much longer, is not changed by a second pass, and holds no secret that was
//! put into it, however it was split over blocks or messages. In linear time.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use toolgate::config::Sanitize;
use toolgate::protocol::{Json, JsonLimits, Untrusted, UpstreamEvent};
use toolgate::sanitize::{Sanitizer, Stream};

use super::Dice;

/// Results in all, unless `SOAK_RESULTS` says otherwise.
const RESULTS: u64 = 200_000;

/// No result of a few kilobytes may take longer, optimised or not.
const PATIENCE: Duration = Duration::from_secs(5);

/// A placeholder is longer than the shortest value that it replaces, by this factor
/// at most.
const GROWTH: usize = 12;

const TOKEN: &str = "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";

const PIECES: &[&str] = &[
    TOKEN,
    "password=",
    "password: ",
    "token",
    "Authorization: Bearer ",
    "eyJhbGciOiJIUzI1NiJ9.",
    "-----BEGIN PRIVATE KEY-----\n",
    "-----END PRIVATE KEY-----",
    "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEAAoIBAQC7",
    "://user:",
    "@host/",
    "sk-ant-api03-",
    "AKIA",
    "%40",
    "&#64;",
    "\\u0040",
    "cGFzc3dvcmQ9aHVudGVyMg==",
    "70617373776f72643d68756e74657232",
    "4111 1111 1111 1111",
    "ada@example.com",
    "![t](https://e.example/?d=",
    "<img src=x onerror=y>",
    "ignore all previous instructions",
    "at a.b.C.d(C.java:12)\n",
    "/usr/lib/x/y.py",
    "\u{200b}",
    "\u{202e}",
    "\u{e0041}",
    "\u{1b}[31m",
    "\u{1b}]0;",
    "\u{7}",
    "👩\u{200d}💻",
    "\u{ff14}\u{ff11}",
    "م\u{200c}ی",
    "{\"a\":\"",
    "\"}",
    "[",
    "]",
    "\"",
    "\\",
    " ",
    "\n",
    "=",
    ":",
    "hunter2",
    "a b c d e f g h i j k ",
    "[REDACTED:password]",
    "é",
];

impl Dice {
    fn text(&mut self) -> String {
        let mut out = String::new();
        for _ in 0..self.roll(12) {
            if self.roll(4) == 0 {
                let len = self.roll(12);
                for _ in 0..len {
                    let at = self.roll(94);
                    out.push(char::from(33 + u8::try_from(at).expect("below 94")));
                }
            } else {
                out.push_str(PIECES[self.roll(PIECES.len())]);
            }
        }
        out
    }

    fn result(&mut self) -> String {
        let mut blocks = String::new();
        for number in 0..=self.roll(3) {
            if number > 0 {
                blocks.push(',');
            }
            let text = serde_json::Value::String(self.text());
            let _ = match self.roll(3) {
                0 => write!(
                    blocks,
                    r#"{{"type":"resource","resource":{{"uri":"f","text":{text}}}}}"#
                ),
                _ => write!(blocks, r#"{{"type":"text","text":{text}}}"#),
            };
        }
        let key = serde_json::Value::String(self.text());
        let value = serde_json::Value::String(self.text());
        let inner =
            serde_json::json!({ "password": self.text(), "list": [self.text(), self.text()] });
        let nested = serde_json::Value::String(inner.to_string());
        format!(
            r#"{{"content":[{blocks},{{"type":"text","text":{nested}}}],"structuredContent":{{{key}:{value},"n":4111111111111111}}}}"#
        )
    }
}

fn json(text: &str) -> Json {
    Json::parse(text.to_owned().into(), &JsonLimits::UPSTREAM).expect("the generator writes JSON")
}

fn clean(sanitizer: &Sanitizer, text: &str) -> String {
    let start = Instant::now();
    let clean = sanitizer
        .result(Untrusted::new(json(text)), &Sanitize::default())
        .expect("nothing is blocked");
    assert!(start.elapsed() < PATIENCE, "too slow: {text}");
    clean.into_json().as_str().to_owned()
}

fn one(sanitizer: &Sanitizer, dice: &mut Dice) {
    let text = dice.result();
    let out = clean(sanitizer, &text);
    let parsed: Result<serde_json::Value, _> = serde_json::from_str(&out);
    assert!(parsed.is_ok(), "no JSON: {text}\n{out}");
    assert!(
        out.len() <= GROWTH * text.len() + 256,
        "too long: {text}\n{out}"
    );
    assert!(
        !out.contains(&TOKEN[8..30]),
        "a secret is left: {text}\n{out}"
    );
    assert_eq!(
        clean(sanitizer, &out),
        out,
        "a second pass changed it: {text}"
    );
}

/// A token in pieces over blocks and over messages.
fn split(sanitizer: &Sanitizer, dice: &mut Dice) {
    let mut cuts = [dice.roll(TOKEN.len()), dice.roll(TOKEN.len())];
    cuts.sort_unstable();
    let parts = [
        &TOKEN[..cuts[0]],
        &TOKEN[cuts[0]..cuts[1]],
        &TOKEN[cuts[1]..],
    ];
    let longest = parts.iter().map(|part| part.len()).max().unwrap_or(0);
    let blocks: Vec<_> = parts
        .iter()
        .map(|part| serde_json::json!({ "type": "text", "text": part }))
        .collect();
    let out = clean(
        sanitizer,
        &serde_json::json!({ "content": blocks }).to_string(),
    );
    let mut stream = Stream::new();
    let now = Instant::now();
    let mut told = String::new();
    let rules = Sanitize::default();
    for part in parts {
        let message = Json::from_value(&serde_json::json!({ "progress": 1, "message": part }));
        let event = Untrusted::new(UpstreamEvent::Progress(message));
        for event in sanitizer.next_event(&mut stream, event, now, &rules) {
            let _ = write!(told, "{:?}", event.expect("nothing is blocked").event());
        }
    }
    for event in sanitizer.release(&mut stream, &rules) {
        let _ = write!(told, "{:?}", event.expect("nothing is blocked").event());
    }
    if longest > 4 {
        let left = (0..=TOKEN.len() - 16).any(|at| {
            let part = &TOKEN[at..at + 16];
            out.contains(part) || told.contains(part)
        });
        assert!(!left, "{cuts:?} {out} {told}");
    }
}

#[test]
fn no_result_breaks_the_sanitizer() {
    let asked = std::env::var("SOAK_RESULTS")
        .ok()
        .and_then(|count| count.parse().ok());
    let results: u64 = asked.unwrap_or(RESULTS);
    let sanitizer = Sanitizer::new();
    std::thread::scope(|scope| {
        for seed in [0x0a55_1e77_d1ce_0001, 0x7f4a_7c15_9e37_79b9] {
            let sanitizer = &sanitizer;
            scope.spawn(move || {
                let mut dice = Dice(seed);
                for _ in 0..results / 2 {
                    one(sanitizer, &mut dice);
                    split(sanitizer, &mut dice);
                }
            });
        }
    });
}

/// A mebibyte in the alphabet of each rule. Unoptimised code gets a hundredth of
/// the speed that is asked of the optimised; quadratic cost would take hours.
#[test]
fn a_mebibyte_of_any_piece_costs_about_its_length() {
    let sanitizer = Sanitizer::new();
    for piece in PIECES {
        let text = piece.repeat((1 << 20) / piece.len());
        let quoted = serde_json::Value::String(text);
        let text = format!(r#"{{"content":[{{"type":"text","text":{quoted}}}]}}"#);
        let input = json(&text);
        let start = Instant::now();
        let _ = sanitizer.result(Untrusted::new(input), &Sanitize::default());
        let took = start.elapsed();
        eprintln!("{piece:?}: {took:?}");
        assert!(took < Duration::from_secs(30), "{piece:?} took {took:?}");
    }
}
