//! A browser, as far as a sign-in needs one: cookies, forms, redirects that are
//! followed one by one. What it does not have (rendering, a person) is tested with a
//! real one.

use std::collections::BTreeMap;
use std::sync::Mutex;

use regex::Regex;
use reqwest::header::{HeaderMap, SET_COOKIE};
use reqwest::{Method, StatusCode, Url};

use super::server::http_client;
use super::{Gateway, PATIENCE, kept};

/// A browser with cookies of its own.
#[derive(Debug)]
pub(crate) struct Browser {
    http: reqwest::Client,
    cookies: Mutex<BTreeMap<String, String>>,
}

/// Something that a server answered with.
#[derive(Clone, Debug)]
pub(crate) struct Page {
    /// Where.
    pub(crate) url: Url,
    /// The status.
    pub(crate) status: StatusCode,
    /// The headers.
    pub(crate) headers: HeaderMap,
    /// The body.
    pub(crate) body: String,
}

impl Browser {
    /// A fresh one.
    pub(crate) fn new() -> Self {
        Self {
            http: http_client(),
            cookies: Mutex::default(),
        }
    }

    /// The same cookies in another browser: stolen, or put back.
    pub(crate) fn copy(&self) -> Self {
        Self {
            http: http_client(),
            cookies: Mutex::new(self.cookies.lock().unwrap().clone()),
        }
    }

    /// The cookies.
    pub(crate) fn cookies(&self) -> BTreeMap<String, String> {
        self.cookies.lock().unwrap().clone()
    }

    /// Sets or forgets a cookie.
    pub(crate) fn set_cookie(&self, name: &str, value: Option<&str>) {
        let mut cookies = self.cookies.lock().unwrap();
        match value {
            Some(value) => cookies.insert(name.to_owned(), value.to_owned()),
            None => cookies.remove(name),
        };
    }

    /// Goes to an address.
    pub(crate) async fn get(&self, url: &str) -> Page {
        self.send(Method::GET, url, None, &[]).await
    }

    /// Sends a form with the headers that a browser would send from `origin`.
    pub(crate) async fn post(&self, url: &str, fields: &[(&str, &str)], origin: &str) -> Page {
        let headers = [("origin", origin), ("sec-fetch-site", "same-origin")];
        self.post_with(url, fields, &headers).await
    }

    /// Sends a form with exactly these headers.
    pub(crate) async fn post_with(
        &self,
        url: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Page {
        self.send(Method::POST, url, Some(fields), headers).await
    }

    /// Fills in the page's form and presses the button with this value.
    pub(crate) async fn press(&self, page: &Page, button: &str, fields: &[(&str, &str)]) -> Page {
        let form = page.form_with(button);
        let mut all: Vec<(&str, &str)> = Vec::new();
        for (name, value) in &form.fields {
            if !fields.iter().any(|(given, _)| given == name) {
                all.push((name, value));
            }
        }
        all.extend_from_slice(fields);
        if let Some((_, value)) = form.buttons.iter().find(|(_, value)| value == button)
            && !value.is_empty()
        {
            all.push(("decision", value));
        }
        let origin = page.url.origin().ascii_serialization();
        let action = page.url.join(&form.action).unwrap();
        self.post(action.as_str(), &all, &origin).await
    }

    /// Follows redirects until there is a page, or the way leaves for `stop`.
    pub(crate) async fn follow(&self, mut page: Page, stop: &str) -> Page {
        for _ in 0..10 {
            match page.location() {
                Some(to) if !to.starts_with(stop) => page = self.get(&to).await,
                _ => return page,
            }
        }
        panic!("too many redirects: {page:?}");
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        fields: Option<&[(&str, &str)]>,
        headers: &[(&str, &str)],
    ) -> Page {
        let mut request = self.http.request(method, url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let cookies = self.cookies();
        if !cookies.is_empty() {
            let pairs: Vec<String> = cookies.iter().map(|(n, v)| format!("{n}={v}")).collect();
            request = request.header("cookie", pairs.join("; "));
        }
        if let Some(fields) = fields {
            let mut body = form_urlencoded::Serializer::new(String::new());
            body.extend_pairs(fields);
            request = request
                .header("content-type", "application/x-www-form-urlencoded")
                .body(body.finish());
        }
        let answer = tokio::time::timeout(PATIENCE, request.send());
        let answer = answer.await.expect("an answer").expect("a connection");
        for line in answer.headers().get_all(SET_COOKIE) {
            let line = line.to_str().unwrap();
            let (name, rest) = line.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap();
            let gone = line.contains("Max-Age=0");
            self.set_cookie(name, (!gone).then_some(value));
            kept::secret("cookie", value);
        }
        let page = Page {
            url: answer.url().clone(),
            status: answer.status(),
            headers: answer.headers().clone(),
            body: answer.text().await.unwrap(),
        };
        kept::secrets_of(&page.body);
        if let Some(code) = page.sent("code") {
            kept::secret("code", &code);
        }
        page
    }
}

struct Form {
    action: String,
    fields: Vec<(String, String)>,
    buttons: Vec<(String, String)>,
}

impl Page {
    /// Where it sends the browser.
    pub(crate) fn location(&self) -> Option<String> {
        let location = self.headers.get("location")?.to_str().ok()?;
        Some(self.url.join(location).unwrap().into())
    }

    /// A parameter of where it sends the browser.
    pub(crate) fn sent(&self, name: &str) -> Option<String> {
        let location = Url::parse(&self.location()?).unwrap();
        let mut pairs = location.query_pairs();
        pairs.find(|(n, _)| n == name).map(|(_, v)| v.into_owned())
    }

    /// A header.
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    /// The text that a person reads, without mark-up.
    pub(crate) fn text(&self) -> String {
        let text = Regex::new("<[^>]*>").unwrap().replace_all(&self.body, " ");
        let words: Vec<&str> = text.split_whitespace().collect();
        unescape(&words.join(" "))
    }

    /// A hidden field.
    pub(crate) fn field(&self, name: &str) -> String {
        let fields = self.forms().into_iter().flat_map(|form| form.fields);
        let mut values = fields.filter(|(n, _)| n == name).map(|(_, value)| value);
        values
            .next()
            .unwrap_or_else(|| panic!("no field {name} in {}", self.body))
    }

    fn form_with(&self, button: &str) -> Form {
        let mut forms = self.forms().into_iter();
        let form = forms.find(|form| form.buttons.iter().any(|(_, value)| value == button));
        form.unwrap_or_else(|| {
            panic!(
                "no button {button:?} at {} ({}): {}",
                self.url,
                self.status,
                self.text()
            )
        })
    }

    fn forms(&self) -> Vec<Form> {
        let form = Regex::new(r#"(?s)<form[^>]*action="([^"]*)"[^>]*>(.*?)</form>"#).unwrap();
        let input = Regex::new(r"<input([^>]*)>").unwrap();
        let button = Regex::new(r"<button([^>]*)>").unwrap();
        let attribute = |tag: &str, name: &str| {
            let attribute = Regex::new(&format!(r#" {name}="([^"]*)""#)).unwrap();
            attribute.captures(tag).map(|found| unescape(&found[1]))
        };
        form.captures_iter(&self.body)
            .map(|form| Form {
                action: unescape(&form[1]),
                fields: input
                    .captures_iter(&form[2])
                    .filter(|tag| {
                        let kind = attribute(&tag[1], "type").unwrap_or_default();
                        !matches!(&*kind, "checkbox" | "radio") || tag[1].contains("checked")
                    })
                    .filter_map(|tag| {
                        let value = attribute(&tag[1], "value").unwrap_or_default();
                        Some((attribute(&tag[1], "name")?, value))
                    })
                    .collect(),
                buttons: button
                    .captures_iter(&form[2])
                    .map(|tag| {
                        let value = |name| attribute(&tag[1], name).unwrap_or_default();
                        (value("name"), value("value"))
                    })
                    .collect(),
            })
            .collect()
    }
}

fn unescape(text: &str) -> String {
    text.replace("&#60;", "<")
        .replace("&#62;", ">")
        .replace("&#34;", "\"")
        .replace("&#39;", "'")
        .replace("&quot;", "\"")
        .replace("&#38;", "&")
        .replace("&amp;", "&")
}

/// What a client asks a browser to open.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    /// The parameters.
    pub(crate) parameters: Vec<(String, String)>,
    base: String,
}

/// The verifier whose challenge is in every [`Ask`].
pub(crate) const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

impl Ask {
    /// A good request of a client with this redirect for `/mcp`.
    pub(crate) fn new(gateway: &Gateway, client: &str, redirect_uri: &str) -> Self {
        Self::at(gateway.url(), client, redirect_uri)
    }

    /// The same of whatever server is at `base`.
    pub(crate) fn at(base: &str, client: &str, redirect_uri: &str) -> Self {
        let fields = [
            ("response_type", "code"),
            ("client_id", client),
            ("redirect_uri", redirect_uri),
            ("state", "state-of-the-client"),
            (
                "code_challenge",
                "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
            ),
            ("code_challenge_method", "S256"),
        ];
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Self {
            parameters: fields.map(owned).to_vec(),
            base: base.to_owned(),
        }
    }

    /// With a parameter set anew.
    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.parameters.retain(|(known, _)| known != name);
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Without a parameter.
    pub(crate) fn without(mut self, name: &str) -> Self {
        self.parameters.retain(|(known, _)| known != name);
        self
    }

    /// With a parameter beside what there is of that name.
    pub(crate) fn and(mut self, name: &str, value: &str) -> Self {
        self.parameters.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The address.
    pub(crate) fn url(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.extend_pairs(&self.parameters);
        format!("{}/oauth/authorize?{}", self.base, query.finish())
    }
}
