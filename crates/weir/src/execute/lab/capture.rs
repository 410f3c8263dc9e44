//! Frames at the hosts and at the box's ports, written by tcpdump. What the gateway gives back towards the LAN is
//! seen twice at its port towards the WAN: as it came in, and as it seems to come in.

use super::child::Child;
use super::site::Site;
use super::topology::{Layout, Place, HOST_PORT, LAN_PORT, WAN_PORT};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Bytes kept of each frame: Ethernet with tags, IPv6, and TCP with all options.
const SNAP_LENGTH: &str = "160";

/// How long it may take to start, or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// tcpdump sees a frame up to a second after it came, when the kernel hands over the block it is in.
const SETTLE: Duration = Duration::from_millis(1_200);

/// Ends what [`start`] started, with every frame written.
pub fn end(running: Vec<Child>, faults: &mut Vec<String>) {
    if !running.is_empty() {
        std::thread::sleep(SETTLE);
    }
    faults.extend(running.into_iter().filter_map(|child| child.end(PATIENCE).err()));
}

/// Starts writing `clients.pcap`, `servers.pcap`, `gw-lan.pcap` and `gw-wan.pcap` in `directory`.
pub fn start(site: &mut Site, layout: &Layout, directory: &Path) -> Result<Vec<Child>, String> {
    std::fs::create_dir_all(directory).map_err(|e| format!("{}: {e}", directory.display()))?;
    let mut running = Vec::new();
    let points = [
        (Place::Clients, HOST_PORT, "clients"),
        (Place::Gateway, LAN_PORT, "gw-lan"),
        (Place::Gateway, WAN_PORT, "gw-wan"),
        (Place::Servers, HOST_PORT, "servers"),
    ];
    for (place, port, name) in points.into_iter().filter(|(place, ..)| layout.places.contains(place)) {
        let file = directory.join(format!("{name}.pcap"));
        let mut command = Command::new("tcpdump");
        // `-Z root`: it would otherwise change its user, which may not write here.
        command
            .args(["-n", "-p", "-Z", "root", "-B", "16384", "-s", SNAP_LENGTH, "-i", port, "-w"])
            .arg(file);
        let mut child = site.start(place, &format!("tcpdump ({name})"), command)?;
        child.wait_for_word("listening on", PATIENCE)?;
        running.push(child);
    }
    Ok(running)
}
