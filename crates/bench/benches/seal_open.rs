//! Seal and open of 1,350-byte payloads beside the bare cipher of the same library on as many bytes. The shares
//! printed are medians of rounds in which one follows the other, so that other work on the machine meets both.

use std::hint::black_box;
use std::time::{Duration, Instant};

use aws_lc_rs::aead::{AES_128_GCM, Aad, Algorithm, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext, UnboundCipherKey,
};
use aws_lc_rs::hmac;
use aws_lc_rs::iv::FixedLength;
use criterion::measurement::WallTime;
use criterion::{BatchSize, BenchmarkGroup, Criterion, Throughput, criterion_group, criterion_main};
use polypath_esp::{EspConfig, Inbound, Keys, Outbound, Spi, Suite};

const PAYLOAD: usize = 1350;
/// Payload and trailer, aligned to 4.
const BODY: usize = 1352;
/// The same, aligned to 16.
const CBC_BODY: usize = 1360;
const SPI: Spi = Spi(0x1000);
const BATCH: usize = 512;

fn keys(suite: Suite) -> Keys {
    Keys::new(&[7; 64][..suite.encryption_key_len()], &[9; 64][..suite.authentication_key_len()])
}

fn outbound(suite: Suite) -> Outbound {
    Outbound::new(SPI, EspConfig::with_suite(suite), &keys(suite)).expect("a good configuration")
}

type Work = Box<dyn FnMut(&mut [u8])>;

/// The bare ciphers of a suite: what seal and open cannot do without.
struct Bare {
    seal: Work,
    open: Work,
    /// Bytes that they work on.
    body: usize,
}

impl Bare {
    fn new(suite: Suite) -> Self {
        match suite {
            Suite::Aes128Gcm => Self::aead(&AES_128_GCM, &[7; 16]),
            Suite::Chacha20Poly1305 => Self::aead(&CHACHA20_POLY1305, &[7; 32]),
            _ => Self::cbc(),
        }
    }

    /// Opening works on anything: an AEAD computes the tag and deciphers before it compares.
    fn aead(algorithm: &'static Algorithm, key: &[u8]) -> Self {
        let key = || LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a key of its length"));
        let nonce = |n: u64| {
            let mut bytes = [0; 12];
            bytes[4..].copy_from_slice(&n.to_be_bytes());
            Nonce::assume_unique_for_key(bytes)
        };
        let (sealing, opening) = (key(), key());
        let mut sealed = [1u8; BODY];
        let tag = opening.seal_in_place_separate_tag(nonce(1), Aad::from([0u8; 12]), &mut sealed);
        let (tag, mut n) = (tag.expect("a short message"), 0);
        let seal = move |buffer: &mut [u8]| {
            n += 1;
            let tag = sealing.seal_in_place_separate_tag(nonce(n), Aad::from([0u8; 12]), buffer);
            let _ = black_box(tag.expect("a short message"));
        };
        let open = move |buffer: &mut [u8]| {
            buffer.copy_from_slice(&sealed);
            opening
                .open_in_place_separate_tag(nonce(1), Aad::from([0u8; 12]), tag.as_ref(), buffer)
                .expect("authentic");
        };
        Self { seal: Box::new(seal), open: Box::new(open), body: BODY }
    }

    /// AES-CBC and HMAC-SHA-256 over as many bytes, one after the other.
    fn cbc() -> Self {
        let key = || UnboundCipherKey::new(&AES_128, &[7; 16]).expect("a key of its length");
        let encrypt = EncryptingKey::cbc(key()).expect("AES has a CBC mode");
        let decrypt = DecryptingKey::cbc(key()).expect("AES has a CBC mode");
        let mac = || hmac::Key::new(hmac::HMAC_SHA256, &[9; 32]);
        let (sealing, opening) = (mac(), mac());
        let seal = move |buffer: &mut [u8]| {
            let iv = EncryptionContext::Iv128(FixedLength::from(&[3; 16]));
            encrypt.less_safe_encrypt(buffer, iv).expect("whole blocks");
            let _ = black_box(hmac::sign(&sealing, buffer));
        };
        let open = move |buffer: &mut [u8]| {
            let _ = black_box(hmac::sign(&opening, buffer));
            let iv = DecryptionContext::Iv128(FixedLength::from(&[3; 16]));
            black_box(decrypt.decrypt(buffer, iv).expect("whole blocks"));
        };
        Self { seal: Box::new(seal), open: Box::new(open), body: CBC_BODY }
    }
}

/// What of the time of ours is the bare cipher's: seal, then open. Both opens copy the packet first.
fn shares(suite: Suite) -> [f64; 2] {
    let (mut bare, mut out) = (Bare::new(suite), outbound(suite));
    let mut inbound =
        Inbound::new(SPI, EspConfig::with_suite(suite), &keys(suite)).expect("a good configuration");
    let mut body = vec![1u8; bare.body];
    let mut packet = vec![1u8; out.sealed_len(PAYLOAD)];
    let mut sealed = vec![packet.clone(); BATCH];
    let time = |work: &mut dyn FnMut()| {
        let start = Instant::now();
        work();
        start.elapsed()
    };
    let mut rounds: [Vec<f64>; 2] = [Vec::new(), Vec::new()];
    let share = |bare: Duration, ours: Duration| bare.as_secs_f64() / ours.as_secs_f64();
    for _ in 0..101 {
        let bare_seal = time(&mut || (0..BATCH).for_each(|_| (bare.seal)(black_box(&mut body))));
        let ours_seal = time(&mut || {
            sealed.iter_mut().for_each(|p| {
                let _ = black_box(out.seal(black_box(p), PAYLOAD, 6).expect("numbers are left"));
            });
        });
        rounds[0].push(share(bare_seal, ours_seal));
        let bare_open = time(&mut || (0..BATCH).for_each(|_| (bare.open)(black_box(&mut body))));
        let ours_open = time(&mut || {
            for p in &sealed {
                packet.copy_from_slice(p);
                let _ = black_box(inbound.open(black_box(&mut packet)).expect("authentic and new"));
            }
        });
        rounds[1].push(share(bare_open, ours_open));
    }
    rounds.map(|mut shares| {
        shares.sort_by(f64::total_cmp);
        shares[shares.len() / 2]
    })
}

fn bare(group: &mut BenchmarkGroup<'_, WallTime>, suite: Suite) {
    let mut bare = Bare::new(suite);
    let mut buffer = vec![1u8; bare.body];
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.bench_function("bare seal", |b| b.iter(|| (bare.seal)(black_box(&mut buffer))));
    group.bench_function("bare open", |b| b.iter(|| (bare.open)(black_box(&mut buffer))));
}

fn ours(group: &mut BenchmarkGroup<'_, WallTime>, suite: Suite) {
    let mut out = outbound(suite);
    let mut packet = vec![1u8; out.sealed_len(PAYLOAD)];
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.bench_function("esp seal", |b| {
        b.iter(|| out.seal(black_box(&mut packet), PAYLOAD, 6).expect("numbers are left"));
    });
    group.throughput(Throughput::Bytes((PAYLOAD * BATCH) as u64));
    group.bench_function("esp open", |b| {
        let mut out = outbound(suite);
        let mut inbound =
            Inbound::new(SPI, EspConfig::with_suite(suite), &keys(suite)).expect("a good configuration");
        b.iter_batched_ref(
            || {
                let mut batch = vec![packet.clone(); BATCH];
                for packet in &mut batch {
                    out.seal(packet, PAYLOAD, 6).expect("numbers are left");
                }
                batch
            },
            |batch| {
                for packet in batch {
                    black_box(inbound.open(packet).expect("authentic and new"));
                }
            },
            BatchSize::LargeInput,
        );
    });
}

fn seal_open(c: &mut Criterion) {
    for suite in [Suite::Aes128Gcm, Suite::Chacha20Poly1305, Suite::Aes128CbcHmacSha256] {
        let mut group = c.benchmark_group(format!("{suite:?}"));
        let [seal, open] = shares(suite).map(|share| 100.0 * share);
        println!("{suite:?}: the bare cipher takes {seal:.0} % of a seal, {open:.0} % of an open");
        bare(&mut group, suite);
        ours(&mut group, suite);
        group.finish();
    }
}

criterion_group!(benches, seal_open);
criterion_main!(benches);
