//! Every row of the worked tables RT-1 … RT-21.

use super::*;
use proptest::prelude::*;
use serde_json::{Value, json};

/// A set with the budget of one table.
struct Table {
    replicas: i32,
    unavailable: Value,
    surge: Value,
    partition: i32,
}

fn table(replicas: i32, unavailable: i32, surge: i32) -> Table {
    Table {
        replicas,
        unavailable: json!(unavailable),
        surge: json!(surge),
        partition: 0,
    }
}

impl Table {
    fn percent(replicas: i32, unavailable: &str, surge: &str) -> Self {
        Self {
            replicas,
            unavailable: json!(unavailable),
            surge: json!(surge),
            partition: 0,
        }
    }

    fn partition(self, partition: i32) -> Self {
        Self { partition, ..self }
    }

    fn budget(&self) -> Budget {
        let spec = json!({"replicas": self.replicas, "rolloutStrategy": {"rollingUpdateConfiguration":
            {"partition": self.partition, "maxUnavailable": self.unavailable, "maxSurge": self.surge}}});
        Budget::of(&serde_json::from_value(spec).unwrap()).unwrap()
    }

    /// Nothing is there yet.
    fn first(&self, (partition, replicas): (u32, u32)) -> &Self {
        assert_eq!(
            parameters(self.budget(), None, false, &GroupStates::new()),
            Parameters {
                partition,
                replicas
            }
        );
        self
    }

    /// `input` is (R, cur), `output` is (partition, replicas), as in the tables.
    fn row(&self, input: (u32, u32), groups: &str, output: (u32, u32)) -> &Self {
        self.scaled(input, groups, self.budget().desired_replicas, output)
    }

    /// A row with another annotation than the wanted replicas.
    fn scaled(&self, input: (u32, u32), groups: &str, annotated: u32, output: (u32, u32)) -> &Self {
        self.check(input, groups, annotated, false, output)
    }

    /// A row in which the template changed.
    fn updated(&self, input: (u32, u32), groups: &str, output: (u32, u32)) -> &Self {
        self.check(input, groups, input.0, true, output)
    }

    fn check(
        &self,
        input: (u32, u32),
        groups: &str,
        annotated: u32,
        changed: bool,
        output: (u32, u32),
    ) -> &Self {
        assert!(
            groups.is_empty() || u32::try_from(groups.len()) == Ok(input.0),
            "row {input:?} {groups} is not of length R"
        );
        let current = Current {
            replicas: input.0,
            partition: input.1,
            desired_replicas: annotated,
        };
        let result = parameters(self.budget(), Some(current), changed, &states(groups));
        assert_eq!(
            (result.partition, result.replicas),
            output,
            "{:?} {input:?} {groups} changed={changed}",
            self.budget()
        );
        self
    }
}

/// `O` old and ready, `o` old, `N` new and ready, `n` new, `-` missing; index 0 first.
fn states(groups: &str) -> GroupStates {
    let states = groups.chars().zip(0..).filter(|(code, _)| *code != '-');
    states
        .map(|(code, index)| {
            (
                index,
                GroupState {
                    is_ready: code.is_uppercase(),
                    is_updated: code.eq_ignore_ascii_case(&'n'),
                },
            )
        })
        .collect()
}

#[test]
fn ord_rt_1_one_at_a_time() {
    table(4, 1, 0)
        .first((0, 4))
        .updated((4, 0), "OOOO", (4, 4))
        .row((4, 4), "OOOO", (3, 4))
        .row((4, 3), "OOOn", (3, 4))
        .row((4, 3), "OOO-", (3, 4))
        .row((4, 3), "OOON", (2, 4))
        .row((4, 2), "OOnN", (2, 4))
        .row((4, 2), "ONON", (2, 4))
        .row((4, 2), "ONOn", (2, 4))
        .row((4, 2), "OOnn", (2, 4))
        .row((4, 2), "OONN", (1, 4))
        .row((4, 1), "ONNN", (0, 4))
        .row((4, 0), "nNNN", (0, 4));
}

#[test]
fn ord_rt_2_two_at_a_time() {
    table(4, 2, 0)
        .updated((4, 0), "OOOO", (4, 4))
        .row((4, 4), "OOOO", (2, 4))
        .row((4, 2), "OOnN", (1, 4))
        .row((4, 2), "OONn", (2, 4))
        .row((4, 1), "OnNN", (0, 4));
}

#[test]
fn ord_rt_3_all_at_once() {
    table(4, 10, 0)
        .updated((4, 0), "OOOO", (4, 4))
        .row((4, 4), "OOOO", (0, 4));
}

#[test]
fn ord_55_rt_4_one_unavailable_one_surge() {
    table(4, 1, 1)
        .updated((4, 0), "OOOO", (4, 5))
        .row((5, 4), "OOOO-", (3, 5))
        .row((5, 4), "OOOOn", (3, 5))
        .row((5, 3), "OOOnN", (2, 5))
        .row((5, 2), "OOnNN", (1, 5))
        .row((5, 1), "OnNNN", (0, 5))
        .row((5, 0), "nnNNN", (0, 5))
        .row((5, 0), "nNNNN", (0, 4))
        .row((4, 0), "nNNN", (0, 4));
}

#[test]
fn ord_rt_5_surge_only() {
    table(4, 0, 1)
        .updated((4, 0), "OOOO", (4, 5))
        .row((5, 4), "OOOOn", (4, 5))
        .row((5, 4), "OOOON", (3, 5))
        .row((5, 3), "OOOnN", (3, 5))
        .row((5, 3), "OOONN", (2, 5))
        .row((5, 2), "OONNN", (1, 5))
        .row((5, 1), "ONNNN", (0, 5))
        .row((5, 0), "nNNNN", (0, 5))
        .row((5, 0), "NNNNN", (0, 4));
}

#[test]
fn ord_rt_6_two_unavailable_two_surge() {
    table(4, 2, 2)
        .updated((4, 0), "OOOO", (4, 6))
        .row((6, 4), "OOOO--", (2, 6))
        .row((6, 2), "OOnnnn", (2, 6))
        .row((6, 2), "OOnnNn", (2, 6))
        .row((6, 2), "OOnnNN", (0, 6))
        .row((6, 2), "OONNnn", (2, 4))
        .row((4, 2), "OONN", (0, 4))
        .row((6, 0), "nnnnNN", (0, 6))
        .row((6, 0), "nnNNNN", (0, 4));
}

#[test]
fn ord_rt_7_surge_is_capped_at_replicas() {
    assert_eq!(table(2, 1, 4).budget().max_surge, 2);
    table(2, 1, 4)
        .updated((2, 0), "OO", (2, 3))
        .row((3, 2), "OO-", (1, 3))
        .row((3, 1), "OnN", (0, 3))
        .row((3, 0), "nNN", (0, 2));
}

#[test]
fn ord_rt_8_broken_group_below_the_partition() {
    table(4, 2, 0)
        .updated((4, 0), "OoOO", (4, 4))
        .row((4, 4), "OoOO", (3, 4))
        .row((4, 3), "OoON", (1, 4))
        .row((4, 2), "OoNN", (0, 4));
}

#[test]
fn ord_rt_9_nothing_ready() {
    table(2, 1, 0)
        .row((2, 2), "oo", (1, 2))
        .row((2, 1), "oN", (0, 2));
    table(4, 1, 0)
        .row((4, 4), "oooo", (3, 4))
        .row((4, 3), "ooon", (3, 4))
        .row((4, 3), "oooN", (2, 4));
}

#[test]
fn ord_rt_10_first_step_with_one_unready_group() {
    table(4, 1, 0)
        .row((4, 4), "OOOo", (3, 4))
        .row((4, 4), "OOoo", (3, 4))
        .row((4, 4), "oOOO", (4, 4))
        .row((4, 4), "OoOO", (4, 4));
}

#[test]
fn ord_rt_11_template_and_scale_up_together() {
    let rows = table(6, 1, 0);
    rows.updated((4, 0), "OOOO", (4, 6));
    for groups in ["OOOO--", "OOOOnn", "OOOOnN", "OOOONn"] {
        rows.row((6, 4), groups, (4, 6));
    }
    rows.row((6, 4), "OOOONN", (3, 6));
    table(6, 3, 0)
        .updated((4, 0), "OOOO", (4, 6))
        .row((6, 4), "OOOO--", (3, 6));
    table(4, 1, 2)
        .updated((2, 0), "OO", (2, 4))
        .row((4, 2), "OO--", (2, 6))
        .row((6, 2), "OOnn--", (2, 6))
        .row((6, 2), "OONNNN", (0, 5));
    table(3, 0, 1).updated((2, 0), "OO", (2, 3));
}

#[test]
fn ord_rt_12_kue_chk_4_scaling_during_a_rollout() {
    table(6, 1, 0)
        .scaled((4, 2), "OOnN", 4, (2, 6))
        .row((6, 2), "OOnN--", (2, 6))
        .row((6, 2), "OONNnn", (2, 6))
        .row((6, 2), "OONNNN", (1, 6));
    table(3, 1, 0)
        .scaled((6, 5), "OOOOOn", 6, (3, 3))
        .row((3, 3), "OOO", (2, 3));
    table(6, 1, 2)
        .scaled((6, 3), "OOOnnn", 4, (3, 8))
        .row((8, 3), "OOOnnnNN", (3, 8));
    table(2, 1, 2)
        .scaled((8, 3), "OOOnnnNN", 6, (3, 3))
        .row((3, 3), "OOn", (1, 3))
        .row((3, 1), "OnN", (0, 3))
        .row((3, 0), "nNN", (0, 2));
    table(3, 1, 2)
        .updated((6, 0), "OOOOOO", (3, 5))
        .row((5, 3), "OOOOO", (2, 5))
        .row((5, 3), "OOOnn", (2, 5));
}

#[test]
fn ord_125_rt_13_second_template_change() {
    table(4, 1, 2)
        .updated((4, 0), "OOOO", (4, 6))
        .row((6, 4), "OOOO--", (3, 6))
        .row((6, 3), "OOOnNN", (1, 6))
        .updated((6, 1), "OOOOOO", (4, 6))
        .row((6, 4), "OOOOOO", (3, 6));
}

#[test]
fn ord_124_rt_14_lws_api_18_user_partition() {
    table(6, 1, 0)
        .partition(4)
        .first((4, 6))
        .row((6, 4), "NNNNNN", (4, 6))
        .updated((6, 4), "OOOOOO", (6, 6))
        .row((6, 6), "OOOOOO", (5, 6))
        .row((6, 5), "OOOOON", (4, 6))
        .row((6, 4), "OOOONN", (4, 6));
    table(6, 1, 0)
        .partition(2)
        .row((6, 4), "OOOONN", (3, 6))
        .row((6, 3), "OOONNN", (2, 6))
        .row((6, 2), "OONNNN", (2, 6));
    table(6, 1, 0)
        .row((6, 2), "OONNNN", (1, 6))
        .row((6, 1), "ONNNNN", (0, 6));
}

#[test]
fn ord_57_rt_15_user_partition_and_surge() {
    table(3, 1, 1)
        .partition(2)
        .first((2, 3))
        .row((3, 2), "---", (2, 4))
        .row((4, 2), "NNnn", (2, 3))
        .updated((3, 2), "OOO", (3, 4))
        .row((4, 3), "OOO-", (2, 4))
        .row((4, 2), "OONN", (2, 4));
    table(3, 1, 1)
        .row((4, 2), "OONN", (0, 4))
        .row((4, 0), "nNNN", (0, 3));
}

#[test]
fn ord_rt_16_percentages() {
    let rows = Table::percent(10, "25%", "25%");
    assert_eq!(
        (rows.budget().max_unavailable, rows.budget().max_surge),
        (2, 3)
    );
    rows.updated((10, 0), "OOOOOOOOOO", (10, 13))
        .row((13, 10), "OOOOOOOOOO---", (8, 13))
        .row((13, 8), "OOOOOOOOnnNNN", (5, 13));
}

#[test]
fn ord_rt_17_small_sets() {
    table(1, 0, 1)
        .updated((1, 0), "O", (1, 2))
        .row((2, 1), "O-", (1, 2))
        .row((2, 1), "ON", (0, 2))
        .row((2, 0), "nN", (0, 2))
        .row((2, 0), "NN", (0, 1));
    for surge in [1, 0] {
        table(1, 1, surge)
            .updated((1, 0), "O", (1, 1))
            .row((1, 1), "O", (0, 1));
    }
}

#[test]
fn ord_120_121_122_lws_api_7_rt_18_zero_and_rest() {
    let zero = Table::percent(0, "1%", "50%");
    zero.first((0, 0))
        .updated((0, 0), "", (0, 0))
        .scaled((2, 0), "NN", 2, (0, 0));
    table(3, 1, 0).scaled((0, 0), "", 0, (0, 3));
    table(3, 1, 1).scaled((5, 0), "NNNNN", 5, (0, 3));
    table(3, 1, 2)
        .scaled((5, 0), "nnnNN", 5, (0, 5))
        .scaled((5, 0), "NNnnn", 5, (0, 3));
    table(3, 0, 1).scaled((2, 0), "NN", 2, (0, 3));
}

#[test]
fn ord_52_rt_19_want_alone() {
    for (replicas, surge, unavailable, unready, want) in [
        (1, 1, 0, 1, 2),
        (4, 2, 1, 2, 5),
        (2, 2, 1, 2, 3),
        (1, 1, 0, 0, 1),
        (1, 1, 1, 1, 1),
        (3, 0, 0, 1, 3),
        (4, 2, 2, 2, 4),
        (4, 2, 1, 3, 6),
    ] {
        assert_eq!(
            table(replicas, unavailable, surge)
                .budget()
                .replicas_for(unready),
            want,
            "L={replicas} S={surge} U={unavailable} u={unready}"
        );
    }
}

#[test]
fn ord_rt_21_budget_that_resolves_to_nothing() {
    Table::percent(2, "25%", "0%")
        .updated((2, 0), "OO", (2, 2))
        .row((2, 2), "OO", (1, 2))
        .row((2, 1), "ON", (0, 2))
        .row((2, 0), "NN", (0, 2));
}

/// An exhausted group counts as unavailable like any other.
#[test]
fn fail_tl_13_partition_with_an_exhausted_group() {
    table(2, 1, 0)
        .row((2, 2), "Oo", (1, 2))
        .row((2, 2), "oO", (2, 2));
    table(2, 2, 0).row((2, 2), "oO", (0, 2));
    table(2, 1, 1)
        .row((3, 2), "oOn", (2, 3))
        .row((3, 2), "oON", (0, 3));
}

#[test]
fn ord_51_wanted_groups_that_are_missing_not_ready_or_not_updated() {
    for (wanted, groups, expected) in [
        (4, "NNNN", 0),
        (4, "NonO", 3),
        (4, "NN--", 2),
        (4, "NN", 2),
        (2, "NNoo", 0),
        (0, "oo", 0),
    ] {
        assert_eq!(
            unready(wanted, &states(groups)),
            expected,
            "{wanted} {groups}"
        );
    }
}

#[test]
fn ord_63_replaced_at_once() {
    for (rows, expected) in [
        (table(4, 1, 0), 1),
        (table(4, 2, 1), 3),
        (table(4, 0, 2), 2),
        (table(0, 0, 0), 1),
        (table(4, 0, 0), 1),
        (
            Table {
                surge: json!("50%"),
                ..table(2, 1, 0)
            },
            2,
        ),
        (table(2, 1, 4), 3),
        (table(4, i32::MAX, 4), 2_147_483_647),
    ] {
        assert_eq!(
            rows.budget().replaced_at_once(),
            expected,
            "{:?}",
            rows.budget()
        );
    }
}

#[test]
fn ord_58_a_percentage_that_is_none() {
    for text in ["", "%", "5", "five%", "5 %", "99999999999%"] {
        let spec = json!({"rolloutStrategy": {"rollingUpdateConfiguration": {"maxSurge": text}}});
        let error = Budget::of(&serde_json::from_value(spec).unwrap()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!("maxSurge: invalid value {text:?}: neither a number nor a percentage")
        );
    }
}

#[test]
fn ord_22_ord_59_hostile_numbers_are_bounded() {
    let absurd = Table {
        partition: i32::MIN,
        ..table(-5, -1, i32::MAX)
    }
    .budget();
    assert_eq!(
        absurd,
        Budget {
            desired_replicas: 0,
            user_partition: 0,
            max_unavailable: 0,
            max_surge: 0
        }
    );
    let huge = table(i32::MAX, 0, i32::MAX);
    huge.updated((5, 0), "OOOOO", (5, 2_147_483_647));
    huge.check((2_147_483_647, 7), "", 1, false, (7, 2_147_483_647));
}

fn below(replicas: u32, groups: &str) -> GroupStates {
    let mut states = states(groups);
    states.retain(|index, _| *index < replicas);
    states
}

/// ORD-53 literally, group by group, to compare with.
fn step_by_the_letter(budget: Budget, current: Current, groups: &GroupStates) -> i64 {
    let (wanted, replicas, cur) = (
        i64::from(budget.desired_replicas),
        i64::from(current.replicas),
        i64::from(current.partition),
    );
    let at = |index: i64| groups.get(&u32::try_from(index).unwrap()).copied();
    let is_done = |index: i64| at(index).is_some_and(|g| g.is_ready && g.is_updated);
    let continuous = (0..replicas)
        .rev()
        .take_while(|index| is_done(*index))
        .map(|_| 1)
        .sum::<i64>();
    let size = i64::from(budget.max_unavailable) + replicas - wanted;
    let floor = (replicas - continuous - size).max(0);
    let mut partition = floor
        + (0..floor)
            .filter(|index| !at(*index).is_some_and(|g| g.is_ready))
            .map(|_| 1)
            .sum::<i64>();
    for index in (floor..=partition.min(replicas - 1)).rev() {
        if at(index).is_some_and(|g| g.is_ready && !g.is_updated) {
            break;
        }
        partition = index;
    }
    partition.min(cur)
}

proptest! {
    #[test]
    fn ord_53_shortcuts_give_what_the_letter_gives(
        wanted in 0..8i32, unavailable in 0..6i32, surge in 0..6i32, extra in 0..4u32, cur in 0..10u32, groups in "[OoNn-]{12}",
    ) {
        let budget = table(wanted, unavailable, surge).budget();
        let replicas = budget.desired_replicas + extra.min(budget.max_surge);
        let groups = below(replicas, &groups);
        let current = Current { replicas, partition: cur, desired_replicas: budget.desired_replicas };
        prop_assert_eq!(i64::from(step(budget, current, &groups)), step_by_the_letter(budget, current, &groups));
    }

    #[test]
    fn ord_53_partition_never_rises_within_a_rollout(
        wanted in 1..8i32, unavailable in 0..4i32, surge in 0..4i32, cur in 0..8u32, groups in "[OoNn-]{12}",
    ) {
        let budget = table(wanted, unavailable, surge).budget();
        let current = Current { replicas: budget.burst_replicas(), partition: cur, desired_replicas: budget.desired_replicas };
        let groups = below(current.replicas, &groups);
        prop_assert!(parameters(budget, Some(current), false, &groups).partition <= cur);
    }

    #[test]
    fn ord_50_any_numbers_are_survived(
        numbers in any::<[i32; 4]>(), current in any::<[u32; 3]>(), changed: bool, groups in "[OoNn-]{0,12}",
    ) {
        let [replicas, unavailable, surge, partition] = numbers;
        let budget = table(replicas, unavailable, surge).partition(partition).budget();
        let [replicas, partition, desired_replicas] = current;
        let result = parameters(budget, Some(Current { replicas, partition, desired_replicas }), changed, &states(&groups));
        prop_assert!(i32::try_from(result.partition).is_ok() && i32::try_from(result.replicas).is_ok());
    }
}
