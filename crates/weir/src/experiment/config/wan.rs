//! Files and options of `weir wan`: the emulator alone.

use super::diag::{Errors, Fault, Source};
use super::path;
use super::ports::{self, Attach, Driving};
use super::reader::{options_table, parse_toml, Section, Sink};
use crate::experiment::plan::Path;

/// Contents of a file for `weir wan`.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct WanFile {
    /// Interfaces; frames towards the WAN take `wan_out`.
    pub attach: Attach,
    /// Driving of the engine.
    pub driving: Driving,
    /// Seed of random loss.
    pub seed: u64,
    /// Emulated path; its LAN is bare.
    pub path: Path,
}

impl WanFile {
    /// Returns the directions of one interface whose frames the emulator changes: outgoing, incoming. Others
    /// pass in the kernel.
    pub fn taken(&self) -> (bool, bool) {
        (!self.path.wan_out.is_bare(), !self.path.wan_back.is_bare())
    }

    /// Returns the reason why the emulator would have nothing to do, if there is one. With two interfaces it
    /// joins them at least.
    pub fn idle(&self) -> Option<Fault> {
        let help = "give a rate, a delay or a loss, for one direction or for both";
        (matches!(self.attach, Attach::Dev(_)) && self.taken() == (false, false))
            .then(|| Fault::new("nothing is emulated", help))
    }
}

/// Parses a file for `weir wan`: `[ports]` and `[path]`. All errors of the file come at once.
pub fn parse(source: &Source) -> Result<WanFile, Errors> {
    let table = parse_toml(source)?;
    let sink = Sink::of(source);
    let root = Section::root(&table, &sink);
    root.need("ports", "{ dev = \"eth1\" }");
    let ports = root.section("ports").and_then(ports::of_emulator);
    root.need("path", "{ rtt = \"40ms\", wan = { rate = \"10Mbit\" } }");
    let path = root.section("path").map(|s| {
        if s.has("lan") {
            let help = "the LAN of `weir wan` is the network that its port is plugged into";
            s.fault("lan", Fault::new("`path.lan` does not exist here", help));
        }
        path::path(s)
    });
    let path_span = root.key_span("path");
    let seed = root.int("seed", 0..=u64::MAX).unwrap_or(1);
    root.finish();
    let file = ports.zip(path).map(|((attach, driving), path)| WanFile { attach, driving, seed, path });
    if let Some(fault) = file.as_ref().filter(|_| sink.is_empty()).and_then(WanFile::idle) {
        sink.push(path_span, fault);
    }
    sink.finish(source, file).map(|(file, _)| file)
}

/// Builds the path that options describe, both directions alike. Options are keys of a link, and `rtt`, with
/// their values as written. All faults are returned.
pub fn path_of_options(options: &[(&str, String)]) -> Result<Path, Vec<Fault>> {
    let table = options_table(options);
    let sink = Sink::default();
    let path = path::of_options(&Section::options(&table, &sink));
    match sink.into_faults() {
        faults if faults.is_empty() => Ok(path),
        faults => Err(faults),
    }
}

/// Beginnings of settings of a running emulator: of both directions, and of each.
const PLACES: [(&str, [bool; 2]); 3] =
    [("path.wan.out.", [true, false]), ("path.wan.back.", [false, true]), ("path.wan.", [true, true])];

/// Lays settings over the path of a running emulator: `path.wan.rate=2Mbit` for both directions,
/// `path.wan.out.delay=30ms` for one. All faults are returned.
pub fn laid_over(path: &Path, settings: &[&str]) -> Result<Path, Vec<Fault>> {
    let mut sides = [Vec::new(), Vec::new()];
    for setting in settings {
        let wrong = || {
            let help = "for example path.wan.rate=2Mbit, or path.wan.out.delay=30ms for what goes out";
            vec![Fault::new(format!("`{setting}` sets nothing"), help)]
        };
        let (place, value) = setting.split_once('=').ok_or_else(wrong)?;
        let mut places = PLACES.iter().filter_map(|(name, ways)| Some((place.strip_prefix(name)?, ways)));
        let (key, ways) = places.next().ok_or_else(wrong)?;
        for (side, _) in sides.iter_mut().zip(ways).filter(|(_, is)| **is) {
            side.push((key, value.to_owned()));
        }
    }
    let rtt = path.rtt();
    let sink = Sink::default();
    let over = |link, options: &[(&str, String)], name| {
        path::over(link, Section::inline(&options_table(options), name, &sink), rtt)
    };
    let wan_out = over(path.wan_out, &sides[0], "path.wan.out");
    let wan_back = over(path.wan_back, &sides[1], "path.wan.back");
    match sink.into_faults() {
        faults if faults.is_empty() => Ok(Path { wan_out, wan_back, ..*path }),
        faults => Err(faults),
    }
}
