use super::*;

fn counts(text: &str) -> Counts {
    Counts::parse(text).unwrap()
}

/// A settled set whose groups have these labels in the order of their ordinals; `-` has none.
fn divided(issued: &str, labels: &str) -> Routing {
    let issued = counts(issued);
    Routing {
        spec: issued.sum(),
        initial: Some(issued.sum()),
        issued: Some(issued.clone()),
        baseline: Some(issued),
        is_observed: true,
        groups: groups(labels),
        ..Routing::default()
    }
}

fn groups(labels: &str) -> BTreeMap<u64, RoutedGroup> {
    let group = |label: &str| RoutedGroup {
        sub_role: (label != "-").then(|| label.into()),
        is_coherent: true,
        is_ready: true,
        is_staying: true,
    };
    (0..).zip(labels.split_whitespace().map(group)).collect()
}

/// Wanted counts of the spec, and the same as new counts of the set.
fn ask(wanted: &str) -> Ask {
    Ask {
        membership: Some(counts(wanted)),
        target: Some(counts(wanted)),
        baseline: None,
    }
}

fn relabelled<const N: usize>(groups: [(u64, Option<&str>); N]) -> Synced {
    let groups = groups.into_iter();
    waits(
        groups
            .map(|(ordinal, to)| (ordinal, to.map(Into::into)))
            .collect(),
    )
}

fn written(synced: Synced) -> Write {
    match synced {
        Synced::Waits(Move {
            write: Some(write), ..
        }) => write,
        other => panic!("nothing is written: {other:?}"),
    }
}

impl Routing {
    fn labels(&self) -> String {
        let groups = self.groups.values();
        let labels = groups.map(|group| group.sub_role.as_deref().unwrap_or("-"));
        labels.collect::<Vec<_>>().join(" ")
    }

    /// Does what is asked for; groups that are no longer wanted end, new ones come up without a label.
    fn perform(&mut self, step: &Move) {
        for (ordinal, to) in &step.relabelled {
            let group = self.groups.get_mut(ordinal).unwrap();
            group.sub_role.clone_from(to);
            group.is_coherent = true;
        }
        let Some(write) = step.write.clone() else {
            return;
        };
        self.groups.retain(|ordinal, _| *ordinal < write.replicas);
        for ordinal in 0..write.replicas {
            let new = RoutedGroup {
                is_coherent: true,
                is_ready: true,
                is_staying: true,
                sub_role: None,
            };
            self.groups.entry(ordinal).or_insert(new);
        }
        self.spec = write.replicas;
        self.initial = write.initial;
        self.issued = write.issued;
        self.baseline = write.baseline;
        self.plan = write.plan;
    }

    /// Goes on until nothing is left to do; at every point the issued counts make up the wanted groups.
    fn settle(&mut self, ask: &Ask) -> usize {
        for passes in 0..50 {
            let sum = self.issued.as_ref().map(Counts::sum);
            assert!(sum.is_none_or(|sum| sum == self.spec), "D-8: {self:?}");
            match sync(self, ask).unwrap() {
                Synced::Undivided | Synced::Settled => return passes,
                Synced::Waits(step) => {
                    assert_ne!(step, Move::default(), "waits for ever: {self:?}");
                    self.perform(&step);
                }
            }
        }
        panic!("does not settle: {self:?}");
    }
}

#[test]
fn dsr_srl_8_a_set_without_sub_roles_is_left_alone() {
    let plain = Routing {
        spec: 2,
        groups: groups("- -"),
        ..Routing::default()
    };
    let removed = Ask {
        membership: Some(Counts::default()),
        ..Ask::default()
    };
    for ask in [Ask::default(), removed] {
        assert_eq!(sync(&plain, &ask), Ok(Synced::Undivided));
    }
}

#[test]
fn dsr_srl_3_counts_that_are_not_what_the_set_wants_are_an_error() {
    let mut routing = divided(r#"{"a":1,"b":1}"#, "a b");
    routing.spec = 3;
    let wanted = ask(r#"{"a":1,"b":1}"#);
    assert_eq!(sync(&routing, &wanted), Err(CountsError::WrongSum));
}

#[test]
fn dsr_srl_11_first_counts_of_a_running_set() {
    let routing = Routing {
        spec: 2,
        initial: Some(4),
        groups: groups("- -"),
        ..Routing::default()
    };
    let write = written(sync(&routing, &ask(r#"{"a":1,"b":2}"#)).unwrap());
    let expected = Write {
        replicas: 2,
        initial: Some(4),
        issued: Some(counts(r#"{"a":1,"b":1}"#)),
        baseline: Some(counts(r#"{"a":2,"b":2}"#)),
        plan: None,
    };
    assert_eq!(write, expected);
}

#[test]
fn dsr_srl_11_new_sub_roles_start_with_nothing_and_a_given_baseline_counts() {
    let routing = divided(r#"{"a":2}"#, "a a");
    let mut wanted = ask(r#"{"a":1,"b":1}"#);
    let write = written(sync(&routing, &wanted).unwrap());
    assert_eq!(write.issued, Some(counts(r#"{"a":2,"b":0}"#)));
    assert_eq!(write.baseline, Some(counts(r#"{"a":2,"b":0}"#)));
    wanted.baseline = Some(counts(r#"{"a":1,"b":5}"#));
    let write = written(sync(&routing, &wanted).unwrap());
    assert_eq!(write.baseline, Some(counts(r#"{"a":1,"b":5}"#)));
    assert_eq!(write.initial, Some(6));
}

#[test]
fn dsr_srl_13_labels_come_before_fewer_groups() {
    let mut routing = divided(r#"{"long":2,"short":2}"#, "short short long long");
    let wanted = ask(r#"{"long":2,"short":1}"#);
    let plan = Some(counts(r#"{"long":2,"short":1}"#));
    let step = |routing: &mut Routing| {
        let synced = sync(routing, &wanted).unwrap();
        if let Synced::Waits(step) = &synced {
            routing.perform(step);
        }
        synced
    };
    let planned = written(step(&mut routing));
    assert_eq!((planned.replicas, planned.plan), (4, plan.clone()));
    assert_eq!(
        step(&mut routing),
        relabelled([(1, Some("long")), (3, None)])
    );
    assert_eq!(routing.labels(), "short long long -");
    let shrunk = written(step(&mut routing));
    assert_eq!(
        (shrunk.replicas, shrunk.issued, shrunk.plan),
        (3, plan, None)
    );
    assert_eq!(step(&mut routing), Synced::Settled);
    assert_eq!(routing.labels(), "short long long");
}

#[test]
fn dsr_srl_12_more_groups_come_before_their_labels() {
    let mut routing = divided(r#"{"a":1,"b":1}"#, "a b");
    let wanted = ask(r#"{"a":2,"b":1}"#);
    let grown = written(sync(&routing, &wanted).unwrap());
    assert_eq!((grown.replicas, grown.plan), (3, None));
    routing.settle(&wanted);
    assert_eq!(routing.labels(), "a b a");
}

#[test]
fn dsr_srl_12_a_sub_role_that_is_gone_gives_its_groups_to_others() {
    let mut routing = divided(r#"{"a":2,"b":1}"#, "a a b");
    routing.settle(&ask(r#"{"b":2,"c":1}"#));
    assert_eq!(routing.labels(), "b c b");
    assert_eq!(routing.issued, Some(counts(r#"{"a":0,"b":2,"c":1}"#)));
}

#[test]
fn dsr_srl_13_one_survivor_changes_at_a_time_and_only_in_a_healthy_set() {
    let mut routing = divided(r#"{"a":2,"b":2}"#, "a a b b");
    routing.plan = Some(counts(r#"{"a":0,"b":4}"#));
    let ask = Ask::default();
    assert_eq!(sync(&routing, &ask), Ok(relabelled([(0, Some("b"))])));
    routing.groups.get_mut(&3).unwrap().is_staying = false;
    assert_eq!(sync(&routing, &ask), Ok(waits(BTreeMap::new())));
    routing.groups.remove(&3);
    assert_eq!(sync(&routing, &ask), Ok(waits(BTreeMap::new())));
}

#[test]
fn dsr_srl_13_broken_labels_are_repaired_first() {
    let mut routing = divided(r#"{"a":1,"b":1}"#, "a - b");
    routing.groups.get_mut(&0).unwrap().is_coherent = false;
    routing.groups.get_mut(&1).unwrap().is_ready = false;
    let ask = Ask::default();
    let repair = relabelled([(0, Some("a")), (1, Some("b"))]);
    assert_eq!(sync(&routing, &ask), Ok(repair));
    routing.groups = groups("a b b");
    assert_eq!(sync(&routing, &ask), Ok(relabelled([(2, None)])));
}

#[test]
fn dsr_srl_13_a_missing_group_keeps_its_place() {
    let mut routing = divided(r#"{"a":1,"b":2}"#, "- b b");
    routing.groups.remove(&0);
    assert_eq!(sync(&routing, &Ask::default()), Ok(Synced::Settled));
    routing.groups = groups("- b b");
    let label = relabelled([(0, Some("a"))]);
    assert_eq!(sync(&routing, &Ask::default()), Ok(label));
}

#[test]
fn dsr_srl_13_waits_until_the_counts_are_taken_up() {
    let mut routing = divided(r#"{"a":1}"#, "a");
    routing.is_observed = false;
    assert_eq!(sync(&routing, &Ask::default()), Ok(waits(BTreeMap::new())));
}

#[test]
fn dsr_srl_10_a_role_that_is_no_longer_divided_loses_labels_and_annotations() {
    let mut routing = divided(r#"{"a":1,"b":1}"#, "a b");
    routing.groups.get_mut(&1).unwrap().is_ready = false;
    let removed = Ask {
        membership: Some(Counts::default()),
        ..Ask::default()
    };
    let planned = written(sync(&routing, &removed).unwrap());
    assert_eq!(
        (planned.replicas, planned.plan),
        (2, Some(Counts::undivided(2)))
    );
    routing.settle(&removed);
    assert_eq!(routing.labels(), "- -");
    assert_eq!((routing.spec, routing.initial), (2, Some(2)));
    assert_eq!(
        (routing.issued, routing.baseline, routing.plan),
        (None, None, None)
    );
}

#[test]
fn dsr_srl_9_an_accepted_plan_is_finished_before_anything_new() {
    let mut routing = divided(r#"{"a":2,"b":2}"#, "a a b b");
    routing.plan = Some(counts(r#"{"a":1,"b":2}"#));
    let wanted = ask(r#"{"a":2,"b":5}"#);
    assert_eq!(
        sync(&routing, &wanted),
        Ok(relabelled([(1, Some("b")), (3, None)]))
    );
    routing.settle(&wanted);
    assert_eq!(routing.issued, Some(counts(r#"{"a":2,"b":5}"#)));
    assert_eq!(routing.labels(), "a b b a b b b");
}

#[test]
fn dsr_srl_19_old_sets_of_roles_that_are_gone_drain_by_their_counts() {
    let mut routing = divided(r#"{"a":1,"b":1}"#, "a b");
    let drain = Ask {
        target: Some(counts(r#"{"a":0,"b":0}"#)),
        ..Ask::default()
    };
    routing.settle(&drain);
    assert_eq!((routing.spec, routing.labels()), (0, String::new()));
}
