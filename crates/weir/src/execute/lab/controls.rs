//! Congestion controls of the kernel, and those of Weir that a run loads and unloads.

use crate::experiment::plan::{Plan, Tcp};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use weir_io::bpf::chirp;

/// Returns this kernel's name for a plan's congestion control, if the kernel has it.
pub(super) fn linux_name(cc: &str) -> Option<&str> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    // The request makes the kernel load the module.
    Tcp::in_linux(cc).into_iter().find(|name| socket.set_tcp_congestion(name.as_bytes()).is_ok())
}

/// Returns whether Weir has this congestion control itself.
pub(super) fn is_ours(cc: &str) -> bool {
    Tcp::in_linux(cc).iter().any(|name| chirp::NAMES.contains(name))
}

/// Returns the plan's congestion controls that sockets cannot choose yet.
pub(super) fn absent(plan: &Plan) -> BTreeSet<&str> {
    let tcp = plan.groups.iter().filter(|g| g.protocol.is_tcp());
    tcp.map(|g| g.tcp.cc()).filter(|cc| linux_name(cc).is_none()).collect()
}

/// Congestion controls that a run loaded. Dropping it unloads them. Open connections continue without them.
pub(super) struct Controls(bool);

impl Controls {
    /// Loads the congestion controls of the plan that the kernel lacks. Those that are loaded already stay
    /// loaded after the run.
    pub fn load(plan: &Plan) -> Result<Controls, String> {
        let needed = absent(plan).into_iter().any(is_ours);
        if needed {
            chirp::load().map_err(|e| e.to_string())?;
        }
        Ok(Controls(needed))
    }
}

impl Drop for Controls {
    fn drop(&mut self) {
        if self.0 {
            if let Err(e) = chirp::unload() {
                tracing::warn!("weir_chirp and weir_dctcp stay loaded: {e}");
            }
        }
    }
}
