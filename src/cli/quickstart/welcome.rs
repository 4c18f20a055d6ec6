//! What a newcomer is shown once everything runs.

use crate::app::Listeners;

use super::data::{Data, USERS};

/// Prints who there is and what to try.
pub(super) fn print(data: &Data, listening: &Listeners) {
    let base = format!("http://{}", listening.public);
    let folder = data.folder().display();
    println!("\nToolgate is running: {base}/mcp (each tenant also at {base}/t/<tenant>/mcp)\n");
    println!("Users (password: {}):", data.password().unwrap_or_default());
    for user in USERS {
        println!(
            "  {:<16} tenant {:<7} sees {}",
            user.name, user.tenant, user.sees
        );
    }
    clients(&base);
    println!("\nWhat you connected: {base}/account. Without a browser, in another terminal:\n");
    println!("  toolgate token --user alice@acme.test --data-dir {folder} > alice");
    println!(
        "  toolgate call --token-file alice --url {base}/mcp                                  # the tools that Alice sees"
    );
    println!(
        "  toolgate call crm_find_customer --args '{{\"query\": \"Maria\"}}' --token-file alice --url {base}/mcp"
    );
    println!(
        "  toolgate audit tail --config {folder}/toolgate.yaml                                # every call, as it is recorded"
    );
    println!(
        "\nProbes and metrics: http://{}/readyz, /metrics. Stop with Ctrl-C.\n",
        listening.admin
    );
}

/// What to paste, per client. Each opens a browser: approve, sign in, done.
fn clients(base: &str) {
    println!("\nConnect one of these; a browser opens, you approve and sign in as one of them:\n");
    println!("  Codex        codex mcp add toolgate --url {base}/mcp");
    println!(
        "  Claude Code  claude mcp add --transport http toolgate {base}/mcp && claude mcp login toolgate"
    );
    println!(
        "  Gemini CLI   gemini mcp add --transport http toolgate {base}/mcp      (then, in gemini: /mcp auth toolgate)"
    );
    println!(
        "  VS Code      code --add-mcp '{{\"name\":\"toolgate\",\"type\":\"http\",\"url\":\"{base}/mcp\"}}'"
    );
    println!(
        "  Cursor       in ~/.cursor/mcp.json: {{\"mcpServers\":{{\"toolgate\":{{\"url\":\"{base}/mcp\"}}}}}}"
    );
}
