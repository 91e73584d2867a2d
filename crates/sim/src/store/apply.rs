//! Server-side apply for the objects that we apply, with one manager `lws` and whoever else writes.
//!
//! Field ownership is kept in `metadata.managedFields` as the configuration that was written, not as a field set: enough to tell which fields a later
//! apply drops, and that a POST's fields are owned apart from an apply's (KRS-54).

use serde_json::{Value, json};

use super::metadata;

const MANAGER: &str = "lws";

/// Notes what a POST of ours wrote.
pub fn posted(by: &str, body: &Value, object: &mut Value) {
    let operation = json!([{"manager": manager(by), "operation": "Update", "fieldsV1": body}]);
    metadata(object).insert("managedFields".into(), operation);
}

/// Applies `body`: fields of the last apply that it leaves out go, unless a POST owns them; the rest is merged.
pub fn apply(by: &str, body: &Value, object: &mut Value) {
    let mut body = body.clone();
    for name in ["uid", "managedFields"] {
        metadata(&mut body).remove(name);
    }
    let manager = manager(by);
    let mut entries = object
        .pointer("/metadata/managedFields")
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default();
    let of = |entries: &[Value], operation: &str| {
        entries
            .iter()
            .find(|e| e["manager"] == manager && e["operation"] == operation)
            .map(|e| e["fieldsV1"].clone())
    };
    let posted = of(&entries, "Update").unwrap_or_default();
    if let Some(last) = of(&entries, "Apply") {
        drop_left_out(object, &last, &body, &posted);
    }
    merge(object, &body);
    entries.retain(|e| !(e["manager"] == manager && e["operation"] == "Apply"));
    entries.push(json!({"manager": manager, "operation": "Apply", "fieldsV1": body}));
    metadata(object).insert("managedFields".into(), json!(entries));
}

fn manager(by: &str) -> &str {
    if by.starts_with(MANAGER) { MANAGER } else { by }
}

fn drop_left_out(live: &mut Value, last: &Value, new: &Value, posted: &Value) {
    match (live, last) {
        (Value::Object(live), Value::Object(last)) => {
            for (name, old) in last {
                let owned_by_post = posted.get(name).unwrap_or(&Value::Null);
                match (new.get(name), live.get_mut(name)) {
                    (None, Some(_)) if owned_by_post.is_null() => {
                        live.remove(name);
                    }
                    (Some(new), Some(live)) => drop_left_out(live, old, new, owned_by_post),
                    (None, Some(_)) | (None | Some(_), None) => {}
                }
            }
        }
        (Value::Array(live), Value::Array(last)) if is_keyed(last) => {
            live.retain(|item| {
                let was_ours = find(last, item).is_some();
                let stays = new.as_array().is_some_and(|new| find(new, item).is_some());
                let posted = posted
                    .as_array()
                    .is_some_and(|posted| find(posted, item).is_some());
                !was_ours || stays || posted
            });
            for item in live {
                let (old, new) = (
                    find(last, item).cloned(),
                    new.as_array().and_then(|new| find(new, item)).cloned(),
                );
                if let (Some(old), Some(new)) = (old, new) {
                    let posted = posted
                        .as_array()
                        .and_then(|posted| find(posted, item))
                        .cloned()
                        .unwrap_or_default();
                    drop_left_out(item, &old, &new, &posted);
                }
            }
        }
        _ => {}
    }
}

fn merge(live: &mut Value, new: &Value) {
    match (live, new) {
        (Value::Object(live), Value::Object(new)) => {
            for (name, value) in new {
                merge(live.entry(name.clone()).or_insert(Value::Null), value);
            }
        }
        (Value::Array(live), Value::Array(new)) if is_keyed(new) && is_keyed(live) => {
            let others: Vec<Value> = live
                .iter()
                .filter(|item| find(new, item).is_none())
                .cloned()
                .collect();
            let mut merged: Vec<Value> = new
                .iter()
                .map(|item| find(live, item).cloned().unwrap_or(Value::Null))
                .collect();
            for (old, item) in merged.iter_mut().zip(new) {
                merge(old, item);
            }
            merged.extend(others);
            *live = merged;
        }
        (live, new) => *live = new.clone(),
    }
}

/// Lists whose items have a name, or a UID as owner references do, are merged by it.
fn is_keyed(list: &[Value]) -> bool {
    !list.is_empty() && list.iter().all(|item| item_key(item).is_some())
}

fn item_key(item: &Value) -> Option<&str> {
    item.get("uid")
        .or_else(|| item.get("name"))
        .and_then(Value::as_str)
}

fn find<'a>(list: &'a [Value], item: &Value) -> Option<&'a Value> {
    list.iter().find(|other| item_key(other) == item_key(item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn krs_54_a_left_out_field_goes_only_when_the_post_was_claimed() {
        let posted_body =
            json!({"metadata": {"labels": {"team": "x", "name": "demo"}}, "spec": {"replicas": 1}});
        let new = json!({"metadata": {"labels": {"name": "demo"}}, "spec": {"replicas": 2}});
        for claimed in [false, true] {
            let mut object = posted_body.clone();
            posted("lws", &posted_body, &mut object);
            if claimed {
                object["metadata"]["managedFields"][0]["operation"] = json!("Apply");
            }
            apply("lws", &new, &mut object);
            assert_eq!(
                object["metadata"]["labels"].get("team").is_none(),
                claimed,
                "claimed {claimed}"
            );
            assert_eq!(object["spec"]["replicas"], 2);
        }
    }

    #[test]
    fn lists_merge_by_name() {
        let first = json!({"spec": {"containers": [{"name": "a", "image": "1", "env": [{"name": "X", "value": "1"}]}, {"name": "b", "image": "1"}]}});
        let second = json!({"spec": {"containers": [{"name": "a", "image": "2"}]}});
        let mut object = json!({"spec": {"containers": [{"name": "sidecar", "image": "s"}]}});
        apply("lws", &first, &mut object);
        apply("lws", &second, &mut object);
        let names: Vec<&str> = object["spec"]["containers"]
            .as_array()
            .unwrap()
            .iter()
            .map(|c| c["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["a", "sidecar"]);
        assert_eq!(
            object["spec"]["containers"][0],
            json!({"name": "a", "image": "2"})
        );
    }
}
