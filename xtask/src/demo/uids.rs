//! Which pods a LeaderWorkerSet has, by UID, to show which were replaced.

use std::collections::BTreeMap;
use std::fmt::Write;

use anyhow::{Result, ensure};
use lws_local_cluster::Target;
use serde_json::Value;

/// Label with the number of a pod's group.
pub const GROUP_LABEL: &str = "leaderworkerset.sigs.k8s.io/group-index";
const NAME_LABEL: &str = "leaderworkerset.sigs.k8s.io/name";

/// UID by group and pod name.
#[derive(Debug, PartialEq, Eq)]
pub struct Uids(BTreeMap<(String, String), String>);

impl Uids {
    /// The pods of a set as they are now, without those that are being deleted.
    pub fn read(target: &Target, set: &str) -> lws_local_cluster::Result<Self> {
        let selector = format!("{NAME_LABEL}={set}");
        Ok(Self::of(
            &target.kubectl_json(&["get", "pods", "-l", &selector])?,
        ))
    }

    fn of(list: &Value) -> Self {
        let pods = list
            .get("items")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let rows = pods.filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
        Self(rows.filter_map(row).collect())
    }

    /// Whether group 0 has as many pods again, all of them new.
    pub fn is_replaced_by(&self, after: &Self) -> bool {
        let old = self.group("0");
        let new = after.group("0");
        old.keys().eq(new.keys()) && old.iter().all(|(name, uid)| new.get(name) != Some(uid))
    }

    /// Fails unless group 0 was replaced as a whole and every other pod stayed.
    pub fn check_recreated(&self, after: &Self) -> Result<()> {
        ensure!(
            self.is_replaced_by(after),
            "a pod of group 0 was not replaced"
        );
        for ((group, name), uid) in &self.0 {
            let kept = after.0.get(&(group.clone(), name.clone())) == Some(uid);
            ensure!(group == "0" || kept, "{name} of group {group} was replaced");
        }
        Ok(())
    }

    fn group(&self, group: &str) -> BTreeMap<&str, &str> {
        let rows = self.0.iter().filter(|((of, _), _)| of == group);
        rows.map(|((_, name), uid)| (name.as_str(), uid.as_str()))
            .collect()
    }

    /// A table of both states.
    pub fn compare(&self, after: &Self) -> String {
        let mut table = format!(
            "{:<6}{:<30}{:<38}{:<38}CHANGE\n",
            "GROUP", "POD", "OLD UID", "NEW UID"
        );
        for ((group, name), old) in &self.0 {
            let new = after
                .0
                .get(&(group.clone(), name.clone()))
                .map_or("-", String::as_str);
            let change = if new == old { "same" } else { "new" };
            // Writing to a String cannot fail.
            let _ = writeln!(table, "{group:<6}{name:<30}{old:<38}{new:<38}{change}");
        }
        table
    }
}

fn row(pod: &Value) -> Option<((String, String), String)> {
    let metadata = pod.get("metadata")?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let group = text(metadata.get("labels")?.get(GROUP_LABEL))?;
    Some((
        (group, text(metadata.get("name"))?),
        text(metadata.get("uid"))?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn uids(rows: &[(&str, &str, &str)]) -> Uids {
        let pod = |(group, name, uid): &(&str, &str, &str)| json!({"metadata": {"name": name, "uid": uid, "labels": {GROUP_LABEL: group}}});
        let items: Vec<Value> = rows.iter().map(pod).collect();
        Uids::of(&json!({"items": items}))
    }

    fn before() -> Uids {
        uids(&[("0", "s-0", "a"), ("0", "s-0-1", "b"), ("1", "s-1", "c")])
    }

    #[test]
    fn whole_group_new_and_the_other_same_is_what_is_wanted() {
        let after = uids(&[("0", "s-0", "x"), ("0", "s-0-1", "y"), ("1", "s-1", "c")]);
        assert!(before().check_recreated(&after).is_ok());
    }

    #[test]
    fn anything_else_is_not() {
        let cases = [
            (
                "leader kept",
                uids(&[("0", "s-0", "a"), ("0", "s-0-1", "y"), ("1", "s-1", "c")]),
            ),
            (
                "worker absent",
                uids(&[("0", "s-0", "x"), ("1", "s-1", "c")]),
            ),
            (
                "other replaced",
                uids(&[("0", "s-0", "x"), ("0", "s-0-1", "y"), ("1", "s-1", "z")]),
            ),
            (
                "other absent",
                uids(&[("0", "s-0", "x"), ("0", "s-0-1", "y")]),
            ),
        ];
        for (case, after) in cases {
            assert!(before().check_recreated(&after).is_err(), "{case}");
        }
    }

    #[test]
    fn pods_being_deleted_do_not_count() {
        let list = json!({"items": [{"metadata": {
            "name": "s-0", "uid": "a", "labels": {GROUP_LABEL: "0"}, "deletionTimestamp": "now",
        }}]});
        assert_eq!(Uids::of(&list), uids(&[]));
    }

    #[test]
    fn table_tells_new_from_same() {
        let after = uids(&[("0", "s-0", "x"), ("0", "s-0-1", "y"), ("1", "s-1", "c")]);
        let table = before().compare(&after);
        let ends: Vec<&str> = table
            .lines()
            .filter_map(|line| line.split_whitespace().last())
            .collect();
        assert_eq!(ends, ["CHANGE", "new", "new", "same"]);
    }
}
