//! mHIP in the small: what must not differ from one TCP, and reordering between paths.

use polypath_transport::KnowledgeConfig;
use polypath_transport::TimeoutTakes;
use polypath_transport::cc::NewRenoConfig;
use polypath_transport::facts::PathState;
use polypath_transport::{CcConfig, ConnectionConfig, LossConfig};
use polypath_wire::{Duration, PathId};

use crate::common::{Bed, CLIENT, Edit, Pair, SERVER, at, ms, prompt};

fn newreno(cc: CcConfig) -> ConnectionConfig {
    let loss = LossConfig::Dupack(Default::default());
    ConnectionConfig { sack: false, loss, cc, ..prompt() }
}

/// Everything the client sent in a transfer of 600 segments of which several are lost in different ways.
fn trace(cc: CcConfig) -> Vec<(u64, u16, u64)> {
    let mut pair = Pair::open(newreno(cc), &[40]);
    let (mut count, mut tail) = (0, 0);
    pair.script(move |f| {
        if !f.is_data_of(CLIENT) {
            return Edit::Pass;
        }
        count += 1;
        match count {
            50 | 51 | 200 | 310 => Edit::Lose,
            400..=470 => {
                tail += 1;
                if tail % 2 == 0 { Edit::Lose } else { Edit::Pass }
            }
            100 => Edit::Delay(ms(30)),
            _ => Edit::Pass,
        }
    });
    pair.write(CLIENT, 600_000);
    pair.run_until_received(SERVER, 600_000);
    pair.data(CLIENT)
}

/// Polishchuk and Gurtov, §IV.B: "the resulting multipath bundle behaves as a single TCP if all are sent to the same
/// path".
#[test]
fn two_level_on_one_path_is_newreno_packet_for_packet() {
    let config = NewRenoConfig { initial_window: 2, ..Default::default() };
    let (two_level, newreno) = (trace(CcConfig::MhipTwoLevel(config)), trace(CcConfig::Newreno(config)));
    assert!(newreno.len() > 630, "losses were repaired: {}", newreno.len());
    assert_eq!(two_level, newreno);
}

#[test]
fn simple_on_one_path_is_newreno_too() {
    let cc = CcConfig::MhipSimple(polypath_transport::cc::MhipSimpleConfig::default());
    assert_eq!(trace(cc), trace(CcConfig::Newreno(NewRenoConfig::default())));
}

/// A packet that is 20 ms late costs a window without ADDR, and nothing with it.
#[test]
fn addr_takes_back_the_answer_to_reordering() {
    let dupack = LossConfig::Dupack(Default::default());
    let addr =
        |ms| LossConfig::Addr { allowance: Duration::from_millis(ms), inner: Box::new(dupack.clone()) };
    let run = |loss: LossConfig| {
        let config = ConnectionConfig { sack: false, loss, ..prompt() };
        let mut pair = Pair::open(config, &[50]);
        let mut count = 0;
        pair.script(move |f| {
            count += u32::from(f.is_data_of(CLIENT));
            if f.is_data_of(CLIENT) && count == 40 { Edit::Delay(ms(20)) } else { Edit::Pass }
        });
        pair.write(CLIENT, 100_000);
        pair.run_until_received(SERVER, 100_000);
        pair.run_for(ms(300));
        (pair.end(CLIENT).stats().fast_recoveries, pair.end(CLIENT).stats().undone)
    };
    assert_eq!(run(dupack.clone()), (1, 0));
    assert_eq!(run(addr(60)), (1, 1));
    assert_eq!(run(addr(5)), (1, 0), "5 ms are too short for it");
}

/// Polishchuk and Gurtov, §III.B.4: a path whose marked packet is late is closed; probes find out when it is free.
#[test]
fn a_late_path_is_closed_and_a_heartbeat_reopens_it() {
    let knowledge =
        KnowledgeConfig { heartbeat: ms(100), close_late: Some(ms(50)), ..KnowledgeConfig::default() };
    let config = ConnectionConfig { knowledge, receive_buffer: 20_000, ..prompt() };
    let mut pair = Pair::open(config, &[20, 20]);
    let slow =
        |f: &crate::common::Flying| f.path == PathId(1) && (2000..3000).contains(&(f.sent.0 / 1_000_000));
    pair.script(move |f| if slow(f) { Edit::Delay(ms(80)) } else { Edit::Pass });
    pair.write(CLIENT, 1 << 40);
    let state = |p: &mut Pair| p.end(CLIENT).path_state(PathId(1));
    pair.run_until(at(1900));
    assert_eq!(state(&mut pair), Some(PathState::Active));
    pair.run_until(at(2900));
    assert_eq!(state(&mut pair), Some(PathState::Congested));
    let on_slow = pair.times(CLIENT, |f| f.path == PathId(1) && f.len() > 0);
    assert!(on_slow.iter().all(|t| *t < 2300), "its packets go elsewhere: {:?}", on_slow.last());
    pair.run_until(at(3500));
    assert_eq!(state(&mut pair), Some(PathState::Active));
}

/// A transfer of which path 1 loses everything for 2 s.
fn over_a_path_that_loses(config: ConnectionConfig) -> Pair {
    let config = ConnectionConfig {
        initial_rto: ms(300),
        ..ConnectionConfig { cc: CcConfig::MhipTwoLevel(NewRenoConfig::default()), ..config }
    };
    let mut pair = Pair::open(config, &[40, 50]);
    pair.script(move |f| match f.is_data_of(CLIENT) && f.path == PathId(1) && f.sent < at(3000) {
        true => Edit::Lose,
        false => Edit::Pass,
    });
    pair.write(CLIENT, 40_000);
    pair.run_until(at(1500));
    pair
}

/// Nothing on path 0 is acknowledged while something of path 1 is missing, so both timers expire, unless one takes all for
/// lost.
#[test]
fn a_timeout_takes_its_path_or_the_connection_or_one_segment_and_all_arrives() {
    let run = |timeout_takes| {
        let config = newreno(CcConfig::Newreno(NewRenoConfig::default()));
        let mut pair = over_a_path_that_loses(ConnectionConfig { timeout_takes, ..config });
        let timeouts = pair.end(CLIENT).stats().timeouts;
        pair.run_until_received(SERVER, 40_000);
        timeouts
    };
    assert_eq!(run(TimeoutTakes::Path), 2);
    assert_eq!(run(TimeoutTakes::Connection), 1);
    assert_eq!(run(TimeoutTakes::Segment), 2);
    run(TimeoutTakes::Head);
}

#[test]
fn what_a_timer_gave_up_goes_by_another_path_at_once_if_so_configured() {
    let first_by_path_0 = |repair_elsewhere| {
        let config = newreno(CcConfig::Newreno(NewRenoConfig::default()));
        let timeout_takes = TimeoutTakes::Head;
        let mut pair = over_a_path_that_loses(ConnectionConfig { timeout_takes, repair_elsewhere, ..config });
        pair.run_until_received(SERVER, 40_000);
        pair.data(CLIENT).iter().any(|(sent, path, offset)| *sent < 1500 && *path == 0 && *offset == 0)
    };
    assert!(first_by_path_0(true) && !first_by_path_0(false));
}
