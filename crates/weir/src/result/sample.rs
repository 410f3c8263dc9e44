//! Samples of a few equivalent values, such as those of repeated runs. They use
//! [`weir_core::stats::quantile`]; values measured for many packets have the quantiles of results.

/// Returns the median of `sorted`: the middle value, or the mean of the middle two. `None` without values.
pub fn median(sorted: &[f64]) -> Option<f64> {
    let (low, high) = (sorted.get(sorted.len().checked_sub(1)? / 2)?, sorted.get(sorted.len() / 2)?);
    Some((low + high) / 2.0)
}

#[cfg(test)]
mod tests {
    use super::median;

    #[test]
    fn the_middle() {
        assert_eq!(median(&[1.0, 2.0, 9.0]), Some(2.0));
        assert_eq!(median(&[1.0, 2.0, 4.0, 9.0]), Some(3.0));
        assert_eq!((median(&[5.0]), median(&[])), (Some(5.0), None));
    }
}
