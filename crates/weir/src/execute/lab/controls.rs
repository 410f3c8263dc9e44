//! Congestion controls that the kernel has, and those that it lacks and Weir has: loaded for a run, taken away behind it.

use crate::experiment::plan::{Plan, Tcp};
use socket2::{Domain, Socket, Type};
use std::collections::BTreeSet;
use weir_io::bpf::chirp;

/// The name that this kernel has for a congestion control of a plan, if it has it.
pub(super) fn linux_name(cc: &str) -> Option<&str> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).ok()?;
    // Asking for one makes the kernel load its module.
    Tcp::in_linux(cc).into_iter().find(|name| socket.set_tcp_congestion(name.as_bytes()).is_ok())
}

/// Has Weir a congestion control of a plan, whatever the kernel has?
pub(super) fn is_ours(cc: &str) -> bool {
    Tcp::in_linux(cc).iter().any(|name| chirp::NAMES.contains(name))
}

/// Those of a plan that sockets cannot choose yet.
pub(super) fn absent(plan: &Plan) -> BTreeSet<&str> {
    let tcp = plan.groups.iter().filter(|g| g.protocol.is_tcp());
    tcp.map(|g| g.tcp.cc()).filter(|cc| linux_name(cc).is_none()).collect()
}

/// What was loaded for a run; dropped, it is gone. Connections that still have it go on without.
pub(super) struct Controls(bool);

impl Controls {
    /// Loads what the flows of the plan ask for and the kernel has not. What is loaded already stays when the run is over.
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
