//! A TCP connection and a call inside a flow of packets, in virtual time.

mod bed;

use bed::{Bed, Carried, link};
use polypath_wire::Duration;

const MS: fn(u64) -> Duration = Duration::from_millis;

/// What a TCP CUBIC connection and a call beside it get from 15 to 30 s over links of these rates (Mbit/s) and delays (ms).
fn carried(links: [(u64, u64); 2]) -> Carried {
    let mut bed = Bed::new(&links.map(|(mbps, delay)| link(mbps, delay)));
    bed.measure(MS(15_000));
    bed.measure(MS(15_000))
}

/// Headers leave 0.92. Before, the second link of the latter two was not used at all: 0.65 and 0.83.
#[test]
fn a_tcp_connection_gets_the_sum_of_the_links() {
    let cases = [([(8, 60), (4, 60)], 0.88), ([(100, 10), (40, 40)], 0.88), ([(100, 10), (10, 100)], 0.84)];
    for (links, least) in cases {
        let share = carried(links).share;
        assert!(share > least, "{links:?}: {share}");
    }
}

#[test]
fn a_call_beside_it_loses_nothing_and_waits_for_the_first_link_only() {
    let Carried { call, lost, .. } = carried([(100, 10), (40, 40)]);
    let [median, most] = [call.len() / 2, call.len() * 99 / 100].map(|at| call[at]);
    assert!(median < MS(30) && most < MS(41) && lost == 0, "{median:?}, {most:?}, {lost} lost");
}

/// Before, the call stayed on the first link, 310 ms, if the rate of that was known; else it left, and was not back after 15 s.
#[test]
fn a_call_leaves_a_link_while_others_fill_its_queue() {
    for rate_is_known in [false, true] {
        let mut bed = Bed::calling(&[(20, 10), (20, 25)].map(|(mbps, delay)| link(mbps, delay)));
        if rate_is_known {
            bed.send_much();
        }
        for (wait, least, most) in [(0, 10, 11), (300, 25, 26), (0, 10, 11)] {
            bed.others_queue(MS(wait));
            bed.measure(MS(5_000));
            let Carried { call, lost, .. } = bed.measure(MS(10_000));
            let median = call[call.len() / 2];
            assert!(
                median > MS(least) && median < MS(most) && lost == 0,
                "{wait} ms: {median:?}, {lost} lost"
            );
        }
    }
}
