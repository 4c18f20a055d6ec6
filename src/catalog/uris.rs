//! Under which URIs callers see what upstreams offer (`rules.md` §3.6), and where
//! URIs stand in what upstreams say.
//!
//! With `prefix` the upstream's id stands in the URI, behind the scheme, which
//! stays: `docs://{id}/a` for `docs://a`, `urn:{id}/isbn:1` for `urn:isbn:1`. A
//! scheme says what a client may do with a URI (`ui://`, `https://`), so it is no
//! place to keep anything.

use crate::config::ResourceUris;
use crate::ids::UpstreamId;
use crate::protocol::Json;
use crate::protocol::json::{ArrayBuilder, Kind, ObjectBuilder};

/// Where a resource is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The URI that the caller used.
    pub exposed: String,
    /// The upstream's own.
    pub own: String,
    /// Whose it is.
    pub upstream: UpstreamId,
}

/// How one upstream's URIs are exposed.
#[derive(Clone, Copy, Debug)]
pub struct Uris<'a> {
    mode: ResourceUris,
    upstream: &'a UpstreamId,
}

impl<'a> Uris<'a> {
    /// Those of `upstream`.
    pub fn new(mode: ResourceUris, upstream: &'a UpstreamId) -> Self {
        Self { mode, upstream }
    }

    /// The URI, or template of URIs, that callers see.
    pub fn exposed(self, own: &str) -> String {
        match (self.mode, split(own)) {
            (ResourceUris::Prefix, Some((scheme, rest))) => {
                format!("{scheme}{}/{rest}", self.upstream)
            }
            _ => own.to_owned(),
        }
    }

    /// The definition of a tool, whose `_meta` names a user interface (the apps
    /// extension: `ui.resourceUri`, once `ui/resourceUri`).
    pub(super) fn definition(self, json: &Json) -> Json {
        let Some(meta) = json
            .get("_meta")
            .filter(|_| self.mode == ResourceUris::Prefix)
        else {
            return json.clone();
        };
        let mut new = meta.clone();
        if let Some(ui) = meta.get("ui").filter(Json::is_object)
            && let Some(uri) = text(&ui, "resourceUri")
        {
            let ui = ui.with_member("resourceUri", &Json::from_text(&self.exposed(&uri)));
            new = new.with_member("ui", &ui);
        }
        if let Some(uri) = text(&meta, "ui/resourceUri") {
            new = new.with_member("ui/resourceUri", &Json::from_text(&self.exposed(&uri)));
        }
        json.with_member("_meta", &new)
    }

    /// A result with the URIs that callers use. `seen` hears each of them.
    pub fn result(self, json: &Json, seen: &mut dyn FnMut(&str)) -> Json {
        if !json.as_str().contains("\"uri\"") && !json.as_str().contains("resourceUri") {
            return json.clone();
        }
        let mut change = |own: &str| {
            let exposed = self.exposed(own);
            seen(&exposed);
            (self.mode == ResourceUris::Prefix).then_some(exposed)
        };
        let json = links(json, &mut change).unwrap_or_else(|| json.clone());
        self.definition(&json)
    }
}

/// The upstream that a prefixed URI names, and that upstream's own URI.
pub(super) fn unprefixed(exposed: &str) -> Option<(&str, String)> {
    let (scheme, rest) = split(exposed)?;
    let (upstream, rest) = rest.split_once('/')?;
    Some((upstream, format!("{scheme}{rest}")))
}

/// The scheme with its colon, and `//` where it has them; then the rest.
fn split(uri: &str) -> Option<(&str, &str)> {
    let colon = uri.find(':')?;
    let in_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    if colon == 0 || !uri.get(..colon)?.chars().all(in_scheme) {
        return None;
    }
    let slashes = if uri.get(colon + 1..)?.starts_with("//") {
        2
    } else {
        0
    };
    uri.split_at_checked(colon + 1 + slashes)
}

fn text(json: &Json, key: &str) -> Option<String> {
    json.get(key)?.string().map(Into::into)
}

/// Visits the links and embedded resources of a result (`content`, `contents`,
/// `messages`, the members of a task's `result`), and writes it anew where a visit gave another URI.
fn links(json: &Json, visit: &mut dyn FnMut(&str) -> Option<String>) -> Option<Json> {
    let mut changed = false;
    let mut out = ObjectBuilder::with_capacity(json.as_str().len() + 64);
    for (key, value) in json.members() {
        let new = match (&*key, value.kind()) {
            ("content" | "contents" | "messages", Kind::Array) => blocks(&value, visit),
            ("content", Kind::Object) => block(&value, visit),
            ("result", Kind::Object) => links(&value, visit),
            _ => None,
        };
        changed |= new.is_some();
        out = out.json(&key, new.as_ref().unwrap_or(&value));
    }
    changed.then(|| out.build())
}

fn blocks(list: &Json, visit: &mut dyn FnMut(&str) -> Option<String>) -> Option<Json> {
    let mut changed = false;
    let mut out = ArrayBuilder::new();
    for element in list.elements() {
        let new = block(&element, visit);
        changed |= new.is_some();
        out.push(new.as_ref().unwrap_or(&element));
    }
    changed.then(|| out.build())
}

/// A link, an embedded resource, the contents of one, or a message that holds one.
fn block(json: &Json, visit: &mut dyn FnMut(&str) -> Option<String>) -> Option<Json> {
    if let Some(uri) = text(json, "uri") {
        let new = visit(&uri)?;
        return Some(json.with_member("uri", &Json::from_text(&new)));
    }
    for inner in ["resource", "content"] {
        match json.get(inner) {
            Some(value) if value.is_object() => {
                return block(&value, visit).map(|new| json.with_member(inner, &new));
            }
            Some(value) if value.kind() == Kind::Array => {
                return blocks(&value, visit).map(|new| json.with_member(inner, &new));
            }
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn up() -> UpstreamId {
        UpstreamId::from("up")
    }

    #[test]
    fn a_prefixed_uri_leads_back_to_its_upstream() {
        let up = up();
        let uris = Uris::new(ResourceUris::Prefix, &up);
        for (own, exposed) in [
            ("docs://a/b", "docs://up/a/b"),
            ("file:///etc/x", "file://up//etc/x"),
            ("urn:isbn:1", "urn:up/isbn:1"),
            ("ui://w.html", "ui://up/w.html"),
            ("x://{+path}", "x://up/{+path}"),
        ] {
            assert_eq!(uris.exposed(own), exposed);
            assert_eq!(unprefixed(exposed), Some(("up", own.to_owned())));
        }
        assert_eq!(uris.exposed("no uri"), "no uri");
        assert_eq!(
            Uris::new(ResourceUris::Keep, &up).exposed("docs://a"),
            "docs://a"
        );
    }

    #[test]
    fn links_are_found_wherever_results_have_them() {
        let json = Json::from_value(&serde_json::json!({
            "content": [
                {"type": "resource_link", "uri": "a://1"},
                {"type": "resource", "resource": {"uri": "a://2", "text": "uri"}},
                {"type": "text", "text": "a://no"},
            ],
            "contents": [{"uri": "a://3"}],
            "messages": [{"role": "user", "content": {"type": "resource", "resource": {"uri": "a://4"}}}],
            "_meta": {"ui": {"resourceUri": "ui://w"}},
        }));
        let up = up();
        let mut seen = Vec::new();
        let kept =
            Uris::new(ResourceUris::Keep, &up).result(&json, &mut |uri| seen.push(uri.to_owned()));
        assert_eq!(kept.as_str(), json.as_str());
        assert_eq!(seen, ["a://1", "a://2", "a://3", "a://4"]);
        let prefixed = Uris::new(ResourceUris::Prefix, &up).result(&json, &mut |_| {});
        for wanted in [
            "a://up/1",
            "a://up/2",
            "a://up/3",
            "a://up/4",
            "ui://up/w",
            "a://no",
        ] {
            assert!(prefixed.as_str().contains(wanted), "{wanted}");
        }
    }
}
