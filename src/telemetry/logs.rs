//! Log lines on standard error. One event is one line, whatever came from
//! outside: control characters are written as `\u001b`, in JSON and in text.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use thiserror::Error;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};

/// Why logging could not be set up.
#[derive(Debug, Error)]
pub enum TelemetryFault {
    /// The filter is no filter.
    #[error("the log filter cannot be read: {0}")]
    Filter(#[from] tracing_subscriber::filter::ParseError),
    /// It was set up before.
    #[error("logging has been set up already")]
    Twice,
}

/// Something that takes events, whatever it is made of.
pub(super) type BoxedLayer = Box<dyn Layer<Registry> + Send + Sync>;

/// Writes what passes the filter (`info`, `warn,toolgate=debug`) as lines: JSON
/// objects, or text.
pub(super) fn layer(filter: &str, json: bool) -> Result<BoxedLayer, TelemetryFault> {
    let filter = EnvFilter::builder().parse(filter)?;
    Ok(lines(json, io::stderr).with_filter(filter).boxed())
}

/// Sets up logging for the whole process, once. A panic becomes a log line too.
pub(super) fn install(layers: Vec<BoxedLayer>) -> Result<(), TelemetryFault> {
    tracing_subscriber::registry()
        .with(layers)
        .try_init()
        .map_err(|_| TelemetryFault::Twice)?;
    std::panic::set_hook(Box::new(log_panic));
    Ok(())
}

fn log_panic(panic: &std::panic::PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("the panic has no message");
    let place = panic.location().map(ToString::to_string);
    tracing::error!(
        reason = message,
        place = place.as_deref().unwrap_or("unknown"),
        "a task panicked: this is a fault in Toolgate"
    );
}

fn lines<W>(json: bool, writer: W) -> BoxedLayer
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    let layer = tracing_subscriber::fmt::layer()
        .with_ansi(false)
        .with_writer(Lines(writer));
    if json {
        layer
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_span_list(true)
            .boxed()
    } else {
        layer.boxed()
    }
}

/// Makes writers that keep one event on one line.
struct Lines<M>(M);

struct Line<W>(W);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Lines<M> {
    type Writer = Line<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        Line(self.0.make_writer())
    }

    fn make_writer_for(&'a self, metadata: &tracing::Metadata<'_>) -> Self::Writer {
        Line(self.0.make_writer_for(metadata))
    }
}

impl<W: io::Write> io::Write for Line<W> {
    /// An event comes as one write, with the line end at its end.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        self.0.write_all(on_one_line(&text).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// The text with everything escaped that moves a cursor, ends a line or reorders
/// what is seen. JSON stays JSON: raw control characters can stand in its strings alone.
fn on_one_line(text: &str) -> Cow<'_, str> {
    let event = text.strip_suffix('\n').unwrap_or(text);
    if !event.contains(moves) {
        return Cow::Borrowed(text);
    }
    let mut line = String::with_capacity(text.len() + 32);
    for character in event.chars() {
        if moves(character) {
            // Writing to a String cannot fail.
            let _ = write!(line, "\\u{:04x}", u32::from(character));
        } else {
            line.push(character);
        }
    }
    line.push_str(text.get(event.len()..).unwrap_or_default());
    Cow::Owned(line)
}

fn moves(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{2028}' | '\u{2029}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Buffer(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Buffer {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn logged(json: bool, log: impl FnOnce()) -> String {
        let buffer = Buffer::default();
        let writer = buffer.clone();
        let subscriber = tracing_subscriber::registry().with(lines(json, move || writer.clone()));
        tracing::subscriber::with_default(subscriber, log);
        let bytes = buffer.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap()
    }

    const HOSTILE: &str =
        "a\x1b[2J\x1b]0;title\x07\r\nERROR forged\x08\x00\u{9b}31m\u{2028}b\u{202e}c \u{7f}";

    #[test]
    fn one_event_is_one_line_whatever_it_holds() {
        for json in [true, false] {
            let text = logged(json, || {
                let span = tracing::info_span!("request", tool = HOSTILE);
                let _entered = span.enter();
                tracing::error!(error = HOSTILE, debug = ?HOSTILE, display = %HOSTILE, "{HOSTILE}");
                tracing::info!("second");
            });
            assert_eq!(text.matches('\n').count(), 2, "{text:?}");
            assert!(text.ends_with('\n'));
            assert!(
                !text
                    .trim_end_matches('\n')
                    .replace('\n', "")
                    .contains(moves),
                "{text:?}"
            );
        }
    }

    #[test]
    fn a_json_line_has_time_level_target_message_and_fields() {
        let text = logged(true, || {
            let span = tracing::info_span!(
                "http.request",
                { super::super::names::field::REQUEST } = "r1"
            );
            let _entered = span.enter();
            tracing::warn!(
                { super::super::names::field::TENANT } = "acme",
                n = 3,
                evil = HOSTILE,
                "something happened"
            );
        });
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["level"], "WARN");
        assert_eq!(line["message"], "something happened");
        assert_eq!(line["tenant.id"], "acme");
        assert_eq!(line["n"], 3);
        assert_eq!(line["evil"], HOSTILE);
        assert!(line["target"].as_str().unwrap().starts_with("toolgate"));
        assert!(line["timestamp"].as_str().unwrap().ends_with('Z'));
        assert_eq!(line["spans"][0]["request.id"], "r1");
    }

    #[test]
    fn text_of_any_script_is_written_as_it_is() {
        let text = "Grüße, 世界, مرحبا, नमस्ते, 👩‍👩‍👧\n";
        assert_eq!(on_one_line(text), text);
    }

    #[test]
    fn a_filter_that_is_none_is_refused() {
        assert!(matches!(
            layer("toolgate=loud", true),
            Err(TelemetryFault::Filter(_))
        ));
    }
}
