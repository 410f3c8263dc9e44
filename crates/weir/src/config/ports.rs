//! `[ports]`: the interfaces that an engine attaches to, and how it is driven.

use super::reader::{Positive, Refused, Section};
use super::units::{self, Fault};
use weir_core::time::Duration;

/// Where frames are taken from and given back to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Attach {
    /// Both directions of one interface; the kernel forwards, routes or uses what passes.
    Dev(String),
    /// A bump in the wire between two interfaces, which nothing else joins.
    Pair {
        /// The interface towards the LAN.
        lan: String,
        /// The interface towards the WAN; never that of `lan`.
        wan: String,
    },
}

/// How an engine is driven.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driving {
    /// How long to wait for interfaces that are not there yet; by default not at all.
    pub wait: Option<Duration>,
    /// Real-time priority (SCHED_FIFO) of the engine if it is permitted, 1 to 98; 0 is an ordinary process.
    /// By default 40 for a gateway and 0 for an emulator, which would starve the kernel's own packet
    /// processing on its processor.
    pub priority: Option<u8>,
    /// The processor that the engine stays on; `None` leaves it to the scheduler.
    pub cpu: Option<u32>,
    /// How long before a deadline the engine stops sleeping and spins, at most 1 ms; by default 50 us for
    /// an emulator and not at all for a gateway, whose releases are milliseconds apart.
    pub spin: Option<Duration>,
    /// How long ACKs may lie in the ring while flows are active, at most 10 ms; by default 200 us. Gateways only.
    pub batch_delay: Option<Duration>,
}

/// Keys that a gateway had when it sat between two interfaces.
const NOT_OF_A_GATEWAY: [Refused; 4] = [
    (
        "lan",
        "is no key of a gateway, which needs one interface",
        "write dev = \"eth1\", the interface towards the WAN; what is behind it may be a bridge, a router or this host",
    ),
    ("wan", "is no key of a gateway, which needs one interface", "write dev = \"eth1\" for it"),
    GONE[0],
    GONE[1],
];

const NOT_OF_AN_EMULATOR: [Refused; 3] =
    [("batch_delay", "is for gateways", "an emulator looks at every frame when it comes"), GONE[0], GONE[1]];

const GONE: [Refused; 2] = [
    ("mode", "does not exist any more", "tc programs take frames, whatever the driver: leave it out"),
    ("zero_copy", "does not exist any more", "tc programs take frames, whatever the driver: leave it out"),
];

/// Reads the `[ports]` of a gateway: its interface.
pub(super) fn of_gateway(mut s: Section) -> Option<(String, Driving)> {
    s.refuse(&NOT_OF_A_GATEWAY);
    if !["lan", "wan"].into_iter().any(|key| s.is_there(key)) {
        s.need("dev", "\"eth1\"");
    }
    let dev = interface(&s, "dev");
    let batch_delay =
        at_most(&s, "batch_delay", Duration::from_millis(10), "the longest time between two releases");
    let driving = Driving { batch_delay, ..driving(&s) };
    s.finish();
    Some((dev?, driving))
}

/// Reads the `[ports]` of an emulator.
pub(super) fn of_emulator(mut s: Section) -> Option<(Attach, Driving)> {
    s.refuse(&NOT_OF_AN_EMULATOR);
    let help =
        "`dev` is for both directions of one interface, `lan` and `wan` for what goes from one to the other";
    for key in ["lan", "wan"] {
        s.at_most_one(&["dev", key], help);
    }
    if s.has("lan") || s.has("wan") {
        s.need("lan", "\"eth0\"");
        s.need("wan", "\"eth1\"");
    } else {
        s.need("dev", "\"eth1\", or lan = \"eth0\" and wan = \"eth1\"");
    }
    let [dev, lan, wan] = ["dev", "lan", "wan"].map(|key| interface(&s, key));
    let driving = driving(&s);
    s.check_done();
    let attach = match (dev, lan.zip(wan)) {
        (Some(dev), _) => Attach::Dev(dev),
        (None, pair) => {
            let (lan, wan) = pair?;
            if lan == wan {
                let message = format!("`ports.wan` is the same interface as `ports.lan`: \"{wan}\"");
                s.fault("wan", Fault::new(message, "for both directions of one interface write dev = \"…\""));
                return None;
            }
            Attach::Pair { lan, wan }
        }
    };
    Some((attach, driving))
}

fn interface(s: &Section, key: &'static str) -> Option<String> {
    s.parsed(key, |name: String| units::interface(&name))
}

fn driving(s: &Section) -> Driving {
    Driving {
        wait: s.get::<Positive>("wait").map(|Positive(d)| d),
        // 99 is the kernel's own migration and watchdog threads.
        priority: s.int("priority", 0..=98).map(|p| p as u8),
        cpu: s.int("cpu", 0..=8191).map(|c| c as u32),
        spin: at_most(s, "spin", Duration::from_millis(1), "which would starve other processes"),
        batch_delay: None,
    }
}

fn at_most(s: &Section, key: &'static str, most: Duration, why: &str) -> Option<Duration> {
    s.parsed(key, |d: Duration| {
        if d > most {
            return Err(Fault::bare(format!("{d} is more than {most}, {why}")));
        }
        Ok(d)
    })
}
