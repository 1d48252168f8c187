//! How runs scatter: quartiles and whiskers, densities, distributions.

/// What a box shows.
#[derive(Clone, PartialEq, Debug)]
pub struct Spread {
    /// The smallest within 1.5 interquartile ranges of the box.
    pub low: f64,
    /// Lower quartile.
    pub q1: f64,
    /// Median.
    pub median: f64,
    /// Upper quartile.
    pub q3: f64,
    /// The largest within 1.5 interquartile ranges of the box.
    pub high: f64,
    /// Those beyond.
    pub beyond: Vec<f64>,
}

/// Of `values`; `None` if there are none. Quartiles lie between the two nearest values, in proportion.
pub fn spread(values: &[f64]) -> Option<Spread> {
    let sorted = ascending(values);
    let (q1, median, q3) = (quantile(&sorted, 0.25)?, quantile(&sorted, 0.5)?, quantile(&sorted, 0.75)?);
    let reach = 1.5 * (q3 - q1);
    let (inside, beyond): (Vec<f64>, Vec<f64>) =
        sorted.into_iter().partition(|v| (q1 - reach..=q3 + reach).contains(v));
    let (low, high) = (inside.first().copied().unwrap_or(q1), inside.last().copied().unwrap_or(q3));
    Some(Spread { low, q1, median, q3, high, beyond })
}

fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    Some(below + (above - below) * at.fract())
}

/// `steps` values from the smallest to the largest, each with its density over the greatest: a Gaussian kernel as wide as
/// Silverman says (Density Estimation for Statistics and Data Analysis, 1986, eq. 3.31). None of less than two different values.
pub fn density(values: &[f64], steps: usize) -> Vec<(f64, f64)> {
    let sorted = ascending(values);
    let Some((q1, q3)) = quantile(&sorted, 0.25).zip(quantile(&sorted, 0.75)) else { return Vec::new() };
    let n = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / n;
    let sd = (sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0)).sqrt();
    let narrow = if q3 > q1 { sd.min((q3 - q1) / 1.34) } else { sd };
    let width = 0.9 * narrow * n.powf(-0.2);
    if width.is_nan() || width <= 0.0 {
        return Vec::new();
    }
    let (low, high) = (sorted[0], sorted[sorted.len() - 1]);
    let at = |step: usize| low + (high - low) * step as f64 / (steps - 1) as f64;
    let dense = |x: f64| sorted.iter().map(|v| (-((x - v) / width).powi(2) / 2.0).exp()).sum::<f64>();
    let outline: Vec<(f64, f64)> = (0..steps).map(|step| (at(step), dense(at(step)))).collect();
    let most = outline.iter().map(|(_, d)| *d).fold(0.0, f64::max);
    outline.into_iter().map(|(x, d)| (x, d / most)).collect()
}

/// The share of `values` that are at most each of them, in order.
pub fn distribution(values: &[f64]) -> Vec<(f64, f64)> {
    let sorted = ascending(values);
    let n = sorted.len() as f64;
    sorted.into_iter().enumerate().map(|(k, v)| (v, (k + 1) as f64 / n)).collect()
}

fn ascending(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_has_quartiles_whiskers_and_those_beyond() {
        let of = spread(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 30.0]).unwrap();
        assert_eq!((of.q1, of.median, of.q3), (3.0, 5.0, 7.0));
        assert_eq!((of.low, of.high, of.beyond), (1.0, 8.0, vec![30.0]));
        let pair = spread(&[2.0, 1.0]).unwrap();
        assert_eq!((pair.q1, pair.median, pair.q3), (1.25, 1.5, 1.75));
        assert_eq!(spread(&[]), None);
    }

    #[test]
    fn a_density_is_greatest_where_most_values_are() {
        let outline = density(&[1.0, 2.0, 2.0, 2.1, 3.0], 21);
        assert_eq!((outline[0].0, outline[20].0), (1.0, 3.0));
        let most = outline.iter().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap();
        assert_eq!(most.1, 1.0);
        assert!((most.0 - 2.0).abs() < 0.11, "{most:?}");
        assert!(
            density(&[1.0], 9).is_empty() && density(&[4.0, 4.0], 9).is_empty() && density(&[], 9).is_empty()
        );
    }

    #[test]
    fn a_distribution_ends_with_all() {
        assert_eq!(distribution(&[3.0, 1.0]), [(1.0, 0.5), (3.0, 1.0)]);
    }
}
