//! What of a tag says that it is fetched or that nobody sees it.

use super::tag::Tag;

/// Relations that make a renderer fetch what they link.
pub(super) fn links_fetch(tag: &Tag) -> bool {
    let Some(relations) = tag.value("rel") else {
        return true;
    };
    let relations = relations.to_ascii_lowercase();
    [
        "stylesheet",
        "icon",
        "preload",
        "prefetch",
        "preconnect",
        "import",
        "manifest",
        "prerender",
        "dns",
    ]
    .iter()
    .any(|kind| relations.contains(kind))
}

/// Whether nobody sees the element.
pub(super) fn is_hidden(tag: &Tag) -> bool {
    let by_attribute = tag.attributes.iter().any(|attribute| {
        attribute.name == "hidden" && !attribute.value.eq_ignore_ascii_case("until-found")
    });
    let input = tag.name == "input"
        && tag
            .value("type")
            .is_some_and(|kind| kind.eq_ignore_ascii_case("hidden"));
    by_attribute || input || tag.name == "template" || tag.value("style").is_some_and(hides)
}

/// Whether declarations of a style make text unseen.
fn hides(style: &str) -> bool {
    let style: String = style
        .to_ascii_lowercase()
        .chars()
        .filter(|c| !c.is_whitespace())
        .collect();
    let style = style.replace("!important", "");
    let declarations: Vec<(&str, &str)> = style
        .split(';')
        .filter_map(|pair| pair.split_once(':'))
        .collect();
    let value = |name: &str| {
        declarations
            .iter()
            .rev()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| *value)
    };
    let zero = |name: &str| {
        value(name).is_some_and(|value| {
            let number: String = value
                .chars()
                .take_while(|c| c.is_ascii_digit() || *c == '.')
                .collect();
            number.parse::<f64>().is_ok_and(|number| number < 0.02)
                || (name == "font-size" && matches!(value, "1px" | "0.1em" | "1pt"))
        })
    };
    let away = [
        "left",
        "top",
        "text-indent",
        "right",
        "margin-left",
        "margin-top",
    ]
    .iter()
    .any(|name| {
        value(name).is_some_and(|value| {
            value.starts_with('-') && value.bytes().filter(u8::is_ascii_digit).count() >= 3
        })
    });
    let color = value("color");
    let ground = value("background-color").or(value("background"));
    value("display") == Some("none")
        || matches!(value("visibility"), Some("hidden" | "collapse"))
        || zero("opacity")
        || zero("font-size")
        || (zero("height") || zero("width") || zero("max-height") || zero("max-width"))
            && value("overflow") == Some("hidden")
        || away
        || value("clip").is_some_and(|clip| clip.starts_with("rect(0"))
        || value("clip-path").is_some_and(|clip| clip.contains("(100%") || clip.contains("(0)"))
        || value("transform").is_some_and(|transform| transform.contains("scale(0)"))
        || value("mso-hide") == Some("all")
        || matches!(color, Some("transparent"))
        || (color.is_some() && color == ground)
        || matches!(
            color,
            Some("white" | "#fff" | "#ffffff" | "rgb(255,255,255)")
        ) && ground.is_none()
}

/// Where a word stands, in any case of its letters.
pub(super) fn find_caseless(text: &str, word: &str) -> Option<usize> {
    let first = word.as_bytes().first()?.to_ascii_lowercase();
    let upper = first.to_ascii_uppercase();
    memchr::memchr2_iter(first, upper, text.as_bytes()).find(|at| {
        text.get(*at..at + word.len())
            .is_some_and(|part| part.eq_ignore_ascii_case(word))
    })
}
