//! Results as text. What comes out is plain; colour is added only for a terminal that wants it.

use crate::expect::{compare, three_digits};
use crate::plan::Plan;
use crate::result::{Counts, ExpectResult, FlowResult, RunResult, Status};
use std::fmt::Write;
use std::io::IsTerminal;

/// Whether control characters may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// None at all: for files and pipes.
    Plain,
    /// Colours, for a terminal.
    Colour,
}

impl Style {
    /// Colours if `out` is a terminal, `NO_COLOR` is not set and `TERM` is not `dumb`.
    pub fn of(out: &impl IsTerminal) -> Style {
        let refused = std::env::var_os("NO_COLOR").is_some_and(|v| !v.is_empty())
            || std::env::var_os("TERM").is_some_and(|t| t == "dumb");
        if out.is_terminal() && !refused {
            Style::Colour
        } else {
            Style::Plain
        }
    }

    fn paint(self, text: &str, code: &str) -> String {
        match self {
            Style::Plain => text.to_string(),
            Style::Colour => format!("\x1b[{code}m{text}\x1b[0m"),
        }
    }
}

/// The whole report of a run: flows, gateway, links, expectations, and the paper's values beside ours.
pub fn report(plan: &Plan, result: &RunResult, style: Style) -> String {
    let status = match result.status {
        Status::Ok => style.paint("ok", "32"),
        Status::Failed => style.paint("FAILED", "1;31"),
        Status::Interrupted => style.paint("interrupted", "33"),
    };
    let title = if plan.title.is_empty() { String::new() } else { format!(": {}", plan.title) };
    let mut out = format!("{}{title}\n", style.paint(&result.experiment, "1"));
    let _ = writeln!(
        out,
        "{}, {:.1} s in {:.1} s, seed {}: {status}\n",
        result.world.name(),
        result.duration_s,
        result.wall_s,
        result.seed
    );
    out.push_str(&flows(result));
    for section in [classes(result), links(result), gateway(result)] {
        if !section.is_empty() {
            out.push('\n');
            out.push_str(&section);
        }
    }
    if !result.expects.is_empty() {
        out.push('\n');
        out.push_str(&expects(&result.expects, style));
    }
    let reference = reference(plan, result);
    if !reference.is_empty() {
        out.push('\n');
        out.push_str(&reference);
    }
    out
}

/// Columns of text: the first `left` are aligned to the left, the others to the right.
struct Columns {
    left: usize,
    rows: Vec<Vec<String>>,
}

impl Columns {
    fn new(left: usize, head: &[&str]) -> Columns {
        Columns { left, rows: vec![head.iter().map(|h| h.to_string()).collect()] }
    }
    fn row(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }
    fn render(&self) -> String {
        let n = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let cell = |row: &Vec<String>, i: usize| row.get(i).map_or(0, |c| c.chars().count());
        let widths: Vec<usize> =
            (0..n).map(|i| self.rows.iter().map(|r| cell(r, i)).max().unwrap_or(0)).collect();
        let mut out = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for (i, text) in row.iter().enumerate() {
                let pad = " ".repeat(widths[i] - text.chars().count());
                let gap = if i == 0 { "" } else { "  " };
                match i < self.left {
                    true => line.extend([gap, text.as_str(), &pad]),
                    false => line.extend([gap, &pad, text.as_str()]),
                }
            }
            out.push_str(line.trim_end());
            out.push('\n');
        }
        out
    }
}

fn mbit(bps: f64) -> String {
    let m = bps / 1e6;
    if m < 0.1 {
        format!("{m:.4}")
    } else {
        format!("{m:.3}")
    }
}

fn millis(us: u64) -> String {
    // Zero means that nothing was measured: no round trip takes less than a microsecond.
    match us {
        0 => "-".to_string(),
        us => format!("{:.1}", us as f64 / 1e3),
    }
}

/// The lowest and the highest of the intervals that were not cut by the flow's beginning or end.
fn interval_range(f: &FlowResult) -> Option<(f64, f64)> {
    let longest = f.intervals.iter().map(|i| i.len_s).fold(0.0, f64::max);
    let whole = f.intervals.iter().filter(|i| i.len_s >= longest * 0.999).map(|i| i.bps);
    whole.fold(None, |range, bps| match range {
        None => Some((bps, bps)),
        Some((low, high)) => Some((low.min(bps), high.max(bps))),
    })
}

/// The table of flows, as iperf would summarise them: rates in Mbit/s of payload, times in ms.
pub fn flows(result: &RunResult) -> String {
    let with_fct = result.flows.iter().any(|f| f.fct_s.is_some());
    let mut head = vec![
        "flow", "class", "cc", "Mbit/s", "set to", "off by", "lowest", "highest", "RTT p50", "p99", "resent",
        "RTOs",
    ];
    if with_fct {
        head.push("done in");
    }
    let mut t = Columns::new(3, &head);
    for f in &result.flows {
        let dash = || "-".to_string();
        let (low, high) = interval_range(f).map_or((dash(), dash()), |(l, h)| (mbit(l), mbit(h)));
        let target = f.target_bps.map(|t| t as f64);
        let class = match (&f.pass_reason, f.class.as_str()) {
            (Some(why), _) => format!("({why})"),
            (None, "") => dash(),
            (None, c) => c.to_string(),
        };
        let mut row = vec![
            f.id.clone(),
            class,
            if f.cc.is_empty() { dash() } else { f.cc.clone() },
            mbit(f.goodput_bps),
            target.map_or(dash(), mbit),
            target.map_or(dash(), |t| format!("{:+.2} %", (f.goodput_bps - t) / t * 100.0)),
            low,
            high,
            millis(f.rtt_us.p50),
            millis(f.rtt_us.p99),
            f.retransmits.to_string(),
            f.rtos.to_string(),
        ];
        if with_fct {
            row.push(f.fct_s.map_or(dash(), |s| format!("{s:.3} s")));
        }
        t.row(row);
    }
    if result.flows.len() > 1 {
        let sum: f64 = result.flows.iter().map(|f| f.goodput_bps).sum();
        t.row(["sum".to_string(), String::new(), String::new(), mbit(sum)]);
    }
    t.render()
}

fn drops(d: &Counts) -> String {
    let mut parts: Vec<String> =
        d.iter().filter(|(_, n)| **n > 0).map(|(reason, n)| format!("{n} {reason}")).collect();
    if parts.is_empty() {
        parts.push("0".to_string());
    }
    parts.join(", ")
}

fn classes(result: &RunResult) -> String {
    if result.classes.is_empty() {
        return String::new();
    }
    let mut t = Columns::new(
        1,
        &["class", "Mbit/s", "set to", "peak held kB", "as ACKs", "absorbed", "made", "rewritten", "drops"],
    );
    for c in &result.classes {
        t.row([
            c.name.clone(),
            mbit(c.bps),
            if c.target_bps == 0 { "-".to_string() } else { mbit(c.target_bps as f64) },
            format!("{:.1}", c.held_ack_peak_bytes as f64 / 1e3),
            c.held_ack_peak_packets.to_string(),
            c.acks_absorbed.to_string(),
            c.acks_generated.to_string(),
            c.acks_rewritten.to_string(),
            drops(&c.drops),
        ]);
    }
    t.render()
}

fn links(result: &RunResult) -> String {
    if result.links.is_empty() {
        return String::new();
    }
    let mut t = Columns::new(1, &["link", "packets", "MB", "used", "queue p50", "p99", "max", "drops"]);
    for l in &result.links {
        let ms = |us: u64| format!("{:.2}", us as f64 / 1e3);
        t.row([
            l.name.clone(),
            l.packets.to_string(),
            format!("{:.1}", l.bytes as f64 / 1e6),
            if l.utilization == 0.0 { "-".to_string() } else { format!("{:.1} %", l.utilization * 100.0) },
            ms(l.queue_us.p50),
            ms(l.queue_us.p99),
            ms(l.queue_us.max),
            drops(&l.drops),
        ]);
    }
    t.render()
}

fn gateway(result: &RunResult) -> String {
    let Some(g) = &result.gateway else {
        return String::new();
    };
    let f = &g.frames;
    format!(
        "gateway  {:.2} s of CPU, {} bytes of data through user space\n\
         frames   {} in + {} made = {} out + {} held + {} absorbed + {} dropped\n",
        g.cpu_s,
        g.user_data_bytes,
        f.received,
        f.made,
        f.sent,
        f.held,
        f.absorbed,
        f.dropped.values().sum::<u64>()
    )
}

/// The expectations, one for each line.
pub fn expects(list: &[ExpectResult], style: Style) -> String {
    let mut out = String::new();
    for e in list {
        let mark = if e.ok { style.paint("ok    ", "32") } else { style.paint("FAILED", "1;31") };
        let _ = write!(out, "{mark}  {}", e.what);
        let at = if e.at.is_empty() { String::new() } else { format!(" ({})", e.at) };
        match e.found {
            Some(v) => {
                let _ = writeln!(out, ": found {}{at}, bound {}", plain(&e.what, v), plain(&e.what, e.bound));
            }
            None => {
                let _ = writeln!(out, ": {}", e.at);
            }
        }
    }
    out
}

/// A number for people: whole if it is large, with three digits if it is small; rates in Mbit/s.
fn plain(what: &str, v: f64) -> String {
    if what.contains("bps ") {
        format!("{} Mbit/s", mbit(v))
    } else if v.abs() >= 1000.0 || v.fract() == 0.0 {
        format!("{v:.0}")
    } else {
        three_digits(v)
    }
}

/// What a paper reports, beside what was found.
pub fn reference(plan: &Plan, result: &RunResult) -> String {
    let Some(r) = &plan.reference else {
        return String::new();
    };
    let mut t = Columns::new(3, &["", &r.source, "here"]);
    for row in compare(plan, result) {
        t.row([row.name, row.paper, row.ours]);
    }
    t.render()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{experiment, Source};
    use crate::result::example::{fig12_like, PLAN};

    #[test]
    fn a_report() {
        let text = format!("{PLAN}[reference]\nsource = \"fig. 12\"\n[[reference.row]]\nname = \"10M flows\"\npaper = \"10.1 Mbit/s\"\nwhat = \"flow.ten.*.goodput_bps\"\nfrom = \"2s\"\n");
        let plan = experiment::parse(&Source::new("t.toml", text)).unwrap_or_else(|e| panic!("{e}")).plan;
        let result = fig12_like(&plan);
        let text = report(&plan, &result, Style::Plain);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'), "{text}");
        assert!(text.lines().all(|l| l.trim_end() == l), "{text}");
        let line =
            |start: &str| text.lines().find(|l| l.starts_with(start)).unwrap_or_else(|| panic!("{text}"));
        assert!(line("flow ").ends_with("RTT p50  p99  resent  RTOs"), "{text}");
        assert!(line("five.0 ").contains("five   cubic    4.678"), "{text}");
        assert!(
            line("ok      flow.*.goodput_bps from 2s within 0.5% of flow_rate: found")
                .contains(" Mbit/s (five"),
            "{text}"
        );
        assert!(line("10M flows").contains("10.1 Mbit/s  10.0 Mbit/s"), "{text}");
        assert!(report(&plan, &result, Style::Colour).contains("\x1b[32mok"), "{text}");
    }
}
