//! What one connection finds of the paths' bottlenecks the others of its association know.

use polypath_endpoint::*;
use polypath_transport::{CcConfig, ConnectionConfig};
use polypath_wire::{Duration, PathId};

use crate::bed::*;

const PATHS: [PathId; 2] = [PathId(0), PathId(1)];

fn open(bed: &mut Bed) -> ConnectionHandle {
    let config = ConnectionConfig { cc: CcConfig::Polypath(Default::default()), ..Default::default() };
    let (now, peer) = (bed.now, bed.hit(SERVER));
    let handle = bed.endpoints[CLIENT].connect_peer(now, config, peer, PORT).unwrap();
    bed.run(Duration::from_millis(200));
    handle
}

fn share(bed: &Bed, handle: ConnectionHandle) -> Option<bool> {
    let pairs = bed.endpoints[CLIENT].connection(handle).unwrap().path_pairs();
    pairs.iter().find(|(pair, _)| *pair == PATHS).map(|(_, share)| *share)
}

#[test]
fn connections_of_one_association_share_what_one_of_them_finds() {
    let mut bed = Bed::established();
    let [idle, finder] = [open(&mut bed), open(&mut bed)];
    assert_eq!(
        [idle, finder].map(|handle| share(&bed, handle)),
        [None; 2],
        "two links, and nothing measured"
    );

    let now = bed.now;
    let connection = bed.endpoints[CLIENT].connection_mut(finder).unwrap();
    PATHS.iter().for_each(|path| connection.path_bottleneck(now, *path, 7)); // as if it had measured it
    bed.run(Duration::from_secs(15));
    assert_eq!(share(&bed, idle), Some(true), "the next heartbeat tells");
    let later = open(&mut bed);
    assert_eq!(share(&bed, later), Some(true));
    let bottleneck = |path| bed.endpoints[CLIENT].connection(later).unwrap().path_stats(path).bottleneck;
    assert_eq!(PATHS.map(bottleneck), [Some(PATHS[0]); 2]);
}
