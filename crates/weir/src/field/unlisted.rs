//! Addresses with traffic that no class takes, as rows of reports.

use super::control::Ask;
use super::report;
use crate::result::running::GatewayReport;
use crate::result::traffic::{Kind, Load, Shown, Traffic};
use std::collections::HashMap;
use std::net::IpAddr;
use std::time::{Duration, Instant};
use weir_io::bpf::{Unlisted, UnlistedAddress};

/// Most addresses in a report.
const MOST: usize = 100;
/// Minimum and maximum age of the earlier look that rates are computed from.
const LEAST: Duration = Duration::from_nanos(report::LEAST.as_nanos());
const LATEST: Duration = Duration::from_nanos(report::LATEST.as_nanos());

/// Bytes of addresses at one moment, sent and received.
type Look = (Instant, HashMap<IpAddr, [u64; 2]>);

/// The last two looks. Two are kept because the last one may be too recent.
#[derive(Default)]
pub(super) struct Addresses {
    older: Option<Look>,
    newer: Option<Look>,
}

impl Addresses {
    /// Adds rows of the addresses with most bytes, or of the address that was asked for. Returns whether
    /// their rates are known, which requires an earlier look that is not too old.
    pub fn add_to(&mut self, report: &mut GatewayReport, ask: &Ask, list: Option<&Unlisted>) -> bool {
        let is_asked = ask.address.is_some() || !matches!(ask.shown, Shown::These(_));
        let Some(list) = list.filter(|_| is_asked) else { return true };
        let now = Instant::now();
        let known = self.knows(now);
        report.traffic.extend(self.rows(list.read(), ask.address, now));
        known
    }

    fn knows(&self, now: Instant) -> bool {
        let mut ages =
            [&self.older, &self.newer].into_iter().flatten().map(|(at, _)| now.duration_since(*at));
        ages.any(|age| (LEAST..=LATEST).contains(&age))
    }

    fn rows(&mut self, all: Vec<UnlistedAddress>, only: Option<IpAddr>, now: Instant) -> Vec<Traffic> {
        let recent = self.newer.as_ref().is_some_and(|(at, _)| now.duration_since(*at) < LEAST);
        let since = if recent { self.older.as_ref() } else { self.newer.as_ref() };
        let wanted = all.iter().filter(|one| only.is_none_or(|address| address == one.address)).take(MOST);
        let rows = wanted.flat_map(|one| [0, 1].map(|way| row(one, way, since, now))).collect();
        if !recent {
            let bytes = all.iter().map(|one| (one.address, one.bytes)).collect();
            self.older = self.newer.replace((now, bytes));
        }
        rows
    }
}

fn row(one: &UnlistedAddress, way: usize, since: Option<&Look>, now: Instant) -> Traffic {
    let (bytes, packets) = (one.bytes[way], one.packets[way]);
    let bps = since.map_or(0.0, |(at, then)| {
        // An address that was forgotten meanwhile begins again.
        let then = then.get(&one.address).map_or(0, |then| then[way]);
        bytes.saturating_sub(then) as f64 * 8.0 / now.duration_since(*at).as_secs_f64()
    });
    Traffic {
        kind: Kind::Address,
        name: one.address.to_string(),
        direction: ["out", "in"][way].into(),
        parent: Some(Kind::Unlisted.name().into()),
        load: Load { bps, bytes, packets, ..Load::default() },
        ..Traffic::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(n: u8, sent: u64, received: u64) -> UnlistedAddress {
        let bytes = [sent, received];
        UnlistedAddress { address: [10, 0, 0, n].into(), bytes, packets: bytes.map(|n| n / 1_000) }
    }

    #[test]
    fn rates_are_of_the_time_between_two_looks() {
        let (mut addresses, begin) = (Addresses::default(), Instant::now());
        let first = addresses.rows(vec![address(1, 1_000, 5_000)], None, begin);
        assert_eq!((first.len(), first[1].load.bps, first[1].load.bytes), (2, 0.0, 5_000));
        let later = begin + Duration::from_secs(2);
        assert_eq!(
            [begin, later, begin + Duration::from_secs(11)].map(|at| addresses.knows(at)),
            [false, true, false]
        );
        let rows = addresses.rows(vec![address(1, 1_000, 255_000), address(2, 9_000, 0)], None, later);
        // 250,000 bytes in 2 s are 1 Mbit/s, and 9,000 are 36 kbit/s.
        assert_eq!((rows[0].load.bps, rows[1].load.bps, rows[2].load.bps), (0.0, 1e6, 36e3));
        assert_eq!((rows[2].name.as_str(), rows[2].direction.as_str()), ("10.0.0.2", "out"));
        let soon = later + Duration::from_millis(100);
        let rows = addresses.rows(vec![address(1, 1_000, 255_000)], Some([10, 0, 0, 1].into()), soon);
        assert_eq!((rows.len(), rows[1].load.bps.round()), (2, (250_000.0 * 8.0 / 2.1f64).round()));
    }

    #[test]
    fn no_more_than_a_hundred_are_shown() {
        let all = (0..200).map(|n| address(n, 10_000, 0)).collect();
        assert_eq!(Addresses::default().rows(all, None, Instant::now()).len(), 200);
    }
}
