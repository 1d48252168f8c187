//! What interfaces have carried, as the kernel counts it.

use futures_util::TryStreamExt;
use rtnetlink::packet_route::link::{LinkAttribute, LinkMessage};

use super::ledger::Bytes;
use crate::netlink::{Netlink, RouteError};

/// Bytes received and sent over each interface since it is there, whoever sent them.
pub(super) async fn counters() -> Result<Bytes, RouteError> {
    let links = Netlink::open()?.handle.link().get().execute();
    let links: Vec<LinkMessage> =
        links.try_collect().await.map_err(|e| RouteError::Netlink(e.to_string()))?;
    Ok(links.iter().filter_map(counter).collect())
}

fn counter(link: &LinkMessage) -> Option<(String, u64)> {
    let (mut name, mut bytes) = (None, None);
    for attribute in &link.attributes {
        match attribute {
            LinkAttribute::IfName(text) => name = Some(text.clone()),
            LinkAttribute::Stats64(stats) => bytes = Some(stats.rx_bytes + stats.tx_bytes),
            _ => {}
        }
    }
    name.zip(bytes)
}
