//! Putting JSON documents together.

use serde_json::Value;

/// Puts the members of `over` over those of `base`, objects member by member.
pub(crate) fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                merge(base.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn merging_keeps_what_is_not_named() {
        let mut base = json!({"a": {"b": 1, "c": 2}, "d": 3});
        merge(&mut base, &json!({"a": {"c": 4, "e": 5}, "d": {"f": 6}}));
        assert_eq!(base, json!({"a": {"b": 1, "c": 4, "e": 5}, "d": {"f": 6}}));
    }
}
