//! Routes to the peers' prefixes. They go with the device.

use std::net::IpAddr;

use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::RouteMessage;

use crate::netlink::{Netlink, RouteError};

/// Routes `prefixes` to `device`, but for those that one of `connected`, its own networks, contains.
pub async fn add(device: &str, prefixes: &[IpNet], connected: &[IpNet]) -> Result<(), RouteError> {
    let (netlink, index) = (Netlink::open()?, index(device)?);
    for to in routes(prefixes, connected) {
        let added = netlink.handle.route().add(message(index, to)).replace().execute().await;
        added.map_err(|e| RouteError::Refused { to, why: e.to_string() })?;
    }
    Ok(())
}

/// Takes the routes to the first `prefixes` away, but for those that the second have too.
pub async fn remove(device: &str, [old, new]: [&[IpNet]; 2], connected: &[IpNet]) {
    let (Ok(netlink), Ok(index)) = (Netlink::open(), index(device)) else { return };
    for to in gone(old, new, connected) {
        // Somebody else may have removed it.
        let _ = netlink.handle.route().del(message(index, to)).execute().await;
    }
}

fn index(device: &str) -> Result<u32, RouteError> {
    if_nametoindex(device).map_err(|e| RouteError::Netlink(e.to_string()))
}

fn message(index: u32, to: IpNet) -> RouteMessage {
    match to.network() {
        IpAddr::V4(ip) => RouteMessageBuilder::<std::net::Ipv4Addr>::new()
            .destination_prefix(ip, to.prefix_len())
            .output_interface(index)
            .build(),
        IpAddr::V6(ip) => RouteMessageBuilder::<std::net::Ipv6Addr>::new()
            .destination_prefix(ip, to.prefix_len())
            .output_interface(index)
            .build(),
    }
}

/// The prefixes to route. A default route becomes two halves, so that the default routes of the uplinks stay.
pub(crate) fn routes(prefixes: &[IpNet], connected: &[IpNet]) -> Vec<IpNet> {
    let others = prefixes.iter().filter(|prefix| !connected.iter().any(|net| net.trunc().contains(*prefix)));
    others.flat_map(|prefix| halves(prefix.trunc())).collect()
}

/// The routes to `old` that those to `new` are not.
fn gone(old: &[IpNet], new: &[IpNet], connected: &[IpNet]) -> Vec<IpNet> {
    let stay = routes(new, connected);
    routes(old, connected).into_iter().filter(|to| !stay.contains(to)).collect()
}

fn halves(prefix: IpNet) -> Vec<IpNet> {
    match prefix.subnets(1) {
        Ok(halves) if prefix.prefix_len() == 0 => halves.collect(),
        _ => vec![prefix],
    }
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
    fn routes_that_are_written_otherwise_stay() {
        let parse = |list: &[&str]| list.iter().map(|net| net.parse().unwrap()).collect::<Vec<IpNet>>();
        let old = parse(&["0.0.0.0/0", "192.168.7.1/24", "10.1.0.0/16"]);
        let new = parse(&["0.0.0.0/1", "128.0.0.0/1", "192.168.7.0/24"]);
        assert_eq!(gone(&old, &new, &[]), parse(&["10.1.0.0/16"]));
    }
}
