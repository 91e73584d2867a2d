//! The controller of DisaggregatedSets (reconcile-disaggregatedset).

pub mod executor;
pub mod planner;
pub mod targets;
