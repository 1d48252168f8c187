//! A server that leaves all its addresses at once: its clients know no other one.

use polypath_endpoint::{Endpoint, Locators, PathReport};
use polypath_hip::State;
use polypath_wire::Duration;

use super::bed::{Bed, CLIENT, SERVER, quick, today, v4};
use super::{LEN, finish};

/// How long a client may be without its server: some round trips.
const SOON: Duration = Duration::from_millis(300);

/// Its addresses on `links` go, and others come there.
fn depart(bed: &mut Bed, links: &[usize], last: u8) {
    links.iter().for_each(|link| bed.local(SERVER, *link, false));
    for &link in links {
        bed.links[link].ends[SERVER] = ([10, 0, link as u8, last], 10_500).into();
        bed.local(SERVER, link, true);
    }
}

fn paths(endpoint: &Endpoint) -> Vec<Locators> {
    let of = |p: PathReport| p.up.then_some(p.locators);
    endpoint.secure_paths().filter_map(of).collect()
}

/// Whether each link has a path between its present ends, and there is no other one.
fn leads(bed: &Bed, side: usize, links: &[usize]) -> bool {
    let at = |link: &usize| {
        let ends = bed.links[*link].ends;
        Locators { local: ends[side], remote: ends[1 - side] }
    };
    let now = paths(&bed.endpoints[side]);
    now.len() == links.len() && links.iter().all(|link| now.contains(&at(link)))
}

#[test]
fn its_clients_find_it_at_the_new_ones_and_connections_go_on() {
    for (config, links) in [(quick as fn() -> _, &[0][..]), (quick, &[0, 1]), (today, &[0]), (today, &[0, 1])]
    {
        let mut bed = Bed::new([config(), config()], [v4, v4]);
        for link in (0..2).filter(|link| !links.contains(link)) {
            (0..2).for_each(|side| bed.local(side, link, false));
        }
        bed.associate_at(links);
        bed.run(Duration::from_secs(1));
        bed.send(LEN);
        for last in [100, 101, 102] {
            bed.run(Duration::from_millis(300));
            depart(&mut bed, links, last);
            bed.run(SOON);
            for side in [CLIENT, SERVER] {
                assert!(leads(&bed, side, links), "{links:?} {last}: {:?}", paths(&bed.endpoints[side]));
            }
        }
        finish(&mut bed, 60);
        assert_eq!(bed.endpoints[CLIENT].association(bed.hit(SERVER)), Some(State::Established));
    }
}

/// As a host with several addresses or a DHCP client may do it.
#[test]
fn one_that_takes_its_time_is_found_again_too() {
    for away in [3, 30] {
        let mut bed = Bed::established();
        (0..2).for_each(|link| bed.local(SERVER, link, false));
        bed.run(Duration::from_secs(away));
        depart(&mut bed, &[0, 1], 100);
        bed.run(Duration::from_secs(2));
        for side in [CLIENT, SERVER] {
            assert!(leads(&bed, side, &[0, 1]), "{away}: {:?}", paths(&bed.endpoints[side]));
        }
    }
}
