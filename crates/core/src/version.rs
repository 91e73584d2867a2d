//! Order of resourceVersions of one kind (KRS-36).

use std::cmp::Ordering;

/// KRS-36: decimal integers of any length without leading zeros, so the longer one is newer. `None`: not comparable.
pub(crate) fn compare(a: &str, b: &str) -> Option<Ordering> {
    (is_version(a) && is_version(b)).then(|| a.len().cmp(&b.len()).then_with(|| a.cmp(b)))
}

fn is_version(text: &str) -> bool {
    !text.is_empty() && !text.starts_with('0') && text.bytes().all(|byte| byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn krs_36_versions_compare_by_length_then_digits() {
        let huge = "340282366920938463463374607431768211456";
        for (a, b, order) in [
            ("5", "5", Some(Ordering::Equal)),
            ("9", "10", Some(Ordering::Less)),
            ("10", "9", Some(Ordering::Greater)),
            ("120", "119", Some(Ordering::Greater)),
            (huge, "9", Some(Ordering::Greater)),
            (
                huge,
                "340282366920938463463374607431768211457",
                Some(Ordering::Less),
            ),
            ("0", "1", None),
            ("1", "0", None),
            ("01", "1", None),
            ("", "1", None),
            ("1", "", None),
            ("-1", "1", None),
            ("1a", "1", None),
            ("1", "１", None),
        ] {
            assert_eq!(compare(a, b), order, "{a} {b}");
        }
    }
}
