//! From what HIP negotiated to what ESP works with.

use polypath_esp::{EspConfig, Inbound, Keys, Outbound, SetupError, Spi, Suite};
use polypath_hip::SaPair;
use polypath_hip::keymat::EspKeys;
use polypath_hip::suite::EspSuite;

use super::config::SecurityConfig;

/// The transform of a suite that HIP negotiates.
pub fn suite(negotiated: EspSuite) -> Suite {
    match negotiated {
        EspSuite::NullSha256 => Suite::NullHmacSha256,
        EspSuite::Aes128CbcSha256 => Suite::Aes128CbcHmacSha256,
        EspSuite::Aes256CbcSha256 => Suite::Aes256CbcHmacSha256,
        EspSuite::Aes128Gcm16 => Suite::Aes128Gcm,
        EspSuite::ChaCha20Poly1305 => Suite::Chacha20Poly1305,
    }
}

/// Both SAs of a pair.
pub(super) fn associations(
    config: &SecurityConfig,
    pair: &SaPair,
) -> Result<(Inbound, Outbound), SetupError> {
    let esp = EspConfig {
        suite: suite(pair.suite),
        replay_window: config.replay_window,
        rekey_after: config.rekey_after,
        ..EspConfig::default()
    };
    let keys = |keys: &EspKeys| Keys::new(&keys.encryption, &keys.authentication);
    let (incoming, outgoing) = (keys(&pair.keys.incoming), keys(&pair.keys.outgoing));
    let (inbound, outbound) = (Spi(pair.inbound), Spi(pair.outbound));
    Ok(if config.simulation {
        (
            Inbound::for_simulation(inbound, esp.clone(), &incoming)?,
            Outbound::for_simulation(outbound, esp, &outgoing)?,
        )
    } else {
        (Inbound::new(inbound, esp.clone(), &incoming)?, Outbound::new(outbound, esp, &outgoing)?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_suites_agree_on_numbers_and_key_lengths() {
        use EspSuite::*;
        for negotiated in [NullSha256, Aes128CbcSha256, Aes256CbcSha256, Aes128Gcm16, ChaCha20Poly1305] {
            let transform = suite(negotiated);
            let lens = (transform.encryption_key_len(), transform.authentication_key_len());
            assert_eq!(lens, negotiated.key_lens());
            assert!(transform.hip_number().is_none_or(|n| n == negotiated as u16));
        }
    }
}
