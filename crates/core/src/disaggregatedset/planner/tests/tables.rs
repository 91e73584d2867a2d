//! Tables 10.1 and 10.2: a template change, alone or with other sizes or roles. Old counts, target counts, step.

use super::fixture::Slice;

/// A template change of roles of these sizes.
fn plain(sizes: &str, budget: (u64, u64)) -> Slice {
    Slice::new(sizes, budget).old("A", sizes, sizes)
}

#[test]
fn dsr_t01_one_to_one_by_default() {
    plain("1/1", (0, 1)).follows(
        "
        0 | 1/1 | 0/0 | start
        1 | 0/0 | 0/0 | ordinary
        2 | 0/0 | 1/1 | grow-only
        ",
    );
}

#[test]
fn dsr_t02_one_to_one_with_surge() {
    plain("1/1", (1, 0)).follows(
        "
        0 | 1/1 | 0/0 | start
        1 | 1/1 | 1/1 | ordinary
        2 | 0/0 | 1/1 | ordinary
        ",
    );
}

#[test]
fn dsr_t03_one_to_two_by_default() {
    plain("1/2", (0, 1)).follows(
        "
        0 | 1/2 | 0/0 | start
        1 | 1/1 | 0/0 | ordinary
        2 | 1/1 | 0/1 | ordinary
        3 | 1/1 | 1/1 | bootstrap
        4 | 0/0 | 1/1 | ordinary
        5 | 0/0 | 1/2 | grow-only
        ",
    );
}

#[test]
fn dsr_t04_one_to_two_with_surge() {
    plain("1/2", (1, 0)).follows(
        "
        0 | 1/2 | 0/0 | start
        1 | 1/2 | 1/1 | ordinary
        2 | 1/1 | 1/1 | ordinary
        3 | 1/1 | 1/2 | ordinary
        4 | 0/0 | 1/2 | ordinary
        ",
    );
}

#[test]
fn dsr_t05_three_to_seven_by_default() {
    plain("3/7", (0, 1)).follows(
        "
        0 | 3/7 | 0/0 | start
        1 | 2/6 | 0/0 | ordinary
        2 | 2/6 | 1/1 | ordinary
        3 | 2/5 | 1/1 | ordinary
        4 | 2/5 | 1/2 | ordinary
        5 | 1/4 | 1/2 | ordinary
        6 | 1/4 | 2/3 | ordinary
        7 | 1/3 | 2/3 | ordinary
        8 | 1/3 | 2/4 | ordinary
        9 | 1/2 | 2/4 | ordinary
        10 | 1/2 | 2/5 | ordinary
        11 | 1/1 | 2/5 | ordinary
        12 | 1/1 | 2/6 | ordinary
        13 | 0/0 | 2/6 | ordinary
        14 | 0/0 | 3/7 | grow-only
        ",
    );
}

#[test]
fn dsr_t06_three_to_seven_with_surge() {
    plain("3/7", (1, 0)).follows(
        "
        0 | 3/7 | 0/0 | start
        1 | 3/7 | 1/1 | ordinary
        2 | 2/6 | 1/1 | ordinary
        3 | 2/6 | 1/2 | ordinary
        4 | 2/5 | 1/2 | ordinary
        5 | 2/5 | 2/3 | ordinary
        6 | 1/4 | 2/3 | ordinary
        7 | 1/4 | 2/4 | ordinary
        8 | 1/3 | 2/4 | ordinary
        9 | 1/3 | 3/5 | ordinary
        10 | 1/2 | 3/5 | ordinary
        11 | 1/2 | 3/6 | ordinary
        12 | 1/1 | 3/6 | ordinary
        13 | 1/1 | 3/7 | ordinary
        14 | 0/0 | 3/7 | ordinary
        ",
    );
}

#[test]
fn dsr_t07_three_to_seven_with_both() {
    plain("3/7", (1, 1)).follows(
        "
        0 | 3/7 | 0/0 | start
        1 | 2/6 | 1/1 | ordinary
        2 | 2/5 | 1/2 | ordinary
        3 | 1/4 | 2/3 | ordinary
        4 | 1/3 | 2/4 | ordinary
        5 | 1/2 | 3/5 | ordinary
        6 | 1/1 | 3/6 | ordinary
        7 | 0/0 | 3/7 | ordinary
        ",
    );
}

#[test]
fn dsr_t08_one_to_five_needs_a_bootstrap() {
    plain("1/5", (0, 1)).follows(
        "
        0 | 1/5 | 0/0 | start
        1 | 1/4 | 0/0 | ordinary
        2 | 1/4 | 0/1 | ordinary
        3 | 1/4 | 1/1 | bootstrap
        4 | 1/3 | 1/1 | ordinary
        5 | 1/3 | 1/2 | ordinary
        6 | 1/2 | 1/2 | ordinary
        7 | 1/2 | 1/3 | ordinary
        8 | 1/1 | 1/3 | ordinary
        9 | 1/1 | 1/4 | ordinary
        10 | 0/0 | 1/4 | ordinary
        11 | 0/0 | 1/5 | grow-only
        ",
    );
}

#[test]
fn dsr_t09_one_role_by_default() {
    plain("3", (0, 1)).follows(
        "
        0 | 3 | 0 | start
        1 | 2 | 0 | ordinary
        2 | 2 | 1 | ordinary
        3 | 1 | 1 | ordinary
        4 | 1 | 2 | ordinary
        5 | 0 | 2 | ordinary
        6 | 0 | 3 | grow-only
        ",
    );
}

#[test]
fn dsr_t10_one_role_with_surge() {
    plain("3", (1, 0)).follows(
        "
        0 | 3 | 0 | start
        1 | 3 | 1 | ordinary
        2 | 2 | 1 | ordinary
        3 | 2 | 2 | ordinary
        4 | 1 | 2 | ordinary
        5 | 1 | 3 | ordinary
        6 | 0 | 3 | ordinary
        ",
    );
}

#[test]
fn dsr_t11_three_roles_with_surge() {
    plain("2/4/6", (1, 0)).follows(
        "
        0 | 2/4/6 | 0/0/0 | start
        1 | 2/4/6 | 1/1/1 | ordinary
        2 | 1/3/5 | 1/1/1 | ordinary
        3 | 1/3/5 | 1/2/2 | ordinary
        4 | 1/2/4 | 1/2/2 | ordinary
        5 | 1/2/4 | 2/3/3 | ordinary
        6 | 1/1/3 | 2/3/3 | ordinary
        7 | 1/1/3 | 2/4/4 | ordinary
        8 | 1/1/2 | 2/4/4 | ordinary
        9 | 1/1/2 | 2/4/5 | ordinary
        10 | 1/1/1 | 2/4/5 | ordinary
        11 | 1/1/1 | 2/4/6 | ordinary
        12 | 0/0/0 | 2/4/6 | ordinary
        ",
    );
}

#[test]
fn dsr_t12_three_roles_by_default() {
    plain("2/4/6", (0, 1)).follows(
        "
        0 | 2/4/6 | 0/0/0 | start
        1 | 1/3/5 | 0/0/0 | ordinary
        2 | 1/3/5 | 1/1/1 | ordinary
        3 | 1/2/4 | 1/1/1 | ordinary
        4 | 1/2/4 | 1/2/2 | ordinary
        5 | 1/1/3 | 1/2/2 | ordinary
        6 | 1/1/3 | 1/3/3 | ordinary
        7 | 1/1/2 | 1/3/3 | ordinary
        8 | 1/1/2 | 1/3/4 | ordinary
        9 | 1/1/1 | 1/3/4 | ordinary
        10 | 1/1/1 | 1/3/5 | ordinary
        11 | 0/0/0 | 1/3/5 | ordinary
        12 | 0/0/0 | 2/4/6 | grow-only
        ",
    );
}

#[test]
fn dsr_t13_eight_to_four_with_two_of_both() {
    plain("8/4", (2, 2)).follows(
        "
        0 | 8/4 | 0/0 | start
        1 | 6/2 | 2/2 | ordinary
        2 | 4/1 | 4/3 | ordinary
        3 | 2/1 | 6/4 | ordinary
        4 | 0/0 | 8/4 | ordinary
        ",
    );
}

#[test]
fn dsr_t22_four_to_four_with_surge_two() {
    plain("4/4", (2, 0)).follows(
        "
        0 | 4/4 | 0/0 | start
        1 | 4/4 | 2/2 | ordinary
        2 | 2/2 | 2/2 | ordinary
        3 | 2/2 | 4/4 | ordinary
        4 | 0/0 | 4/4 | ordinary
        ",
    );
}

#[test]
fn dsr_t21_roles_with_budgets_of_their_own() {
    plain("4/2", (1, 0)).budgets(&[(1, 0), (0, 1)]).follows(
        "
        0 | 4/2 | 0/0 | start
        1 | 4/1 | 1/0 | ordinary
        2 | 4/1 | 1/1 | ordinary
        3 | 3/1 | 1/1 | ordinary
        4 | 3/1 | 2/1 | ordinary
        5 | 2/1 | 2/1 | ordinary
        6 | 2/1 | 3/1 | ordinary
        7 | 1/1 | 3/1 | ordinary
        8 | 1/1 | 4/1 | ordinary
        9 | 0/0 | 4/1 | ordinary
        10 | 0/0 | 4/2 | grow-only
        ",
    );
}

#[test]
fn dsr_t14_sizes_grow_with_the_template() {
    Slice::new("4/8", (1, 0)).old("A", "2/4", "2/4").follows(
        "
        0 | 2/4 | 0/0 | start
        1 | 2/4 | 1/1 | ordinary
        2 | 1/3 | 2/2 | ordinary
        3 | 1/2 | 2/3 | ordinary
        4 | 1/1 | 3/4 | ordinary
        5 | 0/0 | 3/5 | ordinary
        6 | 0/0 | 4/8 | grow-only
        ",
    );
}

#[test]
fn dsr_t15_sizes_shrink_with_the_template() {
    Slice::new("2/4", (1, 0)).old("A", "4/8", "4/8").follows(
        "
        0 | 4/8 | 0/0 | start
        1 | 2/4 | 1/1 | ordinary
        2 | 1/3 | 2/2 | ordinary
        3 | 1/2 | 2/3 | ordinary
        4 | 1/1 | 2/4 | ordinary
        5 | 0/0 | 2/4 | ordinary
        ",
    );
}

#[test]
fn dsr_t20_everything_goes() {
    Slice::new("0/0", (1, 0)).old("A", "2/4", "2/4").follows(
        "
        0 | 2/4 | 0/0 | start
        1 | 0/0 | 0/0 | ordinary
        ",
    );
}

#[test]
fn dsr_t16_a_role_is_added() {
    Slice::new("2/2/2", (1, 0))
        .old("A", "2/2/0", "2/2/0")
        .follows(
            "
        0 | 2/2/0 | 0/0/0 | start
        1 | 2/2/0 | 1/1/2 | ordinary
        2 | 1/1/0 | 1/1/2 | ordinary
        3 | 1/1/0 | 2/2/2 | ordinary
        4 | 0/0/0 | 2/2/2 | ordinary
        ",
        );
}

#[test]
fn dsr_t17_a_role_is_removed() {
    Slice::new("2/2/0", (1, 0))
        .old("A", "2/2/2", "2/2/2")
        .follows(
            "
        0 | 2/2/2 | 0/0/0 | start
        1 | 2/2/1 | 1/1/0 | ordinary
        2 | 1/1/1 | 1/1/0 | ordinary
        3 | 1/1/1 | 2/2/0 | ordinary
        4 | 0/0/0 | 2/2/0 | ordinary
        ",
        );
}

#[test]
fn dsr_t18_one_role_is_replaced() {
    Slice::new("2/2/0", (1, 0))
        .old("A", "2/0/2", "2/0/2")
        .follows(
            "
        0 | 2/0/2 | 0/0/0 | start
        1 | 2/0/1 | 1/2/0 | ordinary
        2 | 1/0/1 | 1/2/0 | ordinary
        3 | 1/0/1 | 2/2/0 | ordinary
        4 | 0/0/0 | 2/2/0 | ordinary
        ",
        );
}

#[test]
fn dsr_t19_all_roles_are_replaced() {
    Slice::new("2/2/0/0", (1, 0))
        .old("A", "0/0/2/2", "0/0/2/2")
        .follows(
            "
        0 | 0/0/2/2 | 0/0/0/0 | start
        1 | 0/0/2/2 | 1/1/0/0 | ordinary
        2 | 0/0/1/1 | 2/2/0/0 | ordinary
        3 | 0/0/0/0 | 2/2/0/0 | ordinary
        ",
        );
}

#[test]
fn dsr_t23_all_roles_are_replaced_by_default() {
    Slice::new("2/4/0/0", (0, 1))
        .budgets(&[(0, 1), (0, 1), (1, 0), (1, 0)])
        .old("A", "0/0/2/4", "0/0/2/4")
        .follows(
            "
        0 | 0/0/2/4 | 0/0/0/0 | start
        1 | 0/0/2/4 | 1/1/0/0 | ordinary
        2 | 0/0/2/3 | 2/2/0/0 | ordinary
        3 | 0/0/1/2 | 2/3/0/0 | ordinary
        4 | 0/0/1/1 | 2/4/0/0 | ordinary
        5 | 0/0/0/0 | 2/4/0/0 | ordinary
        ",
        );
}
