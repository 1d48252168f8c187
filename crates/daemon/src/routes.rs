//! Routes to the peers' prefixes. They go with the device.

mod theirs;

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use ipnet::IpNet;
use nix::errno::Errno;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::{RouteHeader, RouteMessage};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::warn;

use crate::config::{Config, routed};
use crate::device::Device;
use crate::netlink::{Deletions, Netlink, OURS, RouteError, Trouble};

/// The table of the routes into the tunnel that the kill switch goes by.
pub(crate) const TABLE: u32 = 10_500;
/// Interval between two looks at the routes, should the kernel's word of a deletion be lost.
const LOOK: Duration = Duration::from_secs(5);
/// Whoever deletes one route may be about to delete others.
const FLUSH: Duration = Duration::from_millis(200);
/// The metric that the kernel gives an IPv6 route of which nobody says another, and one to a network of its own.
const METRIC_V6: [u32; 2] = [1024, 256];

/// A route into the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Route {
    to: IpNet,
    table: u32,
    metric: u32,
    /// The address that this host has there.
    source: Option<Ipv4Addr>,
}

/// The routes of a running daemon. Clones share them.
#[derive(Clone)]
pub(crate) struct Routes {
    /// The number of the device.
    index: u32,
    all: Arc<Mutex<BTreeSet<Route>>>,
}

impl Routes {
    /// None yet.
    pub fn through(device: &Device) -> Self {
        Self { index: device.index, all: Arc::default() }
    }

    /// Routes the prefixes of `config` to the device too, but for those that one of its own networks contains. An error, as
    /// somebody else's route to such a prefix is, leaves things as they were.
    pub async fn add(&self, config: &Config) -> Result<(), RouteError> {
        let (mut all, netlink, new) = (self.all.lock().await, Netlink::open()?, all(config));
        theirs::check(&netlink, self.index, &new).await?;
        for route in &new {
            let added = netlink.handle.route().add(message(self.index, route)).replace().execute().await;
            if let Err(error) = added {
                remove(&netlink, self.index, new.iter().filter(|route| !all.contains(route))).await;
                return Err(RouteError::Refused { to: route.to, why: error.to_string() });
            }
        }
        all.extend(new);
        all.extend(connected(config));
        Ok(())
    }

    /// Removes the routes that `config` does not have.
    pub async fn settle(&self, config: &Config) {
        let (mut all, mut stay) = (self.all.lock().await, all(config));
        stay.extend(connected(config));
        let Ok(netlink) = Netlink::open() else { return };
        remove(&netlink, self.index, all.difference(&stay)).await;
        *all = stay;
    }

    /// Puts back what somebody else deletes, for ever.
    pub async fn keep(self) {
        let (mut deletions, mut trouble) = (Deletions::open().ok(), Trouble::default());
        loop {
            let deleted = async {
                match &mut deletions {
                    Some(deletions) => deletions.next(self.index).await,
                    None => std::future::pending().await,
                }
                sleep(FLUSH).await;
            };
            // Either way it is time to look.
            let _ = timeout(LOOK, deleted).await;
            let restored = self.restore().await;
            if let Ok(missing) = &restored
                && !missing.is_empty()
            {
                let missing = missing.iter().map(IpNet::to_string).collect::<Vec<_>>().join(", ");
                warn!("another program deleted routes into the tunnel: {missing}; they are restored");
            }
            trouble.note("routes", restored.err());
        }
    }

    /// Adds those that are not there; where they lead.
    async fn restore(&self) -> Result<BTreeSet<IpNet>, RouteError> {
        let (all, netlink) = (self.all.lock().await, Netlink::open()?);
        let mut missing = BTreeSet::new();
        for route in all.iter() {
            match netlink.handle.route().add(message(self.index, route)).execute().await {
                Ok(()) => _ = missing.insert(route.to),
                Err(rtnetlink::Error::NetlinkError(e)) if e.raw_code() == -(Errno::EEXIST as i32) => {}
                Err(error) => return Err(RouteError::Refused { to: route.to, why: error.to_string() }),
            }
        }
        Ok(missing)
    }
}

async fn remove(netlink: &Netlink, index: u32, routes: impl Iterator<Item = &Route>) {
    for route in routes {
        // Somebody else may have removed it.
        let _ = netlink.handle.route().del(message(index, route)).execute().await;
    }
}

/// Those that programs see, and, where the [kill switch](crate::kill_switch) looks, those to what it protects.
fn all(config: &Config) -> BTreeSet<Route> {
    let own = &config.tunnel.addresses;
    let source = |to: IpNet| own.iter().find(|net| net.trunc() == to).and_then(source);
    let main = routes(&config.prefixes(), own).into_iter();
    let main = main.map(|to| route(to, RouteHeader::RT_TABLE_MAIN.into(), None));
    let protected = config.protected().into_iter().map(|to| route(to, TABLE, source(to)));
    main.chain(protected).collect()
}

/// Those that the kernel makes by itself, to the networks of the own addresses.
fn connected(config: &Config) -> impl Iterator<Item = Route> {
    let networks = config.tunnel.addresses.iter().filter(|net| net.prefix_len() < net.max_prefix_len());
    let own = |net: &IpNet| route(net.trunc(), RouteHeader::RT_TABLE_MAIN.into(), source(net));
    networks.map(move |net| match own(net) {
        route if net.addr().is_ipv6() => Route { metric: METRIC_V6[1], ..route },
        route => route,
    })
}

fn route(to: IpNet, table: u32, source: Option<Ipv4Addr>) -> Route {
    let metric = if to.addr().is_ipv4() { 0 } else { METRIC_V6[0] };
    Route { to, table, metric, source }
}

fn source(own: &IpNet) -> Option<Ipv4Addr> {
    match own.addr() {
        IpAddr::V4(ip) => Some(ip),
        IpAddr::V6(_) => None,
    }
}

fn message(index: u32, route: &Route) -> RouteMessage {
    let len = route.to.prefix_len();
    match route.to.network() {
        IpAddr::V4(ip) => {
            let builder = RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(ip, len);
            let builder = builder.output_interface(index).table_id(route.table).protocol(OURS);
            route.source.into_iter().fold(builder, RouteMessageBuilder::<Ipv4Addr>::pref_source).build()
        }
        IpAddr::V6(ip) => RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(ip, len)
            .output_interface(index)
            .table_id(route.table)
            .priority(route.metric)
            .protocol(OURS)
            .build(),
    }
}

/// The prefixes to route.
pub(crate) fn routes(prefixes: &[IpNet], connected: &[IpNet]) -> Vec<IpNet> {
    let others = prefixes.iter().filter(|prefix| !connected.iter().any(|net| net.trunc().contains(*prefix)));
    others.flat_map(routed).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_routes_come_in_halves_and_connected_networks_not_at_all() {
        let parse = |list: &[&str]| list.iter().map(|net| net.parse().unwrap()).collect::<Vec<IpNet>>();
        let all = parse(&["0.0.0.0/0", "::/0", "10.99.0.2/32", "192.168.7.1/24"]);
        let expected = parse(&["0.0.0.0/1", "128.0.0.0/1", "::/1", "8000::/1", "192.168.7.0/24"]);
        assert_eq!(routes(&all, &parse(&["10.99.0.1/24"])), expected);
    }

    #[test]
    fn routes_that_are_written_otherwise_stay_the_same() {
        let with = |prefixes: &str| {
            let peer = "[[peer]]\nhit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"\n";
            let text = format!("[tunnel]\naddresses = [\"10.99.0.1/24\"]\n{peer}prefixes = [{prefixes}]\n");
            all(&Config::parse("a", &text).unwrap())
        };
        let old = with("\"0.0.0.0/0\", \"192.168.7.0/24\", \"10.1.0.0/16\"");
        let new = with("\"0.0.0.0/1\", \"128.0.0.0/1\", \"192.168.7.0/24\"");
        let gone: Vec<_> = old.iter().filter(|route| !new.contains(route)).map(|route| route.to).collect();
        assert_eq!(gone, ["10.1.0.0/16".parse::<IpNet>().unwrap()]);
    }

    #[test]
    fn what_the_kill_switch_protects_has_routes_where_it_looks_with_the_address_of_the_own_network() {
        let text = "[tunnel]\naddresses = [\"10.99.0.1/24\", \"10.98.0.1/24\"]\nkill_switch = true\n[[peer]]\n\
            hit = \"2001:22:88e0:5362:e35e:1c8f:b38e:ef19\"\nprefixes = [\"10.97.0.0/16\"]\n";
        let all = all(&Config::parse("a", text).unwrap());
        let own = all.iter().filter(|route| route.table == TABLE);
        let found: Vec<_> = own.map(|route| (route.to.to_string(), route.source)).collect();
        let source = |last| Some(Ipv4Addr::new(10, last, 0, 1));
        let expected = [("10.97.0.0/16", None), ("10.98.0.0/24", source(98)), ("10.99.0.0/24", source(99))];
        assert_eq!(found, expected.map(|(to, source)| (to.to_owned(), source)));
        assert_eq!(all.len(), 4, "one of the main table");
    }
}
