//! A child set as far as its division goes: the counts that its annotations hold, and the labels of its groups.

use std::collections::BTreeMap;
use std::sync::Arc;

use lws_api::names::{ds_annotation, ds_label};

use super::{Counts, CountsError};
use crate::disaggregatedset::children::Child;
use crate::disaggregatedset::readiness::{Group, Observation};

/// A child set, as far as its division goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Routing {
    /// Its wanted groups.
    pub spec: u64,
    /// Annotation `initial-replicas`; `None` when missing or invalid.
    pub initial: Option<u64>,
    /// Annotation `subrole-replicas`: groups issued to each sub-role.
    pub issued: Option<Counts>,
    /// Annotation `initial-subrole-replicas`.
    pub baseline: Option<Counts>,
    /// Annotation `subrole-plan`, or the older `subrole-scale-plan`: an accepted reduction that is not done yet.
    pub plan: Option<Counts>,
    /// The set and its leader workload have taken up the wanted groups.
    pub is_observed: bool,
    /// The groups, by ordinal.
    pub groups: BTreeMap<u64, RoutedGroup>,
}

/// A group of a divided set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RoutedGroup {
    /// The label of its leader, which is authoritative (SRL-14).
    pub sub_role: Option<Arc<str>>,
    /// All of its pods have the label of the leader.
    pub is_coherent: bool,
    /// RDY-3.
    pub is_ready: bool,
    /// RDY-5: it is committed, if it is Ready.
    pub is_staying: bool,
}

impl Routing {
    /// Section 12.2: how `child` is divided, whose groups are `seen`.
    ///
    /// # Errors
    /// Counts that nothing can be planned with.
    pub fn of(child: &Child, seen: &Observation) -> Result<Self, CountsError> {
        let annotations = &child.lws.meta.annotations;
        let counts = |key| annotations.get(key).map(Counts::parse).transpose();
        let plan = match counts(ds_annotation::SUBROLE_PLAN)? {
            Some(plan) => Some(plan),
            None => counts(ds_annotation::SUBROLE_SCALE_PLAN)?,
        };
        let routed = |group: &Group| {
            let ordinal = group.ordinal?.into();
            Some((ordinal, RoutedGroup::of(group, seen)))
        };
        Ok(Self {
            spec: child.replicas().into(),
            initial: child.initial_replicas().map(Into::into),
            issued: counts(ds_annotation::SUBROLE_REPLICAS)?,
            baseline: counts(ds_annotation::INITIAL_SUBROLE_REPLICAS)?,
            plan,
            is_observed: seen.is_acknowledged,
            groups: seen.groups.iter().filter_map(routed).collect(),
        })
    }

    /// SRL-4: Ready groups of a sub-role, all of them and those that stay.
    pub fn ready(&self, sub_role: &str) -> (u64, u64) {
        let groups = self.groups.values();
        let of_it = groups.filter(|group| {
            group.is_coherent && group.is_ready && group.sub_role.as_deref() == Some(sub_role)
        });
        of_it.fold((0, 0), |(raw, committed), group| {
            (raw + 1, committed + u64::from(group.is_staying))
        })
    }
}

impl RoutedGroup {
    fn of(group: &Group, seen: &Observation) -> Self {
        let label = group.leader.meta.label(ds_label::SUBROLE);
        Self {
            sub_role: (!label.is_empty()).then(|| label.into()),
            is_coherent: group.is_coherent(),
            is_ready: group.is_ready,
            is_staying: seen.is_acknowledged && group.is_staying,
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::disaggregatedset::tests::fixture::{child, labelled_group};

    fn divided(annotations: Value) -> Child {
        let patch = json!({"metadata": {"annotations": annotations}, "spec": {"replicas": 3}});
        child("pd", 0, "r", "a", patch)
    }

    fn counts(text: &str) -> Option<Counts> {
        Some(Counts::parse(text).expect("counts"))
    }

    fn seen(groups: Vec<Group>) -> Observation {
        Observation {
            groups,
            is_acknowledged: true,
            is_behind: false,
            replicas: 3,
            unschedulable_since: None,
        }
    }

    #[test]
    fn dsr_12_2_the_division_is_what_the_annotations_hold() {
        let child = divided(json!({
            ds_annotation::INITIAL_REPLICAS: "5",
            ds_annotation::SUBROLE_REPLICAS: r#"{"x":1,"y":2}"#,
            ds_annotation::INITIAL_SUBROLE_REPLICAS: r#"{"x":2,"y":3}"#,
            ds_annotation::SUBROLE_SCALE_PLAN: r#"{"x":1,"y":1}"#,
        }));
        let routing = Routing::of(&child, &seen(vec![])).expect("a routing");
        let expected = Routing {
            spec: 3,
            initial: Some(5),
            issued: counts(r#"{"x":1,"y":2}"#),
            baseline: counts(r#"{"x":2,"y":3}"#),
            plan: counts(r#"{"x":1,"y":1}"#),
            is_observed: true,
            groups: BTreeMap::new(),
        };
        assert_eq!(routing, expected);
        let both = divided(json!({
            ds_annotation::SUBROLE_PLAN: r#"{"x":0}"#,
            ds_annotation::SUBROLE_SCALE_PLAN: r#"{"x":1}"#,
        }));
        let routing = Routing::of(&both, &seen(vec![])).expect("a routing");
        assert_eq!(routing.plan, counts(r#"{"x":0}"#), "the newer key counts");
    }

    #[test]
    fn dsr_12_2_unusable_counts_are_an_error_whichever_annotation_holds_them() {
        for key in [
            ds_annotation::SUBROLE_REPLICAS,
            ds_annotation::INITIAL_SUBROLE_REPLICAS,
            ds_annotation::SUBROLE_PLAN,
            ds_annotation::SUBROLE_SCALE_PLAN,
        ] {
            let routing = Routing::of(&divided(json!({key: "x"})), &seen(vec![]));
            assert_eq!(routing, Err(CountsError::Malformed), "{key}");
        }
    }

    #[test]
    fn dsr_srl_4_only_coherent_ready_groups_count_for_a_sub_role() {
        let broken = Group {
            is_ready: false,
            ..labelled_group("c", 3, &["x"])
        };
        let leaving = Group {
            is_staying: false,
            ..labelled_group("c", 2, &["x"])
        };
        let groups = vec![
            labelled_group("c", 0, &["x", "x"]),
            labelled_group("c", 1, &["x", "y"]),
            leaving,
            broken,
            labelled_group("c", 4, &[""]),
        ];
        let routing = |seen: &Observation| Routing::of(&divided(json!({})), seen).expect("counts");
        let mut seen = seen(groups);
        let acknowledged = routing(&seen);
        assert_eq!(acknowledged.ready("x"), (2, 1));
        assert_eq!(acknowledged.ready("y"), (0, 0), "the leader's label counts");
        assert_eq!(acknowledged.groups[&4].sub_role, None);
        assert!(acknowledged.groups[&4].is_coherent && !acknowledged.groups[&1].is_coherent);
        seen.is_acknowledged = false;
        let lowered = routing(&seen);
        assert_eq!(lowered.ready("x"), (2, 0), "which group goes is not known");
        assert!(!lowered.is_observed);
    }
}
