//! One slice through passes: what is created, scaled and deleted, in which order, and what is told.

use super::*;
use crate::disaggregatedset::sub_roles::{Counts, RoutedGroup};
use crate::disaggregatedset::targets::{Budget, LeafKey, LeafTarget};

fn role(name: &str, replicas: u64) -> RoleTarget {
    let role: Arc<str> = name.into();
    RoleTarget {
        role: role.clone(),
        replicas,
        leaves: vec![LeafTarget {
            key: LeafKey {
                role,
                sub_role: None,
            },
            replicas,
            is_external: false,
            budget: Budget {
                surge: 1,
                unavailable: 0,
            },
        }],
    }
}

/// A child of a revision that is named like its age: `1` is older than `2`.
fn child(revision: &str, role: &str, initial: u64, spec: u64) -> Child {
    Child {
        name: format!("{revision}-{role}").into(),
        role: role.into(),
        revision: revision.into(),
        created: Some(Timestamp::from_second(revision.parse().unwrap()).unwrap()),
        is_terminating: false,
        spec,
        initial: Some(initial),
        ready: Some(Ready {
            raw: spec,
            committed: spec,
        }),
        has_unschedulable_pod: false,
        routing: None,
    }
}

/// A new child of a partitioned role, whose groups have no labels yet.
fn undivided(spec: u64, initial: u64) -> Routing {
    let group = RoutedGroup {
        sub_role: None,
        is_coherent: true,
        is_ready: true,
        is_staying: true,
    };
    Routing {
        spec,
        initial: Some(initial),
        is_observed: true,
        groups: (0..spec).map(|ordinal| (ordinal, group.clone())).collect(),
        ..Routing::default()
    }
}

fn slice(revision: &str, roles: &[(&str, u64)], children: Vec<Child>) -> Slice {
    Slice {
        policy: DuringRollout::RolloutCoupled,
        revision: revision.into(),
        roles: roles
            .iter()
            .map(|(name, wanted)| role(name, *wanted))
            .collect(),
        children,
    }
}

fn create(role: &str, starting: u64, intended: u64) -> Act {
    Act::Create {
        role: role.into(),
        starting,
        intended,
    }
}

fn delete(child: &str) -> Act {
    let child = child.into();
    Act::Delete { child }
}

fn baseline(child: &str, initial: u64) -> Act {
    Act::Update {
        child: child.into(),
        initial: Some(initial),
        replicas: None,
    }
}

fn scale(child: &str, from: u64, to: u64) -> Act {
    Act::Update {
        child: child.into(),
        initial: None,
        replicas: Some(Scale {
            from,
            to,
            is_told: true,
        }),
    }
}

fn blocked(reason: &str) -> Event {
    let reason = reason.to_owned();
    Event::DrainBlocked { reason }
}

impl Child {
    /// Relabels at once; groups that are no longer wanted end, new ones come up Ready and without a label.
    fn route(&mut self, step: &Move) {
        let routing = self.routing.as_mut().unwrap().as_mut().unwrap();
        for (ordinal, to) in &step.relabelled {
            routing
                .groups
                .get_mut(ordinal)
                .unwrap()
                .sub_role
                .clone_from(to);
        }
        let Some(write) = step.write.clone() else {
            return;
        };
        let new = RoutedGroup {
            sub_role: None,
            is_coherent: true,
            is_ready: true,
            is_staying: true,
        };
        routing
            .groups
            .retain(|ordinal, _| *ordinal < write.replicas);
        for ordinal in 0..write.replicas {
            routing.groups.entry(ordinal).or_insert_with(|| new.clone());
        }
        self.spec = write.replicas;
        self.initial = write.initial;
        routing.spec = write.replicas;
        routing.initial = write.initial;
        routing.issued = write.issued;
        routing.baseline = write.baseline;
        routing.plan = write.plan;
    }
}

impl Slice {
    /// A role whose groups are divided, and its children with it.
    fn divided(mut self, name: &str, shares: &[(&str, u64)]) -> Self {
        let role = self.roles.iter_mut().find(|role| &*role.role == name);
        let role = role.unwrap();
        let whole = role.leaves.remove(0);
        role.leaves = shares
            .iter()
            .map(|(share, replicas)| LeafTarget {
                key: LeafKey {
                    role: whole.key.role.clone(),
                    sub_role: Some((*share).into()),
                },
                replicas: *replicas,
                ..whole.clone()
            })
            .collect();
        self
    }

    fn child(&mut self, name: &str) -> &mut Child {
        let mut children = self.children.iter_mut();
        children.find(|child| &*child.name == name).unwrap()
    }

    /// Does what a pass asks for; what is wanted is Ready at once.
    fn perform(&mut self, pass: &Pass) {
        for act in &pass.acts {
            match act {
                Act::Create {
                    role,
                    starting,
                    intended,
                } => {
                    let mut made = child(&self.revision, role, *intended, *starting);
                    let mut roles = self.roles.iter().filter(|of| of.role == *role);
                    if roles.any(|of| !of.counts().is_empty()) {
                        made.routing = Some(Ok(undivided(*starting, *intended)));
                    }
                    self.children.push(made);
                }
                Act::Update {
                    child,
                    initial,
                    replicas,
                } => {
                    let child = self.child(child);
                    child.initial = initial.or(child.initial);
                    if let Some(scale) = replicas {
                        assert_eq!(child.spec, scale.from);
                        child.spec = scale.to;
                        child.ready = Some(Ready {
                            raw: scale.to,
                            committed: scale.to,
                        });
                    }
                }
                Act::Route { child, step, .. } => self.child(child).route(step),
                Act::Delete { child } => self.children.retain(|found| found.name != *child),
            }
        }
    }
}

#[test]
fn dsr_cur_1_missing_children_are_created_at_what_is_wanted() {
    let asked = pass(&slice("1", &[("a", 2), ("b", 0)], Vec::new()));
    assert_eq!(asked.acts, [create("a", 2, 2), create("b", 0, 0)]);
    assert_eq!(asked.on_failure, Rest::GoesOn);
    assert_eq!(asked.events, []);
    assert!(!asked.is_unfinished);
}

#[test]
fn dsr_cur_2_baseline_and_replicas_follow_in_one_write() {
    let update = |initial, replicas: Option<(u64, u64)>| Act::Update {
        child: "1-a".into(),
        initial,
        replicas: replicas.map(|(from, to)| Scale {
            from,
            to,
            is_told: false,
        }),
    };
    for (initial, spec, expected) in [
        (Some(4), 4, vec![]),
        (None, 4, vec![update(Some(4), None)]),
        (Some(3), 4, vec![update(Some(4), None)]),
        (Some(4), 6, vec![update(None, Some((6, 4)))]),
        (Some(1), 1, vec![update(Some(4), Some((1, 4)))]),
    ] {
        let found = Child {
            initial,
            ..child("1", "a", 0, spec)
        };
        let asked = pass(&slice("1", &[("a", 4)], vec![found]));
        assert_eq!(asked.acts, expected, "{initial:?} {spec}");
    }
}

#[test]
fn dsr_cur_7_a_child_that_is_going_is_waited_for() {
    let going = Child {
        is_terminating: true,
        ..child("1", "a", 4, 4)
    };
    let mut slice = slice("1", &[("a", 4)], vec![going]);
    let asked = pass(&slice);
    assert_eq!((asked.acts, asked.is_unfinished), (vec![], true));
    slice.children.clear();
    assert_eq!(pass(&slice).acts, [create("a", 4, 4)]);
}

#[test]
fn dsr_ows_6_of_two_children_of_a_role_the_one_created_last_counts() {
    let double = |name: &str, created: i64| Child {
        name: name.into(),
        created: Some(Timestamp::from_second(created).unwrap()),
        ..child("1", "a", 1, 1)
    };
    for (children, expected) in [
        (vec![double("x", 8), double("y", 7)], "x"),
        (vec![double("x", 7), double("y", 7)], "y"),
    ] {
        let asked = pass(&slice("1", &[("a", 2)], children));
        let names: Vec<&str> = asked.acts.iter().filter_map(updated).collect();
        assert_eq!(names, [expected]);
    }
}

fn updated(act: &Act) -> Option<&str> {
    match act {
        Act::Update { child, .. } => Some(child),
        Act::Create { .. } | Act::Delete { .. } | Act::Route { .. } => None,
    }
}

#[test]
fn dsr_rol_1_a_whole_rollout() {
    let old = vec![child("1", "a", 1, 1), child("1", "b", 2, 2)];
    let mut slice = slice("2", &[("a", 1), ("b", 2)], old);
    let mut rows = Vec::new();
    loop {
        let asked = pass(&slice);
        slice.perform(&asked);
        rows.push((asked.acts, asked.events));
        if !asked.is_unfinished {
            break;
        }
    }
    let expected = [
        (
            vec![create("a", 0, 1), create("b", 0, 2)],
            vec![Event::Started],
        ),
        (vec![scale("2-a", 0, 1), scale("2-b", 0, 1)], vec![]),
        (vec![scale("1-b", 2, 1)], vec![]),
        (vec![scale("2-b", 1, 2)], vec![]),
        (vec![scale("1-a", 1, 0), scale("1-b", 1, 0)], vec![]),
        (vec![delete("1-a"), delete("1-b")], vec![Event::Completed]),
    ];
    assert_eq!(rows, expected);
    assert_eq!(pass(&slice).acts, []);
}

#[test]
fn dsr_rol_2_an_unusable_baseline_is_repaired_and_told() {
    let unset = Child {
        initial: None,
        ..child("1", "a", 0, 3)
    };
    let target = child("2", "a", 3, 1);
    let asked = pass(&slice("2", &[("a", 3)], vec![unset, target]));
    let repaired = Act::Update {
        child: "1-a".into(),
        initial: Some(3),
        replicas: Some(Scale {
            from: 3,
            to: 2,
            is_told: true,
        }),
    };
    assert_eq!(asked.acts, [repaired]);
    let missing = Event::InitialReplicasMissing {
        child: "1-a".into(),
        replicas: 3,
    };
    assert_eq!(asked.events, [missing]);
}

#[test]
fn dsr_rol_3_only_missing_children_are_created_and_nothing_else_is_done() {
    let children = vec![
        child("1", "a", 2, 2),
        child("1", "b", 2, 2),
        child("2", "a", 2, 0),
    ];
    let asked = pass(&slice("2", &[("a", 2), ("b", 2)], children));
    assert_eq!(asked.acts, [create("b", 0, 2)]);
    assert_eq!(asked.on_failure, Rest::GoesOn);
    assert_eq!(asked.events, []);
    assert!(asked.is_unfinished);
}

#[test]
fn dsr_rol_6_the_baseline_of_the_target_follows_what_is_wanted() {
    let children = vec![child("1", "a", 4, 4), child("2", "a", 4, 1)];
    let asked = pass(&slice("2", &[("a", 5)], children));
    let grown = Act::Update {
        child: "2-a".into(),
        initial: Some(5),
        replicas: Some(Scale {
            from: 1,
            to: 2,
            is_told: true,
        }),
    };
    assert_eq!(asked.acts, [scale("1-a", 4, 3), grown]);
    let children = vec![child("1", "a", 4, 4), child("2", "a", 4, 1)];
    let asked = pass(&slice("2", &[("a", 3)], children));
    assert_eq!(asked.acts, [baseline("2-a", 3), scale("1-a", 4, 2)]);
}

#[test]
fn dsr_rol_5_a_scaled_role_does_not_shrink_beside_old_groups() {
    let children = |old| {
        vec![
            child("1", "a", 4, old),
            child("2", "a", 3, 3),
            child("1", "b", 4, 1),
            child("2", "b", 4, 4),
        ]
    };
    for (old, is_external, expected) in [(1, true, None), (1, false, Some(1)), (0, true, Some(1))] {
        let mut slice = slice("2", &[("a", 1), ("b", 4)], children(old));
        slice.roles[0].leaves[0].is_external = is_external;
        let asked = pass(&slice);
        let written = asked.acts.iter().find_map(|act| match act {
            Act::Update { child, initial, .. } if &**child == "2-a" => *initial,
            Act::Update { .. } | Act::Create { .. } | Act::Delete { .. } | Act::Route { .. } => {
                None
            }
        });
        assert_eq!(written, expected, "old {old}, external {is_external}");
    }
}

#[test]
fn dsr_rol_7_nothing_moves_while_an_observation_is_pending() {
    let pending = |name: &str| {
        let children = vec![child("1", "a", 2, 2), child("2", "a", 2, 1)];
        let mut slice = slice("2", &[("a", 2)], children);
        slice.child(name).ready = None;
        slice
    };
    for name in ["1-a", "2-a"] {
        let asked = pass(&pending(name));
        assert_eq!(asked.acts, [], "{name}");
        assert_eq!(asked.events, [blocked("waiting for observation")]);
        assert!(asked.is_unfinished);
    }
}

#[test]
fn dsr_rol_9_of_equally_old_revisions_the_greater_name_goes_first() {
    let mut children = vec![
        child("1", "a", 2, 1),
        child("2", "a", 2, 1),
        child("3", "a", 2, 1),
    ];
    children[1].created = children[0].created;
    let asked = pass(&slice("3", &[("a", 2)], children));
    assert_eq!(asked.acts, [scale("2-a", 1, 0)]);
}

#[test]
fn dsr_rol_11_a_blocked_rollout_says_for_whom_it_waits() {
    let mut slice = slice(
        "2",
        &[("a", 8), ("b", 4)],
        vec![
            child("1", "a", 8, 8),
            child("1", "b", 4, 4),
            child("2", "a", 8, 1),
            child("2", "b", 4, 1),
        ],
    );
    for name in ["2-a", "2-b"] {
        slice.child(name).ready = Some(Ready::default());
    }
    let asked = pass(&slice);
    assert_eq!(asked.acts, []);
    assert_eq!(asked.events, [blocked("a: 0/1, b: 0/1")]);
    assert!(asked.is_unfinished);
}

#[test]
fn dsr_rol_12_the_steps_that_go_beyond_a_budget_are_told() {
    let roles = [("a", 1), ("b", 5)];
    let children = vec![
        child("1", "a", 1, 1),
        child("1", "b", 5, 4),
        child("2", "a", 1, 0),
        child("2", "b", 5, 1),
    ];
    let mut bootstrap = slice("2", &roles, children);
    for role in &mut bootstrap.roles {
        role.leaves[0].budget = Budget {
            surge: 0,
            unavailable: 1,
        };
    }
    let asked = pass(&bootstrap);
    let roles = vec!["a".to_owned()];
    assert_eq!(asked.acts, [scale("2-a", 0, 1)]);
    assert_eq!(asked.events, [Event::BootstrapSurge { roles }]);

    let children = vec![
        child("1", "a", 3, 3),
        child("1", "b", 5, 4),
        child("2", "a", 3, 2),
        child("2", "b", 5, 3),
    ];
    let mut fallback = slice("2", &[("a", 3), ("b", 5)], children);
    fallback.roles[1].leaves[0].budget = Budget {
        surge: 0,
        unavailable: 1,
    };
    fallback.child("2-a").ready = Some(Ready::default());
    fallback.child("2-b").ready = Some(Ready {
        raw: 2,
        committed: 2,
    });
    assert_eq!(pass(&fallback).acts, []);
    fallback.child("2-a").has_unschedulable_pod = true;
    let asked = pass(&fallback);
    let released = Event::AvailabilityFallback {
        revision: "1".into(),
        roles: vec!["a".to_owned(), "b".to_owned()],
    };
    assert_eq!(asked.acts, [scale("1-a", 3, 2), scale("1-b", 4, 3)]);
    assert_eq!(asked.events, [released]);
}

#[test]
fn dsr_rol_14_a_rollback_grows_the_children_that_are_still_there() {
    let children = vec![child("1", "a", 4, 3), child("2", "a", 4, 2)];
    let asked = pass(&slice("1", &[("a", 4)], children));
    assert_eq!(asked.acts, [scale("2-a", 2, 1)]);
}

#[test]
fn dsr_rol_16_a_target_child_that_is_going_is_waited_for() {
    let mut slice = slice(
        "2",
        &[("a", 2)],
        vec![child("1", "a", 2, 2), child("2", "a", 2, 1)],
    );
    slice.child("2-a").is_terminating = true;
    let asked = pass(&slice);
    assert_eq!((asked.acts, asked.events), (vec![], vec![]));
    assert!(asked.is_unfinished);
    slice.children.pop();
    let asked = pass(&slice);
    assert_eq!(asked.acts, [create("a", 0, 2)]);
}

#[test]
fn dsr_rec_7_1_old_children_that_are_going_do_not_count() {
    let mut slice = slice(
        "2",
        &[("a", 2)],
        vec![child("1", "a", 2, 0), child("2", "a", 2, 2)],
    );
    slice.child("1-a").is_terminating = true;
    let asked = pass(&slice);
    assert_eq!((asked.acts, asked.is_unfinished), (vec![], false));
}

#[test]
fn dsr_cln_2_the_newest_drained_revision_marks_the_transition() {
    let children = |newest, target| {
        vec![
            child("1", "a", 2, 0),
            child("2", "a", 2, 0),
            child("3", "a", 2, newest),
            child("4", "a", 2, target),
        ]
    };
    for (newest, target, is_ready, deleted) in [
        (1, 1, true, vec!["2-a", "1-a"]),
        (0, 2, false, vec!["2-a", "1-a"]),
        (0, 2, true, vec!["3-a", "2-a", "1-a"]),
    ] {
        let mut slice = slice("4", &[("a", 2)], children(newest, target));
        if !is_ready {
            slice.child("4-a").ready = Some(Ready::default());
        }
        let asked = pass(&slice);
        let gone = asked.acts.into_iter().filter_map(|act| match act {
            Act::Delete { child } => Some(child.to_string()),
            Act::Create { .. } | Act::Update { .. } | Act::Route { .. } => None,
        });
        assert_eq!(
            gone.collect::<Vec<_>>(),
            deleted,
            "{newest} {target} {is_ready}"
        );
    }
}

#[test]
fn dsr_m06_a_second_change_in_the_middle() {
    let mut slice = slice(
        "3",
        &[("a", 4), ("b", 4)],
        vec![
            child("1", "a", 4, 3),
            child("1", "b", 4, 3),
            child("2", "a", 4, 2),
            child("2", "b", 4, 2),
        ],
    );
    let mut passes = Vec::new();
    loop {
        let asked = pass(&slice);
        slice.perform(&asked);
        passes.push(asked.acts);
        if !asked.is_unfinished {
            break;
        }
    }
    let pair = |revision: &str, from, to| {
        ["a", "b"].map(|role| scale(&format!("{revision}-{role}"), from, to))
    };
    let gone = |revision: &str| ["a", "b"].map(|role| delete(&format!("{revision}-{role}")));
    let expected = [
        vec![create("a", 0, 4), create("b", 0, 4)],
        pair("2", 2, 1).to_vec(),
        pair("3", 0, 1).to_vec(),
        pair("2", 1, 0).to_vec(),
        [pair("3", 1, 2), gone("2")].concat(),
        pair("1", 3, 2).to_vec(),
        pair("3", 2, 3).to_vec(),
        pair("1", 2, 1).to_vec(),
        pair("3", 3, 4).to_vec(),
        pair("1", 1, 0).to_vec(),
        gone("1").to_vec(),
    ];
    assert_eq!(passes, expected);
}

fn labels(child: &Child) -> String {
    let routing = child.routing.as_ref().unwrap().as_ref().unwrap();
    let labels = routing
        .groups
        .values()
        .map(|group| group.sub_role.as_deref().unwrap_or("-"));
    labels.collect::<Vec<_>>().join(" ")
}

fn settle(slice: &mut Slice) -> Vec<Event> {
    let mut events = Vec::new();
    for _ in 0..60 {
        let asked = pass(slice);
        slice.perform(&asked);
        assert_eq!(asked.faults, []);
        let told = asked.events.into_iter();
        events.extend(told.filter(|event| !matches!(event, Event::DrainBlocked { .. })));
        if asked.acts.is_empty() && !asked.is_unfinished {
            return events;
        }
    }
    panic!("does not end: {slice:?}");
}

#[test]
fn dsr_srl_16_groups_of_a_partitioned_role_are_labelled_and_follow_its_shares() {
    let shares = [("x", 2), ("y", 1)];
    let mut slice = slice("1", &[("a", 3)], Vec::new()).divided("a", &shares);
    assert_eq!(settle(&mut slice), []);
    assert_eq!(labels(&slice.children[0]), "x x y");
    slice.roles[0].leaves[0].replicas = 1;
    slice.roles[0].replicas = 2;
    assert_eq!(settle(&mut slice), []);
    let child = &slice.children[0];
    assert_eq!(
        (child.spec, child.initial, labels(child)),
        (2, Some(2), "x y".to_owned())
    );
}

#[test]
fn dsr_srl_17_shares_of_a_role_are_rolled_out_as_roles_of_their_own() {
    let shares = [("x", 2), ("y", 2)];
    let roles = [("a", 4), ("b", 2)];
    let mut slice = slice("1", &roles, Vec::new()).divided("a", &shares);
    settle(&mut slice);
    slice.revision = "2".into();
    assert_eq!(settle(&mut slice), [Event::Started, Event::Completed]);
    let names: Vec<&str> = slice.children.iter().map(|child| &*child.name).collect();
    assert_eq!(names, ["2-a", "2-b"]);
    assert_eq!(slice.children[0].spec, 4);
    let mut sorted: Vec<String> = labels(&slice.children[0])
        .split(' ')
        .map(Into::into)
        .collect();
    sorted.sort();
    assert_eq!(sorted, ["x", "x", "y", "y"]);
}

#[test]
fn dsr_srl_18_a_role_that_is_no_longer_partitioned_loses_its_labels_before_it_is_scaled() {
    let mut slice = slice("1", &[("a", 3)], Vec::new()).divided("a", &[("x", 2), ("y", 1)]);
    settle(&mut slice);
    slice.roles = vec![role("a", 5)];
    let asked = pass(&slice);
    let [Act::Route { step, .. }] = asked.acts.as_slice() else {
        panic!("{asked:?}");
    };
    let write = step.write.as_ref().unwrap();
    assert_eq!(
        (write.replicas, write.plan.clone()),
        (3, Some(Counts::undivided(3)))
    );
    assert!(asked.is_unfinished);
    settle(&mut slice);
    let child = &slice.children[0];
    assert_eq!((child.spec, child.initial), (5, Some(5)));
}

#[test]
fn dsr_srl_5_groups_that_cannot_be_divided_drain_as_a_role_of_their_own() {
    for is_current in [true, false] {
        let roles: &[(&str, u64)] = if is_current {
            &[("a", 3), ("b", 2)]
        } else {
            &[("b", 2)]
        };
        let hash = child("1", "a", 3, 3);
        let mut slice = slice("2", roles, vec![hash, child("1", "b", 2, 2)]);
        if is_current {
            slice = slice.divided("a", &[("x", 2), ("y", 1)]);
        }
        assert_eq!(settle(&mut slice), [Event::Started, Event::Completed]);
        let mut names: Vec<&str> = slice.children.iter().map(|child| &*child.name).collect();
        names.sort();
        let expected: &[&str] = if is_current {
            &["2-a", "2-b"]
        } else {
            &["2-b"]
        };
        assert_eq!(names, expected);
    }
}

#[test]
fn dsr_rdy_2_a_division_waits_while_the_groups_are_out_of_sight() {
    let mut slice = slice("1", &[("a", 3)], Vec::new()).divided("a", &[("x", 2), ("y", 1)]);
    settle(&mut slice);
    slice.child("1-a").ready = None;
    slice.roles[0].leaves[0].replicas = 5;
    let asked = pass(&slice);
    assert_eq!((asked.acts, asked.is_unfinished), (vec![], true));
}

#[test]
fn dsr_12_2_nothing_is_planned_for_a_child_with_unusable_counts() {
    let mut slice = slice("1", &[("a", 3)], Vec::new()).divided("a", &[("x", 3)]);
    settle(&mut slice);
    slice.children[0].routing = Some(Err(CountsError::Malformed));
    slice.roles[0].replicas = 5;
    let asked = pass(&slice);
    let fault = Fault::Counts {
        child: "1-a".into(),
        error: CountsError::Malformed,
    };
    assert_eq!((asked.acts, asked.faults), (vec![], vec![fault]));
}
