//! The kernel's own counters of a namespace, as nstat shows them.

use std::collections::BTreeMap;
use std::fs;

use polypath_testbed::netns::Netns;

/// Counters that no correct peer on a correct network raises: bad segments, bad checksums,
/// acknowledgments of data never sent, SACK blocks that make no sense or were taken back,
/// timestamps from the past, segments outside the window that had to be challenged.
const COMPLAINTS: [&str; 14] = [
    "Tcp.InErrs",
    "Tcp.InCsumErrors",
    "Ip.InHdrErrors",
    "Ip.InDiscards",
    "TcpExt.TCPSACKReneging",
    "TcpExt.TCPSACKDiscard",
    "TcpExt.PAWSEstab",
    "TcpExt.PAWSActive",
    "TcpExt.TCPChallengeACK",
    "TcpExt.TCPSYNChallenge",
    "TcpExt.TCPAbortFailed",
    "TcpExt.TCPAbortOnTimeout",
    "TcpExt.TCPZeroWindowDrop",
    "TcpExt.TCPWqueueTooBig",
];

/// All counters of IP and TCP in one namespace, as `Tcp.InErrs`.
pub struct Counters(BTreeMap<String, i64>);

impl Counters {
    /// Reads them.
    pub fn of(ns: &Netns) -> Self {
        let read = |file| fs::read_to_string(format!("/proc/thread-self/net/{file}")).unwrap();
        let text = ns.run(|| read("snmp") + &read("netstat")).unwrap();
        let lines: Vec<_> = text.lines().collect();
        // Two lines for each protocol: names and values.
        let pairs = lines.chunks_exact(2).flat_map(|two| {
            let (protocol, names) = two[0].split_once(": ").unwrap();
            let values = two[1].split(' ').skip(1).map(|v| v.parse().unwrap());
            names.split(' ').map(move |name| format!("{protocol}.{name}")).zip(values)
        });
        Self(pairs.collect())
    }

    /// One counter.
    pub fn get(&self, name: &str) -> i64 {
        *self.0.get(name).unwrap_or_else(|| panic!("the kernel has no counter {name}"))
    }

    /// The complaints above what is `allowed` of them, which is nothing where they are not named.
    pub fn complaints(&self, allowed: impl Fn(&str) -> i64) -> Vec<(&'static str, i64)> {
        let all = COMPLAINTS.iter().map(|&name| (name, self.get(name)));
        all.filter(|&(name, count)| count > allowed(name)).collect()
    }
}
