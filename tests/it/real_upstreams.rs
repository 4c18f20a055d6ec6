//! Real servers from npm behind the gateway, over both transports.

use super::support::folder::Folder;
use super::support::upstream::{everything_stdio, filesystem_stdio};
use super::support::{Helper, Setup, both, json};

#[tokio::test]
async fn tools_of_real_servers_are_listed_and_called() {
    let folder = Folder::new();
    folder.file("note.txt", "written by hand");
    let everything = Helper::everything().await;
    let setup = Setup::new()
        .upstream("http", everything.config())
        .upstream("stdio", everything_stdio())
        .upstream("files", filesystem_stdio(folder.path()))
        .yaml("upstreams: { http: { prefix: http_ }, stdio: { prefix: stdio_ }, files: { prefix: files_ } }");
    let gateway = setup.start().await;
    for era in both() {
        let mut alice = gateway.user("alice@acme").connect(era).await;
        for tool in ["http_echo", "stdio_echo"] {
            let answer = alice.call(tool, json!({"message": "hello"})).await;
            assert!(
                answer.text().contains("hello"),
                "{era:?} {tool}: {answer:?}"
            );
        }
        let path = folder.path().join("note.txt");
        let answer = alice
            .call("files_read_text_file", json!({"path": path}))
            .await;
        assert_eq!(answer.text(), "written by hand", "{era:?}");
    }
}
