//! From a file to a configuration that may be used: read, override, decode, check.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use aws_lc_rs::digest;

use super::Config;
use super::check::Check;
use super::decode::{Misread, decode};
use super::document::{Node, parse as parse_document};
use super::environment::Environment;
use super::fault::{ConfigFaults, Fault, Origin, Severity};
use super::{overrides, validate};

/// A larger file is no configuration.
const LARGEST: u64 = 8 << 20;

/// A configuration that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Loaded {
    /// The configuration. Relative paths in it have been resolved.
    pub config: Config,
    /// SHA-256 of the file and the overrides: names the configuration in the audit.
    pub digest: [u8; 32],
    /// What probably does not do what was meant.
    pub warnings: Vec<Fault>,
    /// The file.
    pub path: PathBuf,
}

/// Reads and checks a configuration file.
///
/// # Errors
/// Every fault that could be found, and the warnings.
pub fn load(path: &Path, environment: &Environment) -> Result<Loaded, ConfigFaults> {
    let bytes = read(path).map_err(|fault| {
        let wrong = match fault.kind() {
            io::ErrorKind::NotFound => "does not exist".to_owned(),
            io::ErrorKind::PermissionDenied => "may not be read by this user".to_owned(),
            io::ErrorKind::FileTooLarge => "is larger than 8 MiB".to_owned(),
            _ => format!("cannot be read: {fault}"),
        };
        ConfigFaults(vec![error(path.into(), Origin::File, "", wrong, "")])
    })?;
    parse(path, &bytes, environment)
}

pub(super) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(LARGEST + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > LARGEST {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    Ok(bytes)
}

/// Checks the content of a configuration file; `path` is where it stands.
///
/// # Errors
/// Every fault that could be found, and the warnings.
pub fn parse(path: &Path, bytes: &[u8], environment: &Environment) -> Result<Loaded, ConfigFaults> {
    let file: Arc<Path> = path.into();
    let (mut root, mut faults) = tree(&file, bytes)?;
    let refused = overrides::apply(&mut root, environment);
    let decoded = decode::<Config>(&mut root);
    for misread in refused.into_iter().chain(decoded.misread) {
        faults.push(misread_fault(&file, misread));
    }
    if let Some(config) = &decoded.value {
        let mut check = Check::new(&root, Arc::clone(&file), &decoded.withdrawn);
        validate::validate(config, &mut check);
        faults.append(&mut check.faults);
    }
    let refused = faults.iter().any(|fault| fault.severity == Severity::Error);
    match decoded.value {
        Some(mut config) if !refused => {
            config.resolve_paths(&folder(path));
            Ok(Loaded {
                config,
                digest: digest(bytes, environment),
                warnings: faults,
                path: path.to_owned(),
            })
        }
        _ => Err(ConfigFaults(faults)),
    }
}

fn tree(file: &Arc<Path>, bytes: &[u8]) -> Result<(Node, Vec<Fault>), ConfigFaults> {
    let fatal = |origin, wrong: String, instead: &str| {
        ConfigFaults(vec![error(Arc::clone(file), origin, "", wrong, instead)])
    };
    let text = std::str::from_utf8(bytes).map_err(|broken| {
        let before = bytes.get(..broken.valid_up_to()).unwrap_or_default();
        let before = std::str::from_utf8(before).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before
            .rsplit('\n')
            .next()
            .unwrap_or_default()
            .chars()
            .count()
            + 1;
        let origin = Origin::Line { line, column };
        fatal(origin, "is not UTF-8".to_owned(), "save the file as UTF-8")
    })?;
    let (root, flaws) =
        parse_document(text).map_err(|flaw| fatal(flaw.origin, flaw.wrong, &flaw.instead))?;
    let faults = flaws.into_iter().map(|flaw| {
        let path = flaw.path.to_string();
        error(
            Arc::clone(file),
            flaw.origin,
            &path,
            flaw.wrong,
            &flaw.instead,
        )
    });
    Ok((root, faults.collect()))
}

fn misread_fault(file: &Arc<Path>, misread: Misread) -> Fault {
    let path = misread.path.to_string();
    let wrong = match path.as_str() {
        "" => format!("the file {}", misread.wrong),
        _ => misread.wrong,
    };
    error(
        Arc::clone(file),
        misread.origin,
        &path,
        wrong,
        &misread.instead,
    )
}

fn error(file: Arc<Path>, origin: Origin, path: &str, wrong: String, instead: &str) -> Fault {
    Fault {
        severity: Severity::Error,
        file,
        origin,
        path: path.to_owned(),
        wrong,
        instead: instead.to_owned(),
    }
}

/// Absolute, so that a later change of the working directory moves nothing.
fn folder(path: &Path) -> PathBuf {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.parent().map(Path::to_owned).unwrap_or_default()
}

/// Each part goes in behind its length, so that no two configurations share a digest.
pub(super) fn digest(bytes: &[u8], environment: &Environment) -> [u8; 32] {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut part = |bytes: &[u8]| {
        context.update(&(bytes.len() as u64).to_be_bytes());
        context.update(bytes);
    };
    part(bytes);
    for (name, value) in environment.overrides() {
        part(name.as_bytes());
        part(value.as_bytes());
    }
    let mut digest = [0; 32];
    digest.copy_from_slice(context.finish().as_ref());
    digest
}

#[cfg(test)]
mod tests;
