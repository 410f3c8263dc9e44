//! Rates written as numbers of Mbit/s.

use crate::experiment::config::decimal::Decimal;
use crate::experiment::config::diag::Fault;
use crate::experiment::config::policy;
use weir_core::rate::Rate;

const HELP: &str = "megabits a second: 50, or 2.5";
const BARE: &str = "megabits a second in digits, with a point and without separators: 2.5, or 1000";

/// Parses a rate and rounds it to the nearest bit per second: programs that compute in floating point write
/// more digits.
pub(super) fn mbps(text: &str) -> Result<Rate, Fault> {
    let wrong = || {
        let separated = text.contains([',', '_', '\'', ' ', '\u{a0}', '\u{202f}']) || !text.is_ascii();
        let help = if separated { BARE } else { HELP };
        Fault::new(format!("\"{text}\" is not a rate"), help)
    };
    let twice = decimal(text).and_then(|number| number.times_floor(2_000_000)).ok_or_else(wrong)?;
    match Rate::from_bps(twice.div_ceil(2)) {
        Some(rate) => policy::in_range(rate),
        None => Err(Fault::new("a rate of zero would never send anything", HELP)),
    }
}

/// True for a number that is zero.
pub(super) fn is_zero(text: &str) -> bool {
    decimal(text).is_some_and(|number| number.times(1) == Ok(0))
}

/// Parses a number in the spellings that both readers of LibreQoS know, `f32` of Rust and `float` of Python.
/// There may be a plus, the point may be the first or last character, and digits are not separated.
fn decimal(text: &str) -> Option<Decimal> {
    let text = text.strip_prefix('+').unwrap_or(text);
    if text.contains('_') {
        return None;
    }
    let (mantissa, exponent) = text.split_at(text.find(['e', 'E']).unwrap_or(text.len()));
    match (mantissa.strip_prefix('.'), mantissa.strip_suffix('.')) {
        (Some(fraction), None) => Decimal::parse(&format!("0.{fraction}{exponent}")),
        (None, Some(whole)) if !whole.contains('.') => Decimal::parse(&format!("{whole}{exponent}")),
        (None, None) => Decimal::parse(text),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Includes the shortest decimal of 115 % of 100 in single precision, as programs write it.
    #[test]
    fn numbers_are_read_to_the_bit_as_programs_write_them() {
        for (text, bps) in [
            ("155", 155_000_000),
            ("155.0", 155_000_000),
            ("114.99999", 114_999_990),
            ("33.333333333333336", 33_333_333),
            ("0.1234567", 123_457),
            (".5", 500_000),
            ("5.", 5_000_000),
            ("1e3", 1_000_000_000),
            ("+5", 5_000_000),
            ("1.E+2", 100_000_000),
            (".5e1", 5_000_000),
            // A point, not a separator.
            ("1.000", 1_000_000),
            ("050", 50_000_000),
        ] {
            assert_eq!(mbps(text), Ok(Rate::from_bps(bps).unwrap()), "{text}");
        }
        for wrong in [
            "",
            ".",
            "+",
            ".e1",
            "-5",
            "++5",
            "+-5",
            "5.5.",
            "5..",
            "5 Mbit",
            "nan",
            "inf",
            "infinity",
            "0x10",
            "1e",
            "5%",
            "0",
            "0.000000001",
            "1e9",
            "0.001",
        ] {
            assert!(mbps(wrong).is_err(), "{wrong}");
        }
        for separated in
            ["5,5", "1_000", "1,000", "1'000", "1 000", "1\u{a0}000", "\u{ff11}\u{ff10}", "\u{665}"]
        {
            assert_eq!(mbps(separated).unwrap_err().help.as_deref(), Some(BARE), "{separated}");
        }
        assert!(is_zero("0.0") && !is_zero("") && !is_zero("1e-9"));
    }
}
