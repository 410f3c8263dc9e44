//! Queues of a gateway's classes: the node of a configuration, and the rates of its classes.

use super::control::Version;
use super::live::MOST_CLASSES;
use super::paced::{self, Device};
use super::report::{are_known, LEAST};
use crate::result::observe;
use crate::result::running::GatewayClass;
use crate::result::traffic::{Load, Shown};
use crate::result::ClassResult;
use weir_core::class::Spec;
use weir_core::gateway::{ClassConfig, Config};
use weir_core::link;
use weir_core::rate::Rate;
use weir_core::sharing::Sharing;
use weir_core::time::Time;

/// Returns the node for a version's classes, which leave by `device`. `seed` is the host's secret.
pub(super) fn node(version: &Version, device: &Device, seed: u64) -> Result<Sharing, String> {
    let mut config = Config { seed, ..version.file.gateway.clone() };
    let queues = config.classes.iter_mut().filter_map(|c| c.share.as_mut()?.queue.as_mut());
    queues.for_each(|queue| queue.kind = queue.kind.seeded(seed));
    paced::fit(&mut config, &version.file.dev, device)?;
    Sharing::new(config, link::Config::NETEM).map_err(|refused| refused.why.to_string())
}

/// Returns all classes with what their queues count, without rates.
pub(super) fn classes(sharing: &Sharing) -> Vec<GatewayClass> {
    let class = |(place, class): (usize, ClassResult)| {
        let direction = observe::direction(sharing.config().classes[place].direction);
        let bytes = class.queue.as_ref().map_or(0, |queue| queue.bytes);
        GatewayClass { class, place, direction, bytes, ..GatewayClass::default() }
    };
    observe::queues(sharing).into_iter().enumerate().map(class).collect()
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
        let mut classes = classes(sharing);
        let bytes: Vec<u64> = classes.iter().map(|class| class.bytes).collect();
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
        for (place, class) in classes.iter_mut().enumerate() {
            (class.class.bps, class.class.target_bps) = (rate(place), target(configured, place));
        }
        let known = are_known(older.at, now);
        (classes, known)
    }
}

/// Returns the most that a class may have in its tree of queues: its ceiling or that of a class above it, or
/// the rate at the top. 0 without a rate.
fn target(classes: &[ClassConfig], place: usize) -> u64 {
    let share = |place: usize| classes.get(place)?.share.as_ref();
    // A class is below no more classes than there are.
    let upwards = std::iter::successors(Some(place), |&place| share(place)?.parent).take(classes.len());
    let most = |share: &Spec| share.ceil.or(share.rate.filter(|_| share.parent.is_none()));
    upwards.filter_map(share).filter_map(most).min().map_or(0, Rate::bps)
}

/// Returns whether a report shows this class. One on all traffic shows those with traffic if there are many.
/// The final report shows those that had any.
pub(super) fn shows(shown: &Shown, class: &GatewayClass, classes: usize, last: bool) -> bool {
    match shown {
        Shown::These(places) => places.binary_search(&class.place).is_ok(),
        _ => classes <= MOST_CLASSES || class.class.bps > 0.0 || last && class.bytes > 0,
    }
}

/// Returns the counters of a class with a queue.
pub(super) fn load(class: &GatewayClass) -> Option<Load> {
    let queue = class.class.queue.as_ref()?;
    Some(Load {
        bps: class.class.bps,
        target_bps: class.class.target_bps,
        bytes: queue.bytes,
        packets: queue.packets,
        queued_bytes: queue.bytes,
        dropped_packets: queue.drops.values().sum(),
        dropped_bytes: queue.dropped_bytes,
        marked_packets: queue.marks,
        ..Load::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::setup;
    use super::*;
    use crate::experiment::config::{Settings, Source};
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

    /// Classes of a file that may have customers, each below a site of 500 Mbit/s down and 200 up.
    fn looked_at(toml: &str, customers: usize) -> Vec<GatewayClass> {
        let row = |n: usize| format!("{n},tower,10.0.{}.{},20Mbit,10Mbit\n", n / 200, 1 + n % 200);
        let list = format!("id,site,prefixes,down,up\n{}", (0..customers).map(row).collect::<String>());
        let sources = vec![
            Source::new("g.toml", format!("[ports]\ndev = 'e'\n{toml}")),
            Source::new("c.csv", list),
            Source::new("s.csv", "id,down,up\ntower,500Mbit,200Mbit\n"),
        ];
        let version = Version::parse(sources, Settings::default()).unwrap_or_else(|e| panic!("{e}"));
        let node = node(&version, &Device::of("e"), 7).unwrap();
        QueueMeters::default().look(&node, Time::ZERO).0
    }

    const CUSTOMERS: &str =
        "[gateway.customers]\nfile = 'c.csv'\nsites = 's.csv'\nqueues = 'both'\ndiscipline = 'pfq'\nqueue = '200kB'";

    /// Rates as they are written in the files, from the leaves up.
    #[test]
    fn a_class_with_a_queue_may_have_its_ceiling_or_what_is_above_it() {
        let rates = |classes: &[GatewayClass]| -> Vec<(String, u64)> {
            classes.iter().map(|c| (c.class.name.clone(), c.class.target_bps / 1_000_000)).collect()
        };
        let of = |name: &str, mbit: u64| (name.to_owned(), mbit);
        let classes = "[[gateway.class]]\nname = 'link'\nrate = '20Mbit'\n\
            [[gateway.class]]\nname = 'voip'\nparent = 'link'\nmatch = [{ dst_port = 5061 }]\nrate = '5Mbit'\n\
            ceil = '10Mbit'\nqueue = '100kB'\n\
            [[gateway.class]]\nname = 'web'\nparent = 'link'\nmatch = [{ dst_port = 443 }]\nrate = '5Mbit'\n\
            queue = '100kB'\n\
            [[gateway.class]]\nname = 'rest'\nparent = 'link'\nqueue = '100kB'";
        let expected = [of("link", 20), of("voip", 10), of("web", 20), of("rest", 20)];
        assert_eq!(rates(&looked_at(classes, 1)), expected);
        let expected = [of("0-up", 10), of("0-down", 20), of("tower-up", 200), of("tower-down", 500)];
        let listed = looked_at(CUSTOMERS, 1);
        assert_eq!(rates(&listed), expected);
        assert_eq!(load(&listed[1]).unwrap().target_bps, 20_000_000);
        assert_eq!(listed.iter().map(|class| class.place).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn of_many_classes_those_are_shown_that_were_asked_for_or_have_traffic() {
        let mut all = looked_at(CUSTOMERS, 50);
        (all[7].class.bps, all[9].bytes) = (1e6, 5_000);
        let places = |shown: Shown, count: usize, last: bool| -> Vec<usize> {
            let listed = all.iter().filter(|class| shows(&shown, class, count, last));
            listed.map(|class| class.place).collect()
        };
        assert_eq!(places(Shown::These(vec![4, 5]), 102, false), [4, 5]);
        assert_eq!(places(Shown::These(vec![]), 102, true), [0; 0]);
        assert_eq!(places(Shown::Busiest, 102, false), [7]);
        assert_eq!(places(Shown::All, 102, true), [7, 9]);
        assert_eq!(places(Shown::Busiest, 100, false).len(), 102);
    }
}
