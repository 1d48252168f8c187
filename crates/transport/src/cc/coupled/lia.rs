//! LIA, "Linked Increases" (RFC 6356).
//!
//! | symbol | here |
//! |---|---|
//! | cwnd_i, rtt_i | [`Flow::segments`], [`Flow::rtt`] |
//! | cwnd_total | `total` |
//! | alpha | `alpha`, computed at every acknowledgment |

use super::{Coupling, Flow, Flows};
use crate::about::About;

/// RFC 6356.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lia;

impl Coupling for Lia {
    const ABOUT: About =
        About { name: "lia", help: "Coupled: LIA (RFC 6356), the windows of all paths grow as one TCP's" };

    fn increase(&self, flow: &Flow, flows: &Flows) -> f64 {
        let total: f64 = flows.iter().map(Flow::segments).sum();
        let best = flows.iter().map(|f| f.rate() / f.rtt()).fold(0.0, f64::max);
        let alpha = total * best / flows.rate().powi(2); // equation 2
        (alpha / total).min(1.0 / flow.segments()) // equation 1
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{coupled, growth};
    use super::*;

    /// (cwnd, ms) of both paths; growth of each per segment, in thousandths.
    #[test]
    fn equations_1_and_2_by_hand() {
        // α = 20 · (10/0.01) / 200² = 0.5: both together grow by half a segment in a round trip
        // α = 30 · (20/0.01) / 300² = 0.667
        // α = 20 · (10/0.0025) / (200 + 100)² = 0.889: rtt 50 and 100 ms
        // α = 12 · (10/0.0001) / (1000 + 2/0.5)² = 1.190: Reno's growth is the most on the first
        let table = [
            ([(10, 100), (10, 100)], [25.0, 25.0]),
            ([(20, 100), (10, 100)], [22.2, 22.2]),
            ([(10, 50), (10, 100)], [44.4, 44.4]),
            ([(10, 10), (2, 500)], [99.2, 99.2]),
        ];
        for (paths, expected) in table {
            for (path, expected) in expected.into_iter().enumerate() {
                let thousandths = 1000.0 * growth(&mut coupled(Lia, &paths), path as u16);
                assert!((thousandths - expected).abs() < 0.1, "{paths:?} {path}: {thousandths}");
            }
        }
    }

    #[test]
    fn no_window_grows_faster_than_renos_and_an_only_one_as_fast() {
        assert!((growth(&mut coupled(Lia, &[(10, 100)]), 0) - 0.1).abs() < 1e-12);
        let mut uneven = coupled(Lia, &[(40, 20), (10, 200), (2, 20)]);
        for (path, reno) in [(0, 1.0 / 40.0), (1, 0.1), (2, 0.5)] {
            assert!(growth(&mut uneven, path) <= reno + 1e-12, "{path}");
        }
    }
}
