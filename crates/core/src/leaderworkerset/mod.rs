//! The controller of LeaderWorkerSets with Ordinal identity (reconcile-ordinal sections 3 to 7, 10 and 11).

mod meaning;
pub mod revision;
pub mod rollout;
