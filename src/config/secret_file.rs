//! Reading a file that holds one secret. What it holds is in no error.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use thiserror::Error;
use zeroize::Zeroizing;

use crate::secret::Secret;

/// No key, connection string or token is larger.
const LARGEST: usize = 1 << 20;

/// Why a secret could not be had. The texts name the file and nothing of its content.
#[derive(Debug, Error)]
pub enum SecretFileFault {
    /// No such file.
    #[error("{} does not exist", .0.display())]
    Missing(PathBuf),
    /// Not for this user.
    #[error("{} may not be read by the user that Toolgate runs as", .0.display())]
    Forbidden(PathBuf),
    /// A folder or something else.
    #[error("{} is no file", .0.display())]
    NoFile(PathBuf),
    /// Nothing in it.
    #[error("{} is empty", .0.display())]
    Empty(PathBuf),
    /// Not text.
    #[error("{} is not UTF-8 text", .0.display())]
    NotText(PathBuf),
    /// Too much in it.
    #[error("{} is larger than 1 MiB, which no secret is", .0.display())]
    TooLarge(PathBuf),
    /// Anything else.
    #[error("{} cannot be read: {source}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

/// The text of a file, without one line end at its end.
///
/// # Errors
/// When the file cannot be read, is empty, is not text or is absurdly large.
pub fn read_secret_file(path: &Path) -> Result<Secret<String>, SecretFileFault> {
    let bytes = read(path)?;
    if bytes.len() > LARGEST {
        return Err(SecretFileFault::TooLarge(path.to_owned()));
    }
    let Ok(text) = std::str::from_utf8(&bytes) else {
        return Err(SecretFileFault::NotText(path.to_owned()));
    };
    let text = text
        .strip_suffix("\r\n")
        .or_else(|| text.strip_suffix('\n'))
        .unwrap_or(text);
    if text.is_empty() {
        return Err(SecretFileFault::Empty(path.to_owned()));
    }
    Ok(Secret::new(text.to_owned()))
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, SecretFileFault> {
    let fault = |source: io::Error| match source.kind() {
        io::ErrorKind::NotFound => SecretFileFault::Missing(path.to_owned()),
        io::ErrorKind::PermissionDenied => SecretFileFault::Forbidden(path.to_owned()),
        io::ErrorKind::IsADirectory => SecretFileFault::NoFile(path.to_owned()),
        _ => SecretFileFault::Unreadable {
            path: path.to_owned(),
            source,
        },
    };
    let file = File::open(path).map_err(fault)?;
    let metadata = file.metadata().map_err(fault)?;
    if metadata.is_dir() {
        return Err(SecretFileFault::NoFile(path.to_owned()));
    }
    // Room for all of it at once: a growing buffer leaves copies behind.
    let expected = usize::try_from(metadata.len())
        .unwrap_or(LARGEST)
        .min(LARGEST);
    let mut bytes = Zeroizing::new(Vec::with_capacity(expected + 2));
    let most = u64::try_from(LARGEST + 1).unwrap_or(u64::MAX);
    file.take(most).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::test_folder::TestFolder;

    #[test]
    fn one_line_end_is_no_part_of_a_secret() {
        let folder = TestFolder::new();
        for (content, secret) in [
            ("hunter2\n", "hunter2"),
            ("hunter2\r\n", "hunter2"),
            ("hunter2", "hunter2"),
            ("a\nb\n\n", "a\nb\n"),
            (" spaces stay ", " spaces stay "),
        ] {
            let path = folder.write("secret", content.as_bytes());
            assert_eq!(read_secret_file(&path).unwrap().expose(), secret);
        }
    }

    #[test]
    fn what_is_no_secret_is_refused_without_showing_it() {
        let folder = TestFolder::new();
        let large = vec![b'x'; LARGEST + 1];
        for (content, expected) in [
            (&b""[..], "is empty"),
            (b"\n", "is empty"),
            (b"\xffhunter2", "is not UTF-8 text"),
            (&large, "is larger than 1 MiB, which no secret is"),
        ] {
            let path = folder.write("secret", content);
            let fault = read_secret_file(&path).unwrap_err().to_string();
            assert!(fault.ends_with(expected), "{fault}");
            assert!(!fault.contains("hunter2"));
        }
        let fault = read_secret_file(&folder.path().join("none")).unwrap_err();
        assert!(matches!(fault, SecretFileFault::Missing(_)));
        let fault = read_secret_file(folder.path()).unwrap_err();
        assert!(matches!(fault, SecretFileFault::NoFile(_)));
    }
}
