//! The tree: places, duplicates, aliases, bounds.

use super::*;

fn path(text: &str) -> KeyPath {
    text.split('.')
        .fold(KeyPath::default(), |path, key| path.key(key))
}

fn text(root: &Node, at: &str) -> Option<String> {
    match &root.at(&path(at))?.value {
        Value::Scalar(scalar) => Some(scalar.text.clone()),
        _ => None,
    }
}

#[test]
fn every_key_and_value_knows_its_place() {
    let (root, _) = parse("a:\n  b: x\n  c: [1, 2]\nd:\n").unwrap();
    for (at, on_key, line, column) in [
        ("a", false, 1, 1),
        ("a.b", true, 2, 3),
        ("a.b", false, 2, 6),
        ("a.c", false, 3, 3),
        ("a.missing", false, 1, 1),
        ("d", false, 4, 1),
    ] {
        assert_eq!(
            root.origin(&path(at), on_key),
            Origin::Line { line, column },
            "{at}"
        );
    }
}

#[test]
fn the_first_of_two_equal_keys_counts_and_the_second_is_reported() {
    let (root, twice) = parse("a: 1\nb: {c: 1, c: 2}\na: 3\n").unwrap();
    assert_eq!(text(&root, "b.c").as_deref(), Some("1"));
    let reported: Vec<String> = twice
        .iter()
        .map(|flaw| format!("{} {:?} {}", flaw.path, flaw.origin, flaw.wrong))
        .collect();
    assert_eq!(
        reported,
        [
            "b.c Line { line: 2, column: 11 } given twice, first on line 2",
            "a Line { line: 3, column: 1 } given twice, first on line 1",
        ]
    );
}

#[test]
fn aliases_and_merges_are_followed() {
    let (root, twice) =
        parse("a: &a {x: 1, y: 2}\nb: *a\nc: {<<: *a, y: 3}\nd: {<<: [*a, {z: 4}]}\n").unwrap();
    assert!(twice.is_empty());
    for (at, value) in [
        ("b.x", "1"),
        ("c.x", "1"),
        ("c.y", "3"),
        ("d.y", "2"),
        ("d.z", "4"),
    ] {
        assert_eq!(text(&root, at).as_deref(), Some(value), "{at}");
    }
}

#[test]
fn aliases_cannot_blow_up() {
    let wide: Vec<String> = (1..12)
        .map(|n| {
            format!(
                "a{n}: &a{n} [{}]",
                vec![format!("*a{}", n - 1); 10].join(", ")
            )
        })
        .collect();
    let wide = format!(
        "a0: &a0 [x, x, x, x]
{}",
        wide.join(
            "
"
        )
    );
    let deep: Vec<String> = (1..100)
        .map(|n| format!("a{n}: &a{n} [*a{}]", n - 1))
        .collect();
    let deep = format!(
        "a0: &a0 [x]
{}",
        deep.join(
            "
"
        )
    );
    let merges = format!(
        "a: &a {{{}}}\nb: {{<<: [{}]}}\n",
        (0..1000)
            .map(|n| format!("k{n}: 1"))
            .collect::<Vec<_>>()
            .join(", "),
        vec!["*a"; 1000].join(", ")
    );
    for bomb in [&wide, &deep, &merges] {
        let flaw = parse(bomb).unwrap_err();
        assert_eq!(
            flaw.wrong,
            "the aliases make the file too large or too deep"
        );
    }
}

#[test]
fn what_cannot_be_read_is_said_with_its_place() {
    let deep = "[".repeat(100);
    for (yaml, line, wrong) in [
        ("a: [1, 2\nb: 3", 2, ""),
        ("a: \"x", 1, ""),
        ("a:\n\tb: 1", 2, ""),
        ("a: *nothing", 1, ""),
        ("a: &a [*a]", 1, "an alias refers to what it stands in"),
        ("a: 1\n---\nb: 2", 2, "a second document begins here"),
        ("? [a]\n: b", 1, "a key must be plain text"),
        (": b", 1, "a key is missing before `:`"),
        ("a: !secret x", 1, "a YAML tag (`!…`) has no meaning here"),
        ("a: {<<: 1}", 1, "`<<` takes mappings"),
        (deep.as_str(), 1, ""),
    ] {
        let flaw = parse(yaml).unwrap_err();
        assert!(
            matches!(flaw.origin, Origin::Line { line: at, .. } if at == line),
            "{yaml}: {flaw:?}"
        );
        assert!(flaw.wrong.starts_with(wrong), "{yaml}: {flaw:?}");
    }
}

#[test]
fn quoted_plain_and_missing_values_are_told_apart() {
    let (root, _) = parse("a: 1\nb: '1'\nc:\nd: ~\ne: !!str 1\nf: |\n  1\n").unwrap();
    for (at, style) in [
        ("a", Style::Plain),
        ("b", Style::Quoted),
        ("c", Style::Empty),
        ("d", Style::Plain),
        ("e", Style::Quoted),
        ("f", Style::Quoted),
    ] {
        let node = root.at(&path(at)).unwrap();
        assert!(
            matches!(&node.value, Value::Scalar(s) if s.style == style),
            "{at}: {node:?}"
        );
    }
}
