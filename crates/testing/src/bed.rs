//! Two ends of a protocol, the links between them, and virtual time.
//!
//! A test's own type has the two ends and a [`Wire`]. It says in [`Bed`] what becomes of a packet that arrives, and what an
//! end does when it has its turn; the loop, the links and what happens to packets are here. Nothing depends on the clock or on
//! chance, so a test takes the same course each time.
//!
//! Not `polypath_hop::Hop`, which draws its losses: a test loses the packet that it means, and changes a link between two packets.

use polypath_wire::{Duration, Instant};

use crate::wire::Wire;

/// The end that opens, and the one that accepts.
pub const CLIENT: usize = 0;
/// The other one.
pub const SERVER: usize = 1;

/// Two ends and what is between them.
pub trait Bed: Sized {
    /// What travels.
    type Packet: Clone;

    /// What the time is.
    fn clock(&mut self) -> &mut Instant;

    /// What is between the ends.
    fn wire(&mut self) -> &mut Wire<Self::Packet>;

    /// `packet` arrives at `end`.
    fn arrive(&mut self, end: usize, packet: Self::Packet);

    /// Everything that `end` and its application can do now. Returns when to ask again.
    fn turn(&mut self, end: usize) -> Option<Instant>;

    /// Timers that are due expire, unless they do so in `turn`.
    fn expire(&mut self) {}

    /// Both ends have their turn. Returns when to ask them again.
    fn turns(&mut self) -> Option<Instant> {
        [CLIENT, SERVER].map(|end| self.turn(end)).into_iter().flatten().min()
    }

    /// Runs until `done`, and at most until `until`; whether it was done.
    fn run_until_done(&mut self, until: Instant, mut done: impl FnMut(&mut Self) -> bool) -> bool {
        let mut due = self.turns();
        while !done(self) {
            let next = due.into_iter().chain(self.wire().next_arrival()).min().filter(|at| *at <= until);
            let now = next.unwrap_or(until).max(*self.clock());
            *self.clock() = now;
            if next.is_none() {
                return false;
            }
            while let Some((end, packet)) = self.wire().arrived(now) {
                self.arrive(end, packet);
                self.turn(end);
            }
            self.expire();
            due = self.turns();
        }
        true
    }

    /// Runs until `until`.
    fn run_until(&mut self, until: Instant) {
        self.run_until_done(until, |_| false);
    }

    /// Runs for this long.
    fn run_for(&mut self, time: Duration) {
        let until = *self.clock() + time;
        self.run_until(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Fate, Link};

    const MS: fn(u64) -> Duration = Duration::from_millis;

    /// The client sends a number each second, which the server sends back.
    struct Echo {
        now: Instant,
        wire: Wire<u64>,
        sent: u64,
        came: Vec<(u64, usize, u64)>,
    }

    impl Bed for Echo {
        type Packet = u64;

        fn clock(&mut self) -> &mut Instant {
            &mut self.now
        }

        fn wire(&mut self) -> &mut Wire<u64> {
            &mut self.wire
        }

        fn arrive(&mut self, end: usize, number: u64) {
            self.came.push((self.now.0 / 1_000_000, end, number));
            if end == SERVER {
                self.wire.send(self.now, SERVER, 0, 100, number);
            }
        }

        fn turn(&mut self, end: usize) -> Option<Instant> {
            let due = |sent| Instant::ZERO + Duration::from_secs(sent);
            if end == CLIENT && due(self.sent) <= self.now {
                self.wire.send(self.now, CLIENT, 0, 100, self.sent);
                self.sent += 1;
            }
            (end == CLIENT).then(|| due(self.sent))
        }
    }

    fn echo() -> Echo {
        Echo { now: Instant::ZERO, wire: Wire::new([Link::new(MS(10))]), sent: 0, came: Vec::new() }
    }

    #[test]
    fn packets_arrive_at_their_time_and_time_stops_where_it_should() {
        let mut bed = echo();
        bed.run_for(MS(1500));
        assert_eq!(bed.now, Instant::ZERO + MS(1500));
        assert_eq!(bed.came, [(10, SERVER, 0), (20, CLIENT, 0), (1010, SERVER, 1), (1020, CLIENT, 1)]);
        assert!(bed.run_until_done(bed.now + MS(1000), |bed| bed.came.len() > 4));
        assert_eq!(bed.now, Instant::ZERO + MS(2010), "no later than it is done");
        assert!(!bed.run_until_done(Instant::ZERO + MS(2500), |bed| bed.came.len() > 6));
        assert_eq!(bed.now, Instant::ZERO + MS(2500));
    }

    #[test]
    fn a_script_decides_about_every_packet() {
        let mut bed = echo();
        bed.wire.script(|number| match number {
            0 => Fate::Lose,
            1 => Fate::Twice,
            2 => Fate::Delay(MS(100)),
            _ => Fate::replaced(number + 100),
        });
        bed.run_for(MS(3011));
        let at_server: Vec<_> = bed.came.iter().filter(|(_, end, _)| *end == SERVER).copied().collect();
        let expected = [(1010, SERVER, 1), (1010, SERVER, 1), (2110, SERVER, 2), (3010, SERVER, 103)];
        assert_eq!(at_server, expected);
    }

    #[test]
    fn what_is_taken_off_the_wire_does_not_arrive() {
        let mut bed = echo();
        bed.run_for(MS(1));
        bed.wire.retain(|number| *number != 0);
        assert!(bed.wire.is_empty());
        bed.run_for(MS(500));
        assert_eq!(bed.came, []);
    }
}
