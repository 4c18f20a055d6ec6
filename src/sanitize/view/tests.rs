//! Tests of the view: what goes, what stays, where it was.

use super::*;

/// What the text is once everything that goes is gone.
fn cleaned(text: &str) -> String {
    let view = View::of(text);
    let mut out = String::new();
    let mut at = 0;
    for gap in &view.gaps {
        out.push_str(&text[at..gap.range.start]);
        match gap.label {
            Some(_) => out.push_str(gap.instead),
            None => out.push_str(&text[gap.range.clone()]),
        }
        at = gap.range.end;
    }
    out.push_str(&text[at..]);
    out
}

const ENGLAND: &str = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e0067}\u{e007f}";

#[test]
fn what_scripts_and_emoji_need_stays() {
    let rows = [
        "👨\u{200d}👩\u{200d}👧 👩🏽\u{200d}💻 🏳\u{fe0f}\u{200d}🌈 ❤\u{fe0f}\u{200d}🔥",
        "1\u{fe0f}\u{20e3} ☎\u{fe0e} ✔\u{fe0f} 🇫🇷 ❤\u{fe0f}",
        ENGLAND,
        "می\u{200c}خواهم کتاب\u{200c}ها",
        "क\u{94d}\u{200d}ष और क\u{94d}\u{200c}ष",
        "ശ\u{d4d}രീ ന\u{d4d}\u{200d}",
        "ශ\u{dca}\u{200d}රී",
        "المستخدم \u{200f}(admin)\u{200f} سجل",
        "שלום \u{2066}abc\u{2069} עולם",
        "葛\u{e0100}飾区と葛\u{e0101}城市",
        "ខ្ញុំ\u{200b}ស្រលាញ់",
        "ᠮᠣᠩᠭᠣᠯ\u{180b}",
        "Silben\u{ad}trennung",
        "tabs\tand\nnewlines\r\nstay",
        "literal \\x1b[31m and \\033[0m in docs",
        "arr[0] = [1;2]; // ]0; ok",
        "日本語 Ärger naïve cafe\u{301} 𝒳",
    ];
    for row in rows {
        assert_eq!(cleaned(row), row);
    }
}

#[test]
fn what_hides_or_reorders_goes() {
    let tags = |word: &str| -> String {
        word.chars()
            .map(|c| char::from_u32(0xe0000 + u32::from(c)).unwrap())
            .collect()
    };
    let rows = [
        (format!("ok{}", tags("ignore all")), "ok"),
        (format!("🏴{}\u{e007f}", tags("ignore")), "🏴"),
        ("\u{202e}Weather\u{202c}".to_owned(), "Weather"),
        ("a\u{2066}b\u{2069}c".to_owned(), "abc"),
        (
            "In\u{200b}voi\u{2060}ce tot\u{200d}al\u{200c}s".to_owned(),
            "Invoice totals",
        ),
        ("\u{feff}The\u{feff} build".to_owned(), "The build"),
        ("pay\u{2061}pal".to_owned(), "paypal"),
        (
            "The \u{3164}build \u{ffa0}ok\u{115f}\u{1160}".to_owned(),
            "The build ok",
        ),
        ("A\u{fe01}\u{fe02}B\u{fe0f}\u{e0155}".to_owned(), "AB"),
        (
            "😀\u{fe0f}\u{fe0f}\u{e0150}\u{e0151}".to_owned(),
            "😀\u{fe0f}",
        ),
        (
            "soft\u{ad}\u{ad}hyphens\u{ad}".to_owned(),
            "soft\u{ad}hyphens",
        ),
        ("1\u{fe0f}2".to_owned(), "12"),
        ("a\u{200e}b".to_owned(), "ab"),
        (
            "שלום \u{202e}abc\u{202c} \u{2066}x".to_owned(),
            "שלום abc x",
        ),
        ("a\u{180e}b\u{34f}c\u{61c}".to_owned(), "abc"),
    ];
    for (row, right) in rows {
        assert_eq!(cleaned(&row), right, "{row:?}");
    }
}

#[test]
fn terminal_sequences_go_and_words_stay() {
    let rows = [
        ("\u{1b}[2J\u{1b}[Hcleared", "cleared"),
        ("\u{1b}[31mred\u{1b}[0m", "red"),
        ("\u{1b}]0;title\u{7}ready", "ready"),
        (
            "\u{1b}]8;;https://evil.example\u{1b}\\link\u{1b}]8;;\u{1b}\\",
            "link",
        ),
        ("\u{9b}31mred", "red"),
        ("abc\u{8}\u{8}\u{8}xyz", "abcxyz"),
        ("bell\u{7} and nul\0 gone", "bell and nul gone"),
        ("10%\r20%\r\n", "10%\n20%\r\n"),
        ("a\r\r\nb", "a\r\nb"),
        ("a\r\u{1b}[Kb\r\u{1b}[K\nc", "a\nb\r\nc"),
        ("page\u{c}next", "page\nnext"),
        ("end \u{1b}]0;title", "end title"),
        ("\u{1b}\u{200b}[31m", "[31m"),
    ];
    for (row, right) in rows {
        assert_eq!(cleaned(row), right, "{row:?}");
    }
}

#[test]
fn a_range_of_the_view_has_its_place_in_the_text() {
    let text = "key \u{1b}[1mgh\u{200b}p_abc\u{1b}[0m end";
    let view = View::of(text);
    let at = view.text.find("ghp_abc").unwrap();
    let back = view.offsets.back(&(at..at + 7));
    assert_eq!(&text[back], "gh\u{200b}p_abc");
}

#[test]
fn counts_are_of_characters_and_sequences() {
    let view = View::of("a\u{200b}\u{200b}\u{200b}b\u{1b}[1m\u{1b}[2mc");
    let counts: Vec<_> = view.gaps.iter().map(|gap| (gap.label, gap.count)).collect();
    assert_eq!(counts, [(Some(INVISIBLE), 3), (Some(TERMINAL), 2)]);
}

proptest::proptest! {
    #[test]
    fn cleaning_twice_is_cleaning_once(
        text in "[a1 \n\r\u{1b}\\[\\]m;\u{7}\u{8}\u{9b}\u{ad}\u{200b}-\u{200f}\u{202a}-\u{202e}\u{2066}-\u{2069}\u{feff}\u{fe0e}\u{fe0f}\u{e0067}\u{e0062}\u{e0065}\u{e006e}\u{e007f}❤🏴👩न\u{94d}سא葛\u{e0100}\u{1160}\u{1100}]{0,40}"
    ) {
        let once = cleaned(&text);
        proptest::prop_assert_eq!(cleaned(&once), once);
    }
}
