//! A gateway described on the command line, without a file.

use crate::command::error::Failure;
use crate::experiment::config::{addresses, gateway, policy, units, Source};
use weir_core::rate::Rate;

/// A gateway without a file: every flow of a direction at a rate of its own, or a thin uplink with an ACK
/// filter.
#[derive(clap::Args, Debug)]
pub struct Short {
    /// Interface towards the WAN, instead of a file
    #[arg(long, value_name = "INTERFACE", value_parser = addresses::interface)]
    dev: Option<String>,
    /// Rate of each flow whose data leaves by the interface (uploads), e.g. 20Mbit
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev")]
    out_flow_rate: Option<Rate>,
    /// Rate of each flow whose data comes in by the interface (downloads)
    #[arg(long, value_name = "RATE", value_parser = policy::flow_rate, requires = "dev")]
    in_flow_rate: Option<Rate>,
    /// Rate of a thin uplink: traffic that leaves by the interface is queued in front of it, served flow by
    /// flow, and its ACKs are filtered
    #[arg(long, value_name = "RATE", value_parser = units::rate, requires_all = ["dev", "ack_filter"], conflicts_with_all = ["out_flow_rate", "in_flow_rate"])]
    uplink: Option<Rate>,
    /// Policy of the ACK filter in front of the uplink
    #[arg(long, value_name = "POLICY", num_args = 0..=1, default_missing_value = "delayed-per-flow", requires = "uplink")]
    ack_filter: Option<String>,
    /// Link whose bytes the rates count, by the names of tc-cake(8), e.g. docsis or pppoe-ptm
    #[arg(long, value_name = "NAMES", requires = "dev")]
    link_layer: Option<String>,
}

impl Short {
    /// Returns the file that the options stand for.
    pub fn load(&self) -> Result<Source, Failure> {
        let Some(dev) = &self.dev else {
            let text = "nothing to run: give a file, or an interface and a rate, for example \
                        --dev eth1 --out-flow-rate 20Mbit";
            return Err(Failure::Input(text.into()));
        };
        let layer = self.link_layer.as_deref();
        if let Some((uplink, filter)) = self.uplink.zip(self.ack_filter.as_deref()) {
            let source = gateway::uplink(dev, uplink, filter, layer);
            return source.map_err(|fault| Failure::Input(fault.to_string()));
        }
        if self.out_flow_rate.is_none() && self.in_flow_rate.is_none() {
            let text = format!(
                "--dev {dev} without a rate: give --out-flow-rate, --in-flow-rate or both, for example \
                 --out-flow-rate 20Mbit, or --uplink with --ack-filter"
            );
            return Err(Failure::Input(text));
        }
        Ok(gateway::short(dev, self.out_flow_rate, self.in_flow_rate, layer))
    }
}
