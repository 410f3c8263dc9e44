//! TCPs that are not Linux's, through the presets: each as sender and as receiver, beside Linux's own.
//!
//! What a stack gets of the rate that the gateway gives it is printed, a line for each stack and role and a
//! column for each preset.
//!
//! ```text
//! stack under test ── bridge with `weir run` ── `weir wan` ── Linux
//! ```
//!
//! smoltcp runs in this program, over a TAP device; gVisor's netstack in a program of its own (`netstack`).
//! Both ends of a connection are processes in namespaces: this program again, as `weir-stacks end …`. With
//! `--odd` a third one forges segments of the Linux end.

mod linux;
mod odd;
mod path;
mod smol;

use path::{Path, Preset, PRESETS, RATE};
use std::fmt;
use std::process::ExitCode;
use std::time::Duration;

/// Until then bytes are not counted: slow start, and what the first window brings.
const BEGINS: Duration = Duration::from_millis(2_000);
const ENDS: Duration = Duration::from_millis(6_000);
/// The share of the rate, as payload, that a stack must have: headers take 3 to 5 %, and a machine that is
/// busy takes more.
const ENOUGH: std::ops::RangeInclusive<f64> = 0.8..=1.1;

const USAGE: &str = "\
usage: weir-stacks [--weir PROGRAM] [--netstack PROGRAM] [--stack NAME]... [--preset NAME]... [--odd]

Puts connections of other TCPs through the presets and prints what they get of their rate. It needs root.
Exit code 1: one of them has less than 80 % of its rate, or more than 110 %.

  --weir PROGRAM      default: target/release/weir
  --netstack PROGRAM  gVisor's netstack (stacks/netstack); without it that is left out
  --stack NAME        linux, smoltcp or netstack; default: all
  --preset NAME       default: all, and pfq, the queue of postack-pfq alone
  --odd               send odd segments in the name of the far end beside each connection";

/// A TCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Linux,
    Smoltcp,
    Netstack,
}

/// A TCP, and its congestion control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stack {
    pub kind: Kind,
    pub control: &'static str,
}

/// Which way the data goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Sender,
    Receiver,
}

const STACKS: [Stack; 7] = [
    Stack { kind: Kind::Linux, control: "reno" },
    Stack { kind: Kind::Linux, control: "cubic" },
    Stack { kind: Kind::Linux, control: "bbr" },
    Stack { kind: Kind::Smoltcp, control: "reno" },
    Stack { kind: Kind::Smoltcp, control: "cubic" },
    Stack { kind: Kind::Netstack, control: "reno" },
    Stack { kind: Kind::Netstack, control: "cubic" },
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Kind::Linux => "linux",
            Kind::Smoltcp => "smoltcp",
            Kind::Netstack => "netstack",
        }
    }
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Role::Sender => "sender",
            Role::Receiver => "receiver",
        }
    }

    /// Of the other end.
    pub fn other(self) -> Role {
        match self {
            Role::Sender => Role::Receiver,
            Role::Receiver => Role::Sender,
        }
    }
}

impl fmt::Display for Stack {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.kind.name(), self.control)
    }
}

/// What is to be run.
pub struct Options {
    pub weir: String,
    pub netstack: Option<String>,
    /// Odd segments come beside each connection.
    pub odd: bool,
    stacks: Vec<Stack>,
    presets: Vec<&'static Preset>,
}

impl Options {
    fn read(mut args: impl Iterator<Item = String>) -> Result<Options, String> {
        let mut options = Options {
            weir: "target/release/weir".into(),
            netstack: None,
            odd: false,
            stacks: Vec::new(),
            presets: Vec::new(),
        };
        while let Some(arg) = args.next() {
            if arg == "--odd" {
                options.odd = true;
                continue;
            }
            let value = args.next().ok_or(format!("{arg}: a value is missing\n\n{USAGE}"))?;
            match arg.as_str() {
                "--weir" => options.weir = value,
                "--netstack" => options.netstack = Some(value),
                "--stack" => {
                    let named: Vec<Stack> = STACKS.into_iter().filter(|s| s.kind.name() == value).collect();
                    if named.is_empty() {
                        return Err(format!("--stack {value}: linux, smoltcp or netstack"));
                    }
                    options.stacks.extend(named);
                }
                "--preset" => {
                    let names: Vec<&str> = PRESETS.iter().map(|p| p.name).collect();
                    let found = PRESETS.iter().find(|p| p.name == value);
                    options
                        .presets
                        .push(found.ok_or(format!("--preset {value}: one of {}", names.join(", ")))?);
                }
                _ => return Err(format!("{arg}: unknown\n\n{USAGE}")),
            }
        }
        if options.stacks.is_empty() {
            options.stacks = STACKS.to_vec();
        }
        if options.presets.is_empty() {
            options.presets = PRESETS.iter().collect();
        }
        if options.netstack.is_none() {
            options.stacks.retain(|s| s.kind != Kind::Netstack);
        }
        Ok(options)
    }
}

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1).peekable();
    let done = match args.peek().map(String::as_str) {
        Some("end") => end(&args.skip(1).collect::<Vec<_>>()).map(|()| true),
        Some("--help") => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => Options::read(args).and_then(|options| table(&options)),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("weir-stacks: {e}");
            ExitCode::from(2)
        }
    }
}

/// One end of a connection. It prints the bytes that it counts.
fn end(args: &[String]) -> Result<(), String> {
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let role = |name| if name == Role::Sender.name() { Role::Sender } else { Role::Receiver };
    let bytes = match args[..] {
        ["odd"] => odd::send(),
        ["listen", name, control] => linux::listen(role(name), control),
        ["linux", name, control] => linux::connect(role(name), control),
        ["smoltcp", name, control] => smol::connect(role(name), control),
        _ => return Err(USAGE.into()),
    };
    println!("{}", bytes.map_err(|e| e.to_string())?);
    Ok(())
}

/// Every stack and role, by presets. False: some are not held to their rates, or do not reach them.
fn table(options: &Options) -> Result<bool, String> {
    let head: String = options.presets.iter().map(|p| format!("  {}", p.name)).collect();
    println!("% of {} Mbit/s, as payload\n{:24}{head}", RATE / 1_000_000, "");
    let mut away = Vec::new();
    for stack in &options.stacks {
        for role in [Role::Sender, Role::Receiver] {
            let mut line = format!("{:24}", format!("{stack}, {}", role.name()));
            for preset in &options.presets {
                let share = share(options, *stack, role, preset)?;
                line.push_str(&format!("  {:>1$.1}", 100.0 * share, preset.name.len()));
                if !ENOUGH.contains(&share) {
                    away.push(format!("{stack} as {}, {}: {:.1} %", role.name(), preset.name, 100.0 * share));
                }
            }
            println!("{line}");
        }
    }
    away.iter().for_each(|line| println!("{line}"));
    Ok(away.is_empty())
}

/// What the stack gets, as a share of the rate.
fn share(options: &Options, stack: Stack, role: Role, preset: &Preset) -> Result<f64, String> {
    let path = Path::new(options, stack.kind, role, preset)?;
    let bytes = path.run(options, stack, role)?;
    Ok(bytes as f64 * 8.0 / (ENDS - BEGINS).as_secs_f64() / RATE as f64)
}
