//! Table `[lab]`: the box that the gateway runs on in the lab.

use super::diag::Fault;
use super::reader::Section;
use crate::experiment::plan::{BoxKind, Ip, Lab, Path};
use crate::result::Backend;

/// Reads `[lab]`; `path` is that of the experiment.
pub(super) fn lab(s: Section, path: &Path) -> Lab {
    let kind = s.choice("box", &BoxKind::ALL, &[]).unwrap_or_default();
    if kind == BoxKind::Host && !path.lan.is_bare() {
        let help = "the clients' host is the gateway's box: what is to be emulated belongs to [path.wan]";
        s.fault("box", Fault::new("a LAN cannot be combined with box = \"host\"", help));
    }
    let ip = s.parsed("ip", |version: u64| match version {
        4 => Ok(Ip::V4),
        6 => Ok(Ip::V6),
        n => Err(Fault::new(format!("{n} is not a version of IP"), "4 or 6")),
    });
    if ip == Some(Ip::V6) {
        s.note_value(Backend::Lab, "ip", Fault::bare("hosts in the sim world speak IPv4 only"));
    }
    s.finish();
    Lab { kind, ip: ip.unwrap_or_default() }
}
