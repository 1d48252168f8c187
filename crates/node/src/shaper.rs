//! Interfaces that are to carry no more than a rate: what is sent over them waits for its turn, as on a link of that rate
//! with CoDel in front of it.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::task::Context;

use polypath_endpoint::Locators;
use polypath_hop::{CodelConfig, Discipline, Fate, Hop, HopConfig, Label, QueueLimit};
use polypath_wire::{Duration, Ecn, Rate, Seed};

use crate::alarm::Alarm;
use crate::clock::Clock;
use crate::sizes::ip_header;

/// Bytes of a UDP header.
const UDP_HEADER: u32 = 8;
/// Packets that wait for one interface, at most.
const QUEUE: u32 = 1000;

/// What waits for the interfaces that have a rate.
pub(crate) struct Shapers {
    by_device: BTreeMap<String, Shaper>,
    /// The interface of each local address.
    devices: BTreeMap<SocketAddr, String>,
    alarm: Alarm,
}

struct Shaper {
    rate: Rate,
    hop: Hop<(Locators, Ecn, Vec<u8>)>,
}

impl Shapers {
    /// No interface has a rate. Needs a tokio runtime.
    pub fn new() -> io::Result<Self> {
        let alarm = Alarm::new(Clock::start())?;
        Ok(Self { by_device: BTreeMap::new(), devices: BTreeMap::new(), alarm })
    }

    /// From now on the interfaces in `rates` have these; `devices`: the interface of each local address. What waits for one
    /// whose rate changes is lost.
    pub fn set(
        &mut self,
        rates: &BTreeMap<String, Rate>,
        devices: impl Iterator<Item = (SocketAddr, String)>,
    ) {
        self.by_device.retain(|device, shaper| rates.get(device) == Some(&shaper.rate));
        for (device, rate) in rates {
            self.by_device.entry(device.clone()).or_insert_with(|| Shaper::new(*rate));
        }
        self.devices = devices.filter(|(_, device)| rates.contains_key(device)).collect();
    }

    /// Whether what is sent with these locators has to wait.
    pub fn delays(&self, locators: &Locators) -> bool {
        !self.devices.is_empty() && self.devices.contains_key(&locators.local)
    }

    /// Has a datagram wait for its turn.
    pub fn push(&mut self, locators: &Locators, ecn: Ecn, payload: Vec<u8>) {
        let Some(shaper) = self.devices.get(&locators.local).and_then(|d| self.by_device.get_mut(d)) else {
            return;
        };
        let size = payload.len() as u32 + UDP_HEADER + ip_header(locators.local);
        // A full queue drops it, as a link's does.
        let label = Label { size, flow: 0, ecn_capable: ecn != Ecn::None };
        let _ = shaper.hop.enqueue(self.alarm.now(), (*locators, ecn, payload), label);
    }

    /// The next datagram whose turn it is.
    pub fn next(&mut self) -> Option<(Locators, Ecn, Vec<u8>)> {
        let now = self.alarm.now();
        self.by_device.values_mut().find_map(|shaper| {
            while shaper.hop.next_event().is_some_and(|due| due <= now) {
                if let Some(departure) = shaper.hop.poll(now)
                    && let Fate::Arrived { marked, .. } = departure.fate
                {
                    let (locators, ecn, payload) = departure.item;
                    return Some((locators, if marked { Ecn::Marked } else { ecn }, payload));
                }
            }
            None
        })
    }

    /// Has the task of `cx` woken when it is the turn of another one.
    pub fn wait(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        let due = self.by_device.values().filter_map(|shaper| shaper.hop.next_event()).min();
        if due.map_or(Ok(false), |due| self.alarm.poll(cx, due))? {
            cx.waker().wake_by_ref();
        }
        Ok(())
    }
}

impl Shaper {
    fn new(rate: Rate) -> Self {
        let config = HopConfig {
            rate,
            delay: Duration::ZERO,
            queue: QueueLimit::Packets(QUEUE),
            discipline: Discipline::Codel(CodelConfig::default()),
            ..HopConfig::default()
        };
        Self { rate, hop: Hop::new(config, Seed(0)) }
    }
}
