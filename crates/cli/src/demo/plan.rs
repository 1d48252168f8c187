//! What to run: the paths, and the connection over them.

use polypath_endpoint::SecurityConfig;
use polypath_hip::{HipConfig, Identity, KeyKind, Random};
use polypath_hop::{HopConfig, QueueLimit};
use polypath_lab::registry;
use polypath_lab::units::{Human, Link};
use polypath_transport::{AckConfig, CcConfig, ConnectionConfig};
use polypath_wire::{Duration, Rate};

use super::content::Content;
use crate::args::DemoArgs;
use crate::failure::Failure;

/// Largest packet, bytes: Ethernet's.
const MTU: u32 = 1500;
/// The smallest queue, bytes: 32 full packets.
const MIN_QUEUE: u64 = 32 * MTU as u64;

/// Without anything arriving; a base exchange gives up by itself after 31 s.
const SILENCE: Duration = Duration::from_secs(40);
/// As many paths as a connection can have.
const MAX_PATHS: usize = 64;
/// Beyond it a packet takes so few nanoseconds that rounding them shows.
const MAX_RATE: Rate = Rate::from_mbps(1_000_000);

/// Where the paths are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// In real time, emulated between sockets on loopback.
    Loopback,
    /// In real time, emulated between two network namespaces.
    Namespaces,
    /// In virtual time.
    Simulated,
}

impl Mode {
    /// For the table.
    pub fn describe(self) -> &'static str {
        match self {
            Self::Loopback => "in real time, on loopback",
            Self::Namespaces => "in real time, between network namespaces",
            Self::Simulated => "in virtual time",
        }
    }

    /// For JSON.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loopback => "loopback",
            Self::Namespaces => "netns",
            Self::Simulated => "sim",
        }
    }
}

/// The paths of a demo and the connection over them.
#[derive(Clone, Debug)]
pub struct Plan {
    pub mode: Mode,
    pub links: Vec<Link>,
    pub scheduler: String,
    pub cc: String,
    pub connection: ConnectionConfig,
    /// HIP and ESP below it.
    pub security: SecurityConfig,
    /// Who sends and who receives: made up for each demo.
    pub identities: [Identity; 2],
}

impl Plan {
    pub fn new(args: &DemoArgs) -> Result<Self, Failure> {
        let mode = match (args.sim, args.netns) {
            (true, _) => Mode::Simulated,
            (false, true) => Mode::Namespaces,
            (false, false) => Mode::Loopback,
        };
        let known = "clap admits only names of the registry";
        let cc: CcConfig = registry::by_name(&args.cc).expect(known);
        check(args, &cc)?;
        let buffer = buffer(&args.paths);
        let connection = ConnectionConfig {
            cc: cc.of_today(),
            scheduler: registry::by_name(&args.scheduler).expect(known),
            acks: AckConfig::thinned(),
            send_buffer: buffer,
            receive_buffer: buffer,
            fail_silent: true,
            early_data: true,
            ..ConnectionConfig::default()
        };
        Ok(Self {
            mode,
            links: args.paths.clone(),
            scheduler: args.scheduler.clone(),
            cc: args.cc.clone(),
            connection,
            security: security(args.paths.len()),
            identities: [identity(mode, 0)?, identity(mode, 1)?],
        })
    }

    /// The same connection over one of its paths.
    pub fn alone(&self, path: usize) -> Self {
        Self { links: vec![self.links[path]], ..self.clone() }
    }

    /// Sum of the rates.
    pub fn capacity(&self) -> Rate {
        sum(&self.links)
    }

    /// For how long nothing may arrive in real time: longer where four packets take long on the quickest path.
    pub fn silence(&self) -> Duration {
        let packet = |link: &Link| link.delay.times(2) + link.rate.transmission_time(MTU.into());
        SILENCE + self.links.iter().map(packet).min().unwrap_or(Duration::ZERO).times(4)
    }

    /// The paths do not carry the file; `why` it is given up.
    pub fn too_slow(&self, content: &Content, why: &str) -> Failure {
        let paths = match &self.links[..] {
            [link] => format!("a path of {link} is"),
            _ => "the paths are".to_owned(),
        };
        Failure::system(format!("{paths} too slow for {}", content.name), why)
            .help("give a path a higher rate or a shorter delay, as in --path 80mbit/20ms")
    }

    /// The hop of a link, the same there and back.
    pub fn hop(link: &Link) -> HopConfig {
        HopConfig {
            rate: link.rate,
            delay: link.delay,
            queue: QueueLimit::Bytes(round_trip_bytes(link).max(MIN_QUEUE)),
            mtu: Some(MTU),
            ..HopConfig::default()
        }
    }
}

/// Both ends take as many paths as there are.
fn security(paths: usize) -> SecurityConfig {
    let mut security = SecurityConfig { hip: HipConfig::of_today(), mtu: MTU, ..SecurityConfig::default() };
    let paths = u8::try_from(paths).expect("no more than 64, see above");
    security.hip.max_paths = security.hip.max_paths.max(paths);
    security
}

/// A Host Identity of the usual kind; in a simulation, which keeps no secrets and repeats byte for byte, always the
/// same for each `host`, down to its signatures.
fn identity(mode: Mode, host: u8) -> Result<Identity, Failure> {
    let refused = |why: &dyn std::fmt::Display| Failure::system("cannot make a Host Identity", why);
    let mut seed = [host; 32];
    if mode == Mode::Simulated {
        return Identity::repeatable(&mut Random::from_seed(seed)).map_err(|e| refused(&e));
    }
    getrandom::fill(&mut seed).map_err(|e| refused(&e))?;
    Identity::generate(KeyKind::P384, &mut Random::from_seed(seed)).map_err(|e| refused(&e))
}

/// What a link carries in a round trip without queueing.
fn round_trip_bytes(link: &Link) -> u64 {
    link.rate.bytes_in(link.delay.times(2))
}

/// What the types of the arguments cannot say.
fn check(args: &DemoArgs, cc: &CcConfig) -> Result<(), Failure> {
    check_paths(&args.paths)?;
    if cc.coupled_by().is_some() && args.paths.len() == 1 {
        return Err(Failure::usage(format!("--cc {} couples several paths, and there is one", args.cc))
            .help("repeat --path, or take --cc newreno or cubic"));
    }
    Ok(())
}

/// What the type of a path cannot say.
pub fn check_paths(paths: &[Link]) -> Result<(), Failure> {
    if paths.len() > MAX_PATHS {
        return Err(Failure::usage(format!("{} paths", paths.len()))
            .help(format!("a connection has at most {MAX_PATHS}")));
    }
    match paths.iter().find(|link| link.rate > MAX_RATE) {
        Some(link) => {
            let (rate, most) = (Human(link.rate), Human(MAX_RATE));
            Err(Failure::usage(format!("a path of {rate} is too fast for time in nanoseconds"))
                .help(format!("give it at most {most}, as in --path 10Gbit/1ms")))
        }
        None => Ok(()),
    }
}

/// Room for everything under way while the slowest path, its queue full, repairs a loss.
fn buffer(links: &[Link]) -> u64 {
    let longest = links.iter().map(|l| l.delay).max().unwrap_or(Duration::ZERO);
    sum(links).bytes_in(longest.times(16)).clamp(4 << 20, 1 << 30)
}

fn sum(links: &[Link]) -> Rate {
    Rate(links.iter().map(|l| l.rate.0).fold(0, u64::saturating_add))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simulated_hosts_sign_alike_every_time_and_real_ones_are_strangers() {
        let signed = |mode| {
            let identity = identity(mode, 1).unwrap();
            (identity.hit(), identity.sign(b"what they say").unwrap().signature)
        };
        assert_eq!(signed(Mode::Simulated), signed(Mode::Simulated));
        assert_ne!(signed(Mode::Loopback).0, signed(Mode::Loopback).0);
        assert_ne!(identity(Mode::Simulated, 0).unwrap().hit(), signed(Mode::Simulated).0);
    }
}
