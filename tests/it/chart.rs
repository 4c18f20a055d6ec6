//! The Helm chart: rendered by Helm itself, held against Kubernetes, and its
//! configuration and pod taken up by the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use super::support::config::{TOOLGATE, deployment_key, migrate};
use super::support::folder::Folder;
use super::support::login_idp::SECRET;
use super::support::postgres;
use super::support::process::{Outcome, Process, free_port};
use super::support::{Value, eventually, real};

/// Renders every value set once, and gives the folder of manifests with what the
/// check said of each set.
fn rendered() -> &'static (Folder, Vec<Value>) {
    static RENDERED: OnceLock<(Folder, Vec<Value>)> = OnceLock::new();
    RENDERED.get_or_init(|| {
        let project = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = Folder::new();
        let outcome = Outcome::of(
            Command::new(real::python())
                .arg(project.join("tests/chart/check.py"))
                .arg(project.join("helm/toolgate"))
                .arg(folder.path()),
        );
        let lines = outcome.stdout.lines();
        let said: Vec<Value> = lines
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert!(!said.is_empty(), "{outcome:?}");
        (folder, said)
    })
}

pub(super) fn manifest(set: &str, name: &str) -> Value {
    let path = rendered().0.path().join(set).join(format!("{name}.json"));
    serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The value sets.
fn sets() -> Vec<&'static str> {
    let said = rendered().1.iter();
    said.filter_map(|line| line["set"].as_str()).collect()
}

#[test]
fn every_value_set_renders_to_manifests_that_kubernetes_takes() {
    assert!(sets().len() >= 12, "{:?}", sets());
    for line in &rendered().1 {
        assert_eq!(line["faults"], serde_json::json!([]), "{line}");
    }
}

/// Every key of the configuration comes out as it was put in, and every value has a
/// comment and a schema.
#[test]
fn every_configuration_key_is_reachable_and_every_value_is_described() {
    for (title, least) in [("reached", 140), ("described", 100)] {
        let mut lines = rendered().1.iter();
        let line = lines.find(|line| line[title].is_number()).unwrap();
        assert!(line[title].as_u64().unwrap() >= least, "{line}");
    }
}

#[test]
fn values_that_cannot_work_are_refused_with_what_to_change() {
    let refused = rendered()
        .1
        .iter()
        .filter(|line| line["refused"].is_string());
    assert!(refused.count() >= 12);
}

/// The files that a pod finds at its mounts, beneath `root`; gives the mounts.
pub(super) fn mounts(
    pod: &Value,
    root: &Path,
    config: &str,
    url: &str,
) -> BTreeMap<String, PathBuf> {
    let volumes: BTreeMap<&str, &Value> = pod["volumes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|volume| (volume["name"].as_str().unwrap(), volume))
        .collect();
    let mut mounts = BTreeMap::new();
    for mount in pod["containers"][0]["volumeMounts"].as_array().unwrap() {
        let name = mount["name"].as_str().unwrap();
        let folder = root.join(name);
        fs::create_dir_all(&folder).unwrap();
        let volume = volumes[name];
        if volume["configMap"].is_object() && name == "config" {
            fs::write(folder.join("toolgate.yaml"), config).unwrap();
        }
        let items = volume["secret"]["items"].as_array().cloned();
        for item in items.unwrap_or_default() {
            let text = match name {
                "keys" => deployment_key(),
                "database" => url.to_owned(),
                "secret-idp" => SECRET.to_owned(),
                _ => "secret".to_owned(),
            };
            fs::write(folder.join(item["path"].as_str().unwrap()), text).unwrap();
        }
        mounts.insert(mount["mountPath"].as_str().unwrap().to_owned(), folder);
    }
    mounts
}

pub(super) fn config_of(set: &str) -> String {
    let map = manifest(set, "configmap-toolgate");
    map["data"]["toolgate.yaml"].as_str().unwrap().to_owned()
}

#[test]
fn every_rendered_configuration_passes_toolgate_check() {
    for set in sets() {
        let folder = Folder::new();
        let pod = &manifest(set, "deployment-toolgate")["spec"]["template"]["spec"];
        let config = config_of(set);
        let mut text = config.clone();
        // The same files at places that this machine has.
        for (place, files) in mounts(pod, folder.path(), &config, "postgres://h/d") {
            text = text.replace(&format!("{place}/"), &format!("{}/", files.display()));
        }
        fs::write(
            folder.path().join("ca.pem"),
            rcgen::generate_simple_self_signed(vec!["ca.example.com".to_owned()])
                .unwrap()
                .cert
                .pem(),
        )
        .unwrap();
        text = text.replace(
            "/etc/company/ca.pem",
            &folder.path().join("ca.pem").display().to_string(),
        );
        let file = folder.file("toolgate.yaml", &text);
        let outcome = Outcome::of(
            Command::new(TOOLGATE)
                .arg("check")
                .arg("--config")
                .arg(file),
        );
        assert_eq!(outcome.code, Some(0), "{set}: {outcome:?}\n{text}");
    }
}

#[test]
fn the_grace_period_covers_the_drain() {
    let grace = |set: &str| {
        manifest(set, "deployment-toolgate")["spec"]["template"]["spec"]["terminationGracePeriodSeconds"].clone()
    };
    assert_eq!(grace("minimal"), 50);
    assert_eq!(grace("autoscaling"), 155);
    assert_eq!(grace("load-balancer"), 120);
}

#[test]
fn every_alert_has_a_runbook_and_every_metric_exists() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let runbooks = fs::read_to_string(project.join("docs/operations.md")).unwrap();
    let rules = manifest("full", "prometheusrule-toolgate");
    let rules = rules["spec"]["groups"][0]["rules"].as_array().unwrap();
    assert!(rules.len() >= 9);
    for rule in rules {
        let alert = rule["alert"].as_str().unwrap();
        assert!(runbooks.contains(&format!("### {alert}\n")), "{alert}");
    }
    let disabled = manifest("monitored", "prometheusrule-toolgate").to_string();
    assert!(!disabled.contains("ToolgateLimited"));

    let names = fs::read_to_string(project.join("src/telemetry/names.rs")).unwrap();
    let own = fs::read_to_string(project.join("src/telemetry/metrics/process.rs")).unwrap();
    let dashboard = manifest("full", "configmap-toolgate-dashboard");
    let used = dashboard["data"]["toolgate.json"]
        .as_str()
        .unwrap()
        .to_owned()
        + &serde_json::to_string(rules).unwrap();
    let words = used.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let mut seen = 0;
    for word in words {
        let ours = ["toolgate_", "mcp_server_", "process_"];
        if !ours.iter().any(|start| word.starts_with(start)) {
            continue;
        }
        let mut name = word;
        for end in ["_bucket", "_sum", "_count", "_total", "_seconds", "_bytes"] {
            name = name.strip_suffix(end).unwrap_or(name);
        }
        let quoted = format!("\"{name}\"");
        assert!(
            names.contains(&quoted) || own.contains(name),
            "{word} is no metric"
        );
        seen += 1;
    }
    assert!(seen > 30, "{seen}");
}

#[test]
fn the_dashboard_is_what_its_code_makes() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR"));
    let outcome = Outcome::of(Command::new("python3").arg(project.join("helm/dashboard.py")));
    let kept = fs::read_to_string(project.join("helm/toolgate/files/dashboard.json")).unwrap();
    assert!(
        outcome.stdout == kept,
        "run helm/dashboard.py > helm/toolgate/files/dashboard.json"
    );
}

/// A script that makes a root like the image's (libraries, the program, the pod's
/// mounts, an empty /tmp), read-only, and runs the program in it as `OpenShift` would.
pub(super) fn container(root: &Path, mounts: &BTreeMap<String, PathBuf>) -> String {
    let mut lines = vec![
        "set -eu".to_owned(),
        "mount --make-rprivate /".to_owned(),
        format!(
            "root={}; mkdir $root; mount -t tmpfs tmpfs $root",
            root.display()
        ),
        "mkdir -p $root/proc $root/tmp $root/usr; touch $root/toolgate".to_owned(),
        "for part in /lib /lib64 /bin; do [ ! -L $part ] || cp -a $part $root$part; done"
            .to_owned(),
        "mount --bind -o ro /usr $root/usr; mount --bind /proc $root/proc".to_owned(),
        format!("mount --bind -o ro {TOOLGATE} $root/toolgate"),
    ];
    for (place, files) in mounts {
        if place == "/tmp" {
            lines.push("mount -t tmpfs -o size=64m,mode=1777 tmpfs $root/tmp".to_owned());
        } else {
            let files = files.display();
            lines.push(format!(
                "mkdir -p $root{place}; mount --bind -o ro {files} $root{place}"
            ));
        }
    }
    lines.push("mount -o remount,ro $root".to_owned());
    lines.push(
        "exec chroot $root setpriv --reuid=1000680000 --regid=0 --clear-groups --no-new-privs \
         --inh-caps=-all --bounding-set=-all env -i /toolgate \"$@\""
            .to_owned(),
    );
    lines.join("\n")
}

/// C34: the pod's own arguments and files, a root that cannot be written, a user id
/// without an account, no capability.
#[tokio::test]
async fn the_rendered_pod_runs_with_a_read_only_root_and_any_user_id() {
    let folder = Folder::new();
    let database = postgres::shared().database();
    migrate(&folder.path().join("migrate.yaml"), &database.url());
    let deployment = manifest("openshift", "deployment-toolgate");
    let pod = &deployment["spec"]["template"]["spec"];
    let (port, admin) = (free_port(), free_port());
    let config = config_of("openshift")
        .replace("0.0.0.0:8080", &format!("127.0.0.1:{port}"))
        .replace("0.0.0.0:9090", &format!("127.0.0.1:{admin}"));
    let mounts = mounts(
        pod,
        &folder.path().join("volumes"),
        &config,
        &database.url(),
    );
    let script = container(&folder.path().join("root"), &mounts);
    let args: Vec<String> = pod["containers"][0]["args"]
        .as_array()
        .unwrap()
        .iter()
        .map(|arg| arg.as_str().unwrap().to_owned())
        .collect();
    let mut process = Process::start(
        "pod",
        Command::new("unshare")
            .args(["--mount", "sh", "-c", &script, "pod"])
            .args(&args),
    );
    let ready = format!("http://127.0.0.1:{admin}/readyz");
    eventually("the pod to be ready", async || {
        let answer = reqwest::get(&ready).await.ok()?;
        answer.status().is_success().then_some(())
    })
    .await;
    let status = fs::read_to_string(format!("/proc/{}/status", process.id())).unwrap();
    let line = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace()
            .skip(1)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(line("Uid:"), "1000680000 1000680000 1000680000 1000680000");
    assert_eq!(line("CapEff:"), "0000000000000000");
    assert_eq!(line("CapBnd:"), "0000000000000000");
    assert_eq!(line("NoNewPrivs:"), "1");
    let mountinfo = fs::read_to_string(format!("/proc/{}/mountinfo", process.id())).unwrap();
    let root = mountinfo
        .lines()
        .find(|line| line.split(' ').nth(4) == Some("/"))
        .unwrap();
    assert!(root.split(' ').nth(5).unwrap().starts_with("ro"), "{root}");
    process.signal(nix::sys::signal::Signal::SIGTERM);
    let ended = process.wait(std::time::Duration::from_secs(20)).unwrap();
    assert!(ended.success(), "{ended:?}");
}
