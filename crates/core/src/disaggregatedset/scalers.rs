//! Scalers of roles whose size comes from outside: which there are, and which are to be made or to go (SCL-1 … SCL-7).
//!
//! A scaler drives what its labels say, if the set controls it; its name alone says nothing (SCR-6).

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::disaggregatedset::{Role, ScalingMode};

use super::children::{Child, Children};
use super::sub_roles::Counts;
use super::targets::{LeafKey, external_leaves};
use crate::build::role_scaler::name;
use crate::model::{Ds, RoleScaler};

/// SCL-2 … SCL-4: what the scalers with the name of a set are to it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scalers {
    usable: BTreeMap<LeafKey, Arc<RoleScaler>>,
    obsolete: Vec<Arc<RoleScaler>>,
}

impl Scalers {
    /// Judges the scalers `found`.
    pub fn of(set: &Ds, found: &[Arc<RoleScaler>]) -> Self {
        let mut scalers = Self::default();
        let ours = found.iter().filter(|scaler| {
            scaler.meta.is_controlled_by(&set.meta.uid) && !scaler.meta.is_terminating()
        });
        let leaves = external_leaves(&set.spec);
        for scaler in ours {
            let (role, sub_role) = scaler.drives();
            let key = LeafKey {
                role: role.into(),
                sub_role: (!sub_role.is_empty()).then(|| sub_role.into()),
            };
            if leaves.contains(&key) {
                scalers.usable.entry(key).or_insert_with(|| scaler.clone());
            } else {
                scalers.obsolete.push(scaler.clone());
            }
        }
        scalers
    }

    /// The scalers that drive a leaf.
    pub fn usable(&self) -> impl Iterator<Item = (&LeafKey, &Arc<RoleScaler>)> {
        self.usable.iter()
    }

    /// Wanted groups of a leaf.
    pub fn replicas(&self, leaf: &LeafKey) -> Option<i32> {
        self.usable.get(leaf).map(|scaler| scaler.replicas)
    }

    /// SCL-3: scalers that drive nothing any more.
    pub fn obsolete(&self) -> &[Arc<RoleScaler>] {
        &self.obsolete
    }

    /// SCL-5: leaves without a scaler, in spec order, with the name that one would have.
    pub fn missing(&self, set: &Ds) -> Vec<(LeafKey, String)> {
        external_leaves(&set.spec)
            .into_iter()
            .filter(|leaf| !self.usable.contains_key(leaf))
            .map(|leaf| {
                let name = name(&set.key().name, &leaf.role, leaf.sub_role.as_deref());
                (leaf, name)
            })
            .collect()
    }
}

/// SCL-5: the number that a new scaler of `leaf` begins with, so that nothing changes by its coming.
pub fn seed(set: &Ds, children: &Children, revision: &str, leaf: &LeafKey) -> u32 {
    let of_role: Vec<&Child> = children
        .list
        .iter()
        .filter(|child| child.role() == &*leaf.role)
        .collect();
    let role = set.spec.roles.iter().find(|role| role.name == *leaf.role);
    match (role, leaf.sub_role.as_deref()) {
        (Some(role), Some(sub_role)) => seed_of_part(role, &of_role, revision, sub_role),
        _ => current_size(&of_role, revision).unwrap_or(1),
    }
}

/// Intended groups of the target revision, else the groups that there are; `None` when the role has no child yet.
fn current_size(of_role: &[&Child], revision: &str) -> Option<u32> {
    if of_role.is_empty() {
        return None;
    }
    let intended: Vec<u32> = of_role
        .iter()
        .filter(|child| child.revision() == revision)
        .filter_map(|child| child.initial_replicas())
        .collect();
    Some(if intended.is_empty() {
        sum(of_role.iter().map(|child| child.replicas()))
    } else {
        sum(intended.into_iter())
    })
}

/// Static sub-roles take their share of a running role first, in spec order; the first external one gets the rest.
fn seed_of_part(role: &Role, of_role: &[&Child], revision: &str, sub_role: &str) -> u32 {
    let issued: Vec<Counts> = of_role.iter().filter_map(|child| child.issued()).collect();
    if !issued.is_empty() {
        let counts = issued.iter().map(|counts| counts.get(sub_role));
        return sum(counts.map(|count| u32::try_from(count).unwrap_or(u32::MAX)));
    }
    let Some(size) = current_size(of_role, revision) else {
        return 1;
    };
    let fixed = role
        .sub_roles()
        .iter()
        .filter(|child| child.scaling_mode() == ScalingMode::Static)
        .map(|child| u32::try_from(child.replicas()).unwrap_or_default());
    let rest = size.saturating_sub(sum(fixed));
    let first = role
        .sub_roles()
        .iter()
        .find(|child| child.scaling_mode() == ScalingMode::External);
    if first.is_some_and(|first| first.name == sub_role) {
        rest
    } else {
        0
    }
}

fn sum(numbers: impl Iterator<Item = u32>) -> u32 {
    numbers.fold(0, u32::saturating_add).min(2_147_483_647)
}

#[cfg(test)]
mod tests {
    use lws_api::names::ds_annotation;
    use serde_json::{Value, json};

    use super::*;
    use crate::disaggregatedset::tests::fixture::{child, ds, patched_scaler, scaler};

    fn set() -> Ds {
        ds(
            "pd",
            json!({"roles": [
                {"name": "a", "scaling": {"mode": "External"}},
                {"name": "b"},
                {"name": "c", "subRoles": [
                    {"name": "s", "replicas": 2},
                    {"name": "x", "scaling": {"mode": "External"}},
                    {"name": "y", "scaling": {"mode": "External"}},
                ]},
            ]}),
        )
    }

    fn leaf(role: &str, sub_role: Option<&str>) -> LeafKey {
        LeafKey {
            role: role.into(),
            sub_role: sub_role.map(Into::into),
        }
    }

    #[test]
    fn dsr_scl_2_scl_4_only_live_scalers_of_the_set_count() {
        let set = set();
        let foreign = patched_scaler(
            &scaler("pd", "a", "", 5),
            json!({"metadata": {"ownerReferences": null}}),
        );
        let leaving = patched_scaler(
            &scaler("pd", "c", "x", 5),
            json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        );
        let good = scaler("pd", "c", "y", 5);
        let scalers = Scalers::of(&set, &[foreign, leaving, good]);
        let missing = scalers.missing(&set);
        let missing: Vec<_> = missing
            .iter()
            .map(|(leaf, name)| format!("{leaf} {name}"))
            .collect();
        assert_eq!(missing, ["a pd-a", "c/x pd-c-x"]);
        assert_eq!(scalers.replicas(&leaf("c", Some("y"))), Some(5));
        assert!(scalers.obsolete().is_empty());
    }

    #[test]
    fn dsr_scl_3_a_scaler_of_a_static_role_is_obsolete() {
        let set = set();
        let of_static = scaler("pd", "b", "", 5);
        let of_nothing = scaler("pd", "gone", "", 5);
        let scalers = Scalers::of(&set, &[of_static.clone(), of_nothing.clone()]);
        assert_eq!(scalers.obsolete(), [of_static, of_nothing]);
    }

    /// A child of `role` with `(intended, wanted)` groups.
    fn sized(revision: &str, role: &str, initial: &str, replicas: i32) -> Child {
        let annotations: Value = json!({ds_annotation::INITIAL_REPLICAS: initial});
        child(
            "pd",
            0,
            revision,
            role,
            json!({"metadata": {"annotations": annotations}, "spec": {"replicas": replicas}}),
        )
    }

    fn seeded(children: Vec<Child>, role: &str, sub_role: Option<&str>) -> u32 {
        let children = Children {
            list: children,
            without_slice: Vec::new(),
        };
        seed(&set(), &children, "new", &leaf(role, sub_role))
    }

    #[test]
    fn dsr_scl_5_seeds_of_roles() {
        assert_eq!(seeded(vec![], "a", None), 1);
        assert_eq!(
            seeded(vec![sized("new", "b", "9", 9)], "a", None),
            1,
            "of another role"
        );
        assert_eq!(seeded(vec![sized("new", "a", "5", 5)], "a", None), 5);
        let rolling = vec![sized("old", "a", "5", 4), sized("new", "a", "5", 2)];
        assert_eq!(
            seeded(rolling, "a", None),
            5,
            "the intended size in a rollout"
        );
        let invalid = vec![sized("old", "a", "5", 4), sized("new", "a", "", 2)];
        assert_eq!(seeded(invalid, "a", None), 6);
        assert_eq!(seeded(vec![sized("new", "a", "0", 0)], "a", None), 0);
    }

    #[test]
    fn dsr_scl_5_seeds_of_sub_roles() {
        assert_eq!(seeded(vec![], "c", Some("x")), 1);
        assert_eq!(seeded(vec![], "c", Some("y")), 1);
        let running = || vec![sized("new", "c", "7", 7)];
        assert_eq!(
            seeded(running(), "c", Some("x")),
            5,
            "what the static one leaves"
        );
        assert_eq!(seeded(running(), "c", Some("y")), 0);
        let issued = json!({"metadata": {"annotations": {ds_annotation::SUBROLE_REPLICAS: r#"{"s":2,"x":3}"#}},
            "spec": {"replicas": 5}});
        let both = || {
            vec![
                child("pd", 0, "new", "c", issued.clone()),
                child("pd", 0, "old", "c", issued.clone()),
            ]
        };
        assert_eq!(seeded(both(), "c", Some("x")), 6);
        assert_eq!(seeded(both(), "c", Some("y")), 0);
    }
}
