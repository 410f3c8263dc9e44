//! Classes with one queue, whose flows have turns as it sends (PostACK sections 3.2 and 6: figs 4 and 5,
//! clocked by departures).
//!
//! A turn of a flow is what brings a packet to the queue, or answers one that came beyond those that turns
//! were for. So there is a turn for each packet that leaves the queue, whatever the rate at which it does:
//! the queue neither grows while the class gets less than its rate, nor stays empty while it may send more.
//! Packets that no flow of the class has sent bring no turn.
//!
//! An empty queue owes nothing: whatever flows have sent has left. While it is empty turns come eight times
//! as often as the class could send a packet, until one of them brings data. Of a sender that has halved its
//! window half a window of ACKs does not; a timer at the class's rate would have the class send nothing
//! meanwhile.

use super::turns::Visit;
use crate::gateway::Gateway;
use crate::node::Cx;
use crate::systems::postack::Departure;
use crate::time::Time;

/// Flows looked at in one call.
const VISITS: u32 = 32;

impl Gateway {
    /// Packets have left the queue of the class at this place.
    pub(super) fn one_queue_left(&mut self, cx: &mut Cx<'_>, place: u32, departure: Departure) {
        let Some(share) = self.classes.share_mut(place) else { return };
        let list = &mut share.departures;
        let others = departure.packets.min(list.others);
        list.others -= others;
        list.turns = list.turns.saturating_add_unsigned(departure.packets - others);
        if departure.next.is_none() {
            list.run_empty(cx.now);
        }
        self.take_turns(cx, place);
        self.arm_idle(place, cx.now);
    }

    /// The queue of the class at this place is empty, and a turn is due.
    pub(super) fn one_queue_idle(&mut self, cx: &mut Cx<'_>, place: u32) {
        let Some(share) = self.classes.share_mut(place) else { return };
        if share.departures.busy || share.departures.next_idle > cx.now {
            return self.arm_idle(place, cx.now);
        }
        share.departures.turns = 1;
        self.take_turns(cx, place);
        self.arm_idle(place, cx.now);
    }

    /// Flows have the turns that there are. Those that none of them needs are lost.
    fn take_turns(&mut self, cx: &mut Cx<'_>, place: u32) {
        for _ in 0..VISITS {
            let Some(share) = self.classes.share(place) else { return };
            if share.departures.turns <= 0 {
                return;
            }
            let Some(i) = share.head() else { break };
            if self.visit(cx, i, place) == Visit::Stuck {
                break;
            }
        }
        if let Some(share) = self.classes.share_mut(place).filter(|share| share.head().is_none()) {
            share.departures.turns = 0;
        }
    }

    /// Turns that departures gave were had.
    pub(super) fn spend_departures(&mut self, place: u32, turns: u32, now: Time) {
        let Some(share) = self.classes.share_mut(place) else { return };
        share.departures.turns = share.departures.turns.saturating_sub_unsigned(turns);
        share.note_turn(now);
    }
}
