//! Table `[path]`: LAN, WAN out and WAN back; and the access links of hosts.

use super::diag::Fault;
use super::keys::refuse_twice;
use super::link;
use super::reader::{Section, NOT_YET};
use crate::experiment::plan::Path;
use weir_core::link::Config;
use weir_core::time::Duration;

/// Reads `[path]`. Faults go to the section's sink; faulty parts are missing from the value.
pub(super) fn path(mut s: Section) -> Path {
    s.refuse(&[("mtu", NOT_YET, "frames are as long as the interfaces allow: 1500 bytes of IP")]);
    let lan = s.section("lan");
    let wan = s.section("wan");
    let side = |name| wan.as_ref().and_then(|w: &Section| w.section(name));
    let (out, back) = (side("out"), side("back"));
    let path = links(&s, lan.as_ref(), wan.as_ref(), [out.as_ref(), back.as_ref()]);
    [lan, wan, out, back].into_iter().flatten().for_each(link::finish);
    s.finish();
    path
}

/// Builds the path that the options of `weir wan` describe, both directions alike.
pub(super) fn of_options(s: &Section) -> Path {
    links(s, None, Some(s), [None, None])
}

/// Reads the keys of `s` over those of a running link; `rtt` is that of the path as it runs.
pub(super) fn over(link: Config, s: Section, rtt: Duration) -> Config {
    let link = link::over(link, &s, rtt);
    link::finish(s);
    link
}

/// Reads `rtt` of `s`, and the links: the keys for the WAN, and those for one side of it.
fn links(s: &Section, lan: Option<&Section>, wan: Option<&Section>, sides: [Option<&Section>; 2]) -> Path {
    for (own, both) in sides.into_iter().flatten().zip(wan.into_iter().cycle()) {
        refuse_twice(link::KEYS, own, both, ["out", "back"]);
    }
    let lan = Vec::from_iter(lan);
    let [out, back] = sides.map(|side| Vec::from_iter(side.into_iter().chain(wan)));
    let [mut path_lan, mut wan_out, mut wan_back] = [&lan, &out, &back].map(|at| link::begin(at));
    if let Some(rtt) = s.get::<Duration>("rtt") {
        for at in sides.into_iter().flatten().chain(wan).filter(|at| at.has("delay")) {
            let message = format!("`{}` cannot be combined with `{}`", at.full("delay"), s.full("rtt"));
            let help = "`rtt` is split evenly on WAN out and WAN back; give `rtt`, or a `delay` for each";
            at.key_fault("delay", Fault::new(message, help));
        }
        (wan_out.delay, wan_back.delay) = halves(s, rtt, path_lan.delay);
    }
    let rtt = Path { lan: path_lan, wan_out, wan_back }.rtt();
    for (link, at) in [(&mut path_lan, &lan), (&mut wan_out, &out), (&mut wan_back, &back)] {
        *link = link::complete(*link, at, rtt);
    }
    Path { lan: path_lan, wan_out, wan_back }
}

/// Returns the delays of WAN out and WAN back. With the LAN's two delays they make a round trip of `rtt`.
fn halves(s: &Section, rtt: Duration, lan_delay: Duration) -> (Duration, Duration) {
    match rtt.as_nanos().checked_sub(lan_delay.saturating_mul(2).as_nanos()) {
        Some(wan) => (Duration::from_nanos(wan / 2), Duration::from_nanos(wan - wan / 2)),
        None => {
            let message = format!("{rtt} is less than what the LAN takes, twice {lan_delay}");
            s.fault_in("rtt", Fault::bare(message));
            (Duration::ZERO, Duration::ZERO)
        }
    }
}

/// Reads both directions of the access link of a host, `up` and `down`, whose keys stand beside its name.
/// `rtt` is that of the path.
pub(super) fn access(s: Section, rtt: Duration) -> (Config, Config) {
    let sides = ["up", "down"].map(|name| s.section(name));
    for own in sides.iter().flatten() {
        refuse_twice(link::KEYS, own, &s, ["up", "down"]);
    }
    let places = |side: usize| Vec::from_iter(sides[side].iter().chain([&s]));
    let (up, down) = (link::begin(&places(0)), link::begin(&places(1)));
    let rtt = rtt + up.delay + down.delay;
    let links = (link::complete(up, &places(0), rtt), link::complete(down, &places(1), rtt));
    sides.into_iter().flatten().for_each(link::finish);
    link::finish(s);
    links
}
