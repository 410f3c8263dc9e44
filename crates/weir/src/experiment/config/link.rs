//! Keys of a link, one row each: of `[path]`, of a `[[host]]`'s access link and of `weir wan`'s options.

mod limit;
mod loss;
mod trace;

use super::ack_filter;
use super::aqm;
use super::diag::Fault;
use super::keys::{self, put, set, Key};
use super::link_layer::{cells_words, CELLS};
use super::reader::Section;
use super::units::Probability;
use super::value::{int, one_of, some, FromValue, Size};
use std::path::PathBuf;
use toml::de::DeValue;
use weir_core::link::{Aqm, Config, Jitter, Law, Loss, RateTrace, Reorder};
use weir_core::queue::ack_filter::Params;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Link being read, with the round-trip time for multiples in its queue's limit, and the directory of its
/// traces and the duration that they are used for.
pub struct Draft {
    link: Config,
    rtt: Duration,
    run: Option<Duration>,
    directory: Option<PathBuf>,
}

impl Draft {
    fn of(link: Config) -> Draft {
        Draft { link, ..BARE }
    }
}

type LinkKey = Key<Draft>;

/// Link by default.
const BARE: Draft = Draft { link: Config::BARE, rtt: Duration::ZERO, run: None, directory: None };

/// Effect of jitter on the order of frames, by the names of `reorders`.
const ORDERS: [(&str, bool); 2] = [("kept", false), ("free", true)];

const QUEUES: &str = "a queue forms only in front of a rate";
/// Keys that make a queue.
const RATES: &[&str] = &["rate", "rate_trace", "delivery_trace"];
const ONE_RATE: &str = "a link has one rate, or a trace of it";
const ONE_LOSS: &str = "a link loses at random or periodically, not both";

/// Keys of a link.
pub static KEYS: &[LinkKey] = &[
    LinkKey::new("rate", |d, v| put(&mut d.link.rate, Rate::from_value(v)))
        .words(|d| d.link.rate.filter(|_| d.link.trace.is_none()).map(|rate| rate.to_string()))
        .option("rate", "RATE", "Rate of each direction, e.g. 10Mbit"),
    LinkKey::new("rate_trace", |d, v| trace::put(d, v, trace::rates))
        .instead_of(&["rate"], ONE_RATE)
        .words(|d| trace::words(d, |t| matches!(t, RateTrace::Rates(_))))
        .option("rate-trace", "FILE", "File of times and of the rate from each time on"),
    LinkKey::new("delivery_trace", |d, v| trace::put(d, v, trace::deliveries))
        .instead_of(&["rate", "rate_trace"], ONE_RATE)
        .words(|d| trace::words(d, |t| matches!(t, RateTrace::Opportunities(_))))
        .option("delivery-trace", "FILE", "mahimahi trace: the milliseconds at which 1,504 bytes may leave"),
    LinkKey::new("queue", |d, v| {
        let limit = limit::of_queue(v, d);
        set(&mut d.link.queue, limit)
    })
    .needs(RATES, QUEUES)
    .words(|d| d.link.rate.map(|_| format!("queue of {}", limit::counted(d.link.queue, d))))
    .option("queue", "LIMIT", "Limit of the queue of each direction: 100p, 64KiB or 1bdp"),
    LinkKey::new("mark", |d, v| {
        let threshold = limit::below_the_limit(v, d);
        put(&mut d.link.mark, threshold)
    })
    .needs(RATES, QUEUES)
    .words(|d| {
        d.link.mark.map(|mark| format!("marks what finds more than {} waiting", limit::counted(mark, d)))
    })
    .option("mark", "LIMIT", "Mark ECN-capable packets that find more than this in the queue"),
    LinkKey::new("aqm", |d, v| {
        let full = limit::full_frame(d);
        set(&mut d.link.aqm, aqm::read(v).map(|aqm| aqm.with_full_frames(full)))
    })
        .needs(RATES, QUEUES)
        .instead_of(&["mark"], "a queue has one way to say that it is too long")
        .words(|d| aqm::words(&d.link.aqm))
        .option("aqm", "NAME", "Active queue management: codel, fq-codel, red or dualpi2"),
    LinkKey::new("target", |d, v| aqm::target(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is how long frames may wait")
        .option("target", "TIME", "Acceptable queueing delay, for codel, fq-codel and dualpi2"),
    LinkKey::new("interval", |d, v| aqm::interval(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is a round trip of those whose data waits")
        .option("interval", "TIME", "Largest usual round-trip time, for codel and fq-codel; default 100ms"),
    LinkKey::new("ecn", |d, v| aqm::ecn(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is whether it marks")
        .option(
            "ecn",
            "BOOL",
            "Mark ECN-capable packets instead of dropping them, for codel, fq-codel and red: true or false",
        ),
    LinkKey::new("flows", |d, v| aqm::flows(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is the number of its queues")
        .option("flows", "N", "Number of queues of fq-codel; default 1024"),
    LinkKey::new("quantum", |d, v| aqm::quantum(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is what a queue may send in its turn")
        .option("quantum", "BYTES", "Bytes that a queue of fq-codel may send in its turn; default 1500 and the overhead"),
    LinkKey::new("red_min", |d, v| {
        let threshold = limit::threshold(v, d)?;
        threshold.map_or(Ok(()), |bytes| aqm::red_min(&mut d.link.aqm, bytes))
    })
        .needs(&["aqm"], "it is RED's lower threshold")
        .option("red-min", "LIMIT", "Lower threshold of red; default 5p"),
    LinkKey::new("red_max", |d, v| {
        let threshold = limit::threshold(v, d)?;
        threshold.map_or(Ok(()), |bytes| aqm::red_max(&mut d.link.aqm, bytes))
    })
        .needs(&["aqm"], "it is RED's upper threshold")
        .option("red-max", "LIMIT", "Upper threshold of red; default three times the lower one"),
    LinkKey::new("red_p", |d, v| aqm::red_p(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is RED's probability at the upper threshold")
        .option("red-p", "P", "Marking probability of red at the upper threshold; default 0.1"),
    LinkKey::new("red_weight", |d, v| aqm::red_weight(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is how slowly RED's average follows")
        .option("red-weight", "N", "Weight of an arrival in the average of red, as 2^-N; default 9"),
    LinkKey::new("step", |d, v| aqm::step(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is where the L4S queue begins to mark")
        .option(
            "step",
            "TIME",
            "Queueing delay from which dualpi2 marks every L4S packet; by default a ramp from 0.8 to 1.2 ms",
        ),
    LinkKey::new("coupling", |d, v| aqm::coupling(&mut d.link.aqm, v))
        .needs(&["aqm"], "it is how much more often L4S packets are marked")
        .option("coupling", "K", "Coupling factor of dualpi2; default 2"),
    LinkKey::new("ack_filter", |d, v| {
        let params = ack_filter::read(v, d.link.rate, limit::full_frame(d))?;
        set(&mut d.link.aqm, Ok(Aqm::AckFilter(params)))
    })
    .needs(RATES, QUEUES)
    .instead_of(&["aqm", "mark"], "a queue has one discipline")
    .words(|d| filter(d).map(|params| ack_filter::words(&params)))
    .option(
        "ack-filter",
        "POLICY",
        "Erase ACKs that newer ones make redundant: delayed-per-flow, delayed, classical, static or none, or a table of keys",
    ),
    LinkKey::new("overhead", |d, v| set(&mut d.link.overhead, int(v, 0..=256).map(|n| n as u16)))
        .words(overhead)
        .option("overhead", "BYTES", "Bytes that the rate counts for each packet besides its IP packet; default 14"),
    LinkKey::new("cells", |d, v| set(&mut d.link.cells, one_of(v, &CELLS, &[])))
        .words(|d| d.link.rate.and_then(|_| cells_words(d.link.cells)))
        .option("cells", "CELLS", "Cells that carry each packet with its overhead: none, atm or ptm"),
    LinkKey::new("burst", |d, v| set(&mut d.link.burst, Size::from_value(v).map(|Size(n)| n)))
        .needs(&["rate", "rate_trace"], "it is what a rate sends at once after a silence")
        .words(|d| (d.link.burst > 0).then(|| format!("bursts of {} bytes", d.link.burst)))
        .option("burst", "SIZE", "Depth of the token bucket: the bytes that may leave at once after a silence"),
    LinkKey::new("timer", |d, v| set(&mut d.link.timer, Duration::from_value(v)))
        .needs(&["burst"], "it is how often the token bucket is looked at")
        .words(|d| (d.link.timer > Duration::ZERO).then(|| format!("a timer of {}", d.link.timer)))
        .option("timer", "TIME", "Resolution of the token bucket's timer, e.g. 1ms for one of 1000 Hz; exact by default"),
    LinkKey::new("delay", |d, v| set(&mut d.link.delay, Duration::from_value(v)))
        .words(|d| (d.link.delay > Duration::ZERO).then(|| format!("delay {}", d.link.delay)))
        .option("delay", "TIME", "Delay of each direction, e.g. 20ms"),
    LinkKey::new("jitter", |d, v| set(&mut d.link.jitter.by, Duration::from_value(v)))
        .words(jitter)
        .option("jitter", "TIME", "Extra delay of each frame, from zero to this, uniformly distributed unless --jitter-law says otherwise"),
    LinkKey::new("jitter_law", |d, v| set(&mut d.link.jitter.law, one_of(v, &Law::ALL, &[])))
        .needs(&["jitter"], "it is how the jitter is distributed")
        .option("jitter-law", "LAW", "Distribution of the jitter: uniform, exponential, normal or pareto"),
    LinkKey::new("jitter_order", |d, v| set(&mut d.link.jitter.reorders, one_of(v, &ORDERS, &[])))
        .needs(&["jitter"], "without jitter frames come out in order")
        .option("jitter-order", "ORDER", "Order of frames under jitter: kept, or free to overtake each other"),
    LinkKey::new("reorder", |d, v| set(&mut d.link.reorder.trillionths, some(v)))
        .needs(&["reorder_by"], "it is how much later frames come out so that others overtake them")
        .words(|d| {
            let Reorder { trillionths, by } = d.link.reorder;
            d.link.reorder.overtakes().then(|| format!("{}% of frames {by} late", trillionths as f64 / 1e10))
        })
        .option("reorder", "P", "Probability that a frame is late by --reorder-by, so that others overtake it"),
    LinkKey::new("reorder_by", |d, v| set(&mut d.link.reorder.by, Duration::from_value(v)))
        .needs(&["reorder"], "it is the share of frames that come late")
        .option("reorder-by", "TIME", "Extra delay of the frames that --reorder picks"),
    LinkKey::new("loss", |d, v| set(&mut d.link.loss, Probability::from_value(v).map(random)))
        .words(|d| probability(d).map(|p| format!("loss {}%", p as f64 / 1e10)))
        .option("loss", "P", "Probability that a frame is lost, e.g. 0.01% or 0.0001"),
    LinkKey::new("loss_every", |d, v| set(&mut d.link.loss, every(v)))
        .instead_of(&["loss"], ONE_LOSS)
        .words(|d| period(d).map(|n| format!("1 frame in {n} lost")))
        .option("loss-every", "N", "Lose every n-th frame"),
    LinkKey::new("loss_p", |d, v| set(&mut loss::burst(d).enter, loss::chance(v)))
        .needs(&["loss_r"], "it is how probable losses begin after a frame, and loss_r how probable they end")
        .instead_of(&["loss", "loss_every"], ONE_LOSS)
        .words(loss::burst_words)
        .option("loss-p", "P", "Gilbert-Elliott loss: probability that the good state turns bad after a frame"),
    LinkKey::new("loss_r", |d, v| set(&mut loss::burst(d).leave, loss::chance(v)))
        .needs(&["loss_p"], "it is how probable losses end after a frame, and loss_p how probable they begin")
        .option("loss-r", "P", "Gilbert-Elliott loss: probability that the bad state turns good after a frame"),
    LinkKey::new("loss_bad", |d, v| set(&mut loss::burst(d).bad, loss::chance(v)))
        .needs(&["loss_p"], "it is the probability of loss in the bad state")
        .option("loss-bad", "P", "Probability of loss in the bad state; default 1"),
    LinkKey::new("loss_good", |d, v| set(&mut loss::burst(d).good, loss::chance(v)))
        .needs(&["loss_p"], "it is the probability of loss in the good state")
        .option("loss-good", "P", "Probability of loss in the good state; default 0"),
    LinkKey::new("loss_trace", |d, v| {
        let trace = trace::losses(v, d.directory.as_deref());
        set(&mut d.link.loss, trace.map(Loss::Trace))
    })
    .instead_of(&["loss", "loss_every", "loss_p"], ONE_LOSS)
    .words(|d| trace::lost(d, true).map(trace::loss_words))
    .option("loss-trace", "FILE", "File of 0 and 1, one for each frame: 1 is a lost frame"),
    LinkKey::new("loss_frames", |d, v| {
        let trace = trace::frames(v, d.directory.as_deref());
        set(&mut d.link.loss, trace.map(Loss::Trace))
    })
    .instead_of(&["loss", "loss_every", "loss_p", "loss_trace"], ONE_LOSS)
    .words(|d| trace::lost(d, false).map(trace::loss_words))
    .option("loss-frames", "FILE", "File of the numbers of the lost frames, counted from 1"),
    LinkKey::new("duplicate", |d, v| set(&mut d.link.damage.duplicate, loss::chance(v)))
        .words(|d| loss::share(d.link.damage.duplicate, "of frames come twice"))
        .option("duplicate", "P", "Probability that a frame is duplicated"),
    LinkKey::new("corrupt", |d, v| set(&mut d.link.damage.corrupt, loss::chance(v)))
        .words(|d| loss::share(d.link.damage.corrupt, "of frames come with a bit flipped"))
        .option("corrupt", "P", "Probability that a bit of a frame is flipped"),
];

/// Reads the keys of a link that stand alone, each from the first of `places` that has it. The default is a
/// bare wire. [`complete`] reads the others.
pub(super) fn begin(places: &[&Section]) -> Config {
    let run = places.first().and_then(|s| s.run());
    let mut draft = Draft { directory: directory(places), run, ..BARE };
    keys::read(KEYS.iter().filter(|key| key.stands_alone()), places, &mut draft);
    draft.link
}

fn directory(places: &[&Section]) -> Option<PathBuf> {
    places.first().map(|s| s.directory().to_path_buf())
}

/// Reads the keys that need a rate. A queue's limit may be a multiple of the bytes that the rate sends in
/// `rtt`. This is the round-trip time of the path, which the delays of all its links make.
pub(super) fn complete(link: Config, places: &[&Section], rtt: Duration) -> Config {
    let mut draft = Draft { link, rtt, directory: directory(places), ..BARE };
    keys::read(KEYS.iter().filter(|key| !key.stands_alone()), places, &mut draft);
    draft.link
}

/// Reads keys over those of a link that has them already. `rtt` is as in [`complete`].
pub(super) fn over(link: Config, s: &Section, rtt: Duration) -> Config {
    let mut draft = Draft { link, rtt, directory: directory(&[s]), run: s.run() };
    let known = |key: &str| match key {
        "rate" => link.rate.is_some(),
        "aqm" => link.aqm != Aqm::None,
        "burst" => link.burst > 0,
        "jitter" => link.jitter.by > Duration::ZERO,
        "reorder" | "reorder_by" => link.reorder.overtakes(),
        "loss_p" | "loss_r" => matches!(link.loss, Loss::Burst(_)),
        _ => false,
    };
    keys::read_over(KEYS, s, known, &mut draft);
    draft.link
}

/// Refuses other keys in a link's table.
pub(super) fn finish(s: Section) {
    s.finish();
}

/// Describes a link in words.
pub fn words(link: &Config) -> String {
    let words = keys::words(KEYS, &Draft::of(*link));
    match words.is_empty() {
        true => "bare".to_string(),
        false => words.join(", "),
    }
}

/// Describes the overhead, which matters to a rate alone.
fn overhead(draft: &Draft) -> Option<String> {
    let link = &draft.link;
    let unusual = link.rate.is_some() && link.overhead != BARE.link.overhead;
    unusual.then(|| format!("{} bytes of overhead for each packet", link.overhead))
}

/// Describes jitter in words.
fn jitter(draft: &Draft) -> Option<String> {
    let Jitter { by, law, reorders } = draft.link.jitter;
    let law = match law {
        Law::Uniform => "up to",
        Law::Exponential => "exponential, on average",
        Law::Normal => "normal around the delay, standard deviation",
        Law::Pareto => "Pareto around the delay, standard deviation",
    };
    let order = if reorders { ", order free" } else { "" };
    (by > Duration::ZERO).then(|| format!("jitter {law} {by}{order}"))
}

/// Returns the ACK filter of the queue.
fn filter(draft: &Draft) -> Option<Params> {
    match draft.link.aqm {
        Aqm::AckFilter(params) => Some(params),
        _ => None,
    }
}

/// Returns loss with a probability; no loss for zero.
fn random(p: Probability) -> Loss {
    match p.trillionths() {
        0 => Loss::None,
        trillionths => Loss::Random { trillionths },
    }
}

/// Reads the period of a loss. Whole numbers of TOML are signed.
fn every(value: &DeValue) -> Result<Loss, Fault> {
    let n = int(value, 1..=i64::MAX as u64)?;
    Ok(Loss::every(n).unwrap_or_default())
}

fn probability(draft: &Draft) -> Option<u64> {
    match draft.link.loss {
        Loss::Random { trillionths } => Some(trillionths),
        _ => None,
    }
}

fn period(draft: &Draft) -> Option<u64> {
    match draft.link.loss {
        Loss::Periodic { n } => Some(n.get()),
        _ => None,
    }
}
