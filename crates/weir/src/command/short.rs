//! A gateway described on the command line, without a file.

use crate::command::error::Failure;
use crate::experiment::config::{addresses, gateway, policy, Source};
use weir_core::rate::Rate;

/// A gateway without a file: a line of some rate each way, or every flow of a direction at a rate of its own.
#[derive(clap::Args, Debug)]
pub struct Short {
    /// Interface towards the WAN, instead of a file
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Rate of the line for uploads: hosts and flows have queues in front of it, with CoDel and an ACK filter
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev", conflicts_with_all = FLOW_RATES)]
    up: Option<Rate>,
    /// Rate of the line for downloads: flows share it, TCP by its ACKs and without a queue
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev", conflicts_with_all = FLOW_RATES)]
    down: Option<Rate>,
    /// Policy of the ACK filter in front of the line
    #[arg(long, value_name = "POLICY", requires = "up", conflicts_with_all = FLOW_RATES, default_value = "delayed-per-flow")]
    ack_filter: String,
    /// Queues by codepoint (DSCP) in front of the line, by CAKE's names: diffserv3 or diffserv4
    #[arg(long, value_name = "NAME", requires = "up", conflicts_with_all = FLOW_RATES)]
    tins: Option<String>,
    /// Rate of each flow whose data leaves by the interface (uploads), e.g. 20Mbit
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev")]
    out_flow_rate: Option<Rate>,
    /// Rate of each flow whose data comes in by the interface (downloads)
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev")]
    in_flow_rate: Option<Rate>,
    /// Link whose bytes the rates count, by the names of tc-cake(8), e.g. docsis or pppoe-ptm
    #[arg(long, value_name = "NAMES", requires = "dev")]
    link_layer: Option<String>,
}

/// Options with the rate of each flow.
const FLOW_RATES: [&str; 2] = ["out_flow_rate", "in_flow_rate"];

/// Names of all options. A command that reads a file takes none of them beside it.
pub const OPTIONS: [&str; 8] =
    ["dev", "up", "down", "ack_filter", "tins", "link_layer", FLOW_RATES[0], FLOW_RATES[1]];

impl Short {
    /// Returns the file that the options stand for.
    pub fn load(&self) -> Result<Source, Failure> {
        let Some(dev) = &self.dev else {
            let text = "nothing to run: give a file, or an interface and the rates of its line, for example \
                        --dev eth0 --up 20Mbit --down 100Mbit";
            return Err(Failure::Input(text.into()));
        };
        let layer = self.link_layer.as_deref();
        if self.up.is_some() || self.down.is_some() {
            let (rates, tins) = ([self.up, self.down], self.tins.as_deref());
            return gateway::line(dev, rates, &self.ack_filter, tins, layer, can_spill())
                .map_err(|fault| Failure::Input(fault.to_string()));
        }
        if self.out_flow_rate.is_none() && self.in_flow_rate.is_none() {
            let text = format!(
                "--dev {dev} without a rate: give the rates of the line, for example --up 20Mbit --down \
                 100Mbit, or a rate of each flow: --out-flow-rate, --in-flow-rate or both"
            );
            return Err(Failure::Input(text));
        }
        Ok(gateway::short(dev, self.out_flow_rate, self.in_flow_rate, layer))
    }
}

/// Returns whether flows can spill on this host, as far as its kernel's version tells.
#[cfg(feature = "linux")]
fn can_spill() -> bool {
    weir_io::supervise::can_spill()
}

/// This program runs no gateway.
#[cfg(not(feature = "linux"))]
fn can_spill() -> bool {
    true
}
