//! What revision data means, apart from how it was serialised (ORD-37).
//!
//! Programs with typed objects write members that nobody set, leave out members that were set to nothing, and spell quantities in their own way. Two
//! revisions that differ in nothing else are the same. Empty objects are kept in general: many of them carry meaning (`emptyDir: {}`).

use serde_json::{Map, Value};

/// A form of `data` that is equal for all spellings of the same.
pub(super) fn meaning(data: &Value) -> Value {
    simplified(data, Place::Other)
}

/// Where a value stands, as far as it matters for how it may be spelt.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// A pod template or a claim template.
    Template,
    /// Spec of a pod or of a claim.
    TemplateSpec,
    /// A container.
    Container,
    /// Requests and limits of a container, a pod or a claim.
    Resources,
    /// Reference to a resource of a container.
    ResourceReference,
    /// A volume in memory or on the node's disk.
    EmptyDir,
    /// Quantities by resource, or one quantity.
    Quantity,
    /// Anything else.
    Other,
}

impl Place {
    fn of_member(self, name: &str) -> Self {
        match (self, name) {
            (Self::Quantity, _)
            | (Self::Resources, "requests" | "limits")
            | (Self::EmptyDir, "sizeLimit")
            | (Self::ResourceReference, "divisor") => Self::Quantity,
            (Self::TemplateSpec | Self::Container, "resources") => Self::Resources,
            (Self::Template, "spec") => Self::TemplateSpec,
            (
                _,
                "leaderTemplate"
                | "workerTemplate"
                | "volumeClaimTemplates"
                | "volumeClaimTemplate",
            ) => Self::Template,
            (_, "containers" | "initContainers" | "ephemeralContainers") => Self::Container,
            (_, "resourceFieldRef") => Self::ResourceReference,
            (_, "emptyDir") => Self::EmptyDir,
            (_, _) => Self::Other,
        }
    }

    /// Whether a member says the same as its absence.
    fn is_idle(self, name: &str, value: &Value) -> bool {
        let is_empty = value.as_object().is_some_and(Map::is_empty);
        match name {
            _ if value.is_null() || value.as_array().is_some_and(Vec::is_empty) => true,
            "metadata" | "status" => self == Self::Template && is_empty,
            "resources" => matches!(self, Self::TemplateSpec | Self::Container) && is_empty,
            "divisor" => self == Self::ResourceReference && value == "0",
            "hostNetwork" | "hostPID" | "hostIPC" | "readOnly" | "stdin" | "stdinOnce" | "tty" => {
                value == &Value::Bool(false)
            }
            _ => false,
        }
    }
}

fn simplified(value: &Value, place: Place) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(name, member)| (name, simplified(member, place.of_member(name))))
            .filter(|(name, member)| !place.is_idle(name, member))
            .map(|(name, member)| (name.clone(), member))
            .collect(),
        // Items of a list stand where the list stands.
        Value::Array(items) => items.iter().map(|item| simplified(item, place)).collect(),
        Value::String(text) if place == Place::Quantity => {
            quantity(text).map_or_else(|| value.clone(), Value::String)
        }
        Value::Number(number) if place == Place::Quantity => {
            quantity(&number.to_string()).map_or_else(|| value.clone(), Value::String)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}

/// A quantity as digits and power of ten, e.g. `1500m`, `1.5` and `15e-1` as `15e-1`; zero as `0`. `None` if it is none.
fn quantity(text: &str) -> Option<String> {
    let number_end = text
        .find(|c: char| !matches!(c, '0'..='9' | '.' | '+' | '-'))
        .unwrap_or(text.len());
    let (number, suffix) = text.split_at_checked(number_end)?;
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let (binary, decimal) = scale(suffix)?;
    let mut digits = format!("{whole}{fraction}")
        .parse::<i128>()
        .ok()?
        .checked_mul(1_i128.checked_shl(binary)?)?;
    let mut exponent = decimal.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    if digits == 0 {
        return Some("0".to_owned());
    }
    while digits % 10 == 0 {
        digits /= 10;
        exponent = exponent.checked_add(1)?;
    }
    Some(format!("{digits}e{exponent}"))
}

/// Powers of two and of ten that a suffix stands for.
fn scale(suffix: &str) -> Option<(u32, i32)> {
    Some(match suffix {
        "n" => (0, -9),
        "u" => (0, -6),
        "m" => (0, -3),
        "" => (0, 0),
        "k" => (0, 3),
        "M" => (0, 6),
        "G" => (0, 9),
        "T" => (0, 12),
        "P" => (0, 15),
        "E" => (0, 18),
        "Ki" => (10, 0),
        "Mi" => (20, 0),
        "Gi" => (30, 0),
        "Ti" => (40, 0),
        "Pi" => (50, 0),
        "Ei" => (60, 0),
        exponent => (0, exponent.strip_prefix(['e', 'E'])?.parse().ok()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn worker(template: Value) -> Value {
        meaning(&json!({"spec": {"leaderWorkerTemplate": {"workerTemplate": template}}}))
    }

    #[test]
    fn ord_37_spellings_of_the_same() {
        for (one, other) in [
            (json!({}), json!({"metadata": {"creationTimestamp": null}})),
            (
                json!({"spec": {"containers": [{"name": "c"}]}}),
                json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {}}]}}),
            ),
            (
                json!({"spec": {"initContainers": [{"name": "c"}]}}),
                json!({"spec": {"initContainers": [{"name": "c", "resources": {}}]}}),
            ),
            (
                json!({"spec": {"a": 1}}),
                json!({"spec": {"a": 1, "b": null, "tolerations": [], "hostNetwork": false}}),
            ),
            (
                json!({"spec": {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}}),
                json!({"spec": {"volumes": [{"ephemeral": {"volumeClaimTemplate": {"metadata": {}, "spec": {"resources": {}}}}}]}}),
            ),
            (
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": "1500m", "memory": "1Gi"}}}]}}),
                json!({"spec": {"containers": [{"resources": {"limits": {"cpu": 1.5, "memory": "1024Mi"}}}]}}),
            ),
            (
                json!({"spec": {"containers": [{"env": [{"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}]}]}}),
                json!({"spec": {"containers": [{"env": [{"valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "0"}}}]}]}}),
            ),
        ] {
            assert_eq!(worker(one.clone()), worker(other.clone()), "{one} {other}");
        }
        let claim = |claim: Value| {
            meaning(&json!({"spec": {"leaderWorkerTemplate": {"volumeClaimTemplates": [claim]}}}))
        };
        let stored = json!({"metadata": {"name": "d", "creationTimestamp": null}, "spec": {"resources": {}}, "status": {}});
        assert_eq!(
            claim(json!({"metadata": {"name": "d"}, "spec": {}})),
            claim(stored)
        );
    }

    #[test]
    fn ord_37_differences_that_carry_meaning() {
        for (one, other) in [
            (
                json!({"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}),
                json!({"spec": {"volumes": [{"name": "v"}]}}),
            ),
            (
                json!({"spec": {"affinity": {"namespaceSelector": {}}}}),
                json!({"spec": {"affinity": {}}}),
            ),
            (
                json!({"spec": {"automountServiceAccountToken": false}}),
                json!({"spec": {}}),
            ),
            (json!({"spec": {"metadata": {}}}), json!({"spec": {}})),
            (
                json!({"spec": {"containers": [{"name": "a"}]}}),
                json!({"spec": {"containers": [{"name": "b"}]}}),
            ),
            (
                json!({"spec": {"containers": [{"image": "1"}]}}),
                json!({"spec": {"containers": [{"image": "1.0"}]}}),
            ),
            (json!({"spec": {"hostNetwork": true}}), json!({"spec": {}})),
            (
                json!({"metadata": {"labels": {"limits": "1.0"}}}),
                json!({"metadata": {"labels": {"limits": "1"}}}),
            ),
        ] {
            assert_ne!(worker(one.clone()), worker(other.clone()), "{one} {other}");
        }
    }

    #[test]
    fn ord_37_quantities() {
        for (text, same) in [
            ("0", "0"),
            ("0Gi", "0"),
            ("1000m", "1e0"),
            ("0.5", "5e-1"),
            (".5", "5e-1"),
            ("-2k", "-2e3"),
            ("+2", "2e0"),
            ("1e3", "1e3"),
            ("1E3", "1e3"),
            ("1E", "1e18"),
            ("2Ki", "2048e0"),
            ("10", "1e1"),
        ] {
            assert_eq!(quantity(text).as_deref(), Some(same), "{text}");
        }
        for text in [
            "",
            "Gi",
            "1.2.3",
            "1x",
            "1e",
            "1e99999999999",
            "999999999999999999999999999999999999999",
            "9999999999999999999999Ei",
        ] {
            assert_eq!(quantity(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn ord_37_any_text_is_survived(text in ".*", number in "[-+]?[0-9.]{0,45}(Ei|e[-+]?[0-9]{0,12}|m)?") {
            quantity(&text);
            quantity(&number);
        }
    }
}
