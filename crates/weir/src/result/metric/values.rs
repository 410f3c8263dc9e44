//! Metrics shared by several things.

use super::{of_several, Metric, Tables};
use crate::result::FlowResult;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// Values of the compared flow metrics, in their order; `None` if not measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Values<V>(Vec<(&'static Metric<FlowResult>, Option<V>)>);

impl<V: Copy> Values<V> {
    /// Collects the values that `find` returns.
    pub fn of(find: impl Fn(&'static Metric<FlowResult>) -> Option<V>) -> Values<V> {
        Values(of_several(Tables::Comparisons).map(|m| (m, find(m))).collect())
    }

    /// Iterates over the metrics with their values.
    pub fn iter(&self) -> impl Iterator<Item = (&'static Metric<FlowResult>, Option<V>)> + '_ {
        self.0.iter().copied()
    }

    /// Returns the value of the metric called `name`.
    pub fn get(&self, name: &str) -> Option<V> {
        self.0.iter().find(|(m, _)| m.name == name).and_then(|(_, v)| *v)
    }
}

/// Writes objects as in the source of the metrics: `rtt_us.p50` and `rtt_us.p99` become an object `rtt_us`.
/// Unmeasured values are left out.
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

/// Values of an object, keyed by the part of their names after the dot.
struct Parts<'a, V>(&'a [(&'static str, V)]);

impl<V: Serialize> Serialize for Parts<'_, V> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_map(self.0.iter().filter_map(|(name, v)| Some((name.split_once('.')?.1, v))))
    }
}
