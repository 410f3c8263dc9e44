//! The time series of snapshots (appendices B and C of "PostACK"): the share of its rate that a flow gets
//! when it loses one of every 1/p packets. `docs/tss-model.md` derives every formula.
//!
//! Windows and amounts are in packets, times in round trips of the WAN without queueing. `pipe` is the number
//! of packets that the flow's rate carries in one round trip (the paper's `W_w`).

/// Mechanism that limits the flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// A queue for the flow that is long enough (`pfq`). With PostACK, held ACKs replace the queue, and the
    /// flow behaves identically.
    Queue,
    /// A receive window that is sized to `pipe` (`tcr`).
    Sized,
}

/// Region of the model's plane that a flow is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Case {
    /// The window never fills the pipe, so the rate does not bind.
    Below,
    /// The window fills the pipe before the loss but not after it.
    Across,
    /// The window fills the pipe even when halved.
    Above,
}

impl Case {
    /// Returns the number in the paper's figure 15.
    pub fn number(self) -> u8 {
        self as u8 + 1
    }
}

/// Steady state of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    pub case: Case,
    /// Congestion window when a packet is lost, in packets.
    pub window: f64,
    /// Packets sent per round trip.
    pub throughput: f64,
}

/// Returns the loss rate below which the window fills the pipe (claim 1).
pub fn fills(pipe: f64) -> f64 {
    8.0 / (3.0 * pipe * pipe)
}

/// Returns the loss rate below which a queued flow's window fills the pipe even when halved (claims 2 and 3,
/// including the packets in the buffer at the loss).
pub fn always_fills(pipe: f64) -> f64 {
    2.0 / (3.0 * pipe * pipe + pipe)
}

/// Returns the steady state of a flow with a loss rate of `p`, which is above 0.
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

/// Computes figure 15a: the window grows from half to full, by a packet in each round trip.
fn below(p: f64) -> Steady {
    let window = (8.0 / (3.0 * p)).sqrt();
    Steady { case: Case::Below, window, throughput: 1.0 / ((2.0 * p / 3.0).sqrt() + p) }
}

/// Computes figure 15b: growth up to the pipe, then sending at the rate while the buffer fills, and at the
/// rate while it drains.
fn across(pipe: f64, p: f64) -> Steady {
    let window = ((4.0 + 12.0 * pipe + 24.0 / p).sqrt() - 2.0) / 3.0;
    let filling = (window - pipe) * (window + pipe - 1.0) / 2.0;
    let draining = window - pipe;
    let time = (pipe - window / 2.0) + (filling + draining) / pipe + 1.0;
    Steady { case: Case::Across, window, throughput: 1.0 / p / time }
}

/// Computes figure 15c: always at the rate. Half the window drains from the buffer, and all other packets
/// raise the window again.
fn above(pipe: f64, p: f64) -> Steady {
    let window = ((1.0 + 24.0 / p).sqrt() - 1.0) / 3.0;
    Steady { case: Case::Above, window, throughput: 1.0 / (1.0 / pipe + p) }
}

/// Computes figure 15d: at most the pipe is in flight, so a loss leaves half of it.
fn sized(pipe: f64, p: f64) -> Steady {
    Steady { case: Case::Across, window: pipe, throughput: 1.0 / (1.0 / pipe + p * (pipe / 8.0 + 1.0)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the congestion window `round_trips` after it was `window`, no smaller than `pipe`. It grows by
    /// a packet for every acknowledged window, and `pipe` packets are acknowledged in a round trip (appendix
    /// B, where a division by 2 is missing).
    fn grown(window: f64, round_trips: f64, pipe: f64) -> f64 {
        let b = 2.0 * window - 1.0;
        window + (((b * b + 8.0 * round_trips * pipe).sqrt() - b) / 2.0).floor()
    }

    /// Counts the appendix's inequality: windows of w, w + 1, … packets, as long as their sum is at most what
    /// x round trips carry.
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

    /// Iterates loss cycles, packet by packet. Returns the final packets per round trip and the window at the
    /// loss.
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
            // The buffer drains. A round trip later the retransmission is acknowledged.
            time += buffered(window) / pipe + 1.0;
            last = (packets / time, window);
            let in_flight = if scheme == Scheme::Sized { window.min(pipe) } else { window };
            window = (in_flight / 2.0).max(1.0);
        }
        last
    }

    /// Verifies the law against the iteration. The law adds up areas, the iteration whole packets and
    /// windows, so they differ by a packet of a window.
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

    /// Verifies that adjoining cases agree in window and throughput where they meet.
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

    /// Verifies the square root law (Mathis et al. 1997), sqrt(3/2p), less the round trip of the
    /// retransmission.
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
