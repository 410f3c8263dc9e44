//! The engine's side: what runs in the child.

use super::setup::{Parts, Site};
use crate::driver::{Driver, DriverConfig, Engine, Kernel, Tap};
use crate::port::{self, Port, PortSpec};
use crate::sys::process::{self, Signals};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::frame::Frames;
use weir_core::gateway::{LAN_TAP, WAN_TAP};

/// What an engine is started with.
pub struct Launch<'a> {
    /// The pool.
    pub frames: Frames,
    /// LAN and WAN.
    pub ports: Vec<Port>,
    /// What is shared with the programs.
    pub kernel: Kernel<'a>,
    /// Readable when the engine is to stop.
    pub stop: BorrowedFd<'a>,
    /// Engines that ran before this one: if any, frames have gone past.
    pub restarts: u32,
}

impl Launch<'_> {
    /// Runs an engine until it is told to stop.
    pub fn run<E: Engine>(self, engine: E, config: DriverConfig) -> io::Result<E> {
        Driver::new(self.ports, self.kernel, self.frames, engine, config)?.run(self.stop)
    }
}

/// Opens the ports and runs `body`. If the supervisor is gone at the end, cleans up in its place.
pub(super) fn run(
    site: &mut Site,
    signals: &Signals,
    supervisor: u32,
    restarts: u32,
    body: impl Fn(Launch<'_>) -> io::Result<()>,
) -> io::Result<()> {
    let result = launch(&mut site.parts, signals, restarts).and_then(body);
    site.parts.shared.beat(weir_core::time::Time::ZERO);
    if process::parent_id() != supervisor {
        tracing::warn!("the supervisor is gone: restoring the host in its place");
        site.changes.undo();
    }
    result
}

fn launch<'a>(parts: &'a mut Parts, signals: &'a Signals, restarts: u32) -> io::Result<Launch<'a>> {
    let specs: Vec<PortSpec<'_>> = parts
        .places
        .iter()
        .map(|place| PortSpec {
            name: &place.name,
            ifindex: place.ifindex,
            mtu: place.mtu,
            queues: place.queues,
            steering: place.steering.as_ref(),
        })
        .collect();
    let (frames, opened) = port::open(&specs, &parts.pool)?;
    match &opened.why_copy {
        None => tracing::info!("AF_XDP with zero copy"),
        Some(why) => tracing::info!("AF_XDP in copy mode: {why}"),
    }
    let (mut taps, mut steering) = (Vec::new(), Vec::new());
    for (place, port) in parts.places.iter_mut().zip([LAN_TAP, WAN_TAP]) {
        taps.extend(place.observer.as_mut().map(|observer| Tap { port, observer }));
        steering.push(place.steering.as_ref());
    }
    let kernel = Kernel { shared: &parts.shared, steering, taps };
    Ok(Launch { frames, ports: opened.ports, kernel, stop: signals.as_fd(), restarts })
}
