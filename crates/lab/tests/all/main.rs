//! The laboratory by what its users see: from specs to runs, from runs to numbers, from numbers to pages.

mod assignments;
mod blocking;
mod delays;
mod harm;
mod kept;
mod links;
mod report;
mod runs;
mod secure;
mod supplied;
mod values;
mod words;
