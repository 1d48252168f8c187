//! Routes to the peers' prefixes. They go with the device.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::IpNet;
use nix::net::if_::if_nametoindex;
use rtnetlink::RouteMessageBuilder;
use rtnetlink::packet_route::route::{RouteHeader, RouteMessage};

use crate::config::Config;
use crate::netlink::{Netlink, RouteError};

/// The table of the routes into the tunnel that the kill switch goes by.
pub(crate) const TABLE: u32 = 10_500;

/// A route into the tunnel.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Route {
    to: IpNet,
    table: u32,
    /// The address that this host has there.
    source: Option<Ipv4Addr>,
}

/// Routes the peers' prefixes to `device`, but for those that one of its own networks contains.
pub async fn add(device: &str, config: &Config) -> Result<(), RouteError> {
    let (netlink, index) = (Netlink::open()?, index(device)?);
    for route in all(config) {
        let added = netlink.handle.route().add(message(index, &route)).replace().execute().await;
        added.map_err(|e| RouteError::Refused { to: route.to, why: e.to_string() })?;
    }
    Ok(())
}

/// Takes the routes of the first configuration away, but for those that the second has too.
pub async fn remove(device: &str, [old, new]: [&Config; 2]) {
    let (Ok(netlink), Ok(index)) = (Netlink::open(), index(device)) else { return };
    let stay: BTreeSet<Route> = all(new).into_iter().collect();
    for route in all(old).iter().filter(|route| !stay.contains(route)) {
        // Somebody else may have removed it.
        let _ = netlink.handle.route().del(message(index, route)).execute().await;
    }
}

/// Those that programs see, and, where the [kill switch](crate::kill_switch) looks, those to what it protects.
fn all(config: &Config) -> Vec<Route> {
    let own = &config.tunnel.addresses;
    let source = |to: IpNet| match own.iter().find(|net| net.trunc() == to).map(IpNet::addr) {
        Some(IpAddr::V4(ip)) => Some(ip),
        _ => None,
    };
    let main = routes(&config.prefixes(), own).into_iter();
    let main = main.map(|to| Route { to, table: u32::from(RouteHeader::RT_TABLE_MAIN), source: None });
    let protected = config.protected().into_iter();
    main.chain(protected.map(|to| Route { to, table: TABLE, source: source(to) })).collect()
}

fn index(device: &str) -> Result<u32, RouteError> {
    if_nametoindex(device).map_err(|e| RouteError::Netlink(e.to_string()))
}

fn message(index: u32, route: &Route) -> RouteMessage {
    let len = route.to.prefix_len();
    match route.to.network() {
        IpAddr::V4(ip) => {
            let builder = RouteMessageBuilder::<Ipv4Addr>::new().destination_prefix(ip, len);
            let builder = builder.output_interface(index).table_id(route.table);
            route.source.into_iter().fold(builder, RouteMessageBuilder::<Ipv4Addr>::pref_source).build()
        }
        IpAddr::V6(ip) => RouteMessageBuilder::<Ipv6Addr>::new()
            .destination_prefix(ip, len)
            .output_interface(index)
            .table_id(route.table)
            .build(),
    }
}

/// The prefixes to route. A default route becomes two halves, so that the default routes of the uplinks stay.
pub(crate) fn routes(prefixes: &[IpNet], connected: &[IpNet]) -> Vec<IpNet> {
    let others = prefixes.iter().filter(|prefix| !connected.iter().any(|net| net.trunc().contains(*prefix)));
    others.flat_map(|prefix| halves(prefix.trunc())).collect()
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
