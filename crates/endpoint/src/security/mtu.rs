//! How large the packets of a path may be (RFC 8899): found by asking, as a router's word may not come, and may
//! be forged.
//!
//! A probe is a heartbeat of the size in question; its answer is as large, so both directions are asked at once.
//! It begins with a size that nearly every network carries, and that what is known of the link first: mostly the
//! first probe is the last one. While much is sent, the size in use is asked for again, and given up when three
//! probes of it in a row are lost: a heartbeat that left later came back, and the probe did not. So a slow path has
//! one probe under way, however long that takes, and on a dead one nothing is concluded from silence.

use polypath_wire::{Duration, Instant};

/// BASE_PLPMTU of RFC 8899 §5.1.2 as a size of IP packets: what every IPv6 network carries, and nearly every other.
const BASE: u32 = 1280;
/// What every IPv4 host takes (RFC 791).
const LEAST_V4: u32 = 576;
/// MAX_PROBES of RFC 8899 §5.1.2.
const MAX_PROBES: u32 = 3;
/// Sizes that are closer count as equal, bytes.
const PRECISION: u32 = 16;
/// CONFIRMATION_TIMER of RFC 8899 §5.1.1: a full packet every second would be much on a slow link.
const CONFIRM: Duration = Duration::from_secs(5);
/// PMTU_RAISE_TIMER of RFC 8899 §5.1.1.
const RAISE: Duration = Duration::from_secs(600);

/// What is known of the packet size of one path; all sizes are of IP packets, bytes.
#[derive(Clone, Debug)]
pub(super) struct PathMtu {
    /// What our link takes.
    link: u32,
    /// What routers on the way are said to take.
    told: u32,
    /// What every network takes.
    least: u32,
    /// What is sent at most.
    carried: u32,
    /// Whether a packet of that size was answered.
    proven: bool,
    /// The smallest size that was not answered.
    failed: Option<u32>,
    /// What is asked for.
    probe: Option<Probe>,
    /// When larger ones are asked for again.
    raise: Instant,
    /// When the size in use is asked for again, if it is used.
    confirm: Instant,
}

/// A size that is asked for.
#[derive(Clone, Copy, Debug)]
struct Probe {
    size: u32,
    /// How often it was.
    tries: u32,
    /// When it was last.
    sent: Instant,
    /// That one is lost.
    lost: bool,
}

impl PathMtu {
    /// A path over a link that takes packets of `link` bytes.
    pub fn new(now: Instant, link: u32, v4: bool) -> Self {
        let least = if v4 { LEAST_V4 } else { BASE };
        let carried = link.min(BASE);
        let (raise, confirm) = (now + RAISE, now + CONFIRM);
        Self { link, told: link, least, carried, proven: false, failed: None, probe: None, raise, confirm }
    }

    /// The largest packet to be sent.
    pub fn carried(&self) -> u32 {
        self.carried
    }

    /// The largest packet that the link takes.
    pub fn link(&self) -> u32 {
        self.link
    }

    /// Whether nothing larger is asked for, for now.
    pub fn is_settled(&self) -> bool {
        self.candidate().is_none()
    }

    /// It is time for a probe: of which size. `busy`: packets larger than any network takes were sent lately.
    pub fn next_probe(&mut self, now: Instant, busy: bool) -> Option<u32> {
        if let Some(probe) = self.probe.filter(|probe| probe.lost && probe.tries >= MAX_PROBES) {
            self.fail(probe.size);
        }
        if now >= self.raise {
            self.raise = now + RAISE;
            (self.told, self.failed, self.probe) = (self.link, None, None);
        }
        let (size, tries) = match self.probe {
            Some(probe) if !probe.lost => return None,
            Some(probe) => (probe.size, probe.tries),
            None => (self.candidate().or((busy && now >= self.confirm).then_some(self.carried))?, 0),
        };
        self.confirm = now + CONFIRM;
        self.probe = Some(Probe { size, tries: tries + 1, sent: now, lost: false });
        Some(size)
    }

    /// A heartbeat came back that left at `sent`. Whether that says that a probe was lost: the next one is due.
    pub fn overtaken(&mut self, sent: Instant) -> bool {
        let earlier = self.probe.as_mut().filter(|probe| !probe.lost && probe.sent < sent);
        earlier.map(|probe| probe.lost = true).is_some()
    }

    /// The size under way.
    pub fn asked(&self) -> Option<u32> {
        self.probe.map(|probe| probe.size)
    }

    /// The probe was answered. Whether more is sent from now on.
    pub fn answered(&mut self) -> bool {
        let Some(Probe { size, .. }) = self.probe.take() else { return false };
        self.failed = self.failed.filter(|failed| *failed > size);
        self.proven |= size >= self.carried;
        let more = size > self.carried;
        self.carried = self.carried.max(size);
        more
    }

    /// A router, or our own host, says that packets of more than `mtu` bytes do not get through. Whether that is
    /// news.
    pub fn too_big(&mut self, mtu: u32) -> bool {
        let mtu = mtu.max(self.least);
        if mtu >= self.told {
            return false;
        }
        self.told = mtu;
        self.probe = self.probe.filter(|probe| probe.size <= mtu);
        self.carried = self.carried.min(mtu);
        true
    }

    /// What to ask for next: the most there may be, then what is safe, then what lies between.
    fn candidate(&self) -> Option<u32> {
        match self.failed {
            None if self.proven && self.carried >= self.told => None,
            None => Some(self.told),
            Some(_) if !self.proven => Some(self.carried),
            Some(failed) => {
                let most = failed.min(self.told + 1);
                (most > self.carried + PRECISION).then(|| self.carried + (most - self.carried) / 2)
            }
        }
    }

    /// Number of probes in a row that were lost.
    fn fail(&mut self, size: u32) {
        self.probe = None;
        self.failed = Some(self.failed.map_or(size, |failed| failed.min(size)));
        if size <= self.carried {
            let safe = if self.carried > BASE { BASE } else { self.least };
            self.proven = safe == self.least;
            self.carried = safe.min(self.carried);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Beats until nothing is asked any more on a way that carries `carries`; the number of probes.
    fn settle(mtu: &mut PathMtu, carries: u32) -> u32 {
        let mut probes = 0;
        while let Some(size) = mtu.next_probe(Instant::ZERO, false) {
            probes += 1;
            if size <= carries {
                mtu.answered();
            } else {
                assert!(mtu.overtaken(Instant(1)));
            }
        }
        probes
    }

    #[test]
    fn a_probe_is_repeated_when_it_is_lost_and_not_when_it_takes_long() {
        let mut mtu = PathMtu::new(Instant::ZERO, 1500, true);
        let second = |n| Instant::ZERO + Duration::from_secs(n);
        assert_eq!(mtu.next_probe(second(0), false), Some(1500));
        assert!(!mtu.overtaken(second(0)), "that heartbeat left before it");
        assert_eq!((1..100).find_map(|n| mtu.next_probe(second(n), true)), None);
        assert!(mtu.overtaken(second(1)) && !mtu.overtaken(second(2)), "lost only once");
        assert_eq!(mtu.next_probe(second(2), false), Some(1500));
        assert!(mtu.answered() && mtu.carried() == 1500);
    }

    #[test]
    fn the_first_probe_is_the_last_where_the_link_is_the_narrowest() {
        let mut mtu = PathMtu::new(Instant::ZERO, 1500, true);
        assert_eq!(mtu.carried(), 1280);
        assert_eq!(settle(&mut mtu, 1500), 1);
        assert_eq!(mtu.carried(), 1500);
        assert_eq!(mtu.next_probe(Instant::ZERO + CONFIRM, false), None);
        assert_eq!(mtu.next_probe(Instant::ZERO + CONFIRM, true), Some(1500), "confirmed while it is used");
    }

    #[test]
    fn a_black_hole_is_searched_for_its_edge() {
        for carries in [576, 1000, 1280, 1300, 1400, 1492, 1499] {
            let mut mtu = PathMtu::new(Instant::ZERO, 1500, true);
            settle(&mut mtu, carries);
            assert!(mtu.carried() <= carries, "{carries}: {mtu:?}");
            assert!(carries < 1280 || mtu.carried() + PRECISION >= carries, "{carries}: {mtu:?}");
        }
        let mut mtu = PathMtu::new(Instant::ZERO, 1500, false);
        settle(&mut mtu, 1000);
        assert_eq!(mtu.carried(), 1280, "IPv6 carries no less (RFC 8200 §5)");
    }

    #[test]
    fn a_way_that_becomes_narrower_is_noticed_while_it_is_used() {
        let mut mtu = PathMtu::new(Instant::ZERO, 1500, true);
        settle(&mut mtu, 1500);
        assert_eq!(mtu.next_probe(Instant::ZERO, true), None, "not so soon");
        for _ in 0..MAX_PROBES {
            assert_eq!(mtu.next_probe(Instant::ZERO + CONFIRM, true), Some(1500));
            assert!(mtu.overtaken(Instant::ZERO + CONFIRM + Duration(1)));
        }
        assert_eq!(mtu.next_probe(Instant::ZERO + CONFIRM, true), Some(1280));
        assert_eq!((mtu.carried(), mtu.answered()), (1280, false));
        settle(&mut mtu, 1400);
        assert!((1384..=1400).contains(&mtu.carried()), "{mtu:?}");
    }

    #[test]
    fn a_routers_word_is_taken_within_bounds_and_tried_again_later() {
        let mut mtu = PathMtu::new(Instant::ZERO, 1500, true);
        settle(&mut mtu, 1500);
        assert!(mtu.too_big(1400) && mtu.carried() == 1400);
        assert!(!mtu.too_big(1450) && mtu.carried() == 1400, "it cannot make packets larger");
        assert_eq!(mtu.next_probe(Instant::ZERO, false), None);
        assert!(mtu.too_big(0) && mtu.carried() == 576);
        let later = Instant::ZERO + RAISE;
        assert_eq!(mtu.next_probe(later, false), Some(1500));
        assert!(mtu.answered() && mtu.carried() == 1500);
    }
}
