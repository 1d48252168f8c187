//! Data that comes from elsewhere than the peer is known to be: a NAT may have given it another port, and what is sent to the old
//! one is lost. It is asked there for a nonce (RFC 8046 §5.4), and once it has returned it, its path leads there.
//!
//! Anybody may send a copy of a packet from elsewhere, once and before the packet itself arrives. It draws one check, and the
//! next packet from where the peer is makes that void.

use polypath_wire::hip::Param;

use super::{MOST_AHEAD, Updates, What};
use crate::association::Association;
use crate::association::wait::wait;
use crate::context::Context;
use crate::event::Route;
use crate::state::State;

/// What a check costs of the peer's credit, bytes: the largest, with a signature of RSA-4096, in UDP and IPv6.
const CHECK: u64 = 700;

impl Association {
    /// The newest data of the path with that inbound SPI came on `route`. While the answer to a check may come, no other of the
    /// path is sent; after that, one follows if data comes from there still.
    pub(crate) fn on_source(&mut self, ctx: &mut Context<'_>, inbound: u32, route: Route) {
        let Some(path) = self.paths.iter_mut().find(|p| p.inbound == inbound) else { return };
        self.updates.drop_checks(inbound, route);
        let elsewhere = path.reachable && route != path.route && route.local == path.route.local;
        let ready = ctx.now >= path.next_check && self.updates.ahead() < MOST_AHEAD;
        if elsewhere && ready && self.state == State::Established && self.credit.spend(ctx.now, CHECK) {
            let until = ctx.now + wait(ctx.config, path.round_trip, 0);
            path.next_check = until;
            let nonce = ctx.random.vec(16);
            let params = vec![Param::EchoRequestSigned(nonce.clone())];
            if self.send_update(ctx, route, params, What::Check { inbound, nonce, route }).is_some() {
                self.updates.pending.last_mut().into_iter().for_each(|check| check.due = until);
            }
        }
    }
}

impl Updates {
    /// A check of that path at another route than this one is void.
    fn drop_checks(&mut self, path: u32, from: Route) {
        self.pending.retain(|p| match p.what {
            What::Check { inbound, route, .. } => inbound != path || route == from,
            _ => true,
        });
    }
}
