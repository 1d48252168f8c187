//! The end of an association (RFC 7401 §6.14, §6.15).

use polypath_wire::hip::{Packet, PacketType, PacketView, Param};

use super::Association;
use crate::context::Context;
use crate::event::{DropReason, Route};
use crate::session::Session;
use crate::state::State;

impl Association {
    /// Ends the association: with a CLOSE if the peer has one too.
    pub(crate) fn close(&mut self, ctx: &mut Context<'_>) {
        match self.state {
            State::R2Sent | State::Established => self.send_close(ctx),
            State::I1Sent | State::I2Sent => {
                self.drop_drafts(ctx);
                self.go(ctx, State::Unassociated);
            }
            State::Unassociated | State::Closing | State::Closed | State::EFailed => {}
        }
    }

    /// Nothing happened for a while, or so it seemed: data may have flowed since.
    pub(super) fn on_idle(&mut self, ctx: &mut Context<'_>) {
        let due = self.active + ctx.config.unused_lifetime;
        if due <= ctx.now { self.send_close(ctx) } else { self.timer = Some(due) }
    }

    pub(super) fn send_close(&mut self, ctx: &mut Context<'_>) {
        let Some(session) = &self.session else { return };
        let nonce = ctx.random.vec(16);
        let params = vec![Param::EchoRequestSigned(nonce.clone())];
        let packet = Packet::new(PacketType::Close, ctx.identity.hit(), self.peer, params);
        let Ok(packet) = session.seal(ctx, packet, Vec::new()) else { return };
        (self.packet, self.close_nonce) = (packet, nonce);
        ctx.send(self.routes[0], &self.packet);
        self.go(ctx, State::Closing);
    }

    pub(super) fn retry_close(&mut self, ctx: &mut Context<'_>) {
        let config = ctx.config;
        if ctx.now.since(self.since) >= config.unused_lifetime + config.segment_lifetime {
            return self.go(ctx, State::Unassociated);
        }
        self.tries += 1;
        ctx.send(self.routes[self.tries as usize % self.routes.len()], &self.packet);
        self.timer = Some(ctx.now + config.retransmit.times(1 << self.tries.min(6)));
    }

    /// The keys that a CLOSE must be sealed with.
    fn closing_session(&self) -> Option<&Session> {
        match self.state {
            State::I2Sent => self.drafts.last().map(|d| &d.session),
            State::R2Sent | State::Established | State::Closing | State::Closed => self.session.as_ref(),
            State::Unassociated | State::I1Sent | State::EFailed => None,
        }
    }

    pub(super) fn on_close(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        self.closing_session().ok_or(DropReason::State)?.check_mac(view)?;
        if !self.favours.take(ctx.now, 0) {
            return Err(DropReason::Policy);
        }
        let session = self.closing_session().ok_or(DropReason::State)?;
        session.verify_signature(ctx, view)?;
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let echo = params.into_iter().find_map(|p| match p {
            Param::EchoRequestSigned(nonce) => Some(Param::EchoResponseSigned(nonce)),
            _ => None,
        });
        let answer = vec![echo.ok_or(DropReason::Proposal)?];
        let packet = Packet::new(PacketType::CloseAck, ctx.identity.hit(), self.peer, answer);
        let packet = session.seal(ctx, packet, Vec::new()).map_err(|_| DropReason::Crypto)?;
        ctx.send(route, &packet);
        if let Some(draft) = self.drafts.pop() {
            ctx.spis.remove(&draft.inbound());
            self.session = Some(draft.session);
        }
        self.drop_drafts(ctx);
        if self.state != State::Closed {
            self.go(ctx, State::Closed);
        }
        Ok(())
    }

    pub(super) fn on_close_ack(
        &mut self,
        ctx: &mut Context<'_>,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        let session = self.session.as_ref().filter(|_| matches!(self.state, State::Closing | State::Closed));
        let session = session.ok_or(DropReason::State)?;
        session.check_mac(view)?;
        let params = view.values().map_err(|_| DropReason::Malformed)?;
        let answers = |p: &Param| matches!(p, Param::EchoResponseSigned(nonce) if *nonce == self.close_nonce);
        if self.close_nonce.is_empty() || !params.iter().any(answers) {
            return Err(DropReason::Replay);
        }
        session.verify_signature(ctx, view)?;
        self.go(ctx, State::Unassociated);
        Ok(())
    }
}
