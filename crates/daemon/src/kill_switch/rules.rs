//! Which rules a kill switch is made of.

use std::net::IpAddr;

use ipnet::IpNet;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::RouteHeader;
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};

use crate::netlink::OURS;
use crate::routes::TABLE;

/// The mark of the daemon's own packets (`SO_MARK`).
pub(crate) const MARK: u32 = 10_500;
/// Priority of the rule for those packets; at most 387 more follow, three for each length of a prefix.
const FIRST: u32 = 10_499;

/// What tells rules apart: family, priority, destination.
type Id = (u8, u32, Option<IpAddr>, u8);

/// The rules in the order in which they are asked.
pub(super) fn rules(protected: &[IpNet]) -> Vec<RuleMessage> {
    let family = |v4: bool| protected.iter().any(|net| net.addr().is_ipv4() == v4).then(|| own(v4));
    let own = [true, false].into_iter().filter_map(family);
    let mut all: Vec<_> =
        own.chain(protected.iter().flat_map(|net| [specific(net), tunnel(net), nowhere(net)])).collect();
    all.sort_by_key(|rule| id(rule).1);
    all
}

/// The daemon's own packets take the main table's routes, but for those into the tunnel: their sockets are bound to interfaces.
fn own(v4: bool) -> RuleMessage {
    let mut rule = rule(v4, FIRST, RuleAction::ToTable);
    rule.header.table = RouteHeader::RT_TABLE_MAIN;
    rule.attributes.push(RuleAttribute::FwMark(MARK));
    rule
}

/// A route of the main table that is longer than the prefix: one as long may lead over an uplink.
fn specific(to: &IpNet) -> RuleMessage {
    let mut rule = towards(to, 0, RuleAction::ToTable);
    rule.header.table = RouteHeader::RT_TABLE_MAIN;
    rule.attributes.push(RuleAttribute::SuppressPrefixLen(to.prefix_len().into()));
    rule
}

fn tunnel(to: &IpNet) -> RuleMessage {
    let mut rule = towards(to, 1, RuleAction::ToTable);
    rule.attributes.push(RuleAttribute::Table(TABLE));
    rule
}

fn nowhere(to: &IpNet) -> RuleMessage {
    towards(to, 2, RuleAction::Unreachable)
}

fn towards(to: &IpNet, step: u32, action: RuleAction) -> RuleMessage {
    let priority = FIRST + 1 + 3 * (128 - u32::from(to.prefix_len())) + step;
    let mut rule = rule(to.addr().is_ipv4(), priority, action);
    rule.header.dst_len = to.prefix_len();
    rule.attributes.push(RuleAttribute::Destination(to.network()));
    rule
}

fn rule(v4: bool, priority: u32, action: RuleAction) -> RuleMessage {
    let mut rule = RuleMessage::default();
    rule.header.family = if v4 { AddressFamily::Inet } else { AddressFamily::Inet6 };
    rule.header.action = action;
    rule.attributes = vec![RuleAttribute::Priority(priority), RuleAttribute::Protocol(OURS)];
    rule
}

pub(super) fn is_in(all: &[RuleMessage], one: &RuleMessage) -> bool {
    all.iter().any(|other| id(other) == id(one))
}

fn id(rule: &RuleMessage) -> Id {
    let (mut priority, mut to) = (0, None);
    for attribute in &rule.attributes {
        match attribute {
            RuleAttribute::Priority(number) => priority = *number,
            RuleAttribute::Destination(ip) => to = Some(*ip),
            _ => {}
        }
    }
    (rule.header.family.into(), priority, to, rule.header.dst_len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[test]
    fn the_longest_prefixes_come_first_and_the_tunnels_own_networks_are_protected_too() {
        let text = r#"
[tunnel]
addresses = ["10.99.0.1/24"]
kill_switch = true
[[peer]]
hit = "2001:22:88e0:5362:e35e:1c8f:b38e:ef19"
prefixes = ["0.0.0.0/0", "10.99.0.2/32", "10.98.0.0/24"]
"#;
        let protected = Config::parse("a", text).unwrap().protected();
        let expected = ["0.0.0.0/1", "10.98.0.0/24", "10.99.0.0/24", "128.0.0.0/1"];
        assert_eq!(protected, expected.map(|net| net.parse::<IpNet>().unwrap()));
        let rules = rules(&protected);
        let priorities: Vec<u32> = rules.iter().map(|rule| id(rule).1).collect();
        assert_eq!(
            priorities,
            [
                10_499, 10_812, 10_812, 10_813, 10_813, 10_814, 10_814, 10_881, 10_881, 10_882, 10_882,
                10_883, 10_883
            ]
        );
        assert!(rules.iter().all(|rule| rule.header.family == AddressFamily::Inet));
        let off = Config::parse("a", &text.replace("true", "false")).unwrap();
        assert!(off.protected().is_empty());
    }
}
