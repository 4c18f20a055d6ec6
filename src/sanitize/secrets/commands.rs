//! Secrets of command lines, signed URLs and key files, where neither a name nor a
//! form of its own tells them.

use std::ops::Range;

use super::judge;

/// How far back the command itself may stand.
pub(super) const LINE: usize = 160;

fn word(text: &str, at: usize) -> Range<usize> {
    let rest = text.get(at..).unwrap_or_default();
    let quote = rest.chars().next().filter(|c| matches!(c, '\'' | '"'));
    let start = at + quote.map_or(0, char::len_utf8);
    let rest = text.get(start..).unwrap_or_default();
    let len = rest
        .find(|c: char| match quote {
            Some(quote) => c == quote || c == '\n',
            None => c.is_whitespace() || matches!(c, '\'' | '"' | '`' | '<' | '>' | '|' | ';'),
        })
        .unwrap_or(rest.len());
    start..start + len.min(LINE)
}

/// Whether one of the commands stands before `at` on its line.
fn is_behind(text: &str, at: usize, commands: &[&str]) -> bool {
    let from = text.ceil_char_boundary(at.saturating_sub(LINE));
    let head = text.get(from..at).unwrap_or_default();
    let line = head.rsplit('\n').next().unwrap_or_default();
    commands.iter().any(|command| line.contains(command))
}

/// The password behind `-u user:password` of a web client, or behind `-p` of a
/// command that takes one there.
pub(super) fn flag_password(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let value = word(text, end);
    let range = if text.get(start..end)? == " -u " {
        if !is_behind(text, start, &["curl", "wget", "http"]) {
            return None;
        }
        let colon = text.get(value.clone())?.find(':')?;
        value.start + colon + 1..value.end
    } else if is_behind(
        text,
        start,
        &[
            "docker login",
            "sshpass",
            "mysql",
            "mariadb",
            "podman login",
        ],
    ) {
        value
    } else {
        return None;
    };
    judge::is_password(text.get(range.clone())?).then_some(range)
}

/// The signature of a signed URL of Azure's: with it anybody may do what it says.
pub(super) fn url_signature(text: &str, start: usize, end: usize) -> Option<Range<usize>> {
    let before = text.as_bytes().get(start.checked_sub(1)?)?;
    let rest = text.as_bytes().get(end..)?;
    let len = rest
        .iter()
        .take(128)
        .take_while(|b| {
            b.is_ascii_alphanumeric() || matches!(b, b'%' | b'+' | b'/' | b'=' | b'_' | b'-')
        })
        .count();
    let range = end..end + len;
    let value = text.get(range.clone())?;
    (matches!(before, b'?' | b'&' | b';') && len >= 40 && judge::is_varied(value)).then_some(range)
}

/// The lines of a private key in `PuTTY`'s own format.
pub(super) fn putty_lines(text: &str, end: usize) -> Option<Range<usize>> {
    let head = text.get(..end)?;
    let from = text.ceil_char_boundary(end.saturating_sub(4096));
    if !head.get(from..)?.contains("PuTTY-User-Key-File") {
        return None;
    }
    let rest = text.as_bytes().get(end..)?;
    let count = rest
        .iter()
        .take(16 << 10)
        .take_while(|b| {
            b.is_ascii_alphanumeric() || b.is_ascii_whitespace() || matches!(b, b'+' | b'/' | b'=')
        })
        .count();
    let body = text.get(end..end + count)?;
    // The next header's name was taken along.
    let stop = body.find("Private").unwrap_or(body.len());
    let body = body.get(..stop)?.trim_end();
    (body.len() >= 40).then(|| end..end + body.len())
}

/// A bot's token within some bytes of its provider's name.
pub(super) fn discord_near(text: &str, end: usize) -> Option<Range<usize>> {
    let bytes = text.as_bytes().get(end..)?;
    let bytes = bytes.get(..LINE).unwrap_or(bytes);
    let is_part = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.');
    let mut at = 0;
    while at < bytes.len() {
        let rest = bytes.get(at..).unwrap_or_default();
        let len = rest.iter().take_while(|b| is_part(**b)).count();
        let value = text.get(end + at..end + at + len)?;
        let token = value.trim_end_matches('.');
        if super::is_discord_token(token) {
            return Some(end + at..end + at + token.len());
        }
        at += len + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_of_command_lines_are_found() {
        let password = |text: &str| {
            let at = text.find(" -u ").or(text.find(" -p ")).unwrap();
            flag_password(text, at, at + 4).map(|range| text[range].to_owned())
        };
        assert_eq!(
            password("curl -u app:h0FAx9 https://x").as_deref(),
            Some("h0FAx9")
        );
        assert_eq!(password("docker login -p 'h0 FA'"), None);
        assert_eq!(
            password("docker login -p h0FAx9").as_deref(),
            Some("h0FAx9")
        );
        assert_eq!(password("mkdir -p a/b/c9"), None);
        assert_eq!(password("curl -u $USER:$PASS x"), None);
        assert_eq!(password("sudo -u app:x9x9 ls"), None);
    }

    #[test]
    fn signatures_of_urls_are_found() {
        let url = "https://a.blob.core.windows.net/c/b?sv=2022-11-02&sig=3kX9vQ2mN7pR5tY8wZ1aB4cD6eF0gH%2BjK8lM2nO4pQ%3D";
        let at = url.find("sig=").unwrap();
        assert_eq!(
            &url[url_signature(url, at, at + 4).unwrap()],
            &url[at + 4..]
        );
        assert_eq!(
            url_signature(
                "config=aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                3,
                7
            ),
            None
        );
    }
}
