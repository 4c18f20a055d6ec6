//! Several replicas behind Debian's haproxy, which asks each whether it is ready.

use std::process::Command;

use nix::sys::signal::Signal;

use super::client::Caller;
use super::folder::Folder;
use super::process::{Process, free_port};
use super::{Gateway, Setup, eventually, json};

/// Three replicas, one address.
#[derive(Debug)]
pub(crate) struct Fleet {
    /// The replicas. Callers of the first go through the balancer, of the others past it.
    pub(crate) replicas: Vec<Gateway>,
    url: String,
    figures: String,
    _balancer: Process,
    _folder: Folder,
}

impl Fleet {
    /// Starts three replicas of this deployment.
    pub(crate) async fn start(setup: Setup) -> Self {
        let port = free_port();
        let url = format!("http://127.0.0.1:{port}");
        let first = setup
            .yaml(&json!({"server": {"public_url": url}}).to_string())
            .start()
            .await;
        let (second, third) = tokio::join!(first.replica(), first.replica());
        let mut replicas = vec![first, second, third];
        let (figures, folder) = (free_port(), Folder::new());
        let file = folder.file("haproxy.cfg", &settings(port, figures, &replicas));
        let program = ["/usr/sbin/haproxy", "haproxy"]
            .into_iter()
            .find(|program| std::path::Path::new(program).exists())
            .unwrap_or("haproxy");
        let balancer = Process::start(
            "haproxy",
            Command::new(program).arg("-db").arg("-f").arg(file),
        );
        replicas[0].answer_at(&url);
        let fleet = Self {
            replicas,
            url,
            figures: format!("http://127.0.0.1:{figures}/;csv"),
            _balancer: balancer,
            _folder: folder,
        };
        fleet.until_up(3).await;
        fleet
    }

    /// Where the balancer listens.
    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// The deployment as those outside see it.
    pub(crate) fn front(&self) -> &Gateway {
        &self.replicas[0]
    }

    /// A user, written `name@tenant`, through the balancer.
    pub(crate) fn user(&self, who: &str) -> Caller {
        self.front().user(who)
    }

    /// A user who comes to one replica alone.
    pub(crate) fn user_at(&self, number: usize, who: &str) -> Caller {
        let (public, _) = self.replicas[number].addresses();
        self.front().user(who).to(&format!("http://{public}"))
    }

    /// The replicas that the balancer sends requests to.
    pub(crate) async fn up(&self) -> Vec<bool> {
        let answer = self.replicas[0].http().get(&self.figures).send().await;
        let text = match answer {
            Ok(answer) => answer.text().await.unwrap_or_default(),
            Err(_) => String::new(),
        };
        let servers = text.lines().filter(|line| line.starts_with("toolgate,r"));
        servers.map(|line| line.contains(",UP,")).collect()
    }

    /// Waits until the balancer sends requests to so many.
    pub(crate) async fn until_up(&self, count: usize) {
        eventually(&format!("{count} replicas are up"), async || {
            let up = self.up().await;
            (up.len() == self.replicas.len() && up.iter().filter(|up| **up).count() == count)
                .then_some(())
        })
        .await;
    }

    /// Exchanges one replica as a roll-out does: asks it to end, waits until it has, and
    /// starts it anew.
    pub(crate) async fn roll(&mut self, number: usize) {
        let replica = &mut self.replicas[number];
        replica.process().signal(Signal::SIGTERM);
        let status = replica.sigterm_and_wait().await;
        assert_eq!(status.code(), Some(0), "{}", replica.logs().tail(40));
        self.replicas[number].start_again().await;
        self.until_up(3).await;
    }

    /// Exchanges all of them, one by one.
    pub(crate) async fn roll_all(&mut self) {
        for number in 0..self.replicas.len() {
            self.roll(number).await;
        }
    }
}

fn settings(port: u16, figures: u16, replicas: &[Gateway]) -> String {
    let servers: Vec<String> = replicas
        .iter()
        .enumerate()
        .map(|(number, replica)| {
            let (public, admin) = replica.addresses();
            let admin = admin.rsplit_once(':').unwrap().1;
            format!("    server r{number} {public} check port {admin}\n")
        })
        .collect();
    let servers = servers.concat();
    format!(
        "global
    maxconn 4000
defaults
    mode http
    timeout connect 2s
    timeout client 120s
    timeout server 120s
    timeout check 1s
    default-server inter 100ms fastinter 50ms downinter 100ms rise 1 fall 1
frontend front
    bind 127.0.0.1:{port}
    default_backend toolgate
backend toolgate
    balance roundrobin
    option httpchk
    http-check send meth GET uri /readyz
    http-check expect status 200
    option redispatch 1
    retries 3
    retry-on conn-failure
{servers}frontend figures
    bind 127.0.0.1:{figures}
    stats enable
    stats uri /
"
    )
}
