//! Names of places in a network: ports, prefixes, interfaces.

use super::decimal::whole;
use super::diag::Fault;
use crate::experiment::plan::Ports;
use core::net::Ipv4Addr;
use core::ops::RangeInclusive;
use weir_core::gateway::Prefix;

const PORTS_HELP: &str = "ports are 1 to 65535: 5001, \"5001\", or a range \"5001-5008\"";

/// Parses ports: `5001` or `5001-5008`.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, Fault> {
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), PORTS_HELP);
    let port = |t: &str| match whole(t.trim()) {
        Some(p @ 1..) => Ok(p),
        _ => Err(wrong("not a port or a range of ports")),
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(wrong("a range that ends before it begins"));
    }
    Ok(first..=last)
}

/// Returns the server ports of `count` flows: one for all, or a range of exactly one for each.
pub fn server_ports(range: RangeInclusive<u16>, count: u32) -> Result<Ports, Fault> {
    let n = u32::from(range.end() - range.start()) + 1;
    match n {
        1 => Ok(Ports::Shared(*range.start())),
        n if n == count => Ok(Ports::Each { first: *range.start() }),
        n => Err(Fault::new(
            format!("{n} ports for {count} flows"),
            "give one port that all flows share, or one for each flow",
        )),
    }
}

/// Parses an IP prefix: `10.1.0.0/16`, `2001:db8::/32`. An address alone is the prefix of that address.
pub fn prefix(text: &str) -> Result<Prefix, Fault> {
    const HELP: &str = "prefixes are \"10.1.0.0/16\", \"2001:db8::/32\" or an address alone";
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), HELP);
    let (addr, len) = match text.split_once('/') {
        Some((a, l)) => (a, Some(l)),
        None => (text, None),
    };
    let no_prefix = || {
        let guess = meant(text).map_or(String::new(), |meant| format!("did you mean \"{meant}\"? "));
        Fault::new(format!("\"{text}\" is not an IP prefix"), format!("{guess}{HELP}"))
    };
    let addr: core::net::IpAddr = addr.trim().parse().map_err(|_| no_prefix())?;
    let width: u8 = if addr.is_ipv4() { 32 } else { 128 };
    let len = match len {
        None => width,
        Some(l) => whole(l.trim()).ok_or_else(no_prefix)?,
    };
    if len > width {
        return Err(wrong(&format!("longer than an address of {width} bits")));
    }
    Prefix::new(addr, len).ok_or_else(|| {
        let kept = match addr {
            core::net::IpAddr::V4(a) => {
                core::net::IpAddr::from((a.to_bits() & mask(len, 32) as u32).to_be_bytes())
            }
            core::net::IpAddr::V6(a) => core::net::IpAddr::from((a.to_bits() & mask(len, 128)).to_be_bytes()),
        };
        Fault::new(
            format!("\"{text}\" has bits set beyond its length of {len}"),
            format!("did you mean \"{kept}/{len}\", or the address alone, \"{addr}\"?"),
        )
    })
}

/// Most prefixes that are proposed for a range of addresses.
const MOST_PROPOSED: usize = 8;

/// Returns the prefixes that somebody may have meant who writes a netmask, a range, zeros in front of
/// numbers, or brackets.
fn meant(text: &str) -> Option<String> {
    if let Some((first, last)) = text.split_once('-') {
        return range(first.trim().parse().ok()?, last.trim().parse().ok()?);
    }
    if let Some((address, mask)) = text.split_once('/') {
        let (address, len) = (address.trim().parse::<Ipv4Addr>().ok()?, netmask(mask.trim().parse().ok()?)?);
        let network = Ipv4Addr::from_bits(address.to_bits() & mask_of(len));
        return Some(format!("{network}/{len}"));
    }
    if let Some(inner) = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')) {
        return inner.parse::<core::net::Ipv6Addr>().ok().map(|address| address.to_string());
    }
    let octets: Vec<u8> = text.split('.').map(|octet| octet.parse().ok()).collect::<Option<_>>()?;
    Some(Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).to_string())
}

/// Returns the prefixes that have all addresses from `first` to `last`, if they are few.
fn range(first: Ipv4Addr, last: Ipv4Addr) -> Option<String> {
    let (mut next, last) = (u64::from(first.to_bits()), u64::from(last.to_bits()));
    let mut prefixes = Vec::new();
    while next <= last {
        // The largest prefix that begins here and does not go beyond the end.
        let size =
            (0..=32).map(|bits| 1u64 << bits).rfind(|size| next % size == 0 && next + size - 1 <= last)?;
        prefixes.push(format!("{}/{}", Ipv4Addr::from_bits(next as u32), 32 - size.trailing_zeros()));
        next += size;
    }
    (1..=MOST_PROPOSED).contains(&prefixes.len()).then(|| prefixes.join(" "))
}

/// Returns the length of the prefixes that have this netmask. Lengths below 8 and above 31 are nobody's.
pub fn netmask(mask: Ipv4Addr) -> Option<u8> {
    let len = mask.to_bits().leading_ones() as u8;
    ((8..32).contains(&len) && mask.to_bits() == mask_of(len)).then_some(len)
}

fn mask_of(len: u8) -> u32 {
    mask(len, 32) as u32
}

/// Returns a mask of the upper `len` of `width` bits.
fn mask(len: u8, width: u8) -> u128 {
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    all & !(all.checked_shr(u32::from(len)).unwrap_or(0))
}

/// Checks the name of a network interface: at most 15 bytes (`IFNAMSIZ` with its final zero).
pub fn interface(name: &str) -> Result<String, Fault> {
    let bad = name.is_empty()
        || name.len() > 15
        || name == "."
        || name == ".."
        || name.contains(|c: char| c == '/' || c == ':' || c.is_whitespace());
    if bad {
        return Err(Fault::new(
            format!("\"{name}\" is not the name of a network interface"),
            "at most 15 bytes, without blanks, `/` and `:`, as `ip link` shows them",
        ));
    }
    Ok(name.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_ways_to_write_prefixes_are_answered_with_the_right_one() {
        for (text, meant) in [
            ("10.3.0.0/255.255.255.0", "\"10.3.0.0/24\""),
            ("10.3.0.9/255.255.255.252", "\"10.3.0.8/30\""),
            // Four addresses from 2 on: two and two. From 4 to 11: four and four.
            ("10.1.0.2-10.1.0.5", "\"10.1.0.2/31 10.1.0.4/31\""),
            ("10.1.0.4 - 10.1.0.11", "\"10.1.0.4/30 10.1.0.8/30\""),
            ("010.004.000.001", "\"10.4.0.1\""),
            ("[fd01::1]", "\"fd01::1\""),
        ] {
            let help = prefix(text).unwrap_err().help.unwrap();
            assert!(help.starts_with(&format!("did you mean {meant}?")), "{text}: {help}");
        }
        for text in ["10.3.0.0/255.0.255.0", "10.1.0.5-10.1.0.2", "10.1.2", "host", "10.0.0.1-10.9.9.9"] {
            assert!(prefix(text).unwrap_err().help.unwrap().starts_with("prefixes are"), "{text}");
        }
        let len = |mask: &str| netmask(mask.parse().unwrap());
        assert_eq!(["255.255.255.0", "255.128.0.0"].map(len), [Some(24), Some(9)]);
        assert_eq!(["255.255.255.255", "254.0.0.0", "255.0.255.0", "10.0.0.1"].map(len), [None; 4]);
    }

    #[test]
    fn ports_and_prefixes() {
        assert_eq!(ports("5001-5008").unwrap(), 5001..=5008);
        assert_eq!(ports("80").unwrap(), 80..=80);
        for wrong in ["0", "65536", "8-7", "+5", "http", "1-2-3"] {
            assert!(ports(wrong).is_err(), "{wrong}");
        }
        assert_eq!(server_ports(5001..=5008, 8).unwrap(), Ports::Each { first: 5001 });
        assert!(server_ports(5001..=5008, 7).is_err());
        assert_eq!(prefix("10.1.2.3").unwrap().to_string(), "10.1.2.3/32");
        assert!(prefix("10.1.2.3/8").unwrap_err().help.unwrap().contains("10.0.0.0/8"));
        assert!(prefix("2001:db8::1/32").unwrap_err().help.unwrap().contains("2001:db8::/32"));
        for wrong in ["10.0.0.0/33", "10.0.0/8", "::/129", "/8", "10.0.0.0/"] {
            assert!(prefix(wrong).is_err(), "{wrong}");
        }
    }
}
