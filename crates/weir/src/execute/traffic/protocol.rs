//! The protocol that drives a traffic process. Its input is a [`Spec`] as JSON. It writes `ready` when its
//! peers may connect, reads `go EPOCH`, and finally writes a [`Report`](super::Report) as JSON. The line
//! `stop`, or the end of input after `go`, ends it early with the results so far; so do SIGINT and SIGTERM. A
//! specification with an `epoch_ns` runs without waiting for `go`.

use super::{Generator, Spec};
use crate::output::READY;
use serde::Deserialize;
use std::io::{self, BufRead, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use weir_core::time::Time;

/// Command to start, followed by the epoch in nanoseconds.
pub const GO: &str = "go";
/// Command to end early.
pub const STOP: &str = "stop";

/// Control that ends a generator early, from another thread or a signal handler.
#[derive(Clone, Debug, Default)]
pub struct Control {
    stop: Arc<AtomicBool>,
}

impl Control {
    /// Requests a stop, which takes effect within 50 ms.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
    /// Returns whether a stop was requested.
    pub fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// Runs the specification from `input` and writes the report to `output`.
pub fn serve(mut input: impl BufRead + Send + 'static, output: &mut impl Write) -> Result<(), String> {
    let io = |e: io::Error| format!("traffic: {e}");
    let mut json = serde_json::Deserializer::from_reader(&mut input);
    let spec = Spec::deserialize(&mut json).map_err(|e| format!("traffic: specification: {e}"))?;
    drop(json);
    let told = spec.epoch_ns.map(Time::from_nanos);
    let control = Control::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, control.stop.clone()).map_err(io)?;
    }
    let generator = Generator::open(spec).map_err(|e| format!("traffic: {e}"))?;
    writeln!(output, "{READY}").and_then(|()| output.flush()).map_err(io)?;
    let epoch = match told {
        Some(epoch) => epoch,
        None => {
            let epoch = wait_for_go(&mut input)?;
            let control = control.clone();
            std::thread::spawn(move || watch(input, &control));
            epoch
        }
    };
    let report = generator.run(epoch, &control).map_err(io)?;
    let line = serde_json::to_string(&report).map_err(|e| format!("traffic: report: {e}"))?;
    writeln!(output, "{line}").and_then(|()| output.flush()).map_err(io)
}

/// Waits for the `go` line and returns its epoch.
fn wait_for_go(input: &mut impl BufRead) -> Result<Time, String> {
    let mut line = String::new();
    while input.read_line(&mut line).map_err(|e| format!("traffic: {e}"))? > 0 {
        let text = line.trim();
        if !text.is_empty() {
            let epoch = text.strip_prefix(GO).and_then(|ns| ns.trim().parse().ok());
            return epoch
                .map(Time::from_nanos)
                .ok_or(format!("traffic: `{GO} EPOCH` expected, not `{text}`"));
        }
        line.clear();
    }
    Err(format!("traffic: the input ended before `{GO} EPOCH`"))
}

/// Stops the generator at `stop` or at the end of the input.
fn watch(input: impl BufRead, control: &Control) {
    for line in input.lines().map_while(Result::ok) {
        if line.trim() == STOP {
            break;
        }
    }
    control.stop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn the_go_line_has_the_epoch() {
        assert_eq!(wait_for_go(&mut Cursor::new("\n\ngo 17\n")).unwrap(), Time::from_nanos(17));
        assert!(wait_for_go(&mut Cursor::new("now\n")).unwrap_err().contains("`now`"));
        assert!(wait_for_go(&mut Cursor::new("")).unwrap_err().contains("ended"));
    }

    #[test]
    fn a_specification_is_read_and_a_report_written() {
        let input = Cursor::new("{\n \"stop_ns\": 1000,\n \"flows\": []}\ngo 1\n");
        let mut out = Vec::new();
        serve(input, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (ready, report) = text.split_once('\n').unwrap();
        assert_eq!(ready, READY);
        let report: crate::execute::traffic::Report = serde_json::from_str(report).unwrap();
        assert!(report.flows.is_empty());
    }
}
