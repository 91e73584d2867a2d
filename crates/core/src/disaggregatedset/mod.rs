//! The controller of DisaggregatedSets (reconcile-disaggregatedset).

pub mod planner;
