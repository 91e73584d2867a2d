//! Families of traces. Objects have few names, so that requests meet what others left.

use serde_json::{Value, json};

use super::{Fence, Named, Operation};
use crate::actors::kubelet::MANUAL;
use crate::random::Random;
use crate::store::{Cascade, Kind};

/// A family: its name, whether our controllers take part, and how its traces are made.
type Family = (&'static str, bool, fn(&mut Random) -> Vec<Operation>);

/// All families.
pub const ALL: [Family; 6] = [
    ("objects", false, objects),
    ("owners", false, owners),
    ("sets", false, sets),
    ("pods of sets", false, pods_of_sets),
    ("deletion of sets", false, deletion_of_sets),
    ("groups", true, groups),
];

/// Requests of a trace.
const LENGTH: usize = 12;

fn named(kind: Kind, name: &str) -> Named {
    Named {
        kind,
        name: name.to_owned(),
    }
}

fn one<T: Clone>(random: &mut Random, of: &[T]) -> T {
    random.pick(of).cloned().unwrap_or_else(|| of[0].clone())
}

fn fence(random: &mut Random) -> Fence {
    one(
        random,
        &[
            Fence::Absent,
            Fence::Absent,
            Fence::Right,
            Fence::Right,
            Fence::Wrong,
        ],
    )
}

fn cascade(random: &mut Random) -> Option<Cascade> {
    one(
        random,
        &[
            None,
            Some(Cascade::Background),
            Some(Cascade::Foreground),
            Some(Cascade::Orphan),
        ],
    )
}

fn many(random: &mut Random, make: impl Fn(&mut Random) -> Operation) -> Vec<Operation> {
    (0..LENGTH).map(|_| make(random)).collect()
}

/// Services, revisions and pods by themselves: names, preconditions, finalizers, apply.
fn objects(random: &mut Random) -> Vec<Operation> {
    many(random, |random| {
        let target = named(
            one(
                random,
                &[Kind::Service, Kind::ControllerRevision, Kind::Pod],
            ),
            one(random, &["a", "a", "b"]),
        );
        match random.below(12) {
            0..4 => Operation::Create(target.clone(), plain(random, target.kind)),
            4 => Operation::Generate(named(target.kind, "g-"), plain(random, target.kind)),
            5 | 6 => Operation::Apply(
                target.clone(),
                apply_fence(random),
                applied(random, target.kind),
            ),
            7 | 8 => {
                let body = json!({"metadata": metadata_patch(random)});
                Operation::Patch(target, fence(random), fence(random), body)
            }
            9 => {
                let body = match target.kind {
                    Kind::ControllerRevision => json!({"revision": random.below(3)}),
                    Kind::Pod => json!({"spec": {"hostname": "x"}}),
                    _ => json!({"spec": {"publishNotReadyAddresses": random.chance(500)}}),
                };
                Operation::Patch(target, fence(random), fence(random), body)
            }
            _ => Operation::Delete(
                target,
                fence(random),
                fence(random),
                cascade(random),
                one(random, &[None, None, Some(0)]),
            ),
        }
    })
}

fn apply_fence(random: &mut Random) -> Fence {
    // Our controller always sends a UID: without one an apply would create.
    one(random, &[Fence::Right, Fence::Right, Fence::Wrong])
}

fn image(random: &mut Random) -> &'static str {
    one(
        random,
        &["example.com/a:1", "example.com/a:2", "example.com/a:3"],
    )
}

fn labels(random: &mut Random) -> Value {
    let mut labels = json!({"app": "x"});
    for name in ["one", "two"] {
        if random.chance(400) {
            labels[name] = json!(one(random, &["1", "2"]));
        }
    }
    labels
}

fn metadata_patch(random: &mut Random) -> Value {
    match random.below(6) {
        0 => json!({"finalizers": ["example.com/hold"]}),
        1 | 2 => json!({"finalizers": null}),
        3 => json!({"labels": {"one": null}}),
        _ => json!({"labels": labels(random), "annotations": {"note": one(random, &["1", "2"])}}),
    }
}

fn plain(random: &mut Random, kind: Kind) -> Value {
    let mut metadata = json!({"labels": labels(random)});
    if random.chance(300) {
        metadata["finalizers"] = json!(["example.com/hold"]);
    }
    match kind {
        Kind::ControllerRevision => {
            json!({"metadata": metadata, "data": {"a": 1}, "revision": random.below(2)})
        }
        Kind::Pod => {
            if random.chance(300) {
                metadata["annotations"] = json!({MANUAL: "true"});
            }
            json!({"metadata": metadata, "spec": {"containers": [{"name": "c", "image": image(random)}]}})
        }
        _ => json!({"metadata": metadata, "spec": headless()}),
    }
}

fn headless() -> Value {
    json!({"clusterIP": "None", "selector": {"app": "x"}, "publishNotReadyAddresses": true})
}

fn applied(random: &mut Random, kind: Kind) -> Value {
    let metadata = json!({"labels": labels(random)});
    match kind {
        Kind::Service => json!({"metadata": metadata, "spec": headless()}),
        _ => json!({"metadata": metadata}),
    }
}

/// Services that own each other: what the garbage collector does.
fn owners(random: &mut Random) -> Vec<Operation> {
    // Whether a dependent that does not block its owner goes before the owner is held by something else is a race.
    let is_held = random.chance(400);
    let mut operations: Vec<Operation> = Vec::new();
    for (index, name) in ["a", "b", "c", "d"].into_iter().enumerate() {
        let mut references = Vec::new();
        for owner in ["a", "b", "c"].into_iter().take(index) {
            if random.chance(600) {
                references.push(json!({"apiVersion": "v1", "kind": "Service", "name": owner,
                    "blockOwnerDeletion": is_held || random.chance(600), "controller": references.is_empty()}));
            }
        }
        let mut body = json!({"metadata": {"ownerReferences": references}, "spec": headless()});
        if is_held && random.chance(500) {
            body["metadata"]["finalizers"] = json!(["example.com/hold"]);
        }
        operations.push(Operation::Create(named(Kind::Service, name), body));
    }
    operations.extend((0..5).map(|_| {
        let target = named(Kind::Service, one(random, &["a", "a", "b", "c", "d"]));
        match random.below(5) {
            0 => Operation::Patch(
                target,
                Fence::Absent,
                Fence::Absent,
                json!({"metadata": {"finalizers": null}}),
            ),
            1 => Operation::Patch(
                target,
                Fence::Absent,
                Fence::Absent,
                json!({"metadata": {"ownerReferences": null}}),
            ),
            _ => Operation::Delete(target, Fence::Right, Fence::Absent, cascade(random), None),
        }
    }));
    operations
}

/// A set with up to four pods.
fn stateful_set(random: &mut Random) -> Value {
    let mut spec = json!({
        "replicas": 1 + random.below(3),
        "serviceName": "x",
        "podManagementPolicy": one(random, &["Parallel", "Parallel", "OrderedReady"]),
        "selector": {"matchLabels": {"app": "x"}},
        "template": {
            "metadata": {"labels": {"app": "x"}},
            "spec": {"containers": [{"name": "c", "image": "example.com/a:1"}]},
        },
    });
    if random.chance(400) {
        spec["ordinals"] = json!({"start": 1});
    }
    if random.chance(500) {
        let rolling = json!({"partition": random.below(3), "maxUnavailable": budget(random)});
        spec["updateStrategy"] = json!({"type": "RollingUpdate", "rollingUpdate": rolling});
    }
    let mut metadata = json!({"labels": {"app": "x"}});
    if random.chance(300) {
        metadata["annotations"] = json!({"note": "1"});
    }
    json!({"metadata": metadata, "spec": spec})
}

fn budget(random: &mut Random) -> Value {
    one(random, &[json!(1), json!(2), json!("50%")])
}

fn template(image: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
}

/// An edit of the set as users and controllers make them.
fn edit(random: &mut Random) -> Operation {
    let set = named(Kind::StatefulSet, "s");
    let patch = |body| Operation::Patch(set.clone(), Fence::Absent, Fence::Absent, body);
    match random.below(12) {
        0..4 => patch(template(image(random))),
        4 => patch(json!({"spec": {"replicas": random.below(5)}})),
        5 => Operation::Scale(set, i64::try_from(random.below(5)).unwrap_or(0)),
        6 | 7 => patch(
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": random.below(4)}}}}),
        ),
        8 => patch(
            json!({"spec": {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": budget(random)}}}}),
        ),
        9 => patch(json!({"spec": {"ordinals": {"start": random.below(3)}}})),
        10 => patch(
            json!({"metadata": {"annotations": {"note": one(random, &["1", "2"])}, "labels": {"one": "1"}}}),
        ),
        _ => patch(one(
            random,
            &[
                json!({"spec": {"serviceName": "y"}}),
                json!({"spec": {"podManagementPolicy": "Parallel"}}),
                json!({"spec": {"selector": {"matchLabels": {"app": "y"}}}}),
                json!({"spec": {"replicas": -1}}),
                json!({"spec": {"template": {"metadata": {"labels": {"app": "y"}}}}}),
            ],
        )),
    }
}

/// One set that is edited.
fn sets(random: &mut Random) -> Vec<Operation> {
    let mut operations = vec![Operation::Create(
        named(Kind::StatefulSet, "s"),
        stateful_set(random),
    )];
    operations.extend((0..8).map(|_| edit(random)));
    operations
}

/// A set whose pods are deleted, fail, become ready by hand, and change their labels.
fn pods_of_sets(random: &mut Random) -> Vec<Operation> {
    let mut set = stateful_set(random);
    let by_hand = random.chance(500);
    if by_hand {
        set["spec"]["template"]["metadata"]["annotations"] = json!({MANUAL: "true"});
    }
    let mut operations = vec![Operation::Create(named(Kind::StatefulSet, "s"), set)];
    operations.extend((0..9).map(|_| {
        let pod = named(Kind::Pod, one(random, &["s-0", "s-1", "s-1", "s-2", "s-3"]));
        match random.below(10) {
            0..3 => edit(random),
            3 | 4 => Operation::PatchStatus(pod, fence(random), Fence::Absent, ready(true)),
            // KWOK leaves a running pod alone, a kubelet would make it ready again.
            5 if by_hand => Operation::PatchStatus(pod, Fence::Absent, Fence::Absent, ready(false)),
            6 => Operation::PatchStatus(
                pod,
                Fence::Absent,
                Fence::Absent,
                json!({"status": {"phase": "Failed"}}),
            ),
            7 => Operation::Patch(
                pod,
                Fence::Absent,
                Fence::Absent,
                json!({"metadata": {"labels": {"one": "1"}}}),
            ),
            _ => Operation::Delete(
                pod,
                fence(random),
                Fence::Absent,
                None,
                one(random, &[None, Some(0)]),
            ),
        }
    }));
    operations
}

fn ready(is_ready: bool) -> Value {
    let word = if is_ready { "True" } else { "False" };
    json!({"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": word}]}})
}

/// Sets that are deleted in each way, made anew, and find pods and revisions of their predecessors.
fn deletion_of_sets(random: &mut Random) -> Vec<Operation> {
    let set = named(Kind::StatefulSet, "s");
    let mut operations = vec![Operation::Create(set.clone(), stateful_set(random))];
    if random.chance(500) {
        operations.push(edit(random));
    }
    for _ in 0..2 {
        // What is done to a set that is going is left to chance by the garbage collector.
        let is_held = random.chance(300);
        let pod = named(Kind::Pod, one(random, &["s-0", "s-1"]));
        if is_held {
            let hold = json!({"metadata": {"finalizers": ["example.com/hold"]}});
            let pod = pod.clone();
            operations.push(Operation::Patch(pod, Fence::Absent, Fence::Absent, hold));
        }
        operations.push(Operation::Delete(
            set.clone(),
            fence(random),
            Fence::Absent,
            cascade(random),
            None,
        ));
        if is_held || random.chance(500) {
            let release = json!({"metadata": {"finalizers": null}});
            operations.push(Operation::Patch(pod, Fence::Absent, Fence::Absent, release));
        } else {
            operations.push(Operation::Delete(
                pod,
                Fence::Absent,
                Fence::Absent,
                None,
                None,
            ));
        }
        operations.push(Operation::Create(set.clone(), stateful_set(random)));
        operations.push(edit(random));
    }
    operations
}

/// A LeaderWorkerSet under our controllers, edited and damaged.
fn groups(random: &mut Random) -> Vec<Operation> {
    let set = named(Kind::LeaderWorkerSet, "demo");
    let mut operations = vec![Operation::Create(set.clone(), groups_wanted(random))];
    operations.extend((0..5).map(|_| {
        let patch = |body| Operation::Patch(set.clone(), Fence::Absent, Fence::Absent, json!({"spec": body}));
        match random.below(10) {
            0 | 1 => patch(json!({"leaderWorkerTemplate": {"workerTemplate": group_pod(random)}})),
            2 => patch(json!({"leaderWorkerTemplate": {"size": 1 + random.below(3)}})),
            3 => Operation::Scale(set.clone(), i64::try_from(random.below(4)).unwrap_or(0)),
            4 => patch(json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"partition": random.below(3)}}})),
            5 => patch(json!({"networkConfig": {"subdomainPolicy": one(random, &["Shared", "UniquePerReplica"])}})),
            6 => delete(random, Kind::StatefulSet, &["demo", "demo-0", "demo-1"]),
            7 => delete(random, Kind::Service, &["demo", "demo-0"]),
            _ => delete(random, Kind::Pod, &["demo-0", "demo-1", "demo-0-1", "demo-1-1", "demo-1-2"]),
        }
    }));
    if random.chance(500) {
        operations.push(Operation::Delete(
            set,
            Fence::Right,
            Fence::Absent,
            cascade(random),
            None,
        ));
    }
    operations
}

fn delete(random: &mut Random, kind: Kind, names: &[&str]) -> Operation {
    let target = named(kind, one(random, names));
    Operation::Delete(target, Fence::Right, Fence::Absent, None, None)
}

fn group_pod(random: &mut Random) -> Value {
    json!({"spec": {"containers": [{"name": "c", "image": image(random)}]}})
}

fn groups_wanted(random: &mut Random) -> Value {
    let mut group = json!({
        "size": 1 + random.below(3),
        "restartPolicy": one(random, &["RecreateGroupOnPodRestart", "None"]),
        "workerTemplate": group_pod(random),
    });
    if random.chance(300) {
        group["leaderTemplate"] = group_pod(random);
    }
    let (surge, partition) = (random.below(2), random.below(2));
    // With a partition, whether a new set surges for a moment depends on which group is ready first.
    let surge = if partition == 0 { surge } else { 0 };
    let rolling = json!({"maxUnavailable": 1, "maxSurge": surge, "partition": partition});
    json!({"spec": {
        "replicas": 1 + random.below(3),
        "startupPolicy": one(random, &["LeaderCreated", "LeaderReady"]),
        "leaderWorkerTemplate": group,
        "rolloutStrategy": {"type": "RollingUpdate", "rollingUpdateConfiguration": rolling},
    }})
}
