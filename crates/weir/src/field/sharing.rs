//! The queues of a gateway as an engine of the driver: all frames of a direction that has some come to it.

use super::control::{Desk, Remote, Running, Version};
use super::report;
use super::writer::Writer;
use super::{say_ready, setup};
use crate::output::Target;
use crate::result::observe;
use crate::result::running::{GatewayClass, GatewayReport};
use std::path::PathBuf;
use std::sync::Arc;
use weir_core::gateway::Config;
use weir_core::link;
use weir_core::node::Cx;
use weir_core::sharing::Sharing;
use weir_core::time::{Duration, Time};
use weir_io::driver::{Engine, Report};
use weir_io::supervise::{Letters, Supervisor};

/// Rates are those since a look that is at least so long ago.
const LEAST: Duration = Duration::from_millis(500);

/// Runs until it is told to stop. Arguments are those of [`super::gateway`].
pub(super) fn run(
    version: Version,
    path: Option<PathBuf>,
    seed: u64,
    json: Option<Target>,
) -> Result<(), String> {
    let driver = setup::queues_driver(&version.file);
    let supervisor = Supervisor::prepare(&setup::gateway(&version.file)).map_err(|p| p.to_string())?;
    let json = json.map(Arc::new);
    tracing::info!(dev = version.file.dev, "queueing");
    let running = Running::new(version, path, seed);
    supervisor
        .run(
            |mut launch| {
                let version = running.version();
                let sharing = sharing(&version, seed).map_err(std::io::Error::other)?;
                let letters = launch.letters.take().map(|letters| (letters, version));
                let engine = SharingEngine {
                    splits: setup::splits(sharing.config()),
                    sharing,
                    restarts: launch.restarts,
                    writer: Writer::new(json.clone()),
                    looks: Looks::default(),
                    seed,
                    letters,
                    remote: None,
                };
                launch.run(engine, driver).map(drop)
            },
            |_| {},
            &mut Desk::new(&running),
        )
        .map_err(|e| e.to_string())
}

/// The node for what a version says, on a host whose secret is `seed`.
pub(super) fn sharing(version: &Version, seed: u64) -> Result<Sharing, String> {
    let mut config = Config { seed, ..version.file.gateway.clone() };
    let queues = config.classes.iter_mut().filter_map(|c| c.share.as_mut()?.queue.as_mut());
    queues.for_each(|queue| queue.kind = queue.kind.seeded(seed));
    Sharing::new(config, link::Config::NETEM).map_err(|refused| refused.why.to_string())
}

/// Bytes that had left each class.
#[derive(Clone, Default)]
struct Look {
    at: Option<Time>,
    bytes: Vec<u64>,
}

/// The last two looks: the last one may have been a moment ago.
#[derive(Default)]
pub(super) struct Looks {
    older: Look,
    newer: Look,
}

impl Looks {
    /// The classes now, with their rates, and whether these are known: there was a look before.
    pub(super) fn look(&mut self, sharing: &Sharing, now: Time) -> (Vec<GatewayClass>, bool) {
        let classes = observe::queues(sharing);
        let bytes: Vec<u64> = classes.iter().map(|c| c.queue.as_ref().map_or(0, |q| q.bytes)).collect();
        if self.newer.at.is_none_or(|at| now.since(at) >= LEAST) {
            self.older = std::mem::replace(&mut self.newer, Look { at: Some(now), bytes: bytes.clone() });
        }
        let older = &self.older;
        let lasted = older.at.map_or(0.0, |at| now.since(at).as_secs_f64());
        let rate = |i: usize| match lasted > 0.0 {
            true => (bytes[i] - older.bytes.get(i).copied().unwrap_or(0)) as f64 * 8.0 / lasted,
            false => 0.0,
        };
        let class = |(i, mut class): (usize, crate::result::ClassResult)| {
            class.bps = rate(i);
            GatewayClass { class, bytes: bytes[i], ..GatewayClass::default() }
        };
        (classes.into_iter().enumerate().map(class).collect(), older.at.is_some())
    }
}

/// The engine.
struct SharingEngine {
    sharing: Sharing,
    /// Are giant segments cut?
    splits: bool,
    restarts: u32,
    writer: Writer,
    looks: Looks,
    seed: u64,
    /// The way to the supervisor, until the thread has it that serves it.
    letters: Option<(Letters, Arc<Version>)>,
    remote: Option<Remote<Sharing, Sharing>>,
}

impl SharingEngine {
    /// What is said of it now, and whether rates are known.
    fn look(&mut self, report: &Report<'_>) -> (GatewayReport, bool) {
        let (classes, known) = self.looks.look(&self.sharing, report.now);
        let report = GatewayReport {
            schema: crate::result::SCHEMA,
            wall_s: report.wall.as_secs_f64(),
            degraded: report.degraded.clone(),
            gateway: report::in_this_process(observe::sharing(&self.sharing, report.cpu)),
            classes,
            steering: report::steering(report, self.restarts),
            ..GatewayReport::default()
        };
        (report, known)
    }
}

impl Engine for SharingEngine {
    type Node = Sharing;
    fn node(&mut self) -> &mut Sharing {
        &mut self.sharing
    }
    fn started(&mut self) {
        let seed = self.seed;
        let make = move |next: &Version, _: &Version| sharing(next, seed);
        self.remote = self.letters.take().map(|(letters, version)| Remote::new(letters, version, make));
        say_ready(self.restarts);
    }
    fn change(&mut self, cx: &mut Cx<'_>) -> bool {
        let Some((remote, next)) = self.remote.as_mut().and_then(|r| r.next().map(|next| (r, next))) else {
            return false;
        };
        remote.done(Ok(self.sharing.replace(cx, next)));
        self.splits = setup::splits(self.sharing.config());
        self.looks = Looks::default();
        false
    }
    fn splits(&self) -> bool {
        self.splits
    }
    fn report(&mut self, report: &Report<'_>) {
        if self.writer.is_due(report) {
            let (written, _) = self.look(report);
            self.writer.write(report, written);
        }
        // Queues are not asked for one address.
        if self.remote.as_ref().and_then(Remote::asked).is_some() {
            let told = self.look(report);
            self.remote.iter().for_each(|remote| remote.tell(told.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::Source;
    use weir_core::queue::Kind;

    fn version(link: &str, ceil: &str) -> Version {
        let text = format!(
            "[ports]\ndev = 'e'\n[[gateway.class]]\nname = 'link'\nrate = '{link}'\n[[gateway.class]]\nname = 'a'\n\
             parent = 'link'\n{ceil}\ndiscipline = 'pfq'"
        );
        Version::read(Source::new("g.toml", text)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// 65,536 bytes take 1.05 ms at 500 Mbit/s.
    #[test]
    fn giants_are_cut_where_one_takes_a_millisecond() {
        let splits = |link, ceil| setup::splits(sharing(&version(link, ceil), 7).unwrap().config());
        assert_eq!([splits("499Mbit", ""), splits("500Mbit", "")], [true, false]);
        assert!(splits("1Gbit", "ceil = '100Mbit'"));
    }

    #[test]
    fn hashes_have_the_host_s_secret() {
        let built = sharing(&version("1Gbit", ""), 7).unwrap();
        let queue = built.config().classes[1].share.and_then(|s| s.queue).unwrap();
        assert!(matches!(queue.kind, Kind::Pfq(params) if params.seed == 7) && built.config().seed == 7);
    }
}
