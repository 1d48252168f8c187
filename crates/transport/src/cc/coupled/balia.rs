//! BALIA, "Balanced Linked Adaptation" (Peng, Walid, Hwang and Low, Multipath TCP: Analysis, Design, and Implementation,
//! IEEE/ACM Transactions on Networking 24(1), 2016).
//!
//! | symbol | here |
//! |---|---|
//! | w_r, τ_r, x_r = w_r / τ_r | [`Flow::segments`], [`Flow::rtt`], [`Flow::rate`] |
//! | α_r = max x_k / x_r | `imbalance` |

use super::{Coupling, Flow, Flows};
use crate::about::About;

/// Balanced linked adaptation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Balia;

impl Coupling for Balia {
    const ABOUT: About =
        About { name: "balia", help: "Coupled: BALIA, between LIA's answer to change and OLIA's fairness" };

    fn increase(&self, flow: &Flow, flows: &Flows) -> f64 {
        let alpha = imbalance(flow, flows);
        flow.rate() / flow.rtt() / flows.rate().powi(2) * (1.0 + alpha) / 2.0 * (4.0 + alpha) / 5.0
    }

    fn decrease(&self, flow: &Flow, flows: &Flows) -> f64 {
        1.0 - imbalance(flow, flows).min(1.5) / 2.0
    }
}

fn imbalance(flow: &Flow, flows: &Flows) -> f64 {
    flows.iter().map(Flow::rate).fold(0.0, f64::max) / flow.rate()
}

#[cfg(test)]
mod tests {
    use super::super::bench::{after_loss, coupled, growth};
    use super::*;

    /// (cwnd, ms) of both paths; growth of each per segment, in thousandths, and what a loss leaves.
    #[test]
    fn the_equations_by_hand() {
        let table = [
            // α = 1: (10/0.01) / 200² = 0.025
            ([(10, 100), (10, 100)], [25.0, 25.0], [5.0, 5.0]),
            // α = 1 and 2: 0.0222, and 0.0111 · 1.5 · 1.2
            ([(20, 100), (10, 100)], [22.2, 20.0], [10.0, 2.5]),
            // x = 200 and 100: (10/0.0025) / 300² = 0.0444, and (10/0.01) / 300² · 1.5 · 1.2
            ([(10, 50), (10, 100)], [44.4, 20.0], [5.0, 2.5]),
        ];
        for (paths, grown, left) in table {
            for path in 0..2 {
                let thousandths = 1000.0 * growth(&mut coupled(Balia, &paths), path as u16);
                assert!((thousandths - grown[path]).abs() < 0.1, "{paths:?} {path}: {thousandths}");
                assert_eq!(after_loss(&mut coupled(Balia, &paths), path as u16), left[path], "{paths:?}");
            }
        }
    }

    #[test]
    fn an_only_path_is_renos() {
        assert!((growth(&mut coupled(Balia, &[(10, 100)]), 0) - 0.1).abs() < 1e-12);
        assert_eq!(after_loss(&mut coupled(Balia, &[(10, 100)]), 0), 5.0);
    }
}
