//! Any bytes given to an association are refused, and so is a packet of the peer's in which anything
//! was changed; what an association seals, its other half opens. What comes out stands in the packet.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use polypath_esp::{EspConfig, Inbound, Keys, Outbound, Spi, Suite};

#[derive(Arbitrary, Debug)]
struct Script<'a> {
    suite: u8,
    extended: bool,
    payload: &'a [u8],
    /// Where, and what is xored there.
    changes: Vec<(u16, u8)>,
    cut: u16,
    wild: &'a [u8],
}

const SUITES: [Suite; 6] = [
    Suite::Aes128Gcm,
    Suite::Aes128GcmImplicit,
    Suite::Aes256Gcm,
    Suite::Chacha20Poly1305,
    Suite::Aes128CbcHmacSha256,
    Suite::Aes256CbcHmacSha256,
];
const SPI: Spi = Spi(0x1234_5678);

fuzz_target!(|script: Script<'_>| {
    let suite = SUITES[usize::from(script.suite) % SUITES.len()];
    let config = EspConfig { extended_sequence: script.extended, ..EspConfig::with_suite(suite) };
    let keys = |a: u8| {
        Keys::new(&[a; 64][..suite.encryption_key_len()], &[!a; 64][..suite.authentication_key_len()])
    };
    let mut out = Outbound::new(SPI, config.clone(), &keys(7)).expect("a good configuration");
    let mut inbound = Inbound::new(SPI, config.clone(), &keys(7)).expect("a good configuration");
    // Not the keys that packets are sealed with here: the fuzzer sees what is compared and sends it.
    let mut other = Inbound::new(SPI, config, &keys(8)).expect("a good configuration");

    let mut wild = script.wild.to_vec();
    assert!(other.open(&mut wild).is_err(), "nobody guesses an ICV");
    let at = out.payload_offset();
    let mut packet = vec![0; out.sealed_len(script.payload.len())];
    packet[at..at + script.payload.len()].copy_from_slice(script.payload);
    out.seal(&mut packet, script.payload.len(), 6).expect("the buffer has its length");

    let mut changed = packet.clone();
    changed.truncate(packet.len() - usize::from(script.cut) % packet.len());
    for (at, xor) in &script.changes {
        let len = changed.len();
        changed[usize::from(*at) % len] ^= xor;
    }
    if changed != packet {
        assert!(inbound.open(&mut changed).is_err(), "a change is noticed");
    }
    let opened = inbound.open(&mut packet).expect("authentic and new");
    assert_eq!(&packet[opened.payload], script.payload);
});
