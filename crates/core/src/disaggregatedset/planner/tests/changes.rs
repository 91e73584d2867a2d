//! Tables 10.3 and 10.4: sizes, templates and rollbacks during a rollout. Counts from the oldest revision to the target, step.

use super::fixture::Slice;

/// A template change of roles of these sizes.
fn plain(sizes: &str, budget: (u64, u64)) -> Slice {
    Slice::new(sizes, budget).old("A", sizes, sizes)
}

#[test]
fn dsr_m01_more_are_wanted_when_coupled() {
    plain("2/4", (1, 0)).follows(
        "
        0 | 2/4 | 0/0 | start
        1 | 2/4 | 1/1 | ordinary, active A
        2 | 1/3 | 1/1 | ordinary, active A
        3 | 1/3 | 2/2 | ordinary, active A
        4 | 1/2 | 2/3 | desired becomes 3/6; ordinary, active A
        5 | 1/1 | 3/4 | ordinary, active A
        6 | 0/0 | 3/5 | ordinary, active A
        7 | 0/0 | 3/6 | grow-only
        8 | 0/0 | 3/6 | complete
        ",
    );
}

#[test]
fn dsr_m02_more_are_wanted_when_advancing() {
    plain("2/4", (1, 0)).advancing().follows(
        "
        0 | 2/4 | 0/0 | start
        1 | 2/4 | 1/1 | ordinary, active A
        2 | 1/3 | 1/1 | ordinary, active A
        3 | 1/3 | 2/2 | ordinary, active A
        4 | 1/3 | 2/3 | desired becomes 3/6; ordinary, active A
        5 | 1/3 | 3/4 | ordinary, active A
        6 | 1/2 | 3/4 | ordinary, active A
        7 | 1/2 | 3/5 | ordinary, active A
        8 | 1/1 | 3/5 | ordinary, active A
        9 | 1/1 | 3/6 | ordinary, active A
        10 | 0/0 | 3/6 | ordinary, active A
        11 | 0/0 | 3/6 | complete
        ",
    );
}

#[test]
fn dsr_m03_fewer_are_wanted_when_coupled() {
    plain("4/8", (1, 0)).follows(
        "
        0 | 4/8 | 0/0 | start
        1 | 4/8 | 1/1 | ordinary, active A
        2 | 3/7 | 1/1 | ordinary, active A
        3 | 3/7 | 2/2 | ordinary, active A
        4 | 2/6 | 2/2 | ordinary, active A
        5 | 2/6 | 2/3 | ordinary, active A
        6 | 1/1 | 2/3 | desired becomes 2/4; ordinary, active A
        7 | 1/1 | 2/4 | ordinary, active A
        8 | 0/0 | 2/4 | ordinary, active A
        9 | 0/0 | 2/4 | complete
        ",
    );
}

#[test]
fn dsr_m03_fewer_are_wanted_when_advancing() {
    plain("4/8", (1, 0)).advancing().follows(
        "
        0 | 4/8 | 0/0 | start
        1 | 4/8 | 1/1 | ordinary, active A
        2 | 3/7 | 1/1 | ordinary, active A
        3 | 3/7 | 2/2 | ordinary, active A
        4 | 2/6 | 2/2 | ordinary, active A
        5 | 2/6 | 2/3 | ordinary, active A
        6 | 1/1 | 2/3 | desired becomes 2/4; ordinary, active A
        7 | 1/1 | 2/4 | ordinary, active A
        8 | 0/0 | 2/4 | ordinary, active A
        9 | 0/0 | 2/4 | complete
        ",
    );
}

#[test]
fn dsr_m11_target_above_what_is_wanted_stays_when_coupled() {
    plain("4/4", (1, 0)).follows(
        "
        0 | 4/4 | 0/0 | start
        1 | 4/4 | 1/1 | ordinary, active A
        2 | 3/3 | 1/1 | ordinary, active A
        3 | 3/3 | 2/2 | ordinary, active A
        4 | 2/2 | 2/2 | ordinary, active A
        5 | 2/2 | 3/3 | ordinary, active A
        6 | 0/0 | 3/3 | desired becomes 1/1; ordinary, active A
        7 | 0/0 | 3/3 | complete
        ",
    );
}

#[test]
fn dsr_m12_target_above_what_is_wanted_shrinks_when_advancing() {
    plain("4/4", (1, 0)).advancing().follows(
        "
        0 | 4/4 | 0/0 | start
        1 | 4/4 | 1/1 | ordinary, active A
        2 | 3/3 | 1/1 | ordinary, active A
        3 | 3/3 | 2/2 | ordinary, active A
        4 | 2/2 | 2/2 | ordinary, active A
        5 | 2/2 | 3/3 | ordinary, active A
        6 | 0/0 | 3/3 | desired becomes 1/1; ordinary, active A
        7 | 0/0 | 1/1 | target ordinary
        8 | 0/0 | 1/1 | complete
        ",
    );
}

#[test]
fn dsr_m04_a_scaler_goes_down_when_coupled() {
    plain("4/4", (1, 0)).external(1).follows(
        "
        0 | 4/4 | 0/0 | start
        1 | 4/4 | 1/1 | ordinary, active A
        2 | 3/3 | 1/1 | ordinary, active A
        3 | 3/3 | 2/2 | ordinary, active A
        4 | 2/2 | 2/2 | ordinary, active A
        5 | 2/2 | 3/3 | ordinary, active A
        6 | 1/1 | 3/3 | desired becomes 4/1; ordinary, active A
        7 | 1/1 | 4/3 | ordinary, active A
        8 | 0/0 | 4/3 | ordinary, active A
        9 | 0/0 | 4/3 | complete
        ",
    );
}

#[test]
fn dsr_m05_a_scaler_goes_down_when_advancing() {
    plain("4/4", (1, 0)).external(1).advancing().follows(
        "
        0 | 4/4 | 0/0 | start
        1 | 4/4 | 1/1 | ordinary, active A
        2 | 3/3 | 1/1 | ordinary, active A
        3 | 3/3 | 2/2 | ordinary, active A
        4 | 2/2 | 2/2 | ordinary, active A
        5 | 2/2 | 3/3 | ordinary, active A
        6 | 1/1 | 3/3 | desired becomes 4/1; ordinary, active A
        7 | 1/1 | 4/1 | ordinary, active A
        8 | 0/0 | 4/1 | ordinary, active A
        9 | 0/0 | 4/1 | complete
        ",
    );
}

#[test]
fn dsr_m06_second_change_in_the_middle() {
    Slice::new("4/4", (1, 0))
        .old("B", "4/4", "2/2")
        .old("A", "4/4", "3/3")
        .follows(
            "
        0 | 3/3 | 2/2 | 0/0 | start
        1 | 3/3 | 1/1 | 0/0 | ordinary, active B
        2 | 3/3 | 1/1 | 1/1 | ordinary, active B
        3 | 3/3 | 0/0 | 1/1 | ordinary, active B
        4 | 3/3 | - | 2/2 | ordinary, active A
        5 | 2/2 | - | 2/2 | ordinary, active A
        6 | 2/2 | - | 3/3 | ordinary, active A
        7 | 1/1 | - | 3/3 | ordinary, active A
        8 | 1/1 | - | 4/4 | ordinary, active A
        9 | 0/0 | - | 4/4 | ordinary, active A
        10 | 0/0 | - | 4/4 | complete
        ",
        );
}

#[test]
fn dsr_m07_second_change_with_a_small_role() {
    Slice::new("2/4", (0, 1))
        .old("B", "2/4", "1/1")
        .old("A", "2/4", "1/2")
        .follows(
            "
        0 | 1/2 | 1/1 | 0/0 | start
        1 | 1/2 | 1/1 | 0/1 | ordinary, active B
        2 | 1/2 | 1/1 | 1/1 | bootstrap, active B
        3 | 1/2 | 0/0 | 1/1 | ordinary, active B
        4 | 1/2 | - | 1/2 | ordinary, active A
        5 | 1/1 | - | 1/2 | ordinary, active A
        6 | 1/1 | - | 1/3 | ordinary, active A
        7 | 0/0 | - | 1/3 | ordinary, active A
        8 | 0/0 | - | 2/4 | grow-only
        9 | 0/0 | - | 2/4 | complete
        ",
        );
}

#[test]
fn dsr_m08_second_change_while_the_first_never_became_ready() {
    Slice::new("4/4", (1, 0))
        .broken("B", "4/4", "1/1")
        .old("A", "4/4", "4/4")
        .follows(
            "
        0 | 4/4 | 1/1 | 0/0 | start
        1 | 4/4 | 0/0 | 0/0 | ordinary, active B
        2 | 4/4 | - | 1/1 | ordinary, active A
        3 | 3/3 | - | 1/1 | ordinary, active A
        4 | 3/3 | - | 2/2 | ordinary, active A
        5 | 2/2 | - | 2/2 | ordinary, active A
        6 | 2/2 | - | 3/3 | ordinary, active A
        7 | 1/1 | - | 3/3 | ordinary, active A
        8 | 1/1 | - | 4/4 | ordinary, active A
        9 | 0/0 | - | 4/4 | ordinary, active A
        10 | 0/0 | - | 4/4 | complete
        ",
        );
}

#[test]
fn dsr_m10_second_change_with_other_sizes() {
    Slice::new("5/2", (1, 0))
        .old("B", "3/3", "2/2")
        .old("A", "3/3", "2/2")
        .follows(
            "
        0 | 2/2 | 2/2 | 0/0 | start
        1 | 2/2 | 1/1 | 1/0 | ordinary, active B
        2 | 2/2 | 1/1 | 2/1 | ordinary, active B
        3 | 2/2 | 0/0 | 3/1 | ordinary, active B
        4 | 1/1 | - | 4/2 | ordinary, active A
        5 | 0/0 | - | 5/2 | ordinary, active A
        6 | 0/0 | - | 5/2 | complete
        ",
        );
}

#[test]
fn dsr_m09_rollback() {
    Slice::new("4/4", (1, 0))
        .target("3/3")
        .old("B", "4/4", "2/2")
        .follows(
            "
        0 | 2/2 | 3/3 | start
        1 | 1/1 | 3/3 | ordinary, active B
        2 | 1/1 | 4/4 | ordinary, active B
        3 | 0/0 | 4/4 | ordinary, active B
        4 | 0/0 | 4/4 | complete
        ",
        );
}

#[test]
fn dsr_m13_rollback_from_what_never_became_ready() {
    Slice::new("4/4", (1, 0))
        .target("4/4")
        .broken("B", "4/4", "1/1")
        .follows(
            "
        0 | 1/1 | 4/4 | start
        1 | 0/0 | 4/4 | ordinary, active B
        2 | 0/0 | 4/4 | complete
        ",
        );
}
