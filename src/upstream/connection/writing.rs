//! Messages on their way out, one a line.

use bytes::Bytes;
use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

pub(super) async fn write<W: AsyncWrite + Unpin>(
    mut input: W,
    mut letters: mpsc::Receiver<Bytes>,
    over: CancellationToken,
) {
    let writing = async {
        while let Some(letter) = letters.recv().await {
            input.write_all(&letter).await?;
            input.write_all(b"\n").await?;
            input.flush().await?;
        }
        std::io::Result::Ok(())
    };
    // A server that does not read any more is seen by its output's end.
    tokio::select! {
        () = over.cancelled() => {}
        _ = writing => {}
    }
}
