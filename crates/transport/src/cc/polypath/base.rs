//! The law of a context.

use polypath_wire::Instant;

use super::config::{BaseLaw, PolypathConfig};
use crate::cc::cubic::{Cubic, CubicConfig};
use crate::cc::law::Law;
use crate::cc::newreno::{NewReno, NewRenoConfig};
use crate::cc::per_path::{Algorithm, WindowLaw};

/// A law that can be copied: contexts part.
#[derive(Clone, Debug)]
pub(super) enum Base {
    Newreno(NewReno),
    Cubic(Cubic),
}

impl Base {
    pub(super) fn new(config: &PolypathConfig, now: Instant, mss: u32) -> Self {
        let initial_window = config.initial_window;
        match config.base {
            BaseLaw::Newreno => {
                let config = NewReno::of_today(NewRenoConfig { initial_window, ..Default::default() });
                Self::Newreno(NewReno::new(config, mss))
            }
            BaseLaw::Cubic => {
                let config = Cubic::of_today(CubicConfig { initial_window, ..Default::default() });
                Self::Cubic(Cubic::new(config, now, mss))
            }
        }
    }

    pub(super) fn law(&self) -> &dyn Algorithm {
        match self {
            Self::Newreno(law) => law,
            Self::Cubic(law) => law,
        }
    }

    pub(super) fn law_mut(&mut self) -> &mut dyn Algorithm {
        match self {
            Self::Newreno(law) => law,
            Self::Cubic(law) => law,
        }
    }

    /// The window is `bytes` smaller, without a loss; where it was is where it slows down when it grows.
    pub(super) fn give_up(&mut self, bytes: f64) {
        match self {
            Self::Newreno(law) => law.give_up(bytes),
            Self::Cubic(law) => law.give_up(bytes),
        }
    }

    /// Lets the window grow by `bytes`, whatever the law says.
    pub(super) fn grow(&mut self, bytes: f64) {
        match self {
            Self::Newreno(law) => law.state_mut().grow(bytes),
            Self::Cubic(law) => law.state_mut().grow(bytes),
        }
    }
}
