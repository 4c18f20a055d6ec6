//! Loading from the outside: files, overrides, digests, what is shown.

use super::*;
use crate::config::keys;
use crate::config::test_folder::TestFolder;

const RIGHT: &str = "
database: { url_file: secrets/db }
keys_file: /run/keys
identity_providers: { corporate: { issuer: https://login.example.com, jwks_file: jwks.json } }
tenants: { acme: { limits: { per_user: { rate: 5/s } } } }
upstreams:
  files: { stdio: { command: ./server, cwd: data } }
  named: { stdio: { command: npx } }
";

fn with(variables: &[(&str, &str)]) -> Result<Loaded, ConfigFaults> {
    let environment = variables.iter().copied().collect();
    parse(
        Path::new("/etc/toolgate/toolgate.yaml"),
        RIGHT.as_bytes(),
        &environment,
    )
}

#[test]
fn relative_paths_start_at_the_folder_of_the_file() {
    let config = with(&[]).unwrap().config;
    let at = |path: &str| Some(PathBuf::from(path));
    assert_eq!(config.database.url_file, at("/etc/toolgate/secrets/db"));
    assert_eq!(config.keys_file, at("/run/keys"));
    let provider = &config.identity_providers["corporate"];
    assert_eq!(provider.jwks_file, at("/etc/toolgate/jwks.json"));
    let files = config.upstreams["files"].stdio.as_ref().unwrap();
    assert_eq!(files.cwd, at("/etc/toolgate/data"));
    assert_eq!(files.command, "/etc/toolgate/./server");
    assert_eq!(
        config.upstreams["named"].stdio.as_ref().unwrap().command,
        "npx"
    );
}

#[test]
fn variables_override_scalars_of_every_type() {
    let config = with(&[
        ("TOOLGATE_SERVER__LISTEN", "127.0.0.1:9"),
        ("TOOLGATE_DATABASE__CONNECTIONS", "3"),
        ("TOOLGATE_TENANTS__ACME__LIMITS__PER_USER__RATE", "9/m"),
        ("TOOLGATE_TENANTS__ACME__HIDE_WITHOUT_SCOPES", "true"),
        ("TOOLGATE_SERVER__PUBLIC_URL", "https://gw.example.com"),
        ("TOOLGATE_UPSTREAMS__FILES__PREFIX", "null"),
    ])
    .unwrap()
    .config;
    assert_eq!(config.server.listen.port(), 9);
    assert_eq!(config.database.connections, 3);
    assert_eq!(
        config.tenants["acme"].limits.per_user.rate.to_string(),
        "9/m"
    );
    assert!(config.tenants["acme"].hide_without_scopes);
    assert_eq!(
        config.server.public_url.as_deref(),
        Some("https://gw.example.com")
    );
    assert_eq!(config.upstreams["files"].prefix, "null");
}

#[test]
fn a_wrong_variable_is_refused_by_its_name() {
    for (name, value, fault) in [
        (
            "TOOLGATE_SERVER__LISTN",
            "127.0.0.1:9",
            "TOOLGATE_SERVER__LISTN: server.listn: unknown key; did you mean `listen`?",
        ),
        (
            "TOOLGATE_SERVER__LISTEN",
            "hunter2",
            "TOOLGATE_SERVER__LISTEN: server.listen: is no address with a port; write one such as `127.0.0.1:8080` or `[::1]:8080`",
        ),
        (
            "TOOLGATE_TENANTS",
            "x",
            "TOOLGATE_TENANTS: tenants: is a mapping in the file; override its scalars one by one",
        ),
        (
            "TOOLGATE_UPSTREAMS__FILES__MCP__URL",
            "https://u:hunter2@h",
            "/etc/toolgate/toolgate.yaml:7:3: upstreams.files: is both `mcp` and `stdio`; make two upstreams of it",
        ),
        (
            "TOOLGATE_KEYS_FILE__X",
            "x",
            "TOOLGATE_KEYS_FILE__X: keys_file: has nothing in the file that `X` could name; name a key of a mapping, or an element of a list by its number from 0",
        ),
    ] {
        let faults = with(&[(name, value)]).unwrap_err();
        assert_eq!(faults.to_string(), fault);
    }
}

#[test]
fn the_digest_names_the_file_and_the_overrides() {
    let plain = with(&[]).unwrap().digest;
    assert_eq!(plain, with(&[]).unwrap().digest);
    let one = with(&[("TOOLGATE_DATABASE__CONNECTIONS", "3")])
        .unwrap()
        .digest;
    let other = with(&[("TOOLGATE_DATABASE__CONNECTIONS", "4")])
        .unwrap()
        .digest;
    assert_ne!(plain, one);
    assert_ne!(one, other);
    // What is no part of the configuration does not change its name.
    let elsewhere = with(&[("TOOLGATE_CONFIG", "elsewhere.yaml")])
        .unwrap()
        .digest;
    assert_eq!(plain, elsewhere);
}

#[test]
fn the_public_url_and_issuers_are_kept_byte_for_byte() {
    for text in [
        "https://gw.example.com",
        "https://gw.example.com/",
        "https://GW.example.com:443/a/",
    ] {
        let loaded = with(&[
            ("TOOLGATE_SERVER__PUBLIC_URL", text),
            ("TOOLGATE_IDENTITY_PROVIDERS__CORPORATE__ISSUER", text),
        ])
        .unwrap();
        assert_eq!(loaded.config.server.public_url.as_deref(), Some(text));
        assert_eq!(loaded.config.identity_providers["corporate"].issuer, text);
    }
}

#[test]
fn no_secret_is_shown_whatever_is_wrong_with_it() {
    for yaml in [
        "database: { url: 'mysql://u:hunter2@h/d' }",
        "database:\n  url:postgres://u:hunter2@h/d",
        "database: { url:postgres://u:hunter2@h/d }",
        "database: { url: ['postgres://u:hunter2@h/d'] }",
        "database: { url: { 'postgres://u:hunter2@h/d': 1 } }",
        "database: { embedded: 'postgres://u:hunter2@h/d' }",
        "database: { connections: hunter2, timeout: hunter2 }",
        "outgoing: { proxy: 'ftp://u:hunter2@h' }",
        "server: { public_url: 'https://u:hunter2@h', allowed_origins: ['https://u:hunter2@h'] }",
        "upstreams: { a: { mcp: { url: 'https://u:hunter2@h' }, suspicious: hunter2 } }",
        "identity_providers: { a: { issuer: 'https://u:hunter2@h' } }",
        "tenants: { a: { limits: { per_user: { rate: hunter2 } } } }",
        "server: { listen: hunter2, body_limit: hunter2 }",
        "database: { url: \"postgres://u:hunter2@h/d }",
    ] {
        let faults = parse(
            Path::new("t.yaml"),
            yaml.as_bytes(),
            &Environment::default(),
        )
        .unwrap_err();
        for shown in [
            faults.to_string(),
            format!("{faults:?}"),
            crate::config::render_json(&faults.0),
        ] {
            assert!(!shown.contains("hunter2"), "{shown}");
        }
    }
}

#[test]
fn a_loaded_configuration_can_be_printed_without_its_secrets() {
    let yaml = "
database: { url: 'postgres://u:hunter2@h/d' }
keys_file: k
outgoing: { proxy: 'http://u:hunter2@h' }
tenants: { acme: {} }
upstreams:
  a: { mcp: { url: 'https://h/mcp?key=hunter2' } }
  b: { stdio: { command: x, args: [hunter2], env: { TOKEN: hunter2 } } }
";
    let loaded = parse(
        Path::new("t.yaml"),
        yaml.as_bytes(),
        &Environment::default(),
    )
    .unwrap();
    assert!(!format!("{loaded:?}").contains("hunter2"));
}

#[test]
fn what_is_no_configuration_file_is_refused() {
    let folder = TestFolder::new();
    let missing = load(&folder.path().join("none.yaml"), &Environment::default()).unwrap_err();
    assert!(
        missing.to_string().ends_with("none.yaml: does not exist"),
        "{missing}"
    );
    let of_folder = load(folder.path(), &Environment::default()).unwrap_err();
    assert!(
        of_folder.to_string().contains("cannot be read"),
        "{of_folder}"
    );
    let binary = folder.write("b.yaml", b"server:\n  a\xff");
    let faults = load(&binary, &Environment::default()).unwrap_err();
    assert!(
        faults.to_string().contains("b.yaml:2:4: is not UTF-8"),
        "{faults}"
    );
    let large = folder.write("l.yaml", &vec![b' '; 9 << 20]);
    let faults = load(&large, &Environment::default()).unwrap_err();
    assert!(
        faults.to_string().ends_with("is larger than 8 MiB"),
        "{faults}"
    );
    let text = folder.write("t.yaml", b"just text");
    let faults = load(&text, &Environment::default()).unwrap_err();
    assert!(
        faults
            .to_string()
            .ends_with("t.yaml: the file is a single value; write a mapping"),
        "{faults}"
    );
}

#[test]
fn several_faults_come_in_the_order_of_the_file() {
    let yaml = "tenants:\n  acme:\n    limitz: {}\nserver:\n  listen: x\n";
    let faults = parse(
        Path::new("toolgate.yaml"),
        yaml.as_bytes(),
        &Environment::default(),
    )
    .unwrap_err();
    assert_eq!(
        faults.to_string(),
        "toolgate.yaml: database: says nothing of where the database is; write one of `url_file`, `url` and `embedded`
toolgate.yaml: keys_file: is missing; name a file with 64 hexadecimal digits a line, such as `openssl rand -hex 32` prints
toolgate.yaml: warning: identity_providers: is empty: nobody can call; add who issues your tokens
toolgate.yaml:3:5: tenants.acme.limitz: unknown key; did you mean `limits`?
toolgate.yaml:5:11: server.listen: is no address with a port; write one such as `127.0.0.1:8080` or `[::1]:8080`"
    );
}

#[test]
fn ten_thousand_tenants_load() {
    let ids: Vec<String> = (0..10_000).map(|n| format!("tenant-{n}")).collect();
    let tenants: Vec<String> = ids
        .iter()
        .map(|id| {
            format!(
                "  {id}: {{ tools: {{ allow: [a, b] }}, limits: {{ per_user: {{ rate: 5/s }} }} }}"
            )
        })
        .collect();
    let yaml = format!(
        "database: {{ embedded: {{ data_dir: d }} }}
identity_providers: {{ a: {{ issuer: https://a.example, tenants: [{}] }} }}
tenants:
{}
",
        ids.join(", "),
        tenants.join("\n")
    );
    let loaded = parse(
        Path::new("t.yaml"),
        yaml.as_bytes(),
        &Environment::default(),
    )
    .unwrap();
    assert_eq!(loaded.config.tenants.len(), 10_000);
}

/// The example, and the same with its alternatives (`#key: …`) in force.
fn example() -> [String; 2] {
    let text = include_str!("../../../docs/toolgate.example.yaml");
    let alternatives = text
        .lines()
        .map(|line| {
            let content = line.trim_start();
            match content.strip_prefix('#') {
                Some(key) if key.starts_with(|c: char| c.is_ascii_lowercase()) => {
                    line.replacen('#', "", 1)
                }
                _ => line.to_owned(),
            }
        })
        .collect::<Vec<_>>()
        .join("\n");
    [text.to_owned(), alternatives]
}

#[test]
fn the_example_loads_without_a_warning() {
    let [text, _] = example();
    let loaded = parse(
        Path::new("toolgate.yaml"),
        text.as_bytes(),
        &Environment::default(),
    );
    assert_eq!(loaded.map(|loaded| loaded.warnings), Ok(Vec::new()));
}

#[test]
fn the_example_has_every_key_with_a_value_of_its_type() {
    let [_, text] = example();
    let (mut root, twice) = parse_document(&text).unwrap();
    assert!(twice.is_empty(), "{twice:?}");
    let missing: Vec<String> = keys()
        .into_iter()
        .map(|key| key.path)
        .filter(|path| !holds(&root, &steps(path)))
        .collect();
    assert_eq!(missing, [""; 0], "missing in docs/toolgate.example.yaml");
    let decoded = decode::<Config>(&mut root);
    assert!(decoded.misread.is_empty(), "{:?}", decoded.misread);
}

fn steps(path: &str) -> Vec<String> {
    path.replace("[]", ".[]")
        .split('.')
        .map(str::to_owned)
        .collect()
}

fn holds(node: &Node, steps: &[String]) -> bool {
    use crate::config::document::Value;
    let Some((step, rest)) = steps.split_first() else {
        return true;
    };
    match &node.value {
        Value::List(nodes) => step == "[]" && nodes.iter().any(|node| holds(node, rest)),
        Value::Map(entries) => entries
            .iter()
            .filter(|entry| step == "*" || **step == *entry.key)
            .any(|entry| holds(&entry.value, rest)),
        _ => false,
    }
}

/// A type that stands at several paths needs to be described once.
#[test]
fn the_reference_has_every_key_of_every_section() {
    let reference = include_str!("../../../docs/configuration.md");
    let keys = keys();
    let missing: Vec<&str> = keys
        .iter()
        .filter(|key| {
            !keys
                .iter()
                .filter(|same| same.section == key.section && same.name == key.name)
                .any(|same| reference.contains(&format!("`{}`", same.path)))
        })
        .map(|key| key.path.as_str())
        .collect();
    assert_eq!(missing, [""; 0], "missing in docs/configuration.md");
}

proptest::proptest! {
    /// Whatever a file holds: an answer, no panic, and a place in the file.
    #[test]
    fn any_text_is_answered(parts in proptest::collection::vec(
        proptest::sample::select(vec![
            "server", "tenants", "tools", "upstreams", "a", "match", "mcp", "<<", "null", "1", ": ", ":",
            "\n", "\n  ", "\n    ", "- ", "{", "}", "[", "]", ", ", "&a ", "*a", "\"", "'", "|\n", "!x ",
            "#", "---\n", "\t", "é", "\u{0}", "\u{feff}", "? ",
        ]),
        0..40,
    )) {
        let text = parts.concat();
        let result = parse(Path::new("t.yaml"), text.as_bytes(), &Environment::default());
        if let Err(faults) = result {
            proptest::prop_assert!(faults.0.iter().any(|fault| fault.severity == Severity::Error));
        }
    }
}
