//! Congestion controls and queue disciplines of a plan that the program has added.

use super::Plan;
use weir_core::link;
use weir_core::queue::Aqm;
use weir_sim::cc;

/// Algorithm that the program has added, and its version, if it came with one.
pub type Added = (String, Option<String>);

impl Plan {
    /// Returns the algorithms that a plan needs and that the program has added, each once.
    pub fn added(&self) -> Vec<Added> {
        let tcp = self.groups.iter().filter(|group| group.protocol.is_reliable());
        let control = |name: &str| Some((name.to_string(), cc::version(name)?));
        let controls = tcp.filter_map(|group| control(group.tcp.algorithm()));
        let discipline = |link: &link::Config| match link.aqm {
            Aqm::Own(own) => Some((own.name().to_string(), own.version())),
            _ => None,
        };
        let disciplines = self.directions().filter_map(discipline);
        let beside = self.baselines.iter().flat_map(|baseline| baseline.plan.added());
        let mut all: Vec<Added> = controls.chain(disciplines).chain(beside).collect();
        all.sort();
        all.dedup();
        all
    }

    /// Returns all directions of all links.
    fn directions(&self) -> impl Iterator<Item = &link::Config> {
        let path = [&self.path.lan, &self.path.wan_out, &self.path.wan_back];
        let graph = self.graph.iter().flat_map(|graph| graph.links.iter().flat_map(|l| [&l.out, &l.back]));
        path.into_iter().chain(graph).chain(self.hosts.iter().flat_map(|host| [&host.up, &host.down]))
    }
}
