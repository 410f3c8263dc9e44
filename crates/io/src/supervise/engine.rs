//! The launch of an engine, put together in the child.

use super::site::{self, Sockets};
use crate::driver::{InterfaceStates, Launch, Programs};
use crate::port::{Input, PoolConfig};
use crate::sys::mmap::Mapping;
use std::io;
use std::os::fd::BorrowedFd;
use weir_core::frame::Frames;

/// Puts together what an engine needs. A pool for ACKs is all there at once, which takes a millisecond or two, so that an engine
/// has the same memory from its start on, the first one and each that is started again.
pub(super) fn launch<'a>(
    programs: &'a Programs,
    interfaces: &'a InterfaceStates,
    stop: BorrowedFd<'a>,
    sockets: Sockets,
    pool: PoolConfig,
    restarts: u32,
) -> io::Result<Launch<'a>> {
    let memory = Mapping::anonymous(pool.bytes(), false)?;
    if let Programs::Acks(_) = programs {
        memory.populate();
    }
    let mut inputs: Vec<Input> = site::ring(programs)?.into_iter().collect();
    inputs.extend(sockets.inputs.into_iter().map(Input::Packets));
    let (slots, tallies) = (programs.slots(), programs.tallies());
    let frames = Frames::mapped(memory.leak(), pool.chunk, pool.reserve);
    let exits = sockets.exits;
    Ok(Launch { frames, slots, tallies, restarts, inputs, exits, programs, interfaces, stop, letters: None })
}
