//! Traffic of a running gateway: a row for each thing and direction, with the same keys for all things.

use super::quality::{Latency, Scores};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use weir_core::gateway::Direction;
use weir_core::quality::Quality;

/// Kinds of things that have traffic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The interface.
    Link,
    /// A site of a list, with all that is below it.
    Site,
    /// A customer of a list.
    Customer,
    /// A class of the file, with all that is below it.
    #[default]
    Class,
    /// All that no class takes.
    Unlisted,
    /// An address of the LAN with traffic that no class takes.
    Address,
}

impl Kind {
    /// Returns the name that stands in reports, in requests and in labels of metrics.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Link => "link",
            Kind::Site => "site",
            Kind::Customer => "customer",
            Kind::Class => "class",
            Kind::Unlisted => "unlisted",
            Kind::Address => "address",
        }
    }
}

/// Number of counters of a load that only grow.
pub const GROWING: usize = 12;

/// Amounts by which the growing counters of a thing exceed those of the classes that it is the sum of now.
/// They keep the counters from going back when another configuration gives it other classes.
pub type Carried = [i64; GROWING];

/// Counters of one thing in one direction. Those of bytes and packets only grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Load {
    /// Rate in bits per second since the look before this one.
    pub bps: f64,
    /// Bytes that passed, as the rate counts them; of a link with all headers, as Linux counts them.
    pub bytes: u64,
    /// Packets that passed, where they are counted: of TCP those with payload.
    pub packets: u64,
    /// Rate that it may have: that of the class, or the sum of those of its flows; 0 if there is none.
    pub target_bps: u64,
    /// Bytes of TCP whose ACKs are controlled.
    pub tcp_controlled_bytes: u64,
    /// Bytes of TCP whose ACKs pass as they come.
    pub tcp_passed_bytes: u64,
    /// Bytes that ACKs cannot slow: QUIC, other datagrams, other protocols.
    pub unresponsive_bytes: u64,
    /// Bytes of these that are QUIC, by port 443 or a long header.
    pub quic_bytes: u64,
    /// Bytes that waited in a queue, which does not tell TCP from others: the rest of the bytes.
    pub queued_bytes: u64,
    /// Packets dropped.
    pub dropped_packets: u64,
    /// Bytes of these packets.
    pub dropped_bytes: u64,
    /// Packets marked with Congestion Experienced.
    pub marked_packets: u64,
    /// Flows of TCP with controlled ACKs that are active now.
    pub active_flows: u64,
    /// Bytes acknowledged by receivers and held back now.
    pub held_bytes: u64,
    /// Packets of controlled TCP that were sent again.
    pub retransmitted_packets: u64,
    /// Packets of controlled TCP that others overtook before they came here.
    pub reordered_packets: u64,
    /// Round-trip times between here and the ends on the side of the WAN, of the last minutes.
    pub rtt_wan_us: Latency,
    /// Round-trip times between here and the ends on the side of the LAN, of the last minutes.
    pub rtt_lan_us: Latency,
    /// Scores of applications by these times and the loss of the last minutes, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<Scores>,
}

impl Load {
    /// Adds everything but the rate that it may have, and what has no sum.
    fn add(&mut self, other: &Load) {
        self.bps += other.bps;
        self.bytes += other.bytes;
        self.packets += other.packets;
        self.tcp_controlled_bytes += other.tcp_controlled_bytes;
        self.tcp_passed_bytes += other.tcp_passed_bytes;
        self.unresponsive_bytes += other.unresponsive_bytes;
        self.quic_bytes += other.quic_bytes;
        self.queued_bytes += other.queued_bytes;
        self.dropped_packets += other.dropped_packets;
        self.dropped_bytes += other.dropped_bytes;
        self.marked_packets += other.marked_packets;
        self.active_flows += other.active_flows;
        self.held_bytes += other.held_bytes;
        self.retransmitted_packets += other.retransmitted_packets;
        self.reordered_packets += other.reordered_packets;
    }

    /// Counters that only grow.
    fn growing(&mut self) -> [&mut u64; GROWING] {
        [
            &mut self.bytes,
            &mut self.packets,
            &mut self.tcp_controlled_bytes,
            &mut self.tcp_passed_bytes,
            &mut self.unresponsive_bytes,
            &mut self.quic_bytes,
            &mut self.queued_bytes,
            &mut self.dropped_packets,
            &mut self.dropped_bytes,
            &mut self.marked_packets,
            &mut self.retransmitted_packets,
            &mut self.reordered_packets,
        ]
    }

    /// Returns by how much counters that only grow are ahead of others.
    pub fn ahead_of(mut self, mut other: Load) -> Carried {
        let (own, others) = (self.growing(), other.growing());
        core::array::from_fn(|i| own[i].wrapping_sub(*others[i]) as i64)
    }

    /// Adds what is carried over to the counters that only grow.
    fn carry(&mut self, carried: &Carried) {
        self.growing().into_iter().zip(carried).for_each(|(n, more)| *n = n.saturating_add_signed(*more));
    }

    /// Takes what has no sum from the counters of the thing itself.
    fn keep_own(&mut self, own: &Load) {
        self.target_bps = own.target_bps;
        (self.rtt_wan_us, self.rtt_lan_us, self.score) = (own.rtt_wan_us, own.rtt_lan_us, own.score);
    }

    /// Returns the bytes that are told apart by how they respond. Those that waited in a queue are not, nor
    /// those that no class takes. Bytes of a link have all headers, and those of its parts have not.
    pub fn told_apart(&self) -> u64 {
        let parts = self.tcp_controlled_bytes + self.tcp_passed_bytes + self.unresponsive_bytes;
        parts.min(self.bytes.saturating_sub(self.queued_bytes))
    }

    /// Returns these counters of controlled TCP with those of the queue that its data waits in.
    pub fn with_queue(&self, queue: &Load) -> Load {
        Load {
            target_bps: self.target_bps,
            active_flows: self.active_flows,
            held_bytes: self.held_bytes,
            retransmitted_packets: self.retransmitted_packets,
            reordered_packets: self.reordered_packets,
            rtt_wan_us: self.rtt_wan_us,
            rtt_lan_us: self.rtt_lan_us,
            score: self.score,
            ..*queue
        }
    }

    /// Returns whether anything moved since the look before this one.
    pub fn is_active(&self) -> bool {
        self.bps > 0.0
    }
}

/// A row of a report: one thing in one direction.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Kind of thing.
    pub kind: Kind,
    /// Name in requests. Kind and name together are unique.
    pub name: String,
    /// Name for people, if a list has one.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// Direction: `out` or `in`.
    pub direction: String,
    /// Name of the site or class that it is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parent: Option<String>,
    /// True for a customer who is off: its traffic passes untouched.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub off: bool,
    /// Counters.
    #[serde(flatten)]
    pub load: Load,
}

/// A class as lists and files name it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Kind of thing that the class belongs to.
    pub kind: Kind,
    /// Name of that.
    pub name: String,
    /// Name for people.
    pub title: String,
    /// Direction: `out` or `in`.
    pub direction: &'static str,
    /// Index of the class above.
    pub parent: Option<usize>,
    /// True for a customer who is off.
    pub off: bool,
}

/// Counters of the class at an index of the whole configuration, without those below it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Counted {
    /// The index.
    pub place: usize,
    /// The counters.
    pub load: Load,
}

/// Part of the traffic that a report shows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shown {
    /// The link, sites, and the busiest customers and classes.
    #[default]
    Busiest,
    /// Everything.
    All,
    /// Classes at these indices, in order.
    These(Vec<usize>),
}

/// Counters of an engine at one moment, with what rows are made of.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    /// Interface.
    pub dev: String,
    /// Traffic of the interface, out and in.
    pub link: [Load; 2],
    /// Traffic that no class takes, out and in.
    pub unlisted: [Load; 2],
    /// Classes with traffic of their own.
    pub classes: Vec<Counted>,
    /// Names of all classes.
    pub places: Arc<Vec<Place>>,
    /// Part that is shown.
    pub shown: Shown,
    /// Distributions of round-trip times of what goes out, and of what comes in.
    pub quality: [Quality; 2],
    /// Amounts carried over by things, at the indices of [`Snapshot::loads`].
    pub carried: Vec<(usize, Carried)>,
}

/// Returns a class and those above it.
pub fn upwards(places: &[Place], place: usize) -> impl Iterator<Item = usize> + '_ {
    let above = |place: &usize| places[*place].parent;
    // A class is below no more classes than there are.
    let first = Some(place).filter(|&place| place < places.len());
    std::iter::successors(first, above).take(places.len())
}

/// Customers and classes that a report shows unless it is asked for all.
pub const BUSIEST: usize = 1_000;

impl Snapshot {
    /// Adds what another engine counted.
    pub fn add(&mut self, other: Snapshot) {
        let (ways, others) =
            (self.link.iter_mut().chain(&mut self.unlisted), other.link.iter().chain(&other.unlisted));
        ways.zip(others).for_each(|(all, part)| all.add(part));
        self.classes.extend(other.classes);
        self.carried.extend(other.carried);
        self.quality.iter_mut().zip(&other.quality).for_each(|(all, part)| all.merge(part));
    }

    /// Returns the sums of each class and all below it, then those of all classes of each direction, out and
    /// in.
    pub fn loads(&self) -> Vec<Load> {
        let count = self.places.len();
        let mut loads = vec![Load::default(); count + 2];
        for Counted { place, load } in &self.classes {
            for above in upwards(&self.places, *place) {
                loads[above].add(load);
            }
            if let Some(class) = self.places.get(*place) {
                loads[*place].keep_own(load);
                loads[count + usize::from(class.direction == "in")].add(load);
            }
        }
        loads
    }

    /// Returns the traffic of the interface, with the quality of all classes and the sums of what these
    /// count. The bytes, packets and rate are the interface's own.
    fn link(&self, sums: &[Load]) -> [Load; 2] {
        let mut link = [sums[0], sums[1]];
        for (way, own) in link.iter_mut().zip(&self.link) {
            (way.bps, way.bytes, way.packets) = (own.bps, own.bytes, own.packets);
        }
        for ((load, quality), direction) in
            link.iter_mut().zip(&self.quality).zip([Direction::Out, Direction::In])
        {
            (load.rtt_wan_us, load.rtt_lan_us) = Latency::of_sides(quality, direction);
        }
        link
    }

    /// Returns the rows. What a class counted counts for all those above it.
    pub fn rows(&self) -> Vec<Traffic> {
        let mut loads = self.loads();
        for (place, carried) in &self.carried {
            loads.get_mut(*place).into_iter().for_each(|load| load.carry(carried));
        }
        let link = self.link(&loads.split_off(self.places.len()));
        let mut shown: Vec<usize> = match &self.shown {
            Shown::These(places) => places.iter().copied().filter(|&place| place < loads.len()).collect(),
            _ => (0..loads.len()).collect(),
        };
        if self.shown == Shown::Busiest {
            self.keep_busiest(&mut shown, &loads);
        }
        let both =
            [(Kind::Link, &self.dev, link), (Kind::Unlisted, &Kind::Unlisted.name().into(), self.unlisted)];
        let both = both.into_iter().flat_map(|(kind, name, loads)| {
            ["out", "in"].into_iter().zip(loads).map(move |(direction, load)| Traffic {
                kind,
                name: name.clone(),
                direction: direction.into(),
                load,
                ..Traffic::default()
            })
        });
        let both = both.filter(|_| !matches!(self.shown, Shown::These(_)));
        both.chain(shown.into_iter().map(|place| self.row(place, loads[place]))).collect()
    }

    fn row(&self, place: usize, load: Load) -> Traffic {
        let Place { kind, name, title, direction, parent, off } = &self.places[place];
        let parent = parent.and_then(|parent| self.places.get(parent)).map(|parent| parent.name.clone());
        let (name, title, direction) = (name.clone(), title.clone(), (*direction).into());
        Traffic { kind: *kind, name, title, direction, parent, off: *off, load }
    }

    /// Leaves out the idlest customers and classes if there are too many.
    fn keep_busiest(&self, shown: &mut Vec<usize>, loads: &[Load]) {
        if shown.len() <= BUSIEST {
            return;
        }
        let (sites, mut rest): (Vec<usize>, Vec<usize>) =
            shown.iter().partition(|&&place| self.places[place].kind == Kind::Site);
        let busier = |a: &usize, b: &usize| loads[*b].bps.total_cmp(&loads[*a].bps).then(a.cmp(b));
        rest.retain(|&place| loads[place].is_active());
        if rest.len() > BUSIEST {
            rest.select_nth_unstable_by(BUSIEST, busier);
            rest.truncate(BUSIEST);
        }
        *shown = [sites, rest].concat();
        shown.sort_unstable();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(kind: Kind, name: &str, parent: Option<usize>) -> Place {
        Place { kind, name: name.into(), direction: "in", parent, ..Place::default() }
    }

    fn counted(place: usize, bps: f64, bytes: u64, dropped_packets: u64) -> Counted {
        let load = Load { bps, bytes, packets: bytes / 1_000, dropped_packets, ..Load::default() };
        Counted { place, load: Load { target_bps: 50, ..load } }
    }

    /// Two customers below a roof, which is below a tower with a third customer.
    fn tower() -> Snapshot {
        let places = [
            place(Kind::Customer, "1", Some(4)),
            place(Kind::Customer, "2", Some(4)),
            place(Kind::Customer, "3", Some(3)),
            place(Kind::Site, "tower", None),
            place(Kind::Site, "roof", Some(3)),
        ];
        let classes = vec![
            counted(0, 10.0, 7_000, 1),
            counted(1, 20.0, 9_000, 0),
            counted(2, 30.0, 4_000, 2),
            Counted { place: 3, load: Load { target_bps: 60, ..Load::default() } },
        ];
        let link = [Load { bytes: 5, ..Load::default() }, Load { bytes: 30_000, ..Load::default() }];
        Snapshot { dev: "eth1".into(), link, classes, places: Arc::new(places.into()), ..Snapshot::default() }
    }

    /// The bytes of the link have headers, which those of its classes have not.
    #[test]
    fn parts_of_a_link_are_those_of_all_classes() {
        let mut snapshot = tower();
        for Counted { load, .. } in &mut snapshot.classes[..2] {
            (load.tcp_controlled_bytes, load.unresponsive_bytes) = (3_000, 3_000);
        }
        (snapshot.classes[2].load.queued_bytes, snapshot.classes[2].load.active_flows) = (4_000, 2);
        let row = |name: &str| snapshot.rows().into_iter().rfind(|row| row.name == name).unwrap().load;
        let (link, roof, third) = (row("eth1"), row("roof"), row("3"));
        assert_eq!([link, roof, third].map(|load| load.told_apart()), [12_000, 12_000, 0]);
        assert_eq!((link.bytes, link.unresponsive_bytes, link.queued_bytes), (30_000, 6_000, 4_000));
        assert_eq!((link.active_flows, link.target_bps), (2, 0));
    }

    #[test]
    fn parents_are_the_sums_of_all_below_them() {
        let rows = tower().rows();
        let row = |name: &str| rows.iter().find(|row| row.name == name).unwrap();
        let load = |name: &str| row(name).load;
        assert_eq!((load("roof").bps, load("roof").bytes, load("roof").packets), (30.0, 16_000, 16));
        let tower = load("tower");
        assert_eq!((tower.bps, tower.bytes, tower.dropped_packets, tower.target_bps), (60.0, 20_000, 3, 60));
        assert_eq!(
            (row("2").parent.as_deref(), row("roof").parent.as_deref()),
            (Some("roof"), Some("tower"))
        );
        let link: Vec<_> = rows.iter().filter(|row| row.kind == Kind::Link).collect();
        assert_eq!((link[0].direction.as_str(), link[0].load.bytes, link[1].load.bytes), ("out", 5, 30_000));
        assert_eq!((link[0].load.dropped_packets, link[1].load.dropped_packets), (0, 3));
        assert_eq!((link[1].load.packets, link[1].load.bps), (0, 0.0));
    }

    #[test]
    fn several_engines_are_one_gateway() {
        let whole = tower().rows();
        let (mut first, mut second) = (tower(), tower());
        let rest = first.classes.split_off(1);
        (second.classes, second.link) = (rest, Default::default());
        first.add(second);
        assert_eq!(first.rows(), whole);
    }

    #[test]
    fn of_many_the_busiest_are_shown_and_all_sites() {
        let mut places: Vec<Place> =
            (0..3_000).map(|n| place(Kind::Customer, &n.to_string(), Some(3_000))).collect();
        places.push(place(Kind::Site, "tower", None));
        let classes = (0..3_000).map(|n| counted(n, if n < 1_500 { n as f64 } else { 0.0 }, 1, 0)).collect();
        let mut all = Snapshot { classes, places: Arc::new(places), ..Snapshot::default() };
        let names = |snapshot: &Snapshot, kind| {
            let rows = snapshot.rows();
            rows.into_iter().filter(|row| row.kind == kind).map(|row| row.name).collect::<Vec<_>>()
        };
        let customers = names(&all, Kind::Customer);
        assert_eq!((customers.len(), customers[0].as_str(), customers[999].as_str()), (1_000, "500", "1499"));
        assert_eq!(names(&all, Kind::Site), ["tower"]);
        all.shown = Shown::All;
        assert_eq!(names(&all, Kind::Customer).len(), 3_000);
        all.shown = Shown::These(vec![7, 9_999]);
        assert_eq!((names(&all, Kind::Customer), names(&all, Kind::Link).len()), (vec!["7".into()], 0));
    }

    #[test]
    fn a_row_has_its_keys_on_one_level() {
        let json = serde_json::to_value(&tower().rows()[4]).unwrap();
        let keys = ["kind", "name", "direction", "parent", "bps", "bytes", "packets", "target_bps"];
        assert!(keys.iter().all(|key| json.get(key).is_some()), "{json}");
        assert_eq!((&json["kind"], &json["bytes"]), (&"customer".into(), &7_000.into()));
    }
}
