//! The loss policies by name. Each describes itself in its own file ([`Rule`]); this lists them.

use polypath_wire::Duration;
use serde::{Deserialize, Serialize};

use super::addr::Addr;
use super::dupack::{Dupack, DupackConfig};
use super::head_dupacks::HeadDupacks;
use super::policy::LossPolicy;
use super::rack::{Rack, RackConfig};
use super::rule::{Rule, ThresholdConfig};
use super::virtual_queue::VirtualQueue;
use crate::about::{About, Registry};
use crate::facts::ConfigError;

/// One variant per policy, with the policy's parameters; ADDR holds another of them.
macro_rules! policies {
    ($($variant:ident($config:ty) => $policy:ty,)+) => {
        /// Which loss policy, with its parameters. What each is says [`Registry::ALL`]. The retransmission timer stands behind
        /// all of them.
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "policy", rename_all = "snake_case", deny_unknown_fields)]
        pub enum LossConfig {
            $(
                #[doc = concat!("The parameters of `", stringify!($policy), "`.")]
                $variant($config),
            )+
            /// Another policy, and what it judges lost may still arrive for a while: ADDR (Polishchuk and Gurtov, §IV.D).
            Addr {
                /// Allowable delay due to reordering, ms; above zero and below the smallest round trip time.
                #[serde(with = "polypath_wire::millis")]
                #[cfg_attr(feature = "schema", schemars(with = "f64"))]
                allowance: Duration,
                /// What judges.
                inner: Box<LossConfig>,
            },
        }

        impl Registry for LossConfig {
            const TAG: &'static str = "policy";
            const ALL: &'static [About] = &[$(<$policy>::ABOUT,)+ Addr::ABOUT];
        }

        impl LossConfig {
            /// The policy for a connection that did or did not agree on SACK.
            pub(crate) fn build(&self, sack: bool) -> Box<dyn LossPolicy> {
                match self {
                    $(Self::$variant(config) => <$policy>::build(*config, sack),)+
                    Self::Addr { allowance, inner } => Box::new(Addr::new(inner.build(sack), *allowance)),
                }
            }

            /// Whether its parameters mean something where the smallest round trip time is `min_rtt`, if that is
            /// known.
            pub fn check(&self, min_rtt: Option<Duration>) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => <$policy>::check(config, min_rtt),)+
                    Self::Addr { inner, .. } if matches!(**inner, Self::Addr { .. }) => Err(ConfigError::new(
                        "loss.inner",
                        "ADDR within ADDR",
                        "one allowance is enough: leave out the inner",
                    )),
                    Self::Addr { allowance, inner } => {
                        Addr::check(*allowance, min_rtt).and_then(|()| inner.check(min_rtt))
                    }
                }
            }
        }
    };
}

policies! {
    Dupack(DupackConfig) => Dupack,
    Rack(RackConfig) => Rack,
    Sack(ThresholdConfig) => VirtualQueue,
    HeadDupacks(ThresholdConfig) => HeadDupacks,
}

impl Default for LossConfig {
    fn default() -> Self {
        Self::Rack(Default::default())
    }
}
