//! What an operator has to know of the store: asked by `toolgate doctor`.

use redis::cmd;
use tokio::time::timeout;

use super::Shared;
use super::connection::reason;

/// What the store says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SharedCondition {
    /// Its name and release, such as `Valkey 8.1.0`.
    pub version: String,
    /// Whether it follows another one: nothing can be counted there.
    pub is_replica: bool,
    /// Whether it is a node of a cluster, which refuses scripts over several slots.
    pub is_cluster: bool,
    /// Whether it forgets keys that are still counted when it is full.
    pub evicts: bool,
}

impl Shared {
    /// Connects, counts once, and asks the store how it is set up.
    ///
    /// # Errors
    /// Why nothing can be counted there, in words without its address.
    pub async fn condition(&self) -> Result<SharedCondition, String> {
        let mut line = self.connect().await?;
        let info = cmd("INFO");
        match timeout(self.timeout, info.query_async::<String>(&mut line)).await {
            Ok(Ok(text)) => Ok(SharedCondition::read(&text)),
            Ok(Err(error)) => Err(reason(&error)),
            Err(_) => Err("no answer in time".to_owned()),
        }
    }
}

impl SharedCondition {
    /// Reads what `INFO` answers: `name:value` a line.
    fn read(text: &str) -> Self {
        let value = |name: &str| {
            let mut lines = text.lines().filter_map(|line| line.split_once(':'));
            lines.find_map(|(key, value)| (key == name).then(|| value.trim()))
        };
        let version = match (value("valkey_version"), value("redis_version")) {
            (Some(version), _) => format!("Valkey {version}"),
            (None, Some(version)) => format!("Redis {version}"),
            (None, None) => "it".to_owned(),
        };
        let policy = value("maxmemory_policy").unwrap_or("noeviction");
        Self {
            version,
            is_replica: value("role") == Some("slave"),
            is_cluster: value("cluster_enabled") == Some("1"),
            // All our keys end by themselves, so `volatile-` policies choose among them.
            evicts: policy != "noeviction" && value("maxmemory") != Some("0"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_says_what_it_is() {
        let text = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:8.1.0\r\nrole:master\r\nmaxmemory:1000\r\nmaxmemory_policy:allkeys-lru\r\ncluster_enabled:0\r\n";
        let condition = SharedCondition::read(text);
        assert_eq!(
            condition,
            SharedCondition {
                version: "Valkey 8.1.0".to_owned(),
                evicts: true,
                ..SharedCondition::default()
            }
        );
        let replica = SharedCondition::read("redis_version:7.0.15\r\nrole:slave\r\n");
        assert!(replica.is_replica && !replica.evicts && replica.version == "Redis 7.0.15");
        let unlimited = SharedCondition::read("maxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n");
        assert!(!unlimited.evicts);
    }
}
