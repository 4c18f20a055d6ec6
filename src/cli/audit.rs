//! `toolgate audit`: the record of every call.

mod erase;
mod export;
mod filters;
mod keys;
mod maintain;
mod verify;

use std::process::ExitCode;

use clap::{Args, Subcommand};

use crate::app;
use crate::audit::{self, Act, ActKind, Entry, Kinds, Tail};
use crate::clock::{Clock, SystemClock};
use crate::seal::{Label, Sealer};

use filters::{Filters, id, print_entry};

/// `toolgate audit`
#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Follows the calls as they are recorded.
    ///
    /// Example: toolgate audit tail --config toolgate.yaml --tenant acme
    Tail(TailOptions),
    /// Finds calls. Newest first; `--cursor` of the last line continues.
    ///
    /// Example: toolgate audit search --config toolgate.yaml --outcome refused:visibility --since 1h
    Search(SearchOptions),
    /// Makes the daily partitions of the next seven days, empties the default
    /// partition, drops what is beyond `audit.retention`. For the tables' owner; at
    /// least once a day, such as by a `CronJob`. May run at any time.
    ///
    /// Example: toolgate audit maintain --config toolgate.yaml --json
    Maintain(maintain::Options),
    /// Writes out everything, oldest first, as JSON lines or CSV. `--after` with the last
    /// cursor that was printed goes on from there.
    ///
    /// Example: toolgate audit export --config toolgate.yaml --format csv --since 24h > calls.csv
    Export(export::Options),
    /// Computes every digest, link and signature anew and names what does not fit. Exit
    /// code 0: all is whole. 2: something was altered. 3: nothing was, but a tail is
    /// unsigned or a writer never closed, as after a crash. 1: there is no result.
    ///
    /// Example: toolgate audit verify --config toolgate.yaml --since 2026-07-01 --checkpoints toolgate.log
    Verify(verify::Options),
    /// Erases who somebody was and what their calls said, everywhere; that something
    /// happened stays, and the chains still verify. For the tables' owner.
    ///
    /// Example: toolgate audit erase --config toolgate.yaml --subject alice@example.com --dry-run
    Erase(erase::Options),
    /// Prints the public keys that verify checkpoints, as a JWK set. Keep it somewhere
    /// that the database's owner cannot write, and beyond the life of the keys.
    ///
    /// Example: toolgate audit keys --config toolgate.yaml > audit-keys.json
    Keys(keys::Options),
}

/// `toolgate audit tail`
#[derive(Debug, Args)]
pub(super) struct TailOptions {
    #[command(flatten)]
    filters: Filters,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// `toolgate audit search`
#[derive(Debug, Args)]
pub(super) struct SearchOptions {
    #[command(flatten)]
    filters: Filters,
    /// At most so many.
    #[arg(long, default_value_t = 100)]
    limit: u32,
    /// Continues behind an earlier page.
    #[arg(long)]
    cursor: Option<String>,
    /// Opens arguments that were sealed (`audit.arguments: full`). Needs the keys file,
    /// and is put on record itself.
    #[arg(long)]
    open: bool,
    /// One JSON object a line.
    #[arg(long)]
    json: bool,
}

/// Between looks for new calls.
const FOLLOW: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) async fn run(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Search(options) => search(options).await,
        Command::Tail(options) => tail(options).await,
        Command::Maintain(options) => maintain::run(options).await,
        Command::Export(options) => export::run(options).await,
        Command::Verify(options) => verify::run(options).await,
        Command::Erase(options) => erase::run(options).await,
        Command::Keys(options) => keys::run(&options),
    }
}

async fn search(options: SearchOptions) -> anyhow::Result<ExitCode> {
    let loaded = super::check::load(&options.filters.config)?;
    let store = app::patient_reader(&loaded).await?;
    let cursor = id(options.cursor.as_deref(), "--cursor")?;
    let filter = options.filters.filter(Kinds::Calls)?;
    let mut page = audit::search(&store, &filter, cursor, options.limit).await?;
    if options.open {
        let keys = app::reading_keys(&loaded.config, &store).await?;
        // First on record, then read.
        let act = Act::new(ActKind::ADMINISTRATION, "audit.open")
            .actor(app::operator())
            .detail("entries", page.entries.len());
        app::record(&loaded, &act).await?;
        let sealer = keys.sealer(Label::AuditBody);
        for entry in &mut page.entries {
            open(&sealer, entry);
        }
    }
    for entry in &page.entries {
        print_entry(entry, options.json)?;
    }
    if let Some(cursor) = page.next {
        eprintln!("more: --cursor {cursor}");
    }
    Ok(ExitCode::SUCCESS)
}

fn open(sealer: &Sealer, entry: &mut Entry) {
    match audit::open(sealer, entry) {
        None => {}
        Some(Ok(arguments)) => {
            entry.arguments = Some(String::from_utf8_lossy(&arguments).into_owned());
        }
        Some(Err(fault)) => eprintln!("{}: {fault}", entry.call_id),
    }
}

async fn tail(options: TailOptions) -> anyhow::Result<ExitCode> {
    let store = app::reader(&super::check::load(&options.filters.config)?).await?;
    let filter = options.filters.filter(Kinds::Calls)?;
    let mut tail = Tail::new(&filter, SystemClock.now())?;
    loop {
        for entry in tail.next(&store, SystemClock.now()).await? {
            print_entry(&entry, options.json)?;
        }
        tokio::time::sleep(FOLLOW).await;
    }
}
