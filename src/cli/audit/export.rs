//! `toolgate audit export`.

use std::io::Write;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::app;
use crate::audit::{Export, FIELDS, Kinds, cells};
use crate::clock::{Clock, SystemClock};
use crate::config::Interval;

use super::filters::{Filters, id};

/// `toolgate audit export`
#[derive(Debug, Args)]
pub(in crate::cli) struct Options {
    #[command(flatten)]
    filters: Filters,
    /// What is written.
    #[arg(long, value_enum, default_value_t = Format::Jsonl)]
    format: Format,
    /// Goes on behind this cursor: the last that an earlier export printed, or the
    /// `call_id` of its last line.
    #[arg(long)]
    after: Option<String>,
    /// Leaves what is newer than this to the next export: a call of which the end is not
    /// known yet would be written out as `unknown`.
    #[arg(long, default_value = "10m")]
    settle: Interval,
    /// CSV without its first line, to go on with a file.
    #[arg(long)]
    no_header: bool,
    /// The same as `--format jsonl`.
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Format {
    /// One JSON object a line.
    Jsonl,
    /// Comma-separated values (RFC 4180) with a line of names.
    Csv,
}

pub(super) async fn run(options: Options) -> anyhow::Result<ExitCode> {
    let loaded = super::super::check::load(&options.filters.config)?;
    let store = app::patient_reader(&loaded).await?;
    let filter = options.filters.filter(Kinds::Any)?;
    let after = id(options.after.as_deref(), "--after")?;
    let settled = time::Duration::try_from(options.settle.0)?;
    let mut export = Export::new(&filter, after, settled, SystemClock.now())?;
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    if options.format == Format::Csv && !options.no_header && after.is_none() {
        row(&mut out, FIELDS)?;
    }
    let mut cursor = after;
    loop {
        let entries = export.next(&store).await?;
        let Some(last) = entries.last() else { break };
        cursor = Some(last.call_id);
        for entry in &entries {
            match options.format {
                Format::Jsonl => {
                    serde_json::to_writer(&mut out, entry)?;
                    out.write_all(b"\n")?;
                }
                Format::Csv => row(&mut out, cells(entry))?,
            }
        }
        // A cursor is only worth something when what it stands behind has been written.
        out.flush()?;
    }
    out.flush()?;
    if let Some(cursor) = cursor {
        eprintln!("cursor: {cursor}");
    }
    Ok(ExitCode::SUCCESS)
}

fn row<T: AsRef<[u8]>>(
    out: &mut impl Write,
    cells: impl IntoIterator<Item = T>,
) -> anyhow::Result<()> {
    let mut writer = csv::WriterBuilder::new().from_writer(Vec::new());
    writer.write_record(cells)?;
    out.write_all(&writer.into_inner()?)?;
    Ok(())
}
