//! HyStart++ (RFC 9406).

use super::threshold::rtt_thresh;
use crate::cc::Ack;
use weir_core::time::Duration;

/// RFC 9406 §4.3.
const N_RTT_SAMPLE: u32 = 8;
const CSS_GROWTH_DIVISOR: u64 = 4;
const CSS_ROUNDS: u32 = 5;
/// L where sending is not paced.
const BURST_LIMIT: u32 = 8;

/// What holds slow start back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Brake {
    /// Most segments that count of one ACK; [`u32::MAX`] is all.
    pub limit: u32,
    /// The window grows by this part of what is acknowledged.
    pub divisor: u64,
}

impl Brake {
    /// Nothing does.
    pub const NONE: Brake = Brake { limit: u32::MAX, divisor: 1 };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Standard slow start.
    Standard,
    /// Conservative slow start (CSS), with rounds ended in it.
    Conservative { baseline: Duration, rounds: u32 },
    /// Slow start is over, or it is not the first.
    Done,
}

/// HyStart++. A delay that grows from one round to the next leads into conservative slow start, which leads
/// back, should the delay fall, or into congestion avoidance after five rounds.
#[derive(Clone, Copy, Debug)]
pub struct PlusPlus {
    state: State,
    paced: bool,
    /// SND.NXT when the round began.
    window_end: Option<u64>,
    /// Smallest delay of the round before and of this one; [`Duration::MAX`] without a sample.
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

    /// What holds growth back now.
    pub(super) fn brake(&self) -> Brake {
        let limit = if self.paced { u32::MAX } else { BURST_LIMIT };
        match self.state {
            State::Standard => Brake { limit, divisor: 1 },
            State::Conservative { .. } => Brake { limit, divisor: CSS_GROWTH_DIVISOR },
            State::Done => Brake::NONE,
        }
    }

    /// RFC 9406 §4.2; true when slow start is to end.
    pub(super) fn on_ack(&mut self, ack: &Ack) -> bool {
        if self.state == State::Done {
            return false;
        }
        // Before the first ACK is answered, SND.NXT is the end of the first round.
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

    /// Congestion: slow start has found its end.
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

    /// The round is acknowledged. One that began before conservative slow start did counts for it.
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
