//! CUBIC's window curve W_cubic(t) = C (t - K)^3 + W_max (RFC 9438 §4.2) in integers.
//!
//! Times are fixed point with 20 fractional bits of a second (0.95 µs), and windows are bytes. So C = 0.4 is
//! 0.4 segments per cubic second. The curve is exact to a byte: at 20 s from the plateau one unit of time is
//! 0.0005 segments.

use weir_core::time::Duration;

/// Fractional bits of a time.
const FRACTION: u32 = 20;
/// Longest distinct time since the start of an epoch, 2^43 ns = 2.4 hours. Later times count as this.
const LONGEST_NS: u64 = 1 << 43;
/// C = 4 / 10 segments per cubic second (RFC 9438 §5.1).
const C_NUM: u128 = 4;
const C_DEN: u128 = 10;

/// Window curve of one congestion avoidance stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Curve {
    /// Bytes at the plateau: W_max, or the starting window if that is higher.
    plateau: u64,
    /// K: time at which the curve reaches its plateau.
    k: u64,
    /// Bytes of a segment.
    mss: u32,
}

/// Converts to fixed-point seconds.
fn fixed(d: Duration) -> u64 {
    (d.as_nanos().min(LONGEST_NS) << FRACTION) / 1_000_000_000
}

impl Curve {
    /// Creates the curve that starts at `cwnd` bytes and is level at `w_max` (equation 2). A stage that
    /// starts above `w_max` starts level, with K = 0 (§4.8, §4.10).
    pub fn new(cwnd: u64, w_max: u64, mss: u32) -> Curve {
        if w_max <= cwnd {
            return Curve { plateau: cwnd, k: 0, mss };
        }
        // K^3 = (W_max - cwnd) / C, with three times the fractional bits. At most 2^64 * 10 * 2^60.
        let cube = ((u128::from(w_max - cwnd) * C_DEN) << (3 * FRACTION)) / (C_NUM * u128::from(mss.max(1)));
        Curve { plateau: w_max, k: cube_root(cube), mss }
    }

    /// Returns the window in bytes at `t` from the start of the stage (equation 1), never below 0.
    pub fn at(&self, t: Duration) -> u64 {
        let t = fixed(t);
        let growth = self.cubed(t.abs_diff(self.k));
        if t < self.k {
            self.plateau.saturating_sub(growth)
        } else {
            self.plateau.saturating_add(growth)
        }
    }

    /// Returns the window in whole segments at `t`, as Linux rounds it: its distance from the plateau is
    /// rounded down. So a stage aims a segment higher from its first ACK on.
    pub fn segments_at(&self, t: Duration) -> u64 {
        let t = fixed(t);
        let mss = u64::from(self.mss.max(1));
        let (plateau, growth) = (self.plateau / mss, self.cubed(t.abs_diff(self.k)) / mss);
        if t < self.k {
            plateau.saturating_sub(growth)
        } else {
            plateau.saturating_add(growth)
        }
    }

    /// Computes C d^3 in bytes.
    fn cubed(&self, d: u64) -> u64 {
        // 34 bits are 4.5 hours, more than `fixed` makes: 3 * 34 + 16 + 2 bits fit.
        let d = u128::from(d.min((1 << 34) - 1));
        let bytes = (d * d * d * (C_NUM * u128::from(self.mss))) >> (3 * FRACTION);
        bytes as u64 / C_DEN as u64
    }
}

/// Computes the largest number whose cube is at most `n`, bit by bit.
fn cube_root(n: u128) -> u64 {
    let mut root: u128 = 0;
    // 2^43 cubed is 2^129, so bit 42 is the highest possible bit of a root.
    for bit in (0..=42).rev() {
        let r = root | 1 << bit;
        if r.checked_mul(r).and_then(|s| s.checked_mul(r)).is_some_and(|c| c <= n) {
            root = r;
        }
    }
    root as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cube_roots_of_cubes_and_their_neighbours() {
        for r in [1u128, 2, 3, 10, 1000, 1 << 20, (1 << 42) + 12345] {
            assert_eq!(u128::from(cube_root(r * r * r)), r);
            assert_eq!(u128::from(cube_root(r * r * r - 1)), r - 1);
            assert_eq!(u128::from(cube_root(r * r * r + 1)), r);
        }
        assert_eq!(cube_root(0), 0);
        // (2^128 - 1)^(1/3) = 6,981,463,658,331.56
        assert_eq!(cube_root(u128::MAX), 6_981_463_658_331);
    }

    #[test]
    fn k_of_a_loss_at_a_hundred_segments() {
        // W_max 100, cwnd 70: K = cbrt(30 / 0.4) = 4.2172 s. The curve is level there, at W_max - 30 at 0,
        // and equally far above W_max at 2 K.
        let c = Curve::new(70_000, 100_000, 1000);
        let k = Duration::from_nanos(4_217_163_327);
        assert!(c.at(Duration::ZERO).abs_diff(70_000) <= 1);
        assert_eq!(c.at(k), 100_000);
        assert!(c.at(k + k).abs_diff(130_000) <= 1);
    }

    #[test]
    fn whole_segments_are_cut_off_from_the_plateau() {
        // tcp_cubic.c: delta = C |t - K|^3 in whole segments, origin - delta below and origin + delta above.
        // W_max 12, cwnd 9: K = cbrt(3 / 0.4) = 1.957 s.
        let c = Curve::new(9_000, 12_000, 1000);
        let at = |ms| c.segments_at(Duration::from_millis(ms));
        // 0.4 * 1.907^3 = 2.77; * 1.257^3 = 0.79; * 1.343^3 = 0.97 and * 1.443^3 = 1.20 above.
        assert_eq!([50, 700, 3300, 3400].map(at), [10, 12, 12, 13]);
    }

    #[test]
    fn above_the_plateau_a_stage_starts_level() {
        let c = Curve::new(120_000, 100_000, 1000);
        assert_eq!(c.at(Duration::ZERO), 120_000);
        // 0.4 * 5^3 = 50 segments.
        assert!(c.at(Duration::from_secs(5)).abs_diff(170_000) <= 1);
    }

    proptest! {
        #[test]
        fn the_curve_is_the_formula(cwnd in 1u64..100_000, above in 0u64..1_000_000, mss in 88u32..9000,
                                    ms in 0u64..3_600_000) {
            let (start, w_max) = (cwnd * u64::from(mss), (cwnd + above) * u64::from(mss));
            let got = Curve::new(start, w_max, mss).at(Duration::from_millis(ms)) as f64 / f64::from(mss);
            let k = (above as f64 / 0.4).cbrt();
            let d = ms as f64 / 1e3 - k;
            let want = (0.4 * d * d * d + (cwnd + above) as f64).max(0.0);
            // One unit of time in t and K each is 2 * 3 C d^2 / 2^20 segments, rounding a few bytes.
            let tolerance = 2.4 * d * d / f64::from(1u32 << 20) + 4.0 / f64::from(mss);
            prop_assert!((got - want).abs() <= tolerance, "{got} for {want}");
        }

        #[test]
        fn nothing_overflows(cwnd: u64, w_max: u64, mss: u32, ns: u64) {
            let _ = Curve::new(cwnd, w_max, mss.min(65_535)).at(Duration::from_nanos(ns));
        }
    }
}
