//! Names of Workloads and PodGroups (D.2, D.3).

use lws_api::names::{annotation, label};

use crate::identity::{is_safe_text, safe_digits};
use crate::model::{Lws, Pod};

/// Longest name of a Workload or PodGroup.
const MAX_NAME: usize = 253;
/// Random characters that tell one incarnation of a group from the next (NAT-35).
pub(crate) const INCARNATION_LENGTH: usize = 5;

/// The pods of a PodGroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Those of the whole set.
    Set,
    /// Those of a group.
    Group,
    /// The leader of a group.
    Leader,
    /// The workers of a group.
    Workers,
}

/// D.2, NAT-34: the name under which the Workload of a set is created.
pub(crate) fn workload_name(lws: &Lws) -> String {
    let printed = format!("(types.UID){}", lws.meta.uid);
    let suffix = format!("-{}", safe_digits(fnv_1a(printed.as_bytes())));
    shortened(&lws.key().name, &suffix)
}

fn fnv_1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash: u32, byte| {
        (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// D.2: the PodGroup of `part` of the group `group` in the revision `revision`, both as pods carry them.
pub(crate) fn pod_group_name(workload: &str, part: Part, group: &str, revision: &str) -> String {
    let suffix = match part {
        Part::Set => "-lws".to_owned(),
        Part::Group => format!("-{group}-{revision}"),
        Part::Leader => format!("-{group}-leader-{revision}"),
        Part::Workers => format!("-{group}-worker-{revision}"),
    };
    shortened(workload, &suffix)
}

/// The part before the suffix gives way when the name gets too long.
fn shortened(base: &str, suffix: &str) -> String {
    let room = MAX_NAME.saturating_sub(suffix.len());
    let base: String = base.chars().take(room).collect();
    format!("{base}{suffix}")
}

/// NAT-35: the Workload's name and the incarnation in the value that a leader carries; empty without one.
pub(crate) fn incarnation(value: &str) -> (&str, &str) {
    value.split_once('.').unwrap_or((value, ""))
}

/// NAT-35: what the workers of a leader carry as the name of the Workload `workload`.
pub(crate) fn carried<'a>(leader: &'a Pod, workload: &'a str) -> &'a str {
    let value = leader.meta.annotation(annotation::WORKLOAD_NAME);
    let (name, random) = incarnation(value);
    let is_well_formed =
        name == workload && (name == value || is_safe_text(random, INCARNATION_LENGTH));
    if is_well_formed { value } else { workload }
}

impl Part {
    /// Name of the PodGroup that pods of this part name, where they carry `workload` and the labels of `leader`.
    pub(crate) fn of_group(self, workload: &str, leader: &Pod) -> String {
        let (group, revision) = (
            leader.meta.label(label::GROUP_INDEX),
            leader.meta.label(label::REVISION),
        );
        pod_group_name(workload, self, group, revision)
    }
}
