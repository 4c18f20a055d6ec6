//! What a newcomer is shown once everything runs.

use crate::app::Listeners;

use super::data::{Data, USERS};

/// Prints who there is and what to try.
pub(super) fn print(data: &Data, listening: &Listeners) {
    let base = format!("http://{}", listening.public);
    let folder = data.folder().display();
    println!("\nToolgate is running: {base}/mcp (each tenant also at {base}/t/<tenant>/mcp)\n");
    println!("Users:");
    for user in USERS {
        println!(
            "  {:<16} tenant {:<7} sees {}",
            user.name, user.tenant, user.sees
        );
    }
    let token = data
        .token("alice@acme.test", None, 43_200)
        .unwrap_or_default();
    println!(
        "\nAlice's token, good for 12 hours (for others: toolgate token --user bob@globex.test --data-dir {folder}):\n\n{token}\n"
    );
    println!("Try, in another terminal:\n");
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
