//! What we send, as Wireshark's dissectors see it: structure, checksums, and ESP under our keys.
//! Without tshark the tests say that they were skipped.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::hosts::*;
use polypath_esp::{EspConfig, Keys, Outbound, Spi, Suite};
use polypath_hip::*;
use polypath_wire::ipv4::Ipv4Header;
use polypath_wire::udp::UdpHeader;
use polypath_wire::{Checksum, Duration};

const HIP: u8 = 139;
const ESP: u8 = 50;
const UDP: u8 = 17;
const SECRET: &[u8] = b"what nobody else may read";

/// A file of IPv4 packets (pcap, LINKTYPE_RAW) that is removed at the end.
struct Capture {
    path: PathBuf,
    file: std::fs::File,
}

impl Capture {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("polypath-{}-{name}.pcap", std::process::id()));
        let mut file = std::fs::File::create(&path).unwrap();
        let header: [u32; 6] = [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 101];
        header.iter().for_each(|word| file.write_all(&word.to_le_bytes()).unwrap());
        Self { path, file }
    }

    /// A packet with `payload` from one end of `route` to the other, in UDP if it has ports.
    fn write(&mut self, route: Route, protocol: u8, payload: &[u8]) {
        let (IpAddr::V4(src), IpAddr::V4(dst)) = (route.local.ip(), route.remote.ip()) else { panic!() };
        let packet = match route.remote.port() {
            0 => ipv4(src, dst, protocol, payload),
            port => {
                let udp = UdpHeader {
                    src_port: route.local.port(),
                    dst_port: port,
                    payload_len: payload.len() as u16,
                };
                let mut datagram = [&[0; 8], payload].concat();
                let sum = Checksum::between(src.into(), dst.into()).unwrap();
                udp.emit(&mut datagram, sum).unwrap();
                ipv4(src, dst, UDP, &datagram)
            }
        };
        let len = packet.len() as u32;
        [0, 0, len, len].iter().for_each(|word: &u32| self.file.write_all(&word.to_le_bytes()).unwrap());
        self.file.write_all(&packet).unwrap();
    }
}

impl Drop for Capture {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn ipv4(src: Ipv4Addr, dst: Ipv4Addr, protocol: u8, payload: &[u8]) -> Vec<u8> {
    let mut packet = [&[0; 20], payload].concat();
    Ipv4Header::new(protocol, src, dst, payload.len() as u16).emit(&mut packet).unwrap();
    packet
}

/// One line for each packet with the values of `fields`; `None`, loudly, without tshark.
fn dissect(capture: &Path, options: &[String], fields: &[&str]) -> Option<Vec<Vec<String>>> {
    let mut command = Command::new("tshark");
    command.arg("-r").arg(capture).args(["-T", "fields", "-E", "occurrence=a"]).args(options);
    command.args(fields.iter().flat_map(|field| ["-e", field]));
    let Ok(output) = command.output() else {
        polypath_testing::skip("tshark is not installed");
        return None;
    };
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    Some(text.lines().map(|line| line.split('\t').map(str::to_owned).collect()).collect())
}

/// An association from I1 to CLOSE_ACK with a second path in between, over UDP or not.
fn whole_life(config: HipConfig, udp: bool) -> Pair {
    let at = |n| if udp { route(0, n) } else { native(0, n) };
    let mut pair = Pair::new([config.clone(), config], [KeyKind::P384, KeyKind::P256]);
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].connect(now, peer, vec![at(0)]).unwrap();
    pair.run(Duration::from_secs(40));
    pair.hosts[0].add_path(pair.now, peer, at(1));
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.sas(0).len(), 2);
    pair
}

fn close(pair: &mut Pair) {
    let (now, peer) = (pair.now, pair.hit(1));
    pair.hosts[0].close(now, peer);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.states(), [State::Unassociated, State::Closed]);
}

#[test]
fn our_messages_are_dissected_with_good_checksums() {
    for udp in [false, true] {
        let mut pair = whole_life(HipConfig::default(), udp);
        close(&mut pair);
        let mut capture = Capture::new(if udp { "hip-udp" } else { "hip" });
        pair.sent.iter().for_each(|sent| capture.write(sent.route, HIP, &sent.payload));
        let options = ["-o", "udp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"].map(String::from);
        let fields = [
            "hip.packet_type",
            "hip.checksum.status",
            "udp.checksum.status",
            "ip.checksum.status",
            "hip.hit_sndr",
            "hip.type",
            "_ws.malformed",
        ];
        let Some(lines) = dissect(&capture.path, &options, &fields) else { return };
        assert_eq!(lines.len(), pair.sent.len());
        for (line, sent) in lines.iter().zip(&pair.sent) {
            let [kind, hip, in_udp, ip, sender, types, malformed] = &line[..] else { panic!("{line:?}") };
            assert_eq!(kind, &u8::from(sent.packet_type()).to_string(), "{line:?}");
            // In UDP the checksum of HIP is zero (RFC 9028 §5.1), which tshark takes for no checksum.
            assert_eq!(
                (hip.as_str(), in_udp.as_str(), ip.as_str()),
                if udp { (hip.as_str(), "1", "1") } else { ("1", "", "1") }
            );
            assert!(malformed.is_empty(), "{line:?}");
            let hit: String = pair.hit(sent.from).0.iter().map(|b| format!("{b:02x}")).collect();
            assert_eq!(sender.replace(':', ""), hit);
            let view = polypath_wire::hip::PacketView::new(sent.packet()).unwrap();
            let ours: Vec<_> = view.params().map(|p| p.kind.0.to_string()).collect();
            assert_eq!(types, &ours.join(","), "every parameter where we put it");
        }
    }
}

/// tshark's names of our suites; it knows no ChaCha20-Poly1305.
const SUITES: [(Suite, &str, &str); 3] = [
    (Suite::Aes128Gcm, "AES-GCM with 16 octet ICV [RFC4106]", "NULL"),
    (Suite::Aes128CbcHmacSha256, "AES-CBC [RFC3602]", "HMAC-SHA-256-128 [RFC4868]"),
    (Suite::Aes256CbcHmacSha256, "AES-CBC [RFC3602]", "HMAC-SHA-256-128 [RFC4868]"),
];

/// Whoever has the keys of the base exchange reads the payload. tshark 4.0 finds ICVs good only
/// without extended sequence numbers, so that they are compared without.
#[test]
fn our_esp_is_deciphered_with_our_keys() {
    for (suite, cipher, mac) in SUITES {
        for (udp, extended) in [(false, false), (false, true), (true, false), (true, true)] {
            let pair = whole_life(HipConfig { esp_suites: vec![suite], ..HipConfig::default() }, udp);
            let mut capture = Capture::new(&format!("esp-{suite:?}-{udp}-{extended}"));
            let mut options: Vec<String> = vec!["-d".into(), "udp.port==10500,udpencap".into()];
            let on = ["esp.enable_encryption_decode:TRUE", "esp.enable_authentication_check:TRUE"];
            options.extend(on.iter().flat_map(|o| ["-o".into(), (*o).to_owned()]));
            for sa in pair.sas(0).into_iter().chain(pair.sas(1)) {
                options.extend(["-o".into(), uat(&sa, cipher, mac)]);
                let config = EspConfig { extended_sequence: extended, ..EspConfig::with_suite(suite) };
                seal_some(&mut capture, &sa, config);
            }
            let fields = ["esp.sequence", "esp.icv_good", "esp.protocol", "data.data", "_ws.malformed"];
            let Some(lines) = dissect(&capture.path, &options, &fields) else { return };
            assert_eq!(lines.len(), 2 * 2 * 3, "two directions of two paths, three packets each");
            let secret: String = SECRET.iter().map(|b| format!("{b:02x}")).collect();
            for (n, line) in lines.iter().enumerate() {
                let [seq, good, protocol, data, malformed] = &line[..] else { panic!("{line:?}") };
                let what = format!("{suite:?} udp {udp} extended {extended}: {line:?}");
                assert_eq!(seq, &(n % 3 + 1).to_string(), "{what}");
                assert_eq!((protocol.as_str(), data), ("0x11", &secret), "{what}");
                assert!(malformed.is_empty() && (extended || good == "1"), "{what}");
            }
        }
    }
}

/// The row of tshark's table of SAs for what `sa` sends.
fn uat(sa: &SaPair, cipher: &str, mac: &str) -> String {
    let hex = |key: &[u8]| match key {
        [] => String::new(),
        key => "0x".to_owned() + &key.iter().map(|b| format!("{b:02x}")).collect::<String>(),
    };
    let keys = &sa.keys.outgoing;
    let (encryption, authentication) = (hex(&keys.encryption), hex(&keys.authentication));
    let spi = format!("{:#x}", sa.outbound);
    let row = ["IPv4", "*", "*", &spi, cipher, &encryption, mac, &authentication, "32-bit", "0"];
    "uat:esp_sa:".to_owned() + &row.map(|field| format!("\"{field}\"")).join(",")
}

/// Three datagrams under the keys of `sa`.
fn seal_some(capture: &mut Capture, sa: &SaPair, config: EspConfig) {
    let keys = Keys::new(&sa.keys.outgoing.encryption, &sa.keys.outgoing.authentication);
    let mut out = Outbound::new(Spi(sa.outbound), config, &keys).unwrap();
    for _ in 0..3 {
        let mut datagram = [&[0; 8], SECRET].concat();
        let udp = UdpHeader { src_port: 40_000, dst_port: 40_001, payload_len: SECRET.len() as u16 };
        udp.emit(&mut datagram, Checksum::Unused).unwrap();
        let mut packet = vec![0; out.sealed_len(datagram.len())];
        let at = out.payload_offset();
        packet[at..at + datagram.len()].copy_from_slice(&datagram);
        out.seal(&mut packet, datagram.len(), UDP).unwrap();
        capture.write(sa.route, ESP, &packet);
    }
}
