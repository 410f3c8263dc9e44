//! The time series of snapshots (appendices B and C of "PostACK"): how much of its rate a flow gets that loses one packet of
//! every 1/p. `docs/tss-model.md` derives every formula.
//!
//! Windows and amounts are in packets, times in round trips of the WAN without queueing. `pipe` is how many packets the flow's rate
//! carries in one round trip (the paper's `W_w`).

/// What the flow's ACKs and data go through.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A queue for the flow, which is long enough (`pfq`); with PostACK the queue's place is taken by held ACKs, and the flow does the same.
    Queue,
    /// The window that the receiver advertises is sized to `pipe` (`tcr`).
    Sized,
}

/// In which part of the model's plane a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// The window never fills the pipe: the rate does not bind.
    Below,
    /// It fills the pipe before the loss and not after it.
    Across,
    /// Halved, it still fills the pipe.
    Above,
}

impl Case {
    /// Its number in the paper's figure 15.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Where a flow comes to rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    pub case: Case,
    /// The congestion window when a packet is lost, in packets.
    pub window: f64,
    /// Packets that are sent in a round trip.
    pub throughput: f64,
}

/// The loss rate below which the window fills the pipe (claim 1).
pub fn fills(pipe: f64) -> f64 {
    8.0 / (3.0 * pipe * pipe)
}

/// The loss rate below which a queued flow's window fills the pipe even when it is halved (claims 2 and 3, with the packets that the
/// buffer holds when the loss happens).
pub fn always_fills(pipe: f64) -> f64 {
    2.0 / (3.0 * pipe * pipe + pipe)
}

/// Where a flow comes to rest with a loss rate of `p`, which is above 0.
pub fn steady(scheme: Scheme, pipe: f64, p: f64) -> Steady {
    if p >= fills(pipe) {
        return below(p);
    }
    match scheme {
        Scheme::Sized => sized(pipe, p),
        Scheme::Queue if p >= always_fills(pipe) => across(pipe, p),
        Scheme::Queue => above(pipe, p),
    }
}

/// Figure 15a: from half the window to all of it, a packet more in each round trip.
fn below(p: f64) -> Steady {
    let window = (8.0 / (3.0 * p)).sqrt();
    Steady { case: Case::Below, window, throughput: 1.0 / ((2.0 * p / 3.0).sqrt() + p) }
}

/// Figure 15b: up to the pipe as before, then at the rate while the buffer fills, then at the rate while it drains.
fn across(pipe: f64, p: f64) -> Steady {
    let window = ((4.0 + 12.0 * pipe + 24.0 / p).sqrt() - 2.0) / 3.0;
    let filling = (window - pipe) * (window + pipe - 1.0) / 2.0;
    let draining = window - pipe;
    let time = (pipe - window / 2.0) + (filling + draining) / pipe + 1.0;
    Steady { case: Case::Across, window, throughput: 1.0 / p / time }
}

/// Figure 15c: always at the rate. Half the window drains from the buffer, all else that is sent raises the window again.
fn above(pipe: f64, p: f64) -> Steady {
    let window = ((1.0 + 24.0 / p).sqrt() - 1.0) / 3.0;
    Steady { case: Case::Above, window, throughput: 1.0 / (1.0 / pipe + p) }
}

/// Figure 15d: what is in flight is never more than the pipe, so half of that is left when a packet is lost.
fn sized(pipe: f64, p: f64) -> Steady {
    Steady { case: Case::Across, window: pipe, throughput: 1.0 / (1.0 / pipe + p * (pipe / 8.0 + 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The congestion window `round_trips` after it was `window`, no smaller than `pipe`: it grows by a packet for every window that
    /// is acknowledged, and `pipe` packets are acknowledged in a round trip (appendix B, where a division by 2 is missing).
    fn grown(window: f64, round_trips: f64, pipe: f64) -> f64 {
        let b = 2.0 * window - 1.0;
        window + (((b * b + 8.0 * round_trips * pipe).sqrt() - b) / 2.0).floor()
    }

    /// The appendix's inequality by counting: windows of w, w + 1, … packets, as long as all of them are no more than what x round trips
    /// carry.
    fn counted(window: u32, round_trips: u32, pipe: u32) -> u32 {
        let (mut left, mut w) = (round_trips * pipe, window);
        while left >= w {
            (left, w) = (left - w, w + 1);
        }
        w
    }

    #[test]
    fn windows_grow_as_counted() {
        for pipe in [1, 4, 10, 37] {
            for window in pipe..3 * pipe + 4 {
                for round_trips in 0..60 {
                    let law = grown(f64::from(window), f64::from(round_trips), f64::from(pipe));
                    let want = counted(window, round_trips, pipe);
                    assert_eq!(law, f64::from(want), "{window} after {round_trips} with {pipe}");
                }
            }
        }
    }

    /// Packets of a loss cycle after another: how many leave in a round trip in the end, and the window at the loss.
    fn iterated(scheme: Scheme, pipe: f64, p: f64) -> (f64, f64) {
        let (packets, mut window, mut last) = ((1.0 / p).round(), 1.0f64, (0.0, 0.0));
        for _ in 0..100 {
            let (mut sent, mut time, mut acked) = (0.0, 0.0, 0.0);
            let buffered = |w: f64| match scheme {
                Scheme::Queue => (w - pipe.max(w / 2.0)).max(0.0),
                Scheme::Sized => 0.0,
            };
            while sent + buffered(window) < packets {
                (sent, acked) = (sent + 1.0, acked + 1.0);
                time += 1.0 / window.min(pipe);
                if acked >= window {
                    (acked, window) = (acked - window, window + 1.0);
                }
            }
            // The buffer drains; a round trip later the retransmission is acknowledged.
            time += buffered(window) / pipe + 1.0;
            last = (packets / time, window);
            let in_flight = if scheme == Scheme::Sized { window.min(pipe) } else { window };
            window = (in_flight / 2.0).max(1.0);
        }
        last
    }

    /// The law adds up areas, the iteration whole packets and windows: they are a packet of a window apart.
    #[test]
    fn every_case_is_where_cycles_come_to_rest() {
        for pipe in [10.0, 25.0, 60.0, 150.0] {
            let of_first = [4.0, 1.5, 0.9, 0.5, 0.3].map(|part| part * fills(pipe));
            let of_second = [0.9, 0.3, 0.05].map(|part| part * always_fills(pipe));
            for p in of_first.into_iter().chain(of_second).filter(|p| *p < 0.05) {
                for scheme in [Scheme::Queue, Scheme::Sized] {
                    let law = steady(scheme, pipe, p);
                    let (throughput, window) = iterated(scheme, pipe, p);
                    let off = (law.throughput / throughput - 1.0).abs();
                    let what = format!("{scheme:?}, {pipe}, {p}: {law:?}, {throughput}, {window}");
                    assert!(off < 1.0 / window.min(pipe), "{what}");
                    if scheme == Scheme::Queue {
                        assert!((law.window - window).abs() < 1.5, "{what}");
                    }
                }
            }
        }
    }

    /// Where one case ends the next begins, with the same window and the same throughput.
    #[test]
    fn the_cases_meet() {
        for pipe in [4.0, 10.0, 100.0] {
            let near = |a: f64, b: f64| assert!((a / b - 1.0).abs() < 1e-9, "{a} and {b}");
            let (p, q) = (fills(pipe), always_fills(pipe));
            near(below(p).throughput, across(pipe, p).throughput);
            near(below(p).throughput, sized(pipe, p).throughput);
            near(below(p).window, pipe);
            near(across(pipe, p).window, pipe);
            near(across(pipe, q).throughput, above(pipe, q).throughput);
            near(across(pipe, q).window, 2.0 * pipe);
            near(above(pipe, q).window, 2.0 * pipe);
        }
    }

    /// The law of the square root (Mathis et al. 1997), sqrt(3/2p), less the round trip of the retransmission.
    #[test]
    fn below_the_pipe_it_is_the_law_of_the_square_root() {
        for p in [1e-4f64, 1e-3, 1e-2] {
            let mathis: f64 = (1.5 / p).sqrt();
            assert!((1.0 / steady(Scheme::Queue, 1e9, p).throughput - 1.0 / mathis - p).abs() < 1e-12);
        }
    }

    #[test]
    fn a_window_that_is_sized_has_less_after_a_loss() {
        for p in [1e-5, 1e-4, 1e-3, 3e-3, 1e-2] {
            let (queue, sized) = (steady(Scheme::Queue, 20.0, p), steady(Scheme::Sized, 20.0, p));
            let differ = p < fills(20.0);
            assert_eq!(queue.throughput > sized.throughput, differ, "{p}: {queue:?} and {sized:?}");
            assert!(queue.throughput <= 20.0);
        }
    }
}
