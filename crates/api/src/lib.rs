//! Types, names and schemas of the LeaderWorkerSet and DisaggregatedSet APIs.

#![deny(missing_docs)]
#![allow(
    clippy::duplicated_attributes,
    reason = "printer columns of equal type are attributes of their own"
)]

pub mod crd;
pub mod disaggregatedset;
pub mod leaderworkerset;
pub mod names;
pub mod rolescaler;
pub mod scheduling;
pub mod template;
pub mod wording;
