//! HyStart++ (RFC 9406).

use super::threshold::rtt_thresh;
use crate::cc::Ack;
use weir_core::time::Duration;

/// Constants of RFC 9406 §4.3.
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// L if sending is not paced.
const BURST_LIMIT: u32 = 8;

/// Limit on the growth in slow start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// Most segments of one ACK that count; [`u32::MAX`] for all.
    pub limit: u32,
    /// Divisor of growth: the window grows by the acknowledged bytes divided by it.
    pub divisor: u64,
}

impl Brake {
    /// No limit.
    pub const NONE: Brake = Brake { limit: u32::MAX, divisor: 1 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Standard slow start.
    Standard,
    /// Conservative slow start (CSS), with the number of rounds ended in it.
    Conservative { baseline: Duration, rounds: u32 },
    /// Slow start is over, or it is not the first one.
    Done,
}

/// HyStart++. A delay that grows from one round to the next leads into conservative slow start. That leads
/// back if the delay falls, or into congestion avoidance after five rounds.
#[derive(Clone, Copy, Debug)]
pub struct PlusPlus {
    state: State,
    paced: bool,
    /// SND.NXT at the start of the round.
    window_end: Option<u64>,
    /// Smallest delay of the previous round and of this one; [`Duration::MAX`] without a sample.
    last_min: Duration,
    current_min: Duration,
    samples: u32,
}

impl PlusPlus {
    pub(super) fn new(paced: bool) -> PlusPlus {
        PlusPlus {
            state: State::Standard,
            paced,
            window_end: None,
            last_min: Duration::MAX,
            current_min: Duration::MAX,
            samples: 0,
        }
    }

    /// Returns the present limit on growth.
    pub(super) fn brake(&self) -> Brake {
        let limit = if self.paced { u32::MAX } else { BURST_LIMIT };
        match self.state {
            State::Standard => Brake { limit, divisor: 1 },
            State::Conservative { .. } => Brake { limit, divisor: CSS_GROWTH_DIVISOR },
            State::Done => Brake::NONE,
        }
    }

    /// Handles an ACK by RFC 9406 §4.2. Returns true when slow start must end.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> bool {
        if self.state == State::Done {
            return false;
        }
        // Until the first ACK is answered, SND.NXT is the end of the first round.
        let window_end = *self.window_end.get_or_insert(ack.nxt);
        if let Some(rtt) = ack.rtt {
            self.current_min = self.current_min.min(rtt);
            self.samples += 1;
            self.compare();
        }
        if ack.una >= window_end {
            self.end_round(ack.nxt);
        }
        self.state == State::Done
    }

    /// Ends the search after congestion: slow start has found its end.
    pub(super) fn finish(&mut self) {
        self.state = State::Done;
    }

    fn compare(&mut self) {
        if self.samples < N_RTT_SAMPLE {
            return;
        }
        match self.state {
            State::Standard if self.delay_has_grown() => {
                self.state = State::Conservative { baseline: self.current_min, rounds: 0 };
            }
            State::Conservative { baseline, .. } if self.current_min < baseline => {
                self.state = State::Standard;
            }
            _ => {}
        }
    }

    fn delay_has_grown(&self) -> bool {
        self.last_min != Duration::MAX && self.current_min >= self.last_min + rtt_thresh(self.last_min)
    }

    /// Ends the acknowledged round. A round that began before conservative slow start counts for it.
    fn end_round(&mut self, nxt: u64) {
        self.window_end = Some(nxt);
        self.last_min = self.current_min;
        self.current_min = Duration::MAX;
        self.samples = 0;
        if let State::Conservative { rounds, .. } = &mut self.state {
            *rounds += 1;
            if *rounds >= CSS_ROUNDS {
                self.state = State::Done;
            }
        }
    }
}
