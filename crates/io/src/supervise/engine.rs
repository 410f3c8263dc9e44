//! The launch of engines, put together in the child.

use super::site::Sockets;
use crate::driver::{InterfaceStates, Launch, Part, Programs};
use crate::port::{Exit, Input, Packets, PoolConfig};
use crate::sys::mmap::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use weir_core::frame::Frames;
use weir_core::time::Time;

/// What all engines of a process have in common.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    pub programs: &'a Programs,
    pub interfaces: &'a InterfaceStates,
    /// Readable when they are to stop.
    pub stop: BorrowedFd<'a>,
    /// Of each.
    pub pool: PoolConfig,
    pub restarts: u32,
    /// Hooks see what leaves, so that the way back can be judged.
    pub judged: bool,
    /// When the gateway was set up.
    pub began: Time,
}

impl<'a> Common<'a> {
    /// Puts together what the engines need: what the first one is launched with has the others.
    pub fn launch(self, sockets: Sockets) -> io::Result<Launch<'a>> {
        // Whole frames come to the only engine that there is then.
        let mut inputs = sockets.inputs;
        let one = |(part, exits)| self.one(part, std::mem::take(&mut inputs), exits);
        let all: Vec<_> = self.programs.parts().zip(sockets.exits).map(one).collect::<io::Result<_>>()?;
        let mut all = all.into_iter();
        let first = all.next().ok_or(io::ErrorKind::NotConnected)?;
        Ok(Launch { homes: self.programs.homes()?, others: all.collect(), ..first })
    }

    /// For one of them. A pool for ACKs is all there at once, which takes a millisecond or two, so that an engine
    /// has the same memory from its start on, the first one and each that is started again.
    fn one(self, programs: Part<'a>, packets: Vec<Packets>, exits: [Exit; 2]) -> io::Result<Launch<'a>> {
        let Common { interfaces, stop, pool, restarts, began, judged, .. } = self;
        let memory = Mapping::anonymous(pool.bytes(), false)?;
        if !programs.takes_frames() {
            memory.populate();
        }
        let ring = programs.segments()?.map(Input::Ring);
        let inputs = ring.into_iter().chain(packets.into_iter().map(Input::Packets)).collect();
        let (slots, tallies, bounds) = (programs.slots(), programs.tallies(), programs.bounds());
        let rules = programs.rules()?;
        let frames = Frames::mapped(memory.leak(), pool.chunk, pool.reserve);
        let (letters, homes, others) = (None, None, Vec::new());
        Ok(Launch {
            frames,
            slots,
            tallies,
            bounds,
            rules,
            restarts,
            began,
            inputs,
            exits,
            programs,
            interfaces,
            stop,
            letters,
            homes,
            others,
            judged,
        })
    }
}
