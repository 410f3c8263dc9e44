//! Shared memory of hooks and engine: heartbeat, generation, sleep.

use super::abi::{hooks, role, FIELDS_UNTOUCHED};
use super::{failed, map, Segments};
use crate::sys::mmap::Mapping;
use crate::sys::owner::Owner;
use crate::sys::pod::{self, bytes_of};
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use std::io;
use std::os::fd::AsFd;
use std::sync::atomic::{fence, AtomicU32, AtomicU64, Ordering};
use weir_core::gateway::Direction;
use weir_core::steer::Fields;
use weir_core::time::Time;

/// The words that one set of programs shares with one of its engines, and the sockets that all engines have.
#[derive(Debug)]
pub struct Hooks {
    pages: Mapping,
    /// Offset of the engine's words.
    at: usize,
    senders: MapHandle,
    _map: MapHandle,
}

/// The place of a direction's words: what is seen at egress goes out.
const fn place(way: Direction) -> usize {
    match way {
        Direction::Out => 0,
        Direction::In => 1,
    }
}

impl Hooks {
    /// Opens the hooks of the engine with this number.
    pub(super) fn of(object: &Object, number: usize) -> io::Result<Hooks> {
        let hooks_map = map(object, "hooks")?;
        let at = number * hooks::SIZE;
        let pages = Mapping::of_fd(hooks_map.as_fd(), at + hooks::SIZE, 0, true)?;
        Ok(Hooks { pages, at, senders: map(object, "senders")?, _map: hooks_map })
    }

    fn word(&self, offset: usize) -> &AtomicU32 {
        self.pages.atomic_u32(self.at + offset)
    }

    fn beats(&self) -> &AtomicU64 {
        self.pages.atomic_u64(self.at + hooks::BEAT)
    }

    /// Generations count from here on: an entry of one engine is a miss to every other one.
    pub(super) fn count_from(&self, generation: u32) {
        self.word(hooks::GENERATION).store(generation, Ordering::Release);
        self.word(hooks::COUNTING).store(generation, Ordering::Release);
    }

    /// Says that the engine is alive; [`Time::ZERO`] says that it is not.
    pub fn beat(&self, now: Time) {
        self.beats().store(now.as_nanos(), Ordering::Release);
    }

    /// Makes the calling thread the engine: the kernel tells the hooks when it ends.
    ///
    /// # Errors
    /// Fails if the kernel cannot. Then the beat alone tells.
    pub fn own(&self) -> io::Result<Owner<'_>> {
        Owner::new(self.word(hooks::OWNER))
    }

    /// Says that the supervisor looks after the engine. Without that for as long as without a beat, segments
    /// pass as soon as the engine has ended.
    pub fn watched(&self, now: Time) {
        self.pages.atomic_u64(self.at + hooks::WATCHED).store(now.as_nanos(), Ordering::Release);
    }

    /// Says that an upgrade is under way: until then, bounds are kept and whole frames taken without an
    /// engine, too. [`Time::ZERO`] says that it is over.
    pub(crate) fn keep_bounds(&self, until: Time) {
        self.pages.atomic_u64(self.at + hooks::KEPT_UNTIL).store(until.as_nanos(), Ordering::Release);
    }

    /// Says that these programs take over now from others with bounds of their own, which may have let pass
    /// what flows may have in a second.
    pub(crate) fn begin_after_others(&self, now: Time) {
        self.pages.atomic_u64(self.at + hooks::BEGUN).store(now.as_nanos(), Ordering::Release);
    }

    /// The last beat.
    pub fn last_beat(&self) -> Time {
        Time::from_nanos(self.beats().load(Ordering::Acquire))
    }

    /// Forgets which flows pass: the configuration changed.
    pub fn next_generation(&self) {
        self.word(hooks::GENERATION).fetch_add(1, Ordering::AcqRel);
    }

    pub(super) fn generation(&self) -> u32 {
        self.word(hooks::GENERATION).load(Ordering::Acquire)
    }

    /// Says what rules look at of packets that are not TCP, at egress and at ingress, and forgets who counts
    /// which.
    pub fn count(&self, [out, inward]: [Fields; 2]) {
        self.word(hooks::COUNT_OUT).store(out.0, Ordering::Release);
        self.word(hooks::COUNT_IN).store(inward.0, Ordering::Release);
        self.word(hooks::COUNTING).fetch_add(1, Ordering::AcqRel);
    }

    /// Some of what is counted is TCP.
    pub(super) fn count_tcp(&self) {
        for place in [hooks::COUNT_OUT, hooks::COUNT_IN] {
            self.word(place).fetch_or(FIELDS_UNTOUCHED, Ordering::Release);
        }
    }

    pub(super) fn counting(&self) -> u32 {
        self.word(hooks::COUNTING).load(Ordering::Acquire)
    }

    /// Says that the engine is about to sleep until a segment comes: the next one wakes it. False if one has
    /// come already, or is just being written: it must not sleep, and [`Hooks::awake`] holds again.
    pub fn sleep(&self, segments: &Segments) -> bool {
        self.word(hooks::WAKE).store(1, Ordering::SeqCst);
        // The hook moves the ring's index, then reads `wake`; here it is the other way round, and a barrier
        // on both sides lets one of the two see the other (`submit` in acks.bpf.c).
        fence(Ordering::SeqCst);
        if segments.is_empty() {
            return true;
        }
        self.awake();
        false
    }

    /// Says that the engine is awake and looks at the ring by itself: no segment wakes it.
    pub fn awake(&self) {
        self.word(hooks::WAKE).store(0, Ordering::Relaxed);
    }

    /// Registers a packet socket by its cookie before it sends its first frame. `role` is a set of
    /// [`role`] bits. Entries of sockets that are gone do no harm: cookies are not used again.
    pub fn register_sender(&self, cookie: u64, role: u32) -> io::Result<()> {
        let (bits, number) = (role & ((1 << role::NUMBER) - 1), role >> role::NUMBER);
        debug_assert!(bits & !(role::TO_INGRESS | role::RESTAMP | role::ENGINE) == 0 && number < 256);
        let result = self.senders.update(bytes_of(&cookie), bytes_of(&role), MapFlags::ANY);
        result.map_err(|e| failed("cannot register a socket", &e))
    }

    /// The list of sockets: cookies with their roles.
    pub fn senders(&self) -> Vec<(u64, u32)> {
        let entry = |key: Vec<u8>| {
            let role = self.senders.lookup(&key, MapFlags::ANY).ok()??;
            Some((pod::read(&key)?, pod::read(&role)?))
        };
        self.senders.keys().filter_map(entry).collect()
    }

    /// Takes a socket off the list, when it is closed.
    pub fn forget_sender(&self, cookie: u64) {
        // That it is not there is as good.
        let _ = self.senders.delete(bytes_of(&cookie));
    }

    /// Says whether a part of the way is known to be gone: everything passes then.
    pub fn set_gone(&self, gone: bool) {
        self.word(hooks::GONE).store(gone.into(), Ordering::Release);
    }

    /// Says whether what the engine sends by the hook of this direction does not arrive: what is seen there
    /// passes then.
    pub fn shut(&self, way: Direction, shut: bool) {
        self.word(hooks::SHUT[place(way)]).store(shut.into(), Ordering::Release);
    }

    /// Returns the state set last with [`Hooks::shut`].
    pub fn is_shut(&self, way: Direction) -> bool {
        self.word(hooks::SHUT[place(way)]).load(Ordering::Acquire) != 0
    }

    /// Lets one segment of this direction be taken, although its way is shut.
    pub fn try_one(&self, way: Direction) {
        self.word(hooks::TRIAL).fetch_or(1 << place(way), Ordering::AcqRel);
    }

    /// Whole frames of this direction that were redirected so far.
    pub fn taken(&self, way: Direction) -> u64 {
        self.pages.atomic_u64(self.at + hooks::TAKEN[place(way)]).load(Ordering::Acquire)
    }

    /// Frames of the engine that were seen so far where they belong: those that go out, or those that come
    /// in.
    pub fn seen(&self, way: Direction) -> u64 {
        self.pages.atomic_u64(self.at + hooks::SEEN[place(way)]).load(Ordering::Acquire)
    }

    /// Frames that are sent on another device are to come in on the interface with this number.
    pub(crate) fn lead_home(&self, ifindex: u32) {
        self.word(hooks::HOME).store(ifindex, Ordering::Release);
    }

    /// Sets the interfaces, by number, to which [`All`](super::All) sends frames seen at egress and ingress.
    /// 0 lets them pass.
    pub(super) fn redirect(&self, egress: u32, ingress: u32) {
        self.word(hooks::OUT_TO).store(egress, Ordering::Release);
        self.word(hooks::IN_TO).store(ingress, Ordering::Release);
    }
}
