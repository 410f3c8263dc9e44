//! `weir ctl`: queries a running gateway or emulator, or changes its settings.

use crate::command::error::Failure;
use crate::experiment::config::addresses;
use crate::experiment::config::customers::label;
use crate::experiment::config::diag::shown_lines;
use crate::field;
use crate::field::control::{Answer, Owner};
use crate::report::table;
use crate::result::running::{EmulatorReport, GatewayReport, Notes};
use serde::Deserialize;
use std::io::{IsTerminal, Write};
use std::time::Duration;

/// Time between the answers of `--watch`.
const EVERY: Duration = Duration::from_secs(1);

/// Arguments of `weir ctl`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir ctl show
  sudo weir ctl show 17                              # a customer, a site or a class
  sudo weir ctl show 'Ada Smith'                     # a customer by its name
  sudo weir ctl show 10.1.2.3
  sudo weir ctl set class/voip.ack.flow_rate=90kbit
  sudo weir ctl set customer/17.down=50Mbit customer/17.up=10Mbit site/tower.down=300Mbit
  sudo weir ctl off 17
  sudo weir ctl off '12 Main/B'                      # or 12_Main_B, as its classes have it
  sudo weir ctl set path.wan.rate=2Mbit path.wan.out.delay=30ms    # of `weir wan`
  sudo weir ctl --json show | jq '.report.traffic[] | {kind, name, direction, bps}'

A setting lasts until the file is read again (`weir reload`) or Weir ends.")]
pub struct Args {
    /// The interface of the gateway or emulator, if several run
    #[arg(long, global = true, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Print the answer as JSON
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    what: What,
}

/// Request to the gateway.
#[derive(clap::Subcommand, Debug)]
enum What {
    /// Show the link, sites, customers, classes and active flows, with their rates
    Show {
        /// An address, or the name of a customer, a site or a class; one that several have as customer/NAME
        #[arg(value_name = "NAME", value_parser = name)]
        name: Option<String>,
        /// Show idle customers too
        #[arg(long, conflicts_with = "name")]
        all: bool,
        /// Show it again every second, until Ctrl-C
        #[arg(long)]
        watch: bool,
    },
    /// Set keys of classes and customers: class/NAME.KEY=VALUE, customer/ID.down=RATE, path.wan.KEY=VALUE
    Set {
        /// Each argument is a place, a key and a value; either all settings are accepted or none
        #[arg(required = true, value_name = "PLACE.KEY=VALUE", value_parser = setting)]
        settings: Vec<String>,
    },
    /// Let the flows of a customer pass untouched
    Off {
        /// The customer's identifier or name
        #[arg(value_parser = name)]
        customer: String,
    },
    /// Shape the flows of a customer again
    On {
        /// The customer's identifier or name
        #[arg(value_parser = name)]
        customer: String,
    },
}

/// Parses an address or a name as lists have it. A request is one line.
fn name(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("an address or a name is expected".to_owned()),
        text if text.contains(char::is_control) => Ok(label(text)),
        text => Ok(text.to_owned()),
    }
}

/// Parses a word of a request, which must not contain blanks.
fn word(text: &str) -> Result<String, String> {
    match text.is_empty() || text.contains(char::is_whitespace) {
        true => Err("a word without blanks is expected".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Parses a setting, whose value may be written with blanks: "90 kbit". So may be names of customers and
/// sites.
fn setting(text: &str) -> Result<String, String> {
    let without = |text: &str| text.split_whitespace().collect::<String>();
    let named = text.rsplit_once('=').and_then(|(place, value)| {
        let (kind, rest) = place.split_once('/').filter(|(kind, _)| matches!(*kind, "customer" | "site"))?;
        let (name, key) = rest.rsplit_once('.')?;
        Some(format!("{kind}/{}.{}={}", label(name), without(key), without(value)))
    });
    word(&named.unwrap_or_else(|| without(text)))
}

/// Sends the request and prints the answer.
pub fn run(args: &Args) -> Result<(), Failure> {
    let (dev, json) = (args.dev.as_deref(), args.json);
    match &args.what {
        What::Show { name, all, watch } => {
            let word = if *all { Some("all") } else { name.as_deref() };
            let request = word.map_or("show".to_owned(), |word| format!("show {word}"));
            show(dev, &request, json, *watch)
        }
        What::Set { settings } => change(dev, &format!("set {}", settings.join(" ")), json),
        What::Off { customer } => change(dev, &format!("off {customer}"), json),
        What::On { customer } => change(dev, &format!("on {customer}"), json),
    }
}

/// Requests a change and reports the result.
pub(super) fn change(dev: Option<&str>, request: &str, json: bool) -> Result<(), Failure> {
    let (answer, text) = ask::<Answer>(dev, request)?;
    if json {
        super::print(&text)?;
    } else if answer.ok {
        super::print(&format!("{}\n", shown_lines(&answer.text)))?;
        super::print(&table::notes(answer.notes.as_ref().unwrap_or(&Notes::default())))?;
    }
    outcome(&answer)
}

fn show(dev: Option<&str>, request: &str, json: bool, watch: bool) -> Result<(), Failure> {
    if !watch {
        return show_once(dev, request, json, "");
    }
    // A terminal is cleared; a pipe gets one answer after the other.
    let before = if std::io::stdout().is_terminal() && !json { "\x1b[H\x1b[J" } else { "" };
    loop {
        show_once(dev, request, json, before)?;
        std::thread::sleep(EVERY);
        // A reader that has gone wants no more.
        if std::io::stdout().flush().is_err() {
            return Ok(());
        }
    }
}

/// Asks once and prints the answer, with `before` in front of it.
fn show_once(dev: Option<&str>, request: &str, json: bool, before: &str) -> Result<(), Failure> {
    let (shown, text) = ask::<Shown>(dev, request)?;
    match shown.report {
        _ if json => super::print(&text)?,
        Some(report) => {
            let owner = shown.customer.as_ref().map_or(String::new(), owner);
            let notes = table::notes(&report.notes);
            super::print(&format!("{before}{owner}{}{notes}", table::running(&report)))?;
        }
        None => {
            let table = shown.emulator.as_ref().map_or(String::new(), table::emulator);
            super::print(&format!("{before}{table}"))?;
        }
    }
    outcome(&shown.answer)
}

/// Returns a customer in words, as a line.
fn owner(c: &Owner) -> String {
    let mbit = |bps: u64| bps as f64 / 1e6;
    let (down, up) = (mbit(c.down_bps), mbit(c.up_bps));
    let name = if c.name.is_empty() { String::new() } else { format!(" ({})", c.name) };
    let off = if c.off { "; OFF: its flows pass untouched" } else { "" };
    let line = format!("customer {}{name}: {down} Mbit/s down, {up} up; {}{off}", c.id, c.prefixes.join(" "));
    table::clean(&line) + "\n"
}

/// Answer with a report.
#[derive(Deserialize)]
struct Shown {
    #[serde(flatten)]
    answer: Answer,
    customer: Option<Owner>,
    report: Option<GatewayReport>,
    emulator: Option<EmulatorReport>,
}

/// Sends a request. Returns the answer, parsed and as received.
fn ask<T: for<'a> Deserialize<'a>>(dev: Option<&str>, request: &str) -> Result<(T, String), Failure> {
    let text = field::ask(dev, request).map_err(Failure::Other)?;
    let answer = serde_json::from_str(&text)
        .map_err(|e| Failure::Other(format!("the gateway's answer cannot be read ({e}): {text}")))?;
    Ok((answer, text))
}

fn outcome(answer: &Answer) -> Result<(), Failure> {
    match answer {
        Answer { ok: true, .. } => Ok(()),
        Answer { wrong: true, text, .. } => Err(Failure::Input(text.clone())),
        Answer { text, .. } => Err(Failure::Other(text.clone())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Customers choose names, and root reads them.
    #[test]
    fn a_customer_s_name_cannot_write_to_a_terminal() {
        let name = "A\u{1b}[31mda\n\u{202e}\u{2066}".to_owned();
        let owner = Owner {
            id: "1\u{7}".into(),
            name,
            prefixes: vec!["10.1.0.3/32".into()],
            down_bps: 2_500_000,
            up_bps: 500_000,
            off: false,
        };
        let line = "customer 1? (A?[31mda???): 2.5 Mbit/s down, 0.5 up; 10.1.0.3/32\n";
        assert_eq!(super::owner(&owner), line);
    }
}
