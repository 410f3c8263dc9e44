//! Opening ports: one UMEM, a socket for every queue, zero copy where all of them can.

use super::queue::Queue;
use super::{max_frame, Port, PortStats, LINK_HEADERS};
use crate::bpf::Steering;
use crate::sys::clock;
use crate::sys::mmap::Mapping;
use crate::sys::xsk::{Bind, Socket};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use weir_core::frame::Frames;
use weir_core::time::Duration;

/// How long a queue may stay with a socket that is being closed.
const BUSY: Duration = Duration::from_secs(2);

/// A port to be opened.
#[derive(Clone, Copy, Debug)]
pub struct PortSpec<'a> {
    /// Name of the interface.
    pub name: &'a str,
    /// Its number.
    pub ifindex: u32,
    /// Its MTU.
    pub mtu: u32,
    /// Its receive queues.
    pub queues: u32,
    /// The steering that gives it frames; without, the port only transmits.
    pub steering: Option<&'a Steering>,
}

/// Size of the pool and of the rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolConfig {
    /// Chunks of the pool.
    pub chunks: usize,
    /// Bytes of a chunk: 2048 or 4096, see [`super::chunk_size`].
    pub chunk_size: usize,
    /// Chunks kept for frames that the node makes.
    pub reserve: usize,
    /// Entries of each ring, a power of two.
    pub ring: u32,
    /// Use zero copy if every port can.
    pub zero_copy: bool,
}

impl Default for PoolConfig {
    fn default() -> PoolConfig {
        PoolConfig { chunks: 16_384, chunk_size: 2048, reserve: 2048, ring: 2048, zero_copy: true }
    }
}

/// What [`open`] opened.
#[derive(Debug)]
pub struct Opened {
    /// The ports, in the order of their specifications.
    pub ports: Vec<Port>,
    /// Does the device read and write chunks itself?
    pub zero_copy: bool,
    /// Why not, if not.
    pub why_copy: Option<String>,
}

/// Opens ports over a new pool. Their frames are steered to them from here on.
///
/// The pool's memory stays mapped for the life of the process: the kernel writes it as long as the
/// sockets live.
pub fn open(specs: &[PortSpec<'_>], config: &PoolConfig) -> io::Result<(Frames, Opened)> {
    let memory: &'static mut [u8] = Mapping::anonymous(config.chunks * config.chunk_size, false)?.leak();
    let (queues, why_copy) = sockets(specs, config, memory)?;
    let mut frames = Frames::mapped(memory, config.chunk_size, config.reserve);
    let mut ports = Vec::new();
    for (spec, mut queues) in specs.iter().zip(queues) {
        for (queue, number) in queues.iter_mut().zip(0..) {
            queue.refill(&mut frames);
            if let Some(steering) = spec.steering {
                steering.set_socket(number, queue.descriptor())?;
            }
        }
        ports.push(Port {
            name: spec.name.to_owned(),
            ifindex: spec.ifindex,
            queues,
            chunk_size: config.chunk_size,
            max_len: max_frame(config.chunk_size).min(spec.mtu as usize + LINK_HEADERS),
            copies: why_copy.is_some(),
            down: false,
            stats: PortStats::default(),
        });
    }
    Ok((frames, Opened { ports, zero_copy: why_copy.is_none(), why_copy }))
}

/// Binds all sockets with zero copy, or all without and says why.
fn sockets(
    specs: &[PortSpec<'_>],
    config: &PoolConfig,
    memory: &mut [u8],
) -> io::Result<(Vec<Vec<Queue>>, Option<String>)> {
    let why = if !config.zero_copy {
        "zero copy is switched off".to_owned()
    } else if let Some(spec) = specs.iter().find(|s| s.steering.is_none()) {
        // Drivers set zero copy up together with an XDP program.
        format!("{} has no XDP program", spec.name)
    } else {
        match bind_patiently(specs, config, memory, true) {
            Ok(queues) => return Ok((queues, None)),
            Err(error) => error.to_string(),
        }
    };
    Ok((bind_patiently(specs, config, memory, false)?, Some(why)))
}

/// The kernel frees the queues of sockets that were closed a little later: the engine before this
/// one may have had them.
fn bind_patiently(
    specs: &[PortSpec<'_>],
    config: &PoolConfig,
    memory: &mut [u8],
    zero_copy: bool,
) -> io::Result<Vec<Vec<Queue>>> {
    let until = clock::now() + BUSY;
    loop {
        match bind_all(specs, config, memory, zero_copy) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy && clock::now() < until => {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            result => return result,
        }
    }
}

fn bind_all(
    specs: &[PortSpec<'_>],
    config: &PoolConfig,
    memory: &mut [u8],
    zero_copy: bool,
) -> io::Result<Vec<Vec<Queue>>> {
    let receiving: u32 = specs.iter().filter(|s| s.steering.is_some()).map(|s| s.queues).sum();
    // A quarter of the pool waits to be received into; the rest is under way.
    let fill = (config.chunks / 4 / receiving.max(1) as usize) as u32;
    let mut first: Option<std::os::fd::OwnedFd> = None;
    let mut all = Vec::new();
    for spec in specs {
        let numbers = if spec.steering.is_some() { 0..spec.queues } else { 0..1 };
        let mut queues = Vec::new();
        for number in numbers {
            let socket = Socket::new()?;
            if first.is_none() {
                socket.register(memory, config.chunk_size as u32)?;
            }
            let fill = spec.steering.map(|_| fill);
            let queue = Queue::new(socket, config.ring, config.chunk_size, fill, number == 0)?;
            let how = match &first {
                None => Bind::First { zero_copy },
                Some(first) => Bind::Sharing(first.as_fd()),
            };
            let bound = queue.socket().bind(spec.ifindex, number, how);
            bound.map_err(|e| bind_error(spec.name, number, zero_copy, e))?;
            if number == 0 && queue.socket().set_budget(config.ring).is_err() {
                tracing::debug!("this kernel sends 32 frames a call");
            }
            if first.is_none() {
                first = Some(duplicate(queue.descriptor())?);
            }
            queues.push(queue);
        }
        all.push(queues);
    }
    Ok(all)
}

fn duplicate(fd: BorrowedFd<'_>) -> io::Result<std::os::fd::OwnedFd> {
    fd.try_clone_to_owned()
}

fn bind_error(name: &str, queue: u32, zero_copy: bool, error: io::Error) -> io::Error {
    let reason = match error.raw_os_error() {
        Some(libc::EBUSY) => "another socket has it".to_owned(),
        Some(libc::ENETDOWN) => "the interface is down".to_owned(),
        Some(libc::EOPNOTSUPP | libc::EINVAL) if zero_copy => "the driver has no zero copy".to_owned(),
        _ => error.to_string(),
    };
    io::Error::new(error.kind(), format!("queue {queue} of {name}: {reason}"))
}
