//! What the host that a connection enters says to the one that it leaves: between which addresses it is, and the answer.
//! All that the lane adds to the bytes of a connection.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use thiserror::Error;

/// The peer's port for the TCP lane: a connection to it carries a connection of another program.
pub const PORT: u16 = 4827;
/// The version of this message.
const VERSION: u8 = 1;
/// Bytes before the addresses: version, family (4 or 6), the client's port, the server's.
const HEAD: usize = 6;
/// Longest request, bytes.
pub const MAX_LEN: usize = HEAD + 32;

/// The addresses between which to open a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request {
    /// Who opened it.
    pub client: SocketAddr,
    /// To whom.
    pub server: SocketAddr,
}

/// What became of a request; printed, it is why there is no connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Reply {
    /// The connection is there; its bytes follow.
    #[error("connected")]
    Connected,
    /// The server refused it.
    #[error("the server refused it")]
    Refused,
    /// The server cannot be reached.
    #[error("the server is unreachable")]
    Unreachable,
    /// The server did not answer.
    #[error("the server does not answer")]
    TimedOut,
    /// The client's address is not one of those behind its peer.
    #[error("the client's address is not behind this peer")]
    Forbidden,
    /// There are too many connections.
    #[error("too many connections are open")]
    Busy,
    /// Nothing leads to the server's network. A peer that does not know this code takes it for [`Unreachable`](Self::Unreachable).
    #[error("the server's network is unreachable")]
    NetUnreachable,
}

/// Bytes that are no message of this version.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
#[error("not a request or reply of this version")]
pub struct Malformed;

impl Request {
    /// A request between addresses of one family.
    pub fn new(client: SocketAddr, server: SocketAddr) -> Option<Self> {
        (client.is_ipv4() == server.is_ipv4()).then_some(Self { client, server })
    }

    /// The message.
    pub fn encode(&self) -> Vec<u8> {
        let mut out = vec![VERSION, if self.client.is_ipv4() { 4 } else { 6 }];
        out.extend(self.client.port().to_be_bytes());
        out.extend(self.server.port().to_be_bytes());
        for ip in [self.client.ip(), self.server.ip()] {
            match ip {
                IpAddr::V4(ip) => out.extend(ip.octets()),
                IpAddr::V6(ip) => out.extend(ip.octets()),
            }
        }
        out
    }

    /// How long the message is that begins with `start`; `None` as long as that is not known.
    pub fn len(start: &[u8]) -> Result<Option<usize>, Malformed> {
        match start {
            [VERSION, 4, ..] => Ok(Some(HEAD + 8)),
            [VERSION, 6, ..] => Ok(Some(HEAD + 32)),
            [] | [VERSION] => Ok(None),
            _ => Err(Malformed),
        }
    }

    /// The request in a whole message.
    pub fn decode(message: &[u8]) -> Result<Self, Malformed> {
        let (head, addresses) = message.split_first_chunk::<HEAD>().ok_or(Malformed)?;
        let [_, _, a, b, c, d] = *head;
        let ips: [IpAddr; 2] = match (Self::len(message)?, addresses) {
            (_, addresses) if addresses.len() == 8 && head[1] == 4 => {
                let (client, server) = addresses.split_at(4);
                [client, server].map(|a| Ipv4Addr::from(<[u8; 4]>::try_from(a).unwrap_or_default()).into())
            }
            (_, addresses) if addresses.len() == 32 && head[1] == 6 => {
                let (client, server) = addresses.split_at(16);
                [client, server].map(|a| Ipv6Addr::from(<[u8; 16]>::try_from(a).unwrap_or_default()).into())
            }
            _ => return Err(Malformed),
        };
        let ports = [[a, b], [c, d]].map(u16::from_be_bytes);
        let [client, server] = [0, 1].map(|i| SocketAddr::new(ips[i], ports[i]));
        Ok(Self { client, server })
    }
}

/// Replies by their codes.
const REPLIES: [Reply; 7] = [
    Reply::Connected,
    Reply::Refused,
    Reply::Unreachable,
    Reply::TimedOut,
    Reply::Forbidden,
    Reply::Busy,
    Reply::NetUnreachable,
];

impl Reply {
    /// Its one byte.
    pub fn code(self) -> u8 {
        self as u8
    }

    /// The reply with that code.
    pub fn of(code: u8) -> Result<Self, Malformed> {
        REPLIES.get(usize::from(code)).copied().ok_or(Malformed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(client: &str, server: &str) -> Request {
        Request::new(client.parse().unwrap(), server.parse().unwrap()).unwrap()
    }

    #[test]
    fn a_request_survives_the_round_trip() {
        for (request, len) in
            [(request("10.0.0.1:5", "192.0.2.1:443"), 14), (request("[fd00::1]:5", "[2001:db8::1]:443"), 38)]
        {
            let message = request.encode();
            assert_eq!((message.len(), Request::len(&message[..2])), (len, Ok(Some(len))));
            assert_eq!(Request::decode(&message), Ok(request));
            assert_eq!(Request::decode(&message[..len - 1]), Err(Malformed));
        }
        assert_eq!(Request::len(&[1]), Ok(None));
    }

    #[test]
    fn other_versions_families_and_codes_are_errors() {
        assert_eq!(Request::len(&[2, 4]), Err(Malformed));
        assert_eq!(Request::len(&[1, 5]), Err(Malformed));
        let mixed = Request::new("10.0.0.1:5".parse().unwrap(), "[::1]:4".parse().unwrap());
        assert_eq!(mixed, None);
        for (code, reply) in REPLIES.into_iter().enumerate() {
            assert_eq!((usize::from(reply.code()), Reply::of(code as u8)), (code, Ok(reply)));
        }
        assert_eq!(Reply::of(7), Err(Malformed));
    }
}
