//! BLEST, "blocking estimation" (Ferlin, Alay, Mehani and Boreli, BLEST: Blocking Estimation-based MPTCP Scheduler for
//! Heterogeneous Networks, IFIP Networking 2016).
//!
//! The path with the smallest round trip takes what it can. While it is full, another takes a segment only if the peer's
//! window holds what the quick path could send until that is acknowledged.
//!
//! | symbol | here |
//! |---|---|
//! | RTT_F, CWND_F; RTT_S | round trip and window of the quickest path; round trip of the one that would take the segment |
//! | X = MSS_F (CWND_F + (rtts − 1) / 2) rtts, rtts = RTT_S / RTT_F | `while_away` |
//! | M | `Parcel::window` |
//! | λ | 1: the paper moves it where the window blocked nevertheless, which a scheduler does not learn |

use polypath_wire::{Instant, PathId};

use super::min_rtt::MinRtt;
use super::scheduler::{Choice, Scheduler};
use crate::about::About;
use crate::facts::{Parcel, PathView, Why};

/// Smallest round trip first, and no segment on a slow path that would fill the peer's window.
#[derive(Debug, Default)]
pub(crate) struct Blest;

impl Blest {
    /// Name and help.
    pub(crate) const ABOUT: About = About {
        name: "blest",
        help: "As min_rtt, but waits if a segment on a slow path would fill the peer's window (BLEST)",
    };
}

impl Scheduler for Blest {
    fn pick(&mut self, now: Instant, parcel: &Parcel, paths: &[PathView]) -> Choice {
        MinRtt::pick_unless(now, parcel, paths, |quick, slow| blocks(parcel, quick, slow))
    }

    fn why(&self, now: Instant, parcel: &Parcel, paths: &[PathView], path: PathId) -> Why {
        MinRtt.why(now, parcel, paths, path)
    }
}

/// Whether the window cannot hold the segment on `slow` and what `quick` could send meanwhile.
fn blocks(parcel: &Parcel, quick: &PathView, slow: &PathView) -> bool {
    let left = parcel.window.saturating_sub(slow.in_flight + u64::from(slow.mss));
    while_away(quick, slow).is_some_and(|sent| sent > left as f64)
}

/// X: bytes that `quick` sends in a round trip of `slow`, with a window that grows by a segment in each of its own.
fn while_away(quick: &PathView, slow: &PathView) -> Option<f64> {
    let rtts = slow.srtt?.as_secs_f64() / quick.srtt?.as_secs_f64();
    Some((quick.window as f64 + f64::from(quick.mss) * (rtts - 1.0) / 2.0) * rtts)
}

#[cfg(test)]
mod tests {
    use super::super::scheduler::bench::{PARCEL, two};
    use super::*;

    /// Ten round trips of 20 ms with 100 segments and one more each: 1,000 · (100 + 9/2) · 10 = 1,045,000 bytes; and a segment on
    /// the slow path, beside the 50 there.
    #[test]
    fn waits_if_the_window_does_not_hold_what_the_quick_path_sends_meanwhile() {
        for (window, choice) in [(1_095_000, Choice::Wait(None)), (1_097_000, Choice::Send(PathId(1)))] {
            assert_eq!(Blest.pick(Instant::ZERO, &Parcel { window, ..PARCEL }, &two()), choice, "{window}");
        }
    }

    #[test]
    fn the_quick_path_takes_what_it_can_and_losses_do_not_wait() {
        let (mut paths, full) = (two(), Parcel { window: 0, ..PARCEL });
        let lost = Parcel { retransmission: true, ..full };
        assert_eq!(Blest.pick(Instant::ZERO, &lost, &paths), Choice::Send(PathId(1)));
        paths[0].room = 1000;
        assert_eq!(Blest.pick(Instant::ZERO, &full, &paths), Choice::Send(PathId(0)));
        (paths[0].room, paths[0].in_flight) = (0, 0);
        assert_eq!(Blest.pick(Instant::ZERO, &full, &paths), Choice::Send(PathId(1)), "nothing will open it");
    }
}
