//! What takes long, run by `make soak`: millions of rows of the audit, replicas that
//! are killed, millions of hostile inputs to the envelope parser, none of which may
//! panic, hang, or be accepted where another JSON parser says it is no JSON; and hostile
//! results to the sanitizer.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::disallowed_methods,
    clippy::print_stderr,
    clippy::cast_precision_loss,
    reason = "tests fail by panicking; how much is asked for comes by the environment"
)]

mod audit;
mod sanitize;

use std::time::{Duration, Instant};

use bytes::Bytes;
use toolgate::protocol::{Json, JsonLimits, Message};

/// Inputs in all, unless `SOAK_INPUTS` says otherwise.
const INPUTS: u64 = 10_000_000;
/// No input of a few kilobytes may take longer. Generous: other work on the
/// machine counts against it.
const PATIENCE: Duration = Duration::from_secs(2);

const SEEDS: [&str; 10] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":{"text":"hi"}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1,"reason":"\u0000\ud83d\ude00"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"result":{"content":[{"type":"text","text":"a\n\"b\""}],"isError":false}}"#,
    r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no","data":{"retryAfterMs":1e3}}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":2,"method":"ping"}]"#,
    r#"{"params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}},"method":"tools/list","id":-0.0,"jsonrpc":"2.0"}"#,
    "{\"jsonrpc\":\"2.0\",\"id\":9007199254740993,\"method\":\"\u{e0001}\u{202e}\"}",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[0]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]",
    " \t\r\n{ \"a\" : [ 1 , -2.5E-7 , true , false , null , \"\" ] } \n",
];

const PIECES: [&[u8]; 20] = [
    b"{",
    b"}",
    b"[",
    b"]",
    b"\"",
    b"\\",
    b":",
    b",",
    b"null",
    b"1e999",
    b"-",
    b"\\ud800",
    b"\\udc00",
    b"\xff",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\0",
    b"\xef\xbb\xbf",
    b"\"id\":1,",
    b"[[[[[[[[[[[[[[[[[[[[",
];

/// xorshift64*: the same inputs for the same seed, without a dependency.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let high = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33;
        usize::try_from(high).expect("31 bits") % sides.max(1)
    }

    fn input(&mut self) -> Vec<u8> {
        let mut text = SEEDS[self.roll(SEEDS.len())].as_bytes().to_vec();
        for _ in 0..=self.roll(8) {
            self.change(&mut text);
        }
        text.truncate(4096);
        text
    }

    fn change(&mut self, text: &mut Vec<u8>) {
        let at = self.roll(text.len() + 1);
        match self.roll(6) {
            0 => {
                let piece = PIECES[self.roll(PIECES.len())];
                text.splice(at..at, piece.iter().copied());
            }
            1 => {
                let end = (at + self.roll(16)).min(text.len());
                text.drain(at..end);
            }
            2 => {
                let end = (at + self.roll(32)).min(text.len());
                let copy = text[at..end].to_vec();
                text.splice(at..at, copy);
            }
            3 => {
                let other = SEEDS[self.roll(SEEDS.len())].as_bytes();
                let from = self.roll(other.len());
                text.truncate(at);
                text.extend_from_slice(&other[from..]);
            }
            4 => text.truncate(at),
            _ => {
                if let Some(byte) = text.get_mut(at) {
                    *byte ^= 1 << self.roll(8);
                }
            }
        }
    }
}

fn read(text: &[u8]) -> bool {
    let bytes = Bytes::copy_from_slice(text);
    if let Ok(json) = Json::parse(bytes.clone(), &JsonLimits::UPSTREAM) {
        let _ = Message::read(&json);
    }
    let Ok(json) = Json::parse(bytes, &JsonLimits::CALLER) else {
        return false;
    };
    let _ = Message::read(&json);
    // A byte order mark may be ignored (RFC 8259 §8.1); the other parser does not.
    let text = text.strip_prefix(b"\xef\xbb\xbf").unwrap_or(text);
    let judged: Result<serde::de::IgnoredAny, _> = serde_json::from_slice(text);
    assert!(
        judged.is_ok(),
        "accepted, and yet no JSON: {}",
        text.escape_ascii()
    );
    true
}

fn soak(seed: u64, inputs: u64) -> u64 {
    let mut dice = Dice(seed);
    let mut accepted = 0;
    for _ in 0..inputs {
        let text = dice.input();
        let start = Instant::now();
        accepted += u64::from(read(&text));
        assert!(
            start.elapsed() < PATIENCE,
            "too slow: {}",
            text.escape_ascii()
        );
    }
    accepted
}

#[test]
fn no_input_makes_the_envelope_parser_panic_or_hang() {
    let asked = std::env::var("SOAK_INPUTS")
        .ok()
        .and_then(|count| count.parse().ok());
    let inputs: u64 = asked.unwrap_or(INPUTS);
    let seeds = [0x9e37_79b9_7f4a_7c15, 0xd1b5_4a32_d192_ed03];
    let start = Instant::now();
    let accepted: u64 = std::thread::scope(|scope| {
        let threads = seeds.map(|seed| scope.spawn(move || soak(seed, inputs / 2)));
        threads
            .into_iter()
            .map(|thread| thread.join().expect("no panic"))
            .sum()
    });
    eprintln!(
        "{inputs} inputs in {:?}, {accepted} of them accepted",
        start.elapsed()
    );
    assert!(
        accepted > inputs / 100,
        "hardly any input got through: they are too wild to test much"
    );
}
