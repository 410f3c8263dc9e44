//! Addresses that no customer has: they are not unicast, or never leave their link or host (RFC 6890).

use crate::experiment::config::diag::Fault;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use weir_core::gateway::Prefix;

/// Addresses with one meaning: the first, the length of their prefix, and the meaning.
struct Special(IpAddr, u8, &'static str);

const fn v4(a: u8, b: u8, bits: u8, what: &'static str) -> Special {
    Special(IpAddr::V4(Ipv4Addr::new(a, b, 0, 0)), bits, what)
}

const fn v6(first: u16, bits: u8, what: &'static str) -> Special {
    Special(IpAddr::V6(Ipv6Addr::new(first, 0, 0, 0, 0, 0, 0, 0)), bits, what)
}

static SPECIAL: [Special; 9] = [
    v4(0, 0, 8, "of no host"),
    v4(127, 0, 8, "loopback"),
    v4(169, 254, 16, "link-local"),
    v4(224, 0, 4, "multicast"),
    Special(IpAddr::V4(Ipv4Addr::BROADCAST), 32, "broadcast"),
    v6(0, 128, "of no host"),
    Special(IpAddr::V6(Ipv6Addr::LOCALHOST), 128, "loopback"),
    v6(0xfe80, 10, "link-local"),
    v6(0xff00, 8, "multicast"),
];

/// Returns the reason why a prefix is no customer's, if it has such an address in it.
pub(super) fn refused(prefix: Prefix) -> Option<Fault> {
    if prefix.bits() == 0 {
        let help = "it is left out: traffic of no customer goes to a `[[gateway.class]]`";
        return Some(Fault::new(format!("{prefix} is every address"), help));
    }
    SPECIAL.iter().find_map(|Special(first, bits, what)| {
        let special = Prefix::new(*first, *bits)?;
        let message = if special.covers(&prefix) {
            format!("{prefix} is {what}")
        } else if prefix.covers(&special) {
            format!("{prefix} has {special} in it, which is {what}")
        } else {
            return None;
        };
        Some(Fault::new(message, "it is left out: routers forward no such address of a customer's"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::config::addresses;

    /// First and last addresses of the ranges of RFC 6890, and their neighbours outside.
    #[test]
    fn customers_have_addresses_that_routers_forward() {
        let refused = |text: &str| refused(addresses::prefix(text).unwrap()).map(|fault| fault.message);
        for (text, reason) in [
            ("0.0.0.0/0", "0.0.0.0/0 is every address"),
            ("::/0", "::/0 is every address"),
            ("0.255.255.255", "0.255.255.255/32 is of no host"),
            ("127.0.0.1", "127.0.0.1/32 is loopback"),
            ("169.254.0.0/17", "169.254.0.0/17 is link-local"),
            ("224.0.0.1", "224.0.0.1/32 is multicast"),
            ("239.255.255.255", "239.255.255.255/32 is multicast"),
            ("255.255.255.255", "255.255.255.255/32 is broadcast"),
            ("128.0.0.0/1", "128.0.0.0/1 has 169.254.0.0/16 in it, which is link-local"),
            ("255.255.255.0/24", "255.255.255.0/24 has 255.255.255.255/32 in it, which is broadcast"),
            ("::/127", "::/127 has ::/128 in it, which is of no host"),
            ("::1", "::1/128 is loopback"),
            ("febf::1", "febf::1/128 is link-local"),
            ("ff02::1", "ff02::1/128 is multicast"),
            ("f000::/4", "f000::/4 has fe80::/10 in it, which is link-local"),
        ] {
            assert_eq!(refused(text).as_deref(), Some(reason));
        }
        for text in [
            "1.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "126.0.0.0/8",
            "128.0.0.0/8",
            "169.253.0.0/16",
            "169.255.0.0/16",
            "192.0.2.255",
            "223.255.255.255",
            "240.0.0.1",
            "255.255.255.254",
            "::2",
            "2000::/3",
            "fc00::/7",
            "fe00::/9",
            "fec0::/10",
        ] {
            assert_eq!(refused(text), None, "{text}");
        }
    }
}
