//! Grants where ACKs follow the data of a class that has hardly any waiting.
//!
//! An ACK of a flow without data in the queue of its class goes at once (`departures`). Where that is so most
//! of the time, since the class is not what limits its flows, each ACK would come here for nothing but to be
//! sent on. So the hooks let them pass, as far as a grant goes: of all flows of a class together no more than
//! the class sends in half a millisecond. That is what its queue can get beyond what it would have had. The
//! grant of a flow ends as soon as more than one packet of it waits, and where the queue is not empty for a
//! quarter of the time none is made.

use crate::ack::Turns;
use crate::flow::flag;
use crate::gateway::grant::Look;
use crate::gateway::Gateway;
use crate::systems::class_rate::portion;
use crate::time::{Duration, Time};

/// What is granted of a class's rate, as time.
const AHEAD: Duration = Duration::from_micros(500);

impl Gateway {
    /// The next ACKs of a flow whose class releases them as its data leaves may pass, if hardly any data
    /// waits in the class. `last` is how the flow was when its last grant was looked at.
    pub(super) fn grant_idle(&mut self, i: u32, now: Time, last: Option<Look>) {
        let Some(share) = self.classes.share(self.table[i].class) else { return };
        let list = &share.departures;
        let follows = share.law.turns == Turns::Departures;
        if !follows || !list.is_idle(now) {
            return;
        }
        let most = share.law.rate.bytes_in(AHEAD).saturating_sub(share.granted);
        let Some(used) = self.used(i, now, last) else { return };
        let (bytes, within) = portion(used, most);
        self.grant_bytes(i, bytes, within, now);
    }

    /// More than one packet of the flow waits in the queue of its class: its ACKs wait from now on, unless
    /// hardly anything does.
    pub(super) fn end_idle_grant(&mut self, i: u32, now: Time) {
        let r = &self.table[i];
        let idle = self.classes.share(r.class).is_some_and(|share| share.departures.is_idle(now));
        if r.has(flag::GRANTED) && !idle {
            self.follow(i, now);
        }
    }
}
