//! HASH-40 and its tables.

use std::sync::Arc;

use lws_api::leaderworkerset::GroupReplacementPolicy::{self, Immediate, PostTermination};
use lws_api::names::{annotation, label};
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::leaderworkerset::hash::leaders::Standing;
use crate::leaderworkerset::hash::replacement::{Question, Verdict, decide};

fn asked(
    pods: &[Arc<Pod>],
    revision: &str,
    replicas: usize,
    policy: GroupReplacementPolicy,
) -> Vec<(String, Verdict)> {
    let question = Question {
        pods,
        revision,
        replicas,
        policy,
    };
    let mut verdicts: Vec<_> = decide(&question)
        .into_iter()
        .map(|(leader, verdict)| (leader.key().name.to_string(), verdict))
        .collect();
    verdicts.sort_by(|a, b| a.0.cmp(&b.0));
    verdicts
}

/// The verdicts on the gated leaders, by name: `a` admitted, `h` held, `d` deferred.
fn verdicts(pods: &[Arc<Pod>], replicas: usize, policy: GroupReplacementPolicy) -> String {
    asked(pods, REVISION, replicas, policy)
        .into_iter()
        .map(|(_, verdict)| match verdict {
            Verdict::Admit => 'a',
            Verdict::Hold => 'h',
            Verdict::Defer { .. } => 'd',
        })
        .collect()
}

fn g1() -> Arc<Pod> {
    gated("g1", 10)
}

fn g2() -> Arc<Pod> {
    gated("g2", 20)
}

fn all(groups: &[&str]) -> Vec<Arc<Pod>> {
    groups.iter().map(|group| admitted(group)).collect()
}

/// Number, policies, admitted groups, other pods, R, verdicts.
type Row<'a> = (
    u32,
    &'a [GroupReplacementPolicy],
    &'a [&'a str],
    Vec<Arc<Pod>>,
    usize,
    &'a str,
);

#[test]
fn hash_46_table_of_replacements() {
    let other_set = |pod| labelled(pod, label::POD_TEMPLATE_HASH, "rs2");
    let both: &[_] = &[PostTermination, Immediate];
    let post: &[_] = &[PostTermination];
    let rows: [Row<'_>; 14] = [
        (
            1,
            post,
            &["a", "b", "c"],
            vec![terminating("d"), g1()],
            4,
            "d",
        ),
        (
            2,
            post,
            &["a", "b"],
            vec![terminating("d"), g1(), g2()],
            4,
            "ad",
        ),
        (
            3,
            post,
            &["a", "b"],
            vec![terminating("c"), terminating("d"), g1(), g2()],
            4,
            "dd",
        ),
        (
            4,
            post,
            &["a", "b", "c"],
            vec![worker("d", true), g1()],
            4,
            "d",
        ),
        (
            5,
            post,
            &["a", "b"],
            vec![terminating("d"), worker("d", false), g1(), g2()],
            4,
            "ad",
        ),
        (6, post, &["a", "b"], vec![worker("a", true), g1()], 4, "a"),
        (
            7,
            &[Immediate],
            &["a", "b"],
            vec![terminating("d"), g1()],
            4,
            "a",
        ),
        (
            8,
            both,
            &["a", "b", "c"],
            vec![exhausted("d", 0), g1()],
            4,
            "h",
        ),
        (
            9,
            both,
            &["a", "b", "c"],
            vec![exhausted("d", 0), g1(), g2()],
            5,
            "ah",
        ),
        (10, both, &["a", "b", "c", "d"], vec![g1()], 4, "h"),
        (
            11,
            both,
            &["a", "b"],
            vec![labelled(g1(), label::REVISION, "r0")],
            4,
            "h",
        ),
        (
            12,
            both,
            &[],
            vec![g1(), g2(), gated("g3", 30), gated("g4", 40)],
            4,
            "aaaa",
        ),
        (
            13,
            both,
            &["a", "b", "c", "d"],
            vec![other_set(g1())],
            4,
            "a",
        ),
        (
            14,
            both,
            &["a", "b", "c"],
            vec![exhausted("d", 0), g1(), other_set(g2())],
            4,
            "ha",
        ),
    ];
    for (row, policies, live, more, replicas, expected) in rows {
        let pods: Vec<_> = all(live).into_iter().chain(more).collect();
        for policy in policies {
            assert_eq!(
                verdicts(&pods, replicas, *policy),
                expected,
                "row {row} {policy:?}"
            );
        }
    }
}

#[test]
fn pod_gate_7_examples() {
    let gone = |groups: &[&str]| groups.iter().map(|g| worker(g, true)).collect::<Vec<_>>();
    for (blocking, leaders, policy, expected) in [
        (gone(&[]), vec![g1()], PostTermination, "a"),
        (gone(&["x"]), vec![g1()], PostTermination, "d"),
        (gone(&["x"]), vec![g1(), g2()], PostTermination, "ad"),
        (gone(&["x", "y"]), vec![g1(), g2()], PostTermination, "dd"),
        (gone(&["x"]), vec![g1()], Immediate, "a"),
    ] {
        let pods: Vec<_> = blocking.into_iter().chain(leaders).collect();
        assert_eq!(verdicts(&pods, 9, policy), expected, "{pods:?}");
    }
}

#[test]
fn hash_42_the_number_of_groups_in_the_way_is_told() {
    let pods = [terminating("c"), worker("d", true), g1()];
    let verdict = asked(&pods, REVISION, 4, PostTermination);
    assert_eq!(verdict, [("g1".to_owned(), Verdict::Defer { groups: 2 })]);
}

#[test]
fn hash_77_without_deployment_nobody_goes() {
    let hold = [("g1".to_owned(), Verdict::Hold)];
    assert_eq!(asked(&[g1()], "", 4, Immediate), hold);
    let unlabelled = labelled(g1(), label::REVISION, "");
    assert_eq!(asked(&[unlabelled], "", 4, Immediate), hold);
}

#[test]
fn hash_40_of_equal_age_the_name_decides() {
    let pods = [gated("b", 10), gated("a", 10), terminating("d")];
    assert_eq!(verdicts(&pods, 4, PostTermination), "ad");
}

/// A pod without index belongs to the group of the leader that it names.
#[test]
fn hash_40_pods_without_group_index() {
    let nameless = |leader: &str| {
        let mut object = object("w", "1", "", 0);
        object["metadata"]["labels"]
            .as_object_mut()
            .expect("labels")
            .remove(label::GROUP_INDEX);
        object["metadata"]["annotations"][annotation::LEADER_NAME] = json!(leader);
        parsed(object)
    };
    let pods = |leader: &str| vec![admitted("a"), nameless(leader), g1()];
    assert_eq!(verdicts(&pods("a"), 4, PostTermination), "a");
    assert_eq!(verdicts(&pods("gone"), 4, PostTermination), "d");
}

/// HASH-57 trace 1, HASH-44: what is let go in one pass keeps to the bounds, whatever there is.
fn any_pods() -> impl Strategy<Value = Vec<Arc<Pod>>> {
    let one = (0..6_u8, 0..3_u8, 0..4_i64);
    proptest::collection::vec(one, 0..14).prop_map(|list| {
        let pods = list.into_iter().enumerate();
        pods.map(|(number, (standing, made_by, second))| {
            let name = format!("p{number}");
            let pod = match standing {
                0 | 1 => gated(&name, second),
                2 => terminating(&name),
                3 => return exhausted(&name, second),
                4 => return worker(&name, true),
                _ => admitted(&name),
            };
            match made_by {
                0 if standing != 2 => labelled(pod, label::POD_TEMPLATE_HASH, "rs2"),
                1 if standing != 2 => labelled(pod, label::REVISION, "r0"),
                _ => pod,
            }
        })
        .collect()
    })
}

proptest! {
    #[test]
    fn hash_44_one_pass_never_lets_too_many_go(pods in any_pods(), replicas in 0..6_usize, immediate: bool) {
        let policy = if immediate { Immediate } else { PostTermination };
        let decided = asked(&pods, REVISION, replicas, policy);
        let gated = pods.iter().filter(|pod| pod.is_leader() && Standing::of(pod) == Standing::Gated);
        prop_assert_eq!(decided.len(), gated.count(), "each gated leader gets a verdict");
        let goes = |pod: &Pod| decided.iter().any(|(name, verdict)| **name == *pod.key().name && *verdict == Verdict::Admit);
        for set in ["rs1", "rs2"] {
            let of_set = || pods.iter().filter(|pod| pod.is_leader() && pod.meta.label(label::POD_TEMPLATE_HASH) == set && pod.meta.label(label::REVISION) == REVISION);
            let there = of_set().filter(|pod| matches!(Standing::of(pod), Standing::Admitted | Standing::Exhausted)).count();
            let going = of_set().filter(|pod| goes(pod)).count();
            prop_assert!(going == 0 || there + going <= replicas, "{} has {} and gets {}", set, there, going);
        }
        let torn_down = pods.iter().filter(|pod| !pod.is_leader() || !Standing::of(pod).is_live()).count();
        let admitted = decided.iter().filter(|(_, verdict)| *verdict == Verdict::Admit).count();
        if policy == PostTermination {
            prop_assert!(admitted + torn_down.min(decided.len()) <= decided.len(), "each group in the way holds one back");
        }
    }
}
