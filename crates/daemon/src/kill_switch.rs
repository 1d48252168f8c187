//! The kill switch: rules of policy routing (ip-rule(8)) that outlive the daemon. What is for a peer's prefix leaves through the
//! tunnel or by a route of the main table that is more specific than the prefix, or not at all.
//!
//! The routes into the tunnel are in a table of their own, which the device takes along. For each prefix a rule looks for
//! a more specific route in the main table, one behind it in that table, and one behind that answers "unreachable". The daemon's
//! own packets carry a mark and use the main table first. Rules for longer prefixes come before rules for shorter ones.

mod rules;

use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use nix::errno::Errno;
use rtnetlink::IpVersion;
use rtnetlink::packet_route::AddressFamily;
use rtnetlink::packet_route::rule::{RuleAttribute, RuleMessage};
use tokio::sync::Mutex;
use tokio::time::sleep;
use tracing::warn;

use crate::config::Config;
use crate::netlink::{Netlink, OURS, RouteError, Trouble};
use crate::routes::routes;
pub(crate) use rules::MARK;
use rules::{is_in, rules};

/// Interval between two checks of the rules: systemd-networkd removes foreign ones when it sets up an interface.
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
        let mut trouble = Trouble::default();
        loop {
            sleep(LOOK).await;
            let all = self.0.lock().await;
            let restored = arm(&all).await;
            if matches!(restored, Ok(true)) {
                warn!("another program removed rules of the kill switch; they are restored");
            }
            trouble.note("rules", restored.err());
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
            Err(rtnetlink::Error::NetlinkError(e)) if e.raw_code() == -(Errno::ENOENT as i32) => {}
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
    runtime().is_ok_and(|runtime| runtime.block_on(stands()))
}

/// The same in a tokio runtime.
pub async fn stands() -> bool {
    let there = async { ours(&Netlink::open()?).await };
    there.await.is_ok_and(|there| !there.is_empty())
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

/// The rules that are ours.
async fn ours(netlink: &Netlink) -> Result<Vec<RuleMessage>, RouteError> {
    let mut all = Vec::new();
    for (version, family) in [(IpVersion::V4, AddressFamily::Inet), (IpVersion::V6, AddressFamily::Inet6)] {
        let listed = netlink.handle.rule().get(version).execute();
        let listed: Vec<RuleMessage> = listed.try_collect().await.map_err(refused)?;
        // A kernel without IPv6 lists the rules of other families instead.
        let of_family = listed.into_iter().filter(|rule| rule.header.family == family);
        all.extend(of_family.filter(|rule| rule.attributes.contains(&RuleAttribute::Protocol(OURS))));
    }
    Ok(all)
}

fn refused(error: rtnetlink::Error) -> RouteError {
    match &error {
        rtnetlink::Error::NetlinkError(e) if e.raw_code() == -(Errno::EPERM as i32) => RouteError::Privilege,
        _ => RouteError::Rule(error.to_string()),
    }
}
