//! Detection of traffic that the interface counts but the hooks do not see, and of frames that the hooks see
//! but cannot look into. Counts are compared once a second, and findings are logged.

use crate::bpf::AcksCounters;
use crate::driver::{HookCounters, InterfaceStates};

/// Least bytes in a second that are reported: 1 Mbit/s.
const WORTH_A_WORD: u64 = 125_000;
/// Seconds in a row that rule out counts read at different moments.
const SECONDS: u32 = 2;
/// Frames of a kind that rule out a stray one.
const A_KIND: u64 = 100;

/// Bytes of an interface since its start: sent and received.
pub(super) type Bytes = [u64; 2];

/// Returns the bytes of the interface `name` in this network namespace, as the kernel counts them.
pub(super) fn counted(name: &str) -> Option<Bytes> {
    parse(&std::fs::read_to_string("/proc/self/net/dev").ok()?, name)
}

fn parse(table: &str, name: &str) -> Option<Bytes> {
    let own = |line: &str| {
        let (interface, numbers) = line.split_once(':')?;
        let mut numbers = numbers.split_whitespace();
        (interface.trim() == name).then_some(())?;
        let received = numbers.next()?.parse().ok()?;
        Some([numbers.nth(7)?.parse().ok()?, received])
    };
    table.lines().find_map(own)
}

/// Bytes that the hooks saw, sent and received.
fn seen(counters: &HookCounters) -> Bytes {
    match counters {
        HookCounters::Acks(acks) => [acks.bytes_out, acks.bytes_in],
        HookCounters::All(all) => [all.bytes_out, all.bytes_in],
        // ACKs that are taken do not come to the second programs.
        HookCounters::Both(acks, all) => [all.bytes_out, acks.bytes_in],
    }
}

/// Comparison of the interface's counts with the hooks'.
#[derive(Debug, Default)]
pub(super) struct Sight {
    /// Counts of the interface and the hooks at the last comparison.
    before: Option<[Bytes; 2]>,
    /// Seconds in a row with much unseen traffic.
    blind: [u32; 2],
    said: [bool; 2],
    kinds: [bool; 3],
}

impl Sight {
    /// Forgets the counts, because the interface may be another one.
    pub fn forget(&mut self) {
        self.before = None;
        self.blind = [0; 2];
    }

    /// Compares the bytes that the interface has `counted` with those that the hooks saw.
    pub fn look(&mut self, counted: Option<Bytes>, hooks: &HookCounters, interfaces: &InterfaceStates) {
        let Some(counted) = counted else { return self.forget() };
        let seen = seen(hooks);
        if let Some([counted_before, seen_before]) = self.before.replace([counted, seen]) {
            for way in 0..2 {
                let of_interface = counted[way].saturating_sub(counted_before[way]);
                let of_hooks = seen[way].saturating_sub(seen_before[way]);
                self.compare(way, of_interface, of_hooks, interfaces);
            }
        }
        if let HookCounters::Acks(acks) | HookCounters::Both(acks, _) = hooks {
            self.look_inside(acks, interfaces.wan());
        }
    }

    fn compare(&mut self, way: usize, of_interface: u64, of_hooks: u64, interfaces: &InterfaceStates) {
        let missing = of_interface.saturating_sub(of_hooks);
        let much = missing >= WORTH_A_WORD && missing > of_interface / 4;
        if much {
            interfaces.add_unseen(way, missing);
        }
        self.blind[way] = if much { self.blind[way].saturating_add(1) } else { 0 };
        let blind = self.blind[way] >= SECONDS;
        interfaces.set_blind(way, blind);
        if blind && !std::mem::replace(&mut self.said[way], true) {
            tracing::warn!("{}", interfaces.blind(way));
        }
    }

    /// Logs once for each kind that such frames pass untouched.
    fn look_inside(&mut self, acks: &AcksCounters, name: &str) {
        let kinds = [
            (acks.mpls, "frames with MPLS labels pass untouched: Weir has to be where they have none"),
            (acks.tunnels, "packets of tunnels (GRE, IP in IP) pass untouched: name the tunnel's interface to control what is inside"),
            (
                acks.hairpins,
                "segments leave by the interface on which they came in: classes of direction `out` control them, others do not",
            ),
        ];
        for ((count, words), said) in kinds.iter().zip(&mut self.kinds) {
            if *count >= A_KIND && !std::mem::replace(said, true) {
                tracing::warn!("{name}: {words}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo:  496302    4968    0    0    0     0          0         0   496302    4968    0    0    0     0       0          0
 wan0: 1000 10 0 0 0 0 0 0 2000 20 0 0 0 0 0 0
";

    #[test]
    fn the_kernel_counts_what_is_sent_and_received() {
        assert_eq!(parse(TABLE, "wan0"), Some([2000, 1000]));
        assert_eq!(parse(TABLE, "lo"), Some([496_302, 496_302]));
        assert_eq!((parse(TABLE, "wan"), parse("", "lo")), (None, None));
        assert!(counted("lo").is_some());
    }

    fn hooks(out: u64, inward: u64) -> HookCounters {
        HookCounters::Acks(AcksCounters { bytes_out: out, bytes_in: inward, ..AcksCounters::default() })
    }

    #[test]
    fn what_goes_around_the_hooks_for_two_seconds_is_said() {
        let interfaces = InterfaceStates::new(vec!["wan0".into()]).unwrap();
        let mut sight = Sight::default();
        let mut look = |out, inward, [hook_out, hook_in]: Bytes| {
            sight.look(Some([out, inward]), &hooks(hook_out, hook_in), &interfaces);
            interfaces.degraded()
        };
        assert_eq!(look(0, 0, [0, 0]), None);
        // Little is missing, then a quarter of much.
        assert_eq!(look(100_000, 4_000_000, [0, 3_000_000]), None);
        assert_eq!(look(200_000, 8_000_000, [0, 6_000_000]), None);
        assert_eq!(look(300_000, 12_000_000, [0, 6_000_000]), None);
        assert!(look(400_000, 16_000_000, [0, 6_000_000])
            .unwrap()
            .contains("what comes in on wan0 goes around"));
        assert_eq!(interfaces.unseen(), [0, 8_000_000]);
        assert_eq!(look(400_000, 20_000_000, [0, 10_000_000]), None);
    }
}
