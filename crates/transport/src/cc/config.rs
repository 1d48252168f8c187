//! The controllers by name. Each describes itself in its own file ([`Law`]); this lists them.

use serde::{Deserialize, Serialize};

use super::bbr::{Bbr, BbrConfig};
use super::controller::Controller;
use super::coupled::Coupled;
use super::coupled::balia::Balia;
use super::coupled::lia::Lia;
use super::coupled::olia::Olia;
use super::cubic::{Cubic, CubicConfig};
use super::fast::{Fast, FastConfig};
use super::fast_one_window::FastOneWindow;
use super::law::{Env, Law};
use super::mhip_simple::{MhipSimple, MhipSimpleConfig};
use super::mhip_two_level::MhipTwoLevel;
use super::newreno::{NewReno, NewRenoConfig};
use super::polypath::{Polypath, PolypathConfig};
use super::rm_tcp::{RmTcp, RmTcpConfig};
use super::window::WindowConfig;
use super::wvegas::{WVegas, WVegasConfig};
use crate::about::{About, Registry};
use crate::external::External;
use crate::facts::ConfigError;

/// Makes controllers that the program supplies.
pub type ControllerMaker = dyn Fn(&Env) -> Box<dyn Controller> + Send + Sync;

/// One variant per law, with its parameters; everything else is what the law says.
macro_rules! laws {
    ($($variant:ident($config:ty) => $law:ty,)+) => {
        /// Which algorithm, with its parameters. What each is says [`Registry::ALL`].
        #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
        #[serde(tag = "algorithm", rename_all = "snake_case", deny_unknown_fields)]
        pub enum CcConfig {
            $(
                #[doc = concat!("The parameters of `", stringify!($law), "`.")]
                $variant($config),
            )+
            /// Supplied by the program that runs the connection, so none of [`Registry::ALL`].
            #[cfg_attr(feature = "schema", schemars(skip))]
            External(External<ControllerMaker>),
        }

        impl Registry for CcConfig {
            const TAG: &'static str = "algorithm";
            const ALL: &'static [About] = &[$(<$law>::ABOUT),+];
        }

        impl CcConfig {
            /// What hosts have that ask for none; an experiment has [`default`](Self::default).
            pub fn usual() -> Self {
                Self::Polypath(Default::default())
            }

            /// Name and help.
            pub fn about(&self) -> About {
                match self {
                    $(Self::$variant(_) => <$law>::ABOUT,)+
                    Self::External(_) => External::<ControllerMaker>::ABOUT,
                }
            }

            /// The key and the value that couple the windows of several paths, if any do, and so mean nothing over one only.
            pub fn coupled_by(&self) -> Option<(&'static str, &'static str)> {
                match self {
                    $(Self::$variant(config) => <$law>::coupled_by(config),)+
                    Self::External(_) => None,
                }
            }

            /// Whether its parameters mean something together.
            pub fn check(&self) -> Result<(), ConfigError> {
                match self {
                    $(Self::$variant(config) => <$law>::check(config),)+
                    Self::External(external) => external.check("cc.name"),
                }
            }

            /// The same as today's hosts have it: paced, with a slow start that watches where the path is full.
            #[must_use]
            pub fn of_today(self) -> Self {
                match self {
                    $(Self::$variant(config) => Self::$variant(<$law>::of_today(config)),)+
                    Self::External(_) => self,
                }
            }

            /// The controller. An external one that nobody supplied fails [`check`](Self::check); in its place stands NewReno.
            pub fn build(&self, env: &Env) -> Box<dyn Controller> {
                match self {
                    $(Self::$variant(config) => <$law>::build(config.clone(), env),)+
                    Self::External(External { maker: Some(maker), .. }) => maker(env),
                    Self::External(_) => NewReno::build(Default::default(), env),
                }
            }
        }
    };
}

laws! {
    Newreno(NewRenoConfig) => NewReno,
    Cubic(CubicConfig) => Cubic,
    Bbr(BbrConfig) => Bbr,
    Lia(WindowConfig) => Coupled<Lia>,
    Olia(WindowConfig) => Coupled<Olia>,
    Balia(WindowConfig) => Coupled<Balia>,
    Wvegas(WVegasConfig) => WVegas,
    Polypath(PolypathConfig) => Polypath,
    Fast(FastConfig) => Fast,
    FastOneWindow(FastConfig) => FastOneWindow,
    MhipSimple(MhipSimpleConfig) => MhipSimple,
    MhipTwoLevel(NewRenoConfig) => MhipTwoLevel,
    RmTcp(RmTcpConfig) => RmTcp,
}

impl Default for CcConfig {
    fn default() -> Self {
        Self::Newreno(Default::default())
    }
}
