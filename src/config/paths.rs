//! File paths in a configuration: relative ones start at the configuration file's folder.

use std::path::{Path, PathBuf};

use super::Config;

impl Config {
    /// Makes every relative path start at `folder`.
    pub(super) fn resolve_paths(&mut self, folder: &Path) {
        for path in self.paths_mut() {
            if path.is_relative() {
                *path = folder.join(&*path);
            }
        }
        for stdio in self.upstreams.values_mut().filter_map(|u| u.stdio.as_mut()) {
            // A bare name is looked up in PATH.
            if stdio.command.contains('/') && Path::new(&stdio.command).is_relative() {
                let command = folder.join(&stdio.command);
                stdio.command = command.to_string_lossy().into_owned();
            }
        }
    }

    fn paths_mut(&mut self) -> Vec<&mut PathBuf> {
        let mut paths = Vec::new();
        paths.extend(&mut self.keys_file);
        paths.extend(&mut self.database.url_file);
        paths.extend(&mut self.database.audit.writer_url_file);
        paths.extend(self.database.embedded.as_mut().map(|e| &mut e.data_dir));
        paths.extend(&mut self.redis.password_file);
        paths.extend(&mut self.redis.ca_file);
        paths.extend(&mut self.outgoing.ca_file);
        for provider in self.identity_providers.values_mut() {
            paths.extend(&mut provider.jwks_file);
            let login = provider.login.as_mut();
            paths.extend(login.and_then(|login| login.client_secret_file.as_mut()));
        }
        for client in self.clients.values_mut() {
            paths.extend(&mut client.secret_file);
            paths.extend(&mut client.jwks_file);
        }
        for upstream in self.upstreams.values_mut() {
            paths.extend(upstream.stdio.as_mut().and_then(|s| s.cwd.as_mut()));
            let header = upstream.credentials.header.as_mut();
            paths.extend(header.map(|header| &mut header.value_file));
        }
        paths
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::keys;

    /// Named here once more, so that a new key for a file is not forgotten above.
    #[test]
    fn every_key_for_a_file_is_resolved() {
        let files: Vec<String> = keys()
            .into_iter()
            .filter(|key| key.takes == "path string")
            .map(|key| key.path)
            .collect();
        assert_eq!(
            files,
            [
                "clients.*.jwks_file",
                "clients.*.secret_file",
                "database.audit.writer_url_file",
                "database.embedded.data_dir",
                "database.url_file",
                "identity_providers.*.jwks_file",
                "identity_providers.*.login.client_secret_file",
                "keys_file",
                "outgoing.ca_file",
                "redis.ca_file",
                "redis.password_file",
                "upstreams.*.credentials.header.value_file",
                "upstreams.*.stdio.cwd",
            ]
        );
    }
}
