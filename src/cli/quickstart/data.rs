//! The quickstart's folder: an issuer's key, a deployment key, a configuration,
//! and the database's data beside them.

use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use argon2::Argon2;
use argon2::password_hash::{PasswordHasher, SaltString};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::json;

use crate::clock::{self, Clock, SystemClock};
use crate::config;
use crate::jose::{Algorithm, SigningKey};
use crate::seal::Keys;

/// A sample user.
pub(super) struct User {
    pub(super) name: &'static str,
    pub(super) tenant: &'static str,
    pub(super) roles: &'static [&'static str],
    pub(super) sees: &'static str,
}

/// The sample users.
pub(super) const USERS: [User; 3] = [
    User {
        name: "alice@acme.test",
        tenant: "acme",
        roles: &["support"],
        sees: "acme's CRM, but nothing that deletes",
    },
    User {
        name: "admin@acme.test",
        tenant: "acme",
        roles: &["manager"],
        sees: "all of acme's CRM",
    },
    User {
        name: "bob@globex.test",
        tenant: "globex",
        roles: &["analyst"],
        sees: "what only reads in globex's warehouse",
    },
];

/// The issuer of the sample tokens.
const ISSUER: &str = "https://quickstart.toolgate.invalid";

/// The folder.
pub(crate) struct Data {
    folder: PathBuf,
    /// Held while the quickstart runs; the system lets go of it if we die.
    _lock: Option<fs::File>,
}

impl Data {
    /// The folder, made and filled where it is new.
    pub(super) fn prepare(
        folder: Option<PathBuf>,
        listen: SocketAddr,
        admin: SocketAddr,
    ) -> anyhow::Result<Self> {
        let folder = folder.unwrap_or_else(default_folder);
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        // Before anything is written: what runs reads its configuration again when that changes.
        let lock = Some(lock(&folder)?);
        let data = Self {
            folder,
            _lock: lock,
        };
        // The database's account must be able to pass through; nobody else may list.
        fs::set_permissions(&data.folder, fs::Permissions::from_mode(0o711))?;
        if !data.issuer_key().exists() {
            let key = SigningKey::generate(Algorithm::Es256)?;
            write_private(&data.issuer_key(), key.to_pem().expose())?;
        }
        if !data.password_file().exists() {
            let password = URL_SAFE_NO_PAD.encode(clock::random::<9>());
            write_private(&data.password_file(), &password)?;
        }
        if !data.keys_file().exists() {
            write_private(&data.keys_file(), &format!("{}\n", Keys::generate_line()))?;
        }
        let key = data.signing_key()?;
        fs::write(data.folder.join("jwks.json"), key.public_jwks().to_string())?;
        let text = configuration(listen, admin, &hash(&data.password()?)?)?;
        fs::write(data.config_file(), text)?;
        Ok(data)
    }

    /// The folder of an earlier `prepare`.
    pub(crate) fn find(folder: Option<PathBuf>) -> anyhow::Result<Self> {
        let data = Self {
            folder: folder.unwrap_or_else(default_folder),
            _lock: None,
        };
        if !data.issuer_key().exists() {
            bail!(
                "no quickstart data in {}; run `toolgate quickstart` first, or name its --data-dir",
                data.folder.display()
            );
        }
        Ok(data)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    pub(super) fn config_file(&self) -> PathBuf {
        self.folder.join("toolgate.yaml")
    }

    fn keys_file(&self) -> PathBuf {
        self.folder.join("keys")
    }

    fn password_file(&self) -> PathBuf {
        self.folder.join("password")
    }

    /// What every sample user signs in with.
    pub(super) fn password(&self) -> anyhow::Result<String> {
        let file = self.password_file();
        fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
    }

    fn issuer_key(&self) -> PathBuf {
        self.folder.join("issuer-key.pem")
    }

    fn signing_key(&self) -> anyhow::Result<SigningKey> {
        let file = self.issuer_key();
        let pem =
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
        SigningKey::from_pem(&pem).with_context(|| format!("{} is no signing key", file.display()))
    }

    /// An access token for a sample user (RFC 9068).
    pub(crate) fn token(
        &self,
        user: &str,
        resource: Option<&str>,
        lifetime: u32,
    ) -> anyhow::Result<String> {
        let Some(user) = USERS.iter().find(|known| known.name == user) else {
            let names = USERS.map(|user| user.name).join(", ");
            bail!("no user {user}; there are {names}");
        };
        let resource = match resource {
            Some(resource) => resource.to_owned(),
            None => self.resource()?,
        };
        let now = SystemClock.unix_seconds();
        let claims = json!({
            "iss": ISSUER, "sub": user.name, "aud": resource, "client_id": "quickstart", "tenant": user.tenant,
            "roles": user.roles, "scope": "mcp", "iat": now, "exp": now + i64::from(lifetime),
            "jti": clock::new_call_id(&SystemClock).to_string(),
        });
        let claims = claims.as_object().cloned().unwrap_or_default();
        Ok(self.signing_key()?.sign(&claims, "at+jwt")?)
    }

    /// The endpoint that the written configuration serves.
    pub(super) fn resource(&self) -> anyhow::Result<String> {
        let loaded = config::load(&self.config_file(), &config::environment())
            .map_err(|faults| anyhow::anyhow!("{}", config::render(&faults.0)))?;
        let base = loaded
            .config
            .server
            .public_url
            .unwrap_or_else(|| format!("http://{}", loaded.config.server.listen));
        Ok(format!("{base}/mcp"))
    }
}

/// Where the data is kept: the database's own account must be able to get there
/// when this runs as root, and cannot under a private home.
fn default_folder() -> PathBuf {
    let root = nix::unistd::geteuid().is_root();
    match config::home().filter(|_| !root) {
        Some(home) => home.join(".local/share/toolgate"),
        None => PathBuf::from("/var/lib/toolgate"),
    }
}

fn lock(folder: &Path) -> anyhow::Result<fs::File> {
    let path = folder.join("lock");
    let file =
        fs::File::create(&path).with_context(|| format!("cannot write {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(fs::TryLockError::WouldBlock) => bail!(
            "{} is in use by another running toolgate; stop it, or name another --data-dir",
            folder.display()
        ),
        Err(fs::TryLockError::Error(error)) => {
            Err(error).with_context(|| format!("cannot lock {}", path.display()))
        }
    }
}

/// A file that only its owner reads.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::io::Write as _;
    let mut file = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(text.as_bytes())?;
    Ok(())
}

/// The password's argon2id hash, in PHC form.
fn hash(password: &str) -> anyhow::Result<String> {
    let no_hash = |error| anyhow::anyhow!("the password cannot be hashed: {error}");
    let salt = SaltString::encode_b64(&clock::random::<16>()).map_err(no_hash)?;
    let hash = Argon2::default().hash_password(password.as_bytes(), &salt);
    Ok(hash.map_err(no_hash)?.to_string())
}

/// The sample users, as `users` in the configuration.
fn users(hash: &str) -> String {
    let user = |user: &User| {
        json!({"password_hash": hash, "tenants": {user.tenant: user.roles}}).to_string()
    };
    let entries = USERS
        .iter()
        .map(|one| format!("  {}: {}\n", one.name, user(one)));
    entries.collect()
}

/// The sample configuration, written anew at each start.
fn configuration(listen: SocketAddr, admin: SocketAddr, hash: &str) -> anyhow::Result<String> {
    let program = std::env::current_exe()?.display().to_string();
    let program = serde_json::to_string(&program)?;
    let mut text = String::new();
    write!(
        text,
        include_str!("sample.yaml.in"),
        listen = listen,
        admin = admin,
        issuer = ISSUER,
        users = users(hash),
        program = program
    )?;
    Ok(text)
}
