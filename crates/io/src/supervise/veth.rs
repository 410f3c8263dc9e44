//! The internal pair of interfaces that frames are redirected to when all of one interface's are taken: what is sent
//! into one end comes out of the other, where a packet socket reads it with its giant segments whole.

use super::changes::{Change, Changes};
use crate::bpf::{All, Attached};
use crate::sys::ethtool::Ethtool;
use crate::sys::link;
use std::io;

/// Segmentation of what is inside of tunnels: notes on it do not survive the way through a packet socket, so it is
/// done before.
const TUNNELS: [&str; 6] = [
    "tx-udp_tnl-segmentation",
    "tx-udp_tnl-csum-segmentation",
    "tx-gre-segmentation",
    "tx-gre-csum-segmentation",
    "tx-ipxip4-segmentation",
    "tx-ipxip6-segmentation",
];

/// The pair.
#[derive(Debug)]
pub(super) struct Internal {
    /// Numbers of its ends: what is seen at egress is sent into the first, what is seen at ingress into the second.
    pub ends: [u32; 2],
    _sinks: [Attached; 2],
}

impl Internal {
    /// Makes the pair for `dev`.
    pub fn make(changes: &mut Changes, dev: &str, all: &All) -> io::Result<Internal> {
        let names = names(dev);
        changes.record(Change::Veth { name: names[0].clone() })?;
        link::create_veth([&names[0], &names[1]])?;
        let [a, b] = [end(&names[0])?, end(&names[1])?];
        // Nothing there is for this host: frames end behind the sockets.
        let _sinks = [all.attach_sink(a)?, all.attach_sink(b)?];
        for end in [a, b] {
            link::set_up(end, true)?;
        }
        tracing::info!("{} and {} carry the frames of {dev} to the engine", names[0], names[1]);
        Ok(Internal { ends: [a, b], _sinks })
    }
}

/// Names of the two ends, the same at every start.
fn names(dev: &str) -> [String; 2] {
    // FNV-1a: short and stable; nothing hangs on it but the name.
    let hash = dev.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193));
    [format!("weir-{hash:08x}a"), format!("weir-{hash:08x}b")]
}

/// Prepares one end and says its number.
fn end(name: &str) -> io::Result<u32> {
    let link = link::find(name)?.ok_or(io::ErrorKind::NotFound)?;
    // It is a wire, not a host: it has nothing to say for itself.
    let quiet = format!("/proc/sys/net/ipv6/conf/{name}/disable_ipv6");
    if let Err(error) = std::fs::write(&quiet, "1") {
        tracing::debug!("{quiet}: {error}");
    }
    let tool = Ethtool::open(name)?;
    for feature in tool.features()?.iter().filter(|f| f.on && TUNNELS.contains(&f.name.as_str())) {
        if let Err(error) = tool.set_feature(&feature.name, false) {
            tracing::debug!("{name}: {}: {error}", feature.name);
        }
    }
    Ok(link.index)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_an_interface() {
        assert_eq!(names("eth0").map(|name| name.len()), [14, 14]);
        assert_ne!(names("eth0"), names("eth1"));
    }
}
