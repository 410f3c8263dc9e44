//! The log of commands that run for long: lines of text or of JSON, or entries of journald with fields.

use crate::command::error::Failure;
use std::fmt::{Debug, Write};
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;
use weir_io::log::{shown, Events, To};

/// Most bytes of an event's message, and of all of it. Longer lines are not written whole.
const MESSAGE: usize = 1_200;
const LINE: usize = 1_900;

/// Argument of commands that run for long.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct Logging {
    /// Form of the log: lines of text, lines of JSON, or entries of journald with a field for each value
    #[arg(long, value_enum, value_name = "FORM", default_value = "text")]
    log: Form,
}

/// Forms of the log.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Lines of text on standard error.
    Text,
    /// Lines of JSON on standard error.
    Json,
    /// Entries of journald; standard error where it takes none.
    Journal,
}

impl Logging {
    /// Begins the log. From then on this process neither waits for it nor fails because of it.
    pub fn begin(&self) -> Result<(), Failure> {
        begin(self.log)
    }
}

/// See [`Logging::begin`].
pub fn begin(form: Form) -> Result<(), Failure> {
    let to = if form == Form::Journal { To::Journal } else { To::StandardError };
    let log = weir_io::log::open(to).map_err(|e| Failure::Other(format!("the log cannot be opened: {e}")))?;
    let events =
        tracing_subscriber::fmt().with_writer(move || Events(log)).with_ansi(false).with_target(false);
    let events = events.log_internal_errors(false);
    // A second call in one process (tests) keeps the first log.
    let _ = match form {
        Form::Text => events.try_init(),
        Form::Json | Form::Journal => events.event_format(Json).try_init(),
    };
    std::panic::set_hook(Box::new(move |panic| match form {
        Form::Text => log.write(&format!("weir: {panic}")),
        Form::Json | Form::Journal => log.write(&line("ERROR", &[("message", panic.to_string())])),
    }));
    Ok(())
}

/// Lines of JSON: `time`, `level`, `message`, and the event's values, all on one level.
struct Json;

/// Values of an event as JSON, in order; the message is the first.
#[derive(Default)]
struct Values(Vec<(&'static str, String)>);

impl Visit for Values {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let value = format!("{value:?}");
        match field.name() {
            "message" => self.0.insert(0, ("message", value)),
            name => self.0.push((name, value)),
        }
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.push((field.name(), value.to_owned()));
    }
}

/// Formats an event of now. Every value is a string, so that a key has one type in all events.
fn line(level: &str, values: &[(&str, String)]) -> String {
    let mut time = String::new();
    // A clock that cannot be formatted leaves the time empty.
    let _ = SystemTime.format_time(&mut Writer::new(&mut time));
    let quoted = |text: &str| serde_json::to_string(text).unwrap_or_default();
    let mut line = format!("{{\"time\":{},\"level\":{}", quoted(&time), quoted(level));
    for (name, value) in values {
        let most = LINE.saturating_sub(line.len() + name.len()) / 2;
        let value = quoted(&shown(value, most.min(MESSAGE)));
        // A string takes all that is written to it.
        let _ = write!(line, ",{}:{value}", quoted(name));
        if line.len() > LINE {
            break;
        }
    }
    line + "}"
}

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _: &FmtContext<'_, S, N>,
        mut to: Writer<'_>,
        event: &Event<'_>,
    ) -> std::fmt::Result {
        let mut values = Values::default();
        event.record(&mut values);
        writeln!(to, "{}", line(event.metadata().level().as_str(), &values.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Kept {
        fn write(&mut self, event: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend(event);
            Ok(event.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn an_event_is_a_line_of_json_whatever_its_values_are() {
        let kept = Kept::default();
        let writer = kept.clone();
        let events = tracing_subscriber::fmt().with_writer(move || writer.clone()).event_format(Json);
        tracing::subscriber::with_default(events.finish(), || {
            tracing::info!(dev = "wan0", times = 3, "the \"engine\" had\nbeen away");
            tracing::warn!(error = %"\"\\".repeat(3_000), "{}", "ü\u{1b}".repeat(2_000));
        });
        let text = String::from_utf8(kept.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert!(text.lines().all(|line| line.len() <= 2_000), "{text}");
        let [first, second] = [&lines[0], &lines[1]];
        assert_eq!(
            (&first["level"], &first["dev"], &first["times"]),
            (&"INFO".into(), &"wan0".into(), &"3".into())
        );
        assert_eq!(first["message"], "the \"engine\" had\\nbeen away");
        assert!(first["time"].as_str().unwrap().starts_with("20"));
        assert_eq!(second["level"], "WARN");
        assert!(second["message"].as_str().unwrap().starts_with("ü\\u{1b}ü"));
    }
}
