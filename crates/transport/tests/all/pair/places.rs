//! A path in the place that another had.

use polypath_transport::cc::{CcConfig, Controller, Env};
use polypath_transport::facts::{AckSample, Episode, LossCause, LossEvent, PathView};
use polypath_wire::PathId;

use crate::common::{at, every, ms};

/// What `config` says of the `next` path and of the others, after path 0 had data and losses, went and was followed by it. Late news
/// of path 0 are told.
fn follows(config: &CcConfig, next: PathId) -> Vec<String> {
    let (gone, stays) = (PathId(0), PathId(1));
    let mut cc = config.build(&Env::default());
    let views = |paths: [PathId; 2]| paths.map(|id| PathView::new(id, 1000));
    let acked = |rtt| AckSample {
        newly_acked: 2000,
        newly_acked_segments: 2,
        prior_in_flight: 10_000,
        rtt: Some(ms(rtt)),
        srtt: Some(ms(rtt)),
        min_rtt: Some(ms(20)),
        window_limited: true,
        ..AckSample::default()
    };
    let lost = |n| LossEvent {
        cause: LossCause::LaterDelivered,
        episode: Episode(n),
        bytes: 1000,
        flight_size: 10_000,
        oldest_sent: at(0),
    };
    [gone, stays].iter().for_each(|path| cc.on_path_added(at(0), *path, 1000));
    for n in 0..20 {
        [gone, stays]
            .iter()
            .for_each(|path| cc.on_ack(at(20 + n), *path, &acked(20 + n), &views([gone, stays])));
    }
    cc.on_loss(at(50), gone, &lost(1), &views([gone, stays]));
    cc.on_path_removed(at(60), gone);
    cc.on_path_added(at(60), next, 1200);
    let mut said = Vec::new();
    let mut ask = |cc: &dyn Controller| {
        let of = |path| (cc.window(path), cc.pace(path), cc.snapshot(path));
        said.push(format!("{:?}", [gone, stays, next].map(of)));
    };
    ask(&*cc);
    cc.on_mss(gone, 900);
    cc.on_ack(at(70), gone, &acked(40), &views([stays, next]));
    cc.on_loss(at(70), gone, &lost(2), &views([stays, next]));
    ask(&*cc);
    cc.on_ack(at(80), next, &acked(20), &views([stays, next]));
    cc.on_loss(at(90), next, &lost(3), &views([stays, next]));
    ask(&*cc);
    said
}

#[test]
fn a_path_in_a_used_place_inherits_nothing() {
    let (used, new) = (PathId(PathId::PLACES as u16), PathId(2));
    for config in every::<CcConfig>() {
        assert_eq!(follows(&config, used), follows(&config, new), "{config:?}");
    }
}
