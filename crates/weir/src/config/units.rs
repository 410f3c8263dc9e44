//! Quantities with units, converted exactly: decimal text becomes integers without passing through
//! floating point.

use super::diag::nearest;
use crate::plan::{Ports, Probability};
use core::ops::RangeInclusive;
use std::fmt;
use weir_core::gateway::Prefix;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What was found and why it is not taken.
    pub message: String,
    /// What is accepted.
    pub help: Option<String>,
}

impl Fault {
    /// A fault with help.
    pub fn new(message: impl Into<String>, help: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: Some(help.into()) }
    }
    /// A fault that needs no help.
    pub fn bare(message: impl Into<String>) -> Fault {
        Fault { message: message.into(), help: None }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.help {
            Some(help) => write!(f, "{}: {help}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl std::error::Error for Fault {}

/// A non-negative decimal number, exact: `digits` × 10^-`scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    digits: u128,
    scale: u32,
}

/// Why a decimal does not become an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// A fraction would be left over.
    Fraction,
    /// It does not fit.
    TooLarge,
}

impl Decimal {
    /// Parses `12`, `1.5`, `1_000`, `1e-4`: at most 30 digits. `None` for anything else, negative
    /// numbers included.
    pub fn parse(text: &str) -> Option<Decimal> {
        let (mantissa, exponent) = match text.split_once(['e', 'E']) {
            Some((m, e)) => (m, e.parse::<i32>().ok()?),
            None => (text, 0),
        };
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let fraction_missing = mantissa.contains('.') && fraction.is_empty();
        if whole.is_empty() || fraction_missing {
            return None;
        }
        let mut digits: u128 = 0;
        let mut last = '_';
        for c in whole.chars().chain(fraction.chars()) {
            match c {
                '_' if last != '_' => (),
                '0'..='9' => {
                    digits = digits.checked_mul(10)?.checked_add(c as u128 - '0' as u128)?;
                }
                _ => return None,
            }
            last = c;
        }
        let places = fraction.chars().filter(char::is_ascii_digit).count() as i32;
        let scale = places.checked_sub(exponent)?;
        if digits >= 10u128.pow(30) || !(-30..=60).contains(&scale) || last == '_' {
            return None;
        }
        let (mut digits, mut scale) = match u32::try_from(scale) {
            Ok(s) => (digits, s),
            Err(_) => (digits.checked_mul(10u128.checked_pow(scale.unsigned_abs())?)?, 0),
        };
        while scale > 0 && digits % 10 == 0 {
            digits /= 10;
            scale -= 1;
        }
        Some(Decimal { digits, scale })
    }

    /// This many `unit`s as an integer, if that is exact.
    pub fn times(self, unit: u64) -> Result<u64, Inexact> {
        let n = self.digits.checked_mul(u128::from(unit)).ok_or(Inexact::TooLarge)?;
        let d = 10u128.checked_pow(self.scale).ok_or(Inexact::Fraction)?;
        if n % d != 0 {
            return Err(Inexact::Fraction);
        }
        u64::try_from(n / d).map_err(|_| Inexact::TooLarge)
    }

    /// This many `unit`s rounded down; `None` if too large.
    pub fn times_floor(self, unit: u128) -> Option<u64> {
        let n = self.digits.checked_mul(unit)?;
        u64::try_from(10u128.checked_pow(self.scale).map_or(0, |d| n / d)).ok()
    }

    /// The nearest floating point number, for bounds that results are compared with.
    pub fn to_f64(self) -> f64 {
        format!("{}e-{}", self.digits, self.scale).parse().expect("digits and an exponent")
    }
}

/// A number and the unit behind it; blanks between the two do not matter.
fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    Some((Decimal::parse(&text[..end])?, text[end..].trim()))
}

/// Units of rates, the only ones: bits per second in decimal multiples.
const RATE_UNITS: [(&str, u64); 4] =
    [("bit", 1), ("kbit", 1_000), ("Mbit", 1_000_000), ("Gbit", 1_000_000_000)];
const RATE_HELP: &str =
    "rates are bits per second, with one of the units bit, kbit, Mbit, Gbit: \"10Mbit\", \"1.5Gbit/s\"";
const DURATION_UNITS: [(&str, u64); 5] =
    [("ns", 1), ("us", 1_000), ("ms", 1_000_000), ("s", 1_000_000_000), ("min", 60_000_000_000)];
const DURATION_HELP: &str = "durations have one of the units ns, us, ms, s, min: \"10ms\", \"1.5s\"";
const SIZE_UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];
const SIZE_HELP: &str =
    "sizes are bytes, with one of the units B, kB, KiB, MB, MiB, GB, GiB: \"64KiB\", 1500";

/// A quantity in whole base units.
fn quantity(text: &str, what: &str, units: &[(&str, u64)], help: &str) -> Result<u64, Fault> {
    let (number, unit) =
        split(text).ok_or_else(|| Fault::new(format!("\"{text}\" is not a {what}"), help))?;
    if let Some(&(_, factor)) = units.iter().find(|(name, _)| *name == unit) {
        return number.times(factor).map_err(|e| match e {
            Inexact::Fraction => {
                Fault::new(format!("\"{text}\" is not a whole number of the smallest unit"), help)
            }
            Inexact::TooLarge => Fault::bare(format!("\"{text}\" is too large a {what}")),
        });
    }
    let message = match unit {
        "" => format!("\"{text}\" is a {what} without a unit"),
        _ => format!("unknown unit `{unit}` in the {what} \"{text}\""),
    };
    // Only a difference in case is safe to guess: MB is not a misspelt Mbit.
    let meant = units.iter().find(|(name, _)| !unit.is_empty() && name.eq_ignore_ascii_case(unit));
    let help = match meant {
        Some((name, _)) => format!("did you mean `{name}`? {help}"),
        None => help.to_string(),
    };
    Err(Fault { message, help: Some(help) })
}

/// A rate: `10Mbit`, `10Mbit/s`, `125kbit`, `1.5Gbit`. At least 1 bit/s; bytes per second are refused.
pub fn rate(text: &str) -> Result<Rate, Fault> {
    let trimmed = text.trim();
    let bits = trimmed.strip_suffix("/s").map_or(trimmed, str::trim_end);
    let bps = quantity(bits, "rate", &RATE_UNITS, RATE_HELP)?;
    Rate::from_bps(bps).ok_or_else(|| {
        Fault::new(
            "a rate of zero would never send anything",
            "rates are above zero; no limit is no rate at all",
        )
    })
}

/// A duration: `10ms`, `1.5s`, `400us`; zero is one, less than a nanosecond is not.
pub fn duration(text: &str) -> Result<Duration, Fault> {
    quantity(text, "duration", &DURATION_UNITS, DURATION_HELP).map(Duration::from_nanos)
}

/// A duration above zero.
pub fn positive_duration(text: &str) -> Result<Duration, Fault> {
    match duration(text)? {
        Duration::ZERO => Err(Fault::new(format!("\"{text}\" is no time at all"), DURATION_HELP)),
        d => Ok(d),
    }
}

/// A frequency, as the time from one to the next: `100/s`, `0.5/ms`, `30/min`; rounded to the nanosecond.
pub fn frequency(text: &str) -> Result<Duration, Fault> {
    const HELP: &str = "rates of arrivals are numbers per us, ms, s or min: \"100/s\", \"0.5/ms\"";
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), HELP);
    let (number, unit) = text.split_once('/').ok_or_else(|| wrong("not a rate of arrivals"))?;
    let number = Decimal::parse(number.trim()).ok_or_else(|| wrong("not a rate of arrivals"))?;
    let units = &DURATION_UNITS[1..];
    let (_, nanos) =
        units.iter().find(|(name, _)| *name == unit.trim()).ok_or_else(|| wrong("not a rate of arrivals"))?;
    // digits × 10^-scale in `nanos`: one every nanos × 10^scale / digits.
    let per = 10u128.checked_pow(number.scale).and_then(|p| p.checked_mul(u128::from(*nanos)));
    let gap = match (per, number.digits) {
        (_, 0) => return Err(wrong("no arrival at all")),
        (Some(per), digits) => (per + digits / 2) / digits,
        (None, _) => u128::MAX,
    };
    match u64::try_from(gap) {
        Ok(0) => Err(wrong("more than one in a nanosecond")),
        Ok(gap) => Ok(Duration::from_nanos(gap)),
        Err(_) => Err(wrong("less than one in 500 years")),
    }
}

/// A size in bytes: `64KiB`, `1500`.
pub fn size(text: &str) -> Result<u64, Fault> {
    quantity(text, "size", &SIZE_UNITS, SIZE_HELP)
}

/// A queue limit as it is written, before the bandwidth-delay product is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueLimit {
    /// Frames.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
    /// Times the bandwidth-delay product of the link's rate and the path's round-trip time.
    Bdp(Decimal),
}

/// A queue limit: `100p`, `64KiB`, `1.5bdp`; above zero. A number alone is refused, since packets and
/// bytes are both usual.
pub fn queue(text: &str) -> Result<QueueLimit, Fault> {
    const HELP: &str = "queue limits are packets \"100p\", bytes \"64KiB\" or \"64000B\", or bandwidth-delay products \"1bdp\"";
    let (number, unit) =
        split(text).ok_or_else(|| Fault::new(format!("\"{text}\" is not a queue limit"), HELP))?;
    if number.digits == 0 {
        return Err(Fault::new(format!("\"{text}\": a queue without room passes nothing"), HELP));
    }
    match unit {
        "" => Err(Fault::new(
            format!("the queue limit \"{text}\" does not say of what: packets or bytes"),
            HELP,
        )),
        "p" => number
            .times(1)
            .map(QueueLimit::Packets)
            .map_err(|_| Fault::new(format!("\"{text}\" is not a whole number of packets"), HELP)),
        "bdp" => Ok(QueueLimit::Bdp(number)),
        _ => quantity(text, "queue limit", &SIZE_UNITS, HELP).map(QueueLimit::Bytes),
    }
}

const PROBABILITY_HELP: &str =
    "probabilities are from 0 to 1 or from \"0%\" to \"100%\", in steps of 10^-12: 0.0001, \"0.01%\"";

/// A probability: `0.01%` or `0.0001`.
pub fn probability(text: &str) -> Result<Probability, Fault> {
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), PROBABILITY_HELP);
    let trimmed = text.trim();
    let (number, unit) = match trimmed.strip_suffix('%') {
        Some(n) => (n.trim_end(), 10_000_000_000),
        None => (trimmed, 1_000_000_000_000),
    };
    let n = Decimal::parse(number).ok_or_else(|| wrong("not a probability"))?;
    match n.times(unit) {
        Ok(p) => Probability::from_trillionths(p).ok_or_else(|| wrong("above certainty")),
        Err(Inexact::TooLarge) => Err(wrong("above certainty")),
        Err(Inexact::Fraction) => Err(wrong("finer than a probability can be here")),
    }
}

const PORTS_HELP: &str = "ports are 1 to 65535: 5001, \"5001\", or a range \"5001-5008\"";

/// Ports: `5001` or `5001-5008`.
pub fn ports(text: &str) -> Result<RangeInclusive<u16>, Fault> {
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), PORTS_HELP);
    let port = |t: &str| match t.trim().parse::<u16>() {
        Ok(p) if p > 0 && !t.trim().starts_with('+') => Ok(p),
        _ => Err(wrong("not a port or a range of ports")),
    };
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    let (first, last) = (port(first)?, port(last)?);
    if first > last {
        return Err(wrong("a range that ends before it begins"));
    }
    Ok(first..=last)
}

/// Server ports of `count` flows: one for all, or a range of exactly one for each.
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

/// An IP prefix: `10.1.0.0/16`, `2001:db8::/32`, or an address alone, which is itself only.
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
        Some(l) => l.trim().parse().map_err(|_| wrong("not an IP prefix"))?,
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

/// The upper `len` of `width` bits.
fn mask(len: u8, width: u8) -> u128 {
    let all = if width == 128 { u128::MAX } else { (1 << width) - 1 };
    all & !(all.checked_shr(u32::from(len)).unwrap_or(0))
}

/// The name of a network interface: at most 15 bytes (`IFNAMSIZ` with its final zero).
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

/// One of a closed set of names, with the value each stands for. `future` are names that are known
/// but not built yet: they are refused as such.
pub fn choice<T: Copy>(text: &str, what: &str, known: &[(&str, T)], future: &[&str]) -> Result<T, Fault> {
    if let Some(&(_, value)) = known.iter().find(|(name, _)| *name == text) {
        return Ok(value);
    }
    let names = super::diag::listed(known.iter().map(|(n, _)| *n));
    if future.contains(&text) {
        return Err(Fault::new(
            format!("the {what} `{text}` does not exist yet"),
            format!("what exists: {names}"),
        ));
    }
    let guess = match nearest(text, known.iter().map(|(n, _)| *n)) {
        Some(n) => format!("did you mean `{n}`? "),
        None => String::new(),
    };
    Err(Fault::new(format!("unknown {what} `{text}`"), format!("{guess}what exists: {names}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_exact() {
        let bps = |t: &str| rate(t).unwrap().bps();
        assert_eq!(bps("10Mbit"), 10_000_000);
        assert_eq!(bps("10 Mbit/s"), 10_000_000);
        assert_eq!(bps("125kbit"), 125_000);
        assert_eq!(bps("1.5Gbit"), 1_500_000_000);
        assert_eq!(bps("0.1Mbit"), 100_000);
        assert_eq!(bps("4.096kbit"), 4096);
        assert_eq!(bps("1_000bit"), 1000);
        for wrong in ["10", "10MB", "10Mbps", "10M", "-1Mbit", "Mbit", "", "1.2345kbit", "1e3kbit", "1.bit"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(rate("99999999999Gbit").unwrap_err().message.contains("too large"));
        assert!(rate("0Mbit").unwrap_err().message.contains("zero"));
        assert!(rate("10mbit").unwrap_err().help.unwrap().starts_with("did you mean `Mbit`?"));
        assert!(!rate("10MB").unwrap_err().help.unwrap().contains("did you mean"));
    }

    #[test]
    fn durations_sizes_and_queues() {
        assert_eq!(duration("1.5s").unwrap(), Duration::from_millis(1500));
        assert_eq!(duration("400us").unwrap(), Duration::from_micros(400));
        assert_eq!(duration("2min").unwrap(), Duration::from_secs(120));
        assert!(duration("10").is_err());
        assert!(duration("0.5ns").is_err());
        assert!(positive_duration("0s").is_err());
        assert_eq!(size("64KiB").unwrap(), 65_536);
        assert_eq!(size("1500").unwrap(), 1500);
        assert_eq!(size("1.5kB").unwrap(), 1500);
        assert!(size("64K").is_err());
        assert_eq!(queue("100p").unwrap(), QueueLimit::Packets(100));
        assert_eq!(queue("64KiB").unwrap(), QueueLimit::Bytes(65_536));
        assert!(matches!(queue("0.5bdp").unwrap(), QueueLimit::Bdp(_)));
        for wrong in ["100", "0p", "0bdp", "1.5p", "many"] {
            assert!(queue(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn frequencies() {
        let gap = |t: &str| frequency(t).unwrap().as_nanos();
        assert_eq!(gap("100/s"), 10_000_000);
        assert_eq!(gap("0.5/ms"), 2_000_000);
        assert_eq!(gap("30 / min"), 2_000_000_000);
        assert_eq!(gap("3/s"), 333_333_333);
        assert_eq!(gap("1.5/s"), 666_666_667);
        for wrong in ["100", "100/h", "/s", "0/s", "-1/s", "1e10/s", "100/s/s", "0.00000000001/min"] {
            assert!(frequency(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn probabilities_are_exact() {
        let p = |t: &str| probability(t).unwrap().trillionths();
        assert_eq!(p("0.01%"), 100_000_000);
        assert_eq!(p("0.0001"), 100_000_000);
        assert_eq!(p("1e-4"), 100_000_000);
        assert_eq!(p("100%"), 1_000_000_000_000);
        for wrong in ["101%", "1.1", "-0.1", "x", "0.0000000000001"] {
            assert!(probability(wrong).is_err(), "{wrong}");
        }
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

    #[test]
    fn decimals() {
        assert_eq!(Decimal::parse("1.50"), Some(Decimal { digits: 15, scale: 1 }));
        assert_eq!(Decimal::parse("2e3"), Some(Decimal { digits: 2000, scale: 0 }));
        for wrong in ["", ".", "1.", ".5", "1__0", "_1", "1_", "-1", "+1", "1e", "inf", "nan", "1e999"] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
    }
}
