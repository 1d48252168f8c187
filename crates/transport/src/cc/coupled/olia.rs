//! OLIA, "Opportunistic Linked Increases" (Khalili, Gast, Popovic, Upadhyay and Le Boudec, MPTCP is not Pareto-optimal:
//! performance issues and a possible solution, CoNEXT 2012).
//!
//! | symbol | here |
//! |---|---|
//! | w_r, rtt_r | [`Flow::segments`], [`Flow::rtt`] |
//! | ℓ_r | [`Flow::loss_interval`]: the larger of what was delivered since the last loss and between the last two |
//! | B, the best paths | those with the largest ℓ_r / rtt_r² |
//! | M, the largest windows | those with the largest w_r |
//! | α_r | `opportunity` |

use super::{Coupling, Flow, Flows};
use crate::about::About;

/// Values so close count as equal.
const EQUAL: f64 = 1e-9;

/// Opportunistic linked increases.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Olia;

impl Coupling for Olia {
    const ABOUT: About =
        About { name: "olia", help: "Coupled: OLIA, as LIA, and windows move to the paths that lose least" };

    fn increase(&self, flow: &Flow, flows: &Flows) -> f64 {
        let shared = flow.rate() / flow.rtt() / flows.rate().powi(2);
        shared + opportunity(flow, flows) / flow.segments()
    }
}

fn quality(flow: &Flow) -> f64 {
    flow.loss_interval() / flow.rtt().powi(2)
}

/// α_r: best paths whose windows are not the largest gain what the paths with the largest windows lose.
fn opportunity(flow: &Flow, flows: &Flows) -> f64 {
    let most = |of: fn(&Flow) -> f64| flows.iter().map(of).fold(0.0, f64::max) * (1.0 - EQUAL);
    let (window, best) = (most(Flow::segments), most(quality));
    let is_largest = |f: &Flow| f.segments() >= window;
    let is_collected = |f: &Flow| quality(f) >= best && !is_largest(f);
    let all = flows.iter().count() as f64;
    let count = |is: &dyn Fn(&Flow) -> bool| flows.iter().filter(|f| is(f)).count() as f64;
    match count(&is_collected) {
        0.0 => 0.0,
        collected if is_collected(flow) => 1.0 / all / collected,
        _ if is_largest(flow) => -1.0 / all / count(&is_largest),
        _ => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::super::bench::{coupled, growth, losses};
    use super::*;

    /// Two paths, 100 ms: w = 20 and 10. (20/0.01) / 300² = 0.0222, (10/0.01) / 300² = 0.0111.
    #[test]
    fn the_equations_by_hand() {
        // what was delivered between losses on each path; growth in thousandths
        let table = [
            // the best path has the largest window: only the linked increase
            ([400, 100], [22.2, 11.1]),
            // a best path has the smaller window: α = +1/2 there, −1/2 at the largest
            ([100, 100], [22.2 - 25.0, 11.1 + 50.0]),
            ([100, 200], [22.2 - 25.0, 11.1 + 50.0]),
        ];
        for (delivered, expected) in table {
            for (path, expected) in expected.into_iter().enumerate() {
                let mut two = coupled(Olia, &[(20, 100), (10, 100)]);
                for (n, segments) in delivered.iter().enumerate() {
                    losses(&mut two.0, n as u16, 1000, segments * 1000);
                }
                let thousandths = 1000.0 * growth(&mut two, path as u16);
                assert!((thousandths - expected).abs() < 0.2, "{delivered:?} {path}: {thousandths}");
            }
        }
    }

    /// 1/N over the paths in B∖M, −1/N over those in M, with N = 3.
    #[test]
    fn opportunities_are_divided_among_equals() {
        let mut three = coupled(Olia, &[(20, 100), (20, 100), (10, 100)]);
        for (path, segments) in [(0, 100), (1, 100), (2, 300)] {
            losses(&mut three.0, path, 0, segments * 1000);
        }
        let alphas: Vec<_> = three.0.flows.iter().map(|f| opportunity(f, &three.0.flows)).collect();
        assert_eq!(alphas, [-1.0 / 6.0, -1.0 / 6.0, 1.0 / 3.0]);
    }

    #[test]
    fn a_quick_path_is_better_than_a_slow_one_that_loses_as_often() {
        let mut two = coupled(Olia, &[(20, 100), (10, 50)]);
        losses(&mut two.0, 0, 0, 300_000);
        losses(&mut two.0, 1, 100_000, 0);
        let [slow, quick] = [0, 1].map(|n| two.0.flows.iter().nth(n).map(|f| opportunity(f, &two.0.flows)));
        assert_eq!((slow, quick), (Some(-0.5), Some(0.5)), "300 / 0.1² < 100 / 0.05²");
    }

    #[test]
    fn an_only_path_grows_as_renos() {
        assert!((growth(&mut coupled(Olia, &[(10, 100)]), 0) - 0.1).abs() < 1e-12);
    }
}
