//! Views, refreshes, collisions and reloads, with upstreams that say what a test
//! puts into their mouths.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use super::sample::json;
use super::*;
use crate::clock::SystemClock;
use crate::config::{self, Config, Pattern, Tenant, ToolRule};
use crate::credentials::Credentials;
use crate::ids::{TenantId, UpstreamId};
use crate::protocol::{Json, Untrusted, Version};
use crate::sanitize::Sanitizer;
use crate::upstream::{EventSender, Upstream, UpstreamError, UpstreamRequest};

/// An upstream whose list is what `pages` holds: a page by its cursor.
struct Puppet {
    id: UpstreamId,
    pages: Mutex<HashMap<String, String>>,
    down: AtomicBool,
    hangs: AtomicBool,
    asked: AtomicU32,
    ended: AtomicBool,
    changed: watch::Sender<u64>,
}

impl Puppet {
    fn new(id: &str, tools: &str) -> Arc<Self> {
        let puppet = Self {
            id: id.into(),
            pages: Mutex::default(),
            down: AtomicBool::new(false),
            hangs: AtomicBool::new(false),
            asked: AtomicU32::new(0),
            ended: AtomicBool::new(false),
            changed: watch::channel(0).0,
        };
        puppet.offers(tools);
        Arc::new(puppet)
    }

    /// `tools` are names, separated by blanks.
    fn offers(&self, tools: &str) {
        let tools: Vec<String> = tools.split_whitespace().map(definition).collect();
        self.page("", &format!(r#"{{"tools":[{}]}}"#, tools.join(",")));
    }

    fn page(&self, cursor: &str, result: &str) {
        let mut pages = self.pages.lock().unwrap();
        pages.insert(cursor.to_owned(), result.to_owned());
    }

    fn announce(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    fn asked(&self) -> u32 {
        self.asked.load(Ordering::SeqCst)
    }
}

fn definition(name: &str) -> String {
    format!(r#"{{"name":"{name}","inputSchema":{{"type":"object"}}}}"#)
}

/// What the catalogue holds of a puppet, so that it can be seen when it lets go.
struct Handle(Arc<Puppet>);

impl Upstream for Handle {
    fn id(&self) -> &UpstreamId {
        &self.0.id
    }

    fn version(&self) -> Option<Version> {
        Some(Version::MODERN)
    }

    fn request(
        &self,
        request: UpstreamRequest,
        _events: EventSender,
    ) -> BoxFuture<'_, Result<Untrusted<Json>, UpstreamError>> {
        assert_eq!(request.method, "tools/list");
        Box::pin(async move {
            self.0.asked.fetch_add(1, Ordering::SeqCst);
            tokio::time::sleep(Duration::from_millis(10)).await;
            if self.0.hangs.load(Ordering::SeqCst) {
                std::future::pending::<()>().await;
            }
            if self.0.down.load(Ordering::SeqCst) {
                return Err(UpstreamError::Unreachable);
            }
            let cursor = request.params.get("cursor");
            let cursor = cursor.and_then(|cursor| cursor.string().map(String::from));
            let pages = self.0.pages.lock().unwrap();
            let page = pages.get(&cursor.unwrap_or_default());
            let page = page.ok_or(UpstreamError::Garbage {
                what: "no such page",
            })?;
            Ok(Untrusted::new(json(page)))
        })
    }

    fn list_changed(&self) -> watch::Receiver<u64> {
        self.0.changed.subscribe()
    }

    fn shutdown(&self) -> BoxFuture<'_, ()> {
        self.0.ended.store(true, Ordering::SeqCst);
        Box::pin(async {})
    }
}

/// A catalogue with tenants `acme` and `globex`, over some puppets.
struct Stage {
    catalog: Arc<Catalog>,
    config: Config,
    puppets: HashMap<UpstreamId, Arc<Puppet>>,
}

impl Stage {
    fn new() -> Self {
        let mut config = Config::default();
        config.tenants.insert("acme".into(), Tenant::default());
        config.tenants.insert("globex".into(), Tenant::default());
        Self {
            catalog: Catalog::new(Arc::new(Sanitizer::new())),
            config,
            puppets: HashMap::new(),
        }
    }

    /// Adds an upstream; `more` is what stands beside its kind.
    fn add(&mut self, id: &str, tools: &str, more: &str) -> Arc<Puppet> {
        let comma = if more.is_empty() { "" } else { "," };
        let text = format!(r#"{{"mcp":{{"url":"https://{id}.example/mcp"}}{comma}{more}}}"#);
        let settings: config::Upstream = serde_json::from_str(&text).unwrap();
        self.config.upstreams.insert(id.into(), settings);
        let puppet = Puppet::new(id, tools);
        self.puppets.insert(id.into(), Arc::clone(&puppet));
        puppet
    }

    async fn apply(&self) {
        let credentials = Credentials::new(&self.config.upstreams, Arc::new(SystemClock)).unwrap();
        let build = |id: &UpstreamId, _: &config::Upstream| {
            let handle = Handle(Arc::clone(&self.puppets[id]));
            Ok::<_, Infallible>(Arc::new(handle) as Arc<dyn Upstream>)
        };
        let result = self
            .catalog
            .reconfigure(&self.config, Arc::new(credentials), build);
        result.await.unwrap();
    }

    fn run(&self) -> CancellationToken {
        let stop = CancellationToken::new();
        tokio::spawn(Arc::clone(&self.catalog).run(stop.clone()));
        stop
    }

    /// The tenant's tools as `name@upstream`.
    fn sees(&self, tenant: &str) -> String {
        let view = self.catalog.view(&TenantId::from(tenant));
        let tools = view.tools().iter();
        let tools: Vec<String> = tools
            .map(|tool| format!("{}@{}", tool.exposed, tool.upstream))
            .collect();
        tools.join(" ")
    }

    fn state(&self, id: &str) -> HealthState {
        let health = self.catalog.health();
        health
            .into_iter()
            .find(|(at, _)| at.as_str() == id)
            .unwrap()
            .1
            .state
    }
}

async fn wait(seconds: f64) {
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn each_tenant_sees_the_tools_of_its_upstreams_in_order_of_name() {
    let mut stage = Stage::new();
    stage.add("one", "zeta alpha", "");
    stage.add("two", "find", r#""prefix": "crm_", "tenants": ["acme"]"#);
    stage.add("three", "mid", r#""tenants": ["globex"]"#);
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "alpha@one crm_find@two zeta@one");
    assert_eq!(stage.sees("globex"), "alpha@one mid@three zeta@one");
    assert_eq!(stage.sees("nobody"), "");
    let view = stage.catalog.view(&"acme".into());
    assert_eq!(&*view.get("crm_find").unwrap().own_name, "find");
    assert!(view.get("find").is_none() && view.get("mid").is_none());
}

#[tokio::test(start_paused = true)]
async fn on_a_collision_the_earlier_upstream_wins_within_one_tenant() {
    let mut stage = Stage::new();
    stage.add("a-up", "search only_a", r#""tenants": ["acme"]"#);
    stage.add("g-up", "search only_g", r#""tenants": ["globex"]"#);
    stage.add("late", "search only_late", "");
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "only_a@a-up only_late@late search@a-up");
    assert_eq!(
        stage.sees("globex"),
        "only_g@g-up only_late@late search@g-up"
    );
    // What one tenant loses, another keeps.
    stage.puppets[&UpstreamId::from("a-up")].offers("only_a");
    stage.catalog.refresh(&"a-up".into()).await;
    assert_eq!(stage.sees("acme"), "only_a@a-up only_late@late search@late");
    assert_eq!(
        stage.sees("globex"),
        "only_g@g-up only_late@late search@g-up"
    );
}

#[tokio::test(start_paused = true)]
async fn all_pages_are_read_and_bad_definitions_fall_out_alone() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "", "");
    let bad = r#"{"name":"bad","inputSchema":{"$ref":"http://169.254.169.254/","type":"object"}}"#;
    puppet.page(
        "",
        &format!(
            r#"{{"tools":[{},{bad}],"nextCursor":"2\u0000"}}"#,
            definition("a")
        ),
    );
    puppet.page(
        "2\0",
        &format!(r#"{{"tools":[{},{},7]}}"#, definition("b"), definition("a")),
    );
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "a@up b@up");
    let (_, health) = stage.catalog.health().remove(0);
    let left_out: Vec<String> = health
        .left_out
        .iter()
        .map(|out| format!("{}: {}", out.name, out.reason))
        .collect();
    assert_eq!(left_out.len(), 3, "{left_out:?}");
    assert!(left_out[0].starts_with("\"bad\": inputSchema: the reference"));
    assert!(left_out[1].contains("stands twice"));
    assert_eq!(stage.state("up"), HealthState::Up);
}

#[tokio::test(start_paused = true)]
async fn endless_and_broken_lists_are_failures_and_no_list_means_no_tools() {
    for (page, state) in [
        (r#"{"tools":[],"nextCursor":""}"#, HealthState::Down),
        (r#"{"tools":{}}"#, HealthState::Down),
        ("{}", HealthState::Down),
        (r#"{"tools":[]}"#, HealthState::Up),
    ] {
        let mut stage = Stage::new();
        let puppet = stage.add("up", "", "");
        puppet.page("", page);
        stage.apply().await;
        assert_eq!(stage.state("up"), state, "{page}");
        assert!(puppet.asked() < 5);
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_of_endless_different_pages_is_cut() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "", "");
    for page in 0..300 {
        let cursor = if page == 0 {
            String::new()
        } else {
            format!("p{page}")
        };
        let tool = definition(&format!("t{page}"));
        puppet.page(
            &cursor,
            &format!(r#"{{"tools":[{tool}],"nextCursor":"p{}"}}"#, page + 1),
        );
    }
    stage.apply().await;
    assert_eq!(puppet.asked(), 100);
    assert_eq!(stage.catalog.view(&"acme".into()).tools().len(), 100);
}

#[tokio::test(start_paused = true)]
async fn an_announced_change_reaches_the_view_and_only_the_tenants_concerned() {
    let mut stage = Stage::new();
    let puppet = stage.add("one", "old", r#""tenants": ["acme"]"#);
    stage.add("two", "other", r#""tenants": ["globex"]"#);
    stage.apply().await;
    let _stop = stage.run();
    let (mut acme, mut globex) = (
        stage.catalog.changes(&"acme".into()),
        stage.catalog.changes(&"globex".into()),
    );
    let before = stage.catalog.view(&"acme".into());
    wait(1.0).await;
    puppet.offers("new");
    puppet.announce();
    acme.changed().await.unwrap();
    assert_eq!(stage.sees("acme"), "new@one");
    assert_ne!(
        stage.catalog.view(&"acme".into()).version(),
        before.version()
    );
    assert_eq!(
        before.tools().len(),
        1,
        "who holds the old view keeps it whole"
    );
    wait(5.0).await;
    assert!(!globex.has_changed().unwrap());
    // The same list announced again is no change.
    puppet.announce();
    wait(5.0).await;
    assert!(!acme.has_changed().unwrap());
    globex.mark_unchanged();
}

#[tokio::test(start_paused = true)]
async fn announcements_in_quick_succession_do_not_set_the_pace() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "a", "");
    stage.apply().await;
    let _stop = stage.run();
    for _ in 0..1000 {
        puppet.announce();
        wait(0.01).await;
    }
    assert!(puppet.asked() < 30, "{}", puppet.asked());
}

#[tokio::test(start_paused = true)]
async fn a_list_is_read_again_when_its_time_is_up() {
    for (page, first, then) in [
        (r#"{"tools":[],"ttlMs":60000}"#, 59.0, 2.0),
        (r#"{"tools":[]}"#, 19.0, 2.0),
        (r#"{"tools":[],"ttlMs":0}"#, 4.0, 2.0),
        (r#"{"tools":[],"ttlMs":86400000}"#, 599.0, 2.0),
    ] {
        let mut stage = Stage::new();
        let puppet = stage.add("up", "", r#""refresh": "20s""#);
        puppet.page("", page);
        stage.apply().await;
        let _stop = stage.run();
        wait(first).await;
        assert_eq!(puppet.asked(), 1, "{page}");
        wait(then).await;
        assert_eq!(puppet.asked(), 2, "{page}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_is_away_keeps_its_tools_for_a_while_and_harms_no_other() {
    let mut stage = Stage::new();
    let puppet = stage.add(
        "one",
        "mine",
        r#""refresh": "10s", "stale_for": "2m", "required": true"#,
    );
    stage.add("two", "other", "");
    stage.apply().await;
    let _stop = stage.run();
    assert_eq!(
        stage.catalog.view(&"acme".into()).ttl(),
        Duration::from_secs(10)
    );
    assert!(stage.catalog.missing().is_empty());
    puppet.down.store(true, Ordering::SeqCst);
    wait(60.0).await;
    assert_eq!(stage.sees("acme"), "mine@one other@two");
    assert_eq!(stage.state("one"), HealthState::Stale);
    assert_eq!(stage.catalog.missing(), ["one".into()]);
    assert_eq!(
        stage.catalog.view(&"acme".into()).ttl(),
        Duration::from_secs(5)
    );
    let asked = puppet.asked();
    wait(70.0).await;
    assert_eq!(stage.sees("acme"), "other@two");
    assert_eq!(stage.state("one"), HealthState::Down);
    assert!(puppet.asked() - asked < 5, "it is left alone between tries");
    puppet.down.store(false, Ordering::SeqCst);
    wait(61.0).await;
    assert_eq!(stage.sees("acme"), "mine@one other@two");
    assert_eq!(stage.state("one"), HealthState::Up);
}

#[tokio::test(start_paused = true)]
async fn an_upstream_that_hangs_holds_up_nobody() {
    let mut stage = Stage::new();
    let puppet = stage.add(
        "one",
        "mine",
        r#""timeout": { "connect": "5s", "call": "60s" }"#,
    );
    stage.add("two", "other", "");
    puppet.hangs.store(true, Ordering::SeqCst);
    let begun = tokio::time::Instant::now();
    stage.apply().await;
    assert!(begun.elapsed() < Duration::from_secs(11));
    assert_eq!(stage.sees("acme"), "other@two");
    assert_eq!(stage.state("one"), HealthState::Starting);
    let _stop = stage.run();
    wait(70.0).await;
    assert_eq!(stage.state("one"), HealthState::Down);
    puppet.hangs.store(false, Ordering::SeqCst);
    wait(70.0).await;
    assert_eq!(stage.sees("acme"), "mine@one other@two");
}

#[tokio::test(start_paused = true)]
async fn one_reading_serves_all_who_ask_before_it_begins() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "a", "");
    stage.apply().await;
    assert_eq!(puppet.asked(), 1);
    let id = UpstreamId::from("up");
    let all = (0..50).map(|_| stage.catalog.refresh(&id));
    futures_util::future::join_all(all).await;
    assert!(puppet.asked() <= 3, "{}", puppet.asked());
}

#[tokio::test(start_paused = true)]
async fn a_doubted_list_is_read_again_but_not_for_every_doubt() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "a", "");
    stage.apply().await;
    let _stop = stage.run();
    wait(10.0).await;
    puppet.offers("b");
    stage.catalog.suspect(&"up".into());
    wait(0.5).await;
    assert_eq!(stage.sees("acme"), "b@up");
    for _ in 0..15 {
        stage.catalog.suspect(&"up".into());
        wait(0.1).await;
    }
    assert_eq!(puppet.asked(), 2);
    stage.catalog.suspect(&"nobody".into());
}

#[tokio::test(start_paused = true)]
async fn a_reload_keeps_unchanged_upstreams_and_ends_those_that_are_no_more() {
    let mut stage = Stage::new();
    let kept = stage.add("kept", "a", "");
    let gone = stage.add("gone", "b", "");
    stage.apply().await;
    let _stop = stage.run();
    let running = stage.catalog.upstream(&"gone".into()).unwrap();
    stage.config.upstreams.shift_remove("gone");
    let fresh = stage.add("fresh", "c", "");
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "a@kept c@fresh");
    assert_eq!((kept.asked(), fresh.asked()), (1, 1));
    wait(5.0).await;
    assert!(!gone.ended.load(Ordering::SeqCst), "a call still holds it");
    drop(running);
    wait(1.0).await;
    assert!(gone.ended.load(Ordering::SeqCst));
    assert!(!kept.ended.load(Ordering::SeqCst));
    assert!(stage.catalog.upstream(&"gone".into()).is_none());
}

#[tokio::test(start_paused = true)]
async fn a_changed_connection_is_made_anew_and_read_before_it_is_shown() {
    let mut stage = Stage::new();
    let old = stage.add("up", "old", "");
    stage.apply().await;
    let new = stage.add("up", "new", r#""timeout": { "call": "7s" }"#);
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "new@up");
    assert_eq!((old.asked(), new.asked()), (1, 1));
    wait(1.0).await;
    assert!(old.ended.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn what_only_the_catalogue_reads_changes_without_a_new_connection() {
    let mut stage = Stage::new();
    let puppet = stage.add("up", "a", "");
    stage.apply().await;
    let settings = stage.config.upstreams.get_mut("up").unwrap();
    settings.prefix = "x_".to_owned();
    settings.tenants = Some(vec!["globex".into()]);
    stage.apply().await;
    assert_eq!(stage.sees("acme"), "");
    assert_eq!(stage.sees("globex"), "x_a@up");
    assert!(!puppet.ended.load(Ordering::SeqCst));
}

#[tokio::test(start_paused = true)]
async fn changed_rules_hold_at_once_and_tell_the_tenants_concerned() {
    let mut stage = Stage::new();
    stage.add("up", "a", "");
    stage.apply().await;
    let mut acme = stage.catalog.changes(&"acme".into());
    let mut globex = stage.catalog.changes(&"globex".into());
    let allow = config::Rule {
        name: Some(Pattern::new("*")),
        ..config::Rule::default()
    };
    stage
        .config
        .tenants
        .get_mut("acme")
        .unwrap()
        .tools
        .allow
        .push(allow);
    stage.apply().await;
    assert!(acme.has_changed().unwrap() && !globex.has_changed().unwrap());
    acme.mark_unchanged();
    stage.config.tools.push(ToolRule {
        name: Pattern::new("a"),
        scopes: Some(vec!["admin".into()]),
        limits: None,
        audit: None,
        timeout: None,
        idempotent: None,
    });
    stage.apply().await;
    let view = stage.catalog.view(&"acme".into());
    assert_eq!(view.get("a").unwrap().rule.scopes, ["admin".into()]);
    assert!(acme.has_changed().unwrap() && globex.has_changed().unwrap());
    stage.config.tenants.shift_remove("globex");
    stage.apply().await;
    globex.mark_unchanged();
    assert!(globex.changed().await.is_err(), "the tenant is no more");
    assert_eq!(stage.sees("globex"), "");
}

#[tokio::test(start_paused = true)]
async fn where_an_upstream_cannot_be_made_nothing_changes() {
    let mut stage = Stage::new();
    stage.add("up", "a", "");
    stage.apply().await;
    stage.add("broken", "b", "");
    stage.config.tenants.shift_remove("globex");
    let credentials = Credentials::new(&stage.config.upstreams, Arc::new(SystemClock)).unwrap();
    let refused = stage
        .catalog
        .reconfigure(&stage.config, Arc::new(credentials), |_, _| {
            Err("no such kind")
        });
    assert_eq!(refused.await, Err("no such kind"));
    assert_eq!(stage.sees("acme"), "a@up");
    assert_eq!(stage.sees("globex"), "a@up");
}

#[tokio::test(start_paused = true)]
async fn another_credential_means_another_list_at_once() {
    let file = std::env::temp_dir().join(format!("toolgate-catalog-{}", std::process::id()));
    std::fs::write(&file, "Bearer one").unwrap();
    let mut stage = Stage::new();
    let header = format!(
        r#""credentials":{{"header":{{"name":"Authorization","value_file":"{}"}}}}"#,
        file.display()
    );
    let puppet = stage.add("up", "a", &format!(r#""refresh":"10m",{header}"#));
    stage.apply().await;
    let _stop = stage.run();
    wait(5.0).await;
    assert_eq!(puppet.asked(), 1);
    // The configuration is read again, as after a rotation.
    std::fs::write(&file, "Bearer two").unwrap();
    stage.apply().await;
    wait(2.0).await;
    assert_eq!(puppet.asked(), 2);
    wait(10.0).await;
    assert_eq!(puppet.asked(), 2);
    std::fs::remove_file(file).unwrap();
}

#[tokio::test(start_paused = true)]
async fn the_end_ends_all_upstreams() {
    let mut stage = Stage::new();
    let puppets = [stage.add("one", "a", ""), stage.add("two", "b", "")];
    stage.apply().await;
    let stop = stage.run();
    wait(1.0).await;
    stop.cancel();
    stage.catalog.shutdown().await;
    assert!(
        puppets
            .iter()
            .all(|puppet| puppet.ended.load(Ordering::SeqCst))
    );
}

#[test]
fn views_are_the_same_however_an_upstream_orders_its_list() {
    let tool = |name: &str| sample::tool("up", name, r#"{"type":"object"}"#);
    let one = sample::view(vec![tool("b"), tool("a"), tool("c")]);
    let other = sample::view(vec![tool("c"), tool("b"), tool("a")]);
    assert_eq!(one.digest(), other.digest());
    let names = |view: &View| {
        view.tools()
            .iter()
            .map(|tool| tool.exposed.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(names(&one), ["a", "b", "c"]);
    assert_eq!(names(&one), names(&other));
}
