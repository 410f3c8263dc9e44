//! Loading, pinning and unloading.
//!
//! Everything is pinned in one directory. It gets its final name when it is complete, and loses the name
//! before anything is removed. So the remains of a killed command never count as loaded, and the next command
//! clears them. A lock on the BPF file system's directory admits one command at a time.

use super::host::{is_loaded, permitted, registered};
use super::problems::problems;
use super::{NAMES, PINNED};
use crate::bpf::{failed, map, open, Aligned};
use crate::sys::process::kernel;
use libbpf_rs::{MapCore, MapFlags, MapHandle, Object};
use rustix::fs::{flock, FlockOperation};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

static LINKED: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/chirp_linked.bpf.o")));
static BY_MAP: &Aligned<[u8]> = &Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/chirp.bpf.o")));

/// Directory of incomplete pins. The file system takes no names with dots.
const PARTIAL: &str = "/sys/fs/bpf/weir-chirp-partial";
const REFUSED: &str =
    "the kernel refuses the congestion controls: it may differ from those that they were made for";
const BPFFS: &str = "/sys/fs/bpf";
const MAPS: [&str; 3] = ["rows", "lateness", "skipped"];
/// First kernel with registrations as links.
const LINKS_SINCE: (u32, u32) = (6, 4);
/// Well above the grace periods of RCU that the kernel's worker waits for.
const UNREGISTERS_WITHIN: Duration = Duration::from_secs(10);
/// Magic number of a BPF file system in statfs(2).
const BPF_FS_MAGIC: i64 = 0xcafe_4a11;

/// Waits until no socket can choose them. A worker of the kernel releases a link some time after its last pin
/// is removed.
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

/// Mounts the BPF file system if it is not mounted, as bpftool does.
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

/// Loads, registers and pins them. A failure leaves nothing behind.
pub fn load() -> io::Result<()> {
    permitted()?;
    mount_bpffs()?;
    let _alone = alone()?;
    if is_loaded() {
        return Err(io::Error::other(format!("they are loaded already ({PINNED})")));
    }
    clear()?;
    let fatal: Vec<String> = problems().into_iter().filter(|p| p.fatal).map(|p| p.message).collect();
    if !fatal.is_empty() {
        return Err(io::Error::new(io::ErrorKind::Unsupported, fatal.join("; ")));
    }
    load_object(if as_links() { &LINKED.0 } else { &BY_MAP.0 })
}

/// Loads this object.
fn load_object(object: &'static [u8]) -> io::Result<()> {
    let mut object = crate::bpf::load(|| open("chirp", object), |e| failed(REFUSED, e))?;
    let at = |path: &'static str| move |e: io::Error| io::Error::new(e.kind(), format!("{path}: {e}"));
    fs::create_dir(PARTIAL).map_err(at(PARTIAL))?;
    let done =
        register(&mut object, as_links()).and_then(|()| fs::rename(PARTIAL, PINNED).map_err(at(PINNED)));
    drop(object);
    done.inspect_err(|_| {
        let _ = clear();
    })
}

/// Loads an object for a kernel in which a field has another name.
#[cfg(test)]
pub(in crate::bpf) fn load_for_another_kernel() -> io::Result<()> {
    let mut object = Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/chirp_linked.bpf.o")));
    let (ours, other) = (b"tcp_wstamp_ns\0", b"tcp_wstamp_no\0");
    let places: Vec<usize> = (0..object.0.len()).filter(|&i| object.0[i..].starts_with(ours)).collect();
    places.into_iter().for_each(|i| object.0[i..i + other.len()].copy_from_slice(other));
    load_object(&Box::leak(Box::new(object)).0)
}

/// Excludes other loads and unloads until the result is dropped or its process ends.
fn alone() -> io::Result<File> {
    let directory = File::open(BPFFS).map_err(|e| io::Error::new(e.kind(), format!("{BPFFS}: {e}")))?;
    flock(&directory, FlockOperation::LockExclusive)?;
    Ok(directory)
}

/// Returns whether registrations are links on this kernel.
fn as_links() -> bool {
    kernel().is_none_or(|version| version >= LINKS_SINCE)
}

fn pin(name: &str) -> PathBuf {
    Path::new(PARTIAL).join(name)
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
        let unpinned = |e| failed(&format!("cannot pin {name}"), &e);
        // Here the map holds the registration. It is pinned before, so that it can always be found.
        if !linked {
            ops.pin(pin(&name)).map_err(unpinned)?;
        }
        let attached = ops.attach_struct_ops();
        let mut link = attached.map_err(|e| failed(&format!("cannot register {name}"), &e))?;
        match linked {
            true => link.pin(pin(&name)).map_err(unpinned)?,
            false => link.disconnect(),
        }
    }
    Ok(())
}

/// Unloads them: no socket can choose them any more. Their flows end their chirps and go on until they close,
/// with CUBIC, or with DCTCP after marks. Returns whether anything was loaded.
pub fn unload() -> io::Result<bool> {
    permitted()?;
    if !is_bpffs(Path::new(BPFFS)) {
        return Ok(false);
    }
    let _alone = alone()?;
    let left = clear()?;
    if !is_loaded() {
        return Ok(left);
    }
    fs::rename(PINNED, PARTIAL).map_err(|e| io::Error::new(e.kind(), format!("{PINNED}: {e}")))?;
    clear()
}

/// Removes incomplete pins. Returns whether there were any.
fn clear() -> io::Result<bool> {
    if !Path::new(PARTIAL).is_dir() {
        return Ok(false);
    }
    if let Ok(bss) = MapHandle::from_pinned_path(pin("bss")) {
        let retired = vec![1; bss.value_size() as usize];
        bss.update(&0u32.to_ne_bytes(), &retired, MapFlags::ANY).map_err(|e| failed("retiring", &e))?;
    }
    for name in NAMES.iter().filter(|_| !as_links()) {
        if let Ok(map) = MapHandle::from_pinned_path(pin(name)) {
            // Without a registration there is no element.
            match map.delete(&0u32.to_ne_bytes()) {
                Err(e) if registered().contains(name) => {
                    return Err(failed(&format!("cannot unregister {name}"), &e))
                }
                _ => {}
            }
        }
    }
    for entry in fs::read_dir(PARTIAL)? {
        fs::remove_file(entry?.path())?;
    }
    fs::remove_dir(PARTIAL)?;
    until_unregistered()?;
    Ok(true)
}
