//! Options that no honest peer sends.

use super::*;

#[test]
fn option_soup() {
    attack(2, |_, _, mut s| {
        s.header.options = TcpOptions {
            mss: Some(0),
            window_scale: Some(255),
            sack_permitted: true,
            multi_route: Some(MultiRoute { route: 255, reply: Some(254) }),
            unknown: Some([30, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 77, 2].into()),
            ..s.header.options
        };
        s
    });
}

#[test]
fn a_syn_with_absurd_options() {
    for (mss, shift) in [(0, 255), (1, 0), (u16::MAX, 14)] {
        let (client, server) = (Ports { local: 1, remote: 2 }, Ports { local: 2, remote: 1 });
        let paths = [PathConfig::default()];
        let mut real = Connection::connect(Instant::ZERO, config(), client, Seq(1), &paths);
        let mut syn = real.poll_transmit(Instant::ZERO).unwrap();
        syn.segment.header.options.mss = Some(mss);
        syn.segment.header.options.window_scale = Some(shift);
        let mut end =
            Connection::accept(Instant::ZERO, config(), server, Seq(2), &paths, syn.path, &syn.segment);
        end.write(Pattern { key: 1, offset: 0, len: LEN }.into());
        let mut ack = end.poll_transmit(Instant::ZERO).unwrap().segment;
        std::mem::swap(&mut ack.header.seq, &mut ack.header.ack);
        ack.header.ack = ack.header.ack.plus(1);
        ack.header.flags = TcpFlags::ACK;
        end.handle(Instant(1), PathId::FIRST, ack);
        assert_eq!(end.state(), State::Established);
        let sent = end.poll_transmit(Instant(1)).unwrap().segment;
        assert!((32..=1460).contains(&sent.payload.len()), "{}", sent.payload.len());
    }
}
