use super::*;

fn read(text: &str) -> Option<String> {
    Reading::of(text).map(|reading| reading.text)
}

#[test]
fn every_encoding_is_read_in_its_company() {
    let rows = [
        ("mail a%40b.test now", "mail a@b.test now"),
        ("a&#64;b &#x41;&commat;", "a@b A@"),
        (r"{\u0022k\u0022: \u0061\x62}", "{\"k\": ab}"),
        (r"\\u0040 and \\\\u0041", "@ and A"),
        (
            "config b64: cGFzc3dvcmQ9aHVudGVyMg== end",
            "config b64: password=hunter2 end",
        ),
        (
            "hex 70617373776f72643d68756e74657232;",
            "hex password=hunter2;",
        ),
        ("it g h p _ A 1 b 2 C 3 d 4 end", "it ghp_A1b2C3d4 end"),
        // Twice.
        ("a%2540b", "a@b"),
        ("cGFzc3dvcmQlM0RodW50ZXIy", "password=hunter2"),
    ];
    for (text, right) in rows {
        assert_eq!(read(text).as_deref(), Some(right), "{text}");
    }
}

#[test]
fn plain_text_has_no_other_reading() {
    for text in [
        "",
        "100 % of 5% and 20%off",
        "a & b && c &unknown; AT&T",
        r"C:\users\new \d+ \n",
        "ecd34ac26384ba13d09cf0ae32a5ee89e04e65f7",
        "MDEwOlJlcG9zaXRvcnkAMTg2ODUzMDAy",
        "Codertocat/Hello/World/and/more/of/it",
        "a b c d e f",
        "internationalisation",
    ] {
        assert_eq!(read(text), None, "{text}");
    }
}

#[test]
fn ranges_lead_back_through_both_layers() {
    let text = "x a%2540b y";
    let reading = Reading::of(text).unwrap();
    let at = reading.text.find("a@b").unwrap();
    let back = reading.back(&(at..at + 3));
    assert_eq!(&text[back], "a%2540b");
    assert!(reading.was_encoded(&(at..at + 3)));
    assert!(!reading.was_encoded(&(0..1)));
    let text = "k cGFzc3dvcmQ9aHVudGVyMg== z";
    let reading = Reading::of(text).unwrap();
    let at = reading.text.find("hunter2").unwrap();
    assert_eq!(
        &text[reading.back(&(at..at + 7))],
        "cGFzc3dvcmQ9aHVudGVyMg=="
    );
}
