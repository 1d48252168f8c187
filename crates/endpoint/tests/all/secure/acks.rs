//! What ESP's sequence numbers tell of acknowledgments.

use polypath_endpoint::ListenConfig;
use polypath_transport::{AckConfig, ConnectionConfig};
use polypath_wire::Duration;

use super::bed::*;

/// How many of ten losses on `link` were not acknowledged there when the next packet came, while data flows on two links.
fn acknowledged_late(link: usize) -> usize {
    let mut bed = Bed::established();
    let connection = ConnectionConfig { acks: AckConfig::thinned(), ..ConnectionConfig::default() };
    bed.endpoints[SERVER].unlisten(PORT);
    bed.endpoints[SERVER].listen(PORT, ListenConfig { connection, ..ListenConfig::default() }).unwrap();
    bed.send(64 << 20);
    bed.run(Duration::from_millis(1500));
    let late = |_: &usize| {
        bed.run(Duration::from_millis(200));
        bed.loss = Some(Loss::Due(link));
        let end = bed.now + Duration::from_millis(150);
        bed.run_until_done(end, |bed| matches!(bed.loss, Some(Loss::Shown(at)) if bed.now >= at));
        let Some(Loss::Shown(shown)) = bed.loss else { panic!("nothing was lost") };
        let local = bed.links[link].ends[SERVER];
        !bed.sent.iter().any(|(at, l, _)| (*at, l.local) == (shown, local))
    };
    (0..10).filter(late).count()
}

/// Packets of a path are numbered: what is missing there is no matter of order between paths.
#[test]
fn a_loss_on_one_of_two_paths_is_acknowledged_with_the_next_packet() {
    assert_eq!([0, 1].map(acknowledged_late), [0, 0]);
}
