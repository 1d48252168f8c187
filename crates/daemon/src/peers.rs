//! The peers, and which of them is behind an address. They may change while the daemon runs.

use std::collections::HashMap;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use ipnet::IpNet;
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::Hit;
use tokio::sync::{Notify, watch};

use crate::config::Peer as PeerConfig;
use crate::pool::{KEPT, Pool};
use crate::seldom::{Seldom, Spared};

/// A peer as one configuration has it.
pub struct Peer {
    /// What the configuration says of it.
    pub config: PeerConfig,
    /// Its state at run time.
    pub link: Arc<Link>,
}

/// The state of a peer at run time, which outlives changes of the configuration.
pub struct Link {
    /// Its tag.
    pub hit: Hit,
    /// Connections opened ahead.
    pub pool: Pool,
    /// An association with it came or went, it fell silent or answered again, or its configuration changed.
    pub changed: Notify,
    /// Bytes of connections to and from it.
    pub sent: AtomicU64,
    /// The same in the other direction.
    pub received: AtomicU64,
    /// There is an association, and it does not answer.
    pub silent: AtomicBool,
    /// What is known while there is no association.
    absence: Mutex<Absence>,
    /// Places in the lane that its connections have.
    pub places: AtomicUsize,
    /// Its connections of which the request has not come.
    pub waiting: AtomicUsize,
    /// Whether the log may name a client that is not behind it.
    pub forbidden: Seldom,
    /// How much the log says of what it does.
    pub lines: Spared,
    /// Whether it is no peer any more.
    ended: watch::Sender<bool>,
}

/// Why there is no association with a peer.
#[derive(Default)]
struct Absence {
    /// When the last one ended: the peer said goodbye.
    left: Option<Instant>,
    /// Since when it is called in vain, and what came of that.
    calls: Option<(Instant, String)>,
}

/// How long a connection waits for a peer that is not there, or does not answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long after its goodbye a peer may be back: a service manager restarts it within a second or two, and it is called after 1 s and 3 s.
const RESTART: Duration = Duration::from_secs(4);

/// How long a connection waits for a peer that said goodbye so long ago, if it did.
fn patience(left: Option<Duration>) -> Duration {
    left.map_or(PATIENCE, |ago| RESTART.saturating_sub(ago))
}

/// One that a count of a [`Link`] contains, until it is dropped.
pub struct Counted {
    link: Arc<Link>,
    of: fn(&Link) -> &AtomicUsize,
}

impl Drop for Counted {
    fn drop(&mut self) {
        (self.of)(&self.link).fetch_sub(1, Relaxed);
    }
}

/// All peers.
pub struct Peers {
    table: RwLock<Arc<Table>>,
    /// What connections to them begin with, and how many of them are opened ahead.
    connection: ConnectionConfig,
    spare: usize,
}

/// All peers at one moment: what is asked of a packet costs the same beside a thousand others.
#[derive(Default)]
pub struct Table {
    /// In the order of the configuration.
    all: Vec<Arc<Peer>>,
    by_hit: HashMap<Hit, usize>,
    by_prefix: HashMap<IpNet, usize>,
    /// The lengths that prefixes have, the longest first: of IPv4, and of IPv6.
    lengths: [Vec<u8>; 2],
}

/// What another configuration changed.
#[derive(Default)]
pub struct Changed {
    /// Peers that were not there.
    pub added: Vec<Hit>,
    /// Peers that are there no longer.
    pub removed: Vec<Arc<Peer>>,
    /// Peers of which it says something else than before.
    pub altered: Vec<Arc<Peer>>,
}

impl Peers {
    /// The configured peers. `spare` connections to each that is used are opened ahead.
    pub fn new(peers: &[PeerConfig], connection: &ConnectionConfig, spare: usize) -> Self {
        let table = RwLock::default();
        let all = Self { table, connection: connection.clone(), spare };
        all.replace(peers);
        all
    }

    /// From now on these are the peers.
    pub fn replace(&self, peers: &[PeerConfig]) -> Changed {
        let (before, mut changed) = (self.now(), Changed::default());
        let peer = |config: &PeerConfig| match before.with_hit(config.hit) {
            Some(same) if same.config == *config => same.clone(),
            Some(other) => {
                let altered = other.with(config);
                changed.altered.push(altered.clone());
                altered
            }
            None => {
                changed.added.push(config.hit);
                Arc::new(Peer { config: config.clone(), link: Arc::new(self.link(config.hit)) })
            }
        };
        let now = Table::of(peers.iter().map(peer).collect());
        let gone = before.iter().filter(|peer| now.with_hit(peer.config.hit).is_none());
        changed.removed = gone.cloned().collect();
        *self.table.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(now);
        changed.removed.iter().for_each(|peer| _ = peer.link.ended.send_replace(true));
        changed
    }

    fn link(&self, hit: Hit) -> Link {
        Link {
            hit,
            pool: Pool::new(hit, self.connection.clone(), self.spare, KEPT),
            changed: Notify::new(),
            sent: AtomicU64::new(0),
            received: AtomicU64::new(0),
            silent: AtomicBool::new(false),
            absence: Mutex::default(),
            places: AtomicUsize::new(0),
            waiting: AtomicUsize::new(0),
            forbidden: Seldom::default(),
            lines: Spared::default(),
            ended: watch::Sender::new(false),
        }
    }

    /// The peers as they are now.
    pub fn now(&self) -> Arc<Table> {
        self.table.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The peer behind an address: of several prefixes that contain it the longest decides.
    pub fn behind(&self, address: IpAddr) -> Option<Arc<Peer>> {
        self.now().behind(address).cloned()
    }

    /// The peer with that tag.
    pub fn with_hit(&self, hit: Hit) -> Option<Arc<Peer>> {
        self.now().with_hit(hit).cloned()
    }
}

impl Link {
    /// Counts one more in `of` until the answer is dropped; `None` if there are `most` already.
    pub fn count(self: &Arc<Self>, of: fn(&Self) -> &AtomicUsize, most: usize) -> Option<Counted> {
        let before = of(self).fetch_add(1, Relaxed);
        let counted = Counted { link: self.clone(), of };
        (before < most).then_some(counted)
    }

    /// Whether there is an association with the peer, and it does not answer.
    pub fn is_silent(&self) -> bool {
        self.silent.load(Relaxed)
    }

    /// An association is there.
    pub fn came(&self) {
        *self.absence() = Absence::default();
    }

    /// The association is over.
    pub fn left(&self) {
        *self.absence() = Absence { left: Some(Instant::now()), calls: None };
    }

    /// It is called in vain, since now or before, for this reason.
    pub fn called_in_vain(&self, why: String) {
        let mut absence = self.absence();
        let since = absence.calls.as_ref().map_or_else(Instant::now, |calls| calls.0);
        absence.calls = Some((since, why));
    }

    /// How long a connection waits for the peer.
    pub fn patience(&self) -> Duration {
        patience(self.absence().left.map(|left| left.elapsed()))
    }

    /// Why it is called in vain, and for how long it has been.
    pub fn in_vain(&self) -> Option<String> {
        let absence = self.absence();
        absence.calls.as_ref().map(|(since, why)| format!("{why}, for {} s", since.elapsed().as_secs()))
    }

    fn absence(&self) -> MutexGuard<'_, Absence> {
        self.absence.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until `holds`, which is asked now and after each change.
    pub async fn until(&self, holds: impl Fn() -> bool) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable(); // what happens after the question is heard
            if holds() {
                return;
            }
            changed.await;
        }
    }

    /// Waits until no configuration names the peer any more. If a later one does, it gets another link.
    pub async fn ended(&self) {
        // The sender lives as long as this link.
        let _ = self.ended.subscribe().wait_for(|ended| *ended).await;
    }
}

impl Peer {
    /// Why there is no association.
    pub fn why_absent(&self) -> String {
        let has_addresses = !self.config.addresses.is_empty();
        let in_vain = self.link.in_vain().filter(|_| has_addresses);
        in_vain.unwrap_or_else(|| match has_addresses {
            true => "not called yet".to_owned(),
            false => match self.link.absence().left {
                Some(at) => {
                    let ago = at.elapsed().as_secs();
                    format!("the association ended {ago} s ago; the peer has no addresses here, and has not called since")
                }
                None => "it has no addresses here, and has not called".to_owned(),
            },
        })
    }

    /// The same peer as another configuration has it.
    fn with(&self, config: &PeerConfig) -> Arc<Self> {
        Arc::new(Self { config: config.clone(), link: self.link.clone() })
    }
}

impl Table {
    fn of(all: Vec<Arc<Peer>>) -> Self {
        let mut table = Self::default();
        for (n, peer) in all.iter().enumerate() {
            table.by_hit.insert(peer.config.hit, n);
            for prefix in &peer.config.prefixes {
                table.by_prefix.insert(prefix.trunc(), n);
                table.lengths[family(prefix.addr())].push(prefix.prefix_len());
            }
        }
        for lengths in &mut table.lengths {
            lengths.sort_unstable_by(|a, b| b.cmp(a));
            lengths.dedup();
        }
        Self { all, ..table }
    }

    /// The peer behind an address: of several prefixes that contain it the longest decides.
    pub fn behind(&self, address: IpAddr) -> Option<&Arc<Peer>> {
        let prefixes = self.lengths[family(address)].iter().map(|length| IpNet::new_assert(address, *length));
        let mut found = prefixes.filter_map(|prefix| self.by_prefix.get(&prefix.trunc()));
        self.all.get(*found.next()?)
    }

    /// Whether an address is behind that peer, and so what has it as its source may come from there.
    pub fn is_behind(&self, address: IpAddr, hit: Hit) -> bool {
        self.behind(address).is_some_and(|peer| peer.config.hit == hit)
    }

    /// The peer with that tag.
    pub fn with_hit(&self, hit: Hit) -> Option<&Arc<Peer>> {
        self.all.get(*self.by_hit.get(&hit)?)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Peer>> {
        self.all.iter()
    }
}

fn family(address: IpAddr) -> usize {
    usize::from(address.is_ipv6())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peer(n: u8, prefixes: &[&str]) -> PeerConfig {
        PeerConfig {
            name: n.to_string(),
            hit: Hit([n; 16]),
            addresses: Vec::new(),
            prefixes: prefixes.iter().map(|p| p.parse().unwrap()).collect(),
        }
    }

    fn behind(peers: &Peers, ip: &str) -> Option<String> {
        peers.behind(ip.parse().unwrap()).map(|peer| peer.config.name.clone())
    }

    #[test]
    fn the_longest_prefix_decides() {
        let all = [peer(1, &["0.0.0.0/0", "fd00::/8"]), peer(2, &["10.0.0.0/8", "10.1.0.0/16"])];
        let peers = Peers::new(&all, &ConnectionConfig::default(), 0);
        assert_eq!(behind(&peers, "192.0.2.1").as_deref(), Some("1"));
        assert_eq!(behind(&peers, "10.1.2.3").as_deref(), Some("2"));
        assert_eq!(behind(&peers, "fd00::1").as_deref(), Some("1"));
        assert_eq!(behind(&peers, "2001:db8::1"), None);
    }

    #[test]
    fn an_address_is_behind_the_peer_with_the_longest_prefix_and_no_other() {
        let all = [peer(1, &["0.0.0.0/0"]), peer(2, &["10.0.0.0/8"]), peer(3, &["10.1.0.0/16"])];
        let peers = Peers::new(&all, &ConnectionConfig::default(), 0).now();
        for (ip, only) in [("192.0.2.1", 1), ("10.2.0.1", 2), ("10.1.0.1", 3), ("fd00::1", 0)] {
            let admitted = (1..=4).filter(|n| peers.is_behind(ip.parse().unwrap(), Hit([*n; 16])));
            assert_eq!(
                admitted.collect::<Vec<_>>(),
                (1..=4).filter(|n| *n == only).collect::<Vec<_>>(),
                "{ip}"
            );
        }
    }

    #[test]
    fn of_many_prefixes_within_one_another_the_longest_decides() {
        let prefix = |n: u8| format!("10.{}.0.0/{}", n / 16, 8 + n % 16);
        let all: Vec<_> = (1..=200).map(|n| peer(n, &[&prefix(n)])).collect();
        let peers = Peers::new(&all, &ConnectionConfig::default(), 0);
        for n in 0..=255_u8 {
            let ip = IpAddr::from([10, n / 16, n.reverse_bits(), n]);
            let longest = |peer: &&PeerConfig| {
                peer.prefixes.iter().filter(|p| p.contains(&ip)).map(IpNet::prefix_len).max()
            };
            let expected = all.iter().filter(|peer| longest(peer).is_some()).max_by_key(longest);
            let length = |config: Option<&PeerConfig>| config.and_then(|config| longest(&config));
            let found = peers.behind(ip);
            assert_eq!(length(found.as_ref().map(|peer| &peer.config)), length(expected), "{ip}");
        }
    }

    #[test]
    fn what_there_is_with_a_peer_outlives_its_configuration() {
        let peers = Peers::new(&[peer(1, &["10.1.0.0/16"]), peer(2, &[])], &ConnectionConfig::default(), 0);
        let old = peers.with_hit(Hit([1; 16])).unwrap();
        let changed = peers.replace(&[peer(3, &[]), peer(1, &["10.2.0.0/16"])]);
        let hits = |peers: &[Arc<Peer>]| peers.iter().map(|peer| peer.config.hit.0[0]).collect::<Vec<_>>();
        assert_eq!((hits(&changed.altered), hits(&changed.removed)), (vec![1], vec![2]));
        assert_eq!(changed.added, [Hit([3; 16])]);
        assert_eq!((behind(&peers, "10.1.0.1"), behind(&peers, "10.2.0.1")), (None, Some("1".into())));
        old.link.sent.fetch_add(5, Relaxed);
        assert_eq!(peers.with_hit(Hit([1; 16])).unwrap().link.sent.load(Relaxed), 5);
    }

    /// Of an only peer.
    fn link() -> Arc<Link> {
        let peers = Peers::new(&[peer(1, &[])], &ConnectionConfig::default(), 0);
        peers.with_hit(Hit([1; 16])).unwrap().link.clone()
    }

    #[test]
    fn a_connection_waits_for_a_peer_that_may_be_restarting_and_not_for_one_that_left() {
        let waits = |left: Option<u64>| patience(left.map(Duration::from_secs)).as_secs();
        assert_eq!([None, Some(0), Some(3), Some(4), Some(100)].map(waits), [5, 4, 1, 0, 0]);
        let link = link();
        link.left();
        assert!(link.patience() <= RESTART);
        link.came();
        assert_eq!(link.patience(), PATIENCE);
    }

    #[test]
    fn calls_in_vain_have_a_reason_until_there_is_an_association() {
        let link = link();
        assert_eq!(link.in_vain(), None);
        ["no answer", "no route"].iter().for_each(|why| link.called_in_vain((*why).to_owned()));
        assert!(link.in_vain().unwrap().starts_with("no route, for "));
        link.came();
        assert_eq!(link.in_vain(), None);
    }

    #[test]
    fn of_a_peer_that_was_there_it_is_said_since_when_it_is_not() {
        let peers = Peers::new(&[peer(1, &[])], &ConnectionConfig::default(), 0);
        let peer = peers.with_hit(Hit([1; 16])).unwrap();
        assert!(!peer.why_absent().contains("ago"), "{}", peer.why_absent());
        peer.link.left();
        assert!(peer.why_absent().starts_with("the association ended 0 s ago; "), "{}", peer.why_absent());
    }

    #[test]
    fn no_more_are_counted_than_there_may_be_and_what_ends_makes_room() {
        let link = link();
        let count = || link.count(|link| &link.waiting, 3);
        let mut counted: Vec<_> = (0..10).filter_map(|_| count()).collect();
        assert_eq!(counted.len(), 3);
        counted.pop();
        counted.extend(count());
        assert_eq!((counted.len(), count().is_none()), (3, true));
        drop(counted);
        assert_eq!(link.waiting.load(Relaxed), 0);
    }
}
