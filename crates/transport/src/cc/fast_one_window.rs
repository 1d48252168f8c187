//! "Simple FAST" (Arshad and Mian, §5.2): one FAST window over all paths, as a TCP has it that does not know of them.

use super::controller::Controller;
use super::fast::{Fast, FastConfig};
use super::law::{Env, Law};
use super::one_window::OneWindow;
use crate::about::About;
use crate::facts::ConfigError;

/// One FAST window over all paths.
#[derive(Debug)]
pub(crate) struct FastOneWindow;

impl Law for FastOneWindow {
    type Config = FastConfig;
    const ABOUT: About = About {
        name: "fast_one_window",
        help: "Reproduction of \"simple FAST\": one FAST window over all paths",
    };

    fn coupled_by(_: &FastConfig) -> Option<(&'static str, &'static str)> {
        Some(("algorithm", Self::ABOUT.name))
    }

    fn check(config: &FastConfig) -> Result<(), ConfigError> {
        config.check()
    }

    fn build(config: FastConfig, _: &Env) -> Box<dyn Controller> {
        Box::new(OneWindow::new(Fast::new(config, 0)))
    }
}
