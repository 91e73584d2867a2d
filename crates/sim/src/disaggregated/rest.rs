//! What must hold when all is quiet (D-L1 … D-L3, D-6, D-8, D-11).

use std::collections::BTreeSet;
use std::sync::Arc;

use lws_api::names::{ds_annotation as annotations, ds_label as labels, label as names};
use serde_json::Value;

use super::decisions::holds;
use super::facts::Facts;
use super::{Ground, wanted};
use crate::actors::kubelet::BROKEN;
use crate::actors::{annotation, controller, is_ready, label, number, uid};
use crate::properties::{Violation, violated};
use crate::store::{Key, Kind, Store, is_terminating, text};

/// Judges a store in which nothing happens any more.
///
/// # Errors
/// What does not hold.
pub fn check_rest(store: &Store, facts: &Facts, ground: &Ground) -> Result<(), Violation> {
    match store.get(&wanted::key()) {
        Some(set) => Rest { store, facts, set }.check(ground),
        None => nothing_left_behind(store),
    }
}

/// D-L3.
fn nothing_left_behind(store: &Store) -> Result<(), Violation> {
    let left = store.all().find(|(key, object)| {
        let is_child = matches!(key.kind, Kind::LeaderWorkerSet | Kind::RoleScaler);
        is_child && controller(object).is_some_and(|owner| owner["kind"] == "DisaggregatedSet")
    });
    match left {
        Some((key, _)) => Err(violated("D-L3", format!("{key} is left behind"))),
        None => Ok(()),
    }
}

struct Rest<'a> {
    store: &'a Store,
    facts: &'a Facts,
    set: &'a Value,
}

/// A child, as far as rest is concerned.
struct Child<'a> {
    key: &'a Key,
    object: &'a Arc<Value>,
}

impl Rest<'_> {
    fn check(&self, ground: &Ground) -> Result<(), Violation> {
        if is_terminating(self.set) {
            return Err(violated("D-L3", "the set is still ending"));
        }
        self.whole_revisions()?;
        let is_stopped = self.is_broken() || self.waits_for_survivors();
        if is_stopped || (ground.room.is_some() && !holds(self.set, "Available")) {
            return self.stopped_in_time();
        }
        for slice in 0..number(self.set, "/spec/slices").max(1) {
            for role in self.roles() {
                self.role(slice, role)?;
            }
        }
        self.no_others()?;
        self.scalers()?;
        self.status()
    }

    fn roles(&self) -> impl Iterator<Item = &Value> {
        self.set["spec"]["roles"].as_array().into_iter().flatten()
    }

    fn children(&self) -> impl Iterator<Item = Child<'_>> {
        let all = self.store.list(Kind::LeaderWorkerSet);
        all.filter(|(_, child)| controller(child).is_some_and(|by| by["uid"] == uid(self.set)))
            .map(|(key, object)| Child { key, object })
    }

    /// Somebody wants what never becomes ready.
    fn is_broken(&self) -> bool {
        let image = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image";
        let is_broken = |role: &Value| text(role, image) == Some(BROKEN);
        self.roles()
            .any(|role| is_broken(role) && self.wanted(role) != 0)
    }

    /// SRL-13 step 4: a child with sub-roles that is to shrink waits until those that stay are ready.
    fn waits_for_survivors(&self) -> bool {
        let mut children = self.children();
        children.any(|child| {
            let is_asked = !annotation(child.object, annotations::SUBROLE_PLAN).is_empty();
            is_asked && self.pods(child.key).iter().any(|pod| !is_ready(pod))
        })
    }

    fn pods(&self, child: &Key) -> Vec<&Arc<Value>> {
        let pods = self.store.list(Kind::Pod).map(|(_, pod)| pod);
        let of_child = pods.filter(|pod| label(pod, names::NAME) == &*child.name);
        of_child
            .filter(|pod| label(pod, names::WORKER_INDEX) == "0")
            .collect()
    }

    fn wanted(&self, role: &Value) -> i64 {
        let name = text(role, "/name").unwrap_or_default();
        if let Some(all) = role["subRoles"].as_array() {
            return all
                .iter()
                .map(|child| child["replicas"].as_i64().unwrap_or(1))
                .sum();
        }
        if role["scaling"]["mode"] == "External" {
            let scaler = format!("{}-{name}", wanted::NAME);
            let scaler = self
                .store
                .get(&crate::actors::user::key(Kind::RoleScaler, &scaler));
            return scaler.map_or(-1, |scaler| number(scaler, "/spec/replicas"));
        }
        number(role, "/spec/replicas")
    }

    /// D-L1: every role of every slice has one child, which has what is wanted, ready.
    fn role(&self, slice: i64, role: &Value) -> Result<(), Violation> {
        let name = text(role, "/name").unwrap_or_default();
        let wanted = self.wanted(role);
        let slice = slice.to_string();
        let of_role: Vec<Child<'_>> = self
            .children()
            .filter(|child| label(child.object, labels::ROLE) == name)
            .filter(|child| label(child.object, labels::SLICE) == slice)
            .collect();
        let [child] = of_role.as_slice() else {
            return Err(violated(
                "D-L1",
                format!("{} children of {name} in slice {slice}", of_role.len()),
            ));
        };
        let groups = number(child.object, "/spec/replicas");
        let intended = annotation(child.object, annotations::INITIAL_REPLICAS);
        let pods = self.pods(child.key);
        let ready = pods
            .iter()
            .filter(|pod| is_ready(pod) && !is_terminating(pod))
            .count();
        let is_right = i64::try_from(ready) == Ok(groups)
            && pods.len() == ready
            && intended == groups.to_string();
        if groups != wanted || !is_right {
            return Err(violated(
                "D-L1",
                format!(
                    "{} has {groups} groups, {ready} of {} ready, meant {intended}, wanted {wanted}",
                    child.key,
                    pods.len()
                ),
            ));
        }
        let image = "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/image";
        if text(role, image) != text(child.object, image) {
            return Err(violated(
                "D-L1",
                format!("{} is of another template", child.key),
            ));
        }
        self.sub_roles(role, child)
    }

    /// D-8: the groups are divided as the sub-roles want.
    fn sub_roles(&self, role: &Value, child: &Child<'_>) -> Result<(), Violation> {
        let pods = self.pods(child.key);
        for sub_role in role["subRoles"].as_array().into_iter().flatten() {
            let name = text(sub_role, "/name").unwrap_or_default();
            let wanted = sub_role["replicas"].as_i64().unwrap_or(1);
            let found = pods
                .iter()
                .filter(|pod| label(pod, labels::SUBROLE) == name)
                .count();
            if i64::try_from(found) != Ok(wanted) {
                return Err(violated(
                    "D-8",
                    format!(
                        "{found} groups of {} belong to {name}, {wanted} should",
                        child.key
                    ),
                ));
            }
        }
        Ok(())
    }

    /// D-L1, D-2: nothing is left of other revisions, roles and slices.
    fn no_others(&self) -> Result<(), Violation> {
        let revisions: BTreeSet<&str> = self
            .children()
            .map(|child| label(child.object, labels::REVISION))
            .collect();
        let wanted = self.roles().count()
            * usize::try_from(number(self.set, "/spec/slices").max(1)).unwrap_or(0);
        let found = self.children().count();
        if revisions.len() > 1 || found != wanted {
            return Err(violated(
                "D-L1",
                format!("{found} children of {wanted}, revisions {revisions:?}"),
            ));
        }
        Ok(())
    }

    /// D-6: an old revision has all of its roles, or none.
    fn whole_revisions(&self) -> Result<(), Violation> {
        if self.facts.disturbed {
            return Ok(());
        }
        let newest = self.children().max_by_key(|child| {
            text(child.object, "/metadata/creationTimestamp").map(str::to_owned)
        });
        let newest = newest.map(|child| label(child.object, labels::REVISION).to_owned());
        let mut kinds = BTreeSet::new();
        for child in self.children() {
            let meant = annotation(child.object, annotations::INITIAL_REPLICAS);
            let revision = label(child.object, labels::REVISION);
            if meant == "0" || Some(revision) == newest.as_deref() {
                continue;
            }
            let of = (revision, label(child.object, labels::SLICE));
            let runs = number(child.object, "/spec/replicas") > 0;
            kinds.insert((of, runs));
            if kinds.contains(&(of, !runs)) {
                return Err(violated(
                    "D-6",
                    format!("{} has only some of its roles", child.key),
                ));
            }
        }
        Ok(())
    }

    /// D-L2: what never becomes ready does not count; what it may take away was judged when it was taken.
    fn stopped_in_time(&self) -> Result<(), Violation> {
        if holds(self.set, "Available") && self.is_broken() {
            return Err(violated("D-11", "available without a ready group"));
        }
        Ok(())
    }

    /// D-8: a scaler for every role that is scaled from outside, and no other.
    fn scalers(&self) -> Result<(), Violation> {
        let external = self
            .roles()
            .filter(|role| role["scaling"]["mode"] == "External");
        let wanted: BTreeSet<String> = external
            .filter_map(|role| Some(format!("{}-{}", wanted::NAME, text(role, "/name")?)))
            .collect();
        let all = self.store.list(Kind::RoleScaler);
        let found: BTreeSet<String> = all
            .filter(|(_, scaler)| controller(scaler).is_some())
            .map(|(key, _)| key.name.to_string())
            .collect();
        if wanted != found {
            return Err(violated(
                "D-8",
                format!("scalers {found:?}, wanted {wanted:?}"),
            ));
        }
        for (key, scaler) in self.store.list(Kind::RoleScaler) {
            let (wanted, told) = (
                number(scaler, "/spec/replicas"),
                number(scaler, "/status/replicas"),
            );
            if wanted != told {
                return Err(violated(
                    "D-8",
                    format!("{key} tells {told} groups of {wanted}"),
                ));
            }
        }
        Ok(())
    }

    /// D-11.
    fn status(&self) -> Result<(), Violation> {
        let is_current = number(self.set, "/status/observedGeneration")
            == number(self.set, "/metadata/generation");
        if !is_current || !holds(self.set, "Available") || holds(self.set, "Progressing") {
            return Err(violated(
                "D-11",
                format!("at rest the status is {}", self.set["status"]),
            ));
        }
        Ok(())
    }
}
