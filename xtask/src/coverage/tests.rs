use super::*;

const COMMITTED: &str = "\
# Title

Tests begin with `ord_`.

| Rule | Says | Shown by |
|---|---|---|
| ORD-1 | one | `a.rs` |
| ORD-2 | two | a definition |
| ORD-3 | three |  |

Tests begin with `c` and a number.

| C01 | case |  |
";

fn test(file: &str, name: &str) -> Test {
    Test {
        file: file.to_owned(),
        name: name.to_owned(),
    }
}

/// The document after a run with these tests, and what it complains about.
fn outcome(tests: &[Test]) -> (String, Vec<String>) {
    let committed = Document::parse(COMMITTED).unwrap();
    let (current, mut problems) = judged(&committed, tests);
    problems.extend(committed.differing(&current));
    (current.render(), problems)
}

#[test]
fn files_of_the_tests_are_filled_in() {
    let (text, _) = outcome(&[
        test("b.rs", "ord_1_3_x"),
        test("a.rs", "ord_1_y"),
        test("a.rs", "ord_1_z"),
        test("e.rs", "c01_x"),
    ]);
    let expected = COMMITTED
        .replace("| one | `a.rs` |", "| one | `a.rs`, `b.rs` |")
        .replace("| three |  |", "| three | `b.rs` |")
        .replace("| case |  |", "| case | `e.rs` |");
    assert_eq!(text, expected);
}

#[test]
fn neither_test_nor_reason() {
    let (text, problems) = outcome(&[test("e.rs", "c01_x")]);
    assert!(text.contains("| ORD-1 | one |  |"), "{text}");
    assert!(text.contains("| ORD-2 | two | a definition |"), "{text}");
    assert!(
        problems.contains(&"neither a test nor a reason why not: ORD-1, ORD-3".to_owned()),
        "{problems:?}"
    );
}

#[test]
fn superfluous_reason_and_stale_list() {
    let (_, problems) = outcome(&[test("a.rs", "ord_1_2_3_x"), test("e.rs", "c01_x")]);
    let expected = [
        "ORD-2 (has a test now, the reason why not is superfluous)",
        "ORD-3",
        "C01",
    ];
    assert_eq!(problems, expected);
}

#[test]
fn unknown_rules_are_told_with_their_test() {
    let (_, problems) = outcome(&[
        test("a.rs", "ord_9_x"),
        test("a.rs", "c77_x"),
        test("a.rs", "krs_9_x"),
    ]);
    let told: Vec<_> = problems
        .iter()
        .filter(|problem| problem.contains(" cites "))
        .collect();
    assert_eq!(told.len(), 2, "{problems:?}");
    assert!(
        told[0].starts_with("a.rs: ord_9_x cites ORD-9"),
        "{problems:?}"
    );
    assert!(told[1].starts_with("a.rs: c77_x cites C77"), "{problems:?}");
}

#[test]
fn malformed_documents_are_refused() {
    for (text, complaint) in [
        ("| ORD-1 | one | x |", "no line says"),
        ("Tests begin with `ord_`\n| ORD-1 | one |", "three cells"),
        (
            "Tests begin with `ord_`\n| ORD-1 | a | x |\n| ORD-1 | b | x |",
            "twice",
        ),
    ] {
        let error = Document::parse(text).unwrap_err().to_string();
        assert!(error.contains(complaint), "{error}");
    }
}
