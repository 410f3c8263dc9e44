//! The part of a plan that only the lab has: the box that the gateway runs on. To the simulator's gateway all boxes are alike.

/// The lab's own settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lab {
    /// The gateway's box.
    pub kind: BoxKind,
    /// The protocol that hosts speak.
    pub ip: Ip,
}

/// The box that the gateway runs on, at its interface towards the WAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxKind {
    /// A bridge between LAN and WAN.
    #[default]
    Bridge,
    /// A router between the networks of LAN and WAN.
    Router,
    /// A router that masquerades: beyond it clients have its address.
    Nat,
    /// The clients' host itself; there is no LAN.
    Host,
}

impl BoxKind {
    /// Every kind, by the name used in experiments.
    pub const ALL: [(&'static str, BoxKind); 4] = [
        ("bridge", BoxKind::Bridge),
        ("router", BoxKind::Router),
        ("nat", BoxKind::Nat),
        ("host", BoxKind::Host),
    ];

    /// The name used in experiments.
    pub fn name(self) -> &'static str {
        BoxKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Does it forward by address?
    pub const fn routes(self) -> bool {
        matches!(self, BoxKind::Router | BoxKind::Nat)
    }
}

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}
