//! Random operations against plain definitions, segment by segment.

use super::*;
use proptest::prelude::*;

#[derive(Clone, Copy, Debug)]
struct Seg {
    start: u64,
    end: u64,
    sent: Sent,
    sacked: bool,
    lost: bool,
    resent: bool,
    again: bool,
}

impl Seg {
    fn len(&self) -> u64 {
        self.end - self.start
    }
    fn pending(&self) -> bool {
        !self.sacked && self.lost && !self.resent
    }
    fn flying(&self) -> bool {
        !self.sacked && !self.pending()
    }
    /// Returns the time, and the position among all transmissions (`Pair::sent`).
    fn key(&self) -> (Time, u64) {
        (self.sent.at, self.sent.delivered)
    }
    fn piece(&self) -> Piece {
        Piece { start: self.start, len: self.len() as u32 }
    }
}

/// Scoreboard by definitions. Every search starts at the beginning.
#[derive(Default)]
struct Model {
    segs: Vec<Seg>,
    una: u64,
    nxt: u64,
    smss: u64,
    duplicates: u64,
    fack: u64,
    reordering: bool,
    high_rxt: u64,
    rack: Option<(Time, u64)>,
    rack_rtt: Duration,
    /// Segments that the last ACK delivered, for RACK.
    delivered: Vec<Seg>,
}

impl Model {
    fn sum(&self, which: impl Fn(&Seg) -> bool) -> u64 {
        self.segs.iter().filter(|s| which(s)).map(Seg::len).sum()
    }

    fn in_flight(&self) -> u64 {
        let pipe = self.sum(|s| !s.sacked && !s.lost) + self.sum(|s| !s.sacked && s.resent);
        let above: u64 = self.segs.iter().skip(1).filter(|s| !s.sacked && !s.lost).map(Seg::len).sum();
        pipe - above.min(self.duplicates * self.smss)
    }

    fn high_sacked(&self) -> u64 {
        self.segs.iter().rev().find(|s| s.sacked).map_or(self.una, |s| s.end)
    }

    fn ack(&mut self, una: u64, blocks: &[(u64, u64)], now: Time) -> Progress {
        let mut p = Progress { acked: una.saturating_sub(self.una), ..Progress::default() };
        let una = una.max(self.una);
        let before = core::mem::take(&mut self.segs);
        let whole = before.iter().filter(|s| s.end <= una).count() as u64;
        if una > self.una {
            self.duplicates = self.duplicates.saturating_sub(whole.saturating_sub(1));
        }
        let (mut acked, mut sacked) = (Vec::new(), Vec::new());
        for mut seg in before {
            let covered = blocks.iter().any(|&(a, b)| a <= seg.start.max(una) && seg.end <= b);
            p.retransmitted |= seg.start < una && seg.again;
            if seg.end <= una {
                acked.extend((!seg.sacked).then_some(seg));
                continue;
            }
            if seg.start < una {
                p.delivered += if seg.sacked { 0 } else { una - seg.start };
                seg.start = una;
            }
            if covered && !seg.sacked {
                sacked.push(seg);
                seg = Seg { sacked: true, lost: false, resent: false, ..seg };
            }
            self.segs.push(seg);
        }
        self.una = una;
        let by = |list: &[Seg]| {
            let ats = || list.iter().filter(|s| !s.again).map(|s| s.sent.at);
            ats().min().zip(ats().max())
        };
        let times = if p.retransmitted { None } else { by(&acked) }.or(by(&sacked));
        (p.rtt, p.rtt_newest) = (times.map(|t| now.since(t.0)), times.map(|t| now.since(t.1)));
        p.sacked = !sacked.is_empty();
        acked.extend(sacked);
        p.fresh_since = acked.iter().filter(|s| !s.again).map(|s| s.sent.at).min();
        p.delivered += acked.iter().map(Seg::len).sum::<u64>();
        p.newest = acked.iter().max_by_key(|s| s.key()).map(|s| (s.sent, s.again));
        // RFC 8985 §6.2 step 3, literally.
        acked.sort_by_key(|s| s.start);
        for seg in &acked {
            if seg.end > self.fack {
                self.fack = seg.end;
            } else if seg.end < self.fack && !seg.again {
                p.reordered = true;
            }
        }
        self.fack = self.fack.max(una);
        self.reordering |= p.reordered;
        self.delivered = acked;
        p
    }

    /// Applies IsLost of RFC 6675 §4, by pieces.
    fn is_lost(&self, i: usize, dup_thresh: u64) -> bool {
        let above = &self.segs[i + 1..];
        let bytes: u64 = above.iter().filter(|s| s.sacked).map(Seg::len).sum();
        let ranges =
            (0..above.len()).filter(|&k| above[k].sacked && (k == 0 || !above[k - 1].sacked)).count();
        ranges as u64 >= dup_thresh || bytes > (dup_thresh - 1) * self.smss
    }

    fn mark_by_sack(&mut self, dup_thresh: u64) -> u64 {
        let found: Vec<usize> = (0..self.segs.len())
            .filter(|&i| !self.segs[i].sacked && !self.segs[i].lost && self.is_lost(i, dup_thresh))
            .collect();
        found.iter().for_each(|&i| self.segs[i].lost = true);
        found.iter().map(|&i| self.segs[i].len()).sum()
    }

    fn lose(&mut self, which: impl Fn(usize, &Seg) -> bool) -> u64 {
        let mut newly = 0;
        for (i, seg) in self.segs.iter_mut().enumerate().filter(|(_, s)| s.flying()) {
            if which(i, seg) {
                (seg.lost, seg.resent) = (true, false);
                newly += seg.len();
            }
        }
        newly
    }

    fn retransmitted(&mut self, start: u64, sent: Sent) {
        let high = self.high_sacked();
        let Some(seg) = self.segs.iter_mut().find(|s| s.start == start && !s.sacked) else { return };
        (seg.sent, seg.resent, seg.again) = (sent, true, true);
        if start < high {
            self.high_rxt = self.high_rxt.max(seg.end);
        }
    }

    fn rack_update(&mut self, now: Time, min_rtt: Duration, echoed: Option<Time>) {
        let newest = |of: &dyn Fn(&Seg) -> bool| self.delivered.iter().filter(|s| of(s)).map(Seg::key).max();
        let una = self.una;
        // The newest retransmission stands for all. The echo applies to segments in order.
        let acked = newest(&|s| s.again && s.end <= una).filter(|k| echoed.is_none_or(|e| e >= k.0));
        let again = acked.max(newest(&|s| s.again && s.end > una));
        let key = newest(&|s| !s.again).max(again.filter(|k| now.since(k.0) >= min_rtt));
        self.delivered.clear();
        if let Some(key) = key {
            self.rack_rtt = now.since(key.0);
            self.rack = self.rack.max(Some(key));
        }
    }

    fn rack_detect(&mut self, now: Time, window: Duration) -> (u64, Option<Duration>) {
        let Some(rack) = self.rack else { return (0, None) };
        let patience = self.rack_rtt + window;
        let newly = self.lose(|_, s| s.key() < rack && s.sent.at + patience <= now);
        let rest = self.segs.iter().filter(|s| s.flying() && s.key() < rack);
        (newly, rest.map(|s| (s.sent.at + patience).since(now)).max())
    }
}

#[derive(Clone, Debug)]
enum Op {
    /// Sends a number of pieces of this length at once.
    Send(u64, u32),
    /// Cumulative ACK and blocks, in thousandths of the data in flight, rounded to pieces or not.
    Ack(u64, Vec<(u64, u64)>, bool),
    MarkBySack(u32),
    MarkFirst,
    MarkAll(bool),
    Retransmit(u8),
    RetransmitAny(u64),
    RackUpdate(u64, Option<u64>),
    RackDetect(u64),
    RackTimeout(u64),
    Undo,
    Duplicates(u32),
    Wait(u64),
}

fn op() -> impl Strategy<Value = Op> {
    let blocks = || proptest::collection::vec((0u64..=1000, 0u64..=400), 0..4);
    prop_oneof![
        4 => (1u64..6, prop_oneof![Just(1000u32), 1u32..1000]).prop_map(|(n, len)| Op::Send(n, len)),
        4 => (0u64..=300, blocks(), any::<bool>()).prop_map(|(una, b, cut)| Op::Ack(una, b, cut)),
        3 => (blocks(), Just(false)).prop_map(|(b, cut)| Op::Ack(0, b, cut)),
        2 => (1u32..4).prop_map(Op::MarkBySack),
        1 => Just(Op::MarkFirst),
        1 => any::<bool>().prop_map(Op::MarkAll),
        4 => (0u8..5).prop_map(Op::Retransmit),
        1 => (0u64..1000).prop_map(Op::RetransmitAny),
        3 => (0u64..30, proptest::option::of(0u64..30)).prop_map(|(m, e)| Op::RackUpdate(m, e)),
        3 => (0u64..10).prop_map(Op::RackDetect),
        1 => (0u64..10).prop_map(Op::RackTimeout),
        1 => Just(Op::Undo),
        1 => (0u32..5).prop_map(Op::Duplicates),
        3 => (1u64..20).prop_map(Op::Wait),
    ]
}

/// Scoreboard and model, side by side.
#[derive(Default)]
struct Pair {
    real: Scoreboard,
    model: Model,
    /// Result of the last ACK, until RACK has used it.
    last: Progress,
    now: u64,
    sends: u64,
}

impl Pair {
    /// Makes a distinguishable transmission.
    fn sent(&mut self) -> Sent {
        self.sends += 1;
        Sent { delivered: self.sends, ..sent(self.now) }
    }

    /// Returns an offset from thousandths of the data in flight; at the end of a piece unless `cut`.
    fn offset(&self, milli: u64, cut: bool) -> u64 {
        let raw = self.model.una + (self.model.nxt - self.model.una) * milli.min(1000) / 1000;
        match self.model.segs.iter().rev().find(|s| s.start <= raw) {
            Some(s) if !cut && raw < s.end => s.start,
            _ => raw,
        }
    }

    fn retransmit(&mut self, piece: Option<Piece>) {
        if let Some(piece) = piece {
            let sent = self.sent();
            self.real.retransmitted(piece.start, sent);
            self.model.retransmitted(piece.start, sent);
        }
    }

    fn ack(&mut self, una: u64, blocks: &[(u64, u64)], cut: bool) {
        let una = self.offset(una, cut);
        let block = |&(at, len): &(u64, u64)| (self.offset(at, cut), self.offset(at + len, cut));
        let blocks: Vec<_> = blocks.iter().map(block).filter(|b| b.0 < b.1 && b.1 > una).collect();
        let now = ms(self.now);
        self.last = self.real.on_ack(una, &blocks, now);
        let told = Progress { offer: Default::default(), ..self.last };
        assert_eq!(told, self.model.ack(una, &blocks, now));
    }

    fn apply(&mut self, op: &Op) {
        let now = ms(self.now);
        let (real, model) = (&mut self.real, &mut self.model);
        match *op {
            Op::Send(n, len) => (0..n).for_each(|_| self.send(len)),
            Op::Ack(una, ref blocks, cut) => self.ack(una, blocks, cut),
            Op::MarkBySack(n) => assert_eq!(real.mark_lost_by_sack(n), model.mark_by_sack(u64::from(n))),
            Op::MarkFirst => assert_eq!(real.mark_first_lost(), model.lose(|i, s| i == 0 && !s.lost)),
            Op::MarkAll(forget) => self.mark_all(forget),
            Op::Retransmit(0) => self.retransmit(self.real.last()),
            Op::Retransmit(1) => self.retransmit(self.real.next_unsacked()),
            Op::Retransmit(_) => self.retransmit(self.real.next_lost()),
            Op::RetransmitAny(milli) => {
                let any = model.segs.get(model.segs.len() * milli as usize / 1000).map(Seg::piece);
                self.retransmit(any);
            }
            Op::RackUpdate(min_rtt, ago) => {
                let echoed = ago.map(|ago| now.saturating_sub(Duration::from_millis(ago)));
                let last = core::mem::take(&mut self.last);
                real.rack_update(&last, now, Duration::from_millis(min_rtt), echoed);
                model.rack_update(now, Duration::from_millis(min_rtt), echoed);
            }
            Op::RackDetect(w) => {
                let w = Duration::from_millis(w);
                assert_eq!(real.rack_detect(now, w), model.rack_detect(now, w));
            }
            Op::RackTimeout(w) => {
                let patience = model.rack_rtt + Duration::from_millis(w);
                let newly = model.lose(|i, s| i == 0 || s.sent.at + patience <= now);
                model.high_rxt = model.una;
                assert_eq!(real.rack_mark_on_timeout(now, Duration::from_millis(w)), newly);
            }
            Op::Undo => {
                assert_eq!(real.undo_lost(), model.sum(Seg::pending));
                model.segs.iter_mut().filter(|s| s.pending()).for_each(|s| s.lost = false);
            }
            Op::Duplicates(n) => {
                real.set_duplicates(n);
                model.duplicates = u64::from(n);
            }
            Op::Wait(t) => self.now += t,
        }
    }

    fn send(&mut self, len: u32) {
        let sent = self.sent();
        let start = self.model.nxt;
        self.model.nxt += u64::from(len);
        self.model.smss = self.model.smss.max(u64::from(len));
        let end = self.model.nxt;
        self.model.segs.push(Seg {
            start,
            end,
            sent,
            sacked: false,
            lost: false,
            resent: false,
            again: false,
        });
        self.real.sent_new(len, sent);
    }

    fn mark_all(&mut self, forget: bool) {
        let model = &mut self.model;
        if forget {
            model.segs.iter_mut().for_each(|s| s.sacked = false);
            model.fack = model.una;
        }
        (model.duplicates, model.high_rxt) = (0, model.una);
        assert_eq!(self.real.mark_all_lost(forget), model.lose(|_, _| true));
    }

    fn compare(&self) {
        let (real, model) = (&self.real, &self.model);
        let segs = || model.segs.iter();
        assert_eq!((real.una(), real.nxt(), real.is_empty()), (model.una, model.nxt, segs().len() == 0));
        assert_eq!(real.in_flight(), model.in_flight());
        assert_eq!(real.high_sacked(), model.high_sacked());
        assert_eq!(real.sacked(), model.sum(|s| s.sacked));
        assert_eq!(real.sacked_segments() as usize, segs().filter(|s| s.sacked).count());
        assert_eq!(real.lost(), model.sum(|s| s.lost));
        assert_eq!(real.lost_pending(), segs().any(Seg::pending));
        assert_eq!(real.duplicates(), model.duplicates as u32);
        assert_eq!(real.seen_reordering(), model.reordering);
        assert_eq!(real.next_lost(), segs().find(|s| s.pending()).map(Seg::piece));
        let rule_3 = |s: &&Seg| !s.sacked && s.start >= model.high_rxt && s.start < model.high_sacked();
        assert_eq!(real.next_unsacked(), segs().find(rule_3).map(Seg::piece));
        assert_eq!(real.last_unsacked(), segs().rev().find(|s| !s.sacked).map(Seg::piece));
        assert_eq!(
            (real.first(), real.last()),
            (segs().next().map(Seg::piece), segs().last().map(Seg::piece))
        );
        real.check();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn as_the_model(ops in proptest::collection::vec(op(), 1..150)) {
        let mut pair = Pair::default();
        for op in &ops {
            pair.apply(op);
            pair.compare();
        }
    }
}
