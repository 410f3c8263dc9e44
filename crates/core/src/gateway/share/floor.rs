//! A floor for TCP beside unresponsive traffic.
//!
//! Unresponsive traffic is charged to the clock of its class, and to those above it. If all of it were
//! charged as it passes, traffic at the class's rate would keep the clock ahead for ever, and no ACK would be
//! released. So it is charged no faster than at the rate less a [floor](ShareRelease::floor), or than TCP
//! leaves. The rest is a debt, which is paid in the intervals that follow: a burst counts as a whole. A debt
//! beyond 100 ms of the rate is written off.

use super::average::ONE;
use super::clock::{Clock, MOST_AHEAD};
use super::node::List;
use super::tree::Tree;
use super::Share;
use crate::ack::ShareRelease;
use crate::gateway::classes::Classes;
use crate::rate::{Earned, Rate};
use crate::time::{Duration, Time};

/// Turns pay for so much time at once, at most: they are looked at more often while they are taken.
const LUMP: Duration = Duration::from_millis(10);

/// Bytes of unresponsive traffic that a clock is not charged yet.
#[derive(Clone, Default)]
pub(super) struct Debt {
    bytes: u64,
    /// When some of it was paid last.
    at: Time,
    earned: Earned,
    /// Time that its clock had forgotten then.
    forgotten: Duration,
}

impl Debt {
    /// `more` bytes have passed up to `now`. Returns the bytes to charge now: those for which there is
    /// `spare` time, and no fewer than `pace` allows since the last call, or in `within` if that is less.
    fn pay(&mut self, more: u64, pace: Rate, spare: u64, within: Duration, now: Time) -> u64 {
        let allowed = self.earned.earn(pace, now.since(self.at).min(within));
        self.at = self.at.max(now);
        self.bytes = self.bytes.saturating_add(more);
        let paid = self.bytes.min(allowed.max(spare));
        self.bytes -= paid;
        paid
    }

    /// Writes off the debt beyond 100 ms of `rate`, and returns it.
    fn write_off(&mut self, rate: Rate) -> u64 {
        let beyond = self.bytes.saturating_sub(rate.bytes_in(MOST_AHEAD));
        self.bytes -= beyond;
        beyond
    }

    /// Charges `clock`, at most at `pace` where TCP competes, `bytes` that passed from `since` to `now`.
    /// Returns those written off.
    fn charge(&mut self, clock: &mut Clock, pace: Rate, bytes: u64, (since, now): (Time, Time)) -> u64 {
        let since = if self.bytes > 0 { since.min(self.at) } else { since };
        // Time that the clock has forgotten is time that nothing but these bytes took.
        let elapsed = now.since(self.at);
        let unused = (clock.forgotten() - self.forgotten).min(elapsed);
        self.bytes = (self.bytes + bytes).saturating_sub(clock.rate().bytes_in(unused));
        let paid = self.pay(0, pace, clock.spare(since, now), elapsed - unused, now);
        let beyond = if paid > 0 { clock.charge_since(paid, since, now) } else { 0 };
        self.forgotten = clock.forgotten();
        beyond + self.write_off(clock.rate())
    }
}

impl Share {
    /// Rate that TCP keeps of `rate` beside unresponsive traffic.
    fn floor(&self, rate: Rate) -> Rate {
        ShareRelease::floor(rate, self.active.value().div_ceil(ONE))
    }

    /// Rate at which unresponsive traffic may be charged against `rate` while TCP competes.
    fn pace(&self, rate: Rate) -> Rate {
        Rate::from_bps(rate.bps() - self.floor(rate).bps()).unwrap_or(rate)
    }

    /// Bits per second that its flows have together beside the unresponsive traffic.
    pub(super) fn left_to_flows(&self) -> u64 {
        let rate = self.law.rate;
        rate.bps().saturating_sub(self.others.bps()).max(self.floor(rate).bps())
    }

    /// Charges this class alone unresponsive bytes. Returns those that are written off.
    fn charge_unresponsive(&mut self, bytes: u64, since: Time, now: Time) -> u64 {
        let (turns, pace) = (self.pace(self.law.rate), self.pace(self.clock.rate()));
        let (rate, bounded, quantum) = (self.law.rate, self.is_bounded(), i64::from(self.quantum));
        if let Some(node) = self.node_mut() {
            node.used.note(bytes, now);
            let paid = node.debt.pay(bytes, turns, 0, LUMP, now);
            let list = if node.is_below(now) { List::Below } else { List::Borrows };
            let deficit = &mut node.deficits[list as usize];
            // A class that takes no turns earns none: it begins with no more than a turn to make up for.
            let least = if node.standing.is_idle() { -quantum } else { -node.most_owed };
            *deficit = deficit.saturating_sub_unsigned(paid).max(least.min(*deficit));
            if let Some(own) = node.own.as_mut().filter(|_| list == List::Below) {
                own.charge_since(paid, since, now);
            }
            node.debt.write_off(rate);
        }
        match bounded {
            true => self.debt.charge(&mut self.clock, pace, bytes, (since, now)),
            false => 0,
        }
    }

    /// Bytes that would be written off of these.
    pub(super) fn beyond(&self, bytes: u64, since: Time, now: Time) -> u64 {
        if !self.is_bounded() {
            return 0;
        }
        let (mut debt, mut clock) = (self.debt.clone(), self.clock.clone());
        debt.charge(&mut clock, self.pace(self.clock.rate()), bytes, (since, now))
    }
}

impl Classes {
    /// Is a debt of unresponsive bytes left in the class, or in one above it?
    pub(super) fn owe(&self, place: u32) -> bool {
        let owes =
            |share: &Share| share.debt.bytes > 0 || share.node().is_some_and(|node| node.debt.bytes > 0);
        let mut above = core::iter::successors(self.share(place), |share| self.share(share.parent()?));
        above.any(owes)
    }
}

impl Tree<'_> {
    /// Charges a class, and those above it, unresponsive bytes that passed from `since` to `now`. Returns
    /// those that are written off.
    pub(super) fn charge_unresponsive(&mut self, place: u32, bytes: u64, since: Time, now: Time) -> u64 {
        let mut beyond = 0;
        let mut at = place;
        while let Some(share) = self.classes.share_mut(at) {
            beyond = share.charge_unresponsive(bytes, since, now).max(beyond);
            let Some(parent) = share.parent() else { break };
            at = parent;
        }
        if at != place {
            self.settle(place, now);
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn us(n: u64) -> Time {
        Time::from_micros(n)
    }

    /// 8 Mbit/s are a byte a microsecond. TCP keeps the clock 1 ms ahead, and twice the rate passes beside
    /// it.
    #[test]
    fn unresponsive_bytes_are_charged_at_the_rate_less_the_floor() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        clock.charge_since(2_000, us(1_000), us(1_000));
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(1_000), us(1_000)));
        let due = clock.due();
        debt.charge(&mut clock, Rate::mbit(6), 2_000, (us(1_000), us(2_000)));
        // 750 of 1,000 bytes; 1,250 are a debt.
        assert_eq!((clock.due(), debt.bytes), (due + Duration::from_micros(750), 1_250));
        // It is paid once nothing comes.
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(2_000), us(3_000)));
        debt.charge(&mut clock, Rate::mbit(6), 0, (us(3_000), us(4_000)));
        assert_eq!((clock.due(), debt.bytes), (due + Duration::from_micros(2_000), 0));
    }

    /// Datagrams come at the rate for a second in which nobody looks, and then TCP is permitted 4 ms: it
    /// waits for these.
    #[test]
    fn time_that_nobody_looked_at_is_not_charged_later() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        clock.charge_since(4_000, us(1_000_000), us(1_000_000));
        debt.charge(&mut clock, Rate::mbit(6), 1_000_000, (us(0), us(1_000_000)));
        assert_eq!(clock.due(), us(1_003_000) + Duration::from_micros(750));
        assert!(debt.bytes <= 1_000, "{}", debt.bytes);
    }

    #[test]
    fn unresponsive_bytes_take_what_tcp_leaves() {
        let mut clock = Clock::new(Rate::mbit(8), Duration::from_millis(1));
        let mut debt = Debt::default();
        // All of the rate for 100 ms: the clock is at its time, and no debt is left.
        let written_off = (10..110)
            .map(|t| debt.charge(&mut clock, Rate::mbit(6), 1_000, (us(1_000 * t), us(1_000 * (t + 1)))));
        assert_eq!(written_off.sum::<u64>(), 0);
        assert_eq!((clock.due(), debt.bytes), (us(109_000), 0));
        // Twice the rate for a second: what exceeds it is written off, but for 100 ms and the credit.
        let written_off = (110..1_110)
            .map(|t| debt.charge(&mut clock, Rate::mbit(6), 2_000, (us(1_000 * t), us(1_000 * (t + 1)))));
        assert_eq!((written_off.sum::<u64>(), debt.bytes), (1_000_000 - 100_000 - 1_000, 100_000));
        assert_eq!(clock.due(), us(1_110_000));
    }
}
