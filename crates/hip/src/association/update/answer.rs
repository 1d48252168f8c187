//! Our answers to the peer's requests.

use polypath_wire::hip::{DiffieHellman, EspInfo, Param};

use super::{Request, Update, WINDOW, What, public};
use crate::association::Association;
use crate::context::Context;
use crate::event::{DropReason, Route};
use crate::keymat::esp_draw_len;
use crate::responder::is_usable;
use crate::session::Session;

/// Most old SA pairs of a path that gets new ones: a peer that has more sends no data on them.
const MOST_OLD: usize = 2;

impl Association {
    /// Answers a request. `None` if the answer is an UPDATE of our own, which was sent.
    pub(super) fn answer(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        id: u32,
        update: &Update,
    ) -> Result<Option<Vec<Param>>, DropReason> {
        let info = update.esp_info.ok_or(DropReason::Proposal)?;
        if info.new_spi == 0 {
            // One that is not there any more: both ends gave it up at once.
            let path = self.paths.iter().find(|p| p.outbound == info.old_spi).map(|p| p.inbound);
            if info.old_spi == 0 || path.is_some() && self.paths.len() < 2 {
                return Err(DropReason::Proposal);
            }
            path.into_iter().for_each(|inbound| self.remove_path(ctx, inbound));
            return Ok(Some(Vec::new()));
        }
        let rekeyed = info.old_spi != 0 && info.old_spi != info.new_spi;
        self.check_request(info, update, rekeyed)?;
        // Not to where somebody says that a repeated one came from.
        let sure = !update.repeated || self.may_be_at(route);
        if info.old_spi != info.new_spi && self.is_our_turn(ctx, rekeyed) {
            if sure && self.favours.take(ctx.now, 0) {
                self.hasten(ctx, route);
            }
            return Err(DropReason::State);
        }
        if let Some(removal) = self.removal(info).filter(|_| rekeyed) {
            if sure && self.favours.take(ctx.now, 0) {
                self.send_now(ctx, route, |p| p.request() == Some(removal));
            }
            return Err(DropReason::State);
        }
        if self.updates.ahead() >= WINDOW - 1 {
            return Err(DropReason::Policy);
        }
        let (inbound, mut params) = match info.old_spi {
            0 => self.answer_add(ctx, route, info)?,
            old if old == info.new_spi => self.answer_move(info)?,
            old => self.answer_rekey(ctx, old, info, update)?,
        };
        if !rekeyed && self.updates.is_news(id) {
            self.updates.drop_proofs(inbound);
        }
        let nonce = ctx.random.vec(16);
        params.extend(update.echo_requests.iter().cloned());
        params.extend([Param::EchoRequestSigned(nonce.clone()), Param::Ack(vec![id])]);
        let what = What::Answer { inbound, nonce, route, rekeyed, strayed: false };
        self.send_update(ctx, route, params, what).ok_or(DropReason::Crypto)?;
        let packet = self.updates.pending.last().map(|p| p.packet.clone()).unwrap_or_default();
        self.remember(id, packet);
        Ok(None)
    }

    /// Answers a request again.
    pub(super) fn answer_again(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        id: u32,
    ) -> Result<(), DropReason> {
        let answer = self.updates.answered.get(&id).ok_or(DropReason::Replay)?;
        if !self.favours.take(ctx.now, 0) {
            return Err(DropReason::Policy);
        }
        ctx.send(route, answer);
        self.updates.note_way(id, route);
        Ok(())
    }

    /// SPIs below 256 are reserved (RFC 4303 §2.1). A new Diffie-Hellman value is for new keys, of the group of the base
    /// exchange, and they are drawn from its beginning (RFC 7402 §5.1.1, §6.9).
    fn check_request(&self, info: EspInfo, update: &Update, rekeyed: bool) -> Result<(), DropReason> {
        let group = self.session.as_ref().ok_or(DropReason::State)?.group as u8;
        let good = |dh: &DiffieHellman| rekeyed && dh.group == group && info.keymat_index == 0;
        let sound = is_usable(info.new_spi) && update.dh.as_ref().is_none_or(good);
        sound.then_some(()).ok_or(DropReason::Proposal)
    }

    /// While we ask for new keys, the peer gets none; if it asks for new keys too, the greater HIT finishes its
    /// request first. What is not answered comes again.
    fn is_our_turn(&self, ctx: &Context<'_>, rekeying: bool) -> bool {
        self.updates.is_rekeying() && (!rekeying || ctx.identity.hit() > self.peer)
    }

    /// Our request to remove the path that the peer's request names.
    fn removal(&self, info: EspInfo) -> Option<Request> {
        let path = self.paths.iter().find(|p| p.outbound == info.old_spi)?;
        let removal = Request::Remove { inbound: path.inbound };
        self.updates.is_removing(path.inbound).then_some(removal)
    }

    /// A new SA pair for the path that the request came on (RFC 8047 §4).
    fn answer_add(
        &mut self,
        ctx: &mut Context<'_>,
        route: Route,
        info: EspInfo,
    ) -> Result<(u32, Vec<Param>), DropReason> {
        if self.paths.len() >= ctx.config.max_paths.into() {
            return Err(DropReason::Policy);
        }
        let shares = self.shares_spis(ctx);
        let is_free = |s: &Session| s.is_free(info.keymat_index.into());
        // An end that shares SPIs draws nothing else at the place that it asks for.
        let kept = shares && self.session.as_ref().is_some_and(is_free);
        let info = if kept { info } else { self.agree_on_index(ctx, info)? };
        let inbound = if shares { ctx.same_spi(info.new_spi) } else { ctx.new_spi() };
        self.install_new(ctx, route, inbound, info, false, false)?;
        Ok((inbound, vec![Param::EspInfo(EspInfo { old_spi: 0, new_spi: inbound, ..info })]))
    }

    /// Keys are drawn at the larger of both ends' indices (RFC 7402 §6.9): the answer has it. The greater HIT leaves
    /// room for what the other one answers meanwhile, so that both never draw the same keys.
    fn agree_on_index(&self, ctx: &Context<'_>, info: EspInfo) -> Result<EspInfo, DropReason> {
        let session = self.session.as_ref().ok_or(DropReason::State)?;
        let greater = ctx.identity.hit() > self.peer;
        let asked = if greater { self.updates.drawing().count() } else { 0 };
        let next = session.next_index.max(info.keymat_index.into()) + asked * esp_draw_len(session.suite);
        let keymat_index = u16::try_from(next).map_err(|_| DropReason::Crypto)?;
        Ok(EspInfo { keymat_index, ..info })
    }

    fn answer_move(&self, info: EspInfo) -> Result<(u32, Vec<Param>), DropReason> {
        let path = self.paths.iter().find(|p| p.outbound == info.old_spi).ok_or(DropReason::Proposal)?;
        let same = EspInfo { old_spi: path.inbound, new_spi: path.inbound, ..info };
        Ok((path.inbound, vec![Param::EspInfo(same)]))
    }

    fn answer_rekey(
        &mut self,
        ctx: &mut Context<'_>,
        old: u32,
        info: EspInfo,
        update: &Update,
    ) -> Result<(u32, Vec<Param>), DropReason> {
        let path = self.paths.iter().find(|p| p.outbound == old).ok_or(DropReason::Proposal)?.inbound;
        if self.updates.old_keys(path) >= MOST_OLD {
            return Err(DropReason::Policy);
        }
        let key = match &update.dh {
            Some(dh) => {
                let key = ctx.dh_key(self.session.as_ref().ok_or(DropReason::State)?.group);
                self.renew_keymat(ctx, &key, dh)?;
                Some(key)
            }
            None => None,
        };
        let info = self.agree_on_index(ctx, info)?;
        let inbound = ctx.new_spi();
        self.replace(ctx, path, inbound, info, false)?;
        self.forget_rekey(ctx, path);
        let mut params = vec![Param::EspInfo(EspInfo { old_spi: path, new_spi: inbound, ..info })];
        params.extend(key.as_ref().map(public));
        Ok((inbound, params))
    }
}
