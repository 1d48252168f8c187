//! One end at work: its connection, its application, and what must hold of what it sends.

use polypath_transport::facts::PathState;
use polypath_transport::{
    CloseReason, Connection, Event, Pattern, Payload, RecordFilter, Segment, State, Transmit,
};
use polypath_wire::tcp::TcpFlags;
use polypath_wire::{Instant, PathId, Rate, Seq};

use crate::spec::{Close, End as EndSpec};

/// Bytes received, those that came early, written and acknowledged, and the state.
pub type Progress = (u64, u64, u64, u64, Option<State>);

/// An end.
pub struct End {
    pub spec: EndSpec,
    pub connection: Option<Connection>,
    /// Names the pattern it sends; the peer's is the other one.
    key: u32,
    written: u64,
    next_write: Instant,
    /// It may write only when told.
    blocked: bool,
    closed: bool,
    close_at: Option<Instant>,
    pub received: u64,
    readable: bool,
    next_read: Instant,
    pub peer_finished: bool,
    pub finished: bool,
    pub lost: Option<CloseReason>,
    pub connected: bool,
    /// Sequence number after everything it sent, and the edge it ever offered, in its own and in the
    /// peer's sequence space.
    sent_to: Option<Seq>,
    pub edge: Option<Seq>,
    last_ack: Option<Seq>,
    /// The window scale its SYN offered.
    pub shift: Option<u8>,
    aborted: bool,
    /// Its memory was short: it may take back its window.
    pub was_short: bool,
}

impl End {
    pub fn new(spec: EndSpec, key: u32) -> Self {
        Self {
            spec,
            connection: None,
            key,
            written: 0,
            next_write: Instant::ZERO,
            blocked: false,
            closed: false,
            close_at: None,
            received: 0,
            readable: false,
            next_read: Instant::ZERO,
            peer_finished: false,
            finished: false,
            lost: None,
            connected: false,
            sent_to: None,
            edge: None,
            last_ack: None,
            shift: None,
            aborted: false,
            was_short: false,
        }
    }

    pub fn begin(&mut self, mut connection: Connection) {
        connection.record(RecordFilter { packets: true, state: true, events: true });
        self.connection = Some(connection);
    }

    pub fn is_closed(&self) -> bool {
        self.connection.as_ref().is_none_or(|c| c.state() == State::Closed)
    }

    /// Whether it has nothing left to send, ever.
    pub fn is_done(&self) -> bool {
        self.is_closed() || self.connection.as_ref().is_some_and(|c| c.state() == State::TimeWait)
    }

    /// What counts as progress: it changes, or something is wrong.
    pub fn progress(&self) -> Progress {
        let of = |c: &Connection| (c.stats().bytes_early, c.stats().bytes_acked);
        let (early, acked) = self.connection.as_ref().map_or((0, 0), of);
        (self.received, early, self.written, acked, self.connection.as_ref().map(|c| c.state()))
    }

    /// The next instant at which it wants to do something.
    pub fn next_event(&self, now: Instant) -> Option<Instant> {
        let connection = self.connection.as_ref()?;
        let timer = connection.poll_timeout().map(|t| self.spec.clock.world(t));
        let open = connection.state() != State::Closed;
        let write = (open && self.written < self.spec.send && !self.blocked && self.next_write > now)
            .then_some(self.next_write);
        let read = (self.readable && self.next_read > now).then_some(self.next_read);
        let close = self.close_at.filter(|_| open && !self.closed);
        let abort = self.spec.abort.filter(|_| open && !self.aborted);
        [timer, write, read, close, abort].into_iter().flatten().min()
    }

    /// Timers and application.
    pub fn work(&mut self, now: Instant) -> Result<(), String> {
        let local = self.spec.clock.local(now);
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if connection.poll_timeout().is_some_and(|t| t <= local) {
            connection.handle_timeout(local);
        }
        if self.spec.abort.is_some_and(|at| at <= now) && !self.aborted {
            self.aborted = true;
            connection.abort(local);
        }
        self.listen()?;
        self.read(now)?;
        self.listen()?;
        self.write(now);
        self.listen()
    }

    fn listen(&mut self) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        while let Some(event) = connection.poll_event() {
            match event {
                Event::Connected => self.connected = true,
                Event::Readable => self.readable = true,
                Event::Writable => self.blocked = false,
                Event::PeerFinished if self.peer_finished => return Err("PeerFinished twice".to_owned()),
                Event::PeerFinished => self.peer_finished = true,
                Event::Delivered => {}
                Event::Finished => self.finished = true,
                Event::Lost(reason) => self.lost = Some(reason),
                Event::Probed | Event::ProbeAnswered => return Err("nobody relays keep-alives".to_owned()),
            }
        }
        Ok(())
    }

    fn read(&mut self, now: Instant) -> Result<(), String> {
        let Some(connection) = &mut self.connection else { return Ok(()) };
        if !self.readable || now < self.next_read {
            return Ok(());
        }
        let mut budget = self.spec.read.map_or(u64::MAX, |(bytes, _)| bytes);
        while budget > 0 {
            let Some(chunk) = connection.read(budget) else {
                self.readable = false;
                break;
            };
            let expected = Pattern { key: self.key ^ 1, offset: self.received, len: chunk.len() };
            if chunk.len() > budget || !chunk.same_bytes(&expected.into()) {
                return Err(format!("wrong bytes at {}: {chunk:?}", self.received));
            }
            if self.peer_finished {
                return Err("bytes after the end of the stream".to_owned());
            }
            self.received += chunk.len();
            budget -= chunk.len();
        }
        if let Some((_, pause)) = self.spec.read {
            self.next_read = now + pause;
        }
        if self.spec.config.grow_window {
            let pace = |(bytes, pause)| Rate::from_bytes_per(bytes, pause);
            connection.grow_window(self.spec.read.map_or(Rate::from_mbps(10_000), pace));
        }
        Ok(())
    }

    fn write(&mut self, now: Instant) {
        let Some(connection) = &mut self.connection else { return };
        if connection.state() == State::Closed || self.closed {
            return;
        }
        while self.written < self.spec.send && !self.blocked && self.next_write <= now {
            let len = self.spec.write.0.min(self.spec.send - self.written);
            let pattern = Payload::from(Pattern { key: self.key, offset: self.written, len });
            let data = if self.spec.bytes { pattern.to_bytes().into() } else { pattern };
            let taken = connection.write(data);
            self.written += taken;
            self.blocked = taken < len;
            self.next_write = now + self.spec.write.1;
        }
        if self.written == self.spec.send && self.connected {
            let at = match self.spec.close {
                Close::AtOnce => Some(now),
                Close::AfterPeer => self.peer_finished.then_some(now),
                Close::Later(pause) => Some(*self.close_at.get_or_insert(now + pause)),
            };
            if at.is_some_and(|at| at <= now) {
                self.closed = true;
                connection.close();
            }
        }
    }

    /// The next segment, checked; `peer_edge` is the right edge that the peer offered, `peer_shift`
    /// the window scale.
    pub fn transmit(
        &mut self,
        now: Instant,
        peer_edge: Option<Seq>,
        peer_shift: Option<u8>,
    ) -> Result<Option<Transmit>, String> {
        let local = self.spec.clock.local(now);
        let Some(connection) = &mut self.connection else { return Ok(None) };
        let Some(transmit) = connection.poll_transmit(local) else { return Ok(None) };
        if connection.path_state(transmit.path) == Some(PathState::Removed) {
            return Err(format!("sent on {:?}, which was removed: {transmit:?}", transmit.path));
        }
        self.check_window(&transmit, peer_edge)?;
        self.check_offer(&transmit.segment, peer_shift)?;
        Ok(Some(transmit))
    }

    /// In flight ≤ window + one segment wherever new data leaves, and nothing beyond the peer's edge.
    fn check_window(&mut self, transmit: &Transmit, peer_edge: Option<Seq>) -> Result<(), String> {
        let segment = &transmit.segment;
        let len = segment.seq_len();
        if len == 0 || segment.header.flags.intersects(TcpFlags::SYN | TcpFlags::RST) {
            return Ok(());
        }
        let end = segment.header.seq.plus(len);
        if self.sent_to.is_some_and(|sent| !sent.before(end)) {
            return Ok(()); // sent before
        }
        self.sent_to = Some(end);
        let Some(connection) = &self.connection else { return Ok(()) };
        let stats = connection.path_stats(transmit.path);
        if stats.in_flight > stats.cwnd + u64::from(len) {
            let (path, seq) = (transmit.path, segment.header.seq);
            return Err(format!("{seq:?} on {path:?}: {} in flight, window {}", stats.in_flight, stats.cwnd));
        }
        let data_end = segment.header.seq.plus(segment.payload.len() as u32);
        match peer_edge.filter(|_| connection.state() != State::SynSent) {
            Some(edge) if edge.before(data_end) => {
                Err(format!("sent up to {data_end:?}, the peer's edge is {edge:?}"))
            }
            _ => Ok(()),
        }
    }

    /// The acknowledgment and the edge of what it offers never go back, but for what the scale of the
    /// window cannot express (RFC 7323 §2.4).
    fn check_offer(&mut self, segment: &Segment, peer_shift: Option<u8>) -> Result<(), String> {
        let header = &segment.header;
        let syn = header.flags.contains(TcpFlags::SYN);
        if syn {
            self.shift = header.options.window_scale;
        }
        if !header.flags.contains(TcpFlags::ACK) || header.flags.contains(TcpFlags::RST) {
            return Ok(());
        }
        // a SYN that is sent again acknowledges no early data
        if self.last_ack.is_some_and(|last| !syn && header.ack.before(last)) {
            return Err(format!("acknowledged {:?} after {:?}", header.ack, self.last_ack));
        }
        self.last_ack = self.last_ack.filter(|_| syn).or(Some(header.ack));
        let scale = self.shift.filter(|_| !syn && peer_shift.is_some());
        let edge = header.ack.plus(u32::from(header.window) << scale.unwrap_or(0));
        let Some(before) = self.edge else {
            self.edge = Some(edge);
            return Ok(());
        };
        // a SYN that is sent again cannot tell of more than 65,535 bytes
        if !syn && !self.was_short && before.distance(edge) >= 1 << scale.unwrap_or(0) {
            return Err(format!("took back its window: {before:?} to {edge:?}"));
        }
        self.edge = Some(if before.before(edge) { edge } else { before });
        Ok(())
    }

    pub fn handle(&mut self, now: Instant, path: PathId, segment: Segment) {
        let local = self.spec.clock.local(now);
        if let Some(connection) = &mut self.connection {
            connection.handle(local, path, segment);
        }
    }
}
