//! `weir check`: parses a file and says what it would do.

use super::Failure;
use crate::config::{self, File, Source};
use crate::plan::{Link, Plan};
use clap::Args;
use std::fmt::Write;
use std::path::PathBuf;
use weir_core::ack::{AckControl, Period, Release, SlowStart, Window};
use weir_core::gateway::Config;
use weir_io::supervise::{BridgeUse, Setup, Steered};

/// Arguments of `weir check`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// An experiment, a gateway.toml, or a file for `weir wan`.
    pub file: PathBuf,
    /// Only parse: do not look at this host's interfaces and privileges.
    #[arg(long)]
    pub offline: bool,
}

/// Parses, prints, and looks at the host if the file is for one.
pub fn run(arguments: &Arguments) -> Result<(), Failure> {
    let source = Source::read(&arguments.file)?;
    let (text, setup) = match config::parse(&source).map_err(|e| e.to_string())? {
        File::Experiment(e) => (experiment(&e.plan), None),
        File::Gateway(f) => {
            let (lan, wan) = f.gateway.ack_ports();
            let steered = Steered::Acks { lan, wan };
            let text = format!("gateway between {} (LAN) and {} (WAN)\n", f.ports.lan, f.ports.wan);
            let setup = Setup::new(&f.ports.lan, &f.ports.wan, steered, BridgeUse::Kernel);
            (text + &gateway(&f.gateway), Some(setup))
        }
        File::Wan(f) => {
            let text = format!("emulator between {} (LAN) and {} (WAN)\n", f.ports.lan, f.ports.wan)
                + &link("out", &f.path.wan_out)
                + &link("back", &f.path.wan_back);
            (text, Some(Setup::new(&f.ports.lan, &f.ports.wan, Steered::Full, BridgeUse::None)))
        }
    };
    print!("{text}");
    if let Some(setup) = setup.filter(|_| !arguments.offline) {
        setup.check().map_err(|problems| problems.to_string())?;
        println!("this host has what it takes");
    }
    Ok(())
}

fn experiment(plan: &Plan) -> String {
    let mut text = format!("experiment {}: {} s, {} flows\n", plan.name, plan.duration, plan.flows().count());
    for group in &plan.groups {
        let cc = group.cc.as_deref().unwrap_or("default");
        let _ = writeln!(text, "  flow {} × {}, {cc}, from {}", group.id, group.count, group.start);
    }
    text += &link("lan", &plan.path.lan);
    text += &link("wan.out", &plan.path.wan_out);
    text += &link("wan.back", &plan.path.wan_back);
    match &plan.gateway {
        Some(config) => text += &gateway(config),
        None => text += "no gateway: a plain bridge\n",
    }
    let _ = writeln!(text, "{} checks", plan.expects.len());
    text
}

fn link(name: &str, l: &Link) -> String {
    if l.is_bare() {
        return format!("  link {name}: a bare wire\n");
    }
    let rate = l.rate.map_or("no rate".to_string(), |r| format!("{r}, queue {:?}", l.queue));
    format!("  link {name}: {rate}, delay {}, loss {:?}\n", l.delay, l.loss)
}

fn gateway(config: &Config) -> String {
    let mut text = String::new();
    for c in &config.classes {
        let what = c.ack.as_ref().map_or("left alone".to_string(), policy);
        let rules = if c.matches.is_empty() { "every flow".into() } else { format!("{} rules", c.matches.len()) };
        let _ = writeln!(text, "  class {} ({:?}, {rules}): {what}", c.name, c.direction);
    }
    let _ = writeln!(text, "  at most {} flows; others pass untouched", config.max_flows);
    text
}

fn policy(ack: &AckControl) -> String {
    let Release::Rate(r) = ack.release;
    let period = match r.period {
        Period::Fixed(d) => format!("every {d}"),
        Period::Auto { min, max } => format!("every two segments, {min} to {max}"),
    };
    let window = match ack.window {
        Window::Keep => String::new(),
        Window::Size { standing_delay } => format!(", at most {standing_delay} held"),
    };
    let slow_start = match r.slow_start {
        SlowStart::Ignore => ", slow start ignored",
        SlowStart::Detect { .. } => "",
    };
    format!("{} per flow ({:?}), ACKs released {period}{window}{slow_start}", r.rate, r.counts)
}
