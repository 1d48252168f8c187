//! A peer tells another its address in the tunnel: a byte each for the version and the family (4 or 6), and the address. The
//! connection stands as long as that holds. What is routed into the tunnel, only the host's own configuration says.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use futures_util::TryStreamExt;
use ipnet::IpNet;
use polypath_endpoint::ListenConfig;
use polypath_node::{Listener, Stream};
use polypath_transport::ConnectionConfig;
use polypath_wire::hip::Hit;
use tokio::task::AbortHandle;
use tokio::time::{sleep, timeout};
use tracing::{info, warn};

use crate::device::Device;
use crate::lane::Lane;
use crate::netlink::Netlink;
use crate::peers::Peer;

/// The peer's port on which it tells.
pub(crate) const PORT: u16 = 4828;
const VERSION: u8 = 1;
/// Bytes before the address.
const HEAD: usize = 2;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Pause before it is asked again.
const PAUSE: Duration = Duration::from_secs(1);

/// The connections on which it is announced.
pub(crate) fn connections() -> ListenConfig {
    ListenConfig { connection: connection(), ..ListenConfig::default() }
}

fn connection() -> ConnectionConfig {
    ConnectionConfig { fail_silent: true, ..ConnectionConfig::default() }
}

/// Tells each peer that asks, until the node stops. A peer has one connection for that: the newest.
pub(crate) async fn serve(lane: Arc<Lane>, listener: Listener) {
    let mut telling: BTreeMap<Hit, AbortHandle> = BTreeMap::new();
    while let Ok(stream) = listener.accept().await {
        telling.retain(|_, told| !told.is_finished());
        let Some(peer) = stream.peer().and_then(|hit| lane.peers.with_hit(hit)) else { continue };
        let hit = peer.config.hit;
        let told = lane.spawn(tell(lane.clone(), peer, stream)).abort_handle();
        telling.insert(hit, told).into_iter().for_each(|before| before.abort());
    }
}

/// Tells the peer, and ends the connection once something else holds.
async fn tell(lane: Arc<Lane>, peer: Arc<Peer>, stream: Stream) {
    let Some(address) = address_of(&peer) else { return };
    if stream.write(encode(address).into()).await.is_err() {
        return;
    }
    let is_another = || {
        let now = lane.peers.with_hit(peer.config.hit);
        now.and_then(|now| address_of(&now)) != Some(address)
    };
    tokio::select! {
        () = peer.link.until(is_another) => {}
        () = peer.link.ended() => {}
        _ = stream.read(1) => {}
    }
}

/// The first prefix of a peer that is one address.
fn address_of(peer: &Peer) -> Option<IpAddr> {
    let one = peer.config.prefixes.iter().find(|prefix| prefix.prefix_len() == prefix.max_prefix_len());
    one.map(IpNet::addr)
}

fn encode(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(ip) => [&[VERSION, 4], ip.octets().as_slice()].concat(),
        IpAddr::V6(ip) => [&[VERSION, 6], ip.octets().as_slice()].concat(),
    }
}

/// The address in a message of this version, if a host can have it.
fn decode(message: &[u8]) -> Option<IpAddr> {
    let (head, octets) = message.split_first_chunk::<HEAD>()?;
    let ip: IpAddr = match *head {
        [VERSION, 4] => Ipv4Addr::from(<[u8; 4]>::try_from(octets).ok()?).into(),
        [VERSION, 6] => Ipv6Addr::from(<[u8; 16]>::try_from(octets).ok()?).into(),
        _ => return None,
    };
    let is_of_a_host = !ip.is_unspecified() && !ip.is_loopback() && !ip.is_multicast();
    is_of_a_host.then_some(ip)
}

/// Gives the device the address that the peer says, and another one when it says so, for ever.
pub(crate) async fn follow(lane: Arc<Lane>, device: Device, hit: Hit) {
    let (mut has, mut said) = (None, None);
    loop {
        let failed = ask(&lane, &device, hit, &mut has).await.err();
        if let Some(why) = failed.as_ref().filter(|_| said != failed) {
            warn!("no address from {hit}: {why}; trying again");
        }
        said = failed;
        sleep(PAUSE).await;
    }
}

/// Asks once there is an association; returns when what was said no longer holds.
async fn ask(lane: &Lane, device: &Device, hit: Hit, has: &mut Option<IpAddr>) -> Result<(), String> {
    let Some(peer) = lane.peers.with_hit(hit) else { return Ok(()) };
    lane.associated(&peer).await;
    let stream = lane.outer.connect_peer(connection(), hit, PORT).await.map_err(|e| e.to_string())?;
    let answered = timeout(PATIENCE, answer(&stream)).await.map_err(|_| "no answer")?;
    let address = answered.ok_or("it has none for this host: [tunnel] assign there")?;
    // It is trusted with its prefixes, and with no other address.
    if !peer.config.prefixes.iter().any(|prefix| prefix.contains(&address)) {
        return Err(format!("{address}, which it says, is in none of its prefixes here"));
    }
    if has.is_none_or(|has| has != address) {
        set(device, *has, address).await?;
        info!("the address of this host is {address}");
        *has = Some(address);
    }
    let _ = stream.read(1).await; // it ends
    Ok(())
}

async fn answer(stream: &Stream) -> Option<IpAddr> {
    let mut message = Vec::new();
    loop {
        let len = match message.get(1) {
            None => HEAD,
            Some(4) => HEAD + 4,
            Some(_) => HEAD + 16,
        };
        if message.len() == len {
            return decode(&message);
        }
        message.extend_from_slice(&stream.read(len - message.len()).await.ok()??);
    }
}

/// Gives `device` an address in place of what it has.
async fn set(device: &Device, before: Option<IpAddr>, address: IpAddr) -> Result<(), String> {
    let netlink = Netlink::open().map_err(|e| e.to_string())?;
    let (index, length) = (device.index, IpNet::from(address).prefix_len());
    let added = netlink.handle.address().add(index, address, length).replace();
    added.execute().await.map_err(|e| format!("{address} on {}: {e}", device.name()))?;
    // Only now: with its last address the routes of a device go.
    if let Some(before) = before {
        let all = netlink.handle.address().get().set_link_index_filter(index);
        let mut found = all.set_address_filter(before).execute();
        while let Ok(Some(message)) = found.try_next().await {
            // Somebody else may have removed it.
            let _ = netlink.handle.address().del(message).execute().await;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_survives_the_round_trip_and_others_are_none() {
        for address in ["10.99.0.7", "fd99::7"] {
            let address: IpAddr = address.parse().unwrap();
            assert_eq!(decode(&encode(address)), Some(address));
        }
        for message in [
            &[][..],
            &[1, 4, 10, 99, 0],
            &[2, 4, 10, 99, 0, 7],
            &[1, 5, 10, 99, 0, 7],
            &[1, 6, 10, 99, 0, 7],
            &[1, 4, 224, 0, 0, 1],
            &[1, 4, 127, 0, 0, 1],
        ] {
            assert_eq!(decode(message), None, "{message:?}");
        }
    }
}
