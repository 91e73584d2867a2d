//! Gang scheduling: what a set asks of the scheduler, and how that is told in Workload and PodGroup objects (gang-scheduling.md C to E).
//!
//! Decides from the spec, the sizes of the groups and the stored objects which objects are wanted, and whether what is stored may stand. It never
//! takes anything over that is not the set's own. The steps are put into a pass by the controllers of sets and of groups.

mod count;
mod drift;
mod fault;
mod groups;
mod level;
mod names;
mod pod_groups;
mod terms;
mod view;
mod workload;

#[cfg(test)]
mod tests;

pub use fault::{Fault, Reason};
pub use level::Level;
pub use terms::Template;
pub use view::View;

pub(crate) use count::least_of_set;
pub(crate) use groups::{of_group, of_set};
pub(crate) use names::{
    INCARNATION_LENGTH, Part, carried, incarnation, pod_group_name, workload_name,
};
pub(crate) use pod_groups::{WantedGroup, ensure as ensure_pod_group, judge as judge_pod_group};
pub(crate) use terms::{sizes, templates};
pub(crate) use workload::{ensure as ensure_workload, find as find_workload};

/// What pods are told about the gang that they belong to (NAT-28).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// What one gang covers.
    pub level: Level,
    /// The set's own Workload name, with or without an incarnation.
    pub workload: String,
}
