//! ECF, "earliest completion first" (Lim, Nahum, Towsley and Gibbens, ECF: An MPTCP Path Scheduler to Manage Heterogeneous
//! Paths, CoNEXT 2017).
//!
//! The path with the smallest round trip takes what it can. While it is full, another takes a segment only if that is
//! done before the quick path would have sent all that waits.
//!
//! | symbol | here |
//! |---|---|
//! | k | `Parcel::waiting`, bytes; without end while the writer has more than was taken |
//! | RTT_f, CWND_f, σ_f; RTT_s, … | `srtt`, `window`, `rttvar` of the quickest path; of the one that would take the segment |
//! | δ = max(σ_f, σ_s) | `spread` |
//! | β | `BETA`, 0.25 |

use polypath_wire::{Instant, PathId};

use super::min_rtt::MinRtt;
use super::scheduler::{Choice, Scheduler};
use crate::about::About;
use crate::facts::{Parcel, PathView, Why};

/// How much later the quick path may be done once one waits for it.
const BETA: f64 = 0.25;

/// Smallest round trip first, and no segment on a slow path that would be done last.
#[derive(Debug, Default)]
pub(crate) struct Ecf {
    waiting: bool,
}

impl Ecf {
    /// Name and help.
    pub(crate) const ABOUT: About = About {
        name: "ecf",
        help: "As min_rtt, but waits if the quick path would finish all remaining data first (ECF)",
    };

    /// Whether all that waits is done sooner on `quick` alone.
    fn waits(&mut self, parcel: &Parcel, quick: &PathView, slow: &PathView) -> Option<bool> {
        let secs = |d: polypath_wire::Duration| d.as_secs_f64();
        let (quick_rtt, slow_rtt) = (quick.srtt.map(secs)?, slow.srtt.map(secs)?);
        let spread = quick.rttvar.max(slow.rttvar).map_or(0.0, secs);
        let windows = |path: &PathView| parcel.waiting as f64 / path.window as f64;
        let patience = if self.waiting { 1.0 + BETA } else { 1.0 };
        if (1.0 + windows(quick)) * quick_rtt >= patience * (slow_rtt + spread) {
            self.waiting = false;
            return Some(false);
        }
        let worth = windows(slow) * slow_rtt >= 2.0 * quick_rtt + spread;
        self.waiting |= worth;
        Some(worth)
    }
}

impl Scheduler for Ecf {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        MinRtt::pick_unless(now, parcel, paths, |quick, slow| self.waits(parcel, quick, slow) == Some(true))
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        MinRtt.why(now, parcel, paths, path)
    }
}

#[cfg(test)]
mod tests {
    use super::super::scheduler::bench::{PARCEL, two};
    use super::*;

    fn pick(ecf: &mut Ecf, waiting: u64) -> Choice {
        ecf.pick(Instant::ZERO, &Parcel { waiting, ..PARCEL }, &two())
    }

    /// (1 + k / 100 kB) · 20 ms on the quick path, 200 ms on the slow one: it waits up to 900 kB, and once it waits, by β
    /// up to 1,150 kB.
    #[test]
    fn waits_if_the_quick_path_is_done_first_and_then_some() {
        let (wait, send) = (Choice::Wait(None), Choice::Send(PathId(1)));
        let mut ecf = Ecf::default();
        for (kilobytes, choice) in [(901, send), (899, wait), (1149, wait), (1151, send), (901, send)] {
            assert_eq!(pick(&mut ecf, kilobytes * 1000), choice, "{kilobytes} kB");
        }
        assert_eq!(pick(&mut ecf, u64::MAX), send, "nobody knows the end");
    }

    /// k / 100 kB · 200 ms on the slow path against 2 · 20 ms: below 20 kB it is done in time there.
    #[test]
    fn what_is_soon_done_on_the_slow_path_takes_it() {
        let mut ecf = Ecf::default();
        assert_eq!(pick(&mut ecf, 19_000), Choice::Send(PathId(1)));
        assert_eq!(pick(&mut ecf, 21_000), Choice::Wait(None));
    }

    #[test]
    fn losses_do_not_wait() {
        let lost = Parcel { retransmission: true, waiting: 500_000, ..PARCEL };
        assert_eq!(Ecf::default().pick(Instant::ZERO, &lost, &two()), Choice::Send(PathId(1)));
    }
}
