//! The command line.

#[cfg(not(feature = "experiments"))]
use super::elsewhere::Elsewhere;
use crate::command::error::Failure;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::process::ExitCode;

/// Weir controls the timing of TCP from anywhere on its path.
#[derive(Parser, Debug)]
#[command(name = "weir", version, max_term_width = 100, after_help = AFTER_HELP)]
pub struct Cli {
    /// Command to run.
    #[command(subcommand)]
    pub command: Command,
}

macro_rules! exit_codes {
    () => {
        "\
Exit codes: 0 success; 1 an expectation, parity or a rule of TCP does not hold; 2 the configuration or the command line is wrong; 3 any \
other failure, such as a missing interface or privilege; 4 inconclusive: a run in real time failed while the machine was overloaded; 130 interrupted."
    };
}

#[cfg(feature = "linux")]
const AFTER_HELP: &str = exit_codes!();
#[cfg(not(feature = "linux"))]
const AFTER_HELP: &str = concat!(
    "This build lacks run, reload, upgrade, ctl, top, metrics, down, lab, wan, pace, shell and chirp, which need Linux and the cargo feature `linux`.

",
    exit_codes!()
);

/// Place of the benchmarks.
const BENCH: &str =
    "the benchmarks are a program of their own, weir-bench: cargo build --release -p weir-bench";

/// Checks of this host for `weir check`.
#[cfg(feature = "linux")]
const HOST_CHECKS: super::check::HostChecks = &super::check::this_host;
#[cfg(not(feature = "linux"))]
const HOST_CHECKS: super::check::HostChecks = &super::check::no_host_checks;

/// Commands of the program.
#[derive(Subcommand, Debug)]
pub enum Command {
    #[cfg(feature = "linux")]
    /// Shape traffic on an interface, until SIGINT or SIGTERM
    Run(super::run::Args),
    #[cfg(feature = "linux")]
    /// Make a running gateway read its file again
    Reload(super::reload::Args),
    #[cfg(feature = "linux")]
    /// Let running gateways go on with this version of Weir
    Upgrade(super::upgrade::Args),
    #[cfg(feature = "linux")]
    /// Ask a running gateway, or change its settings
    Ctl(super::ctl::Args),
    #[cfg(feature = "linux")]
    /// Watch the traffic of a running gateway in a terminal
    Top(super::top::Args),
    #[cfg(feature = "linux")]
    /// Give Prometheus the metrics of a running gateway
    Metrics(super::metrics::Args),
    #[cfg(feature = "linux")]
    /// Show a running gateway on a page, and give its API
    Dashboard(super::dashboard::Args),
    #[cfg(feature = "linux")]
    /// Remove what a killed Weir left on this host
    Down(super::down::Args),
    /// Say what a file would do, and what this host lacks
    Check(super::check::Args),
    /// Print the JSON Schema of a file, for editors
    Schema(super::schema::Args),
    #[cfg(feature = "experiments")]
    /// Run an experiment in virtual time
    Sim(super::sim::Args),
    #[cfg(all(feature = "linux", feature = "experiments"))]
    /// Run an experiment with this host's TCP, in network namespaces
    Lab(super::lab::Args),
    #[cfg(feature = "experiments")]
    /// Run a sweep and keep its results, in parts, on several machines
    Sweep(super::sweep::Args),
    #[cfg(feature = "experiments")]
    /// Collect the results of a sweep
    Merge(super::sweep::MergeArgs),
    #[cfg(feature = "experiments")]
    /// Judge whether results of an experiment agree
    Compare(super::compare::Args),
    #[cfg(feature = "experiments")]
    /// Make the papers' figures and tables again, with verdicts
    Repro(super::repro::Args),
    #[cfg(feature = "experiments")]
    /// Compute what a model predicts for a flow
    #[command(subcommand)]
    Model(super::model::Model),
    #[cfg(feature = "experiments")]
    /// Test whether a box breaks TCP, packet by packet
    Conformance(super::conformance::Args),
    #[cfg(feature = "linux")]
    /// Emulate a WAN on an interface, or between two
    Wan(super::wan::Args),
    #[cfg(feature = "linux")]
    /// Send packets of this host at even gaps
    Pace(super::pace::Args),
    #[cfg(feature = "linux")]
    /// Run a program behind a bad path, without privileges
    Shell(super::shell::Args),
    #[cfg(feature = "linux")]
    /// Start flows of this host without a queue, by paced chirps
    Chirp(super::chirp::Args),
    #[cfg(not(feature = "experiments"))]
    /// Run an experiment in virtual time
    Sim(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Run an experiment with this host's TCP, in network namespaces
    Lab(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Run a sweep and keep its results, in parts, on several machines
    Sweep(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Collect the results of a sweep
    Merge(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Judge whether results of an experiment agree
    Compare(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Make the papers' figures and tables again, with verdicts
    Repro(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Compute what a model predicts for a flow
    Model(Elsewhere),
    #[cfg(not(feature = "experiments"))]
    /// Test whether a box breaks TCP, packet by packet
    Conformance(Elsewhere),
    /// Say where the benchmarks are
    #[command(hide = true)]
    Bench {
        /// Any arguments.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        _arguments: Vec<String>,
    },
    #[cfg(all(feature = "linux", feature = "experiments"))]
    /// Play the traffic that standard input specifies; the lab starts it
    #[command(hide = true)]
    Traffic,
    #[cfg(all(feature = "linux", feature = "experiments"))]
    /// Run the gateway or the emulator that standard input describes; the lab starts it
    #[command(hide = true)]
    Device(super::device::Args),
}

/// Commands by who uses them. A build may lack some.
const GROUPS: [(&str, &[&str]); 5] = [
    ("Gateway", &["run", "check", "reload", "upgrade", "ctl", "top", "metrics", "dashboard", "down"]),
    ("Emulator", &["wan", "shell"]),
    ("Experiments", &["sim", "lab", "sweep", "merge", "compare", "repro", "model", "schema"]),
    ("Hosts", &["pace", "chirp"]),
    ("Checks", &["conformance"]),
];

/// Returns the command line's description, for manual pages and completions.
pub fn plain() -> clap::Command {
    Cli::command()
}

/// Returns the command line's description, whose help has the commands in groups.
pub fn command() -> clap::Command {
    let command = Cli::command();
    let mut template = String::from("{about}\n\n{usage-heading} {usage}\n");
    for (group, names) in GROUPS {
        let found = names.iter().filter_map(|name| command.find_subcommand(name)).collect::<Vec<_>>();
        if found.is_empty() {
            continue;
        }
        template.push_str(&format!("\n{group}:\n"));
        for one in found {
            let about = one.get_about().map_or_else(String::new, ToString::to_string);
            template.push_str(&format!("  {:<12} {about}\n", one.get_name()));
        }
    }
    template.push_str("\nOptions:\n{options}{after-help}");
    command.help_template(template)
}

/// Runs the command of a command line.
pub fn run(cli: Cli) -> Result<(), Failure> {
    match cli.command {
        #[cfg(feature = "linux")]
        Command::Run(args) => super::run::run(&args),
        #[cfg(feature = "linux")]
        Command::Reload(args) => super::reload::run(&args),
        #[cfg(feature = "linux")]
        Command::Upgrade(args) => super::upgrade::run(&args),
        #[cfg(feature = "linux")]
        Command::Ctl(args) => super::ctl::run(&args),
        #[cfg(feature = "linux")]
        Command::Top(args) => super::top::run(&args),
        #[cfg(feature = "linux")]
        Command::Metrics(args) => super::metrics::run(&args),
        #[cfg(feature = "linux")]
        Command::Dashboard(args) => super::dashboard::run(&args),
        #[cfg(feature = "linux")]
        Command::Down(args) => super::down::run(&args),
        Command::Check(args) => super::check::run(&args, HOST_CHECKS),
        Command::Schema(args) => super::schema::run(&args),
        #[cfg(feature = "experiments")]
        Command::Sim(args) => super::sim::run(&args),
        #[cfg(all(feature = "linux", feature = "experiments"))]
        Command::Lab(args) => super::lab::run(&args),
        #[cfg(feature = "experiments")]
        Command::Sweep(args) => super::sweep::run(&args),
        #[cfg(feature = "experiments")]
        Command::Merge(args) => super::sweep::merge(&args),
        #[cfg(feature = "experiments")]
        Command::Compare(args) => super::compare::run(&args),
        #[cfg(feature = "experiments")]
        Command::Repro(args) => super::repro::run(&args),
        #[cfg(feature = "experiments")]
        Command::Model(model) => super::model::run(&model),
        #[cfg(feature = "experiments")]
        Command::Conformance(args) => super::conformance::run(&args),
        #[cfg(feature = "linux")]
        Command::Wan(args) => super::wan::run(&args),
        #[cfg(feature = "linux")]
        Command::Pace(args) => super::pace::run(&args),
        #[cfg(feature = "linux")]
        Command::Shell(args) => super::shell::run(&args),
        #[cfg(feature = "linux")]
        Command::Chirp(args) => super::chirp::run(&args),
        #[cfg(not(feature = "experiments"))]
        Command::Sim(args) => args.run("sim"),
        #[cfg(not(feature = "experiments"))]
        Command::Lab(args) => args.run("lab"),
        #[cfg(not(feature = "experiments"))]
        Command::Sweep(args) => args.run("sweep"),
        #[cfg(not(feature = "experiments"))]
        Command::Merge(args) => args.run("merge"),
        #[cfg(not(feature = "experiments"))]
        Command::Compare(args) => args.run("compare"),
        #[cfg(not(feature = "experiments"))]
        Command::Repro(args) => args.run("repro"),
        #[cfg(not(feature = "experiments"))]
        Command::Model(args) => args.run("model"),
        #[cfg(not(feature = "experiments"))]
        Command::Conformance(args) => args.run("conformance"),
        Command::Bench { .. } => Err(Failure::Input(BENCH.into())),
        #[cfg(all(feature = "linux", feature = "experiments"))]
        Command::Traffic => super::traffic::run().map_err(Failure::Other),
        #[cfg(all(feature = "linux", feature = "experiments"))]
        Command::Device(args) => super::device::run(&args),
    }
}

/// Parses the command line, runs it, and reports a failure on standard error. This is `main`.
pub fn main() -> ExitCode {
    let cli = Cli::from_arg_matches(&command().get_matches()).unwrap_or_else(|error| error.exit());
    match run(cli) {
        Ok(()) => {
            end_of_log();
            ExitCode::SUCCESS
        }
        Err(failure) => {
            last_words(&match &failure {
                Failure::Config(e) => e.to_string(),
                f => format!("weir: {f}"),
            });
            end_of_log();
            ExitCode::from(&failure)
        }
    }
}

/// Reports why the command failed, in the log if there is one.
fn last_words(text: &str) {
    #[cfg(feature = "linux")]
    if let Some(log) = weir_io::log::opened() {
        return text.lines().for_each(|line| log.write(line));
    }
    crate::output::say(text);
}

/// Waits briefly until the last lines of the log are written.
fn end_of_log() {
    #[cfg(feature = "linux")]
    weir_io::log::opened().into_iter().for_each(|log| _ = log.drain());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_in_one_group_and_its_line_fits() {
        for one in Cli::command().get_subcommands().filter(|one| !one.is_hide_set()) {
            let name = one.get_name();
            let groups = GROUPS.iter().filter(|(_, names)| names.contains(&name)).count();
            assert_eq!(groups, 1, "{name}");
        }
        let help = command().render_help().to_string();
        let long =
            help.lines().take_while(|line| !line.starts_with("Exit codes")).find(|line| line.len() > 80);
        assert_eq!(long, None);
    }
}
