//! Programs whose daemon was killed and is started again.

use std::io::{ErrorKind, Read};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::host::{Host, hosts, introduce, meet, up_both, wait};

/// Its connections travel as packets.
const EXCLUDED: u16 = 81;
/// Long after the reset that is expected after less than a second.
const STUCK: Duration = Duration::from_secs(20);

/// A program of the router's and one of the server's that are connected.
fn connected(hosts: &[Host; 2], port: u16) -> [TcpStream; 2] {
    let at = ("10.99.0.1", port);
    let listener = hosts[1].ns.run(|| TcpListener::bind(at).unwrap()).unwrap();
    let client = hosts[0].ns.run(|| TcpStream::connect(at).unwrap()).unwrap();
    let ends = [client, listener.accept().unwrap().0];
    ends.iter().for_each(|end| end.set_read_timeout(Some(STUCK)).unwrap());
    ends
}

#[test]
fn a_program_that_only_reads_is_reset_when_its_own_daemon_was_killed_and_runs_again() {
    let Some([mut router, mut server]) = hosts() else { return };
    introduce(&router, &server, &[]);
    for host in [&router, &server] {
        let excluded = format!("exclude_ports = [{EXCLUDED}]");
        host.edit(|text| text.replace("exclude_ports = []", &excluded));
    }
    up_both(&mut router, &mut server);
    let both = [router, server];
    let ([_client, mut reader], [mut by_packets, other]) = (connected(&both, 80), connected(&both, EXCLUDED));
    let [mut router, mut server] = both;

    server.end("-KILL");
    server.up();
    wait("the daemon", || server.status(&[]).status.success());
    let up = Instant::now();
    let end = reader.read(&mut [0]).map_err(|e| e.kind());
    assert_eq!(end, Err(ErrorKind::ConnectionReset));
    println!("reset {:?} after the daemon answered", up.elapsed());

    meet(&router, &server);
    std::io::Write::write_all(&mut &other, b"x").unwrap();
    by_packets.read_exact(&mut [0]).expect("what travels as packets lives");
    router.end("-TERM");
    server.end("-TERM");
}
