//! A folder of its own for a test, removed afterwards.

use std::path::{Path, PathBuf};

pub(super) struct TestFolder(PathBuf);

impl TestFolder {
    pub(super) fn new() -> Self {
        let name = u64::from_be_bytes(crate::clock::random());
        let path = std::env::temp_dir().join(format!("toolgate-test-{name:x}"));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    pub(super) fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.join(name);
        std::fs::write(&path, content).unwrap();
        path
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
