//! Configuration files for the server under test: sane defaults, and what a
//! test says over them.

use std::path::Path;
use std::process::Command;

use super::process::run;
use super::{Value, json, kept};

/// The program under test.
pub(crate) const TOOLGATE: &str = env!("CARGO_BIN_EXE_toolgate");

/// Reads YAML (or JSON, which is YAML).
pub(crate) fn yaml(text: &str) -> Value {
    if text.trim().is_empty() {
        return json!({});
    }
    serde_saphyr::from_str(text).unwrap_or_else(|error| panic!("not YAML: {error}\n{text}"))
}

/// Lays `over` on `base`: mappings are merged, `null` removes a key, everything
/// else replaces what was there.
pub(crate) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                if value.is_null() {
                    base.shift_remove(key);
                } else {
                    merge(base.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

/// What every server under test has unless the test says otherwise: limits that
/// no test meets by accident, two tenants that may use every tool, one identity
/// provider trusted for both.
pub(crate) fn defaults() -> Value {
    yaml(
        r#"
        server: { drain_delay: 50ms, drain_timeout: 5s, keep_alive: 1s }
        database: { connections: 4, audit_connections: 3 }
        edge: { per_address: { rate: 1000/s, burst: 10000 } }
        tenants:
          acme: &tenant
            tools: { allow: ["*"] }
            resources: { allow: ["*"] }
            prompts: { allow: ["*"] }
            limits:
              per_user: { rate: 10000/s, burst: 10000, concurrent: 1000 }
              browse: { rate: 10000/s, burst: 10000 }
          globex: *tenant
        telemetry: { log_filter: debug }
        "#,
    )
}

/// Writes a configuration file in one step, as a deployment would.
pub(crate) fn write(path: &Path, text: &str) {
    let aside = path.with_extension("new");
    std::fs::write(&aside, text).unwrap();
    std::fs::rename(&aside, path).unwrap();
}

/// Runs `toolgate migrate` against a database.
pub(crate) fn migrate(file: &Path, url: &str) {
    let mut config = defaults();
    let keys_file = file.with_extension("keys");
    std::fs::write(&keys_file, deployment_key()).unwrap();
    merge(
        &mut config,
        &json!({"database": {"url": url}, "keys_file": keys_file}),
    );
    write(file, &config.to_string());
    run(Command::new(TOOLGATE)
        .arg("migrate")
        .arg("--config")
        .arg(file));
}

/// One line of a `keys_file`.
pub(crate) fn deployment_key() -> String {
    let mut key = [0; 32];
    aws_lc_rs::rand::fill(&mut key).unwrap();
    let line = key
        .iter()
        .fold(String::new(), |line, byte| format!("{line}{byte:02x}"));
    kept::secret("deployment key", &line);
    line
}
