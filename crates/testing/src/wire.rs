//! What is between two ends: links, and packets on their way.

use std::collections::BTreeMap;

use polypath_wire::Instant;

use crate::fate::Fate;
use crate::link::Link;

type Script<P> = Box<dyn FnMut(&P) -> Fate<P>>;

/// Links, packets on their way, and a script that decides about each.
pub struct Wire<P> {
    /// By number.
    pub links: Vec<Link>,
    /// By arrival, and then in the order in which they were sent: to which end.
    flying: BTreeMap<(Instant, u64), (usize, P)>,
    count: u64,
    script: Script<P>,
}

impl<P: Clone> Wire<P> {
    /// One on which nothing happens but what its links do.
    pub fn new(links: impl IntoIterator<Item = Link>) -> Self {
        Self {
            links: links.into_iter().collect(),
            flying: BTreeMap::new(),
            count: 0,
            script: Box::new(|_| Fate::Pass),
        }
    }

    /// From now on `script` decides about every packet that is sent, before its link does.
    pub fn script(&mut self, script: impl FnMut(&P) -> Fate<P> + 'static) {
        self.script = Box::new(script);
    }

    /// `from` sends `packet`, of `len` bytes, over a link.
    pub fn send(&mut self, now: Instant, from: usize, link: usize, len: usize, packet: P) {
        for (late, packet) in (self.script)(&packet).copies(packet) {
            if let Some(arrives) = self.links[link].carry(now, from, len) {
                self.fly(arrives + late, 1 - from, packet);
            }
        }
    }

    /// `packet` arrives at the end `to` then, whatever the links are.
    pub fn fly(&mut self, arrives: Instant, to: usize, packet: P) {
        self.count += 1;
        self.flying.insert((arrives, self.count), (to, packet));
    }

    /// When the next packet arrives.
    pub fn next_arrival(&self) -> Option<Instant> {
        self.flying.first_key_value().map(|((arrives, _), _)| *arrives)
    }

    /// The next packet that has arrived by `now`, and where.
    pub fn arrived(&mut self, now: Instant) -> Option<(usize, P)> {
        let next = self.flying.first_entry().filter(|next| next.key().0 <= now)?;
        Some(next.remove())
    }

    /// Loses the packets on their way of which `stays` does not hold; asked in the order of their arrival.
    pub fn retain(&mut self, mut stays: impl FnMut(&P) -> bool) {
        self.flying.retain(|_, (_, packet)| stays(packet));
    }

    /// Whether no packet is on its way.
    pub fn is_empty(&self) -> bool {
        self.flying.is_empty()
    }
}
