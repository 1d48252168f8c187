//! What left on one path, in its order, and what became of it: the path's *lane*, a virtual queue in which reordering
//! between paths does not exist. Each path numbers its own transmissions; one is overtaken only by later ones of the
//! same path.
//!
//! Here is what leaves and what becomes of it; `evidence.rs` weighs what acknowledgments say, `queries.rs` answers who judges and who
//! sends.

mod evidence;
mod queries;

use std::collections::VecDeque;

use super::transmission::{Fate, Transmission};

/// What one acknowledgment delivered on one path.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub(crate) struct Delivery {
    /// Bytes.
    pub bytes: u64,
    /// Transmissions.
    pub segments: u32,
    /// The one among them that left last, with its number.
    pub newest: Option<(u64, Transmission)>,
    /// One of them, sent once, had been passed by later ones that earlier acknowledgments cover.
    pub reordered: bool,
    /// What came twice, as the acknowledgment on this path reports (RFC 2883): what was sent again, or judged lost, had
    /// arrived.
    pub duplicates: u32,
}

impl Delivery {
    /// `transmission` with this `number` was delivered.
    #[inline]
    fn count(&mut self, number: u64, transmission: &Transmission) {
        self.bytes += transmission.len();
        self.segments += 1;
        if self.newest.is_none_or(|(newest, _)| newest < number) {
            self.newest = Some((number, *transmission));
        }
    }
}

/// The transmissions of one path.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Flight {
    first: u64,
    in_flight: u64,
    /// Bytes that acknowledgments report as having left the network without saying which.
    credit: u64,
    /// Entries whose fate is known.
    settled: u32,
    /// Entries that were delivered.
    delivered: u32,
    highest_delivered: Option<u64>,
    /// In the order sent, numbered from `first`. The first is in flight.
    entries: VecDeque<Transmission>,
    fresh: Delivery,
    /// Acknowledgments on the path itself have covered everything delivered below this number.
    covered: u64,
    /// Entries below `covered` that were delivered.
    vouched: u32,
    /// What is delivered below this number by the present acknowledgment was passed by others.
    passed: u64,
}

impl Flight {
    /// Nothing left yet. An `only` path is acknowledged by its own acknowledgments alone, so all it hears is evidence at once.
    pub(crate) fn new(only: bool) -> Self {
        Self {
            entries: VecDeque::new(),
            first: 0,
            in_flight: 0,
            delivered: 0,
            settled: 0,
            highest_delivered: None,
            covered: if only { u64::MAX } else { 0 },
            vouched: 0,
            credit: 0,
            fresh: Delivery::default(),
            passed: 0,
        }
    }

    /// Another path joins: from now on acknowledgments on other paths tell of this one.
    pub(crate) fn joined_by_another(&mut self) {
        if self.covered == u64::MAX {
            self.covered = self.highest_delivered.map_or(0, |number| number + 1);
        }
    }

    /// `transmission` leaves; its number.
    #[inline]
    pub(crate) fn push(&mut self, transmission: Transmission) -> u64 {
        let number = self.next_number();
        self.in_flight += transmission.len();
        self.entries.push_back(transmission);
        number
    }

    /// Begins the account of a new acknowledgment.
    pub(crate) fn begin_account(&mut self) {
        self.fresh = Delivery::default();
        self.passed = self.covered.min(self.highest_delivered.map_or(0, |number| number + 1));
    }

    /// Begins the account of an acknowledgment where everything comes in order.
    #[inline]
    pub(crate) fn begin_account_in_order(&mut self) {
        self.fresh = Delivery::default();
    }

    /// The transmission `number` was delivered, if it was in flight; `reported` if that was part of the
    /// [credit](Self::add_credit).
    pub(crate) fn deliver(&mut self, number: u64, reported: bool) -> bool {
        let Some(entry) = self.entry(number).filter(|entry| entry.fate == Fate::InFlight) else {
            return false;
        };
        entry.fate = Fate::Delivered;
        let transmission = *entry;
        self.in_flight -= transmission.len();
        self.highest_delivered = self.highest_delivered.max(Some(number));
        if number == self.first {
            self.entries.pop_front();
            self.first += 1;
        } else {
            self.settled += 1;
            self.delivered += 1;
            self.vouched += u32::from(number < self.covered);
        }
        if reported {
            self.credit = self.credit.saturating_sub(transmission.len());
        }
        self.account(number, &transmission);
        true
    }

    /// The same for the oldest transmission where nothing is missing.
    #[inline]
    pub(crate) fn deliver_in_order(&mut self, number: u64) {
        match self.entries.front() {
            Some(oldest) if number == self.first => {
                let oldest = *oldest;
                self.entries.pop_front();
                self.first += 1;
                self.in_flight -= oldest.len();
                self.highest_delivered = Some(number);
                self.fresh.count(number, &oldest);
            }
            _ => _ = self.deliver(number, false),
        }
    }

    /// What was judged lost, and is kept by its owner since, was delivered.
    pub(crate) fn deliver_late(&mut self, number: u64, transmission: &Transmission) {
        self.account(number, transmission);
    }

    fn account(&mut self, number: u64, transmission: &Transmission) {
        self.fresh.reordered |= number < self.passed && !transmission.is_ambiguous();
        self.fresh.count(number, transmission);
    }

    /// Part of a cargo arrived: the first `bytes` of the transmission `number`.
    pub(crate) fn deliver_part(&mut self, number: u64, bytes: u32) {
        self.fresh.bytes += u64::from(bytes);
        if let Some(entry) = self.entry(number) {
            let in_flight = entry.fate == Fate::InFlight;
            entry.cargo.key += u64::from(bytes);
            entry.cargo.len -= bytes;
            self.in_flight -= if in_flight { bytes.into() } else { 0 };
        }
    }

    /// The transmission `number` is judged lost, if it was in flight: what it was.
    pub(crate) fn lose(&mut self, number: u64) -> Option<Transmission> {
        let entry = self.entry(number).filter(|entry| entry.fate == Fate::InFlight)?;
        entry.fate = Fate::Lost;
        let transmission = *entry;
        self.in_flight -= transmission.len();
        self.settled += 1;
        self.trim();
        Some(transmission)
    }

    /// The transmission `number`, which was judged lost, is in flight after all. Returns false if it is already: its cargo was cut
    /// in parts meanwhile, and this is not the first.
    pub(crate) fn take_back(&mut self, number: u64, transmission: Transmission) -> bool {
        while self.first > number {
            self.entries.push_front(Transmission { fate: Fate::Lost, ..transmission });
            self.first -= 1;
            self.settled += 1;
        }
        let Some(entry) = self.entry(number).filter(|entry| entry.fate == Fate::Lost) else { return false };
        *entry = Transmission { fate: Fate::InFlight, ..transmission };
        self.settled -= 1;
        self.in_flight += transmission.len();
        true
    }

    /// What the present acknowledgment delivered answers transmissions before the last, of which it tells nothing.
    pub(crate) fn doubt_newest(&mut self) {
        self.fresh.newest.take_if(|(_, newest)| newest.retransmitted());
    }

    /// The transmission `number` was not delivered after all: the peer took back what it had said.
    pub(crate) fn renege(&mut self, number: u64) -> Option<Transmission> {
        let entry = self.entry(number).filter(|entry| entry.fate == Fate::Delivered)?;
        entry.fate = Fate::Lost;
        let transmission = *entry;
        self.delivered -= 1;
        self.vouched -= u32::from(number < self.covered);
        Some(transmission)
    }

    /// Forgets the oldest transmissions as far as their fate is known.
    #[inline]
    pub(crate) fn trim(&mut self) {
        if self.settled > 0 {
            self.trim_front();
        }
    }

    /// Gives back memory that as many again as there are would not need.
    pub(crate) fn shrink(&mut self) {
        self.entries.shrink_to(2 * self.entries.len());
    }

    fn trim_front(&mut self) {
        while let Some(entry) = self.entries.pop_front_if(|entry| entry.fate != Fate::InFlight) {
            if entry.fate == Fate::Delivered {
                self.delivered -= 1;
                self.vouched -= u32::from(self.first < self.covered);
            }
            self.first += 1;
            self.settled -= 1;
        }
    }

    #[inline]
    fn entry(&mut self, number: u64) -> Option<&mut Transmission> {
        self.entries.get_mut(number.checked_sub(self.first)? as usize)
    }
}
