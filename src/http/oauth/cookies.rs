//! Cookies. Over https each is `__Host-`: only this host sets it, for all paths,
//! over TLS alone (RFC 6265bis §4.1.3.2). `Lax`, because the way back from an
//! identity provider is a navigation from elsewhere.

use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::Response;

/// Longest cookie that browsers keep, with its name (RFC 6265 §6.1).
pub(super) const MAX_COOKIE: usize = 4000;

/// The cookies that a browser sent.
pub(super) struct Cookies {
    prefix: &'static str,
    all: Vec<(String, String)>,
}

/// The cookies that an answer sets.
#[derive(Default)]
pub(super) struct Jar {
    secure: bool,
    lines: Vec<String>,
}

impl Cookies {
    pub(super) fn of(headers: &HeaderMap, secure: bool) -> Self {
        let lines = headers.get_all(header::COOKIE).iter();
        let pairs = lines
            .filter_map(|line| line.to_str().ok())
            .flat_map(|line| line.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        Self {
            prefix: prefix(secure),
            all: pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
        }
    }

    /// The value of a cookie. Of several of one name (another path's, another
    /// domain's: not ours) none.
    pub(super) fn get(&self, name: &str) -> Option<&str> {
        let name = format!("{}{name}", self.prefix);
        let mut values = self.all.iter().filter(|(known, _)| *known == name);
        let (_, value) = values.next()?;
        values.next().is_none().then_some(value)
    }

    /// The rest of the names of cookies that begin so.
    pub(super) fn beginning(&self, name: &str) -> Vec<String> {
        let start = format!("{}{name}", self.prefix);
        let names = self.all.iter();
        names
            .filter_map(|(known, _)| known.strip_prefix(&start).map(str::to_owned))
            .collect()
    }
}

impl Jar {
    pub(super) fn new(secure: bool) -> Self {
        Self {
            secure,
            lines: Vec::new(),
        }
    }

    /// Sets a cookie; without `seconds` until the browser is closed.
    pub(super) fn set(&mut self, name: &str, value: &str, seconds: Option<i64>) {
        let secure = if self.secure { "; Secure" } else { "" };
        let age = seconds.map_or_else(String::new, |age| format!("; Max-Age={age}"));
        let prefix = prefix(self.secure);
        self.lines.push(format!(
            "{prefix}{name}={value}; Path=/{age}; HttpOnly; SameSite=Lax{secure}"
        ));
    }

    /// Forgets a cookie.
    pub(super) fn forget(&mut self, name: &str) {
        self.set(name, "", Some(0));
    }

    /// Puts all of them on an answer.
    pub(super) fn onto(self, mut response: Response) -> Response {
        for line in self.lines {
            if let Ok(line) = HeaderValue::from_str(&line) {
                response.headers_mut().append(header::SET_COOKIE, line);
            }
        }
        response
    }
}

fn prefix(secure: bool) -> &'static str {
    if secure { "__Host-" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cookies(lines: &[&str], secure: bool) -> Cookies {
        let mut headers = HeaderMap::new();
        for line in lines {
            headers.append(header::COOKIE, line.parse().unwrap());
        }
        Cookies::of(&headers, secure)
    }

    #[test]
    fn over_https_only_cookies_that_nobody_else_can_set_are_read() {
        let lines = ["a=1; __Host-a=2", "__Host-b=3; __Host-b=4"];
        let (plain, secure) = (cookies(&lines, false), cookies(&lines, true));
        assert_eq!((plain.get("a"), secure.get("a")), (Some("1"), Some("2")));
        assert_eq!(secure.get("b"), None, "of two of one name none");
        assert_eq!(secure.get("c"), None);
        assert_eq!(secure.beginning("").len(), 3);
    }

    #[test]
    fn a_cookie_is_for_this_host_alone() {
        let mut jar = Jar::new(true);
        jar.set("a", "1", Some(60));
        jar.forget("b");
        let response = jar.onto(Response::default());
        let lines: Vec<&HeaderValue> = response
            .headers()
            .get_all(header::SET_COOKIE)
            .iter()
            .collect();
        assert_eq!(
            lines,
            [
                "__Host-a=1; Path=/; Max-Age=60; HttpOnly; SameSite=Lax; Secure",
                "__Host-b=; Path=/; Max-Age=0; HttpOnly; SameSite=Lax; Secure"
            ]
        );
    }
}
