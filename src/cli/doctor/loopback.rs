//! A redirect URI on this machine (RFC 8252 §7.3).

use std::collections::HashMap;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

use super::report::Report;

/// Waits for the browser's return.
#[derive(Debug)]
pub(super) struct Listener {
    listener: TcpListener,
    /// The redirect URI.
    pub(super) uri: String,
}

impl Listener {
    pub(super) async fn bind(port: u16, report: &mut Report) -> Option<Self> {
        let bound = async {
            let listener = TcpListener::bind(("127.0.0.1", port)).await?;
            let port = listener.local_addr()?.port();
            Ok::<_, std::io::Error>((listener, port))
        };
        match bound.await {
            Ok((listener, port)) => Some(Self {
                listener,
                uri: format!("http://127.0.0.1:{port}/callback"),
            }),
            Err(why) => {
                report.fail(
                    "redirect",
                    format!("cannot listen on 127.0.0.1:{port}: {why}"),
                );
                None
            }
        }
    }

    /// The parameters that the browser brings.
    pub(super) async fn returned(&self, patience: Duration) -> Option<HashMap<String, String>> {
        let waiting = async {
            loop {
                let (stream, _) = self.listener.accept().await.ok()?;
                if let Some(fields) = answer(stream).await {
                    return Some(fields);
                }
            }
        };
        tokio::time::timeout(patience, waiting).await.ok().flatten()
    }
}

/// Reads one request; `None` for anything but the callback.
async fn answer(mut stream: TcpStream) -> Option<HashMap<String, String>> {
    let mut line = String::new();
    let reading = BufReader::new(&mut stream);
    let mut reading = tokio::io::AsyncReadExt::take(reading, 16 << 10);
    let asked = reading.read_line(&mut line);
    tokio::time::timeout(Duration::from_secs(5), asked)
        .await
        .ok()?
        .ok()?;
    let target = line.split(' ').nth(1).unwrap_or_default();
    let fields = target.strip_prefix("/callback?").map(fields);
    let (status, words) = match &fields {
        Some(_) => (
            "200 OK",
            "Thank you. You can close this window and go back to the terminal.",
        ),
        None => ("404 Not Found", "Not found."),
    };
    let page = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{words}",
        words.len()
    );
    // The browser may be gone already.
    let _ = stream.write_all(page.as_bytes()).await;
    fields
}

/// The fields of a query.
pub(super) fn fields(query: &str) -> HashMap<String, String> {
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}
