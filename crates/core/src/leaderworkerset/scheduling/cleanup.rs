//! PodGroups that nothing needs any more (NAT-44).
//!
//! A PodGroup can show before the pods that name it, so it is deleted only once it has been found unneeded for a while, without a break.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;

use super::Prepared;
use crate::gang::{Level, Part, carried, pod_group_name};
use crate::intent::{IfFailed, Intent, Kind, Propagation, Step, Target, Why};
use crate::leaderworkerset::pass::Pass;
use crate::model::PodGroup;

/// How long a PodGroup must have been unneeded.
const PATIENCE: Duration = Duration::from_secs(30);

impl Pass<'_> {
    pub(super) fn clean_up(
        &mut self,
        level: Level,
        workload: &str,
        now: Timestamp,
        prepared: &mut Prepared,
    ) {
        let (snapshot, lws) = (self.snapshot, self.lws);
        let desired = self.desired(level, workload);
        let unneeded = snapshot.gangs.pod_groups.values().filter(|group| {
            group.meta.is_controlled_by(&lws.meta.uid)
                && !group.meta.is_terminating()
                && !desired.contains(&*group.key().name)
                && !snapshot.gangs.named.contains(&group.key().name)
        });
        for group in unneeded {
            prepared.unneeded.push(group.meta.uid.clone());
            let since = snapshot.gangs.unneeded.get(&group.key().name);
            match left(since.copied(), now) {
                Some(left) => self.wake(left),
                None => {
                    self.push(delete(group));
                }
            }
        }
    }

    /// Names of PodGroups that are wanted although no pod may name them yet.
    fn desired(&self, level: Level, workload: &str) -> BTreeSet<String> {
        let leaders = &self.snapshot.leaders;
        match level {
            Level::Set if self.lws.spec.replicas() > 0 => {
                BTreeSet::from([pod_group_name(workload, Part::Set, "", "")])
            }
            // Leaders name theirs themselves.
            Level::Set | Level::Replica => BTreeSet::new(),
            Level::Role => leaders
                .iter()
                .map(|leader| Part::Workers.of_group(carried(leader, workload), leader))
                .collect(),
        }
    }
}

/// How long to wait yet; `None` if it has been long enough.
fn left(since: Option<Timestamp>, now: Timestamp) -> Option<Duration> {
    let waited = since.map_or(Duration::ZERO, |since| {
        Duration::try_from(now.duration_since(since)).unwrap_or_default()
    });
    PATIENCE.checked_sub(waited).filter(|left| !left.is_zero())
}

fn delete(group: &PodGroup) -> Step {
    let intent = Intent::Delete {
        target: Target {
            kind: Kind::PodGroup,
            key: group.key().clone(),
        },
        uid: group.meta.uid.clone(),
        resource_version: Some(group.meta.resource_version.clone()),
        propagation: Propagation::Background,
    };
    Step::new(Why::PodGroupObsolete, intent).if_failed(IfFailed::Continue)
}
