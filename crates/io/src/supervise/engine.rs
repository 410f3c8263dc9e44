//! Launch of engines, assembled in the child.

use super::site::Sockets;
use crate::driver::{InterfaceStates, Launch, Part, Programs};
use crate::port::{Exit, Input, Packets, PoolConfig};
use crate::sys::mmap::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use weir_core::frame::Frames;
use weir_core::time::Time;

/// Parts that all engines of a process have in common.
#[derive(Clone, Copy)]
pub(super) struct Common<'a> {
    pub programs: &'a Programs,
    pub interfaces: &'a InterfaceStates,
    /// Readable when the engines are to stop.
    pub stop: BorrowedFd<'a>,
    /// Pool of each engine.
    pub pool: PoolConfig,
    pub restarts: u32,
    /// True if hooks see the frames that leave, so that the way back can be judged.
    pub judged: bool,
    /// Time at which the gateway was set up.
    pub began: Time,
}

impl<'a> Common<'a> {
    /// Assembles the launches of all engines; the first one's contains the others.
    pub fn launch(self, sockets: Sockets) -> io::Result<Launch<'a>> {
        // Whole frames come only to a single engine.
        let mut inputs = sockets.inputs;
        let one = |(part, exits)| self.one(part, std::mem::take(&mut inputs), exits);
        let all: Vec<_> = self.programs.parts().zip(sockets.exits).map(one).collect::<io::Result<_>>()?;
        let mut all = all.into_iter();
        let first = all.next().ok_or(io::ErrorKind::NotConnected)?;
        let (homes, unlisted) = (self.programs.homes()?, self.programs.unlisted()?);
        Ok(Launch { homes, unlisted, others: all.collect(), ..first })
    }

    /// Assembles the launch of one engine. A pool for ACKs is allocated at once, which takes a millisecond or
    /// two. So each engine has the same memory from its start on, the first and every later one.
    fn one(self, programs: Part<'a>, packets: Vec<Packets>, exits: [Exit; 2]) -> io::Result<Launch<'a>> {
        let Common { interfaces, stop, pool, restarts, began, judged, .. } = self;
        let memory = Mapping::anonymous(pool.bytes(), false)?;
        if !programs.takes_frames() {
            memory.populate();
        }
        let ring = programs.segments()?.map(Input::Ring);
        let inputs = ring.into_iter().chain(packets.into_iter().map(Input::Packets)).collect();
        let (slots, tallies, bounds) = (programs.slots(), programs.tallies(), programs.bounds());
        let sights = programs.sights();
        let spills = programs.spills();
        let (unread, flow_bounds, rules) = (programs.unread(), programs.flow_bounds(), programs.rules()?);
        let frames = Frames::mapped(memory.leak(), pool.chunk, pool.reserve);
        let (letters, homes, unlisted, others) = (None, None, None, Vec::new());
        Ok(Launch {
            frames,
            slots,
            tallies,
            bounds,
            unread,
            flow_bounds,
            sights,
            spills,
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
            unlisted,
            others,
            judged,
        })
    }
}
