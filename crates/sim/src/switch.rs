//! The switch that a paced port is connected to: it discards what fills holes, and measures each paced class as a capture box on the wire would.

use std::collections::{HashMap, VecDeque};
use weir_core::flow::Key;
use weir_core::frame::{Charge, Frame};
use weir_core::gateway::{Compiled, Config, Direction};
use weir_core::link;
use weir_core::node::{Cx, Node, Port, PortSet, Transmit};
use weir_core::pace::{Filler, Probe, Size};
use weir_core::time::Time;
use weir_core::wire;

/// See the [module documentation](self). A frame that is not discarded leaves as it comes.
#[derive(Debug)]
pub struct Switch {
    config: Compiled,
    direction: Direction,
    /// By class of the configuration, if it is paced and goes this way.
    probes: Vec<Option<Probe>>,
    /// The classes of flows that were seen.
    known: HashMap<Key, Option<usize>>,
    passing: VecDeque<(Time, Frame)>,
    discarded: u64,
    discarded_bytes: u64,
}

impl Switch {
    /// Where the paced port is connected.
    pub const IN: Port = Port(0);
    /// Where everything leaves that is no filler.
    pub const OUT: Port = Port(1);

    /// A switch behind the port at which classes of this configuration are paced that go in this direction. Their rates are known to be possible there.
    pub fn new(config: Config, direction: Direction) -> Switch {
        let line = config.port.line;
        let probe = |class: &weir_core::gateway::ClassConfig| {
            let pace = class.share.filter(|_| class.direction == direction)?.pace?;
            Some(Probe::new(pace.rate(line)?, pace.counts, line))
        };
        let probes = config.classes.iter().map(probe).collect();
        Switch {
            config: config.into(),
            direction,
            probes,
            known: HashMap::new(),
            passing: VecDeque::new(),
            discarded: 0,
            discarded_bytes: 0,
        }
    }

    /// What was seen of the class with this index in the configuration, if it is paced and goes this way.
    pub fn probe(&self, class: usize) -> Option<&Probe> {
        self.probes.get(class)?.as_ref()
    }

    /// Fillers that were discarded, and the bytes that they took on the wire.
    pub fn discarded(&self) -> (u64, u64) {
        (self.discarded, self.discarded_bytes)
    }

    fn measure(&mut self, at: Time, head: &[u8], frame: &Frame) {
        let Ok(packet) = wire::any_packet(head, frame.len()) else { return };
        let key = Key::of_packet(head, &packet);
        let (config, direction) = (&self.config, self.direction);
        let class = *self.known.entry(key).or_insert_with(|| config.classify(direction, &key));
        let Some(Some(probe)) = class.map(|class| &mut self.probes[class]) else { return };
        let charge = Charge::of(frame, head, link::Config::NETEM);
        probe.record(at, Size::of(charge, link::Config::NETEM, frame.len()));
    }
}

impl Node for Switch {
    fn handle_frame(&mut self, cx: &mut Cx<'_>, _: Port, frame: Frame) {
        let head = cx.frames.bytes(&frame);
        if Filler::is_discarded(head) {
            // A frame that is longer than any is a run of fillers, all of which but the last byte or so are as long as each other.
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

    /// A class of all that goes out, at half of a line of 1 Gb/s.
    fn config() -> Config {
        let pace =
            Class { target: Target::Rate(Rate::mbit(500)), counts: Counts::Frame, backend: Backend::Gap };
        let fifo = queue::Config { limit: QueueLimit::Packets(100), kind: Kind::Fifo };
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
        // Four packets and three holes, each a run of one filler, 1,498 bytes on the wire.
        assert_eq!(sent.len(), 7);
        let mut switch = Rig::new(Switch::new(config(), Direction::Out));
        for frame in sent {
            switch.at(frame.at).inject(Switch::IN, TestFrame::bytes(&frame.bytes).long(frame.len));
        }
        let passed: Vec<u64> =
            switch.run_until(Time::from_secs(2)).iter().map(|sent| sent.at.as_nanos()).collect();
        // 1518 bytes at half the line: every 3036 byte times of 8 ns.
        assert_eq!(passed, [0, 24_288, 48_576, 72_864]);
        assert_eq!(switch.node().discarded(), (3, 3 * 1498));
        let probe = switch.node().probe(0).expect("a paced class");
        assert_eq!((probe.millibits(), probe.most_together()), (Some(500_000_000_000), 1));
        assert_eq!(switch.node().probe(1).map(Probe::packets), None);
        switch.finish();
    }
}
