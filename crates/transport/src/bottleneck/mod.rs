//! Which paths lead through one bottleneck, as far as what is measured tells.
//!
//! A [`Detector`](detector::Detector) is fed with facts of each path (what packets waited in queues, what was lost) and
//! says of two paths how alike they are. [`Judge`](judge::Judge) turns that into a verdict, with hysteresis: what it
//! held before is held until the facts are clearly against it. Neither knows of windows; who asks for a verdict acts on it.

pub(crate) mod concordance;
pub(crate) mod config;
pub(crate) mod detector;
pub(crate) mod judge;
pub(crate) mod series;
pub(crate) mod statistics;
pub(crate) mod verdict;

pub(crate) use config::Detection;
pub use config::DetectionConfig;
pub(crate) use verdict::Verdict;
