//! Which groups, ciphers and suites two hosts agree on.
#![allow(clippy::unwrap_used, reason = "test helpers")]

use crate::hosts::*;
use polypath_hip::dh::DhGroup;
use polypath_hip::suite::{EspSuite, HipCipher};
use polypath_hip::*;
use polypath_wire::Duration;
use polypath_wire::hip::NotifyType;

const LONG: Duration = Duration::from_secs(100);

#[test]
fn every_combination_of_algorithms() {
    let kinds = [KeyKind::P256, KeyKind::P384, KeyKind::Rsa];
    let kinds = kinds.map(|kind| if kind.is_supported() { kind } else { KeyKind::P384 });
    for (n, kind) in kinds.into_iter().enumerate() {
        for group in [DhGroup::Modp1536, DhGroup::Modp3072, DhGroup::P256, DhGroup::P384, DhGroup::P521] {
            for cipher in [HipCipher::Null, HipCipher::Aes128Cbc, HipCipher::Aes256Cbc] {
                let suite =
                    [EspSuite::Aes256CbcHmacSha256, EspSuite::Chacha20Poly1305, EspSuite::NullHmacSha256][n];
                let config = HipConfig {
                    dh_groups: vec![group],
                    hip_ciphers: vec![cipher],
                    esp_suites: vec![suite],
                    encrypt_host_id: true,
                    ..HipConfig::default()
                };
                let mut pair = Pair::new([config.clone(), config], [kind, kinds[(n + 1) % 3]]);
                pair.connect(0);
                pair.run(LONG);
                assert_eq!(pair.states(), [State::Established; 2], "{kind:?} {group:?} {cipher:?}");
                pair.assert_sas_match();
                assert_eq!(pair.sas(0)[0].suite, suite);
            }
        }
    }
}

#[test]
fn chacha20_comes_first_where_either_host_computes_aes_slowly() {
    for (slow, suite) in [
        ([false, false], EspSuite::Aes128GcmImplicit),
        ([true, false], EspSuite::Chacha20Poly1305),
        ([false, true], EspSuite::Chacha20Poly1305),
        ([true, true], EspSuite::Chacha20Poly1305),
    ] {
        let configs = slow.map(|slow_aes| HipConfig { slow_aes, ..HipConfig::of_today() });
        let mut pair = Pair::new(configs, [KeyKind::P384; 2]);
        pair.connect(0);
        pair.run(LONG);
        pair.assert_sas_match();
        assert_eq!(pair.sas(0)[0].suite, suite, "slow: {slow:?}");
    }
}

#[test]
fn nothing_in_common_is_said() {
    let only = |group| HipConfig { dh_groups: vec![group], ..HipConfig::default() };
    let mut pair = Pair::new([only(DhGroup::P256), only(DhGroup::P384)], [KeyKind::P256; 2]);
    pair.connect(0);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.state(0), State::EFailed);
    let failed = Event::Failed(Failure::NoProposal(NotifyType::NO_DH_PROPOSAL_CHOSEN));
    assert!(pair.events[0].contains(&failed));
}
