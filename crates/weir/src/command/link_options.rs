//! The keys of a link as options of commands.

use crate::experiment::config::diag::Fault;
use crate::experiment::config::{link, wan};
use crate::experiment::plan::Path;
use clap::{ArgGroup, ArgMatches, Command};

/// Keys of a link as options, with their values as written, for both directions.
#[derive(Clone, Debug, Default)]
pub struct LinkOptions(Vec<(&'static str, String)>);

impl LinkOptions {
    pub(super) const GROUP: &'static str = "link";

    /// Returns the path that they describe, with the round-trip time.
    pub(super) fn path(&self, rtt: Option<&String>) -> Result<Path, Vec<Fault>> {
        let rtt = rtt.map(|rtt| ("rtt", rtt.clone()));
        let options: Vec<(&str, String)> = rtt.into_iter().chain(self.0.iter().cloned()).collect();
        wan::path_of_options(&options)
    }
}

impl clap::Args for LinkOptions {
    fn augment_args(command: Command) -> Command {
        let names = link::KEYS.iter().map(|key| key.name);
        command
            .args(link::KEYS.iter().map(|key| key.arg()))
            .group(ArgGroup::new(LinkOptions::GROUP).args(names).multiple(true))
    }
    fn augment_args_for_update(command: Command) -> Command {
        LinkOptions::augment_args(command)
    }
}

impl clap::FromArgMatches for LinkOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<LinkOptions, clap::Error> {
        let said = |name| Some((name, matches.get_one::<String>(name)?.clone()));
        Ok(LinkOptions(link::KEYS.iter().filter_map(|key| said(key.name)).collect()))
    }
    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = LinkOptions::from_arg_matches(matches)?;
        Ok(())
    }
}
