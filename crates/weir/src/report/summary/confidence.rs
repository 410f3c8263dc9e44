//! Confidence intervals of means of few samples.

use crate::result::Mean;

/// Quantiles 0.975 of Student's t distribution for 1 to 30 degrees of freedom: the factor of a two-sided 95 %
/// confidence interval. NIST/SEMATECH, e-Handbook of Statistical Methods, §1.3.6.7.2.
const T_975: [f64; 30] = [
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
    2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
];
/// Quantile 0.975 of the normal distribution.
const Z_975: f64 = 1.959_964;

/// Returns the quantile 0.975 of Student's t distribution. At least 1 degree of freedom is needed.
fn t_975(degrees: u64) -> f64 {
    let tabled = usize::try_from(degrees).ok().and_then(|d| T_975.get(d.saturating_sub(1)));
    tabled.copied().unwrap_or_else(|| {
        // Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5; from 31 on within 0.00001.
        let (z, n) = (Z_975, degrees as f64);
        let (z3, z5) = (z * z * z, z * z * z * z * z);
        z + (z3 + z) / (4.0 * n) + (5.0 * z5 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
    })
}

/// Returns the mean of `samples` with its confidence interval; `None` without samples.
pub fn mean(samples: &[f64]) -> Option<Mean> {
    let n = samples.len();
    if n == 0 {
        return None;
    }
    let mean = samples.iter().sum::<f64>() / n as f64;
    let ci95 = samples.iter().any(|x| *x != samples[0]).then(|| {
        let squares: f64 = samples.iter().map(|x| (x - mean) * (x - mean)).sum();
        let variance = squares / (n - 1) as f64;
        t_975(n as u64 - 1) * (variance / n as f64).sqrt()
    });
    Some(Mean { n: n as u64, mean, ci95, measured: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_beyond_the_table() {
        // From printed tables of the t distribution.
        for (degrees, t) in [(1, 12.706), (9, 2.262), (30, 2.042), (40, 2.021), (60, 2.000), (120, 1.980)] {
            assert!((t_975(degrees) - t).abs() < 0.0005, "{degrees}: {}", t_975(degrees));
        }
        // The formula and the table meet.
        assert!(t_975(30) > t_975(31) && t_975(30) - t_975(31) < 0.004);
        assert!((t_975(1_000_000) - Z_975).abs() < 1e-5);
    }

    #[test]
    fn an_interval_by_hand() {
        // Mean 5; deviations -3, -1, 1, 3: sum of squares 20, variance 20/3, standard error sqrt(5/3) =
        // 1.29099; t with 3 degrees of freedom is 3.182.
        let m = mean(&[2.0, 4.0, 6.0, 8.0]).unwrap();
        assert_eq!((m.n, m.mean), (4, 5.0));
        assert!((m.ci95.unwrap() - 4.107_944).abs() < 1e-5, "{m:?}");
    }

    #[test]
    fn few_samples() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[3.0]), Some(Mean { n: 1, mean: 3.0, ci95: None, measured: None }));
        // All the same: the seeds changed nothing.
        assert_eq!(mean(&[3.0, 3.0]), Some(Mean { n: 2, mean: 3.0, ci95: None, measured: None }));
    }
}
