//! Backups as the system lists them.
//!
//! The test makes its own network namespace; without root it is skipped, and says so.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;

use polypath_node::Choice;
use polypath_testbed::netns::Netns;

use crate::common::{ready, sh};

#[test]
fn every_address_of_a_backup_counts_as_one() {
    if !ready(&["ip"]) {
        return;
    }
    let ns = Netns::create("backups").unwrap();
    let wwan = "ip link add wwan0 type veth peer name far; ip link set far up; ip link set wwan0 up";
    sh(&ns, &format!("{wwan}; ip addr add 10.0.0.1/24 dev wwan0; ip addr add 10.0.0.2/24 dev wwan0"));
    let backup = Choice::new(Vec::new(), vec!["wwan0".to_owned()], BTreeMap::new());
    let found = ns.run(|| backup.backups()).unwrap().unwrap();
    assert_eq!(found, [[10, 0, 0, 1], [10, 0, 0, 2]].map(std::net::IpAddr::from));
}
