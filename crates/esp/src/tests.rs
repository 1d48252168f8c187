//! Both halves together.

use polypath_wire::esp::{EspTrailer, HEADER_LEN};
use proptest::prelude::*;

use crate::replay::Replay;
use crate::transform::Transform;
use crate::{EspConfig, Inbound, Keys, OpenError, Outbound, SealError, SetupError, Spi, Suite};

const SPI: Spi = Spi(0x5eed_5eed);
const TCP: u8 = 6;

fn keys(suite: Suite) -> Keys {
    let bytes: Vec<u8> = (0..64).map(|i: u8| i.wrapping_mul(37) ^ 0x5a).collect();
    Keys::new(&bytes[..suite.encryption_key_len()], &bytes[..suite.authentication_key_len()])
}

fn pair(config: EspConfig) -> (Outbound, Inbound) {
    let keys = keys(config.suite);
    let config = EspConfig { allow_insecure: true, ..config };
    (Outbound::new(SPI, config.clone(), &keys).unwrap(), Inbound::new(SPI, config, &keys).unwrap())
}

fn sealed(out: &mut Outbound, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0; out.sealed_len(payload.len())];
    let at = out.payload_offset();
    packet[at..at + payload.len()].copy_from_slice(payload);
    assert_eq!(out.seal(&mut packet, payload.len(), TCP), Ok(packet.len()));
    packet
}

fn any_suite() -> impl Strategy<Value = Suite> {
    prop::sample::select(&Suite::ALL[..])
}

fn any_config() -> impl Strategy<Value = EspConfig> {
    (any_suite(), any::<bool>()).prop_map(|(suite, extended_sequence)| EspConfig {
        extended_sequence,
        ..EspConfig::with_suite(suite)
    })
}

proptest! {
    #[test]
    fn what_is_sealed_opens(config in any_config(), payloads in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..1500), 1..8)) {
        let (mut out, mut inbound) = pair(config.clone());
        for (payload, seq) in payloads.iter().zip(1..) {
            let mut packet = sealed(&mut out, payload);
            prop_assert!(out.max_payload(packet.len()) >= payload.len());
            prop_assert!(out.sealed_len(out.max_payload(packet.len())) <= packet.len());
            if config.suite.is_secure() && payload.len() >= 16 {
                let at = out.payload_offset();
                prop_assert_ne!(&packet[at..at + payload.len()], &payload[..]);
            }
            let opened = inbound.open(&mut packet).unwrap();
            prop_assert_eq!((opened.seq, opened.next_header), (seq, TCP));
            prop_assert_eq!(&packet[opened.payload], &payload[..]);
        }
    }

    #[test]
    fn a_flipped_bit_is_noticed(config in any_config(), payload: Vec<u8>, at: prop::sample::Index, bit in 0u8..8) {
        let (mut out, mut inbound) = pair(config);
        let mut packet = sealed(&mut out, &payload);
        let whole = packet.clone();
        packet[at.index(whole.len())] ^= 1 << bit;
        prop_assert!(inbound.open(&mut packet).is_err());
        prop_assert_eq!(inbound.highest(), 0);
        prop_assert!(inbound.open(&mut whole.clone()).is_ok(), "a forgery does not spoil the window");
    }

    #[test]
    fn other_lengths_and_other_bytes_are_refused(config in any_config(), payload: Vec<u8>, cut: prop::sample::Index, more: Vec<u8>) {
        let (mut out, mut inbound) = pair(config);
        let packet = sealed(&mut out, &payload);
        prop_assert!(inbound.open(&mut packet[..cut.index(packet.len())].to_vec()).is_err());
        prop_assert!(more.is_empty() || inbound.open(&mut [packet, more.clone()].concat()).is_err());
        prop_assert!(inbound.open(&mut more.clone()).is_err());
    }

    /// Any order of delivery around a wrap of the low half, with copies: each packet opens once.
    #[test]
    fn the_low_half_may_wrap(suite in any_suite(), before in 0u64..80, shuffle in prop::collection::vec(any::<prop::sample::Index>(), 1..300)) {
        let (mut out, mut inbound) = pair(EspConfig::with_suite(suite));
        let start = (7u64 << 32) - 1 - before;
        out.skip_to(start);
        inbound.skip_to(start);
        let packets: Vec<_> = (0..160u64).map(|n| sealed(&mut out, &n.to_be_bytes())).collect();
        let mut opened = [false; 160];
        for pick in shuffle {
            let n = pick.index(packets.len());
            let result = inbound.open(&mut packets[n].clone());
            if opened[n] {
                prop_assert_eq!(result, Err(OpenError::Replay(Replay::Seen(start + 1 + n as u64))));
            } else {
                prop_assert_eq!(result.unwrap().seq, start + 1 + n as u64);
            }
            opened[n] = true;
        }
        prop_assert_eq!(inbound.stats().opened, opened.iter().filter(|o| **o).count() as u64);
    }
}

#[test]
fn every_bit_of_a_packet_counts() {
    for suite in Suite::ALL {
        let (mut out, mut inbound) = pair(EspConfig::with_suite(suite));
        let packet = sealed(&mut out, b"forty two bytes of somebody's application.");
        for bit in 0..packet.len() * 8 {
            let mut changed = packet.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(inbound.open(&mut changed).is_err(), "{suite:?}, bit {bit}");
        }
        assert!(inbound.open(&mut packet.clone()).is_ok());
    }
}

#[test]
fn a_packet_tells_how_many_before_it_did_not_come() {
    let (mut out, mut inbound) = pair(EspConfig::default());
    let packets: Vec<_> = (0..6).map(|_| sealed(&mut out, b"data")).collect();
    let skipped = [0, 3, 2, 1, 5].map(|n: usize| inbound.open(&mut packets[n].clone()).unwrap().skipped);
    assert_eq!(skipped, [0, 2, 0, 0, 1]);
}

#[test]
fn old_packets_are_refused_and_far_ones_taken() {
    let (mut out, mut inbound) = pair(EspConfig::default());
    let first = sealed(&mut out, b"1");
    let second = sealed(&mut out, b"2");
    out.skip_to(1024);
    inbound.open(&mut sealed(&mut out, b"1025")).unwrap();
    // A number before the window is taken for one 2³² later (RFC 4303 §A2.2) and is not authentic.
    assert_eq!(inbound.open(&mut first.clone()), Err(OpenError::Forged));
    assert_eq!(inbound.open(&mut second.clone()).unwrap().seq, 2);
    out.skip_to(3_000_000_000);
    inbound.open(&mut sealed(&mut out, b"far")).unwrap();
    assert_eq!(inbound.highest(), 3_000_000_001);
}

#[test]
fn old_short_numbers_are_refused() {
    let (mut out, mut inbound) = pair(EspConfig { extended_sequence: false, ..EspConfig::default() });
    let first = sealed(&mut out, b"1");
    out.skip_to(1024);
    inbound.open(&mut sealed(&mut out, b"1025")).unwrap();
    assert_eq!(inbound.open(&mut first.clone()), Err(OpenError::Replay(Replay::TooOld(1))));
}

#[test]
fn short_numbers_stop_at_their_last() {
    for suite in Suite::ALL {
        let config = EspConfig { extended_sequence: false, ..EspConfig::with_suite(suite) };
        let (mut out, mut inbound) = pair(config);
        out.skip_to(u64::from(u32::MAX) - 1);
        assert!(out.needs_rekey());
        let last = sealed(&mut out, b"last");
        assert_eq!(inbound.open(&mut last.clone()).unwrap().seq, u64::from(u32::MAX));
        assert_eq!(out.seal(&mut [0; 100], 4, TCP), Err(SealError::Exhausted));
        assert_eq!(out.seal(&mut [0; 100], 4, TCP), Err(SealError::Exhausted), "and stays so");
        assert_eq!(
            inbound.open(&mut last.clone()),
            Err(OpenError::Replay(Replay::Seen(u64::from(u32::MAX))))
        );
    }
}

#[test]
fn long_numbers_stop_at_their_last() {
    let (mut out, mut inbound) = pair(EspConfig::default());
    out.skip_to(u64::MAX - 1);
    inbound.skip_to(u64::MAX - 1);
    assert_eq!(inbound.open(&mut sealed(&mut out, b"last")).unwrap().seq, u64::MAX);
    assert_eq!(out.seal(&mut [0; 100], 4, TCP), Err(SealError::Exhausted));
    let mut beyond = [0; 44];
    beyond[..4].copy_from_slice(&SPI.0.to_be_bytes());
    assert_eq!(inbound.open(&mut beyond), Err(OpenError::BeyondLast));
}

#[test]
fn a_small_buffer_costs_no_number() {
    let (mut out, _) = pair(EspConfig::default());
    let need = out.sealed_len(100);
    assert_eq!(out.seal(&mut vec![0; need - 1], 100, TCP), Err(SealError::Buffer { need, got: need - 1 }));
    assert_eq!(out.sealed(), 0);
}

#[test]
fn a_suite_without_protection_must_be_asked_for() {
    for suite in [Suite::NullHmacSha256, Suite::Simulated] {
        let (config, keys) = (EspConfig::with_suite(suite), keys(suite));
        let refused = Some(SetupError::Insecure(suite));
        assert_eq!(Outbound::new(SPI, config.clone(), &keys).err(), refused);
        assert_eq!(Inbound::new(SPI, config, &keys).err(), refused);
    }
}

#[test]
fn bad_parameters_have_clear_errors() {
    let make = |spi, config, keys: &Keys| Inbound::new(spi, config, keys).err().unwrap().to_string();
    let good = keys(Suite::Aes128Gcm);
    assert!(make(Spi(255), EspConfig::default(), &good).contains("above 255"));
    assert!(make(SPI, EspConfig { replay_window: 1, ..EspConfig::default() }, &good).contains("64 to 65536"));
    assert!(make(SPI, EspConfig::default(), &Keys::new(&[0; 16], &[])).contains("needs 20 bytes, got 16"));
    let typo = serde_json::from_str::<EspConfig>(r#"{"suit": "aes128_gcm"}"#);
    assert!(typo.unwrap_err().to_string().contains("`suite`"));
}

#[test]
fn an_authentic_packet_with_a_bad_trailer_is_not_replayed_either() {
    let config = EspConfig::default();
    let (_, mut inbound) = pair(config.clone());
    let mut packet = vec![0; HEADER_LEN + 8 + 20 + 16];
    packet[..4].copy_from_slice(&SPI.0.to_be_bytes());
    packet[7] = 1;
    packet[HEADER_LEN + 8 + 18] = 200;
    assert!(Transform::new(&config, &keys(config.suite)).seal(1, &mut packet).is_ok());
    assert!(matches!(inbound.open(&mut packet.clone()), Err(OpenError::Trailer(_))));
    assert_eq!(inbound.open(&mut packet), Err(OpenError::Replay(Replay::Seen(1))));
    assert_eq!((inbound.stats().bad_trailer, inbound.stats().replayed), (1, 1));
}

#[test]
fn keys_are_not_printed() {
    let keys = Keys::new(&[0xab; 20], &[]);
    let out = Outbound::new(SPI, EspConfig::default(), &keys).unwrap();
    let inbound = Inbound::new(SPI, EspConfig::default(), &keys).unwrap();
    let printed = format!("{keys:?} {out:?} {inbound:?}");
    assert!(!printed.contains("171") && !printed.contains("ab, ab"), "{printed}");
}

/// draft-mcgrew-gcm-test-01, first example: AES-128 and an extended sequence number.
#[test]
fn aes_gcm_with_an_extended_number() {
    let key = unhex("4c80cdefbb5d10da906ac73c3613a6342e443b68");
    let mut packet = unhex(concat!(
        "00004321000000004956ed7e3b244cfe",
        "fecf537e729d5b07dc30df528dd22b768d1b98736696a6fd348509fa13ceac34",
        "cfa2436f14a3f3cf65925bf1f4a13c5d15b21e1884f5ff6247aeabb786b93bce",
        "61bc17d768fd9732459018148f6cbe722fd04796562dfdb4"
    ));
    let mut sa = Inbound::new(Spi(0x4321), EspConfig::default(), &Keys::new(&key, &[])).unwrap();
    sa.skip_to(0x8765_4320_ffff_ffff);
    let opened = sa.open(&mut packet).unwrap();
    assert_eq!((opened.seq, opened.next_header), (0x8765_4321_0000_0000, 1));
    let start = unhex("45000048699a000080114db7c0a80102");
    assert_eq!(packet[opened.payload][..16], start);
}

/// RFC 8750 §3: the nonce is made from an IV equal to the sequence number; all else is the same.
#[test]
fn an_implicit_iv_is_the_sequence_number_and_is_not_sent() {
    let [explicit, implicit] = [Suite::Aes128Gcm, Suite::Aes128GcmImplicit].map(|suite| {
        let (mut out, _) = pair(EspConfig::with_suite(suite));
        out.skip_to(u64::from(u32::MAX));
        sealed(&mut out, b"whole segment")
    });
    assert_eq!(explicit[HEADER_LEN..HEADER_LEN + 8], [0, 0, 0, 1, 0, 0, 0, 0]);
    assert_eq!([&explicit[..HEADER_LEN], &explicit[HEADER_LEN + 8..]].concat(), implicit);
}

/// The same draft: AES-256 and a short number.
#[test]
fn aes_256_gcm_with_a_short_number() {
    let key = unhex("abbccddef00112233445566778899aababbccddef00112233445566778899aab11223344");
    let mut packet = unhex(concat!(
        "4a2cbfe3000000020102030405060708",
        "ff425c9b724599df7a3bcd510194e00d6a78107f1b0b1cbf06efae9d65a5d763",
        "748a637985771d347f0545659f14e99def842d8e",
        "b335f4eecfdbf831824b4c4915956c96"
    ));
    let config = EspConfig { extended_sequence: false, ..EspConfig::with_suite(Suite::Aes256Gcm) };
    let mut sa = Inbound::new(Spi(0x4a2c_bfe3), config, &Keys::new(&key, &[])).unwrap();
    let opened = sa.open(&mut packet).unwrap();
    assert_eq!((opened.seq, opened.next_header, opened.payload.len()), (2, 1, 48));
    assert_eq!(EspTrailer::after(48, 4, 1).pad_len, 2);
    assert_eq!(packet[opened.payload][..4], [0x45, 0, 0, 0x30]);
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len()).step_by(2).map(|i| u8::from_str_radix(&s[i..i + 2], 16).unwrap()).collect()
}
