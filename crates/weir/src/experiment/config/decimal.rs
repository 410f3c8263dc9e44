//! Exact decimal numbers: text becomes integers without floating point.

use core::str::FromStr;

/// Exact decimal number, not negative: `digits` × 10^-`scale`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decimal {
    /// Digits as a whole number.
    pub(super) digits: u128,
    /// Number of digits behind the point.
    pub(super) scale: u32,
}

/// Reasons why a decimal does not become an integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inexact {
    /// Fraction left over.
    Fraction,
    /// Value too large.
    TooLarge,
}

impl Decimal {
    /// Parses `12`, `1.5`, `1_000`, `1e-4`: at most 30 digits. `None` for all else, negative numbers
    /// included.
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

    /// Returns this many `unit`s as an integer, if that is exact.
    pub fn times(self, unit: u64) -> Result<u64, Inexact> {
        let n = self.digits.checked_mul(u128::from(unit)).ok_or(Inexact::TooLarge)?;
        let d = 10u128.checked_pow(self.scale).ok_or(Inexact::Fraction)?;
        if n % d != 0 {
            return Err(Inexact::Fraction);
        }
        u64::try_from(n / d).map_err(|_| Inexact::TooLarge)
    }

    /// Returns this many `unit`s rounded down; `None` if too large.
    pub fn times_floor(self, unit: u128) -> Option<u64> {
        let n = self.digits.checked_mul(unit)?;
        u64::try_from(10u128.checked_pow(self.scale).map_or(0, |d| n / d)).ok()
    }

    /// Returns the nearest floating point number, for bounds that results are compared with.
    pub fn to_f64(self) -> f64 {
        format!("{}e-{}", self.digits, self.scale).parse().expect("digits and an exponent")
    }
}

/// Parses a whole number in ASCII digits alone. `FromStr` of integers also accepts a plus.
pub fn whole<N: FromStr>(text: &str) -> Option<N> {
    text.bytes().all(|b| b.is_ascii_digit()).then(|| text.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals() {
        assert_eq!(Decimal::parse("1.50"), Some(Decimal { digits: 15, scale: 1 }));
        assert_eq!(Decimal::parse("2e3"), Some(Decimal { digits: 2000, scale: 0 }));
        for wrong in ["", ".", "1.", ".5", "1__0", "_1", "1_", "-1", "+1", "1e", "inf", "nan", "1e999"] {
            assert_eq!(Decimal::parse(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn whole_numbers() {
        assert_eq!([whole::<u8>("024"), whole("255")], [Some(24), Some(255)]);
        for wrong in ["", "+1", "-1", "256", "1_0", "0x1", " 1", "1.0", "1e1", "\u{661}"] {
            assert_eq!(whole::<u8>(wrong), None, "{wrong}");
        }
    }
}
