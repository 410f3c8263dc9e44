//! `weir pace`: paces traffic that leaves by an interface of this host, without a file.

use super::error::Failure;
use crate::experiment::config::{addresses, gateway, Source};
use crate::field::{self, Version};
use crate::output::Target;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `weir pace`.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  sudo weir pace eth1 --rate 500Mbit
  sudo weir pace eth1 --rate 500Mbit --match dst=192.0.2.0/24,protocol=tcp --match dst_port=5001
  sudo weir pace eth1 --rate 50% --line 10Gbit --counts frame --print

Traffic that --match selects is queued and leaves at the rate, evenly spaced. All other traffic takes the rest of the line. Rates and shares of \
several classes need a file: weir pace --print writes one to begin with, and weir run runs it.")]
pub struct Args {
    /// Interface that the traffic leaves by, of this host or of others behind it
    #[arg(value_name = "DEV", value_parser = addresses::interface)]
    dev: String,
    /// Rate, e.g. 500Mbit, a share of the line, e.g. 50%, or window: that of TCP flows over their round-trip
    /// times
    #[arg(long, value_name = "RATE")]
    rate: String,
    /// Traffic to pace: keys of a rule, KEY=VALUE,…; may be given several times; default: all traffic
    #[arg(long = "match", value_name = "RULE")]
    rules: Vec<String>,
    /// Time base: gap (bytes on the line, with fillers between packets) or clock (deadlines)
    #[arg(long, value_name = "BY", default_value = "gap")]
    by: String,
    /// Bytes that the rate counts: ip, frame or wire
    #[arg(long, value_name = "BYTES", default_value = "ip")]
    counts: String,
    /// Rate of the line; default: the rate that the interface reports
    #[arg(long, value_name = "RATE")]
    line: Option<String>,
    /// Filler frames: pause, or a destination address that no bridge forwards, such as 01:80:c2:00:00:0f
    #[arg(long, value_name = "FILLER", default_value = "pause")]
    filler: String,
    /// Limit of the queue, e.g. 1000p or 64KiB
    #[arg(long, value_name = "LIMIT", default_value = "1000p")]
    queue: String,
    /// Write totals and the class to this file as JSON, every second and at the end
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Print the configuration that this stands for, and do nothing
    #[arg(long)]
    print: bool,
    #[command(flatten)]
    log: super::log::Logging,
}

/// Runs until SIGINT or SIGTERM.
pub fn run(args: &Args) -> Result<(), Failure> {
    let source = Source::new("the command line", args.file());
    if args.print {
        gateway::parse(&source)?;
        return super::print(&source.text);
    }
    let json = args.json.as_deref().map(Target::of_a_daemon).transpose().map_err(Failure::Input)?;
    let version = Version::read(source)?;
    args.log.begin()?;
    let seed = super::random_seed().map_err(Failure::Other)?;
    field::gateway(version, None, seed, json).map_err(Failure::Other)
}

impl Args {
    /// Returns the file that the options stand for.
    fn file(&self) -> String {
        let text = |value: &str| toml::Value::from(value).to_string();
        let mut file = format!("[ports]\ndev = {}\n\n[gateway]\n", text(&self.dev));
        if let Some(line) = &self.line {
            let _ = writeln!(file, "line = {}", text(line));
        }
        let _ = write!(
            file,
            "filler = {}\n\n[[gateway.class]]\nname = \"paced\"\nrate = {}\npace = {}\ncounts = {}\nqueue = {}\n",
            text(&self.filler),
            text(&self.rate),
            text(&self.by),
            text(&self.counts),
            text(&self.queue),
        );
        let rule = |rule: &String| {
            let keys = rule.split(',').map(|key| match key.split_once('=') {
                // A VLAN identifier is a number, unlike other values.
                Some((name, value)) if value.parse::<u16>().is_ok() && !name.contains("port") => {
                    format!("{} = {value}", name.trim())
                }
                Some((name, value)) => format!("{} = {}", name.trim(), text(value.trim())),
                None => key.to_string(),
            });
            format!("{{ {} }}", keys.collect::<Vec<_>>().join(", "))
        };
        if !self.rules.is_empty() {
            let rules: Vec<String> = self.rules.iter().map(rule).collect();
            let _ = writeln!(file, "match = [{}]", rules.join(", "));
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;
    use weir_core::gateway::Match;
    use weir_core::pace::{Backend, Counts, Filler, Target as Rates};
    use weir_core::rate::Rate;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        args: Args,
    }

    fn file(line: &[&str]) -> Result<gateway::GatewayFile, String> {
        let args = Line::try_parse_from([&["weir"], line].concat()).map_err(|e| e.to_string())?.args;
        gateway::parse(&Source::new("the command line", args.file())).map_err(|e| e.to_string())
    }

    #[test]
    fn options_are_a_file() {
        let all = file(&["eth1", "--rate", "500Mbit"]).unwrap();
        let share = all.gateway.classes[0].share.expect("a queue");
        let pace = share.pace.expect("paced");
        assert_eq!((all.dev.as_str(), pace.target), ("eth1", Rates::Rate(Rate::mbit(500))));
        assert_eq!((pace.backend, pace.counts, all.gateway.port.line), (Backend::Gap, Counts::Ip, None));
        let line = "eth1 --rate 25% --line 10Gbit --by clock --counts wire --filler 01:80:c2:00:00:05 \
                    --match dst=192.0.2.0/24,dst_port=80-90 --match protocol=udp,vlan=7";
        let some = file(&line.split_whitespace().collect::<Vec<_>>()).unwrap().gateway;
        let pace = some.classes[0].share.and_then(|share| share.pace).expect("paced");
        assert_eq!(
            (pace.target, pace.backend, pace.counts),
            (Rates::Share(250_000), Backend::Clock, Counts::Wire)
        );
        assert_eq!((some.port.line, some.port.filler), (Some(Rate::mbit(10_000)), Filler::Reserved(5)));
        let rules: Vec<(Option<u8>, Option<u16>)> =
            some.classes[0].matches.iter().map(|m: &Match| (m.protocol, m.vlan)).collect();
        assert_eq!(rules, [(None, None), (Some(17), Some(7))]);
        let window = file(&["eth1", "--rate", "window"]).unwrap().gateway.classes[0].share;
        assert_eq!(window.and_then(|share| share.pace).map(|pace| pace.target), Some(Rates::Window));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let error = |line: &str| file(&line.split_whitespace().collect::<Vec<_>>()).unwrap_err();
        assert!(error("eth1 --rate 2Gbit --line 1Gbit").contains("is above the line's"));
        assert!(error("eth1 --rate fast").contains("rate"));
        assert!(error("eth1 --rate 1Mbit --filler ff:ff:ff:ff:ff:ff").contains("could be taken for traffic"));
        assert!(error("eth1 --rate 1Mbit --by magic").contains("magic"));
        assert!(error("eth1 --rate 1Mbit --match port=80").contains("port"));
    }
}
