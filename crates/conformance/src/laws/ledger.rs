//! Accounts of all that each end has said and that the other one was told of it.

use crate::script::Side;
use crate::seg::{after, Flow, Seg};
use crate::trace::{Out, Trace};
use std::collections::BTreeMap;
use weir_core::time::Time;
use weir_core::wire::Flags;

/// Account of a flow: all that one end said, or all that the other was told.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Largest acknowledgement.
    pub ack: Option<u32>,
    /// Rightmost edge of the window.
    pub edge: Option<u32>,
    /// Sequence number after the last byte.
    pub next: Option<u32>,
    /// Newest TSval.
    pub stamp: Option<u32>,
    /// Window field of the last segment.
    pub window: Option<u16>,
    /// TSvals and TSecrs.
    pub stamps: Vec<(u32, u32)>,
    /// SACK blocks.
    pub sack: Vec<(u32, u32)>,
    /// Number of duplicates (RFC 5681 §2), by their acknowledgement.
    pub duplicates: BTreeMap<u32, u32>,
    /// VLAN tags and PPPoE session.
    link: Option<(weir_core::wire::Vlan, u16)>,
}

impl Account {
    /// Adds a segment that was sent with a window of this shift. `counts` is false for segments out of
    /// sequence, which their receiver drops (RFC 9293 §3.10.7.4).
    fn learn(&mut self, seg: &Seg, shift: u8, counts: bool) {
        if seg.has(Flags::SYN) && self.next != Some(seg.end()) {
            *self = Account::default();
        }
        self.link = Some((seg.packet.vlan, seg.session));
        newest(&mut self.next, seg.end());
        if let Some((value, echo)) = seg.stamps() {
            newest(&mut self.stamp, value);
            self.stamps.push((value, echo));
        }
        if !seg.has(Flags::ACK) || seg.has(Flags::RST) {
            return;
        }
        if seg.is_ack() && counts {
            self.count(seg);
        }
        newest(&mut self.ack, seg.tcp.ack.0);
        newest(&mut self.edge, seg.edge(shift));
        self.window = Some(seg.tcp.window);
        self.sack.extend(seg.sack());
    }

    /// Counts an acknowledgement as a duplicate, as a sender does, if it repeats the largest number and the
    /// window (RFC 5681 §2). An acknowledgement with SACK blocks is news.
    fn count(&mut self, seg: &Seg) {
        let repeats = self.ack == Some(seg.tcp.ack.0) && self.window == Some(seg.tcp.window);
        if repeats && seg.sack().is_empty() {
            *self.duplicates.entry(seg.tcp.ack.0).or_default() += 1;
        }
    }

    /// Returns whether the end has the tags and the session of the segment.
    pub fn has_link_of(&self, seg: &Seg) -> bool {
        self.link.is_none_or(|link| link == (seg.packet.vlan, seg.session))
    }
}

fn newest(of: &mut Option<u32>, n: u32) {
    if of.is_none_or(|old| after(n, old)) {
        *of = Some(n);
    }
}

/// Accounts of all flows.
pub struct Ledger<'a> {
    trace: &'a Trace<'a>,
    heard: usize,
    said: BTreeMap<(Side, Flow), Account>,
    told: BTreeMap<(Side, Flow), Account>,
}

impl<'a> Ledger<'a> {
    /// Creates the accounts before anything is sent.
    pub fn new(trace: &'a Trace<'a>) -> Ledger<'a> {
        Ledger { trace, heard: 0, said: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// Adds everything that was sent until `at` to the accounts of the ends.
    pub fn hear_until(&mut self, at: Time) {
        let events = self.trace.script.events();
        while let Some(event) = events.get(self.heard).filter(|e| e.at <= at) {
            let i = self.heard;
            self.heard += 1;
            let Some(seg) = self.trace.segs[i].as_ref().filter(|_| event.believed) else { continue };
            let shift = self.trace.script.scale_of(event.from);
            let account = self.said.entry((event.from.other(), seg.flow())).or_default();
            account.learn(seg, shift, self.trace.plain[i]);
        }
    }

    /// Accounts of a flow: all that its end has said to the one at `to`, and all that this one was told.
    pub fn of(&self, to: Side, flow: Flow) -> (Account, Account) {
        let of = |accounts: &BTreeMap<_, Account>| accounts.get(&(to, flow)).cloned().unwrap_or_default();
        (of(&self.said), of(&self.told))
    }

    /// Adds a segment that has come out.
    pub fn tell(&mut self, out: &Out, seg: &Seg) {
        let shift = self.trace.script.scale_of(out.crossed.to.other());
        let counts = out.event().is_none_or(|i| self.trace.plain[i]);
        self.told.entry((out.crossed.to, seg.flow())).or_default().learn(seg, shift, counts);
    }

    /// Accounts of all flows: the end that is told, all that was said, all that was told.
    pub fn flows(&self) -> impl Iterator<Item = (Side, &Account, Account)> {
        let told = &self.told;
        let of = |key: &(Side, Flow)| told.get(key).cloned().unwrap_or_default();
        self.said.iter().map(move |(key, said)| (key.0, said, of(key)))
    }
}
