//! How long pacing holds a path back.

use std::sync::Arc;

use polypath_transport::cc::{
    CcConfig, Controller, ControllerMaker, CubicConfig, NewRenoConfig, SlowStart, Snapshot,
};
use polypath_transport::facts::{AckSample, LossEvent, Pace, PathView};
use polypath_transport::{ConnectionConfig, External, PathConfig, State};
use polypath_wire::{Duration, Instant, PathId, Rate};

use crate::common::{Bed, CLIENT, Edit, Pair, SERVER, at, prompt};

/// The answers to SYNs are lost for 20 s. The one that arrives is to the first SYN, so that is how long a round trip seems to take.
#[test]
fn what_follows_lost_answers_is_not_spread_over_the_time_they_took() {
    let (initial_ssthresh, slow_start) = (Some(10), SlowStart::Paced);
    let newreno = NewRenoConfig { initial_ssthresh, slow_start, ..NewRenoConfig::default() };
    let cubic = CubicConfig { initial_ssthresh, slow_start, ..CubicConfig::default() };
    for cc in [CcConfig::Newreno(newreno), CcConfig::Cubic(cubic)] {
        let config = ConnectionConfig { cc, max_rto: Duration::from_secs(4), ..prompt() };
        let mut pair = Pair::connecting(config.clone(), config, &[10]);
        pair.script(|f| if f.from == SERVER && f.sent < at(20_000) { Edit::Lose } else { Edit::Pass });
        pair.write(CLIENT, 300_000);
        pair.run_while(|p| p.states()[CLIENT] != State::Established);
        let since = pair.now;
        assert!(pair.end(CLIENT).path_stats(PathId(0)).srtt > Some(Duration::from_secs(20)));
        pair.run_until_received(SERVER, 300_000);
        assert!(pair.now.since(since) < Duration::from_secs(1), "{:?}", pair.now.since(since));
    }
}

/// A window of ten segments, and a rate at which one takes 1000 s.
#[derive(Debug)]
struct Crawling;

impl Controller for Crawling {
    fn on_path_added(&mut self, _: Instant, _: PathId, _: u32) {}
    fn on_mss(&mut self, _: PathId, _: u32) {}
    fn limit_window(&mut self, _: PathId, _: u64) {}
    fn on_ack(&mut self, _: Instant, _: PathId, _: &AckSample, _: &[PathView]) {}
    fn on_loss(&mut self, _: Instant, _: PathId, _: &LossEvent, _: &[PathView]) {}
    fn window(&self, _: PathId) -> u64 {
        10_000
    }
    fn pace(&self, _: PathId) -> Option<Pace> {
        let (credit, together) = (Duration::ZERO, 0);
        Some(Pace { rate: Rate(8), quantum: 1000, credit, together, spreads_window: false })
    }
    fn snapshot(&self, _: PathId) -> Snapshot {
        Snapshot::default()
    }
}

#[test]
fn pacing_holds_a_path_for_a_second_at_most() {
    let maker: Arc<ControllerMaker> = Arc::new(|_| Box::new(Crawling));
    let external = External { name: "crawling".into(), version: String::new(), maker: Some(maker) };
    let mut pair = Pair::open(ConnectionConfig { cc: CcConfig::External(external), ..prompt() }, &[10]);
    pair.write(CLIENT, 10_000);
    pair.run_until_received(SERVER, 10_000);
    let took = pair.now.since(at(0));
    assert!(took > Duration::from_secs(4) && took < Duration::from_secs(12), "{took:?}");
}

/// The first path sends ten segments at once. Two more paths over one link send ten together, and over two links ten each.
#[test]
fn paths_over_one_link_share_their_first_flight() {
    for (links, least, most) in [([7, 7], 18, 20), ([7, 8], 27, 30)] {
        let config = ConnectionConfig { cc: CcConfig::usual().of_today(), ..prompt() };
        let mut pair = Pair::open(config, &[10]);
        for link in links {
            let link = Some(link);
            pair.add_path_with(10, PathConfig { link, mss: 1000, ..PathConfig::default() });
        }
        pair.write(CLIENT, 1_000_000);
        pair.run_until(at(1015));
        let sent = pair.times(CLIENT, |f| f.is_data_of(CLIENT)).len();
        assert!((least..=most).contains(&sent), "{links:?}: {sent}");
    }
}
