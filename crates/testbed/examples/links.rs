//! Emulated links between two network namespaces that `ip netns add` made, for any program on either
//! side. Reads a JSON array of links, then prints their counters as a line of JSON at every interval until
//! its standard input ends, which removes the links. As root:
//!
//! ```text
//! links --hosts a b --config '[{"addresses": ["10.0.0.1", "10.0.0.2"], "hops": [{"rate": 8000000}, {}]}]'
//! ```

use std::io::Read;
use std::net::IpAddr;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use clap::Parser;
use polypath_hop::HopConfig;
use polypath_node::Clock;
use polypath_testbed::emulated_link::EmulatedLink;
use polypath_testbed::netns::Netns;
use polypath_testbed::tun_end;
use polypath_wire::Seed;
use serde::Deserialize;
use serde_json::json;

#[derive(Parser)]
struct Args {
    /// The two namespaces.
    #[arg(long, num_args = 2)]
    hosts: Vec<String>,
    /// The links, JSON: link `i` is the device `path<i>` on both sides.
    #[arg(long, value_parser = links)]
    config: Links,
    /// Time between two lines, ms.
    #[arg(long, default_value_t = 100)]
    interval: u64,
    /// Seed of losses and of other chance.
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(Clone, Deserialize)]
struct Links(Vec<LinkConfig>);

/// One link.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkConfig {
    /// Its ends' addresses, one network of 24 bits (64 for IPv6).
    addresses: [IpAddr; 2],
    /// From the first host to the second, and back.
    hops: [HopConfig; 2],
}

fn links(text: &str) -> Result<Links, serde_json::Error> {
    serde_json::from_str(text)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args = Args::parse();
    let hosts = [Netns::open(&args.hosts[0])?, Netns::open(&args.hosts[1])?];
    let clock = Clock::start();
    let start = |(i, config): (usize, LinkConfig)| {
        let (name, [there, back]) = (format!("path{i}"), config.addresses);
        let ends = [tun_end(&hosts[0], &name, there, 1500)?, tun_end(&hosts[1], &name, back, 1500)?];
        let seed = Seed(args.seed).child(&name);
        Ok(EmulatedLink::start(&name, ends, config.hops, seed, clock)?)
    };
    let links = args.config.0.into_iter().enumerate().map(start);
    let links = links.collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;

    let (ended, end) = channel();
    std::thread::spawn(move || {
        let read = std::io::stdin().read_to_end(&mut Vec::new());
        ended.send(read)
    });
    loop {
        let stats: Vec<_> = links.iter().map(EmulatedLink::stats).collect();
        println!("{}", json!({ "at": clock.now().0 as f64 / 1e9, "links": stats }));
        match end.recv_timeout(Duration::from_millis(args.interval)) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return Ok(()),
        }
    }
}
