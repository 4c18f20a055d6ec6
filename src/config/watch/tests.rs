//! Watching real files.

use super::*;
use crate::config::load;
use crate::config::test_folder::TestFolder;

fn yaml(tenant: &str) -> Vec<u8> {
    format!("database: {{ embedded: {{ data_dir: d }} }}\ntenants: {{ {tenant}: {{}} }}\n")
        .into_bytes()
}

fn watch(path: &Path) -> (Watch, CancellationToken) {
    let running = load(path, &Environment::default()).unwrap();
    let stop = CancellationToken::new();
    (Watch::start(&running, Environment::default(), &stop), stop)
}

async fn next(watch: &mut Watch) -> Option<Change> {
    tokio::time::timeout(Duration::from_secs(20), watch.recv())
        .await
        .unwrap()
}

fn tenant(change: Option<Change>) -> String {
    let loaded = change.unwrap().unwrap();
    loaded.config.tenants.keys().next().unwrap().to_string()
}

#[tokio::test]
async fn a_changed_file_comes_out_loaded_and_a_wrong_one_as_its_faults() {
    let folder = TestFolder::new();
    let path = folder.write("t.yaml", &yaml("one"));
    let (mut watch, _stop) = watch(&path);
    folder.write("t.yaml", &yaml("two"));
    assert_eq!(tenant(next(&mut watch).await), "two");
    folder.write("t.yaml", b"tenantz: {}");
    let faults = next(&mut watch).await.unwrap().unwrap_err();
    assert!(faults.to_string().contains("did you mean `tenants`?"));
    // As editors do: a new file in the place of the old one.
    let new = folder.write("t.yaml.new", &yaml("three"));
    std::fs::rename(new, &path).unwrap();
    assert_eq!(tenant(next(&mut watch).await), "three");
    std::fs::remove_file(&path).unwrap();
    let faults = next(&mut watch).await.unwrap().unwrap_err();
    assert!(faults.to_string().ends_with("does not exist"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_swapped_link_above_the_file_is_a_change() {
    use std::os::unix::fs::symlink;

    let folder = TestFolder::new();
    for (version, content) in [("v1", "one"), ("v2", "two"), ("v3", "three")] {
        std::fs::create_dir(folder.path().join(version)).unwrap();
        folder.write(&format!("{version}/t.yaml"), &yaml(content));
    }
    let path = folder.path().join("t.yaml");
    let data = folder.path().join("..data");
    symlink("v1", &data).unwrap();
    symlink("..data/t.yaml", &path).unwrap();
    let (mut watch, _stop) = watch(&path);
    for (version, content) in [("v2", "two"), ("v3", "three")] {
        let swapped = folder.path().join("..data_tmp");
        symlink(version, &swapped).unwrap();
        std::fs::rename(swapped, &data).unwrap();
        assert_eq!(tenant(next(&mut watch).await), content);
    }
}

#[tokio::test]
async fn content_that_was_seen_is_not_reported_again() {
    let folder = TestFolder::new();
    let path = folder.write("t.yaml", &yaml("one"));
    let (mut watch, _stop) = watch(&path);
    folder.write("t.yaml", &yaml("one"));
    folder.write("other", b"x");
    tokio::time::timeout(QUIET * 4, watch.recv())
        .await
        .unwrap_err();
    folder.write("t.yaml", &yaml("two"));
    assert_eq!(tenant(next(&mut watch).await), "two");
}

#[tokio::test]
async fn a_cancelled_watch_ends() {
    let folder = TestFolder::new();
    let path = folder.write("t.yaml", &yaml("one"));
    let (mut watch, stop) = watch(&path);
    stop.cancel();
    assert!(next(&mut watch).await.is_none());
}
