//! Sealing and opening cost no allocation, in any suite; what the cipher library does in C is not counted.
#![allow(clippy::unwrap_used)]

use polypath_esp::{EspConfig, Inbound, Keys, Outbound, Spi, Suite};

const PAYLOAD: usize = 1350;

#[test]
fn no_packet_costs_an_allocation() {
    let suites = [
        Suite::Aes128Gcm,
        Suite::Aes256Gcm,
        Suite::Chacha20Poly1305,
        Suite::Aes128CbcHmacSha256,
        Suite::Aes256CbcHmacSha256,
    ];
    for suite in suites {
        let keys =
            Keys::new(&[7; 64][..suite.encryption_key_len()], &[9; 64][..suite.authentication_key_len()]);
        let mut out = Outbound::new(Spi(0x1000), EspConfig::with_suite(suite), &keys).unwrap();
        let mut inbound = Inbound::new(Spi(0x1000), EspConfig::with_suite(suite), &keys).unwrap();
        let mut packet = vec![1; out.sealed_len(PAYLOAD)];
        let mut turn = || {
            out.seal(&mut packet, PAYLOAD, 6).unwrap();
            inbound.open(&mut packet).unwrap();
        };
        turn();
        let counted = allocation_counter::measure(|| (0..100).for_each(|_| turn()));
        assert_eq!(counted.count_total, 0, "{suite:?}");
    }
}
