//! Judges the traffic that the parties of a case received.

use super::case::{Case, Connection, Load, Party, BEGINS, END, HOLDS, PAUSES};
use super::traffic::BIN;
use std::time::Duration;
use weir_core::gateway::Direction;
use weir_core::rate::Rate;

/// Bytes of each connection that applications received, from the LAN and to it, its payload in the frames
/// that their hosts received, and bytes of datagrams. All are counted in bins of [`BIN`].
pub struct Got {
    pub connections: Vec<[Vec<u64>; 2]>,
    pub segments: Vec<[Vec<u64>; 2]>,
    pub datagrams: Vec<u64>,
}

/// Bound of a limit: in any second at most `OF_RATE` times its rate and `MORE` bytes.
const OF_RATE: f64 = 1.15;
const MORE: f64 = 64_000.0;

/// Returns the bytes that a limit of this rate may have in any second.
pub fn most(rate: Rate) -> f64 {
    OF_RATE * rate.bps() as f64 / 8.0 + MORE
}

/// Results of one network.
#[derive(Clone, Copy, Debug, serde::Serialize)]
pub struct Shown {
    /// Rate of the attacker's limit in its busiest second, in Mbit/s. It is measured from [`HOLDS`] on.
    pub attacker_mbit: f64,
    /// Goodput of the neighbour's limit from [`HOLDS`] on, in Mbit/s.
    pub neighbour_mbit: f64,
    /// Rate of a newcomer's limit in its busiest second, in Mbit/s.
    pub newcomer_mbit: f64,
    /// Goodput of the attacker's own connection while the attack is on, in Mbit/s.
    pub own_mbit: f64,
    /// Longest pause of a connection, in milliseconds.
    pub still_ms: f64,
    /// True if every limit held.
    pub holds: bool,
}

/// Judges the traffic of a case.
pub fn judge(case: &Case, got: &Got) -> Shown {
    let mut shown = Shown {
        attacker_mbit: 0.0,
        neighbour_mbit: 0.0,
        newcomer_mbit: 0.0,
        own_mbit: 0.0,
        still_ms: 0.0,
        holds: true,
    };
    for limit in case.limits {
        let way = usize::from(limit.direction == Direction::In);
        let own = case.connections.iter().zip(&got.connections).zip(&got.segments);
        let own = own
            .filter(|((c, _), _)| limit.parties.contains(&c.party) && c.load.direction() == limit.direction);
        let (mut all, mut sent, mut peak) = (vec![0; bin(END)], vec![0; bin(END)], 0);
        for ((_, bytes), segments) in own {
            peak = peak.max(busiest_second(&segments[way]));
            add(&mut all, &bytes[way]);
            add(&mut sent, &segments[way]);
        }
        if limit.parties.contains(&Party::Attacker) {
            add(&mut all, &got.datagrams);
            add(&mut sent, &got.datagrams);
        }
        if !limit.each {
            peak = busiest_second(&sent);
        }
        shown.holds &= peak as f64 <= most(limit.rate);
        let mbit = peak as f64 * 8e-6;
        if limit.parties.contains(&Party::Attacker) {
            shown.attacker_mbit = shown.attacker_mbit.max(mbit);
        }
        if limit.parties.contains(&Party::Neighbour) {
            let sum: u64 = all[bin(HOLDS)..].iter().sum();
            shown.neighbour_mbit = sum as f64 * 8e-6 / (END - HOLDS).as_secs_f64();
        }
        if limit.parties.contains(&Party::Newcomer) {
            shown.newcomer_mbit = shown.newcomer_mbit.max(mbit);
        }
    }
    if let Some(least) = case.neighbour {
        let mut all = case.connections.iter().zip(&got.connections);
        let neighbour = all.find(|(c, _)| c.party == Party::Neighbour);
        let way = |c: &Connection| usize::from(c.load.direction() == Direction::In);
        let sum: u64 = neighbour.map_or(0, |(c, bytes)| bytes[way(c)][bin(HOLDS)..bin(PAUSES)].iter().sum());
        shown.neighbour_mbit = sum as f64 * 8e-6 / (PAUSES - HOLDS).as_secs_f64();
        shown.holds &= shown.neighbour_mbit >= least.bps() as f64 * 1e-6;
    }
    for (connection, bytes) in case.connections.iter().zip(&got.connections) {
        if connection.party == Party::Attacker {
            let way = &bytes[usize::from(connection.load.direction() == Direction::In)];
            let sum: u64 = way[bin(HOLDS)..bin(PAUSES)].iter().sum();
            shown.own_mbit = sum as f64 * 8e-6 / (PAUSES - HOLDS).as_secs_f64();
            shown.holds &= shown.own_mbit >= case.least.bps() as f64 * 1e-6;
        }
        let from = bin(connection.begins.max(BEGINS));
        let ways: &[usize] = match connection.load {
            Load::Up => &[0],
            Load::Down => &[1],
            Load::Both => &[0, 1],
        };
        for &way in ways {
            let pause = longest_pause(&bytes[way][from..]);
            shown.still_ms = shown.still_ms.max(pause.as_secs_f64() * 1e3);
        }
    }
    shown
}

fn bin(at: Duration) -> usize {
    (at.as_nanos() / BIN.as_nanos()) as usize
}

fn add(to: &mut [u64], bytes: &[u64]) {
    to.iter_mut().zip(bytes).for_each(|(to, bytes)| *to += bytes);
}

/// Returns the bytes of the busiest second from [`HOLDS`] on.
fn busiest_second(bytes: &[u64]) -> u64 {
    bytes[bin(HOLDS)..].windows(bin(Duration::from_secs(1))).map(|w| w.iter().sum()).max().unwrap_or(0)
}

/// Returns the longest time without a byte.
fn longest_pause(bytes: &[u64]) -> Duration {
    let longest = bytes.split(|&b| b > 0).map(<[u64]>::len).max().unwrap_or(0);
    BIN * longest as u32
}

#[cfg(test)]
mod tests {
    use super::super::case::cases;
    use super::*;

    /// Returns traffic in which every connection gets its limit's rate all the time. Newcomers get nothing.
    fn exact(case: &Case) -> Got {
        let of =
            |party| case.limits.iter().find(|l| l.parties.contains(&party)).map_or(0, |l| l.rate.bps() / 800);
        let shares = |c: &Connection| case.connections.iter().filter(|o| is_with(case, c, o)).count() as u64;
        let bytes =
            |c: &Connection| if c.party == Party::Newcomer { 0 } else { of(c.party) / shares(c).max(1) };
        let connections: Vec<_> =
            case.connections.iter().map(|c| [vec![bytes(c); bin(END)], vec![bytes(c); bin(END)]]).collect();
        Got { segments: connections.clone(), connections, datagrams: vec![0; bin(END)] }
    }

    fn is_with(case: &Case, a: &Connection, b: &Connection) -> bool {
        case.limits.iter().any(|l| l.parties.contains(&a.party) && l.parties.contains(&b.party))
    }

    #[test]
    fn a_limit_that_is_kept_holds_and_a_burst_above_it_does_not() {
        for case in cases() {
            let got = exact(&case);
            assert!(judge(&case, &got).holds, "{}", case.name);
            // Nothing is required in the attack's first second. Later, a fifth of a second at ten times the
            // rate is too much.
            for (at, holds) in
                [(HOLDS - Duration::from_millis(300), true), (HOLDS + Duration::from_secs(2), false)]
            {
                let mut more = exact(&case);
                for way in &mut more.segments[0] {
                    way[bin(at)..bin(at) + 20].iter_mut().for_each(|b| *b *= 10);
                }
                assert_eq!(judge(&case, &more).holds, holds, "{}", case.name);
            }
        }
    }

    #[test]
    fn a_pause_is_seen() {
        let case = cases()[0];
        let mut got = exact(&case);
        got.connections[2] = got.connections[1].clone();
        let pause = |got: &Got| judge(&case, got).still_ms;
        assert_eq!(pause(&got), 0.0);
        got.connections[1][1][bin(HOLDS)..bin(HOLDS) + 30].fill(0);
        assert_eq!(pause(&got), 300.0);
    }
}
