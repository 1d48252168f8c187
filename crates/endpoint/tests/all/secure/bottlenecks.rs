//! What one connection finds of the paths' bottlenecks the others of its association know.

use polypath_endpoint::*;
use polypath_transport::{CcConfig, ConnectionConfig, Pattern};
use polypath_wire::{Duration, PathId};

use super::bed::*;

const PATHS: [PathId; 2] = [PathId(0), PathId(1)];

fn open(bed: &mut Bed) -> ConnectionHandle {
    let config = ConnectionConfig { cc: CcConfig::Polypath(Default::default()), ..Default::default() };
    let (now, peer) = (bed.now, bed.hit(SERVER));
    let handle = bed.endpoints[CLIENT].connect_peer(now, config, peer, PORT).unwrap();
    bed.run(Duration::from_millis(200));
    handle
}

/// The bottlenecks of both paths, as a connection holds them now.
fn bottlenecks(bed: &Bed, handle: ConnectionHandle) -> [Option<PathId>; 2] {
    let connection = bed.endpoints[CLIENT].connection(handle).unwrap();
    PATHS.map(|path| connection.path_stats(path).bottleneck)
}

/// Whether they share one, where the connection has measured it.
fn measured(bed: &Bed, handle: ConnectionHandle) -> Option<bool> {
    let pairs = bed.endpoints[CLIENT].connection(handle).unwrap().path_pairs();
    pairs.iter().find(|(pair, ..)| *pair == PATHS).map(|(_, share, _)| *share)
}

#[test]
fn connections_of_one_association_share_what_one_of_them_finds() {
    let (separate, shared) = (PATHS.map(Some), [Some(PATHS[0]); 2]);
    let mut bed = Bed::established();
    (bed.joined, bed.keeps) = (true, false);
    let [idle, finder] = [open(&mut bed), open(&mut bed)];
    for handle in [idle, finder] {
        assert_eq!((bottlenecks(&bed, handle), measured(&bed, handle)), (separate, None), "nothing measured");
    }

    let connection = bed.endpoints[CLIENT].connection_mut(finder).unwrap();
    connection.write(Pattern { key: KEY, offset: 0, len: 1 << 30 }.into());
    let most = bed.now + Duration::from_secs(60);
    bed.run_until_done(most, |bed| measured(bed, finder) == Some(true));
    assert_eq!((bottlenecks(&bed, finder), measured(&bed, finder)), (shared, Some(true)));
    bed.run(Duration::from_secs(15));
    assert_eq!(bottlenecks(&bed, idle), shared, "the next heartbeat tells");
    let later = open(&mut bed);
    assert_eq!(bottlenecks(&bed, later), shared);
    for handle in [idle, later] {
        assert_eq!(measured(&bed, handle), None, "what it was told it does not tell others as its own");
    }

    bed.endpoints[CLIENT].connection_mut(finder).unwrap().abort(bed.now);
    bed.run(Duration::from_secs(601));
    let much_later = open(&mut bed);
    assert_eq!(bottlenecks(&bed, much_later), separate, "nobody has measured it for ten minutes");
}
