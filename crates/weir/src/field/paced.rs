//! Line of the host's interface: the port of paced classes, and rates that it cannot carry.

use crate::result::observe;
use weir_core::gateway::{ClassConfig, Config};
use weir_core::pace::{Backend, Filler, Port, FULL_ON_WIRE};
use weir_core::rate::Rate;
use weir_core::sharing;
use weir_io::sys::ethtool::Ethtool;
use weir_io::sys::link::{self, HostInterface};

/// Bytes on the wire around the largest packet of an MTU: header, FCS, preamble and inter-frame gap.
const AROUND: u64 = 38;
/// Drivers of NICs that drop a host's PAUSE frames, unless the NIC's firmware is configured otherwise.
const DROPS_PAUSE: [&str; 3] = ["i40e", "ice", "iavf"];

/// Known properties of an interface.
#[derive(Clone)]
pub(super) struct Device {
    /// Line rate in bits per second, if there is a line. The rate that a virtual interface states is
    /// meaningless.
    speed: Option<u64>,
    ethernet: bool,
    mac: [u8; 6],
    mtu: u32,
    driver: String,
}

impl Device {
    /// Reads the current state of the interface. A missing interface is taken for Ethernet with an MTU of
    /// 1500 bytes and no known rate.
    pub(super) fn of(name: &str) -> Device {
        let Some(HostInterface { mac, mtu, ethernet, kind, .. }) = link::find(name).ok().flatten() else {
            return Device { speed: None, ethernet: true, mac: [0; 6], mtu: 1500, driver: String::new() };
        };
        let told = std::fs::read_to_string(format!("/sys/class/net/{name}/speed")).unwrap_or_default();
        let mbit: Option<u64> = told.trim().parse().ok().filter(|_| kind.is_empty());
        let driver = Ethtool::open(name).and_then(|device| device.driver()).unwrap_or_default();
        let mac = mac.try_into().unwrap_or_default();
        Device { speed: mbit.map(|mbit| mbit * 1_000_000), ethernet, mac, mtu, driver }
    }
}

/// Sets the port of a configuration whose classes leave by `dev`, if any class is paced. Without a line,
/// `gap` becomes `clock`, which is logged. The error says why classes cannot be paced.
pub(super) fn fit(config: &mut Config, dev: &str, device: &Device) -> Result<(), String> {
    if config.classes.iter().all(|class| class.share.is_none_or(|share| share.pace.is_none())) {
        return Ok(());
    }
    let why = fit_to(config, device);
    if let Some(why) = why {
        tracing::warn!(
            dev,
            "{why}: paced by deadlines (`clock`), which are as precise as the engine wakes up"
        );
    }
    let named = |refused: sharing::Refused| {
        format!("class \"{}\": {} (on {dev})", config.classes[refused.class].name, refused.why)
    };
    sharing::check(config).map_err(named)?;
    let gap = backends(config).any(|backend| *backend == Backend::Gap);
    if gap && config.port.filler == Filler::Pause && DROPS_PAUSE.contains(&device.driver.as_str()) {
        tracing::warn!(
            dev,
            driver = device.driver,
            "this driver is known to drop PAUSE frames of the host, and with them the gaps: use filler = \"01:80:c2:00:00:0f\""
        );
    }
    let line = config.port.line.map_or_else(|| "as the interface says".to_owned(), |rate| rate.to_string());
    tracing::info!(dev, by = if gap { "gap" } else { "clock" }, line, "pacing");
    Ok(())
}

/// Logs which classes have more than the line of `dev` carries.
pub(super) fn tell_beyond(config: &Config, dev: &str) {
    if let Some(beyond) = beyond(config, &Device::of(dev)) {
        tracing::warn!(dev, "{beyond}: what exceeds the line waits in the queue of the interface");
    }
}

/// Names the first class with more than the line carries, if there is one.
fn beyond(config: &Config, device: &Device) -> Option<String> {
    let line = device.speed.and_then(Rate::from_bps)?;
    let mut beyond = config.classes.iter().filter(|class| rate(class) > line.bps());
    let first = beyond.next()?;
    let others = match beyond.count() {
        0 => String::new(),
        count => format!(", {count} more exceed it,"),
    };
    let rate = Rate::from_bps(rate(first))?;
    Some(format!("class \"{}\" has {rate}{others} and the line {line}", first.name))
}

/// Returns the rate of a class in bits per second, or of each of its flows; 0 if it only divides that of its
/// parent.
fn rate(class: &ClassConfig) -> u64 {
    let Some(share) = class.share else { return observe::class_rate(class, 1) };
    share.rate.filter(|_| share.parent.is_none()).map_or(0, Rate::bps)
}

/// Sets the port for a known interface. Returns why `gap` is impossible, if it was requested.
fn fit_to(config: &mut Config, device: &Device) -> Option<&'static str> {
    let line = config.port.line.or(device.speed.and_then(Rate::from_bps));
    let longest = (u64::from(device.mtu) + AROUND).min(FULL_ON_WIRE);
    config.port = Port { line, source: device.mac, longest, ..config.port };
    let asked = backends(config).any(|backend| *backend == Backend::Gap);
    let why = match (device.ethernet, line) {
        (false, _) => "the interface has no Ethernet, and no gap can be filled there",
        (true, None) => "the interface has no line rate",
        _ => return None,
    };
    backends(config).for_each(|backend| *backend = Backend::Clock);
    asked.then_some(why)
}

fn backends(config: &mut Config) -> impl Iterator<Item = &mut Backend> {
    let paced = config.classes.iter_mut().filter_map(|class| class.share.as_mut()?.pace.as_mut());
    paced.map(|pace| &mut pace.backend)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::{gateway, Source};

    fn config(keys: &str) -> Config {
        let text = format!(
            "[ports]\ndev = 'e'\n[gateway]\n{keys}\n[[gateway.class]]\nname = 'a'\nrate = '10Mbit'\nqueue = '9p'"
        );
        gateway::parse(&Source::new("g.toml", text)).unwrap_or_else(|e| panic!("{e}")).gateway
    }

    #[test]
    fn rates_beyond_the_line_are_named() {
        let all = |keys: &str| {
            let text = format!("[ports]\ndev = 'e'\n{keys}");
            gateway::parse(&Source::new("g.toml", text)).unwrap_or_else(|e| panic!("{e}")).gateway
        };
        let said = |keys: &str, speed| beyond(&all(keys), &device(speed, true, 1500));
        let acks = "[[gateway.class]]\nname = 'a'\nrate = '2Gbit'";
        let queue = "[[gateway.class]]\nname = 'a'\nrate = '1001Mbit'\nqueue = '9p'";
        assert_eq!(said(acks, Some(1_000_000_000)).unwrap(), "class \"a\" has 2Gbit and the line 1Gbit");
        assert_eq!(said(queue, Some(1_000_000_000)).unwrap(), "class \"a\" has 1.001Gbit and the line 1Gbit");
        assert_eq!([said(acks, Some(2_000_000_000)), said(acks, None)], [None, None]);
    }

    fn device(speed: Option<u64>, ethernet: bool, mtu: u32) -> Device {
        Device { speed, ethernet, mac: [2, 0, 0, 0, 0, 9], mtu, driver: String::new() }
    }

    fn by(config: &mut Config) -> Backend {
        *backends(config).next().expect("a paced class")
    }

    #[test]
    fn a_line_is_what_the_file_says_or_the_interface() {
        let mut from_device = config("pace = 'gap'");
        assert_eq!(fit_to(&mut from_device, &device(Some(10_000_000_000), true, 9000)), None);
        let Port { line, source, longest, .. } = from_device.port;
        assert_eq!((line, source, longest), (Some(Rate::mbit(10_000)), [2, 0, 0, 0, 0, 9], 1538));
        let mut from_file = config("pace = 'gap'\nline = '1Gbit'");
        assert_eq!(fit_to(&mut from_file, &device(None, true, 1000)), None);
        assert_eq!((from_file.port.line, from_file.port.longest), (Some(Rate::mbit(1000)), 1038));
        assert_eq!((by(&mut from_device), by(&mut from_file)), (Backend::Gap, Backend::Gap));
    }

    #[test]
    fn without_a_line_there_are_deadlines_and_somebody_is_told() {
        let mut gap = config("pace = 'gap'");
        assert!(fit_to(&mut gap, &device(None, true, 1500)).is_some_and(|why| why.contains("no line rate")));
        assert_eq!(by(&mut gap), Backend::Clock);
        let mut tun = config("pace = 'gap'\nline = '1Gbit'");
        assert!(fit_to(&mut tun, &device(None, false, 1500)).is_some_and(|why| why.contains("no Ethernet")));
        assert_eq!(by(&mut tun), Backend::Clock);
        // No class requested gaps.
        assert_eq!(fit_to(&mut config("pace = 'clock'"), &device(None, true, 1500)), None);
    }

    #[test]
    fn what_the_line_does_not_carry_is_refused() {
        let mut slow = config("pace = 'gap'");
        slow.port.line = Some(Rate::mbit(5));
        assert!(fit(&mut slow, "nonesuch", &Device::of("nonesuch"))
            .unwrap_err()
            .contains("class \"a\": its rate, 10Mbit, is above the line's, 5Mbit"));
        let mut short = config("pace = 'gap'\nline = '1Gbit'");
        fit_to(&mut short, &device(None, true, 129));
        assert!(sharing::check(&short).is_err());
        let mut nothing = Config::default();
        assert_eq!(
            (fit(&mut nothing, "nonesuch", &Device::of("nonesuch")), nothing),
            (Ok(()), Config::default())
        );
    }
}
