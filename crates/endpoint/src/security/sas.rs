//! The security associations of what HIP negotiated.

use polypath_esp::{EspConfig, Inbound, Keys, Outbound, SetupError, Spi};
use polypath_hip::SaPair;
use polypath_hip::keymat::EspKeys;

use super::config::SecurityConfig;

/// Both SAs of a pair.
pub(super) fn associations(
    config: &SecurityConfig,
    pair: &SaPair,
) -> Result<(Inbound, Outbound), SetupError> {
    let esp = EspConfig {
        suite: pair.suite,
        allow_insecure: config.simulation,
        replay_window: config.replay_window,
        rekey_after: config.rekey_after,
        ..EspConfig::default()
    };
    let keys = |keys: &EspKeys| Keys::new(&keys.encryption, &keys.authentication);
    let (incoming, outgoing) = (keys(&pair.keys.incoming), keys(&pair.keys.outgoing));
    let (inbound, outbound) = (Spi(pair.inbound), Spi(pair.outbound));
    Ok((Inbound::new(inbound, esp.clone(), &incoming)?, Outbound::new(outbound, esp, &outgoing)?))
}
