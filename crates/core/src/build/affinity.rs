//! Pod affinity that keeps slices of DisaggregatedSets apart (reconcile-disaggregatedset section 13).

use lws_api::disaggregatedset::{DisaggregatedSetSpec, PlacementType};
use lws_api::names::ds_label;
use serde_json::{Map, Value, json};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";

/// A slice of a set, and how it is placed.
#[derive(Clone, Copy, Debug)]
pub struct Placement<'a> {
    /// Name of the DisaggregatedSet.
    pub set: &'a str,
    /// Index of the slice.
    pub slice: u32,
    /// Kind of placement.
    pub kind: PlacementType,
    /// Node label whose values are the domains; empty: no placement.
    pub topology: &'a str,
}

impl<'a> Placement<'a> {
    /// The placement that the set `name` wants of a slice.
    pub fn of(name: &'a str, spec: &'a DisaggregatedSetSpec, slice: u32) -> Self {
        Self {
            set: name,
            slice,
            kind: spec.placement_type(),
            topology: spec.placement_topology(),
        }
    }

    /// AFF-1: adds the terms behind those of the user.
    pub fn add_to(&self, template: &mut Value) {
        let (together, apart) = self.terms();
        for (kind, terms) in [("podAffinity", together), ("podAntiAffinity", apart)] {
            if terms.is_empty() {
                continue;
            }
            let affinity =
                ["spec", "affinity", kind]
                    .iter()
                    .try_fold(&mut *template, |place, name| {
                        let members = place.as_object_mut()?;
                        let member = members.entry(*name).or_insert_with(|| json!({}));
                        if member.is_null() {
                            *member = json!({});
                        }
                        Some(member)
                    });
            let Some(affinity) = affinity.and_then(Value::as_object_mut) else {
                continue;
            };
            let list = affinity.entry(REQUIRED).or_insert_with(|| json!([]));
            if list.is_null() {
                *list = json!([]);
            }
            if let Some(list) = list.as_array_mut() {
                list.extend(terms);
            }
        }
    }

    fn terms(&self) -> (Vec<Value>, Vec<Value>) {
        if self.topology.is_empty() {
            return (Vec::new(), Vec::new());
        }
        let term = |expressions| term(self.topology, expressions);
        let together = vec![term(together(self.set, self.slice))];
        let own = term(other_slices(self.set, self.slice));
        match self.kind {
            PlacementType::None => (Vec::new(), Vec::new()),
            PlacementType::ExclusiveSlice => (together, vec![own]),
            PlacementType::ExclusiveTopology => (together, vec![own, term(other_sets(self.set))]),
        }
    }
}

/// AFF-1, the other way round: takes terms away that were added for this slice under whatever policy, and what is empty then.
pub fn remove_from(template: &mut Value, set: &str, slice: u32) {
    let Some(spec) = template.get_mut("spec").and_then(Value::as_object_mut) else {
        return;
    };
    let Some(affinity) = spec.get_mut("affinity").and_then(Value::as_object_mut) else {
        return;
    };
    for kind in ["podAffinity", "podAntiAffinity"] {
        if let Some(Value::Object(terms)) = affinity.get_mut(kind) {
            if let Some(Value::Array(list)) = terms.get_mut(REQUIRED) {
                list.retain(|term| !is_ours(term, set, slice));
            }
            terms.retain(|_, list| list.as_array().is_none_or(|list| !list.is_empty()));
        }
    }
    affinity.retain(|_, kind| kind.as_object().is_none_or(|kind| !kind.is_empty()));
    if affinity.is_empty() {
        spec.remove("affinity");
    }
}

fn is_ours(candidate: &Value, set: &str, slice: u32) -> bool {
    let topology = candidate
        .get("topologyKey")
        .and_then(Value::as_str)
        .unwrap_or_default();
    [
        together(set, slice),
        other_slices(set, slice),
        other_sets(set),
    ]
    .into_iter()
    .any(|expressions| *candidate == term(topology, expressions))
}

fn term(topology: &str, expressions: Vec<Value>) -> Value {
    json!({"topologyKey": topology, "labelSelector": {"matchExpressions": expressions}})
}

/// Pods of this slice.
fn together(set: &str, slice: u32) -> Vec<Value> {
    vec![
        expression(ds_label::NAME, "In", Some(set)),
        expression(ds_label::SLICE, "In", Some(&slice.to_string())),
    ]
}

/// Pods of other slices of this set. AFF-2: slice 0 would meet pods without a slice as well, unless it asks for the label.
fn other_slices(set: &str, slice: u32) -> Vec<Value> {
    let own = expression(ds_label::NAME, "In", Some(set));
    let other = expression(ds_label::SLICE, "NotIn", Some(&slice.to_string()));
    if slice == 0 {
        vec![own, expression(ds_label::SLICE, "Exists", None), other]
    } else {
        vec![own, other]
    }
}

/// Pods of slices of other sets.
fn other_sets(set: &str) -> Vec<Value> {
    vec![
        expression(ds_label::NAME, "Exists", None),
        expression(ds_label::NAME, "NotIn", Some(set)),
        expression(ds_label::SLICE, "Exists", None),
    ]
}

fn expression(key: &str, operator: &str, value: Option<&str>) -> Value {
    let mut members = Map::from_iter([
        ("key".to_owned(), json!(key)),
        ("operator".to_owned(), json!(operator)),
    ]);
    members.extend(value.map(|value| ("values".to_owned(), json!([value]))));
    Value::Object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [PlacementType; 3] = [
        PlacementType::None,
        PlacementType::ExclusiveSlice,
        PlacementType::ExclusiveTopology,
    ];

    fn placement(kind: PlacementType, slice: u32, topology: &str) -> Placement<'_> {
        Placement {
            set: "pd",
            slice,
            kind,
            topology,
        }
    }

    /// Expressions of each term: affinity, anti-affinity.
    fn shape(placement: Placement<'_>) -> (Vec<usize>, Vec<usize>) {
        let mut template = json!({"spec": {"containers": []}});
        placement.add_to(&mut template);
        let counts = |kind: &str| -> Vec<usize> {
            let list = template.pointer(&format!("/spec/affinity/{kind}/{REQUIRED}"));
            let terms = list.and_then(Value::as_array).into_iter().flatten();
            terms
                .map(|term| {
                    term["labelSelector"]["matchExpressions"]
                        .as_array()
                        .unwrap()
                        .len()
                })
                .collect()
        };
        (counts("podAffinity"), counts("podAntiAffinity"))
    }

    #[test]
    fn dsr_aff_6_terms_by_policy() {
        let none = (vec![], vec![]);
        for (kind, slice, topology, wanted) in [
            (PlacementType::None, 0, "rack", none.clone()),
            (PlacementType::ExclusiveSlice, 0, "", none),
            (PlacementType::ExclusiveSlice, 1, "rack", (vec![2], vec![2])),
            (PlacementType::ExclusiveSlice, 0, "rack", (vec![2], vec![3])),
            (
                PlacementType::ExclusiveTopology,
                0,
                "rack",
                (vec![2], vec![3, 3]),
            ),
        ] {
            assert_eq!(
                shape(placement(kind, slice, topology)),
                wanted,
                "{kind:?} {slice}"
            );
        }
    }

    #[test]
    fn dsr_aff_1_terms_as_written() {
        let mut template = json!({"spec": {}});
        placement(PlacementType::ExclusiveTopology, 0, "rack").add_to(&mut template);
        let yaml = serde_saphyr::to_string(&template).unwrap();
        insta::assert_snapshot!(yaml);
    }

    #[test]
    fn dsr_aff_1_terms_of_the_user_stay_and_ours_can_be_taken_off_again() {
        let theirs = json!({"spec": {"affinity": {
            "nodeAffinity": {"x": []},
            "podAffinity": {REQUIRED: [{"topologyKey": "zone"}]},
        }}});
        for kind in ALL {
            for slice in [0, 3] {
                for start in [
                    &theirs,
                    &json!({"spec": {}}),
                    &json!({"spec": {"affinity": null}}),
                ] {
                    let mut template = start.clone();
                    placement(kind, slice, "rack").add_to(&mut template);
                    if kind != PlacementType::None && *start == theirs {
                        let first =
                            template.pointer(&format!("/spec/affinity/podAffinity/{REQUIRED}/0"));
                        assert_eq!(first, Some(&json!({"topologyKey": "zone"})));
                    }
                    remove_from(&mut template, "pd", slice);
                    if start["spec"]["affinity"].is_object() || kind != PlacementType::None {
                        let wanted = if *start == theirs {
                            start.clone()
                        } else {
                            json!({"spec": {}})
                        };
                        assert_eq!(template, wanted, "{kind:?} {slice}");
                    }
                }
            }
        }
    }
}
