//! Types, names and schemas of the LeaderWorkerSet and DisaggregatedSet APIs.

#![deny(missing_docs)]

pub mod names;
