//! Which URIs a template stands for (RFC 6570). Matching turns expansion round: the
//! literals must be there, and each expression takes what it could have become.
//! Values that a server did not encode are taken too, since many do not.

use std::fmt::Write as _;

use regex::{Regex, RegexBuilder};

/// Longest template that is read.
const LONGEST: usize = 2_048;
/// Bound of the compiled pattern.
const MOST_BYTES: usize = 256 << 10;

/// A template, ready to be held against URIs.
#[derive(Clone, Debug)]
pub(super) struct UriTemplate(Regex);

impl UriTemplate {
    /// `None` where it is no template.
    pub(super) fn new(template: &str) -> Option<Self> {
        if template.len() > LONGEST {
            return None;
        }
        let mut pattern = String::from("^");
        let mut rest = template;
        while let Some(open) = rest.find('{') {
            let (literal, tail) = rest.split_at(open);
            pattern.push_str(&regex::escape(literal));
            let close = tail.find('}')?;
            let expression = tail.get(1..close)?;
            write!(pattern, "{}", expanded(expression)?).ok()?;
            rest = tail.get(close + 1..)?;
        }
        if rest.contains('}') {
            return None;
        }
        pattern.push_str(&regex::escape(rest));
        pattern.push('$');
        let regex = RegexBuilder::new(&pattern)
            .size_limit(MOST_BYTES)
            .dot_matches_new_line(true)
            .build();
        regex.ok().map(Self)
    }

    /// Whether some values make this URI of it.
    pub(super) fn matches(&self, uri: &str) -> bool {
        self.0.is_match(uri)
    }
}

/// What an expression can become (RFC 6570 §3.2.1, Appendix A). Undefined values
/// expand to nothing, so all but plain ones may be empty.
fn expanded(expression: &str) -> Option<&'static str> {
    let names = expression.trim_start_matches(['+', '#', '.', '/', ';', '?', '&']);
    let named = |c: char| c.is_ascii_alphanumeric() || "_.%,:*-".contains(c);
    if names.is_empty() || !names.chars().all(named) || expression.len() - names.len() > 1 {
        return None;
    }
    Some(match expression.bytes().next() {
        Some(b'+') => ".*",
        Some(b'#') => "(?:#.*)?",
        Some(b'.') => r"(?:\.[^/?#]*)?",
        Some(b'/') => "(?:/[^?#]*)?",
        Some(b';') => "(?:;[^/?#]*)?",
        Some(b'?') => r"(?:\?[^#]*)?",
        Some(b'&') => "(?:&[^#]*)?",
        _ => "[^/?#]+",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_template_stands_for_what_it_can_become() {
        for (template, uri, fits) in [
            (
                "test://template/{id}/data",
                "test://template/123/data",
                true,
            ),
            (
                "test://template/{id}/data",
                "test://template/a%20b/data",
                true,
            ),
            ("test://template/{id}/data", "test://template//data", false),
            (
                "test://template/{id}/data",
                "test://template/1/2/data",
                false,
            ),
            (
                "test://template/{id}/data",
                "xtest://template/1/data",
                false,
            ),
            ("file:///{+path}", "file:///a/b?c#d", true),
            ("file://{/path*}", "file:///a/b", true),
            ("x://a{.ext}", "x://a.txt", true),
            ("x://a{.ext}", "x://a", true),
            ("x://a{?q,r*}", "x://a?q=1&r=2", true),
            ("x://a{?q}", "x://a", true),
            ("x://a{?q}", "x://ab", false),
            ("x://a?fixed=1{&q}", "x://a?fixed=1&q=2", true),
            ("x://a{#part}", "x://a#b/c", true),
            ("x://a{;k}", "x://a;k=v", true),
            ("x://{a,b:3}", "x://1,2", true),
            ("x://(.*){a}", "x://(.*)1", true),
            ("x://(.*){a}", "x://y1", false),
            ("plain://there", "plain://there", true),
        ] {
            let compiled = UriTemplate::new(template).unwrap();
            assert_eq!(compiled.matches(uri), fits, "{template} {uri}");
        }
        for bad in [
            "x://{",
            "x://}",
            "x://{}",
            "x://{++a}",
            "x://{a b}",
            "x://{=a}",
        ] {
            assert!(UriTemplate::new(bad).is_none(), "{bad}");
        }
    }
}
