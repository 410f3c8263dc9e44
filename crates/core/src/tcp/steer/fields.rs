//! The fields of a packet that is not TCP which some rule looks at. Packets that are alike in these fields
//! are of one class, so a hook learns the class of all of them at once.

use crate::tcp::track::Key;

/// A set of the parts of a [`Key`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Fields(pub u32);

impl Fields {
    /// Nothing is counted.
    pub const NONE: Fields = Fields(0);
    /// Source address.
    pub const SRC: Fields = Fields(1 << 0);
    /// Destination address.
    pub const DST: Fields = Fields(1 << 1);
    /// Source port.
    pub const SRC_PORT: Fields = Fields(1 << 2);
    /// Destination port.
    pub const DST_PORT: Fields = Fields(1 << 3);
    /// Outer VLAN identifier.
    pub const VLAN: Fields = Fields(1 << 4);
    /// IP protocol.
    pub const PROTOCOL: Fields = Fields(1 << 5);
    /// Packets are counted, whatever is looked at.
    pub const COUNTED: Fields = Fields(1 << 6);
    /// Packets come in from the WAN: those that go out have other keys.
    pub const INWARD: Fields = Fields(1 << 8);
    /// Segments of data may be [asked for](crate::tcp::steer::Slot::ask).
    pub const MEASURED: Fields = Fields(1 << 9);
    /// Flows that ACKs do not slow have [virtual queues](crate::tcp::steer::FlowQueues).
    pub const FAIR: Fields = Fields(1 << 10);
    /// Flows that have a rate each have virtual queues, and [new ones](crate::tcp::steer::Strangers) share a
    /// record per source.
    pub const EACH: Fields = Fields(1 << 11);

    /// These and the others.
    #[must_use]
    pub const fn and(self, others: Fields) -> Fields {
        Fields(self.0 | others.0)
    }

    /// Returns whether all of the others are among these.
    pub const fn has(self, others: Fields) -> bool {
        self.0 & others.0 == others.0
    }

    /// The key with nothing else in it than these, and which way it goes: in place of an inner VLAN
    /// identifier, at which no rule looks.
    pub fn of(self, key: &Key) -> Key {
        let keep = |field, bytes: [u8; 16]| if self.has(field) { bytes } else { [0; 16] };
        let port = |field, port| if self.has(field) { port } else { 0 };
        let id = if self.has(Fields::VLAN) { 0x0fff } else { 0 };
        let protocol = if self.has(Fields::PROTOCOL) { 0xf000 } else { 0 };
        Key {
            src: keep(Fields::SRC, key.src),
            dst: keep(Fields::DST, key.dst),
            src_port: port(Fields::SRC_PORT, key.src_port),
            dst_port: port(Fields::DST_PORT, key.dst_port),
            tags: [
                key.tags[0] & (id | protocol),
                key.tags[1] & protocol | u16::from(self.has(Fields::INWARD)),
            ],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::packet::wire::UDP;

    #[test]
    fn what_nobody_looks_at_is_the_same_for_all() {
        let key = |src: &str, dst: &str, tags| {
            Key::new(UDP, src.parse().unwrap(), dst.parse().unwrap()).tagged(tags)
        };
        let one = key("10.0.0.1:5000", "10.9.0.1:443", [7, 9]);
        let other = key("10.0.0.2:5001", "10.9.0.1:443", [7, 8]);
        assert_eq!(Fields::DST.of(&one), Fields::DST.of(&other));
        assert_eq!(Fields::COUNTED.of(&one), Key::default());
        for field in [Fields::SRC, Fields::SRC_PORT] {
            assert_ne!(field.of(&one), field.of(&other));
        }
        let all = Fields((1 << 6) - 1);
        let protocols = Fields::PROTOCOL.of(&one);
        assert_eq!((protocols.protocol(), protocols.vlan()), (UDP, 0));
        assert_eq!((Fields::VLAN.of(&one).vlan(), Fields::VLAN.of(&one).protocol()), (7, 0));
        assert_eq!(all.of(&one), one.tagged([7, 0]));
        assert_ne!(
            all.and(Fields::INWARD).of(&one),
            all.of(&one),
            "in the other direction it is of another class"
        );
    }
}
