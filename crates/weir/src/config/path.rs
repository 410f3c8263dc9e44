//! The `[path]` table: LAN, WAN out and WAN back.

use super::diag::{Errors, Source};
use super::ports::{self, Attach, Driving};
use super::reader::{parse_toml, Section, Sink, Size, NOT_YET};
use super::units::{Fault, QueueLimit};
use crate::plan::{Link, Loss, Path, Probability, Queue};
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// What a file for `weir wan` says: the emulator alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WanFile {
    /// Its interfaces; frames towards the WAN take `wan_out`.
    pub attach: Attach,
    /// How the engine is driven.
    pub driving: Driving,
    /// Seed of random loss.
    pub seed: u64,
    /// The emulated path; its LAN is bare.
    pub path: Path,
}

impl WanFile {
    /// Which frames have something done to them on one interface: those that go out, those that come in. Others pass
    /// in the kernel.
    pub fn taken(&self) -> (bool, bool) {
        (!self.path.wan_out.is_bare(), !self.path.wan_back.is_bare())
    }

    /// Why it would have nothing to do, if it would: two interfaces it joins at least.
    pub fn idle(&self) -> Option<Fault> {
        let help = "give a rate, a delay or a loss, for one direction or for both";
        (matches!(self.attach, Attach::Dev(_)) && self.taken() == (false, false))
            .then(|| Fault::new("nothing is emulated", help))
    }
}

/// Parses a file for `weir wan`: `[ports]` and `[path]`. All errors of the file come at once.
pub fn parse_wan(source: &Source) -> Result<WanFile, Errors> {
    let table = parse_toml(source)?;
    let sink = Sink::default();
    let root = Section::root(&table, &sink);
    root.need("ports", "{ dev = \"eth1\" }");
    let ports = root.section("ports").and_then(ports::of_emulator);
    root.need("path", "{ rtt = \"40ms\", wan = { rate = \"10Mbit\" } }");
    let path = root.section("path").map(|s| {
        if s.has("lan") {
            let help = "the LAN of `weir wan` is the network that its port is plugged into";
            s.fault("lan", Fault::new("`path.lan` does not exist here", help));
        }
        self::path(s)
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

/// A link as it is written: `None` where nothing is said.
struct Written<'a> {
    at: Section<'a>,
    rate: Option<Rate>,
    delay: Option<Duration>,
    loss: Option<Loss>,
    queue: Option<QueueLimit>,
    mark: Option<QueueLimit>,
    overhead: Option<u16>,
    burst: Option<u64>,
}

impl<'a> Written<'a> {
    fn read(at: Section<'a>) -> Written<'a> {
        at.at_most_one(&["loss", "loss_every"], "a link loses at random or periodically, not both");
        let random = at.get::<Probability>("loss").map(Loss::random);
        let every = at.int("loss_every", 1..=u64::MAX).map(Loss::Every);
        let (rate, delay) = (at.get("rate"), at.get("delay"));
        let (queue, mark) = (at.get("queue"), at.get("mark"));
        let overhead = at.int("overhead", 0..=256).map(|n| n as u16);
        let burst = at.get("burst").map(|Size(n)| n);
        Written { at, rate, delay, loss: random.or(every), queue, mark, overhead, burst }
    }

    fn finish(mut self) {
        self.at.refuse(&[
            ("jitter", NOT_YET, "links have a constant delay"),
            ("aqm", NOT_YET, "queues drop at their tail"),
            ("reorder", NOT_YET, "links keep the order"),
        ]);
        self.at.finish();
    }

    /// What is said for both directions may not be said again for one of `names`.
    fn said_twice(&self, both: &Written, names: [&str; 2]) {
        for (key, other) in [
            ("rate", "rate"),
            ("delay", "delay"),
            ("queue", "queue"),
            ("mark", "mark"),
            ("overhead", "overhead"),
            ("burst", "burst"),
            ("loss", "loss"),
            ("loss", "loss_every"),
            ("loss_every", "loss"),
            ("loss_every", "loss_every"),
        ] {
            if self.at.has(key) && both.at.has(other) {
                let (own, both) = (self.at.path(), both.at.path());
                let message = format!("`{own}.{key}` together with `{both}.{other}`");
                let [one, two] = names;
                let help =
                    format!("`{both}` is for both directions: say it there, or in `{one}` and `{two}`");
                self.at.key_fault(key, Fault::new(message, help));
            }
        }
    }
}

/// Reads `[path]`. Faults go to the section's sink; what is faulty is missing from the value.
pub(super) fn path(mut s: Section) -> Path {
    s.refuse(&[("mtu", NOT_YET, "frames are as long as the interfaces allow: 1500 bytes of IP")]);
    let given_rtt = s.get::<Duration>("rtt");
    let lan = s.section("lan").map(Written::read);
    let wan = s.section("wan").map(Written::read);
    let side = |name| wan.as_ref().and_then(|w| w.at.section(name)).map(Written::read);
    let (out, back) = (side("out"), side("back"));
    for own in [&out, &back].into_iter().flatten() {
        if let Some(both) = &wan {
            own.said_twice(both, ["out", "back"]);
        }
    }

    let lan_delay = lan.as_ref().and_then(|l| l.delay).unwrap_or_default();
    let (out_delay, back_delay) = match given_rtt {
        Some(rtt) => {
            for w in [&wan, &out, &back].into_iter().flatten().filter(|w| w.at.has("delay")) {
                let message = format!("`{}.delay` together with `path.rtt`", w.at.path());
                let help = "`rtt` is split evenly on WAN out and WAN back; give `rtt`, or a `delay` for each";
                w.at.key_fault("delay", Fault::new(message, help));
            }
            halves(&s, rtt, lan_delay)
        }
        None => {
            let both = wan.as_ref().and_then(|w| w.delay);
            let delay =
                |own: &Option<Written>| own.as_ref().and_then(|o| o.delay).or(both).unwrap_or_default();
            (delay(&out), delay(&back))
        }
    };
    let rtt = lan_delay + lan_delay + out_delay + back_delay;
    let path = Path {
        lan: link(lan.as_ref(), None, lan_delay, rtt),
        wan_out: link(out.as_ref(), wan.as_ref(), out_delay, rtt),
        wan_back: link(back.as_ref(), wan.as_ref(), back_delay, rtt),
    };
    for w in [lan, wan, out, back].into_iter().flatten() {
        w.finish();
    }
    s.finish();
    path
}

/// Both directions of the access link of a host, `up` and `down`, whose keys stand beside its name. `rtt` is that of
/// the path.
pub(super) fn access(s: Section, rtt: Duration) -> (Link, Link) {
    let both = Written::read(s);
    let side = |name| both.at.section(name).map(Written::read);
    let (up, down) = (side("up"), side("down"));
    for own in [&up, &down].into_iter().flatten() {
        own.said_twice(&both, ["up", "down"]);
    }
    let delay = |own: &Option<Written>| own.as_ref().and_then(|o| o.delay).or(both.delay).unwrap_or_default();
    let (up_delay, down_delay) = (delay(&up), delay(&down));
    let rtt = rtt + up_delay + down_delay;
    let links =
        (link(up.as_ref(), Some(&both), up_delay, rtt), link(down.as_ref(), Some(&both), down_delay, rtt));
    for w in [up, down].into_iter().flatten().chain([both]) {
        w.finish();
    }
    links
}

/// The delays of WAN out and WAN back that make a round trip of `rtt` with the LAN's two.
fn halves(s: &Section, rtt: Duration, lan_delay: Duration) -> (Duration, Duration) {
    match rtt.as_nanos().checked_sub(lan_delay.saturating_mul(2).as_nanos()) {
        Some(wan) => (Duration::from_nanos(wan / 2), Duration::from_nanos(wan - wan / 2)),
        None => {
            let message = format!("`path.rtt` of {rtt} is less than what the LAN takes, twice {lan_delay}");
            s.fault("rtt", Fault::bare(message));
            (Duration::ZERO, Duration::ZERO)
        }
    }
}

/// One direction: what is said for it, else what is said for both.
fn link(own: Option<&Written>, both: Option<&Written>, delay: Duration, rtt: Duration) -> Link {
    fn pick<T>(
        own: Option<&Written>,
        both: Option<&Written>,
        f: impl Fn(&Written) -> Option<T>,
    ) -> Option<T> {
        own.and_then(&f).or(both.and_then(&f))
    }
    let rate = pick(own, both, |w| w.rate);
    let queue = pick(own, both, |w| w.queue.and_then(|q| queue(&w.at, q, rate, rtt))).unwrap_or_default();
    Link {
        rate,
        delay,
        loss: pick(own, both, |w| w.loss).unwrap_or_default(),
        queue,
        mark: pick(own, both, |w| w.mark.and_then(|m| mark(&w.at, m, rate, rtt, queue))),
        overhead: pick(own, both, |w| w.overhead).unwrap_or(Link::default().overhead),
        burst: pick(own, both, |w| w.burst.filter(|_| bursts(&w.at, rate))).unwrap_or_default(),
    }
}

/// A burst is what a rate lets through at once.
fn bursts(s: &Section, rate: Option<Rate>) -> bool {
    if rate.is_none() {
        s.fault(
            "burst",
            Fault::new("`burst` without a `rate`", "it is what a rate sends at once after a silence"),
        );
    }
    rate.is_some()
}

/// The limit of a queue, its bandwidth-delay product worked out. A queue stands in front of a rate;
/// without one it would never fill.
fn queue(s: &Section, limit: QueueLimit, rate: Option<Rate>, rtt: Duration) -> Option<Queue> {
    let Some(rate) = rate else {
        s.fault("queue", Fault::new("`queue` without a `rate`", "a queue forms only in front of a rate"));
        return None;
    };
    queue_of(limit, rate, rtt).map_err(|fault| s.fault_in("queue", fault)).ok()
}

/// The threshold of marks in a queue with this limit, its bandwidth-delay product worked out.
fn mark(
    s: &Section,
    threshold: QueueLimit,
    rate: Option<Rate>,
    rtt: Duration,
    limit: Queue,
) -> Option<Queue> {
    let Some(rate) = rate else {
        s.fault("mark", Fault::new("`mark` without a `rate`", "a queue forms only in front of a rate"));
        return None;
    };
    let found = match threshold {
        QueueLimit::Packets(n) => Queue::Packets(n),
        QueueLimit::Bytes(n) => Queue::Bytes(n),
        QueueLimit::Bdp(factor) => {
            let bytes = factor.times_floor(u128::from(rate.bytes_in(rtt)));
            Queue::Bytes(bytes.unwrap_or(u64::MAX).max(1))
        }
    };
    let above = match (found, limit) {
        (Queue::Packets(m), Queue::Packets(q)) | (Queue::Bytes(m), Queue::Bytes(q)) => m >= q,
        _ => false,
    };
    if above {
        let help = "packets that find the queue full are dropped; mark well below `queue`";
        s.fault_in("mark", Fault::new(format!("{found} is not below the queue's limit, {limit}"), help));
    }
    Some(found)
}

/// A queue limit with its bandwidth-delay product worked out: at least one full frame.
pub fn queue_of(limit: QueueLimit, rate: Rate, rtt: Duration) -> Result<Queue, Fault> {
    const HELP: &str = "nothing would fit; give the limit in packets: \"100p\"";
    match limit {
        QueueLimit::Packets(n) => Ok(Queue::Packets(n)),
        QueueLimit::Bytes(n) if n >= FULL_FRAME => Ok(Queue::Bytes(n)),
        QueueLimit::Bytes(n) => {
            Err(Fault::new(format!("a queue of {n} bytes is less than one full frame ({FULL_FRAME})"), HELP))
        }
        QueueLimit::Bdp(factor) => match factor.times_floor(u128::from(rate.bytes_in(rtt))) {
            Some(n) if n >= FULL_FRAME => Ok(Queue::Bytes(n)),
            Some(n) => Err(Fault::new(
                format!("{rate} × {rtt} makes a queue of {n} bytes, less than one full frame ({FULL_FRAME})"),
                HELP,
            )),
            None => Err(Fault::bare("a queue of more bytes than can be counted")),
        },
    }
}

/// Bytes of an Ethernet frame with 1500 bytes of IP, without FCS.
const FULL_FRAME: u64 = 1514;
