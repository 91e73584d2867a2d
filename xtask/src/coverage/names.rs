//! Reads the rules out of the name of a test: `ord_23_fail_40_41_counts_are_kept` cites ORD-23, FAIL-40 and FAIL-41.
//!
//! A name begins with the prefix of a part of the specification. There follow, before the first other word, families (`v` in
//! `adm_v_8`; the part's own name may be the family, as in `ord_23`), numbers of the family read last, ranges
//! (`v_2_to_4`), further prefixes, and cases (`c07`). A family that only one part has needs no prefix.

use std::collections::{BTreeMap, BTreeSet};

/// A rule, or a case.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Rule {
    /// Prefix of the part of the specification that has it; families of different parts may share a name.
    pub area: String,
    /// As the specification calls it: `ORD-23`, `C07`.
    pub id: String,
}

/// Area of the cases.
pub const CASES: &str = "c";

/// The families of rules that each part of the specification has, all in lower case.
#[derive(Debug, Default)]
pub struct Families(BTreeMap<String, BTreeSet<String>>);

impl Families {
    /// Notes the family of a rule.
    pub fn add(&mut self, rule: &Rule) {
        let families = self.0.entry(rule.area.clone()).or_default();
        if let Some((family, _)) = rule.id.split_once('-') {
            families.insert(family.to_lowercase());
        }
    }

    /// The rules that the name of a test cites, known or not.
    pub fn cited(&self, test: &str) -> Vec<Rule> {
        let words: Vec<&str> = test.split('_').collect();
        let mut reader = Reader {
            families: self,
            area: None,
            family: None,
            last: 0,
            rules: Vec::new(),
        };
        let mut rest = words.as_slice();
        while let Some(after) = reader.read(rest) {
            rest = after;
        }
        reader.rules
    }

    fn has(&self, area: &str, family: &str) -> bool {
        self.0
            .get(area)
            .is_some_and(|families| families.contains(family))
    }

    /// The part that has a family, if there is only one.
    fn only_area_of(&self, family: &str) -> Option<&str> {
        let mut areas = self
            .0
            .iter()
            .filter(|(_, families)| families.contains(family));
        let (area, _) = areas.next()?;
        areas.next().is_none().then_some(area)
    }
}

/// Reads a name word by word.
struct Reader<'f> {
    families: &'f Families,
    /// The prefix read last.
    area: Option<String>,
    /// The family read last, with the part that has it.
    family: Option<(String, String)>,
    /// The number read last.
    last: u32,
    rules: Vec<Rule>,
}

impl Reader<'_> {
    /// Reads one or a few words and returns those that follow; nothing when the part of the name that cites is over.
    fn read<'w>(&mut self, words: &'w [&'w str]) -> Option<&'w [&'w str]> {
        match words {
            [case, rest @ ..] if is_case(case) => {
                self.rules.push(Rule {
                    area: CASES.to_owned(),
                    id: case.to_uppercase(),
                });
                Some(rest)
            }
            ["to", family, end, rest @ ..] if self.is_current(family) && is_number(end) => {
                self.range(end, rest)
            }
            ["to", end, rest @ ..] if is_number(end) => self.range(end, rest),
            [number, rest @ ..] if is_number(number) => self.number(number, rest),
            [area, family, number, ..] if self.families.has(area, family) && is_number(number) => {
                self.area = Some((*area).to_owned());
                words.get(1..)
            }
            [family, number, rest @ ..] if is_number(number) => {
                self.family = Some((self.area_of(family)?, (*family).to_owned()));
                self.number(number, rest)
            }
            _ => None,
        }
    }

    /// Where a family is looked for: in the part named last, in the part that is called like it, in the only part that has it.
    fn area_of(&self, family: &str) -> Option<String> {
        let named = self
            .area
            .as_deref()
            .filter(|area| self.families.has(area, family));
        let own = || self.families.has(family, family).then_some(family);
        named
            .or_else(own)
            .or_else(|| self.families.only_area_of(family))
            .map(str::to_owned)
    }

    fn is_current(&self, family: &str) -> bool {
        self.family
            .as_ref()
            .is_some_and(|(_, current)| current == family)
    }

    fn number<'w>(&mut self, number: &str, rest: &'w [&'w str]) -> Option<&'w [&'w str]> {
        let (area, family) = self.family.as_ref()?;
        self.last = number.parse().ok()?;
        self.rules.push(Rule {
            area: area.clone(),
            id: format!("{}-{number}", family.to_uppercase()),
        });
        Some(rest)
    }

    fn range<'w>(&mut self, end: &str, rest: &'w [&'w str]) -> Option<&'w [&'w str]> {
        let end: u32 = end.parse().ok()?;
        for number in self.last.checked_add(1)?..=end {
            self.number(&number.to_string(), rest)?;
        }
        Some(rest)
    }
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_case(word: &str) -> bool {
    word.len() == 3 && word.strip_prefix(CASES).is_some_and(is_number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cited(test: &str) -> Vec<String> {
        let mut families = Families::default();
        for (area, id) in [
            ("ord", "ORD-1"),
            ("ord", "RT-1"),
            ("fail", "FAIL-1"),
            ("adm", "ADM-1"),
            ("adm", "V-1"),
            ("adm", "S-1"),
            ("ds", "V-1"),
            ("lws", "API-1"),
            ("ds", "API-1"),
            ("pod", "GATE-1"),
        ] {
            families.add(&Rule {
                area: area.to_owned(),
                id: id.to_owned(),
            });
        }
        let rules = families.cited(test);
        rules
            .iter()
            .map(|rule| format!("{} {}", rule.area, rule.id))
            .collect()
    }

    #[test]
    fn rules_are_read_up_to_the_first_other_word() {
        for (test, rules) in [
            ("ord_53_step_counts_2_groups", vec!["ord ORD-53"]),
            ("ord_rt_7_surge", vec!["ord RT-7"]),
            ("rt_7_surge", vec!["ord RT-7"]),
            ("fail_74_75_recovery", vec!["fail FAIL-74", "fail FAIL-75"]),
            ("ord_40_fail_77_after", vec!["ord ORD-40", "fail FAIL-77"]),
            ("ord_107_lws_api_26_x", vec!["ord ORD-107", "lws API-26"]),
            ("adm_v_1_s_15_keys", vec!["adm V-1", "adm S-15"]),
            ("adm_adm_7_stored", vec!["adm ADM-7"]),
            (
                "adm_s_6_s_12_to_s_14_each",
                vec!["adm S-6", "adm S-12", "adm S-13", "adm S-14"],
            ),
            ("adm_v_8_to_9_each", vec!["adm V-8", "adm V-9"]),
            ("ds_v_1_x", vec!["ds V-1"]),
            (
                "fail_96_gate_4_97_lifted",
                vec!["fail FAIL-96", "pod GATE-4", "pod GATE-97"],
            ),
            ("c07_order_of_variables", vec!["c C07"]),
            ("adm_v_8_c02_a_scale", vec!["adm V-8", "c C02"]),
            ("fail_31_row_7_size", vec!["fail FAIL-31"]),
        ] {
            assert_eq!(cited(test), rules, "{test}");
        }
    }

    #[test]
    fn names_that_cite_nothing() {
        for test in [
            "failed_step_is_told",
            "krs_20_back_off",
            "v_1_of_two_parts",
            "ord_of_the_groups",
            "to_4",
            "c7_x",
        ] {
            assert_eq!(cited(test), Vec::<String>::new(), "{test}");
        }
    }
}
