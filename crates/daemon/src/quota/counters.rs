//! What interfaces have carried, as the kernel counts it.

use std::fs;
use std::io;

use super::ledger::Bytes;

/// Counters of the interfaces in the network namespace of the calling thread (proc_pid_net(5)).
const FILE: &str = "/proc/thread-self/net/dev";
/// Where the bytes are behind an interface's name: received and sent.
const COLUMNS: [usize; 2] = [0, 8];

/// Bytes received and sent over each interface since it is there, whoever sent them.
pub(super) fn counters() -> Result<Bytes, String> {
    let text = fs::read_to_string(FILE).map_err(|error: io::Error| format!("{FILE}: {error}"))?;
    let all: Bytes = text.lines().filter_map(counter).collect();
    match all.is_empty() {
        true => Err(format!("{FILE} has no counters")),
        false => Ok(all),
    }
}

/// Of a line; none of a heading.
fn counter(line: &str) -> Option<(String, u64)> {
    let (name, counts) = line.rsplit_once(':')?;
    let counts: Vec<u64> = counts.split_whitespace().filter_map(|count| count.parse().ok()).collect();
    let [received, sent] = COLUMNS.map(|column| counts.get(column).copied());
    Some((name.trim().to_owned(), received?.saturating_add(sent?)))
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn the_counter_of_an_interface_grows_by_what_it_carries() {
        let before = counters().unwrap()["lo"];
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.send_to(&[0; 1000], socket.local_addr().unwrap()).unwrap();
        let after = counters().unwrap()["lo"];
        assert!(after >= before + 2000, "{before} and {after}: sent and received");
    }

    #[test]
    fn a_line_has_both_directions_and_headings_have_none() {
        let line = "  eth0.7: 8 1 0 0 0 0 0 0 9 1 0 0 0 0 0 0";
        assert_eq!(counter(line), Some(("eth0.7".to_owned(), 17)));
        for other in ["Inter-|   Receive     |  Transmit", " face |bytes packets errs", "eth0: 1 2 3", ""] {
            assert_eq!(counter(other), None, "{other}");
        }
    }
}
