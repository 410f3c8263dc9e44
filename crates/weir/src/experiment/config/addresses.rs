//! Names of places in a network: ports, prefixes, interfaces.

use super::decimal::whole;
use super::diag::Fault;
use crate::experiment::plan::Ports;
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
    let addr: core::net::IpAddr = addr.trim().parse().map_err(|_| wrong("not an IP prefix"))?;
    let width: u8 = if addr.is_ipv4() { 32 } else { 128 };
    let len = match len {
        None => width,
        Some(l) => whole(l.trim()).ok_or_else(|| wrong("not an IP prefix"))?,
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
