//! Seal and open of 1,350-byte payloads beside the bare cipher of the same library on as many bytes.

use std::hint::black_box;

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

fn bare(group: &mut BenchmarkGroup<'_, WallTime>, algorithm: &'static Algorithm, key: &[u8]) {
    let key = LessSafeKey::new(UnboundKey::new(algorithm, key).expect("a key of its length"));
    let nonce = |n: u64| {
        let mut bytes = [0; 12];
        bytes[4..].copy_from_slice(&n.to_be_bytes());
        Nonce::assume_unique_for_key(bytes)
    };
    let mut buffer = [1u8; BODY];
    let mut n = 0;
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.bench_function("bare seal", |b| {
        b.iter(|| {
            n += 1;
            let tag = key.seal_in_place_separate_tag(nonce(n), Aad::from([0u8; 12]), black_box(&mut buffer));
            black_box(tag.expect("a short message"))
        });
    });
    let mut sealed = [1u8; BODY];
    let tag = key.seal_in_place_separate_tag(nonce(1), Aad::from([0u8; 12]), &mut sealed).expect("short");
    group.throughput(Throughput::Bytes((PAYLOAD * BATCH) as u64));
    group.bench_function("bare open", |b| {
        b.iter_batched_ref(
            || vec![sealed; BATCH],
            |batch| {
                for buffer in batch {
                    key.open_in_place_separate_tag(nonce(1), Aad::from([0u8; 12]), tag.as_ref(), buffer)
                        .expect("authentic");
                }
            },
            BatchSize::LargeInput,
        );
    });
}

/// AES-CBC and HMAC-SHA-256 over as many bytes, one after the other.
fn bare_cbc(group: &mut BenchmarkGroup<'_, WallTime>) {
    let key = || UnboundCipherKey::new(&AES_128, &[7; 16]).expect("a key of its length");
    let encrypt = EncryptingKey::cbc(key()).expect("AES has a CBC mode");
    let decrypt = DecryptingKey::cbc(key()).expect("AES has a CBC mode");
    let mac = hmac::Key::new(hmac::HMAC_SHA256, &[9; 32]);
    let mut buffer = [1u8; CBC_BODY];
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    group.bench_function("bare seal", |b| {
        b.iter(|| {
            let iv = EncryptionContext::Iv128(FixedLength::from(&[3; 16]));
            encrypt.less_safe_encrypt(black_box(&mut buffer), iv).expect("whole blocks");
            black_box(hmac::sign(&mac, &buffer))
        });
    });
    group.bench_function("bare open", |b| {
        b.iter(|| {
            black_box(hmac::sign(&mac, black_box(&buffer)));
            let iv = DecryptionContext::Iv128(FixedLength::from(&[3; 16]));
            black_box(decrypt.decrypt(&mut buffer, iv).expect("whole blocks"));
        });
    });
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
        match suite {
            Suite::Aes128Gcm => bare(&mut group, &AES_128_GCM, &[7; 16]),
            Suite::Chacha20Poly1305 => bare(&mut group, &CHACHA20_POLY1305, &[7; 32]),
            _ => bare_cbc(&mut group),
        }
        ours(&mut group, suite);
        group.finish();
    }
}

criterion_group!(benches, seal_open);
criterion_main!(benches);
