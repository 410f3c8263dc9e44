//! Captures of frames at the hosts and at the box's ports, written by tcpdump. A frame that the gateway
//! returns towards the LAN appears twice at its port towards the WAN: at its arrival, and at its apparent
//! arrival when the gateway releases it.

use super::child::Child;
use super::site::Site;
use super::topology::{Layout, Place, HOST_PORT, LAN_PORT, WAN_PORT};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Bytes kept of each frame: Ethernet with tags, IPv6, and TCP with all options.
const SNAP_LENGTH: &str = "160";

/// Longest time that tcpdump may take to start or to end.
const PATIENCE: Duration = Duration::from_secs(10);
/// Delay until tcpdump has seen all frames: the kernel hands over a block of frames up to a second late.
const SETTLE: Duration = Duration::from_millis(1_200);

/// Ends the captures that [`start`] began, with every frame written.
pub fn end(running: Vec<Child>, faults: &mut Vec<String>) {
    if !running.is_empty() {
        std::thread::sleep(SETTLE);
    }
    faults.extend(running.into_iter().filter_map(|child| child.end(PATIENCE).err()));
}

/// Starts to write `clients.pcap`, `servers.pcap`, `gw-lan.pcap` and `gw-wan.pcap` in `directory`.
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
        // Without `-Z root` it would change its user, which may not write here.
        command
            .args(["-n", "-p", "-Z", "root", "-B", "16384", "-s", SNAP_LENGTH, "-i", port, "-w"])
            .arg(file);
        let mut child = site.start(place, &format!("tcpdump ({name})"), command)?;
        child.wait_for_word("listening on", PATIENCE)?;
        running.push(child);
    }
    Ok(running)
}
