//! The congestion controls `weir_chirp` and `weir_dctcp` (`chirp.bpf.c`): loading, pinning, and the state of
//! their flows.
//!
//! They are pinned below [`PINNED`], so that they outlive the command. Since Linux 6.4 a registration is a
//! link, which is pinned. Before, the kernel keeps the registration of a map until the map's element is
//! deleted.

mod host;
mod loading;
mod problems;

pub use host::{default_of_host, is_loaded};
#[cfg(test)]
pub(super) use loading::load_for_another_kernel;
pub use loading::{load, unload};
pub use problems::{problems, Problem};

use super::failed;
use crate::sys::pod::{self, Pod};
use libbpf_rs::{MapCore, MapFlags, MapHandle};
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;

/// Directory that programs and maps are pinned in.
pub const PINNED: &str = "/sys/fs/bpf/weir-chirp";
/// Names by which sockets choose the congestion controls.
pub const NAMES: [&str; 2] = ["weir_chirp", "weir_dctcp"];

/// A connection in the map (`struct chirp_key`).
#[derive(Clone, Copy)]
#[repr(C)]
struct Key {
    local: [[u8; 4]; 4],
    remote: [[u8; 4]; 4],
    local_port: [u8; 2],
    remote_port: [u8; 2],
    family: [u8; 2],
    pad: [u8; 2],
    netns: [u8; 4],
}
// SAFETY: arrays of bytes.
unsafe impl Pod for Key {}

/// State of a flow (`struct chirp_row`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    phase: u32,
    /// Estimated gap between packets, nanoseconds.
    pub gap_ns: u32,
    /// Mean deviation of single estimates from it, nanoseconds.
    pub deviation_ns: u32,
    /// Last gap asked for, nanoseconds.
    pub last_gap_ns: u32,
    /// Factor by which rounds grow, in eighths.
    pub gain: u32,
    /// Chirps that gave an estimate.
    pub chirps: u32,
    /// Chirps that gave no estimate.
    pub unusable: u32,
    /// Round trips with chirps.
    pub rounds: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// DCTCP's estimate of the share of marks, in parts of 1024.
    pub alpha: u32,
    marks: u32,
    fq: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for Row {}

impl Row {
    /// Phase of the flow in a word.
    pub fn phase(&self) -> &'static str {
        match (self.fq, self.phase, self.marks) {
            (1, ..) => "fq",
            (_, 0, _) => "first",
            (_, 1, _) => "chirps",
            (_, 2, _) => "handover",
            (_, _, 0) => "cubic",
            _ => "dctcp",
        }
    }
}

/// A flow of `weir_chirp`.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// Inode of its network namespace.
    pub netns: u32,
    /// State of the flow.
    pub row: Row,
}

impl Flow {
    fn of(key: &Key, row: Row) -> Flow {
        let address = |words: &[[u8; 4]; 4]| -> IpAddr {
            let v6: [u8; 16] = words.concat().try_into().expect("four words");
            match u16::from_ne_bytes(key.family) {
                10 => IpAddr::from(Ipv6Addr::from(v6)).to_canonical(),
                _ => Ipv4Addr::from(words[0]).into(),
            }
        };
        Flow {
            local: SocketAddr::new(address(&key.local), u16::from_ne_bytes(key.local_port)),
            remote: SocketAddr::new(address(&key.remote), u16::from_ne_bytes(key.remote_port)),
            netns: u32::from_ne_bytes(key.netns),
            row,
        }
    }
}

fn pinned(name: &str) -> io::Result<MapHandle> {
    host::permitted()?;
    if !is_loaded() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "they are not loaded: `weir chirp load`"));
    }
    MapHandle::from_pinned_path(Path::new(PINNED).join(name)).map_err(|e| failed(name, &e))
}

/// Flows of `weir_chirp` in all network namespaces, in the order of their addresses. A state is at most 100
/// ms old while the flow is acknowledged. While chirps are sent it is that of the last round or change of
/// phase.
pub fn flows() -> io::Result<Vec<Flow>> {
    let rows = pinned("rows")?;
    if (rows.key_size() as usize, rows.value_size() as usize) != (size_of::<Key>(), size_of::<Row>()) {
        let message = "another version of Weir has loaded them: `weir chirp unload`, then `weir chirp load`";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    // One batch: a walk from key to key would begin again at a key deleted meanwhile.
    let all = rows.lookup_batch(rows.max_entries(), MapFlags::ANY, MapFlags::ANY);
    let all = all.map_err(|e| failed("rows", &e))?;
    let flow = |(key, row): (Vec<u8>, Vec<u8>)| Some(Flow::of(&pod::read(&key)?, pod::read(&row)?));
    let mut flows: Vec<Flow> = all.filter_map(flow).collect();
    flows.sort_by_key(|flow| (flow.local, flow.remote, flow.netns));
    Ok(flows)
}

/// Numbers of chirps' gaps so far, by microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Gaps {
    /// Gaps by their excess over the gap asked for.
    pub late: Vec<(i32, u64)>,
    /// Gaps that were asked for; the last number counts all longer ones.
    pub asked: Vec<(i32, u64)>,
    /// Gaps that were sent; the last number counts all longer ones.
    pub sent: Vec<(i32, u64)>,
}

/// Returns the counts of all gaps of chirps since the programs were loaded.
pub fn gaps() -> io::Result<Gaps> {
    let map = pinned("lateness")?;
    let count = |i: u32| {
        let value = map.lookup(&i.to_ne_bytes(), MapFlags::ANY).map_err(|e| failed("lateness", &e))?;
        Ok(value.and_then(|v| pod::read::<u64>(&v)).unwrap_or(0))
    };
    let counts = (0..3 * LATENESS).map(count).collect::<io::Result<Vec<u64>>>()?;
    let part = |n: usize, zero| {
        let part = &counts[n * LATENESS as usize..][..LATENESS as usize];
        part.iter().enumerate().map(|(i, n)| (i as i32 - zero, *n)).collect()
    };
    Ok(Gaps { late: part(0, LATENESS_ZERO), asked: part(1, 0), sent: part(2, 0) })
}

/// Callbacks that the kernel has left out, as far as flows noticed a state that changed without them. Each
/// may have moved a window.
pub fn skipped() -> io::Result<u64> {
    let value =
        pinned("skipped")?.lookup(&0u32.to_ne_bytes(), MapFlags::ANY).map_err(|e| failed("skipped", &e))?;
    Ok(value.and_then(|v| pod::read::<u64>(&v)).unwrap_or(0))
}

const LATENESS: u32 = 1024;
const LATENESS_ZERO: i32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_are_told_by_their_addresses() {
        let mut key = Key {
            local: [[10, 0, 0, 1], [0; 4], [0; 4], [0; 4]],
            remote: [[10, 0, 0, 2], [0; 4], [0; 4], [0; 4]],
            local_port: 5000u16.to_ne_bytes(),
            remote_port: 80u16.to_ne_bytes(),
            family: 2u16.to_ne_bytes(),
            pad: [0; 2],
            netns: [0; 4],
        };
        let row: Row = pod::read(&[0; size_of::<Row>()]).unwrap();
        let flow = Flow::of(&key, row);
        assert_eq!(
            (flow.local.to_string(), flow.remote.to_string()),
            ("10.0.0.1:5000".into(), "10.0.0.2:80".into())
        );
        key.family = 10u16.to_ne_bytes();
        key.local = [[0xfd, 0, 0, 0], [0; 4], [0; 4], [0, 0, 0, 1]];
        assert_eq!(Flow::of(&key, row).local.to_string(), "[fd00::1]:5000");
        assert_eq!(row.phase(), "first");
    }
}
