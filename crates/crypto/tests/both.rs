//! What one library makes, the other takes.
#![cfg(all(feature = "aws-lc", feature = "pure"))]

use polypath_crypto::{Aead, Curve, Hash, Private, aws, pure};

const AEADS: [(Aead, usize); 3] =
    [(Aead::Aes128Gcm, 16), (Aead::Aes256Gcm, 32), (Aead::Chacha20Poly1305, 32)];
const CURVES: [(Curve, usize); 3] = [(Curve::P256, 32), (Curve::P384, 48), (Curve::P521, 66)];

/// `len` bytes that look random; of P-521 a number below its order.
fn bytes(seed: u8, len: usize) -> Vec<u8> {
    let mut bytes: Vec<u8> = Vec::new();
    while bytes.len() < len {
        bytes.extend(aws::digest(Hash::Sha256, &[&[seed, bytes.len() as u8]]).as_ref());
    }
    bytes.truncate(len);
    if len == 66 {
        bytes[0] = 0;
    }
    bytes
}

#[test]
fn hashes_macs_and_derived_keys_are_equal() {
    for hash in [Hash::Sha256, Hash::Sha384] {
        for len in [0, 1, 63, 64, 200] {
            let (key, text) = (bytes(1, len), bytes(2, len));
            let parts = [&text[..], b"more"];
            assert_eq!(aws::digest(hash, &parts), pure::digest(hash, &parts));
            assert_eq!(aws::MacKey::new(hash, &key).sign(&parts), pure::MacKey::new(hash, &key).sign(&parts));
            let mut derived = [vec![0; 100 + len], vec![0; 100 + len]];
            aws::Prk::extract(hash, &key, &text).expand(b"info", &mut derived[0]).unwrap();
            pure::Prk::extract(hash, &key, &text).expand(b"info", &mut derived[1]).unwrap();
            assert_eq!(derived[0], derived[1]);
        }
        let mut long = vec![0; 255 * hash.len() + 1];
        assert!(aws::Prk::extract(hash, b"", b"").expand(b"", &mut long).is_none());
        assert!(pure::Prk::extract(hash, b"", b"").expand(b"", &mut long).is_none());
    }
    assert!(aws::equal(b"ab", b"ab") && pure::equal(b"ab", b"ab"));
    assert!(!pure::equal(b"ab", b"ac") && !pure::equal(b"ab", b"abc"));
}

#[test]
fn what_one_seals_the_other_opens_and_nothing_else() {
    for (aead, key_len) in AEADS {
        let key = bytes(3, key_len);
        let (a, p) = (aws::AeadKey::new(aead, &key).unwrap(), pure::AeadKey::new(aead, &key).unwrap());
        assert!(
            pure::AeadKey::new(aead, &key[1..]).is_none() && aws::AeadKey::new(aead, &key[1..]).is_none()
        );
        for len in [0, 1, 16, 1400] {
            let plain = bytes(4, len);
            let (mut sealed, mut same) = (plain.clone(), plain.clone());
            let tag = a.seal([7; 12], b"head", &mut sealed).unwrap();
            assert_eq!(p.seal([7; 12], b"head", &mut same), Some(tag));
            assert_eq!(sealed, same);
            assert!(p.open([7; 12], b"head", &tag, &mut sealed).is_some());
            assert!(a.open([7; 12], b"head", &tag, &mut same).is_some());
            assert_eq!((&sealed, &same), (&plain, &plain));
            assert!(p.open([7; 12], b"heap", &tag, &mut sealed).is_none(), "other associated data");
            assert!(p.open([7; 12], b"head", &tag[1..], &mut sealed).is_none(), "a tag cut short");
        }
    }
    for key_len in [16, 32] {
        let (key, plain) = (bytes(5, key_len), bytes(6, 64));
        let (a, p) = (aws::Cbc::new(&key).unwrap(), pure::Cbc::new(&key).unwrap());
        let (mut sealed, mut same) = (plain.clone(), plain.clone());
        a.encrypt(&[9; 16], &mut sealed).unwrap();
        p.encrypt(&[9; 16], &mut same).unwrap();
        assert_eq!(sealed, same);
        p.decrypt(&[9; 16], &mut sealed).unwrap();
        a.decrypt(&[9; 16], &mut same).unwrap();
        assert_eq!((&sealed, &same), (&plain, &plain));
        assert!(p.encrypt(&[9; 16], &mut sealed[1..]).is_none(), "no whole blocks");
    }
}

#[test]
fn both_agree_on_secrets_and_refuse_the_same_keys() {
    for (curve, len) in CURVES {
        let (one, other) = (bytes(7, len), bytes(8, len));
        let (a, p) =
            (aws::AgreementKey::from_private(curve, &one), pure::AgreementKey::from_private(curve, &other));
        let (a, p) = (a.unwrap(), p.unwrap());
        let same = pure::AgreementKey::from_private(curve, &one).unwrap();
        assert_eq!(a.public(), same.public());
        assert_eq!(a.agree(&p.public().unwrap()), p.agree(&a.public().unwrap()));
        let mut off = a.public().unwrap();
        off[0] ^= 1;
        assert!(a.agree(&off).is_none() && p.agree(&off).is_none(), "not on the curve");
        for bad in [vec![0; len], vec![0xff; len], one[1..].to_vec()] {
            assert!(aws::AgreementKey::from_private(curve, &bad).is_none());
            assert!(pure::AgreementKey::from_private(curve, &bad).is_none());
        }
    }
}

#[test]
fn signatures_and_key_files_of_one_are_good_for_the_other() {
    for (curve, len) in &CURVES[..2] {
        let (curve, private) = (*curve, bytes(9, *len));
        let a = aws::EcdsaKey::from_private(curve, &private).unwrap();
        let p = pure::EcdsaKey::from_private(curve, &private).unwrap();
        assert_eq!(a.public(), p.public());
        let of_a = aws::EcdsaPublic::new(curve, &a.public()).unwrap();
        let of_p = pure::EcdsaPublic::new(curve, &a.public()).unwrap();
        assert_eq!(of_a.to_der(), of_p.to_der());
        let (by_a, mut by_p) = (a.sign(b"text").unwrap(), p.sign(b"text").unwrap());
        assert!(of_p.verify(b"text", &by_a) && of_a.verify(b"text", &by_p));
        assert!(!of_p.verify(b"test", &by_a) && !of_p.verify(b"text", &by_a[1..]));
        by_p[5] ^= 1;
        assert!(!of_p.verify(b"text", &by_p) && !of_a.verify(b"text", &by_p));
        let read = pure::EcdsaKey::from_der(curve, Private::Pkcs8, &a.to_pkcs8().unwrap()).unwrap();
        assert_eq!(read.public(), a.public());
        let read = aws::EcdsaKey::from_der(curve, Private::Pkcs8, &p.to_pkcs8().unwrap()).unwrap();
        assert_eq!(read.public(), a.public());
        let another = if curve == Curve::P256 { Curve::P384 } else { Curve::P256 };
        assert!(pure::EcdsaKey::from_der(another, Private::Pkcs8, &a.to_pkcs8().unwrap()).is_none());
    }
    let private = bytes(10, 32);
    let [a, p] = [
        aws::EcdsaKey::repeatable(&private).unwrap().sign(b"text"),
        pure::EcdsaKey::repeatable(&private).unwrap().sign(b"text"),
    ];
    assert_eq!(a, p, "RFC 6979");
}
