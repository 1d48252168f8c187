//! The addresses of this host, which nobody else may use as a source.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::ifaddrs::getifaddrs;
use nix::sys::socket::SockaddrStorage;

/// How old what is known of them may be.
const AGE: Duration = Duration::from_secs(1);

/// The addresses of all interfaces of this host, and the time at which they were read.
#[derive(Debug, Default)]
pub(crate) struct Own(Mutex<(Option<Instant>, Arc<HashSet<IpAddr>>)>);

impl Own {
    /// Those in the network namespace of the calling thread.
    pub fn now(&self) -> Arc<HashSet<IpAddr>> {
        let (at, all) = &mut *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if at.is_none_or(|at| at.elapsed() > AGE) {
            // What could not be read is as it was.
            if let Ok(interfaces) = getifaddrs() {
                let addresses = interfaces.filter_map(|interface| interface.address.as_ref().and_then(ip_of));
                *all = Arc::new(addresses.collect());
            }
            *at = Some(Instant::now());
        }
        all.clone()
    }
}

fn ip_of(address: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = address.as_sockaddr_in().map(|at| IpAddr::from(at.ip()));
    v4.or_else(|| address.as_sockaddr_in6().map(|at| at.ip().into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_is_ours_and_addresses_of_documentation_are_not() {
        let own = Own::default().now();
        assert!(own.contains(&[127, 0, 0, 1].into()) && !own.contains(&[192, 0, 2, 77].into()));
    }
}
