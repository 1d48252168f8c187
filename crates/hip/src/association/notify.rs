//! NOTIFY (RFC 7401 §6.13).

use polypath_wire::hip::{Hit, Notification, NotifyType, Packet, PacketType, PacketView, Param};
use polypath_wire::{Checksum, Duration};

use super::Association;
use crate::context::Context;
use crate::event::{DropReason, Event, Route};
use crate::session::Session;

impl Association {
    /// A NOTIFY has a signature and nothing that is cheaper to check, so only a few are, and only from where the peer may
    /// be.
    pub(super) fn on_notify(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
    ) -> Result<(), DropReason> {
        let session = self.drafts.last().map(|d| &d.session).or(self.session.as_ref());
        let session = session.ok_or(DropReason::State)?;
        if !self.may_be_at(route) {
            return Err(DropReason::Source);
        }
        if !self.favours.take(ctx.now, 0) {
            return Err(DropReason::Policy);
        }
        ctx.verify_signature(&session.peer, view)?;
        for param in view.values().map_err(|_| DropReason::Malformed)? {
            if let Param::Notification(notification) = param {
                ctx.event(self.peer, Event::Notified(notification));
            }
        }
        Ok(())
    }

    /// Tells the peer about a critical parameter that we do not know, if it is the peer who sent it.
    pub(super) fn on_unknown(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        view: &PacketView<'_>,
        kind: u16,
    ) {
        let session = self.session.as_ref().filter(|s| s.check_mac(view).is_ok());
        let may = |s: &Session| self.favours.take(ctx.now, 0) && s.verify_signature(ctx, view).is_ok();
        if session.is_some_and(may) {
            self.notify(ctx, route, NotifyType::UNSUPPORTED_CRITICAL_PARAMETER, kind.to_be_bytes().to_vec());
        }
    }

    /// Sends a NOTIFY, at most one a second.
    pub(super) fn notify(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        notify_type: NotifyType,
        data: Vec<u8>,
    ) {
        let second = Duration::from_secs(1);
        if self.notified.is_some_and(|at| ctx.now.since(at) < second) {
            return;
        }
        self.notified = Some(ctx.now);
        if let Some(packet) = notify(ctx, self.peer, notify_type, data) {
            ctx.send(route, &packet);
        }
    }
}

/// A signed NOTIFY (RFC 7401 §5.3.6).
pub(crate) fn notify(
    ctx: &mut Context<'_>,
    peer: Hit,
    notify_type: NotifyType,
    data: Vec<u8>,
) -> Option<Vec<u8>> {
    let params = vec![
        Param::Notification(Notification { notify_type, data }),
        Param::HostId(ctx.identity.public().host_id().clone()),
    ];
    let mut packet = Packet::new(PacketType::Notify, ctx.identity.hit(), peer, params);
    let signature = ctx.sign(&packet.emit(Checksum::Unused).ok()?).ok()?;
    packet.push(Param::HipSignature(signature));
    packet.emit(Checksum::Unused).ok()
}
