//! State of the way back of taken frames, one for each direction. A way is intact if redirected frames come
//! to the engine, and if the hook at the destination sees the frames that the engine sends. The hooks and the
//! engine count frames. A count that stands still while the one before it grows shows a break: a filter or
//! another program in front, a socket of a missing interface, an internal pair that carries nothing. So does
//! a difference of the two that grows by a quarter of what is sent ([`Leg`]).
//!
//! A shut way is tried once a second, with the frame that found no way or with a probe. A probe may not
//! arrive where a filter takes unknown frames. Then a single segment is taken a little later, and the ACK
//! that the engine makes of it tries the way. A way that lost frames is open again once [`PROOF`] in a row
//! have arrived. As long as the socket itself refuses, a trial costs no frame: it is repeated every
//! 10 ms, so a way opens with its interface.

use super::leg::{Leg, Look, PATIENCE};
use crate::port::Stuck;
use std::fmt;
use weir_core::gateway::Direction;
use weir_core::time::{Duration, Time};

/// Longest time that a full socket may take nothing: a frame of 1,514 bytes takes 190 ms at 64 kbit/s.
const FULL: Duration = Duration::from_millis(500);
/// Interval at which a shut or idle way is tried.
const TRY: Duration = Duration::from_secs(1);
/// Interval at which a way is tried whose socket refused the last trial.
const TRY_REFUSED: Duration = Duration::from_millis(10);
/// Time from a probe until a segment is taken.
const TAKE: Duration = Duration::from_millis(100);
/// Frames in a row that have to arrive on a way that lost some: if it loses half, all of them arrive one time
/// in 256.
const PROOF: u32 = 8;
/// Shortest fault that is reported.
const WORTH_A_WORD: Duration = Duration::from_millis(100);
/// Least time between two lines of the log about the same fault.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Fault of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The way has not been tried.
    Untried,
    /// Redirected frames do not come to the engine.
    Unread,
    /// A part of the redirected frames does not come to the engine.
    ReadInPart,
    /// The hook at the destination does not see sent frames.
    Unseen,
    /// The hook at the destination does not see a part of the sent frames.
    SeenInPart,
    /// The socket fails with this error.
    Socket(i32),
    /// The socket stays full.
    Full,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Untried | Fault::Unseen => {
                f.write_str("does not come there: a filter or another program in front takes it")
            }
            Fault::SeenInPart => {
                f.write_str("comes there only in part: a filter or another program in front takes the rest")
            }
            Fault::Unread => f.write_str("does not come to the engine by the internal pair of interfaces"),
            Fault::ReadInPart => {
                f.write_str("comes to the engine only in part by the internal pair of interfaces")
            }
            Fault::Socket(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "cannot be sent: {error}")
            }
            Fault::Full => f.write_str("cannot be sent: the socket stays full"),
        }
    }
}

impl Fault {
    /// Returns whether frames are lost on their way to the engine.
    fn is_there(self) -> bool {
        matches!(self, Fault::Unread | Fault::ReadInPart)
    }

    /// Returns whether a part of the frames arrives.
    fn is_in_part(self) -> bool {
        matches!(self, Fault::ReadInPart | Fault::SeenInPart)
    }

    /// Frames in a row whose arrival ends the fault, or segments where `probes` do not arrive. Of few frames
    /// all may be lost, although a part arrives.
    fn proof(self, probes: bool) -> u32 {
        match self {
            Fault::Unseen if probes => PROOF,
            fault if fault.is_in_part() => PROOF,
            _ => 1,
        }
    }
}

/// Counts of a way at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames redirected by the hooks, and frames received by the engine; `None` where none are redirected,
    /// or where some wait to be received.
    pub there: Option<[u64; 2]>,
    /// Frames sent by the engine, and frames seen by the hook at the destination.
    pub back: [u64; 2],
    /// Reason why no frame leaves.
    pub stuck: Option<Stuck>,
}

impl Counts {
    /// Returns whether the socket refused the last frame. A frame that found no buffer may have been lost
    /// behind the socket.
    fn is_refused(&self) -> bool {
        self.stuck.is_some_and(|stuck| stuck.errno != libc::ENOBUFS)
    }
}

/// Action that the state of a way demands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// No action.
    Nothing,
    /// All traffic passes from now on; if `exit`, no frame is sent either.
    Shut { exit: bool },
    /// Taken frames come back again.
    Open,
    /// A frame is sent, to see whether it arrives.
    Try,
    /// A segment is taken, to see whether the engine's ACK arrives.
    Take,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open,
    /// `missing` frames have yet to arrive in a row.
    Shut {
        since: Time,
        fault: Fault,
        missing: u32,
    },
}

/// Means by which a shut way is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    /// The frame that found no way, or a probe.
    Frame,
    /// The ACK that the engine makes of a segment.
    Segment,
}

/// The way of one direction.
#[derive(Debug)]
pub(super) struct Way {
    state: State,
    /// Known once no frame waits.
    there: Option<Leg>,
    back: Leg,
    /// Time at which a frame was sent last; for a shut way, at which it was tried.
    tried: Option<Time>,
    sent: u64,
    /// Means of the last trial.
    with: With,
    /// True if probes do not arrive although other frames do.
    deaf: bool,
    told: Option<(Fault, Time)>,
    /// True while the log's last line reports a fault.
    telling: bool,
}

impl Way {
    /// A way that has to be tried first. Until then it stays `open` if it was open for the engine before.
    pub fn new(now: Time, counts: &Counts, open: bool) -> Way {
        let shut = State::Shut { since: now, fault: Fault::Untried, missing: 1 };
        Way {
            state: if open { State::Open } else { shut },
            there: counts.there.map(|counts| Leg::new(now, counts)),
            back: Leg::new(now, counts.back),
            tried: None,
            sent: counts.back[0],
            with: With::Nothing,
            deaf: false,
            told: None,
            telling: false,
        }
    }

    /// Judges by what comes from now on: before that, the hooks of another program saw the frames.
    pub fn begin(&mut self, now: Time, counts: &Counts) {
        self.there = counts.there.map(|counts| Leg::new(now, counts));
        self.back = Leg::new(now, counts.back);
        self.sent = counts.back[0];
    }

    /// Returns the fault, if it has lasted long enough to be reported.
    pub fn fault(&self, now: Time) -> Option<Fault> {
        match self.state {
            State::Shut { since, fault, .. } if now.since(since) >= WORTH_A_WORD => Some(fault),
            _ => None,
        }
    }

    /// Takes the counts at `now`, and returns the action that they demand.
    pub fn look(&mut self, now: Time, counts: &Counts) -> Turn {
        let there = match (counts.there, &mut self.there) {
            (Some(counts), leg) => leg.get_or_insert_with(|| Leg::new(now, counts)).look(now, counts),
            (None, Some(leg)) => leg.waits(),
            (None, None) => Look::default(),
        };
        let back = self.back.look(now, counts.back);
        let sent = std::mem::replace(&mut self.sent, counts.back[0]) != counts.back[0];
        let fault = Way::broken(now, [there, back], counts);
        let State::Shut { fault: was, missing, .. } = self.state else {
            return self.look_open(now, fault, sent);
        };
        let arrived = if was.is_there() { there.arrived } else { back.arrived };
        if arrived > 0 {
            return self.prove(now, was, missing.saturating_sub(arrived));
        }
        self.look_shut(now, was, fault, counts)
    }

    fn look_open(&mut self, now: Time, fault: Option<Fault>, sent: bool) -> Turn {
        if let Some(fault) = fault {
            return self.shut(now, fault);
        }
        if sent {
            self.tried = Some(now);
        } else if self.is_due(now, TRY) && !self.deaf {
            return self.attempt(now, Fault::Untried);
        }
        Turn::Nothing
    }

    /// No frame has arrived on the shut way, whose fault `was` this.
    fn look_shut(&mut self, now: Time, was: Fault, fault: Option<Fault>, counts: &Counts) -> Turn {
        if was.is_there() {
            return if self.is_due(now, TRY) { self.attempt(now, was) } else { Turn::Nothing };
        }
        // Of a way that loses a part, nothing may arrive for a while.
        if let (State::Shut { fault: known, .. }, Some(fault)) = (&mut self.state, fault) {
            if !was.is_in_part() && !fault.is_in_part() {
                *known = fault;
            }
        }
        if self.is_due(now, if counts.is_refused() { TRY_REFUSED } else { TRY }) {
            return self.attempt(now, was);
        }
        match self.with == With::Frame && !counts.is_refused() && self.is_due(now, TAKE) {
            true => self.take(was),
            false => Turn::Nothing,
        }
    }

    /// A frame has arrived on the shut way, and this many are still `missing`.
    fn prove(&mut self, now: Time, fault: Fault, missing: u32) -> Turn {
        if missing == 0 {
            return self.open(now);
        }
        let turn = if self.with == With::Segment { self.take(fault) } else { self.attempt(now, fault) };
        self.expect(missing);
        turn
    }

    /// Sets how many frames have to arrive.
    fn expect(&mut self, frames: u32) {
        if let State::Shut { missing, .. } = &mut self.state {
            *missing = frames;
        }
    }

    fn is_due(&self, now: Time, pause: Duration) -> bool {
        self.tried.is_none_or(|tried| now.since(tried) >= pause)
    }

    /// Tries a way with this fault, or one that is open.
    fn attempt(&mut self, now: Time, fault: Fault) -> Turn {
        self.tried = Some(now);
        if fault.is_there() {
            return self.take(fault);
        }
        self.expect(fault.proof(true));
        self.with = With::Frame;
        Turn::Try
    }

    fn take(&mut self, fault: Fault) -> Turn {
        self.expect(fault.proof(false));
        self.with = With::Segment;
        Turn::Take
    }

    fn broken(now: Time, [there, back]: [Look; 2], counts: &Counts) -> Option<Fault> {
        if let Some(Stuck { since, errno }) = counts.stuck {
            let long = now.since(since);
            match errno {
                libc::ENOBUFS => {}
                libc::EAGAIN | libc::ENOMEM if long < FULL => {}
                libc::EAGAIN | libc::ENOMEM => return Some(Fault::Full),
                errno if long >= PATIENCE => return Some(Fault::Socket(errno)),
                _ => {}
            }
        }
        let faults = [
            (back.broken, Fault::Unseen),
            (there.broken, Fault::Unread),
            (back.lossy, Fault::SeenInPart),
            (there.lossy, Fault::ReadInPart),
        ];
        faults.into_iter().find_map(|(is, fault)| is.then_some(fault))
    }

    fn shut(&mut self, now: Time, fault: Fault) -> Turn {
        self.state = State::Shut { since: now, fault, missing: fault.proof(true) };
        (self.tried, self.with) = (Some(now), With::Nothing);
        Turn::Shut { exit: !fault.is_there() }
    }

    fn open(&mut self, now: Time) -> Turn {
        // The engine's ACK of a segment arrived after its probe had not.
        let untried = matches!(self.state, State::Shut { fault: Fault::Untried | Fault::Unseen, .. });
        self.deaf |= untried && self.with == With::Segment;
        self.state = State::Open;
        self.there.iter_mut().chain([&mut self.back]).for_each(|leg| leg.restart(now));
        Turn::Open
    }

    /// Tries a shut way at once, because a known obstacle is gone.
    pub fn retry(&mut self, now: Time) {
        if let State::Shut { since, .. } = &mut self.state {
            (*since, self.tried) = (now, None);
        }
    }

    /// Returns a change for the log: a fault, or `None` for its end.
    pub fn news(&mut self, now: Time) -> Option<Option<Fault>> {
        match self.fault(now) {
            None if matches!(self.state, State::Open) => std::mem::take(&mut self.telling).then_some(None),
            None => None,
            Some(fault) => {
                let same = |(told, at): (Fault, Time)| told == fault && now.since(at) < BETWEEN_LINES;
                if self.telling || self.told.is_some_and(same) {
                    return None;
                }
                self.telling = true;
                self.told = Some((fault, now));
                Some(Some(fault))
            }
        }
    }

    /// Time for which the way has been shut.
    pub fn shut_for(&self, now: Time) -> Duration {
        match self.state {
            State::Open => Duration::ZERO,
            State::Shut { since, .. } => now.since(since),
        }
    }
}

/// Returns the words for a fault of traffic in this direction on the interface `name`.
pub(super) fn words(way: Direction, name: &str, fault: Fault) -> String {
    match (way, fault) {
        (Direction::Out, _) if fault.is_there() => format!("what leaves by {name} {fault}"),
        (Direction::In, _) if fault.is_there() => format!("what comes in on {name} {fault}"),
        (Direction::Out, _) => format!("what is to leave by {name} {fault}"),
        (Direction::In, _) => format!("what is to come in on {name} {fault}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Time {
        Time::from_millis(1000 + ms)
    }

    fn back(offered: u64, seen: u64) -> Counts {
        Counts { back: [offered, seen], ..Counts::default() }
    }

    fn stuck(errno: i32, since: Time) -> Counts {
        Counts { stuck: Some(Stuck { since, errno }), ..back(1, 1) }
    }

    /// Eight frames in a row arrive, which open a way that has lost some.
    fn arrive(way: &mut Way, at: Time, [sent, seen]: [u64; 2]) {
        for n in 1..8 {
            assert_eq!(way.look(at, &back(sent + n, seen + n)), Turn::Try);
        }
        assert_eq!(way.look(at, &back(sent + 8, seen + 8)), Turn::Open);
    }

    /// A way that a seen frame opened at once.
    fn open() -> Way {
        let mut way = Way::new(ms(0), &back(0, 0), false);
        assert_eq!(way.look(ms(0), &back(0, 0)), Turn::Try);
        assert_eq!(way.look(ms(0), &back(1, 1)), Turn::Open);
        way
    }

    #[test]
    fn a_way_is_open_once_a_frame_has_arrived() {
        let mut way = Way::new(ms(0), &back(7, 3), false);
        assert_eq!(way.look(ms(0), &back(7, 3)), Turn::Try);
        assert_eq!(way.look(ms(1), &back(8, 3)), Turn::Nothing);
        assert_eq!((way.fault(ms(99)), way.news(ms(99))), (None, None));
        assert_eq!(way.news(ms(121)), Some(Some(Fault::Untried)));
        assert_eq!(way.look(ms(121), &back(8, 4)), Turn::Open);
        assert_eq!(way.news(ms(121)), Some(None));
    }

    #[test]
    fn the_next_engine_finds_it_as_it_was() {
        let mut way = Way::new(ms(0), &back(0, 9), true);
        assert_eq!(way.look(ms(0), &back(0, 9)), Turn::Try);
        assert_eq!(way.look(ms(1), &back(1, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(21), &back(1, 9)), Turn::Shut { exit: true });
    }

    /// Other hooks have seen the first 60 of 200 frames, as during an upgrade.
    #[test]
    fn frames_that_other_hooks_have_seen_are_not_missing() {
        let run = |anew: bool| {
            let mut way = Way::new(ms(0), &back(0, 0), true);
            way.tried = Some(ms(0));
            if anew {
                way.begin(ms(30), &back(60, 0));
            }
            (31..100).map(|at| way.look(ms(at), &back(60 + 2 * (at - 30), 2 * (at - 30)))).collect::<Vec<_>>()
        };
        assert!(run(true).iter().all(|turn| *turn == Turn::Nothing));
        assert!(run(false).contains(&Turn::Shut { exit: true }));
    }

    #[test]
    fn frames_that_are_not_seen_shut_it_after_20_ms() {
        let mut way = open();
        assert_eq!(way.look(ms(10), &back(5, 5)), Turn::Nothing);
        // No frame is sent, so none is missing.
        assert_eq!(way.look(ms(500), &back(5, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(501), &back(6, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(520), &back(9, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(521), &back(9, 5)), Turn::Shut { exit: true });
        // Late frames open it again, once they are many.
        assert_eq!(way.look(ms(530), &back(19, 6)), Turn::Try);
        assert_eq!(way.look(ms(531), &back(20, 13)), Turn::Open);
        assert_eq!(way.look(ms(532), &back(20, 20)), Turn::Nothing);
    }

    /// A queue of a few frames at 64 kbit/s is nearly always full: the hook in front of it sees each attempt.
    #[test]
    fn a_full_queue_behind_the_hook_is_no_break() {
        let mut way = open();
        for n in 1..1000 {
            let counts = Counts { stuck: Some(Stuck { since: ms(0), errno: libc::ENOBUFS }), ..back(n, n) };
            assert_eq!(way.look(ms(20 * n), &counts), Turn::Nothing);
        }
        // A socket whose frames wait in it, each for 190 ms.
        for n in 0..190 {
            assert_eq!(way.look(ms(20_000 + n), &stuck(libc::EAGAIN, ms(20_000))), Turn::Nothing);
        }
    }

    #[test]
    fn errors_that_last_shut_it() {
        for (errno, after, fault) in [
            (libc::ENXIO, 20, Fault::Socket(libc::ENXIO)),
            (libc::ENETDOWN, 20, Fault::Socket(libc::ENETDOWN)),
            (libc::EAGAIN, 500, Fault::Full),
        ] {
            let mut way = open();
            assert_eq!(way.look(ms(10 + after - 1), &stuck(errno, ms(10))), Turn::Nothing);
            assert_eq!(way.look(ms(10 + after), &stuck(errno, ms(10))), Turn::Shut { exit: true });
            assert_eq!(way.fault(ms(10 + after + 100)), Some(fault));
        }
    }

    #[test]
    fn a_way_that_is_shut_is_tried_once_a_second() {
        let mut way = open();
        way.look(ms(1), &back(2, 1));
        assert_eq!(way.look(ms(21), &back(2, 1)), Turn::Shut { exit: true });
        let mut turns = (22..3_022)
            .map(|at| (at, way.look(ms(at), &back(2, 1))))
            .filter(|(_, turn)| *turn != Turn::Nothing);
        let tries = [1_021, 2_021].map(|at| [(at, Turn::Try), (at + 100, Turn::Take)]);
        assert!(turns.by_ref().take(4).eq(tries.into_iter().flatten()));
        assert_eq!(turns.next(), Some((3_021, Turn::Try)));
        drop(turns);
        arrive(&mut way, ms(3_022), [2, 1]);
        // Probes opened the way: another one is sent when no other frame is.
        assert_eq!(way.look(ms(4_022), &back(10, 9)), Turn::Try);
    }

    #[test]
    fn a_way_that_only_segments_pass_is_open() {
        let mut way = Way::new(ms(0), &back(0, 0), false);
        assert_eq!(way.look(ms(0), &back(0, 0)), Turn::Try);
        assert_eq!(way.look(ms(100), &back(1, 0)), Turn::Take);
        assert_eq!(way.look(ms(105), &back(2, 1)), Turn::Open);
        // Probes are no evidence here.
        assert_eq!(way.look(ms(9_000), &back(2, 1)), Turn::Nothing);
    }

    #[test]
    fn what_is_redirected_has_to_come_to_the_engine() {
        let there = |taken, received| Counts { there: Some([taken, received]), ..back(1, 1) };
        let mut way = open();
        assert_eq!(way.look(ms(1), &there(10, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(2), &there(20, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(22), &there(90, 9)), Turn::Shut { exit: false });
        assert_eq!(way.look(ms(1_021), &there(90, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(1_022), &there(90, 9)), Turn::Take);
        assert_eq!(way.look(ms(1_023), &there(91, 10)), Turn::Open);
        // Of what comes to the engine from now on a half is lost.
        let half = |at: u64| there(91 + 4 * (at - 1_023), 10 + 2 * (at - 1_023));
        let shut = (1_024..2_000).find(|at| way.look(ms(*at), &half(*at)) == Turn::Shut { exit: false });
        assert_eq!((shut, way.fault(ms(1_200))), (Some(1_063), Some(Fault::ReadInPart)));
        let Some([taken, received]) = half(1_063).there else { panic!() };
        assert_eq!(way.look(ms(2_063), &there(taken, received)), Turn::Take);
        for n in 1..8 {
            assert_eq!(way.look(ms(2_063 + n), &there(taken + n, received + n)), Turn::Take);
        }
        assert_eq!(way.look(ms(2_071), &there(taken + 8, received + 8)), Turn::Open);
    }

    /// Half of what the engine sends is lost; once it is repaired, eight probes in a row arrive.
    #[test]
    fn a_way_that_loses_a_part_is_shut_until_all_arrives() {
        let mut way = open();
        let shut = (1..200).find(|at| way.look(ms(*at), &back(1 + 4 * at, 1 + 2 * at)) != Turn::Nothing);
        assert_eq!((shut, way.fault(ms(140))), (Some(40), Some(Fault::SeenInPart)));
        // Every second probe is lost: the first one comes, the second does not.
        let [mut sent, mut seen] = [161, 81];
        assert_eq!(way.look(ms(1_039), &back(sent, seen)), Turn::Nothing);
        assert_eq!(way.look(ms(1_040), &back(sent, seen)), Turn::Try);
        (sent, seen) = (sent + 1, seen + 1);
        assert_eq!(way.look(ms(1_041), &back(sent, seen)), Turn::Try);
        sent += 1;
        assert_eq!(way.look(ms(1_042), &back(sent, seen)), Turn::Nothing);
        // A segment is taken, and its ACK arrives, then the next is lost.
        assert_eq!(way.look(ms(1_141), &back(sent, seen)), Turn::Take);
        (sent, seen) = (sent + 1, seen + 1);
        assert_eq!(way.look(ms(1_142), &back(sent, seen)), Turn::Take);
        // Late in its second, and repaired.
        assert_eq!(way.look(ms(2_041), &back(sent + 1, seen)), Turn::Try);
        arrive(&mut way, ms(2_041), [sent + 1, seen]);
    }

    #[test]
    fn a_way_without_traffic_is_tried_too() {
        let mut way = open();
        assert_eq!(way.look(ms(999), &back(1, 1)), Turn::Nothing);
        assert_eq!(way.look(ms(1_000), &back(1, 1)), Turn::Try);
        assert_eq!(way.look(ms(1_001), &back(2, 1)), Turn::Nothing);
        assert_eq!(way.look(ms(1_021), &back(2, 1)), Turn::Shut { exit: true });
    }

    #[test]
    fn a_way_is_tried_at_once_when_its_interface_is_up_again() {
        let mut way = open();
        way.look(ms(200), &stuck(libc::ENETDOWN, ms(1)));
        way.retry(ms(201));
        assert_eq!((way.fault(ms(201)), way.look(ms(201), &back(1, 1))), (None, Turn::Try));
        assert_eq!(way.look(ms(201), &back(2, 2)), Turn::Open);
    }

    /// The interface is down unnoticed, or for too short a time to be noticed.
    #[test]
    fn a_way_opens_as_soon_as_its_socket_sends() {
        let down = stuck(libc::ENETDOWN, ms(0));
        let mut way = Way::new(ms(0), &back(1, 1), false);
        assert_eq!(way.look(ms(0), &back(1, 1)), Turn::Try);
        let turns: Vec<_> = (0..1_000)
            .map(|at| (at, way.look(ms(at), &down)))
            .filter(|(_, turn)| *turn != Turn::Nothing)
            .collect();
        assert_eq!(turns, (1..100).map(|n| (10 * n, Turn::Try)).collect::<Vec<_>>());
        assert_eq!(way.look(ms(1_000), &down), Turn::Try);
        assert_eq!(way.look(ms(1_000), &back(2, 2)), Turn::Open);
        // One that was open is shut by the same, and opens by the same.
        assert_eq!(way.look(ms(2_020), &stuck(libc::ENETDOWN, ms(2_000))), Turn::Shut { exit: true });
        assert_eq!(way.look(ms(2_030), &stuck(libc::ENETDOWN, ms(2_000))), Turn::Try);
        assert_eq!(way.look(ms(2_030), &back(3, 3)), Turn::Open);
    }

    #[test]
    fn the_log_has_one_line_for_a_fault() {
        let mut way = open();
        way.look(ms(1), &back(2, 1));
        way.look(ms(21), &back(2, 1));
        assert_eq!(way.news(ms(120)), None);
        assert_eq!(way.news(ms(121)), Some(Some(Fault::Unseen)));
        assert_eq!(way.news(ms(5_000)), None);
        arrive(&mut way, ms(5_000), [2, 1]);
        assert_eq!((way.news(ms(5_000)), way.news(ms(5_001))), (Some(None), None));
        // The same fault within the minute is not reported again, and neither is its end.
        way.look(ms(6_000), &back(11, 9));
        assert_eq!(way.look(ms(6_020), &back(11, 9)), Turn::Shut { exit: true });
        assert_eq!(way.news(ms(7_000)), None);
        arrive(&mut way, ms(7_000), [11, 9]);
        assert_eq!(way.news(ms(7_000)), None);
    }
}
