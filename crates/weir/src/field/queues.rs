//! Queues of a gateway's classes: the node of a configuration, and the rates of its classes.

use super::control::Version;
use super::paced::{self, Device};
use crate::result::observe;
use crate::result::running::GatewayClass;
use crate::result::traffic::Load;
use std::collections::HashMap;
use weir_core::gateway::{Config, Direction};
use weir_core::link;
use weir_core::sharing::Sharing;
use weir_core::time::{Duration, Time};

/// Minimum age of the earlier look that rates are computed from.
const LEAST: Duration = Duration::from_millis(500);

/// Returns the node for a version's classes, which leave by `device`. `seed` is the host's secret.
pub(super) fn node(version: &Version, device: &Device, seed: u64) -> Result<Sharing, String> {
    let mut config = Config { seed, ..version.file.gateway.clone() };
    let queues = config.classes.iter_mut().filter_map(|c| c.share.as_mut()?.queue.as_mut());
    queues.for_each(|queue| queue.kind = queue.kind.seeded(seed));
    paced::fit(&mut config, &version.file.dev, device)?;
    Sharing::new(config, link::Config::NETEM).map_err(|refused| refused.why.to_string())
}

/// Bytes that had left each class at one moment.
#[derive(Clone, Default)]
struct Look {
    at: Option<Time>,
    bytes: Vec<u64>,
}

/// The last two looks. Two are kept because the last one may be too recent.
#[derive(Default)]
pub(super) struct QueueMeters {
    older: Look,
    newer: Look,
}

impl QueueMeters {
    /// Returns the classes with their rates, and whether these are known, which requires an earlier look.
    pub(super) fn look(&mut self, sharing: &Sharing, now: Time) -> (Vec<GatewayClass>, bool) {
        let classes = observe::queues(sharing);
        let bytes: Vec<u64> = classes.iter().map(|c| c.queue.as_ref().map_or(0, |q| q.bytes)).collect();
        if self.newer.at.is_none_or(|at| now.since(at) >= LEAST) {
            self.older = std::mem::replace(&mut self.newer, Look { at: Some(now), bytes: bytes.clone() });
        }
        let older = &self.older;
        let lasted = older.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        let rate = |i: usize| match lasted > 0.0 {
            true => (bytes[i] - older.bytes.get(i).copied().unwrap_or(0)) as f64 * 8.0 / lasted,
            false => 0.0,
        };
        let configured = &sharing.config().classes;
        let directions: HashMap<&str, Direction> =
            configured.iter().map(|c| (c.name.as_str(), c.direction)).collect();
        let class = |(i, mut class): (usize, crate::result::ClassResult)| {
            class.bps = rate(i);
            let direction =
                directions.get(class.name.as_str()).copied().map_or(String::new(), observe::direction);
            GatewayClass { class, direction, bytes: bytes[i], ..GatewayClass::default() }
        };
        (classes.into_iter().enumerate().map(class).collect(), older.at.is_some())
    }
}

/// Returns the counters of a class with a queue.
pub(super) fn load(class: &GatewayClass) -> Option<Load> {
    let queue = class.class.queue.as_ref()?;
    Some(Load {
        bps: class.class.bps,
        bytes: queue.bytes,
        packets: queue.packets,
        dropped_packets: queue.drops.values().sum(),
        marked_packets: queue.marks,
        ..Load::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::setup;
    use super::*;
    use crate::experiment::config::Source;
    use weir_core::queue::Kind;

    fn version(link: &str, ceil: &str) -> Version {
        let text = format!(
            "[ports]\ndev = 'e'\n[[gateway.class]]\nname = 'link'\nrate = '{link}'\n[[gateway.class]]\nname = 'a'\n\
             parent = 'link'\n{ceil}\ndiscipline = 'pfq'"
        );
        Version::read(Source::new("g.toml", text)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// 65,536 bytes take 1.05 ms at 500 Mbit/s.
    #[test]
    fn giants_are_cut_where_one_takes_a_millisecond() {
        let splits =
            |link, ceil| setup::splits(node(&version(link, ceil), &Device::of("e"), 7).unwrap().config());
        assert_eq!([splits("499Mbit", ""), splits("500Mbit", "")], [true, false]);
        assert!(splits("1Gbit", "ceil = '100Mbit'"));
    }

    #[test]
    fn hashes_have_the_host_s_secret() {
        let built = node(&version("1Gbit", ""), &Device::of("e"), 7).unwrap();
        let queue = built.config().classes[1].share.and_then(|s| s.queue).unwrap();
        assert!(matches!(queue.kind, Kind::Pfq(params) if params.seed == 7) && built.config().seed == 7);
    }
}
