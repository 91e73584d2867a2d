//! Whatever the events and their order, the cache ends up as if it had listed the result.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::cache::Wakes;
use crate::model::Pairs;

/// Shape of a pod: enough variety to move it between all indexes.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    name: usize,
    incarnation: u8,
    version: u8,
    leads: bool,
    set: bool,
    flags: u8,
}

#[derive(Clone, Debug)]
enum Event {
    Apply(Shape),
    Delete(Shape),
    Relist(Vec<Shape>),
}

const NAMES: [&str; 6] = ["x-0", "x-0-1", "x-0-2", "x-1", "x-1-1", "stray"];

impl Shape {
    fn pod(&self) -> Pod {
        let name = NAMES[self.name];
        let has = |bit: u8| self.flags & (1 << bit) != 0;
        let labels = [
            (label::NAME, if self.set { "x" } else { "y" }),
            (label::WORKER_INDEX, if self.leads { "0" } else { "1" }),
            (label::GROUP_INDEX, "0"),
        ];
        let pending = has(3).then_some((annotation::GROUP_RECREATE_PENDING, "true"));
        let owned = |text: &str| Box::<str>::from(text);
        Pod {
            meta: Meta {
                key: key(name),
                uid: format!("{name}-{}", self.incarnation).as_str().into(),
                resource_version: (u32::from(self.version) + 1).to_string().into(),
                deleted: has(2).then_some(jiff::Timestamp::UNIX_EPOCH),
                labels: pairs(&labels),
                annotations: pairs(pending.as_slice()),
                finalizers: has(1)
                    .then(|| owned(BUDGET_FINALIZER))
                    .into_iter()
                    .collect(),
                ..Meta::ours(&Default::default())
            },
            gates: has(0)
                .then(|| owned(REPLACEMENT_GATE))
                .into_iter()
                .collect(),
            scheduling_group: owned(""),
            node: owned(if has(4) { "n1" } else { "" }),
            ..k8s_openapi::api::core::v1::Pod::default().into()
        }
    }
}

fn pairs(pairs: &[(&str, &str)]) -> Pairs {
    let map = pairs
        .iter()
        .map(|(key, value)| (key.to_string(), value.to_string()));
    Pairs::all(Some(&map.collect()))
}

fn shape() -> impl Strategy<Value = Shape> {
    (
        0..NAMES.len(),
        0..3u8,
        0..4u8,
        any::<bool>(),
        any::<bool>(),
        0..32u8,
    )
        .prop_map(|(name, incarnation, version, leads, set, flags)| Shape {
            name,
            incarnation,
            version,
            leads,
            set,
            flags,
        })
}

fn event() -> impl Strategy<Value = Event> {
    let list = prop::collection::btree_map(0..NAMES.len(), shape(), 0..NAMES.len());
    let list = list.prop_map(|list| {
        list.into_iter()
            .map(|(name, shape)| Shape { name, ..shape })
            .collect::<Vec<_>>()
    });
    prop_oneof![
        4 => shape().prop_map(Event::Apply),
        2 => shape().prop_map(Event::Delete),
        1 => list.prop_map(Event::Relist),
    ]
}

fn play(cache: &mut Cache, truth: &mut BTreeMap<ObjectKey, Pod>, event: Event) -> Wakes {
    match event {
        Event::Apply(shape) => {
            truth.insert(shape.pod().key().clone(), shape.pod());
            cache.apply_pods(Change::Applied(shape.pod()))
        }
        Event::Delete(shape) => {
            let last = truth.remove(shape.pod().key());
            cache.apply_pods(Change::Deleted(last.unwrap_or_else(|| shape.pod())))
        }
        Event::Relist(shapes) => {
            let pods: Vec<_> = shapes.iter().map(Shape::pod).collect();
            *truth = pods
                .iter()
                .map(|pod| (pod.key().clone(), pod.clone()))
                .collect();
            cache.apply_pods(Change::Relisted(pods))
        }
    }
}

proptest! {
    #[test]
    fn krs_44_events_lead_where_a_list_would(events in prop::collection::vec(event(), 0..30)) {
        let (mut cache, mut truth) = (Cache::default(), BTreeMap::new());
        for event in events {
            play(&mut cache, &mut truth, event);
        }
        for group in cache.all().groups {
            let uids: Vec<_> = cache.group(&group).into_iter().flat_map(|group| group.tombstones())
                .map(|tombstone| tombstone.pod.meta.uid.clone()).collect();
            let leader = cache.pod(&group);
            let lives = leader.is_some_and(|leader| leader.is_leader() && !leader.meta.is_terminating());
            prop_assert!(uids.is_empty() || lives, "FAIL-21: tombstones without a living leader in {group}");
            for uid in uids {
                cache.handled(&group, &uid);
            }
        }
        let mut listed = Cache::default();
        listed.apply_pods(Change::Relisted(truth.into_values().collect()));
        // What was once the newest version is history; all else must be as if listed.
        listed.newest.clone_from(&cache.newest);
        prop_assert_eq!(cache, listed);
    }

    #[test]
    fn fail_20_no_worker_goes_unnoticed(events in prop::collection::vec(event(), 1..30)) {
        let (mut cache, mut truth) = (Cache::default(), BTreeMap::new());
        for event in events {
            let before = cache.clone();
            let wakes = play(&mut cache, &mut truth, event);
            for pod in before.pods.objects.values().filter(|pod| !pod.is_leader()) {
                let still_there = truth.get(pod.key()).is_some_and(|now| now.meta.uid == pod.meta.uid);
                let group = before.pods.groups.iter().find(|(_, group)| group.workers(&before).any(|p| p == pod));
                let (group, _) = group.expect("every worker has a group");
                let same_leader = |cache: &Cache| cache.pod(group)
                    .filter(|leader| leader.is_leader() && !leader.meta.is_terminating())
                    .map(|leader| leader.meta.uid.clone());
                let kept = same_leader(&before).is_some() && same_leader(&before) == same_leader(&cache);
                if still_there || !kept {
                    continue;
                }
                let mut tombstones = cache.group(group).into_iter().flat_map(|group| group.tombstones());
                prop_assert!(tombstones.any(|t| t.pod.key() == pod.key()), "no tombstone of {}", pod.key());
                prop_assert!(wakes.groups.contains(group));
            }
        }
    }
}
