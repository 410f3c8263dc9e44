//! Captures of frames at the hosts, at the gateway's ports, and at the exits of the path's links.

use super::pcap::Pcap;
use super::topology::{CapturePoint, Topology};
use std::fs::File;
use std::io::BufWriter;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use weir_core::time::Time;

/// Bytes of the destination address in an untagged IPv4 frame.
const DESTINATION: std::ops::Range<usize> = 30..34;

/// An open file, or the error that ended it.
type Shared = Arc<Mutex<Option<Result<Pcap<BufWriter<File>>, String>>>>;

/// Files being written.
pub struct Captures(Vec<(String, Shared)>);

/// Starts a file `<name>.pcap` for each capture point of the topology in `directory`, which is made if
/// needed.
pub fn start(topology: &mut Topology, directory: &Path) -> Result<Captures, String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut files = Vec::new();
    for CapturePoint { name, ports } in std::mem::take(&mut topology.capture_points) {
        let path = directory.join(format!("{name}.pcap"));
        let path_name = path.display().to_string();
        let begun = File::create(&path).map(BufWriter::new).and_then(Pcap::begin);
        let file = begun.map_err(|e| format!("{path_name}: {e}"))?;
        let shared: Shared = Arc::new(Mutex::new(Some(Ok(file))));
        for (port, only) in ports {
            let shared = shared.clone();
            let capture = move |at, head: &[u8], len| {
                if only.is_empty() || destination(head).is_some_and(|a| only.contains(&a)) {
                    write(&shared, at, head, len);
                }
            };
            topology.world.capture(port, Box::new(capture));
        }
        files.push((path_name, shared));
    }
    Ok(Captures(files))
}

fn destination(head: &[u8]) -> Option<Ipv4Addr> {
    let octets: [u8; 4] = head.get(DESTINATION)?.try_into().ok()?;
    Some(octets.into())
}

fn write(shared: &Shared, at: Time, head: &[u8], len: usize) {
    let mut file = shared.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(Ok(open)) = &mut *file {
        if let Err(error) = open.frame(at, head, len) {
            *file = Some(Err(error.to_string()));
        }
    }
}

impl Captures {
    /// Ends the files and returns their errors.
    pub fn end(self) -> Vec<String> {
        let end = |(path, shared): (String, Shared)| {
            let file = shared.lock().unwrap_or_else(PoisonError::into_inner).take()?;
            let error = file.and_then(|open| open.end().map_err(|e| e.to_string())).err()?;
            Some(format!("{path}: {error}"))
        };
        self.0.into_iter().filter_map(end).collect()
    }
}
