//! Basic PostACK (section 3.1, fig. 3): each ACK is held for as long as a packet of data would wait in a
//! queue of its flow at the flow's part of the rate, `qlen × MSS / BW`. All packets of the sender's window
//! would wait but those in the WAN pipe: `qlen = min(CWND, RWND) − BW × D / MSS`, where `D` is the delay of
//! the WAN as it is measured.
//!
//! The window is what the sender has sent and was not acknowledged for, by the data and the ACKs that are
//! seen. Nothing is held of the data, and nothing paces it: packets that are sent together are acknowledged
//! together, a window's delay later.

use super::{Driver, Rules, Steps};
use crate::flow::Record;
use crate::rate::Rate;
use crate::time::Duration;
use crate::wire::Seq;

/// See the module documentation.
pub(super) struct Basic;

impl Rules for Basic {
    fn driver(&self) -> Driver {
        Driver::Delay
    }
    fn watches_data(&self) -> bool {
        true
    }
    fn sent(&self, steps: &mut Steps, end: Seq) {
        steps.delayed_mut().note_sent(end);
    }
    fn counts(&self, r: &Record, _queues: u16) -> bool {
        window(r) > 0
    }
    fn delay(&self, r: &Record, rate: Rate, rtt: Duration) -> Duration {
        rate.time_for(window(r).into()).saturating_sub(rtt)
    }
}

/// Returns the window of the flow's sender in bytes.
fn window(r: &Record) -> u32 {
    r.law.steps().delayed().outstanding(r.tx)
}
