//! Grants of flows that share a rate which does not bind: what may pass of them without the gateway.
//!
//! As for flows with rates of their own ([`grant`](crate::gateway::grant)), but the credit is the class's:
//! all that is granted is at most what the class has earned and what its rate carries by the next looks, 4
//! ms. So at any time no more than a turn or two and 4 ms of the rate is ahead of it, and over any time no
//! more than that is added to it. A class grants nothing while it is ahead of its clock, nor for 16 round
//! trips of the flow after: where the rate binds nothing is different.

use super::tree::Tree;
use super::Share;
use crate::flow::flag;
use crate::gateway::grant::{on_grid, Look, LONGEST};
use crate::gateway::{millis, Gateway};
use crate::time::{Duration, Time};
use core::sync::atomic::Ordering::Relaxed;

/// A class has not been ahead of its clock for so many round trips, and for so long at least, where its rate
/// does not bind.
const FREE_ROUNDS: u64 = 16;
const FREE_LEAST: Duration = Duration::from_millis(2);
/// The first look at a flow of which nothing is known yet.
const FIRST: Duration = Duration::from_millis(1);
/// A grant is worth so many segments at least.
const LEAST_SEGMENTS: u32 = 4;

impl Gateway {
    /// The next ACKs of a flow that shares a rate may pass, if that does not bind. `last` is how the flow was
    /// when its last grant was looked at.
    pub(in crate::gateway) fn grant_shared(&mut self, i: u32, now: Time, last: Option<Look>) {
        let r = &self.table[i];
        let (place, rtt) = (r.class, self.rtt(r));
        let may = self.may_grant(i) && !r.has(flag::LISTED);
        if !may || self.classes.share(place).is_none_or(|share| share.law.flow_max.is_some()) {
            return;
        }
        if self.table[i].has(flag::STEPS) {
            return self.grant_idle(i, now, last);
        }
        let Some(used) = self.used(i, now, last) else { return };
        let top = self.classes.top(place);
        if self.tree(top).is_due_for_others(top, now) {
            self.charge_others(top, now);
        }
        let most = self.tree(place).free(place, rtt, now) / 2;
        let (bytes, within) = portion(used, most);
        self.grant_bytes(i, bytes, within, now);
    }

    /// What the flow used of its last grant, if it had one, and in which time; `None`: it is silent.
    pub(super) fn used(&self, i: u32, now: Time, last: Option<Look>) -> Option<Option<(u32, Duration)>> {
        let used = last.map(|look| (self.table[i].tx.wrapping_sub(look.tx), now.since(look.since)));
        (!used.is_some_and(|(bytes, time)| bytes == 0 && time >= LONGEST)).then_some(used)
    }

    pub(super) fn grant_bytes(&mut self, i: u32, bytes: u32, within: Duration, now: Time) {
        let r = &self.table[i];
        if bytes < LEAST_SEGMENTS * u32::from(r.mss) {
            return;
        }
        let place = r.class;
        let limit = self.window_limit_at(r, r.tx.wrapping_add(bytes));
        let slot = &self.slots[i];
        slot.width.store(limit.unwrap_or(0), Relaxed);
        if slot.grant(r.tx.wrapping_add(bytes)) {
            let r = &mut self.table[i];
            r.set(flag::GRANTED, true);
            r.note_grant(bytes, now);
            self.table.touch(i, millis(now));
            self.tree(place).reserve(place, u64::from(bytes));
            self.start_timer(i, on_grid(now + within));
        }
    }

    /// What was granted to a flow is not any more.
    pub(in crate::gateway) fn unreserve(&mut self, i: u32) {
        let r = &self.table[i];
        if r.has(flag::SHARED) {
            let (place, (bytes, _)) = (r.class, r.last_grant());
            self.tree(place).unreserve(place, u64::from(bytes));
        }
    }
}

/// How much is granted to a flow that `used` so much in some time, of `most`, and when it is looked at: when
/// half of it is likely to be used.
pub(super) fn portion(used: Option<(u32, Duration)>, most: u64) -> (u32, Duration) {
    let Some((bytes, time)) = used else { return (clamp(most / 2), FIRST) };
    let (bytes, time) = (u128::from(bytes.max(1)), u128::from(time.as_nanos().max(1)));
    let wanted = 2 * bytes * u128::from(LONGEST.as_nanos()) / time;
    let granted = wanted.min(u128::from(most));
    let half = granted * time / (2 * bytes);
    let within = Duration::from_nanos(half.min(u128::from(LONGEST.as_nanos())) as u64);
    (clamp(granted as u64), within)
}

fn clamp(bytes: u64) -> u32 {
    bytes.min(1 << 30) as u32
}

impl Tree<'_> {
    /// Have others than its flows not been looked at for some time?
    fn is_due_for_others(&self, top: u32, now: Time) -> bool {
        let Some(share) = self.classes.share(top) else { return false };
        let looked = match share.node() {
            Some(node) => node.looked,
            None => share.others.at(),
        };
        now.since(looked) >= FIRST
    }

    /// Bytes that may pass unasked of flows with this round trip by the next look: none where the class or
    /// one above it is ahead of its clock, or was lately.
    fn free(&mut self, place: u32, rtt: Duration, now: Time) -> u64 {
        let long = rtt.saturating_mul(FREE_ROUNDS).max(FREE_LEAST);
        let mut least = u64::MAX;
        let mut at = Some(place);
        while let Some(share) = at.and_then(|at| self.classes.share_mut(at)) {
            if share.is_bounded() {
                if share.clock.due() > now {
                    share.bound = now;
                }
                if now.since(share.bound) < long {
                    return 0;
                }
                least = least.min(share.clock.earned_by(now, LONGEST).saturating_sub(share.granted));
            }
            at = share.parent();
        }
        least
    }

    fn reserve(&mut self, place: u32, bytes: u64) {
        self.each_above(place, |share| share.granted += bytes);
    }

    fn unreserve(&mut self, place: u32, bytes: u64) {
        self.each_above(place, |share| share.granted = share.granted.saturating_sub(bytes));
    }

    /// Changes the class and all above it.
    fn each_above(&mut self, place: u32, mut change: impl FnMut(&mut Share)) {
        let mut at = Some(place);
        while let Some(share) = at.and_then(|at| self.classes.share_mut(at)) {
            change(share);
            at = share.parent();
        }
    }
}

impl Share {
    /// Is its clock one of the most that it may send?
    pub(super) fn is_bounded(&self) -> bool {
        self.node().is_none_or(|node| node.bounded)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_is_twice_what_is_used_by_the_next_look() {
        let ms = Duration::from_millis;
        // 1,000 bytes a millisecond: 8,000 in 4 ms, half of which take 4 ms.
        assert_eq!(portion(Some((2_000, ms(2))), 100_000), (8_000, ms(4)));
        // If there is less, the look is earlier.
        assert_eq!(portion(Some((2_000, ms(2))), 3_000), (3_000, Duration::from_micros(1_500)));
        assert_eq!(portion(None, 10_000), (5_000, ms(1)));
    }
}
