//! What is stored about the gang of one group, as the cache has it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{Part, carried};
use crate::admission::Environment;
use crate::cache::Cache;
use crate::model::{Lws, Pod, PodGroup, Workload};

/// Who schedules a group, and what tells it of the gang.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct View {
    /// Configuration of this process, and what the API server serves.
    pub environment: Environment,
    /// Workloads that the set controls.
    pub workloads: Vec<Arc<Workload>>,
    /// PodGroups under the names that pods of the group name, by name.
    pub pod_groups: BTreeMap<Arc<str>, Arc<PodGroup>>,
}

impl View {
    /// Nothing but the configuration is looked for without `spec.scheduling`.
    pub(crate) fn observe(lws: &Lws, leader: &Pod, cache: &Cache) -> Self {
        let environment = cache.environment();
        if lws.spec.scheduling.is_none() {
            return Self {
                environment,
                ..Self::default()
            };
        }
        let workloads: Vec<_> = cache.workloads_by(&lws.meta.uid).cloned().collect();
        let of_workers = workloads
            .first()
            .map(|workload| Part::Workers.of_group(carried(leader, &workload.key().name), leader));
        let names = [leader.scheduling_group.to_string()];
        let pod_groups = names
            .iter()
            .chain(&of_workers)
            .filter_map(|name| cache.pod_group(&leader.key().sibling(name)))
            .map(|group| (group.key().name.clone(), group.clone()))
            .collect();
        Self {
            environment,
            workloads,
            pod_groups,
        }
    }
}
