//! Units of metrics, and the notation of values with units.

/// Unit of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Bits per second.
    Rate,
    /// Microseconds.
    Micros,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// Fraction, 0 to 1; tables show it in percent.
    Share,
    /// Signed deviation, as a fraction of the target value.
    Deviation,
    /// Number of segments, frames or ACKs.
    Count,
}

impl Unit {
    /// Multiples of the unit with their names, the largest first.
    fn steps(self) -> &'static [(f64, &'static str)] {
        match self {
            Unit::Rate => &[(1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
            Unit::Micros => &[(1e6, "s"), (1e3, "ms"), (1.0, "us")],
            Unit::Seconds => &[(1.0, "s")],
            Unit::Bytes => &[(1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B")],
            Unit::Share | Unit::Deviation | Unit::Count => &[(1.0, "")],
        }
    }

    /// Returns the factor and the name of the unit for values around `v`.
    pub fn scale(self, v: f64) -> (f64, &'static str) {
        let steps = self.steps();
        let fits = steps.iter().find(|(size, _)| v.abs() >= *size);
        let (size, name) = fits.or(steps.last()).copied().unwrap_or((1.0, ""));
        (1.0 / size, name)
    }

    /// Formats `v` with its unit.
    pub fn show(self, v: f64) -> String {
        let (factor, name) = self.scale(v);
        with_unit(digits(v * factor, 4), name)
    }

    /// Formats `v` exactly, in the largest unit that takes at most four decimals.
    pub fn show_exactly(self, v: f64) -> String {
        let steps = self.steps().iter().filter(|(size, _)| v.abs() >= *size);
        let mut written =
            steps.map(|(size, name)| (format!("{}", (v / size * 1e4).round() / 1e4), *size, *name));
        let exact = written.find(|(number, size, _)| number.parse().is_ok_and(|n: f64| n * size == v));
        let smallest = self.steps().last().map_or("", |(_, name)| name);
        exact.map_or_else(|| with_unit(v.to_string(), smallest), |(number, _, name)| with_unit(number, name))
    }

    /// Formats `found` and `bound` in the same unit, with enough digits to tell them apart.
    pub fn show_pair(self, found: f64, bound: f64) -> (String, String) {
        let (factor, name) = self.scale(if bound == 0.0 { found } else { bound });
        let at = |n| (digits(found * factor, n), digits(bound * factor, n));
        let apart = |(a, b): &(String, String)| a != b || found == bound;
        let (a, b) = (4..=12).map(at).find(apart).unwrap_or_else(|| at(12));
        (with_unit(a, name), with_unit(b, name))
    }

    /// Formats the range of several values: `4.98 to 5.02 Mbit/s`. `None` without values.
    pub fn show_range(self, values: &[f64]) -> Option<String> {
        let low = values.iter().copied().reduce(f64::min)?;
        let high = values.iter().copied().reduce(f64::max)?;
        let (factor, name) = self.scale(high);
        let (a, b) = (digits(low * factor, 4), digits(high * factor, 4));
        Some(with_unit(if a == b { a } else { format!("{a} to {b}") }, name))
    }
}

fn with_unit(number: String, name: &str) -> String {
    if name.is_empty() {
        number
    } else {
        format!("{number} {name}")
    }
}

/// Formats `v` with `n` significant digits. Whole numbers and digits before the point are never cut.
fn digits(v: f64, n: i32) -> String {
    if v.fract() == 0.0 {
        return format!("{}", v + 0.0);
    }
    let before = v.abs().log10().floor() as i32 + 1;
    format!("{v:.*}", (n - before).clamp(0, 12) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_digits_and_a_unit_that_fits() {
        assert_eq!(Unit::Rate.show(10_012_340.0), "10.01 Mbit/s");
        assert_eq!(Unit::Rate.show(99_600_400.0), "99.60 Mbit/s");
        assert_eq!(Unit::Rate.show(999.5), "999.5 bit/s");
        assert_eq!(Unit::Micros.show(4321.0), "4.321 ms");
        assert_eq!(Unit::Bytes.show(0.0), "0 B");
        assert_eq!(Unit::Seconds.show(0.012_345), "0.01235 s");
        assert_eq!(Unit::Count.show(812_542.0), "812542");
        assert_eq!(Unit::Count.show(-0.0), "0");
        assert_eq!(Unit::Count.show(12_345.6), "12346");
    }

    #[test]
    fn exactly() {
        let shown = |unit: Unit, v| unit.show_exactly(v);
        assert_eq!(shown(Unit::Bytes, 1_022_400.0), "1.0224 MB");
        assert_eq!(shown(Unit::Bytes, 76_800.0), "76.8 kB");
        assert_eq!(shown(Unit::Bytes, 1_044_481.0), "1044.481 kB");
        assert_eq!(shown(Unit::Bytes, 0.0), "0 B");
        assert_eq!(shown(Unit::Micros, 3_200_200.0), "3.2002 s");
        assert_eq!(shown(Unit::Micros, -1.5), "-1.5 us");
        assert_eq!(shown(Unit::Rate, 2.5e6), "2.5 Mbit/s");
        assert_eq!(shown(Unit::Rate, 1_234_567.0), "1234.567 kbit/s");
        assert_eq!(shown(Unit::Rate, 0.123_456), "0.123456 bit/s");
        assert_eq!(shown(Unit::Count, 65_536.0), "65536");
        assert_eq!(shown(Unit::Share, 0.01), "0.01");
    }

    #[test]
    fn a_value_next_to_its_bound_is_told_apart_from_it() {
        assert_eq!(
            Unit::Rate.show_pair(10_050_200.0, 10_050_000.0),
            ("10.0502 Mbit/s".into(), "10.0500 Mbit/s".into())
        );
        assert_eq!(Unit::Count.show_pair(3.0, 0.0), ("3".into(), "0".into()));
        assert_eq!(Unit::Rate.show_pair(5e6, 5e6), ("5 Mbit/s".into(), "5 Mbit/s".into()));
        // The bound decides the unit.
        assert_eq!(Unit::Rate.show_pair(0.0, 5e6), ("0 Mbit/s".into(), "5 Mbit/s".into()));
    }

    #[test]
    fn ranges() {
        assert_eq!(Unit::Rate.show_range(&[5_011_000.0, 4_980_500.0]).unwrap(), "4.981 to 5.011 Mbit/s");
        assert_eq!(Unit::Rate.show_range(&[5_011_000.0, 5_011_400.0]).unwrap(), "5.011 Mbit/s");
        assert_eq!(Unit::Rate.show_range(&[]), None);
    }
}
