//! Routes of others to the peers' prefixes.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use futures_util::TryStreamExt;
use ipnet::IpNet;
use nix::net::if_::if_indextoname;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteAddress, RouteAttribute, RouteMessage, RouteProtocol, RouteType};

use super::{Route, TABLE};
use crate::netlink::{Netlink, RouteError};

/// An error names a route of somebody else that one of `routes` would replace, or that precedes it.
pub(super) async fn check(netlink: &Netlink, ours: u32, routes: &BTreeSet<Route>) -> Result<(), RouteError> {
    for v4 in [true, false] {
        let mut wanted = routes.iter().filter(|route| route.to.addr().is_ipv4() == v4).peekable();
        if wanted.peek().is_none() {
            continue;
        }
        let there: Vec<Found> = all(netlink, v4).await?;
        let theirs =
            |wanted: &Route| there.iter().find(|found| found.device != Some(ours) && found.beats(wanted));
        if let Some((wanted, found)) = wanted.find_map(|wanted| Some((wanted, theirs(wanted)?))) {
            let (to, by, connected) = (wanted.to, found.words.clone(), found.connected);
            return Err(RouteError::Taken { to, by, connected });
        }
    }
    Ok(())
}

/// A route that there is.
struct Found {
    to: IpNet,
    table: u32,
    metric: u32,
    /// The number of its device, if it leads to one.
    device: Option<u32>,
    /// As ip-route(8) takes it.
    words: String,
    /// Whether the kernel made it for an address of this host.
    connected: bool,
}

impl Found {
    fn beats(&self, wanted: &Route) -> bool {
        (self.to, self.table) == (wanted.to, wanted.table) && self.metric <= wanted.metric
    }
}

async fn all(netlink: &Netlink, v4: bool) -> Result<Vec<Found>, RouteError> {
    let (any, family) = match v4 {
        true => (RouteMessageBuilder::<Ipv4Addr>::new().build(), AddressFamily::Inet),
        false => (RouteMessageBuilder::<Ipv6Addr>::new().build(), AddressFamily::Inet6),
    };
    let listed = netlink.handle.route().get(any).execute();
    let listed: Vec<RouteMessage> =
        listed.try_collect().await.map_err(|e| RouteError::Netlink(e.to_string()))?;
    // A kernel without IPv6 lists the routes of other families instead.
    let of_family = listed.iter().filter(|route| route.header.address_family == family);
    Ok(of_family.filter_map(found).collect())
}

fn found(route: &RouteMessage) -> Option<Found> {
    let (mut to, mut via, mut device) = (None, None, None);
    let (mut table, mut metric) = (route.header.table.into(), 0);
    for attribute in &route.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = ip(address),
            RouteAttribute::Gateway(address) => via = ip(address),
            RouteAttribute::Oif(index) => device = Some(*index),
            RouteAttribute::Table(number) => table = *number,
            RouteAttribute::Priority(number) => metric = *number,
            _ => {}
        }
    }
    let to = IpNet::new(to?, route.header.destination_prefix_length).ok()?;
    let mut words = match route.header.kind {
        RouteType::Unicast => to.to_string(),
        kind => format!("{kind:?} {to}").to_lowercase(),
    };
    let name = device.and_then(|index| if_indextoname(index).ok());
    words.extend(via.map(|via| format!(" via {via}")));
    words.extend(name.map(|name| format!(" dev {}", name.to_string_lossy())));
    words.extend((table == TABLE).then(|| format!(" table {TABLE}")));
    let connected = route.header.protocol == RouteProtocol::Kernel;
    Some(Found { to, table, metric, device, words, connected })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(ip) => Some((*ip).into()),
        RouteAddress::Inet6(ip) => Some((*ip).into()),
        _ => None,
    }
}
