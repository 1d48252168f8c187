//! Nodes, links and the routes over them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use polypath_wire::Duration;

/// A host or a router.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct NodeId(pub(crate) u32);

/// A duplex link: two hops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct LinkId(pub(crate) u32);

/// One direction of a link.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct HopId(pub(crate) u32);

/// What a route must lead over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Via {
    /// A node.
    Node(NodeId),
    /// A link, in whichever direction brings the route on.
    Link(LinkId),
}

impl NodeId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
}

impl LinkId {
    /// From the first node to the second.
    pub fn there(self) -> HopId {
        HopId(self.0 * 2)
    }
    /// From the second node to the first.
    pub fn back(self) -> HopId {
        HopId(self.0 * 2 + 1)
    }
}

impl HopId {
    pub(crate) fn index(self) -> usize {
        self.0 as usize
    }
    /// The other direction of the same link.
    pub fn twin(self) -> HopId {
        HopId(self.0 ^ 1)
    }
}

/// The graph.
#[derive(Debug, Default)]
pub(crate) struct Topology {
    nodes: Vec<Node>,
    hops: Vec<Edge>,
}

#[derive(Debug, Default)]
struct Node {
    /// All hops from here, in the order in which they were built.
    hops: Vec<HopId>,
    /// Those among them that do not lead to a dead end, a node with one link: a route passes no other, and a
    /// router may have thousands of them.
    through: Vec<HopId>,
}

impl Node {
    fn is_dead_end(&self) -> bool {
        self.hops.len() == 1
    }
}

#[derive(Clone, Copy, Debug)]
struct Edge {
    from: NodeId,
    to: NodeId,
    delay: Duration,
}

/// Propagation delay and number of hops.
type Cost = (Duration, usize);
/// The least cost to a node, and the last hop on the way.
type Reached = (Cost, Option<HopId>);

impl Topology {
    pub fn node(&mut self) -> NodeId {
        self.nodes.push(Node::default());
        NodeId(self.nodes.len() as u32 - 1)
    }

    /// A link whose directions have the delays `there` and `back`.
    pub fn link(&mut self, a: NodeId, b: NodeId, there: Duration, back: Duration) -> LinkId {
        let link = LinkId(self.hops.len() as u32 / 2);
        self.hops.push(Edge { from: a, to: b, delay: there });
        self.hops.push(Edge { from: b, to: a, delay: back });
        self.leave(a, link.there());
        self.leave(b, link.back());
        for hop in [link.there(), link.back()] {
            if !self.nodes[self.to(hop).index()].is_dead_end() {
                self.pass(hop);
            }
        }
        link
    }

    /// `hop` begins at `node`, which may be a dead end no more.
    fn leave(&mut self, node: NodeId, hop: HopId) {
        let hops = &mut self.nodes[node.index()].hops;
        hops.push(hop);
        if let [first, _] = hops[..] {
            self.pass(first.twin());
        }
    }

    /// Routes may lead over `hop`.
    fn pass(&mut self, hop: HopId) {
        let through = &mut self.nodes[self.hops[hop.index()].from.index()].through;
        if let Err(at) = through.binary_search(&hop) {
            through.insert(at, hop);
        }
    }

    pub fn from(&self, hop: HopId) -> NodeId {
        self.hops[hop.index()].from
    }

    pub fn to(&self, hop: HopId) -> NodeId {
        self.hops[hop.index()].to
    }

    /// How many links there are between `a` and `b`.
    pub fn parallel(&self, a: NodeId, b: NodeId) -> usize {
        let hops = |node: NodeId| &self.nodes[node.index()].hops;
        let (few, other) = if hops(a).len() <= hops(b).len() { (a, b) } else { (b, a) };
        hops(few).iter().filter(|h| self.to(**h) == other).count()
    }

    /// The route from `from` to `to` over all of `via` in their order, each leg the shortest by
    /// propagation delay, then by number of hops, then the one that was built first.
    pub fn route(&self, from: NodeId, to: NodeId, via: &[Via]) -> Option<Vec<HopId>> {
        let mut hops = Vec::new();
        let mut at = from;
        for stop in via {
            match *stop {
                Via::Node(node) => {
                    hops.extend(self.shortest(at, node)?);
                    at = node;
                }
                Via::Link(link) => {
                    let over = |hop: HopId| Some((self.shortest(at, self.from(hop))?, hop));
                    let ways = [over(link.there()), over(link.back())];
                    let cost = |way: &(Vec<HopId>, HopId)| self.cost(&way.0);
                    let (leg, hop) = ways.into_iter().flatten().min_by_key(cost)?;
                    hops.extend(leg);
                    hops.push(hop);
                    at = self.to(hop);
                }
            }
        }
        hops.extend(self.shortest(at, to)?);
        Some(hops)
    }

    fn cost(&self, hops: &[HopId]) -> Cost {
        let delay = hops.iter().fold(Duration::ZERO, |sum, h| sum + self.hops[h.index()].delay);
        (delay, hops.len())
    }

    /// Dijkstra's algorithm.
    fn shortest(&self, from: NodeId, to: NodeId) -> Option<Vec<HopId>> {
        let mut best = BTreeMap::from([(from, ((Duration::ZERO, 0), None))]);
        let mut open = BinaryHeap::from([Reverse(((Duration::ZERO, 0), from))]);
        while let Some(Reverse((cost, node))) = open.pop() {
            if node == to {
                return Some(self.trace_back(&best, to));
            }
            if best.get(&node).is_some_and(|(known, _)| *known < cost) {
                continue;
            }
            for hop in self.ways(node, to) {
                let edge = self.hops[hop.index()];
                let cost = (cost.0 + edge.delay, cost.1 + 1);
                if best.get(&edge.to).is_none_or(|(known, _)| cost < *known) {
                    best.insert(edge.to, (cost, Some(hop)));
                    open.push(Reverse((cost, edge.to)));
                }
            }
        }
        None
    }

    /// The hops from `node` that a route to `to` may take.
    fn ways(&self, node: NodeId, to: NodeId) -> impl Iterator<Item = HopId> {
        let end = &self.nodes[to.index()];
        let last = end.hops.first().map(|hop| hop.twin());
        let last = last.filter(|hop| end.is_dead_end() && self.from(*hop) == node);
        self.nodes[node.index()].through.iter().copied().chain(last)
    }

    fn trace_back(&self, best: &BTreeMap<NodeId, Reached>, to: NodeId) -> Vec<HopId> {
        let mut hops = Vec::new();
        let mut at = to;
        while let Some((_, Some(hop))) = best.get(&at).copied() {
            hops.push(hop);
            at = self.from(hop);
        }
        hops.reverse();
        hops
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(n: u64) -> Duration {
        Duration::from_millis(n)
    }

    /// a–b–d with 10 + 10 ms, a–c–d with 5 + 20 ms, and a second link a–b of 20 ms.
    fn diamond() -> (Topology, [NodeId; 4], [LinkId; 5]) {
        let mut t = Topology::default();
        let nodes @ [a, b, c, d] = [(); 4].map(|()| t.node());
        let links = [(a, b, 10), (b, d, 10), (a, c, 5), (c, d, 20), (a, b, 20)];
        let links = links.map(|(x, y, delay)| t.link(x, y, ms(delay), ms(delay)));
        (t, nodes, links)
    }

    #[test]
    fn the_shortest_by_delay() {
        let (t, [a, _, c, d], l) = diamond();
        assert_eq!(t.route(a, d, &[]), Some(vec![l[0].there(), l[1].there()]));
        assert_eq!(t.route(d, a, &[]), Some(vec![l[1].back(), l[0].back()]));
        assert_eq!(t.route(a, d, &[Via::Node(c)]), Some(vec![l[2].there(), l[3].there()]));
        assert_eq!(t.route(a, a, &[]), Some(vec![]));
    }

    #[test]
    fn over_a_link_in_the_direction_that_brings_it_on() {
        let (t, [a, .., d], l) = diamond();
        assert_eq!(t.route(a, d, &[Via::Link(l[4])]), Some(vec![l[4].there(), l[1].there()]));
        assert_eq!(t.route(d, a, &[Via::Link(l[4])]), Some(vec![l[1].back(), l[4].back()]));
    }

    #[test]
    fn a_dead_end_is_reached_and_not_passed() {
        let (mut t, [a, b, ..], l) = diamond();
        let leaf = t.node();
        let link = t.link(b, leaf, ms(1), ms(1));
        assert_eq!(t.route(a, leaf, &[]), Some(vec![l[0].there(), link.there()]));
        assert_eq!(t.route(leaf, a, &[]), Some(vec![link.back(), l[0].back()]));
        assert!(!t.nodes[b.index()].through.contains(&link.there()));
        let short = t.link(leaf, a, ms(1), ms(1));
        assert_eq!(t.route(a, b, &[]), Some(vec![short.back(), link.back()]), "it has a second link");
    }

    #[test]
    fn links_are_counted_in_both_directions() {
        let (t, [a, b, c, d], _) = diamond();
        assert_eq!([(a, b), (b, a), (a, c), (a, d)].map(|(x, y)| t.parallel(x, y)), [2, 2, 1, 0]);
    }

    #[test]
    fn no_way() {
        let (mut t, [a, ..], _) = diamond();
        let island = t.node();
        assert_eq!(t.route(a, island, &[]), None);
        assert_eq!(t.route(a, a, &[Via::Node(island)]), None);
    }
}
