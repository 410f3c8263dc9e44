//! What passes of a class that ACKs cannot slow: it is charged to the class's clock whenever the clock is looked at, and the windows
//! of the class's flows are shares of what it leaves.

use super::average::{Average, ONE};
use crate::ack::ShareRelease;
use crate::flow::Key;
use crate::frame::Frame;
use crate::gateway::{Direction, Gateway};
use crate::node::Cx;
use crate::steer::{Counted, Tally};
use crate::time::{Duration, Time};
use crate::wire::{self, TCP};

/// Rates are those over so long at least.
const SPAN: Duration = Duration::from_millis(10);

/// What is known of that.
#[derive(Default)]
pub(super) struct Others {
    counted: Counted,
    /// When that was looked at.
    at: Time,
    /// Bytes charged since.
    sum: u64,
    since: Time,
    /// Bits per second.
    rate: Average,
}

impl Others {
    /// Bits per second that pass, on average.
    pub(super) fn bps(&self) -> u64 {
        self.rate.value() / ONE
    }

    /// What has passed since the last look, in what `law` counts, and when that was.
    fn look(&mut self, law: &ShareRelease, counted: Counted, now: Time) -> Option<(u64, Time)> {
        let passed = counted.since(core::mem::replace(&mut self.counted, counted));
        let cost = law.cost_of_packets(passed.packets, passed.bytes);
        let before = self.at;
        self.at = before.max(now);
        self.sum += cost;
        let span = now.since(self.since);
        if span >= SPAN && (self.sum > 0 || self.rate.value() > 0) {
            let bps = u128::from(self.sum) * 8_000_000_000 / u128::from(span.as_nanos());
            self.rate.note(bps.min(1 << 40) as u64, now);
            (self.sum, self.since) = (0, now);
        }
        (cost > 0).then_some((cost, before))
    }
}

impl Gateway {
    /// What the hooks count of each class, by place.
    pub fn tallies(&self) -> &[Tally] {
        &self.tallies
    }

    /// The [tally](Gateway::tallies) of what is not TCP and goes in this direction, if it is charged to a class.
    pub fn tally_of(&self, direction: Direction, key: &Key) -> Option<&Tally> {
        let place = self.controls(direction, key)?;
        self.classes.share(place).and_then(|_| self.tallies.get(place as usize))
    }

    /// A frame passes that has no place among flows. A gateway without hooks counts it itself.
    pub(in crate::gateway) fn count_other(&self, cx: &Cx<'_>, from_lan: bool, frame: &Frame) {
        let bytes = cx.frames.bytes(frame);
        let Ok(packet) = wire::any_packet(bytes, frame.len()) else { return };
        if packet.protocol != TCP {
            let direction = if from_lan { Direction::Out } else { Direction::In };
            if let Some(tally) = self.tally_of(direction, &Key::of_packet(bytes, &packet)) {
                tally.count(u64::from(packet.end) - u64::from(packet.l3));
            }
        }
    }

    /// Charges the class what has passed that is none of its flows'.
    pub(super) fn charge_others(&mut self, place: u32, now: Time) {
        let Some(tally) = self.tallies.get(place as usize) else { return };
        let counted = tally.counted();
        let (Some(share), stats) = self.classes.share_and_stats(place) else { return };
        if let Some((cost, since)) = share.others.look(&share.law, counted, now) {
            stats.others_bytes += cost;
            stats.forgiven_bytes += share.clock.charge_since(cost, since, now);
        }
    }
}
