//! The kill switch: rules of policy routing (ip-rule(8)) that outlive the daemon. What is for a peer's prefix leaves by a route
//! at least as specific as the prefix, which is the tunnel's while the daemon runs, or not at all.
//!
//! For each prefix a rule looks for such a route in the main table, and one behind it answers "unreachable". The daemon's own
//! packets, which carry [`MARK`], use the main table before. Rules of longer prefixes stand before those of shorter ones.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::route::{RouteHeader, RouteProtocol};
use rtnetlink::packet_route::rule::{RuleAction, RuleAttribute, RuleMessage};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tracing::warn;

use crate::config::Config;
use crate::netlink::{Netlink, RouteError};
use crate::routes::routes;

/// The mark of the daemon's own packets (`SO_MARK`).
pub(crate) const MARK: u32 = 10_500;
/// Priority of the rule for these; at most 257 more follow, two for each length of a prefix.
const FIRST: u32 = 10_499;
/// Whose rules they are: a protocol number that nobody else uses (rt_protos of iproute2).
const OURS: RouteProtocol = RouteProtocol::Other(105);

/// What tells rules apart: family, priority, destination.
type Id = (u8, u32, Option<IpAddr>, u8);

/// How often it is looked whether the rules still stand: systemd-networkd removes those of others when it starts.
const LOOK: Duration = Duration::from_secs(5);

/// The rules of a running daemon. Clones share them.
#[derive(Clone, Default)]
pub(crate) struct KillSwitch(Arc<Mutex<Vec<IpNet>>>);

impl KillSwitch {
    /// Has the rules for `nets` stand, beside those that do. An error leaves things as they were.
    pub async fn arm(&self, nets: &[IpNet]) -> Result<(), RouteError> {
        let mut all = self.0.lock().await;
        arm(nets).await?;
        all.extend(nets);
        Ok(())
    }

    /// Lifts all rules but those for `nets`, also those that earlier daemons left.
    pub async fn settle(&self, nets: &[IpNet]) -> Result<(), RouteError> {
        let mut all = self.0.lock().await;
        *all = nets.to_vec();
        lift_others(nets).await?;
        Ok(())
    }

    /// Puts back what somebody else removes, for ever.
    pub async fn keep(self) {
        let mut said = None;
        loop {
            sleep(LOOK).await;
            let all = self.0.lock().await;
            let failed = match arm(&all).await {
                Ok(missing) => {
                    if missing {
                        warn!("somebody else removed rules of the kill switch; they stand again");
                    }
                    None
                }
                Err(error) => Some(error.to_string()),
            };
            if let Some(why) = failed.as_ref().filter(|_| said != failed) {
                warn!("rules may be missing: {why}; trying again");
            }
            said = failed;
        }
    }
}

/// Has the rules for `nets` stand, or adds none; whether any was missing.
async fn arm(nets: &[IpNet]) -> Result<bool, RouteError> {
    if nets.is_empty() {
        return Ok(false);
    }
    let netlink = Netlink::open()?;
    let there = ours(&netlink).await?;
    let missing: Vec<_> = rules(nets).into_iter().filter(|rule| !is_in(&there, rule)).collect();
    for (n, rule) in missing.iter().enumerate() {
        let mut request = netlink.handle.rule().add();
        *request.message_mut() = rule.clone();
        if let Err(error) = request.execute().await {
            // The first error is the one to tell of.
            let _ = remove(&netlink, missing[..n].iter()).await;
            return Err(refused(error));
        }
    }
    Ok(!missing.is_empty())
}

/// Takes away all rules of ours but those for `nets`; whether there were any.
async fn lift_others(nets: &[IpNet]) -> Result<bool, RouteError> {
    let netlink = Netlink::open()?;
    let (wanted, there) = (rules(nets), ours(&netlink).await?);
    let gone: Vec<_> = there.iter().filter(|rule| !is_in(&wanted, rule)).collect();
    remove(&netlink, gone.iter().copied()).await?;
    Ok(!gone.is_empty())
}

async fn remove(netlink: &Netlink, rules: impl Iterator<Item = &RuleMessage>) -> Result<(), RouteError> {
    for rule in rules {
        match netlink.handle.rule().del(rule.clone()).execute().await {
            // Somebody else has removed it.
            Err(rtnetlink::Error::NetlinkError(e)) if e.raw_code() == -(nix::errno::Errno::ENOENT as i32) => {
            }
            done => done.map_err(refused)?,
        }
    }
    Ok(())
}

/// Takes away what daemons left that ended otherwise than by `polypath down`, in the network namespace of the calling thread;
/// whether there was anything. Needs `CAP_NET_ADMIN`.
pub fn lift_left_behind() -> Result<bool, RouteError> {
    runtime()?.block_on(lift_others(&[]))
}

/// Whether rules stand, in the network namespace of the calling thread.
pub fn is_armed() -> bool {
    let there = || runtime()?.block_on(async { ours(&Netlink::open()?).await });
    there().is_ok_and(|there| !there.is_empty())
}

fn runtime() -> Result<tokio::runtime::Runtime, RouteError> {
    let built = tokio::runtime::Builder::new_current_thread().enable_all().build();
    built.map_err(|e| RouteError::Netlink(e.to_string()))
}

impl Config {
    /// What must not leave but through the tunnel: where routes lead into it, and the networks of its own addresses.
    pub(crate) fn protected(&self) -> Vec<IpNet> {
        if !self.tunnel.kill_switch {
            return Vec::new();
        }
        let mut all = routes(&self.prefixes(), &self.tunnel.addresses);
        all.extend(self.tunnel.addresses.iter().map(IpNet::trunc));
        all.sort();
        all.dedup();
        all
    }
}

/// The rules in the order in which they are asked.
fn rules(protected: &[IpNet]) -> Vec<RuleMessage> {
    let family = |v4: bool| protected.iter().any(|net| net.addr().is_ipv4() == v4).then(|| own(v4));
    let own = [true, false].into_iter().filter_map(family);
    let mut all: Vec<_> = own.chain(protected.iter().flat_map(|net| [specific(net), nowhere(net)])).collect();
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

/// A route of the main table that is as long as the prefix, or longer.
fn specific(to: &IpNet) -> RuleMessage {
    let mut rule = towards(to, 0, RuleAction::ToTable);
    rule.header.table = RouteHeader::RT_TABLE_MAIN;
    rule.attributes.push(RuleAttribute::SuppressPrefixLen(u32::from(to.prefix_len()).saturating_sub(1)));
    rule
}

fn nowhere(to: &IpNet) -> RuleMessage {
    towards(to, 1, RuleAction::Unreachable)
}

fn towards(to: &IpNet, step: u32, action: RuleAction) -> RuleMessage {
    let priority = FIRST + 1 + 2 * (128 - u32::from(to.prefix_len())) + step;
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

/// The rules that are ours.
async fn ours(netlink: &Netlink) -> Result<Vec<RuleMessage>, RouteError> {
    let mut all = Vec::new();
    for (version, family) in [(IpVersion::V4, AddressFamily::Inet), (IpVersion::V6, AddressFamily::Inet6)] {
        let listed = netlink.handle.rule().get(version).execute();
        let listed: Vec<RuleMessage> = listed.try_collect().await.map_err(refused)?;
        // A kernel without IPv6 lists those of other families instead.
        let of_family = listed.into_iter().filter(|rule| rule.header.family == family);
        all.extend(of_family.filter(|rule| rule.attributes.contains(&RuleAttribute::Protocol(OURS))));
    }
    Ok(all)
}

fn is_in(all: &[RuleMessage], one: &RuleMessage) -> bool {
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

fn refused(error: rtnetlink::Error) -> RouteError {
    RouteError::Rule(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(priorities, [10_499, 10_708, 10_708, 10_709, 10_709, 10_754, 10_754, 10_755, 10_755]);
        assert!(rules.iter().all(|rule| rule.header.family == AddressFamily::Inet));
        let off = Config::parse("a", &text.replace("true", "false")).unwrap();
        assert!(off.protected().is_empty());
    }
}
