//! The way back of what is taken, one for each direction: whether what the hooks redirect comes to the engine, and whether what the engine
//! sends is seen by the hook where it belongs. The hooks and the engine count, and counts that stand still while others grow tell of a break:
//! a filter or another program in front, a socket of an interface that is gone, an internal pair that carries nothing.
//!
//! A way that is shut is tried once a second, with the frame that found no way or with one that tells nothing. If that does not arrive, as where
//! a filter takes what it does not know, a single segment is taken a little later, and what the engine makes of it tries the way.

use crate::port::Stuck;
use std::fmt;
use weir_core::gateway::Direction;
use weir_core::time::{Duration, Time};

/// For so long something may be under way.
const PATIENCE: Duration = Duration::from_millis(20);
/// For so long a full socket may not take anything: a frame of 1,514 bytes takes 190 ms at 64 kbit/s.
const FULL: Duration = Duration::from_millis(500);
/// Interval at which a way is tried that is shut, or idle.
const TRY: Duration = Duration::from_secs(1);
/// When a segment is taken after a frame that tells nothing was sent.
const TAKE: Duration = Duration::from_millis(100);
/// Faults that are over sooner are not reported.
const WORTH_A_WORD: Duration = Duration::from_millis(100);
/// The log has a line about the same fault so often at most.
const BETWEEN_LINES: Duration = Duration::from_secs(60);

/// Faults of a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// It has not been tried.
    Untried,
    /// Redirected frames do not come to the engine.
    Unread,
    /// Sent frames are not seen by the hook where they belong.
    Unseen,
    /// The socket fails with this error.
    Socket(i32),
    /// The socket is full, and stays so.
    Full,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Untried | Fault::Unseen => {
                f.write_str("does not come there: a filter or another program in front takes it")
            }
            Fault::Unread => f.write_str("does not come to the engine by the internal pair of interfaces"),
            Fault::Socket(errno) => {
                let error = std::io::Error::from_raw_os_error(*errno);
                write!(f, "cannot be sent: {error}")
            }
            Fault::Full => f.write_str("cannot be sent: the socket stays full"),
        }
    }
}

/// Two counts, of which the second one follows the first.
#[derive(Clone, Copy, Debug, Default)]
struct Leg {
    /// The first count when the second one last moved.
    from: u64,
    to: u64,
    /// Since when the first one alone has moved.
    since: Option<Time>,
}

impl Leg {
    fn beginning([from, to]: [u64; 2]) -> Leg {
        Leg { from, to, since: None }
    }

    /// True if something has arrived.
    fn look(&mut self, now: Time, [from, to]: [u64; 2]) -> bool {
        if to != self.to {
            *self = Leg::beginning([from, to]);
            return true;
        }
        if from != self.from {
            self.since.get_or_insert(now);
        }
        false
    }

    fn is_broken(&self, now: Time) -> bool {
        self.since.is_some_and(|since| now.since(since) >= PATIENCE)
    }
}

/// Counts of a way at a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    /// Frames that were redirected, and that the engine has received; the same twice where none are.
    pub there: [u64; 2],
    /// Frames that the engine has sent, and that were seen where they belong.
    pub back: [u64; 2],
    /// Why nothing leaves.
    pub stuck: Option<Stuck>,
}

/// Action that a look at a way asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// Nothing.
    Nothing,
    /// Everything passes from now on; if `exit`, nothing is sent either.
    Shut { exit: bool },
    /// Taken frames come back again.
    Open,
    /// A frame is to be sent, to see whether it arrives.
    Try,
    /// A segment is to be taken, to see whether what becomes of it arrives.
    Take,
}

#[derive(Clone, Copy, Debug)]
enum State {
    Open,
    Shut { since: Time, fault: Fault },
}

/// Trial of a way that is shut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum With {
    Nothing,
    /// The frame that found no way, or one that tells nothing.
    Frame,
    /// The ACK that the engine makes of a segment.
    Segment,
}

/// One direction.
#[derive(Debug)]
pub(super) struct Way {
    state: State,
    there: Leg,
    back: Leg,
    /// When something was sent last, or tried if it is shut.
    tried: Option<Time>,
    sent: u64,
    /// With what.
    with: With,
    /// Frames that tell nothing do not arrive although others do.
    deaf: bool,
    told: Option<(Fault, Time)>,
    /// The fault that the log has a line about now.
    telling: bool,
}

impl Way {
    /// A way that has to be tried first. Until it has been, it is `open` as it was for the engine before.
    pub fn new(now: Time, counts: &Counts, open: bool) -> Way {
        let shut = State::Shut { since: now, fault: Fault::Untried };
        Way {
            state: if open { State::Open } else { shut },
            there: Leg::beginning(counts.there),
            back: Leg::beginning(counts.back),
            tried: None,
            sent: counts.back[0],
            with: With::Nothing,
            deaf: false,
            told: None,
            telling: false,
        }
    }

    /// Returns its fault, if it has lasted long enough to be reported.
    pub fn fault(&self, now: Time) -> Option<Fault> {
        match self.state {
            State::Shut { since, fault } if now.since(since) >= WORTH_A_WORD => Some(fault),
            _ => None,
        }
    }

    /// Looks at it.
    pub fn look(&mut self, now: Time, counts: &Counts) -> Turn {
        let there = self.there.look(now, counts.there);
        let back = self.back.look(now, counts.back);
        let sent = std::mem::replace(&mut self.sent, counts.back[0]) != counts.back[0];
        let fault = self.broken(now, counts);
        match (self.state, fault) {
            (State::Open, Some(fault)) => self.shut(now, fault),
            (State::Open, None) if sent => {
                self.tried = Some(now);
                Turn::Nothing
            }
            (State::Open, None) if self.is_due(now, TRY) && !self.deaf => self.attempt(now),
            (State::Open, None) => Turn::Nothing,
            (State::Shut { fault: Fault::Unread, .. }, _) if there => self.open(),
            (State::Shut { fault: Fault::Unread, .. }, _) if self.is_due(now, TRY) => {
                self.attempt(now);
                Turn::Take
            }
            (State::Shut { fault: Fault::Unread, .. }, _) => Turn::Nothing,
            (State::Shut { .. }, _) if back => self.open(),
            (State::Shut { since, fault: was }, fault) => {
                self.state = State::Shut { since, fault: fault.unwrap_or(was) };
                if self.is_due(now, TRY) {
                    return self.attempt(now);
                }
                match self.with == With::Frame && self.is_due(now, TAKE) {
                    true => self.take(),
                    false => Turn::Nothing,
                }
            }
        }
    }

    fn is_due(&self, now: Time, pause: Duration) -> bool {
        self.tried.is_none_or(|tried| now.since(tried) >= pause)
    }

    fn attempt(&mut self, now: Time) -> Turn {
        (self.tried, self.with) = (Some(now), With::Frame);
        Turn::Try
    }

    fn take(&mut self) -> Turn {
        self.with = With::Segment;
        Turn::Take
    }

    fn broken(&self, now: Time, counts: &Counts) -> Option<Fault> {
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
        if self.back.is_broken(now) {
            return Some(Fault::Unseen);
        }
        self.there.is_broken(now).then_some(Fault::Unread)
    }

    fn shut(&mut self, now: Time, fault: Fault) -> Turn {
        self.state = State::Shut { since: now, fault };
        (self.tried, self.with) = (Some(now), With::Nothing);
        Turn::Shut { exit: fault != Fault::Unread }
    }

    fn open(&mut self) -> Turn {
        // What became of a segment arrived after a frame of the engine's own had not.
        let untried = matches!(self.state, State::Shut { fault: Fault::Untried | Fault::Unseen, .. });
        self.deaf |= untried && self.with == With::Segment;
        self.state = State::Open;
        (self.there.since, self.back.since) = (None, None);
        Turn::Open
    }

    /// What was known to be in the way is not any more: a way that is shut is tried at once.
    pub fn retry(&mut self, now: Time) {
        if let State::Shut { since, .. } = &mut self.state {
            (*since, self.tried) = (now, None);
        }
    }

    /// Has a line in the log to be written: of a fault, or that there is none any more.
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

    /// For how long it has been shut.
    pub fn shut_for(&self, now: Time) -> Duration {
        match self.state {
            State::Open => Duration::ZERO,
            State::Shut { since, .. } => now.since(since),
        }
    }
}

/// The words for what goes this way by the interface `name`.
pub(super) fn words(way: Direction, name: &str, fault: Fault) -> String {
    match (way, fault) {
        (Direction::Out, Fault::Unread) => format!("what leaves by {name} {fault}"),
        (Direction::In, Fault::Unread) => format!("what comes in on {name} {fault}"),
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

    /// Open at once, by a frame that was seen.
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

    #[test]
    fn frames_that_are_not_seen_shut_it_after_20_ms() {
        let mut way = open();
        assert_eq!(way.look(ms(10), &back(5, 5)), Turn::Nothing);
        // Nothing more is sent: nothing is missing.
        assert_eq!(way.look(ms(500), &back(5, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(501), &back(6, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(520), &back(9, 5)), Turn::Nothing);
        assert_eq!(way.look(ms(521), &back(9, 5)), Turn::Shut { exit: true });
        // Late ones open it again.
        assert_eq!(way.look(ms(530), &back(9, 6)), Turn::Open);
        assert_eq!(way.look(ms(531), &back(9, 9)), Turn::Nothing);
    }

    /// At 64 kbit/s a queue of a few frames is full nearly always: each attempt is seen by the hook in front of it.
    #[test]
    fn a_full_queue_behind_the_hook_is_no_break() {
        let mut way = open();
        for n in 1..1000 {
            let counts = Counts { stuck: Some(Stuck { since: ms(0), errno: libc::ENOBUFS }), ..back(n, n) };
            assert_eq!(way.look(ms(20 * n), &counts), Turn::Nothing);
        }
        // A socket whose frames wait there, each for 190 ms.
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
        assert_eq!(way.look(ms(3_022), &back(3, 2)), Turn::Open);
        // A frame that tells nothing opened it: another one is sent when nothing else is.
        assert_eq!(way.look(ms(4_022), &back(3, 2)), Turn::Try);
    }

    #[test]
    fn a_way_that_only_segments_pass_is_open() {
        let mut way = Way::new(ms(0), &back(0, 0), false);
        assert_eq!(way.look(ms(0), &back(0, 0)), Turn::Try);
        assert_eq!(way.look(ms(100), &back(1, 0)), Turn::Take);
        assert_eq!(way.look(ms(105), &back(2, 1)), Turn::Open);
        // Frames that tell nothing say nothing of it.
        assert_eq!(way.look(ms(9_000), &back(2, 1)), Turn::Nothing);
    }

    #[test]
    fn what_is_redirected_has_to_come_to_the_engine() {
        let there = |taken, received| Counts { there: [taken, received], ..back(1, 1) };
        let mut way = open();
        assert_eq!(way.look(ms(1), &there(10, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(2), &there(20, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(22), &there(90, 9)), Turn::Shut { exit: false });
        assert_eq!(way.look(ms(1_021), &there(90, 9)), Turn::Nothing);
        assert_eq!(way.look(ms(1_022), &there(90, 9)), Turn::Take);
        assert_eq!(way.look(ms(1_023), &there(91, 10)), Turn::Open);
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
        way.look(ms(30), &stuck(libc::ENETDOWN, ms(1)));
        assert_eq!(way.look(ms(200), &stuck(libc::ENETDOWN, ms(1))), Turn::Nothing);
        way.retry(ms(201));
        assert_eq!((way.fault(ms(201)), way.look(ms(201), &back(1, 1))), (None, Turn::Try));
        assert_eq!(way.look(ms(201), &back(2, 2)), Turn::Open);
    }

    #[test]
    fn the_log_has_one_line_for_a_fault() {
        let mut way = open();
        way.look(ms(1), &back(2, 1));
        way.look(ms(21), &back(2, 1));
        assert_eq!(way.news(ms(120)), None);
        assert_eq!(way.news(ms(121)), Some(Some(Fault::Unseen)));
        assert_eq!(way.news(ms(5_000)), None);
        way.look(ms(5_000), &back(3, 2));
        assert_eq!((way.news(ms(5_000)), way.news(ms(5_001))), (Some(None), None));
        // The same again within the minute is not said again, and neither is its end.
        way.look(ms(6_000), &back(4, 2));
        assert_eq!(way.look(ms(6_020), &back(4, 2)), Turn::Shut { exit: true });
        assert_eq!(way.news(ms(7_000)), None);
        way.look(ms(7_000), &back(5, 3));
        assert_eq!(way.news(ms(7_000)), None);
    }
}
