//! The congestion controls `weir_chirp` and `weir_dctcp` (`chirp.bpf.c`): loading, pinning, what their flows do.
//!
//! They are pinned below [`PINNED`], so that they outlive the command. Since Linux 6.4 a registration is a link that is pinned;
//! before, the kernel keeps what a map has registered until its element is deleted.

use super::{failed, map, open, Aligned};
use crate::sys::pod::{self, Pod};
use crate::sys::process::kernel;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use std::fs;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

static LINKED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/chirp_linked.bpf.o")));
static BY_MAP: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/chirp.bpf.o")));

/// Where programs and maps are pinned.
pub const PINNED: &str = "/sys/fs/bpf/weir-chirp";
/// The congestion controls, by the names that sockets choose them by.
pub const NAMES: [&str; 2] = ["weir_chirp", "weir_dctcp"];

const BPFFS: &str = "/sys/fs/bpf";
const BTF: &str = "/sys/kernel/btf/vmlinux";
const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";
const MAPS: [&str; 3] = ["rows", "lateness", "skipped"];
/// Registrations as links.
const LINKS_SINCE: (u32, u32) = (6, 4);
/// What the programs call: CUBIC as functions for BPF, and what they write.
const SINCE: (u32, u32) = (6, 1);
/// Well above the grace periods of RCU that the kernel's worker waits for.
const UNREGISTERS_WITHIN: Duration = Duration::from_secs(10);
/// Of statfs(2): a BPF file system.
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// A connection as the map has it (`struct chirp_key`).
#[derive(Clone, Copy)]
#[repr(C)]
struct Key {
    local: [[u8; 4]; 4],
    remote: [[u8; 4]; 4],
    local_port: [u8; 2],
    remote_port: [u8; 2],
    family: [u8; 2],
    pad: [u8; 2],
}
// SAFETY: arrays of bytes.
unsafe impl Pod for Key {}

/// What a flow does (`struct chirp_row`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Row {
    phase: u32,
    /// Estimate of the gap between packets, nanoseconds.
    pub gap_ns: u32,
    /// Mean deviation of single estimates from it, nanoseconds.
    pub deviation_ns: u32,
    /// The gap asked for last, nanoseconds.
    pub last_gap_ns: u32,
    /// By how much rounds grow, in eighths.
    pub gain: u32,
    /// Chirps that gave an estimate.
    pub chirps: u32,
    /// Chirps that did not.
    pub unusable: u32,
    /// Round trips with chirps.
    pub rounds: u32,
    /// Congestion window, packets.
    pub cwnd: u32,
    /// DCTCP's estimate of the share of marks, of 1024.
    pub alpha: u32,
    marks: u32,
    fq: u32,
}
// SAFETY: integers without padding.
unsafe impl Pod for Row {}

impl Row {
    /// What it is doing, in a word.
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
    /// What it does.
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
            row,
        }
    }
}

/// What keeps the congestion controls from being loaded, or their flows from chirping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// Nothing can be loaded; otherwise some flows do not chirp.
    pub fatal: bool,
    /// What it is, and what can be done about it.
    pub message: String,
}

/// Are they loaded?
pub fn is_loaded() -> bool {
    Path::new(PINNED).is_dir()
}

/// Everything that is in the way on this host.
pub fn problems() -> Vec<Problem> {
    let fatal = |message: String| Problem { fatal: true, message };
    let mut all = Vec::new();
    if !Path::new(BTF).exists() {
        all.push(fatal(format!(
            "this kernel has no BTF ({BTF}): it must be built with CONFIG_DEBUG_INFO_BTF"
        )));
    }
    match kernel() {
        Some(version) if version < SINCE => {
            all.push(fatal(format!("Linux {}.{} is too old: 6.1 or newer is needed", version.0, version.1)));
        }
        _ => {}
    }
    if !is_loaded() {
        all.extend(registered().iter().map(|name| {
            fatal(format!("the name {name} is taken: another program has registered a congestion control"))
        }));
    }
    all.extend(pacing_devices().into_iter().map(|device| Problem {
        fatal: false,
        message: format!(
            "{device} has fq, which paces by itself: flows over it start by slow start (tc qdisc replace dev {device} root \
             fq_codel)"
        ),
    }));
    all
}

/// Those of the names that sockets can choose, whoever registered them.
fn registered() -> Vec<&'static str> {
    let available = fs::read_to_string(AVAILABLE).unwrap_or_default();
    NAMES.into_iter().filter(|name| available.split_whitespace().any(|word| word == *name)).collect()
}

/// Waits until no socket can choose them: a link whose last pin is removed is released by a worker of the kernel, later.
fn until_unregistered() -> io::Result<()> {
    let since = Instant::now();
    while !registered().is_empty() {
        if since.elapsed() > UNREGISTERS_WITHIN {
            let message = format!("unpinned, but the kernel still offers {}", registered().join(" and "));
            return Err(io::Error::new(io::ErrorKind::TimedOut, message));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(())
}

/// Mounts the BPF file system where nobody has, as bpftool does.
fn mount_bpffs() -> io::Result<()> {
    if is_bpffs(Path::new(BPFFS)) {
        return Ok(());
    }
    let mounted = std::process::Command::new("mount").args(["-t", "bpf", "bpf", BPFFS]).output()?;
    match mounted.status.success() {
        true => Ok(()),
        false => Err(io::Error::other(format!(
            "{BPFFS} is no BPF file system, and none can be mounted: {}",
            String::from_utf8_lossy(&mounted.stderr).trim()
        ))),
    }
}

fn is_bpffs(path: &Path) -> bool {
    rustix::fs::statfs(path).is_ok_and(|of| of.f_type == BPF_FS_MAGIC)
}

/// Devices of this network namespace with the qdisc fq.
fn pacing_devices() -> Vec<String> {
    let said = std::process::Command::new("tc").args(["qdisc", "show"]).output();
    let said = said.map(|out| String::from_utf8_lossy(&out.stdout).into_owned()).unwrap_or_default();
    devices_with_fq(&said)
}

/// Those of what `tc qdisc show` prints, each once.
fn devices_with_fq(said: &str) -> Vec<String> {
    let mut devices: Vec<String> = said.lines().filter_map(device_with_fq).map(str::to_string).collect();
    devices.dedup();
    devices
}

/// `qdisc fq 8001: dev eth0 root …` names eth0.
fn device_with_fq(line: &str) -> Option<&str> {
    let mut words = line.split_whitespace();
    let fq = words.next() == Some("qdisc") && words.next() == Some("fq");
    words.skip_while(|word| *word != "dev").nth(1).filter(|_| fq)
}

/// Loads, registers and pins them. Of what fails nothing is left.
pub fn load() -> io::Result<()> {
    if is_loaded() {
        return Err(io::Error::other(format!("they are loaded already ({PINNED})")));
    }
    let fatal: Vec<String> = problems().into_iter().filter(|p| p.fatal).map(|p| p.message).collect();
    if !fatal.is_empty() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, fatal.join("; ")));
    }
    mount_bpffs()?;
    let linked = as_links();
    let open = open("chirp", if linked { &LINKED.0 } else { &BY_MAP.0 })?;
    let mut object = open.load().map_err(|e| failed("the kernel refuses the congestion controls", &e))?;
    fs::create_dir(PINNED).map_err(|e| io::Error::new(e.kind(), format!("{PINNED}: {e}")))?;
    register(&mut object, linked).inspect_err(|_| {
        let _ = unload();
    })
}

/// Are registrations links on this kernel?
fn as_links() -> bool {
    kernel().is_none_or(|version| version >= LINKS_SINCE)
}

fn pin(name: &str) -> PathBuf {
    Path::new(PINNED).join(name)
}

fn register(object: &mut Object, linked: bool) -> io::Result<()> {
    for name in MAPS {
        map(object, name)?.pin(pin(name)).map_err(|e| failed(&format!("cannot pin {name}"), &e))?;
    }
    for mut bss in object.maps_mut().filter(|m| m.name().to_string_lossy().ends_with(".bss")) {
        bss.pin(pin("bss")).map_err(|e| failed("cannot pin bss", &e))?;
    }
    for mut ops in object.maps_mut().filter(|m| NAMES.iter().any(|name| m.name() == *name)) {
        let name = ops.name().to_string_lossy().into_owned();
        let attached = ops.attach_struct_ops();
        let mut link = attached.map_err(|e| failed(&format!("cannot register {name}"), &e))?;
        let pinned = match linked {
            true => link.pin(pin(&name)),
            // The map holds it: pinned, so that it can be found.
            false => {
                link.disconnect();
                ops.pin(pin(&name))
            }
        };
        pinned.map_err(|e| failed(&format!("cannot pin {name}"), &e))?;
    }
    Ok(())
}

/// Takes them away: no socket can choose them any more. Flows that have them end their chirps and go on with CUBIC, or DCTCP where
/// there were marks, until they close. Returns whether there was anything.
pub fn unload() -> io::Result<bool> {
    if !is_loaded() {
        return Ok(false);
    }
    if let Ok(bss) = MapHandle::from_pinned_path(pin("bss")) {
        let retired = vec![1; bss.value_size() as usize];
        bss.update(&0u32.to_ne_bytes(), &retired, MapFlags::ANY).map_err(|e| failed("retiring", &e))?;
    }
    for name in NAMES.iter().filter(|_| !as_links()) {
        if let Ok(map) = MapHandle::from_pinned_path(pin(name)) {
            map.delete(&0u32.to_ne_bytes()).map_err(|e| failed(&format!("cannot unregister {name}"), &e))?;
        }
    }
    for entry in fs::read_dir(PINNED)? {
        fs::remove_file(entry?.path())?;
    }
    fs::remove_dir(PINNED)?;
    until_unregistered()?;
    Ok(true)
}

fn pinned(name: &str) -> io::Result<MapHandle> {
    if !is_loaded() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "they are not loaded: `weir chirp load`"));
    }
    MapHandle::from_pinned_path(pin(name)).map_err(|e| failed(name, &e))
}

/// The flows of `weir_chirp`, as they were last heard of: at rounds and changes of phase.
pub fn flows() -> io::Result<Vec<Flow>> {
    let rows = pinned("rows")?;
    let flow = |key: Vec<u8>| {
        let row = rows.lookup(&key, MapFlags::ANY).ok()??;
        Some(Flow::of(&pod::read(&key)?, pod::read(&row)?))
    };
    Ok(rows.keys().filter_map(flow).collect())
}

/// Of all gaps sent so far: by how many microseconds they were longer than asked for, and how many were.
pub fn lateness() -> io::Result<Vec<(i32, u64)>> {
    let map = pinned("lateness")?;
    let count = |i: u32| {
        let value = map.lookup(&i.to_ne_bytes(), MapFlags::ANY).map_err(|e| failed("lateness", &e))?;
        Ok((i as i32 - LATENESS_ZERO, value.and_then(|v| pod::read::<u64>(&v)).unwrap_or(0)))
    };
    (0..LATENESS).map(count).collect()
}

/// Callbacks that the kernel left out so far, as it was seen by flows whose state had changed without them; each may have moved a window.
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
    fn a_device_with_fq_is_told_from_others() {
        assert_eq!(devices_with_fq(QDISCS), ["lo", "d1", "d2"]);
        assert_eq!(devices_with_fq(""), [""; 0]);
    }

    /// What `tc qdisc show` of iproute2 6.1.0 printed on Linux 6.12: fq below prio, alone, and below mq of two queues.
    const QDISCS: &str = "\
qdisc prio 1: dev lo root refcnt 2 bands 3 priomap 1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1
qdisc fq 8001: dev lo parent 1:1 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 131100b initial_quantum 655500b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc fq_codel 8002: dev lo parent 1:2 limit 10240p flows 1024 quantum 65550 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc fq_codel 8003: dev d0 root refcnt 2 limit 10240p flows 1024 quantum 1514 target 5ms interval 100ms memory_limit 32Mb ecn drop_batch 64 
qdisc fq 8004: dev d1 root refcnt 2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc mq 8005: dev d2 root 
qdisc fq 0: dev d2 parent 8005:2 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
qdisc fq 0: dev d2 parent 8005:1 limit 10000p flow_limit 100p buckets 1024 orphan_mask 1023 quantum 3028b initial_quantum 15140b low_rate_threshold 550Kbit refill_delay 40ms timer_slack 10us horizon 10s horizon_drop 
";

    #[test]
    fn flows_are_told_by_their_addresses() {
        let mut key = Key {
            local: [[10, 0, 0, 1], [0; 4], [0; 4], [0; 4]],
            remote: [[10, 0, 0, 2], [0; 4], [0; 4], [0; 4]],
            local_port: 5000u16.to_ne_bytes(),
            remote_port: 80u16.to_ne_bytes(),
            family: 2u16.to_ne_bytes(),
            pad: [0; 2],
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
