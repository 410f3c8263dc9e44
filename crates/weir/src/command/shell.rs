//! `weir shell`: a program behind an emulated path, without privileges.

use super::link_options::LinkOptions;
use crate::command::error::Failure;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::ports::{Attach, Driving};
use crate::experiment::config::wan::WanFile;
use crate::field::shell::{self, Shell};
use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;

/// Arguments of `weir shell`. The options describe a path that is equal in both directions.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  weir shell --rate 10Mbit --rtt 40ms --server 'iperf3 -s' -- iperf3 -c 10.77.0.2
  weir shell --delivery-trace lte.down --queue 100p --server 'python3 -m http.server -d site' -- \\
      curl -o /dev/null http://10.77.0.2:8000/big
  sudo weir shell --rtt 100ms --loss 1% -- ssh 10.77.0.2        # servers of this host

The program runs in a network of its own. Its address is 10.77.0.1, and the far end of the path is 10.77.0.2. For root, \
the far end is this host. For any other user it is an empty network in which only --server runs: neither this host nor \
the Internet can be reached. Inside, the user is called root, which gives no rights outside.")]
pub struct Args {
    /// Options of each direction.
    #[command(flatten)]
    pub link: LinkOptions,
    /// Round-trip time, half of it in each direction
    #[arg(long, value_name = "TIME", conflicts_with = "delay")]
    pub rtt: Option<String>,
    /// Seed of random losses, delays and damage
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A shell command that runs on the far side until the program has ended; the program begins when a port
    /// of it listens, and its output comes on standard error, as `server: …`
    #[arg(long, value_name = "COMMAND")]
    pub server: Option<String>,
    /// The program and its arguments; by default the user's shell
    #[arg(last = true, value_name = "PROGRAM")]
    pub program: Vec<OsString>,
}

impl Args {
    fn load(&self) -> Result<Shell, Vec<Fault>> {
        let path = self.link.path(self.rtt.as_ref())?;
        // Only path and seed of a `weir wan` file are used.
        let attach = Attach::Pair { lan: "weir0".into(), wan: "weir1".into() };
        let wan = WanFile { attach, driving: Driving::default(), seed: self.seed.unwrap_or(1), path };
        let mut program = self.program.clone();
        if program.is_empty() {
            program.push(std::env::var_os("SHELL").unwrap_or_else(|| "/bin/sh".into()));
        }
        Ok(Shell { wan, program, server: self.server.clone() })
    }
}

/// Runs the program and ends with its exit code, or with 128 plus the number of the signal that ended it. A
/// program that does not exist is 127, and one that may not be run 126.
pub fn run(args: &Args) -> Result<(), Failure> {
    let shell = args.load().map_err(|faults| {
        Failure::Input(faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    let status = match shell::run(&shell) {
        Ok(status) => status,
        Err(shell::Failed::Other(text)) => return Err(Failure::Other(text)),
        Err(shell::Failed::Program(text, code)) => {
            crate::output::say(&format!("weir: {text}"));
            std::process::exit(i32::from(code));
        }
    };
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(3);
    match code {
        0 => Ok(()),
        code => std::process::exit(code),
    }
}
