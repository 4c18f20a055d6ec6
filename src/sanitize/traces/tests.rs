//! What a failure's words lose and keep.

use super::*;
use crate::sanitize::detect::Context;

fn found(text: &str, place: Place) -> Vec<(&'static str, &str)> {
    let mut hits = Hits::default();
    let subject = Subject {
        text,
        context: Context {
            place,
            key: None,
            domains: &[],
            pointer: &String::new,
        },
        signs: &[],
        seams: &[],
    };
    find(&subject, &mut hits);
    hits.list
        .into_iter()
        .map(|hit| (hit.label, &text[hit.range]))
        .collect()
}

#[test]
fn paths_of_source_and_inner_hosts_go_from_errors() {
    assert_eq!(
        found(
            "Uncaught Error: Division by zero in /var/www/html/a b/search.php:710",
            Place::Error
        ),
        [(INTERNAL_PATH, "/var/www/html/a b/search.php:710")]
    );
    assert_eq!(
        found("panicked at src/main.rs:2:5: no", Place::Error),
        [(INTERNAL_PATH, "src/main.rs:2:5")]
    );
    assert_eq!(
        found("C:\\build\\Web.cs:line 12 failed", Place::Error),
        [(INTERNAL_PATH, "C:\\build\\Web.cs:line 12")]
    );
    assert_eq!(
        found("ENOTFOUND db-1.prod.internal:5432", Place::Error),
        [(INTERNAL_HOST, "db-1.prod.internal:5432")]
    );
}

#[test]
fn results_that_did_not_fail_keep_theirs() {
    let text = "x\n\tat com.acme.Dao.open(Dao.java:91)";
    assert_eq!(found(text, Place::Text), []);
    assert_eq!(found(text, Place::Error).len(), 1);
}

#[test]
fn what_a_caller_asked_for_stays_in_errors() {
    for text in [
        "ENOENT: no such file or directory, open '/home/me/report.csv'",
        "see https://docs.example/guide/a.js for more",
        "bind 127.0.0.1:53654 netmask 255.255.255.0 ::1 0.0.0.0/0",
        "asset app.e89d6101.js hashed",
        "read README.md and settings.local",
    ] {
        assert_eq!(found(text, Place::Error), [], "{text}");
    }
}
