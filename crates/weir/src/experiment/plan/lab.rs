//! Settings of the lab alone: the box that the gateway runs on. The simulator's gateway is independent of the
//! box.

/// The lab's own settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lab {
    /// Box of the gateway.
    pub kind: BoxKind,
    /// IP version of the hosts.
    pub ip: Ip,
}

/// Box that the gateway runs on, at its interface towards the WAN.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BoxKind {
    /// A bridge between LAN and WAN.
    #[default]
    Bridge,
    /// A router between the networks of LAN and WAN.
    Router,
    /// A router that masquerades: clients have its address beyond it.
    Nat,
    /// The clients' host itself; there is no LAN.
    Host,
}

impl BoxKind {
    /// All kinds, with their names in experiments.
    pub const ALL: [(&'static str, BoxKind); 4] = [
        ("bridge", BoxKind::Bridge),
        ("router", BoxKind::Router),
        ("nat", BoxKind::Nat),
        ("host", BoxKind::Host),
    ];

    /// Returns the name in experiments.
    pub fn name(self) -> &'static str {
        BoxKind::ALL.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }

    /// Returns whether the box forwards by address.
    pub const fn routes(self) -> bool {
        matches!(self, BoxKind::Router | BoxKind::Nat)
    }
}

/// Version of the Internet Protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ip {
    /// IPv4.
    #[default]
    V4,
    /// IPv6.
    V6,
}
