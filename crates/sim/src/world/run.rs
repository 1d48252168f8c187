//! The loop that lets time pass.

use polypath_endpoint::{PeerEvent, pump};
use polypath_transport::CloseReason;
use polypath_wire::Instant;
use polypath_wire::hip::Hit;

use super::World;
use crate::events::{Event, Next};
use crate::host::{Door, Host, Side};
use crate::net::Net;
use crate::packet::{Body, Datagram, PacketId};
use crate::route::Path;
use crate::topology::{HopId, NodeId};
use crate::traffic::{Flow, FlowId};

/// Running.
impl World {
    /// Lets time pass until `until`, events at that instant included.
    pub fn run(&mut self, until: Instant) {
        while let Some(next) = self.net.events.pop(until) {
            self.net.now = next.at;
            match next.event {
                Event::Hop(hop) => self.hop(hop, &next),
                Event::Wake(node) => self.wake(node, &next),
                Event::Release(node, batch) => self.release(node, batch),
                Event::TooBig(hop, packet) => self.too_big(hop, packet),
                Event::Start(flow) => self.start(flow),
                Event::Stop(flow) => self.stop(flow),
                Event::Datagram(source) => self.datagram(source),
            }
        }
        self.net.now = self.net.now.max(until);
    }

    /// The application of a flow that is `open` writes this many bytes more, now. They come on top of the flow's
    /// `bytes`, and it is finished when the receiver has read them too. Returns how many were taken: none of a flow that has
    /// not begun, is not `open`, or has no number of `bytes`.
    #[must_use]
    pub fn write(&mut self, FlowId(id): FlowId, bytes: u64) -> u64 {
        let flow = &mut self.flows[id as usize];
        let node = flow.config.paths[0].0.from;
        let host = self.hosts[node.index()].as_deref_mut().expect("flow() checked it");
        let taken = flow.write(bytes, host);
        self.serve(node);
        taken
    }

    fn hop(&mut self, hop: HopId, next: &Next) {
        if !self.net.hops[hop.index()].alarm.goes_off(next) {
            return;
        }
        while let Some(id) = self.net.next_arrival(hop) {
            let (now, packet) = (self.net.now, &mut self.net.packets[id]);
            let route = &mut self.net.routes[packet.route.0 as usize];
            let to = route.to;
            if let Body::Datagram(datagram) = packet.body {
                self.sources[datagram.source as usize].received(now, datagram, packet.size);
            } else if let Some(host) = &mut self.hosts[to.index()] {
                let watched = self.config.reordering && packet.body.has_data();
                let handle = host.receive(now, route, packet);
                if let Some((flow, Side::Receiver)) = handle.and_then(|handle| host.flow(handle)) {
                    let flow = &mut self.flows[flow as usize];
                    if watched {
                        flow.watch.arrived(packet.number);
                    }
                    // What came is read before the acknowledgment leaves, so that the window it tells is open.
                    flow.drain(now, host);
                }
            }
            self.net.packets.remove(id);
            self.serve(to);
        }
    }

    #[inline(never)]
    fn too_big(&mut self, hop: HopId, id: PacketId) {
        let nothing = Body::Bytes(Vec::new());
        let body = std::mem::replace(&mut self.net.packets[id].body, nothing);
        let route = &self.net.routes[self.net.packets[id].route.0 as usize];
        let (locators, node) = (route.locators.reversed(), self.topology.from(route.hops[0]));
        self.net.packets.remove(id);
        let mtu = self.net.hops[hop.index()].hop.config().mtu;
        if let (Some(host), Some(mtu)) = (&mut self.hosts[node.index()], mtu) {
            host.too_big(self.net.now, locators, body, mtu);
            self.serve(node);
        }
    }

    #[inline(never)]
    fn wake(&mut self, node: NodeId, next: &Next) {
        if let Some(host) = &mut self.hosts[node.index()]
            && host.alarm.goes_off(next)
        {
            host.armed = Instant::MAX;
            self.serve(node);
        }
    }

    #[inline(never)]
    fn release(&mut self, node: NodeId, batch: u32) {
        let host = self.hosts[node.index()].as_deref_mut();
        if let Some(jitter) = host.and_then(|h| h.exit.jitter.as_mut()) {
            jitter.release(batch, &mut self.net);
        }
    }

    #[inline(never)]
    fn start(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let Path { from: node, to, .. } = flow.config.paths[0].0;
        let peer = self.hosts[to.index()].as_deref().and_then(|host| host.endpoint.hit());
        let host = self.hosts[node.index()].as_deref_mut().expect("flow() checked it");
        match peer {
            Some(peer) => flow.associate(self.net.now, peer, id, host),
            None => flow.open(self.net.now, host, id, None),
        }
        self.serve(node);
    }

    #[inline(never)]
    fn stop(&mut self, id: u32) {
        let flow = &mut self.flows[id as usize];
        let node = flow.config.paths[0].0.from;
        let host = self.hosts[node.index()].as_deref_mut().expect("flow() checked it");
        flow.stop(self.net.now, host);
        self.serve(node);
    }

    #[inline(never)]
    fn datagram(&mut self, id: u32) {
        let source = &mut self.sources[id as usize];
        if source.config.stop.is_some_and(|stop| self.net.now >= stop) {
            return;
        }
        let number = source.sent(self.net.now);
        let body = Body::Datagram(Datagram { source: id, number, corrupted: false });
        let packet = self.net.packets.claim(source.config.path.there, source.config.size);
        self.net.packets[packet].body = body;
        self.net.send(packet);
        if let Some(next) = source.next(self.net.now) {
            self.net.events.push(next, Event::Datagram(id));
        }
    }

    /// Lets a host's endpoint send and its applications react, until there is nothing left to do.
    fn serve(&mut self, node: NodeId) {
        let Some(host) = self.hosts[node.index()].as_deref_mut() else { return };
        let now = self.net.now;
        let local = host.clock.local(now);
        for n in 0..host.oracles.len() {
            let flow = &self.flows[host.oracles[n] as usize];
            flow.reveal_queues(now, host, &self.net);
        }
        loop {
            let mut door = Door { exit: &mut host.exit, net: &mut self.net };
            let due = pump(&mut host.endpoint, local, &mut door);
            if host.endpoint.has_news() {
                if react(host, &mut self.flows, now) {
                    continue;
                }
                record(host, &mut self.net, node);
            }
            return arm(host, &mut self.net, due);
        }
    }
}

/// Hands the endpoint's events to the flows. Whether one of them did something.
#[inline(never)]
fn react(host: &mut Host, flows: &mut [Flow], now: Instant) -> bool {
    let mut acted = false;
    while let Some((peer, event)) = host.endpoint.poll_peer_event() {
        acted |= on_peer_event(host, flows, now, peer, &event);
    }
    while let Some((handle, event)) = host.endpoint.poll_event() {
        if let polypath_endpoint::Event::Accepted { port } = event
            && let Some(&id) = host.listeners.get(&port)
        {
            host.assign(handle, id, Side::Receiver);
            flows[id as usize].receiver = Some(handle);
        }
        if let Some((id, side)) = host.flow(handle) {
            acted |= flows[id as usize].react(now, side, event, host);
        }
    }
    acted
}

/// Opens the flows that waited for an association; whether there were any.
fn on_peer_event(host: &mut Host, flows: &mut [Flow], now: Instant, peer: Hit, event: &PeerEvent) -> bool {
    let (theirs, others): (Vec<_>, _) =
        std::mem::take(&mut host.waiting).into_iter().partition(|w| w.0 == peer);
    host.waiting = others;
    let waited = !theirs.is_empty();
    for (_, id) in theirs {
        let flow = &mut flows[id as usize];
        match event {
            PeerEvent::Up => flow.open(now, host, id, Some(peer)),
            PeerEvent::Failed(_) | PeerEvent::Down => flow.report.lost = Some(CloseReason::TimedOut),
            _ => host.waiting.push((peer, id)),
        }
    }
    waited
}

/// Hands what the endpoint observed to the taps.
#[inline(never)]
fn record(host: &mut Host, net: &mut Net, node: NodeId) {
    while let Some(record) = host.endpoint.poll_hip_record() {
        if let Some(trace) = &mut net.taps.trace {
            trace.hip(net.now, node, record.state);
        }
    }
    while let Some((handle, record)) = host.endpoint.poll_record() {
        let flow = host.flow(handle).map(|(id, _)| id);
        if let (Some(delays), Some(flow)) = (&mut net.taps.delays, flow) {
            delays.observe(net.now, flow, &record.what);
        }
        if let Some(trace) = &mut net.taps.trace {
            trace.record(net.now, node, flow, &record);
        }
    }
}

/// Sees that the host wakes up when its endpoint is due.
fn arm(host: &mut Host, net: &mut Net, due: Option<Instant>) {
    let at = due.map_or(Instant::MAX, |due| host.clock.global(due).max(net.now));
    if at != host.armed {
        host.armed = at;
        net.events.set(&mut host.alarm, at);
    }
}
