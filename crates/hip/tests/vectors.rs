//! HITs, puzzles, Diffie-Hellman, KEYMAT, MACs and signatures against known answers.
#![allow(clippy::unwrap_used, reason = "test helpers")]

#[path = "common/vectors.rs"]
mod vectors;

use polypath_hip::dh::{DhGroup, DhKey};
use polypath_hip::identity::{self, Identity, KeyKind, PublicIdentity};
use polypath_hip::keymat::Keymat;
use polypath_hip::suite::{EspSuite, HipCipher};
use polypath_hip::{CryptoError, Random, puzzle};
use polypath_wire::Checksum;
use polypath_wire::hip::{DomainId, HostId, Kind, PacketView, Param, Signature, Solution, coverage};
use serde_json::Value;
use vectors::*;

#[test]
fn hits() {
    for v in vectors("hit.json") {
        let identity = bytes(&v, "host_identity");
        assert_eq!(identity::hit(suite(&v, "hit_suite"), &identity), hit(&v, "hit"), "{}", text(&v, "case"));
        if let Some(parameter) = v["host_id_parameter"].as_str().filter(|p| !p.is_empty()) {
            let mut ours = Vec::new();
            let name = v["domain_id"].as_str().map(hex).unwrap_or_default();
            let kind = v["domain_id_type"].as_u64().unwrap_or(0) as u8;
            let algorithm = number(&v, "algorithm") as u16;
            Param::HostId(HostId { algorithm, identity, domain: DomainId { kind, name } }).emit(&mut ours);
            assert_eq!(ours, hex(parameter));
        }
    }
}

#[test]
fn puzzles() {
    for v in vectors("puzzle.json") {
        let (hash, i, r) = (hash(&v, "rhash_suite"), hit(&v, "hit_i"), hit(&v, "hit_r"));
        let solution = solution(&v);
        let digest = |a, b| puzzle::digest(hash, &solution.random, a, b, &solution.answer);
        assert_eq!(digest(i, r), bytes(&v, "digest_rfc"));
        assert_eq!(digest(r, i), bytes(&v, "digest_swapped"));
        assert_eq!(puzzle::is_solved(hash, &solution, i, r), v["valid_rfc"].as_bool().unwrap());
        assert_eq!(puzzle::is_solved(hash, &solution, r, i), v["valid_swapped"].as_bool().unwrap());
    }
}

fn solution(v: &Value) -> Solution {
    Solution {
        difficulty: number(v, "K") as u8,
        reserved: 0,
        opaque: [0; 2],
        random: bytes(v, "I"),
        answer: bytes(v, "J"),
    }
}

/// A private value as long as the field: the vectors leave out leading zeros.
fn private_key(group: DhGroup, v: &Value, key: &str) -> Option<DhKey> {
    let digits = v[key].as_str()?;
    let mut private = hex(&format!("{}{digits}", if digits.len().is_multiple_of(2) { "" } else { "0" }));
    let len = match group {
        DhGroup::Modp1536 | DhGroup::Modp3072 => private.len(),
        _ => group.public_len() / 2,
    };
    private.splice(..0, vec![0; len - private.len()]);
    if group == DhGroup::P521 {
        private = modulo_order_of_p521(&private);
    }
    Some(DhKey::from_private(group, &private).unwrap_or_else(|e| panic!("{group:?} {digits}: {e}")))
}

/// The other implementation draws 528 bits; ours wants a number below the order.
fn modulo_order_of_p521(private: &[u8]) -> Vec<u8> {
    use crypto_bigint::{Encoding, NonZero, U576};
    let order = U576::from_be_hex(concat!(
        "00000000000001FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
        "FFFFFFFA51868783BF2F966B7FCC0148F709A5D03BB5C9B8899C47AEBB6FB71E91386409",
    ));
    let value = U576::from_be_slice(&[&[0; 6], private].concat());
    Encoding::to_be_bytes(&value.rem(&NonZero::new(order).unwrap()))[6..].to_vec()
}

#[test]
fn diffie_hellman() {
    let mut unsupported = 0;
    for v in vectors("dh.json") {
        let Some(group) = DhGroup::from_id(number(&v, "group") as u8) else {
            assert_eq!(number(&v, "group"), 10, "only SECP160R1 is left out");
            unsupported += 1;
            continue;
        };
        let (i, r) = (bytes(&v, "public_initiator"), bytes(&v, "public_responder"));
        for (private, ours, peers) in [("private_initiator", &i, &r), ("private_responder", &r, &i)] {
            let Some(key) = private_key(group, &v, private) else { continue };
            assert_eq!(key.public(), ours);
            assert_eq!(*key.agree(peers).unwrap(), bytes(&v, "shared_secret_fixed"));
        }
    }
    assert_eq!(unsupported, 1);
}

#[test]
fn public_values_outside_the_group_are_refused() {
    let mut random = Random::from_seed([1; 32]);
    for group in [DhGroup::Modp1536, DhGroup::Modp3072, DhGroup::P256, DhGroup::P384, DhGroup::P521] {
        let key = DhKey::generate(group, &mut random);
        let other = DhKey::generate(group, &mut random);
        assert_eq!(key.public().len(), group.public_len());
        assert_eq!(key.agree(other.public()), other.agree(key.public()));
        let mut one = vec![0; group.public_len()];
        assert_eq!(key.agree(&one), Err(CryptoError::PublicValue), "{group:?} 0");
        *one.last_mut().unwrap() = 1;
        assert_eq!(key.agree(&one), Err(CryptoError::PublicValue), "{group:?} 1");
        let mut changed = other.public().to_vec();
        changed[group.public_len() - 1] ^= 1;
        if group >= DhGroup::P256 {
            assert_eq!(key.agree(&changed), Err(CryptoError::PublicValue), "{group:?} off the curve");
        }
        assert_eq!(
            key.agree(&vec![0xff; group.public_len()]),
            Err(CryptoError::PublicValue),
            "{group:?} p or more"
        );
        assert_eq!(
            key.agree(&other.public()[1..].repeat(2)),
            Err(CryptoError::PublicValue),
            "{group:?} length"
        );
    }
    // p-1 of RFC 3526 §2: all ones at both ends, the last bit cleared.
    let key = DhKey::generate(DhGroup::Modp1536, &mut random);
    let p = hex(concat!(
        "FFFFFFFFFFFFFFFFC90FDAA22168C234C4C6628B80DC1CD129024E088A67CC74020BBEA63B139B22514A08798E3404DD",
        "EF9519B3CD3A431B302B0A6DF25F14374FE1356D6D51C245E485B576625E7EC6F44C42E9A637ED6B0BFF5CB6F406B7ED",
        "EE386BFB5A899FA5AE9F24117C4B1FE649286651ECE45B3DC2007CB8A163BF0598DA48361C55D39A69163FA8FD24CF5F",
        "83655D23DCA3AD961C62F356208552BB9ED529077096966D670C354E4ABC9804F1746C08CA237327FFFFFFFFFFFFFFFE",
    ));
    assert_eq!(key.agree(&p), Err(CryptoError::PublicValue), "p-1");
}

#[test]
fn keymat() {
    for v in vectors("keymat.json") {
        let (i, r) = (hit(&v, "hit_i"), hit(&v, "hit_r"));
        let cipher = HipCipher::from_id(number(&v, "hip_cipher") as u16).unwrap();
        let esp = EspSuite::from_number(number(&v, "esp_suite") as u16).unwrap();
        let keymat = Keymat::new(
            hash(&v, "rhash_suite"),
            &bytes(&v, "kij"),
            &bytes(&v, "salt_I"),
            &bytes(&v, "salt_J"),
            i,
            r,
        );
        let whole = bytes(&v, "keymat");
        assert_eq!(*keymat.bytes(0, whole.len()).unwrap(), whole);
        let index = keymat.first_esp_index(cipher);
        assert_eq!(index as u64, number(&v, "keymat_index"));
        let (greater, other) = if i > r { (i, r) } else { (r, i) };
        assert_eq!(text(&v, "host_g"), if i > r { "initiator" } else { "responder" });
        let hip = keymat.hip_keys(cipher, greater, other).unwrap();
        assert_eq!(hip.outgoing.encryption, bytes(&v, "hip_gl_enc"));
        assert_eq!(hip.outgoing.integrity, bytes(&v, "hip_gl_mac"));
        assert_eq!(hip.incoming.encryption, bytes(&v, "hip_lg_enc"));
        assert_eq!(hip.incoming.integrity, bytes(&v, "hip_lg_mac"));
        let esp = keymat.esp_keys(esp, index, other, greater).unwrap();
        assert_eq!(esp.incoming.encryption, bytes(&v, "esp_gl_enc"));
        assert_eq!(esp.incoming.authentication, bytes(&v, "esp_gl_auth"));
        assert_eq!(esp.outgoing.encryption, bytes(&v, "esp_lg_enc"));
        assert_eq!(esp.outgoing.authentication, bytes(&v, "esp_lg_auth"));
        let all = 255 * hash(&v, "rhash_suite").len();
        assert!(keymat.bytes(0, all).is_ok());
        assert_eq!(keymat.bytes(1, all).unwrap_err(), CryptoError::KeymatExhausted);
    }
}

#[test]
fn macs() {
    for v in vectors("mac.json") {
        let packet = bytes(&v, "packet_hex");
        let view = PacketView::new(&packet).unwrap();
        let covered = match text(&v, "parameter") {
            "HIP_MAC" => coverage::mac(&view),
            "HIP_MAC_2" => coverage::mac_2(&view, &bytes(&v, "appended_host_id")),
            other => panic!("{other}"),
        };
        assert_eq!(covered, bytes(&v, "covered"));
        let (hash, key, mac) = (hash(&v, "hash_suite"), bytes(&v, "key"), bytes(&v, "mac"));
        assert_eq!(hash.mac(&key, &covered), mac);
        assert!(hash.verify_mac(&key, &covered, &mac));
    }
}

fn public(v: &Value) -> Result<PublicIdentity, CryptoError> {
    let (algorithm, identity) = (number(v, "algorithm") as u16, bytes(v, "host_identity"));
    PublicIdentity::new(HostId { algorithm, identity, domain: DomainId::default() })
}

/// The other implementation signs R2 in HIP_SIGNATURE_2, over what HIP_SIGNATURE covers there.
fn covered(v: &Value, packet: &PacketView<'_>) -> Vec<u8> {
    match (text(v, "parameter"), text(v, "packet")) {
        ("HIP_SIGNATURE_2", "R1") => coverage::signature_2(packet),
        ("HIP_SIGNATURE_2", "R2") => coverage::before(packet, Kind::HIP_SIGNATURE_2, &[]),
        ("HIP_SIGNATURE", _) => coverage::signature(packet),
        other => panic!("{other:?}"),
    }
}

/// Whether that says that the library has no RSA, where it has none.
fn is_missing(error: CryptoError) -> bool {
    !KeyKind::Rsa.is_supported() && error == CryptoError::Unsupported(5)
}

#[test]
fn signatures() {
    let (mut verified, mut refused) = (0, 0);
    for v in vectors("signature.json") {
        let packet = bytes(&v, "packet_hex");
        let covered = covered(&v, &PacketView::new(&packet).unwrap());
        assert_eq!(covered, bytes(&v, "covered"));
        assert!(v["valid"].as_bool().unwrap());
        let signature =
            Signature { algorithm: number(&v, "algorithm") as u16, signature: bytes(&v, "signature") };
        match public(&v) {
            Ok(identity) => {
                identity.verify(&covered, &signature).unwrap();
                verified += 1;
            }
            Err(error) => {
                assert!(error == CryptoError::Weak { bits: 1024, need: 2048 } || is_missing(error));
                refused += 1;
            }
        }
    }
    assert_eq!(verified + refused, 136);
    assert!(refused == 6 || !KeyKind::Rsa.is_supported());
}

#[test]
fn what_must_not_verify() {
    for v in vectors("negative.json") {
        match text(&v, "kind") {
            "signature" => {
                let signature = Signature {
                    algorithm: number(&v, "algorithm") as u16,
                    signature: bytes(&v, "signature"),
                };
                let refused =
                    public(&v).and_then(|id| id.verify(&bytes(&v, "covered"), &signature)).unwrap_err();
                let known = matches!(refused, CryptoError::Signature | CryptoError::Weak { .. });
                assert!(known || is_missing(refused));
            }
            "mac" => {
                let hash = hash(&v, "hash_suite");
                assert!(!hash.verify_mac(&bytes(&v, "key"), &bytes(&v, "covered"), &bytes(&v, "mac")));
            }
            "checksum" => {
                let (src, dst) = (text(&v, "src_ip").parse().unwrap(), text(&v, "dst_ip").parse().unwrap());
                let packet = bytes(&v, "hex");
                let verdict = PacketView::new(&packet).unwrap().verify(Checksum::between(src, dst).unwrap());
                assert!(verdict.unwrap_err().is_checksum());
            }
            "puzzle" => {
                let (i, r) = (hit(&v, "hit_i"), hit(&v, "hit_r"));
                assert!(!puzzle::is_solved(hash(&v, "rhash_suite"), &solution(&v), i, r));
            }
            "esp" => {} // crates/esp has these.
            other => panic!("{other}"),
        }
    }
}

#[test]
fn key_files() {
    let dir = format!("{}/tests/data/keys", env!("CARGO_MANIFEST_DIR"));
    let (mut read_back, mut weak, mut no_rsa) = (0, 0, 0);
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let pem = std::fs::read_to_string(&path).unwrap();
        if name.contains(".pub.") {
            assert!(Identity::from_pem(&pem).is_err(), "{name} is no private key");
            continue;
        }
        match Identity::from_pem(&pem) {
            Ok(identity) => {
                let kind = match &name {
                    n if n.starts_with("p256") => KeyKind::P256,
                    n if n.starts_with("rsa") || n.contains("_rsa") => KeyKind::Rsa,
                    _ => KeyKind::P384,
                };
                assert_eq!(identity.public().kind(), kind, "{name}");
                let again = Identity::from_pem(&identity.to_pem().unwrap()).unwrap();
                assert_eq!(again.hit(), identity.hit());
                let signature = again.sign(b"message").unwrap();
                identity.public().verify(b"message", &signature).unwrap();
                assert!(identity.public().verify(b"massage", &signature).is_err());
                read_back += 1;
            }
            Err(_) if name.starts_with("rsa1024") => weak += 1,
            Err(_) => {
                assert!(name.contains("rsa") && !KeyKind::Rsa.is_supported(), "{name}");
                no_rsa += 1;
            }
        }
    }
    assert_eq!((read_back + no_rsa, weak), (26, 4));
}

#[test]
fn generated_identities() {
    for kind in [KeyKind::P256, KeyKind::P384, KeyKind::Rsa].into_iter().filter(|kind| kind.is_supported()) {
        let identity = Identity::generate(kind, &mut Random::from_seed([7; 32])).unwrap();
        let again = Identity::generate(kind, &mut Random::from_seed([7; 32])).unwrap();
        assert_eq!(
            identity.hit() == again.hit(),
            kind != KeyKind::Rsa,
            "the same seed gives the same ECDSA key"
        );
        assert!(identity.hit().is_orchid());
        assert_eq!(identity.hit().suite(), identity.public().suite() as u8);
        let signature = identity.sign(b"message").unwrap();
        identity.public().verify(b"message", &signature).unwrap();
        let wrong = Signature { algorithm: 9, ..signature };
        assert_eq!(identity.public().verify(b"message", &wrong), Err(CryptoError::Signature));
    }
}

/// RFC 6979: the same key and message give the same signature, and a good one.
#[test]
fn a_repeatable_identity_signs_alike() {
    let [one, other] = [7; 2].map(|seed| Identity::repeatable(&mut Random::from_seed([seed; 32])).unwrap());
    assert_eq!(one.hit(), Identity::generate(KeyKind::P256, &mut Random::from_seed([7; 32])).unwrap().hit());
    let signature = one.sign(b"message").unwrap();
    assert_eq!(signature, other.sign(b"message").unwrap());
    one.public().verify(b"message", &signature).unwrap();
    assert!(one.public().verify(b"massage", &signature).is_err());
    let stored = Identity::from_pem(&one.to_pem().unwrap()).unwrap();
    // `make pure` is to test what no feature of another crate replaces.
    assert_eq!(polypath_crypto::RSA, cfg!(feature = "aws-lc"), "the library that the features name");
    if cfg!(feature = "aws-lc") {
        assert_ne!(stored.sign(b"message").unwrap(), signature, "one from a file signs as the daemon does");
    }
}

#[test]
fn secrets_are_not_shown() {
    let mut random = Random::from_seed([7; 32]);
    let identity = Identity::generate(KeyKind::P384, &mut random).unwrap();
    assert_eq!(format!("{identity:?}"), format!("P384 {}", identity.hit()));
    assert_eq!(format!("{:?}", DhKey::generate(DhGroup::P256, &mut random)), "DhKey { group: P256, .. }");
    let keymat =
        Keymat::new(polypath_hip::suite::Hash::Sha384, &[1], &[2], &[3], identity.hit(), identity.hit());
    assert_eq!(format!("{keymat:?} {random:?}"), "Keymat(..) Random(..)");
    let keys = keymat.hip_keys(HipCipher::Aes256Cbc, identity.hit(), identity.hit()).unwrap();
    assert_eq!(format!("{keys:?}"), "Pair { outgoing: HipKeys(..), incoming: HipKeys(..) }");
}
