//! TCP options.
//!
//! Understood: end of list and no-operation (RFC 9293 §3.2), maximum segment size, window scale and
//! timestamps (RFC 7323), SACK (RFC 2018) with duplicate SACK (RFC 2883). Detected, because a middlebox must
//! not interfere or has to treat the SYN with care: MD5 (RFC 2385), TCP-AO (RFC 5925), MPTCP (RFC 8684), Fast
//! Open (RFC 7413), user timeout (RFC 5482), Accurate ECN ([`EcnBytes`](super::EcnBytes) reads its counters).
//! All other options are unknown.

use super::{array, be16, be32, Packet, Reject, Seq, Tcp};

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
const MD5: u8 = 19;
const USER_TIMEOUT: u8 = 28;
const AO: u8 = 29;
const MPTCP: u8 = 30;
const FAST_OPEN: u8 = 34;
const EXPERIMENT_2: u8 = 254;
/// Identifier of Fast Open under the experimental kind (RFC 7413 §4.1.1, RFC 6994).
const FAST_OPEN_MAGIC: u16 = 0xf989;

/// Kinds of the options of Accurate ECN: the fields in the order ECT(0), CE, ECT(1), and the other way round.
pub(super) const ACCECN: [u8; 2] = [172, 174];
/// Bytes of one of their fields.
pub(super) const ACCECN_FIELD: usize = 3;

/// Largest shift that a receiver may ask for (RFC 7323 §2.3).
const MAX_WINDOW_SCALE: u8 = 14;

/// A timestamps option (RFC 7323 §3). The unit is the sender's own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Timestamps {
    /// TSval: the sender's clock.
    pub value: u32,
    /// TSecr: the peer's clock, echoed.
    pub echo: u32,
}

/// The blocks of a SACK option, in the order of the option.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SackBlocks {
    /// Number of blocks, 0 to 4.
    pub count: u8,
    /// Left edge and right edge (the sequence number after the last one) of each. Unused ones are 0.
    pub blocks: [(Seq, Seq); 4],
}

impl SackBlocks {
    /// The blocks in use.
    pub fn as_slice(&self) -> &[(Seq, Seq)] {
        &self.blocks[..(self.count as usize).min(4)]
    }
    /// True without blocks.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }
    /// Returns the first block beyond `ack`, the segment's own acknowledgement. It is the block that arrived
    /// last.
    pub fn beyond(&self, ack: Seq) -> Option<(Seq, Seq)> {
        self.as_slice().iter().copied().find(|&(left, right)| left.is_after(ack) && right.is_after(left))
    }
    /// Returns whether this block lies within one of the blocks.
    pub fn cover(&self, (left, right): (Seq, Seq)) -> bool {
        self.as_slice().iter().any(|&(l, r)| !l.is_after(left) && !right.is_after(r))
    }
    /// Returns whether the first block reports a duplicate, in a segment that acknowledges `ack`. It does if
    /// it is at or below that, or within the second block (RFC 2883 §4).
    pub fn reports_duplicate(&self, ack: Seq) -> bool {
        match *self.as_slice() {
            [(left, right), ref rest @ ..] => {
                let within = |&(l, r): &(Seq, Seq)| !l.is_after(left) && !right.is_after(r);
                !right.is_after(ack) || !right.is_after(left) || rest.first().is_some_and(within)
            }
            [] => false,
        }
    }
    /// Returns the only block, if all of it is below `ack`, the segment's own acknowledgement. Its data
    /// arrived twice, and nothing is missing (RFC 2883 §4.1).
    pub fn only_twice(&self, ack: Seq) -> Option<(Seq, Seq)> {
        match *self.as_slice() {
            [(left, right)] if right.is_after(left) && !right.is_after(ack) => Some((left, right)),
            _ => None,
        }
    }
}

/// Contents of a segment's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpOptions {
    /// Maximum segment size in bytes, as sent.
    pub mss: Option<u16>,
    /// Window shift, clamped to 14.
    pub window_scale: Option<u8>,
    /// SACK is permitted.
    pub sack_permitted: bool,
    /// Timestamps.
    pub timestamps: Option<Timestamps>,
    /// SACK blocks. A duplicate SACK comes first.
    pub sack: SackBlocks,
    /// Multipath TCP (kind 30).
    pub mptcp: bool,
    /// TCP authentication option (kind 29): the header is signed.
    pub ao: bool,
    /// MD5 signature (kind 19): the header is signed.
    pub md5: bool,
    /// Fast Open (kind 34, or 254 with its identifier).
    pub fast_open: bool,
    /// User timeout (kind 28).
    pub user_timeout: bool,
    /// One of the options of Accurate ECN (RFC 9768 section 3.2.3).
    pub accecn: bool,
    /// First unknown kind. A second option of Accurate ECN is one, and one of another length than those of
    /// RFC 9768.
    pub unknown: Option<u8>,
    /// The options are timestamps after two NOPs, and nothing else (RFC 7323 appendix A).
    pub only_timestamps: bool,
    /// The list breaks the rules, see [`tcp_options`]. The other fields are as an endpoint reads them.
    pub malformed: bool,
}

/// Reads the options of a segment that may be changed. The header must come from [`tcp`](super::tcp()) for
/// the same bytes.
///
/// The whole list is [`Reject::Malformed`] if an option is longer than the rest of the list, has another
/// length than its kind demands, or repeats an option that may appear once. A rewriter must not guess how the
/// receiver reads it. [`read_options`] is for learning.
#[inline]
pub fn tcp_options(bytes: &[u8], packet: &Packet, tcp: &Tcp) -> Result<TcpOptions, Reject> {
    let list = list(bytes, packet, tcp)?;
    Some(read(list)).filter(|found| !found.malformed).ok_or(Reject::Malformed)
}

/// Reads the options of a segment as Linux does (`tcp_parse_options`). Unknown kinds and known kinds of a
/// wrong length are skipped, the last of several counts, and an option longer than the rest ends the search.
/// Options that are not in `bytes` count as absent.
#[inline]
pub fn read_options(bytes: &[u8], packet: &Packet, tcp: &Tcp) -> TcpOptions {
    match list(bytes, packet, tcp) {
        Ok(list) => read(list),
        Err(_) => TcpOptions { malformed: true, ..TcpOptions::default() },
    }
}

#[inline]
fn list<'a>(bytes: &'a [u8], packet: &Packet, tcp: &Tcp) -> Result<&'a [u8], Reject> {
    let (start, end) = (packet.l4 as usize + 20, packet.l4 as usize + tcp.header_len as usize);
    if end < start {
        return Err(Reject::Malformed);
    }
    bytes.get(start..end).ok_or(Reject::Truncated)
}

#[inline]
fn read(list: &[u8]) -> TcpOptions {
    // Nearly every segment has this list (RFC 7323 appendix A).
    if let Some([NOP, NOP, TIMESTAMPS, 10, data @ ..]) = exactly::<12>(list) {
        return TcpOptions { timestamps: timestamps(data), only_timestamps: true, ..TcpOptions::default() };
    }
    read_each(list)
}

fn read_each(list: &[u8]) -> TcpOptions {
    let mut found = TcpOptions::default();
    for option in Options::new(list) {
        let sound = option.is_ok_and(|(_, kind, data)| note(&mut found, kind, data));
        found.malformed |= !sound;
    }
    found
}

/// Returns the offset in the frame of the data of the timestamps option, TSval first.
pub(super) fn timestamps_offset(bytes: &[u8], packet: &Packet, tcp: &Tcp) -> Option<usize> {
    let (start, end) = (packet.l4 as usize + 20, packet.l4 as usize + tcp.header_len as usize);
    Options::new(bytes.get(start..end)?)
        .map_while(Result::ok)
        .find(|&(_, kind, data)| kind == TIMESTAMPS && data.len() == 8)
        .map(|(at, ..)| start + at)
}

/// Returns the cookie of a Fast Open option (RFC 7413 §4.1.1), empty in a request. `None` without such an
/// option, or under the experimental kind.
pub fn fast_open_cookie<'a>(bytes: &'a [u8], packet: &Packet, tcp: &Tcp) -> Option<&'a [u8]> {
    let (start, end) = (packet.l4 as usize + 20, packet.l4 as usize + tcp.header_len as usize);
    let mut options = Options::new(bytes.get(start..end)?).map_while(Result::ok);
    options.find(|&(_, kind, _)| kind == FAST_OPEN).map(|(_, _, cookie)| cookie)
}

/// Returns kind and data of each option of a segment up to the first broken one. `None` if they are not all
/// present.
pub(super) fn options<'a>(
    bytes: &'a [u8],
    packet: &Packet,
    tcp: &Tcp,
) -> Option<impl Iterator<Item = (u8, &'a [u8])>> {
    let list = list(bytes, packet, tcp).ok()?;
    Some(Options::new(list).map_while(Result::ok).map(|(_, kind, data)| (kind, data)))
}

/// Options other than padding: offset of the data in the list, kind, data.
struct Options<'a> {
    list: &'a [u8],
    at: usize,
}

impl<'a> Options<'a> {
    fn new(list: &'a [u8]) -> Options<'a> {
        Options { list, at: 0 }
    }

    /// Returns the option whose kind is at `self.at`, and steps over it.
    fn take(&mut self, kind: u8) -> Option<(usize, u8, &'a [u8])> {
        let data = self.at + 2;
        let end = self.at + *self.list.get(self.at + 1)? as usize;
        let option = (data, kind, self.list.get(data..end)?);
        self.at = end;
        Some(option)
    }
}

impl<'a> Iterator for Options<'a> {
    type Item = Result<(usize, u8, &'a [u8]), Reject>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            match *self.list.get(self.at)? {
                END => self.at = self.list.len(),
                NOP => self.at += 1,
                kind => {
                    let option = self.take(kind).ok_or(Reject::Malformed);
                    if option.is_err() {
                        self.at = self.list.len();
                    }
                    return Some(option);
                }
            }
        }
    }
}

/// Returns whether this is an option of Accurate ECN, with as many fields as RFC 9768 knows.
pub(super) fn is_accecn(kind: u8, data: &[u8]) -> bool {
    ACCECN.contains(&kind) && data.len() % ACCECN_FIELD == 0 && data.len() <= 3 * ACCECN_FIELD
}

/// Adds the content of an option. Returns false if it has another length than its kind demands, or was there
/// before.
fn note(found: &mut TcpOptions, kind: u8, data: &[u8]) -> bool {
    match kind {
        MSS => last(&mut found.mss, exactly::<2>(data).and_then(|d| be16(d, 0))),
        WINDOW_SCALE => {
            let shift = exactly::<1>(data).map(|d| d[0].min(MAX_WINDOW_SCALE));
            last(&mut found.window_scale, shift)
        }
        SACK_PERMITTED => flag(&mut found.sack_permitted, data.is_empty()),
        SACK => sack(&mut found.sack, data),
        TIMESTAMPS => last(&mut found.timestamps, timestamps(data)),
        MD5 => flag(&mut found.md5, data.len() == 16),
        USER_TIMEOUT => flag(&mut found.user_timeout, data.len() == 2),
        // KeyID, RNextKeyID, MAC.
        AO => flag(&mut found.ao, data.len() >= 2),
        // The subtype is in the first byte. A segment may have several MPTCP options.
        MPTCP => {
            found.mptcp |= !data.is_empty();
            !data.is_empty()
        }
        FAST_OPEN => flag(&mut found.fast_open, data.len() <= 16),
        EXPERIMENT_2 if be16(data, 0) == Some(FAST_OPEN_MAGIC) => {
            flag(&mut found.fast_open, data.len() <= 18)
        }
        _ if is_accecn(kind, data) && !found.accecn => {
            found.accecn = true;
            true
        }
        _ => {
            found.unknown = found.unknown.or(Some(kind));
            true
        }
    }
}

/// Returns `data` if it is `N` bytes long.
fn exactly<const N: usize>(data: &[u8]) -> Option<&[u8]> {
    (data.len() == N).then_some(data)
}

/// Stores a value if there is one. Returns false if there is none, or was one before.
fn last<T>(slot: &mut Option<T>, value: Option<T>) -> bool {
    value.is_some_and(|value| slot.replace(value).is_none())
}

/// Sets a flag if the option's length is right. Returns false if it is not, or the flag was set before.
fn flag(slot: &mut bool, sound: bool) -> bool {
    let before = *slot;
    *slot |= sound;
    sound && !before
}

fn timestamps(data: &[u8]) -> Option<Timestamps> {
    let data: [u8; 8] = array(exactly::<8>(data)?, 0)?;
    Some(Timestamps { value: be32(&data, 0)?, echo: be32(&data, 4)? })
}

fn sack(found: &mut SackBlocks, data: &[u8]) -> bool {
    let count = data.len() / 8;
    if data.len() % 8 != 0 || !(1..=4).contains(&count) {
        return false;
    }
    let before = core::mem::take(found);
    found.count = count as u8;
    for (block, edges) in found.blocks.iter_mut().zip(data.chunks_exact(8)) {
        *block = (Seq(be32(edges, 0).unwrap_or(0)), Seq(be32(edges, 4).unwrap_or(0)));
    }
    before.is_empty()
}
