//! The same metrics of several things.

use super::{of_several, Metric, Tables};
use crate::result::FlowResult;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// What was found of each metric of flows that comparisons have, in their order; `None` of what was not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<V>(Vec<(&'static Metric<FlowResult>, Option<V>)>);

impl<V: Copy> Values<V> {
    /// What `find` finds.
    pub fn of(find: impl Fn(&'static Metric<FlowResult>) -> Option<V>) -> Values<V> {
        Values(of_several(Tables::Comparisons).map(|m| (m, find(m))).collect())
    }

    /// Each metric with its value.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric<FlowResult>, Option<V>)> + '_ {
        self.0.iter().copied()
    }

    /// The value of the metric called `name`.
    pub fn get(&self, name: &str) -> Option<V> {
        self.0.iter().find(|(m, _)| m.name == name).and_then(|(_, v)| *v)
    }
}

/// Written like the objects that the metrics come from, `rtt_us.p50` and `rtt_us.p99` as an object `rtt_us`, without
/// what was not measured.
impl<V: Copy + Serialize> Serialize for Values<V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let measured: Vec<(&str, V)> = self.iter().filter_map(|(m, v)| Some((m.name, v?))).collect();
        let mut map = s.serialize_map(None)?;
        let object = |(name, _): &(&'static str, V)| name.split_once('.').map(|(object, _)| object);
        for same in measured.chunk_by(|a, b| object(a).is_some() && object(a) == object(b)) {
            match object(&same[0]) {
                Some(name) => map.serialize_entry(name, &Parts(same))?,
                None => map.serialize_entry(same[0].0, &same[0].1)?,
            }
        }
        map.end()
    }
}

/// Values of an object: by what comes after the dot of their names.
struct Parts<'a, V>(&'a [(&'static str, V)]);

impl<V: Serialize> Serialize for Parts<'_, V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().filter_map(|(name, v)| Some((name.split_once('.')?.1, v))))
    }
}
