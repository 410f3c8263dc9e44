//! Quantities with units, converted exactly.

use super::decimal::{Decimal, Inexact};
use super::diag::Fault;
use crate::result::Setting;
use weir_core::link::TRILLION;
use weir_core::rate::Rate;
use weir_core::time::Duration;

/// Splits a number from its unit; blanks between the two are ignored.
fn split(text: &str) -> Option<(Decimal, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_')).unwrap_or(text.len());
    Some((Decimal::parse(&text[..end])?, text[end..].trim()))
}

/// Accepted units of rates: bits per second in decimal multiples.
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

/// Parses a quantity in whole base units.
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
    // Only a difference in case may be guessed: MB is not a misspelt Mbit.
    let meant = units.iter().find(|(name, _)| !unit.is_empty() && name.eq_ignore_ascii_case(unit));
    let help = match meant {
        Some((name, _)) => format!("did you mean `{name}`? {help}"),
        None => help.to_string(),
    };
    Err(Fault { message, help: Some(help) })
}

/// Other spellings of the units of rates that can mean nothing else, without `/s`: those of tc, of providers,
/// and of papers. Not `mbps`, which is bytes for tc, nor `M`, nor any `B`.
const RATE_SPELLINGS: [(&str, &str); 14] = [
    ("bps", "bit"),
    ("b", "bit"),
    ("kb", "kbit"),
    ("Kbit", "kbit"),
    ("Kb", "kbit"),
    ("kbps", "kbit"),
    ("Kbps", "kbit"),
    ("mbit", "Mbit"),
    ("Mb", "Mbit"),
    ("Mbps", "Mbit"),
    ("gbit", "Gbit"),
    ("Gb", "Gbit"),
    ("Gbps", "Gbit"),
    ("bits", "bit"),
];

/// Returns a rate in the spelling that the other functions read.
fn respelt(text: &str) -> String {
    let trimmed = text.trim();
    let bits = trimmed.strip_suffix("/s").map_or(trimmed, str::trim_end);
    let unit = bits.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '_').trim_start();
    let known = RATE_SPELLINGS.iter().find(|(other, _)| *other == unit);
    known.map_or_else(|| bits.to_owned(), |(_, unit_here)| bits.replace(unit, unit_here))
}

/// Returns the rate that somebody may have meant whose unit is one letter, another spelling or bytes, or who
/// writes a comma for the point.
fn meant(text: &str) -> Option<String> {
    let (number, unit) = split(text.trim().trim_end_matches("/s"))?;
    if let Some(decimals) = unit.strip_prefix(',') {
        // A comma in place of the point.
        let has_decimals = decimals.starts_with(|c: char| c.is_ascii_digit());
        return has_decimals.then(|| respelt(&text.replacen(',', ".", 1)));
    }
    let lower = unit.to_ascii_lowercase();
    let plain = lower.trim_end_matches("/sec").trim_end_matches("ps").trim_end_matches('s');
    let (factor, bits) = match (unit, plain) {
        ("kB" | "KB" | "kBps", _) => ("kbit", 8),
        ("MB" | "MBps", _) => ("Mbit", 8),
        ("GB" | "GBps", _) => ("Gbit", 8),
        (_, "k" | "kbit" | "kilobit") => ("kbit", 1),
        (_, "m" | "mb" | "mbit" | "megabit") => ("Mbit", 1),
        (_, "g" | "gb" | "gbit" | "gig" | "gigabit") => ("Gbit", 1),
        _ => return None,
    };
    match bits {
        1 => Some(format!("{}{factor}", &text.trim()[..text.trim().find(unit)?].trim_end())),
        _ => number.times(bits).ok().map(|number| format!("{number}{factor}")),
    }
}

/// Parses a rate: `10Mbit`, `10Mbit/s`, `125kbit`, `1.5Gbit`, and other spellings that people bring. At least
/// 1 bit/s; bytes per second are refused.
pub fn rate(text: &str) -> Result<Rate, Fault> {
    let respelt = respelt(text);
    let bps = quantity(&respelt, "rate", &RATE_UNITS, RATE_HELP).map_err(|mut fault| {
        fault.message = fault.message.replace(&format!("\"{respelt}\""), &format!("\"{text}\""));
        let bps = |text: &str| quantity(text, "rate", &RATE_UNITS, RATE_HELP);
        if let Some(meant) = meant(text).filter(|meant| bps(meant).is_ok()) {
            fault.help = Some(format!("did you mean \"{meant}\"? {RATE_HELP}"));
        }
        fault
    })?;
    Rate::from_bps(bps).ok_or_else(|| {
        Fault::new(
            "a rate of zero would never send anything",
            "rates are above zero; no limit is no rate at all",
        )
    })
}

/// Parses a duration: `10ms`, `1.5s`, `400us`. Zero is allowed; parts of a nanosecond are not.
pub fn duration(text: &str) -> Result<Duration, Fault> {
    quantity(text, "duration", &DURATION_UNITS, DURATION_HELP).map(Duration::from_nanos)
}

/// Parses a duration above zero.
pub fn positive_duration(text: &str) -> Result<Duration, Fault> {
    match duration(text)? {
        Duration::ZERO => Err(Fault::new(format!("\"{text}\" is not above zero"), DURATION_HELP)),
        d => Ok(d),
    }
}

/// Parses a frequency as the time between two events: `100/s`, `0.5/ms`, `30/min`; rounded to the nanosecond.
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
        (_, 0) => return Err(wrong("not above zero")),
        (Some(per), digits) => (per + digits / 2) / digits,
        (None, _) => u128::MAX,
    };
    match u64::try_from(gap) {
        Ok(0) => Err(wrong("more than one in a nanosecond")),
        Ok(gap) => Ok(Duration::from_nanos(gap)),
        Err(_) => Err(wrong("less than one in 500 years")),
    }
}

/// Parses a size in bytes: `64KiB`, `1500`.
pub fn size(text: &str) -> Result<u64, Fault> {
    quantity(text, "size", &SIZE_UNITS, SIZE_HELP)
}

/// Parses a value of a sweep in its base unit: bits per second, seconds, bytes, a share. A value without one
/// (a name, a queue of `1bdp` or `100p`) is text.
pub fn setting(text: &str) -> Setting {
    let share = |text: &str| probability(text).ok().map(|p| p.trillionths() as f64 / TRILLION as f64);
    let value = match text {
        "true" | "false" => return Setting::flag(text == "true"),
        _ if text.trim().ends_with('%') => share(text),
        _ => {
            let number = text.replace('_', "").parse::<f64>().ok().filter(|v| v.is_finite());
            number.or_else(|| size(text).ok().map(|bytes| bytes as f64))
        }
    };
    let value = value.or_else(|| rate(text).ok().map(|rate| rate.bps() as f64));
    let value = value.or_else(|| duration(text).ok().map(Duration::as_secs_f64));
    value.map_or_else(|| Setting::from(text), |v| Setting::number(text, v))
}

/// Limit of a queue or threshold of marks as written, before the bandwidth-delay product is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// Frames.
    Packets(u64),
    /// Bytes.
    Bytes(u64),
    /// Multiple of the bandwidth-delay product of the link's rate and the path's round-trip time.
    Bdp(Decimal),
}

impl Limit {
    /// Returns whether the limit is zero.
    pub fn is_zero(&self) -> bool {
        match self {
            Limit::Packets(n) | Limit::Bytes(n) => *n == 0,
            Limit::Bdp(factor) => factor.digits == 0,
        }
    }
}

/// Parses a queue limit: `100p`, `64KiB`, `1.5bdp`. A number alone is refused, since packets and bytes are
/// both usual.
pub fn queue(text: &str) -> Result<Limit, Fault> {
    const HELP: &str = "queue limits are packets \"100p\", bytes \"64KiB\" or \"64000B\", or bandwidth-delay products \"1bdp\"";
    let (number, unit) =
        split(text).ok_or_else(|| Fault::new(format!("\"{text}\" is not a queue limit"), HELP))?;
    match unit {
        "" => Err(Fault::new(
            format!("the queue limit \"{text}\" does not say of what: packets or bytes"),
            HELP,
        )),
        "p" => number
            .times(1)
            .map(Limit::Packets)
            .map_err(|_| Fault::new(format!("\"{text}\" is not a whole number of packets"), HELP)),
        "bdp" => Ok(Limit::Bdp(number)),
        _ => quantity(text, "queue limit", &SIZE_UNITS, HELP).map(Limit::Bytes),
    }
}

/// Probability, exact in units of 10^-12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Probability(u64);

impl Probability {
    /// Returns the probability in units of 10^-12, at most 10^12. A frame is lost when a number drawn below
    /// 10^12 is below this.
    pub const fn trillionths(self) -> u64 {
        self.0
    }
}

const PROBABILITY_HELP: &str =
    "probabilities are from 0 to 1 or from \"0%\" to \"100%\", in steps of 10^-12: 0.0001, \"0.01%\"";

/// Parses a probability: `0.01%` or `0.0001`.
pub fn probability(text: &str) -> Result<Probability, Fault> {
    let wrong = |why: &str| Fault::new(format!("\"{text}\" is {why}"), PROBABILITY_HELP);
    let trimmed = text.trim();
    let (number, unit) = match trimmed.strip_suffix('%') {
        Some(n) => (n.trim_end(), TRILLION / 100),
        None => (trimmed, TRILLION),
    };
    let n = Decimal::parse(number).ok_or_else(|| wrong("not a probability"))?;
    match n.times(unit) {
        Ok(p) if p <= TRILLION => Ok(Probability(p)),
        Ok(_) | Err(Inexact::TooLarge) => Err(wrong("above certainty")),
        Err(Inexact::Fraction) => Err(wrong("finer than a probability can be here")),
    }
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
        // As tc, providers and papers write it.
        for same in ["9mbit", "9Mbps", "9Mb/s", "9 Mb/s", "9Mbit/s", "9000kbps", "9000Kbit", "9000000bps"] {
            assert_eq!(bps(same), 9_000_000, "{same}");
        }
        assert_eq!([bps("1.5gbit"), bps("1.5Gbps"), bps("1.5Gb/s")], [1_500_000_000; 3]);
        // 9 megabytes are 72 megabits.
        let help = |t: &str| rate(t).unwrap_err().help.unwrap();
        assert!(help("9M").starts_with("did you mean \"9Mbit\"?"), "{}", help("9M"));
        assert!(help("9MB/s").starts_with("did you mean \"72Mbit\"?"), "{}", help("9MB/s"));
        for text in ["9mbps", "9 mb/s", "9mb", "9 Mbits", "9megabit", "9 Mbit/sec", "9MBIT", "9MBit/s"] {
            assert!(help(text).starts_with("did you mean \"9Mbit\"?"), "{text}: {}", help(text));
        }
        assert!(help("2,5Mbit").starts_with("did you mean \"2.5Mbit\"?"), "{}", help("2,5Mbit"));
        assert!(help("1,5 gig").starts_with("rates are"), "{}", help("1,5 gig"));
        assert!(rate("9 mb/s").unwrap_err().message.ends_with("in the rate \"9 mb/s\""));
        for wrong in ["10", "10MB", "10mbps", "10M", "-1Mbit", "Mbit", "", "1.2345kbit", "1e3kbit", "1.bit"] {
            assert!(rate(wrong).is_err(), "{wrong}");
        }
        assert!(rate("99999999999Gbit").unwrap_err().message.contains("too large"));
        assert!(rate("0Mbit").unwrap_err().message.contains("zero"));
        assert!(duration("10MS").unwrap_err().help.unwrap().starts_with("did you mean `ms`?"));
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
        assert_eq!(queue("100p").unwrap(), Limit::Packets(100));
        assert_eq!(queue("64KiB").unwrap(), Limit::Bytes(65_536));
        assert!(matches!(queue("0.5bdp").unwrap(), Limit::Bdp(_)));
        for wrong in ["100", "1.5p", "many"] {
            assert!(queue(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn settings_are_numbers_in_base_units() {
        let number = |text: &str, v: f64| assert_eq!(setting(text), Setting::number("", v), "{text}");
        number("10Mbit", 1e7);
        number("1.5 Gbit/s", 1.5e9);
        number("40ms", 0.04);
        number("2min", 120.0);
        number("64KiB", 65_536.0);
        number("0.1%", 0.001);
        number("0.01", 0.01);
        number("1_000", 1000.0);
        number("-3", -3.0);
        for text in ["reno", "1bdp", "100p", "100/s", "inf", "nan", "101%", "[1, 2]"] {
            assert_eq!(setting(text), Setting::from(text), "{text}");
        }
        assert_eq!(setting("true"), Setting::flag(true));
        assert_eq!(setting("10Mbit").to_string(), "10Mbit");
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
}
