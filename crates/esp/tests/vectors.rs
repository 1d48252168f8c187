//! Packets of an independent implementation (cutehip, captured; and the same made right).

use polypath_esp::{EspConfig, Inbound, Keys, Opened, Outbound, Quirks, Spi, Suite};
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    count: usize,
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    case: String,
    esp_suite: u16,
    icv_len: usize,
    esn: bool,
    iv_len: usize,
    packet: String,
    spi: String,
    seq: u64,
    enc_key: String,
    auth_key: String,
    padding: String,
    next_header: u8,
    payload: String,
}

fn unhex(s: &str) -> Vec<u8> {
    (0..s.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&s[i..i + 2], 16).expect("vectors are hexadecimal"))
        .collect()
}

impl Vector {
    fn config(&self) -> EspConfig {
        let suite = Suite::from_number(self.esp_suite).expect("vectors name suites we have");
        let quirks = Quirks { full_icv: self.icv_len == 32, null_iv: self.iv_len != suite.iv_len() };
        EspConfig {
            extended_sequence: self.esn,
            allow_insecure: true,
            quirks,
            ..EspConfig::with_suite(suite)
        }
    }

    fn keys(&self) -> Keys {
        Keys::new(&unhex(&self.enc_key), &unhex(&self.auth_key))
    }

    fn spi(&self) -> Spi {
        Spi(u32::from_str_radix(&self.spi, 16).expect("vectors are hexadecimal"))
    }
}

fn vectors() -> Vec<Vector> {
    let file: File =
        serde_json::from_str(include_str!("data/esp.json")).expect("the vectors are well formed");
    assert_eq!(file.vectors.len(), file.count);
    file.vectors
}

#[test]
fn every_vector_opens() {
    for v in vectors() {
        let mut sa = Inbound::new(v.spi(), v.config(), &v.keys()).unwrap();
        let mut packet = unhex(&v.packet);
        let Opened { seq, next_header, payload, .. } = sa.open(&mut packet).expect(&v.case);
        assert_eq!((seq, next_header), (v.seq, v.next_header), "{}", v.case);
        let trailer = payload.end..payload.end + v.padding.len() / 2;
        assert_eq!(packet[payload], unhex(&v.payload), "{}", v.case);
        assert_eq!(packet[trailer], unhex(&v.padding), "{}", v.case);
    }
}

/// Except under NULL, which cutehip pads to 16 bytes as well; RFC 4303 §2.4 allows it.
#[test]
fn every_vector_is_as_long_as_ours() {
    for v in vectors().into_iter().filter(|v| v.esp_suite != 7) {
        let sa = Outbound::new(v.spi(), v.config(), &v.keys()).unwrap();
        assert_eq!(sa.sealed_len(v.payload.len() / 2), v.packet.len() / 2, "{}", v.case);
    }
}

/// RFC 7634, appendix A: an ESP packet under ChaCha20-Poly1305 with 32-bit numbers.
#[test]
fn rfc_7634_appendix_a() {
    let key =
        unhex(concat!("808182838485868788898a8b8c8d8e8f", "909192939495969798999a9b9c9d9e9f", "a0a1a2a3"));
    let ciphertext = unhex(concat!(
        "24039428b97f417e3c13753a4f05087b67c352e6a7fab1b982d466ef407ae5c6",
        "14ee8099d52844eb61aa95dfab4c02f72aa71e7c4c4f64c9befe2facc638e8f3",
        "cbec163fac469b502773f6fb94e664da9165b82829f641e0"
    ));
    let tag = unhex("76aaa8266b7fb0f7b11b369907e1ad43");
    let mut packet = unhex("01020304000000051011121314151617");
    packet.extend(ciphertext.into_iter().chain(tag));
    let config = EspConfig { extended_sequence: false, ..EspConfig::with_suite(Suite::Chacha20Poly1305) };
    let mut sa = Inbound::new(Spi(0x0102_0304), config, &Keys::new(&key, &[])).unwrap();
    let opened = sa.open(&mut packet).unwrap();
    assert_eq!((opened.seq, opened.next_header, opened.payload.len()), (5, 4, 84));
    assert_eq!(packet[opened.payload][..4], [0x45, 0, 0, 0x54]);
}
