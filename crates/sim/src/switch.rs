//! The switch behind a paced port. It discards fillers, and measures each paced class as a capture box on the
//! wire would.

use std::collections::{HashMap, VecDeque};
use weir_core::flow::Key;
use weir_core::frame::{Charge, Frame};
use weir_core::gateway::{ClassConfig, Compiled, Config, Direction};
use weir_core::link;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::pace::{Filler, Lanes, Probe, Size, Spread};
use weir_core::time::Time;
use weir_core::wire;

/// See the [module documentation](self). Other frames leave at their arrival.
#[derive(Debug)]
pub struct Switch {
    config: Compiled,
    direction: Direction,
    /// Probe of each class in the configuration, if it is paced in this direction.
    probes: Vec<Option<Probe>>,
    /// Lanes of each class in the configuration that has any, and the class of each lane.
    lanes: Vec<Option<(Lanes, Vec<usize>)>>,
    /// Classes of the flows seen so far.
    known: HashMap<Key, Option<usize>>,
    passing: VecDeque<(Time, Frame)>,
    discarded: u64,
    discarded_bytes: u64,
}

impl Switch {
    /// Port that the paced port is connected to.
    pub const IN: Port = Port(0);
    /// Port by which all frames except fillers leave.
    pub const OUT: Port = Port(1);

    /// Returns a switch behind the port that paces this configuration's classes in this direction. Their
    /// rates are known to be possible there.
    pub fn new(config: Config, direction: Direction) -> Switch {
        let line = config.port.line;
        let probe = |class: &ClassConfig| {
            let pace = class.share.filter(|_| class.direction == direction)?.pace?;
            Some(Probe::new(pace.rate(line)?, pace.counts, line))
        };
        let probes = config.classes.iter().map(probe).collect();
        let lanes = lanes(&config);
        Switch {
            config: config.into(),
            lanes,
            direction,
            probes,
            known: HashMap::new(),
            passing: VecDeque::new(),
            discarded: 0,
            discarded_bytes: 0,
        }
    }

    /// Returns the measurements of the class with this index in the configuration, if it is paced in this
    /// direction.
    pub fn probe(&self, class: usize) -> Option<&Probe> {
        self.probes.get(class)?.as_ref()
    }

    /// Returns the number of discarded fillers, and the bytes that they took on the wire.
    pub fn discarded(&self) -> (u64, u64) {
        (self.discarded, self.discarded_bytes)
    }

    fn measure(&mut self, at: Time, head: &[u8], frame: &Frame) {
        let Ok(packet) = wire::any_packet(head, frame.len()) else { return };
        let key = Key::of_packet(head, &packet);
        let (config, direction) = (&self.config, self.direction);
        let class = *self.known.entry(key).or_insert_with(|| config.classify(direction, &key));
        let Some(class) = class else { return };
        let lane =
            self.lanes[class].as_mut().map(|(users, classes)| classes[users.lane(&key, |_| true) as usize]);
        let Some(probe) = &mut self.probes[lane.unwrap_or(class)] else { return };
        let charge = Charge::of(frame, head, link::Config::NETEM);
        probe.record(at, Size::of(charge, link::Config::NETEM, frame.len()));
    }
}

/// Returns the lanes of each class that has any. A box on the wire numbers them in the order in which it sees
/// their users.
fn lanes(config: &Config) -> Vec<Option<(Lanes, Vec<usize>)>> {
    let part = |class: &ClassConfig| class.share.and_then(|share| share.spread);
    let mut further = (0..config.classes.len()).filter(|&i| part(&config.classes[i]) == Some(Spread::Lane));
    let of = |(i, class): (usize, &ClassConfig)| {
        let Some(Spread::Over(each, count)) = part(class) else { return None };
        let further = further.by_ref().take(count.saturating_sub(1) as usize);
        Some((Lanes::new(each, count, config.seed), std::iter::once(i).chain(further).collect()))
    };
    config.classes.iter().enumerate().map(of).collect()
}

impl Node for Switch {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        let head = cx.frames.bytes(&frame);
        if Filler::is_discarded(head) {
            // A frame longer than any real one is a run of fillers, whose lengths differ by a byte or so.
            let bytes = Filler::on_wire(frame.len());
            self.discarded += bytes.div_ceil(self.config.port.longest);
            self.discarded_bytes += bytes;
            return cx.frames.absorb(frame);
        }
        self.measure(cx.now, head, &frame);
        self.passing.push_back((cx.now, frame));
    }

    fn poll_transmit(&mut self, _: &mut Cx<'_>, writable: PortSet) -> Option<Transmit> {
        if !writable.contains(Switch::OUT) {
            return None;
        }
        let (at, frame) = self.passing.pop_front()?;
        Some(Transmit { port: Switch::OUT, at, frame })
    }

    fn next_deadline(&self, writable: PortSet) -> Option<Time> {
        self.passing.front().filter(|_| writable.contains(Switch::OUT)).map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::class::Spec;
    use weir_core::gateway::ClassConfig;
    use weir_core::pace::{Backend, Class, Counts, Port as Paced, Target};
    use weir_core::queue::{self, Kind, QueueLimit};
    use weir_core::rate::Rate;
    use weir_core::rig::{Rig, TestFrame};
    use weir_core::sharing::Sharing;
    use weir_core::wire::build::SegmentBuilder;

    /// Returns a class of all outgoing traffic, at half of a line of 1 Gb/s.
    fn config() -> Config {
        let pace =
            Class { target: Target::Rate(Rate::mbit(500)), counts: Counts::Frame, backend: Backend::Gap };
        let fifo = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Fifo, tins: None };
        let class = ClassConfig {
            name: "half".into(),
            direction: Direction::Out,
            matches: Vec::new(),
            ack: None,
            share: Some(Spec { queue: Some(fifo), pace: Some(pace), ..Spec::of(None) }),
            nested: None,
        };
        let port = Paced { line: Some(Rate::mbit(1000)), runs: true, ..Paced::default() };
        Config { classes: vec![class], port, ..Config::default() }
    }

    #[test]
    fn what_a_paced_port_sends_is_told_apart_and_measured() {
        let mut port = Rig::new(Sharing::new(config(), 14).expect("a sound configuration"));
        let packet = TestFrame::bytes(&SegmentBuilder::v4([10, 0, 0, 1], [10, 0, 0, 2]).build()).long(1514);
        for _ in 0..4 {
            port.inject(weir_core::gateway::LAN, packet.clone());
        }
        let sent = port.run_until(Time::from_secs(1));
        port.finish();
        // There are four packets and three holes, each a run of one filler, 1,498 bytes on the wire.
        assert_eq!(sent.len(), 7);
        let mut switch = Rig::new(Switch::new(config(), Direction::Out));
        for frame in sent {
            switch.at(frame.at).inject(Switch::IN, TestFrame::bytes(&frame.bytes).long(frame.len));
        }
        let passed: Vec<u64> =
            switch.run_until(Time::from_secs(2)).iter().map(|sent| sent.at.as_nanos()).collect();
        // 1518 bytes at half the line take 3036 byte times of 8 ns.
        assert_eq!(passed, [0, 24_288, 48_576, 72_864]);
        assert_eq!(switch.node().discarded(), (3, 3 * 1498));
        let probe = switch.node().probe(0).expect("a paced class");
        assert_eq!((probe.millibits(), probe.most_together()), (Some(500_000_000_000), 1));
        assert_eq!(switch.node().probe(1).map(Probe::packets), None);
        switch.finish();
    }
}
