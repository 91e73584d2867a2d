//! What is not compared, and why: one table. Everything else is.

use serde_json::{Value, json};

use crate::store::Kind;

/// What happens to a member.
#[derive(Clone, Copy)]
enum How {
    /// It is left out.
    Out,
    /// It is left out if it has this value, as JSON.
    OutIf(&'static str),
    /// Only whether it is there counts.
    Present,
}

use How::{Out, OutIf, Present};

struct Rule {
    /// `None`: of all kinds.
    kind: Option<Kind>,
    /// Members from the top; `*` is every item of a list.
    path: &'static str,
    how: How,
    #[expect(dead_code, reason = "it is written down for the reader")]
    why: &'static str,
}

const fn rule(kind: Option<Kind>, path: &'static str, how: How, why: &'static str) -> Rule {
    Rule {
        kind,
        path,
        how,
        why,
    }
}

const CHANCE: &str = "another one on each cluster";
const ELSEWHERE: &str = "compared in another form";
const DEFAULT: &str = "a default that nobody in the simulated cluster reads";
const PLACED: &str = "which node or address is up to the scheduler";
const TOKEN: &str = "admission of service accounts is not simulated";
const REPORTED: &str = "details of a kubelet's report that nobody here reads";

const RULES: [Rule; 45] = [
    rule(
        None,
        "apiVersion",
        Out,
        "the same for all of a kind; the store does not keep it",
    ),
    rule(
        None,
        "kind",
        Out,
        "the same for all of a kind; the store does not keep it",
    ),
    rule(None, "metadata/name", Out, ELSEWHERE),
    rule(None, "metadata/namespace", Out, CHANCE),
    rule(None, "metadata/resourceVersion", Out, CHANCE),
    rule(
        None,
        "metadata/managedFields",
        Out,
        "kept in another form; what follows from it is seen in the objects",
    ),
    rule(None, "metadata/creationTimestamp", Present, CHANCE),
    rule(None, "metadata/deletionTimestamp", Present, CHANCE),
    rule(None, "metadata/selfLink", Out, DEFAULT),
    rule(
        Some(Kind::Service),
        "spec/publishNotReadyAddresses",
        OutIf("false"),
        DEFAULT,
    ),
    rule(
        Some(Kind::Pod),
        "metadata/labels/topology.kubernetes.io~1zone",
        Out,
        PLACED,
    ),
    rule(
        Some(Kind::Pod),
        "metadata/labels/topology.kubernetes.io~1region",
        Out,
        PLACED,
    ),
    rule(Some(Kind::Pod), "spec/nodeName", Present, PLACED),
    rule(Some(Kind::Pod), "spec/volumes", Out, TOKEN),
    rule(
        Some(Kind::Pod),
        "spec/containers/*/volumeMounts",
        Out,
        TOKEN,
    ),
    rule(
        Some(Kind::Pod),
        "spec/initContainers/*/volumeMounts",
        Out,
        TOKEN,
    ),
    rule(Some(Kind::Pod), "spec/serviceAccount", Out, TOKEN),
    rule(Some(Kind::Pod), "spec/serviceAccountName", Out, TOKEN),
    rule(
        Some(Kind::Pod),
        "spec/tolerations",
        Out,
        "admission of tolerations is not simulated",
    ),
    rule(Some(Kind::Pod), "spec/priority", OutIf("0"), DEFAULT),
    rule(Some(Kind::Pod), "spec/preemptionPolicy", Out, DEFAULT),
    rule(Some(Kind::Pod), "spec/enableServiceLinks", Out, DEFAULT),
    rule(
        Some(Kind::Pod),
        "status/conditions/*/lastProbeTime",
        Out,
        CHANCE,
    ),
    rule(
        Some(Kind::Pod),
        "status/conditions/*/lastTransitionTime",
        Out,
        CHANCE,
    ),
    rule(
        Some(Kind::Pod),
        "status/conditions/*/observedGeneration",
        Out,
        REPORTED,
    ),
    rule(Some(Kind::Pod), "status/conditions/*/reason", Out, REPORTED),
    rule(
        Some(Kind::Pod),
        "status/conditions/*/message",
        Out,
        REPORTED,
    ),
    rule(Some(Kind::Pod), "status/containerStatuses", Out, REPORTED),
    rule(
        Some(Kind::Pod),
        "status/initContainerStatuses",
        Out,
        REPORTED,
    ),
    rule(Some(Kind::Pod), "status/startTime", Out, CHANCE),
    rule(Some(Kind::Pod), "status/hostIP", Out, PLACED),
    rule(Some(Kind::Pod), "status/hostIPs", Out, PLACED),
    rule(Some(Kind::Pod), "status/podIP", Out, PLACED),
    rule(Some(Kind::Pod), "status/podIPs", Out, PLACED),
    rule(Some(Kind::Pod), "status/qosClass", Out, DEFAULT),
    rule(Some(Kind::Pod), "status/observedGeneration", Out, REPORTED),
    rule(
        Some(Kind::StatefulSet),
        "spec/revisionHistoryLimit",
        OutIf("10"),
        DEFAULT,
    ),
    rule(
        Some(Kind::StatefulSet),
        "status/collisionCount",
        OutIf("0"),
        "the hash of the simulated cluster does not collide",
    ),
    rule(
        Some(Kind::ControllerRevision),
        "metadata/labels/controller.kubernetes.io~1hash",
        Present,
        CHANCE,
    ),
    rule(
        Some(Kind::ControllerRevision),
        "data/spec/template/$patch",
        Out,
        "the store keeps what the patch makes",
    ),
    rule(
        Some(Kind::Service),
        "spec/internalTrafficPolicy",
        OutIf("\"Cluster\""),
        DEFAULT,
    ),
    rule(
        Some(Kind::Service),
        "spec/ipFamilyPolicy",
        OutIf("\"SingleStack\""),
        DEFAULT,
    ),
    rule(
        Some(Kind::Service),
        "spec/ipFamilies",
        OutIf("[\"IPv4\"]"),
        DEFAULT,
    ),
    rule(
        Some(Kind::Service),
        "spec/clusterIPs",
        Out,
        "spec.clusterIP once more",
    ),
    rule(
        Some(Kind::LeaderWorkerSet),
        "status/conditions/*/lastTransitionTime",
        Out,
        CHANCE,
    ),
];

/// Defaults of a pod's spec, wherever there is one.
const POD_DEFAULTS: [(&str, &str); 14] = [
    ("dnsPolicy", "\"ClusterFirst\""),
    ("restartPolicy", "\"Always\""),
    ("schedulerName", "\"default-scheduler\""),
    ("securityContext", "{}"),
    ("containers/*/imagePullPolicy", "\"IfNotPresent\""),
    ("containers/*/resources", "{}"),
    (
        "containers/*/terminationMessagePath",
        "\"/dev/termination-log\"",
    ),
    ("containers/*/terminationMessagePolicy", "\"File\""),
    ("initContainers/*/imagePullPolicy", "\"IfNotPresent\""),
    ("initContainers/*/resources", "{}"),
    (
        "initContainers/*/terminationMessagePath",
        "\"/dev/termination-log\"",
    ),
    ("initContainers/*/terminationMessagePolicy", "\"File\""),
    ("terminationGracePeriodSeconds", "30"),
    ("containers/*/ports/*/protocol", "\"TCP\""),
];

/// Where pods' specs are.
const POD_SPECS: [(Kind, &str); 3] = [
    (Kind::Pod, "spec"),
    (Kind::StatefulSet, "spec/template/spec"),
    (Kind::ControllerRevision, "data/spec/template/spec"),
];

/// Conditions of a pod that somebody in the cluster reads.
const CONDITIONS: [&str; 1] = ["Ready"];

/// Masks an object.
pub fn apply(kind: Kind, object: &mut Value) {
    for rule in RULES {
        if rule.kind.is_none_or(|of| of == kind) {
            mask(object, rule.path, rule.how);
        }
    }
    for (_, spec) in POD_SPECS.iter().filter(|(of, _)| *of == kind) {
        for (path, value) in POD_DEFAULTS {
            mask(object, &format!("{spec}/{path}"), OutIf(value));
        }
    }
    if kind == Kind::Pod {
        keep_conditions(object);
    }
    prune(object);
}

fn keep_conditions(pod: &mut Value) {
    if let Some(conditions) = pod
        .pointer_mut("/status/conditions")
        .and_then(Value::as_array_mut)
    {
        conditions.retain(|condition| {
            CONDITIONS.iter().any(|kept| condition["type"] == *kept)
                && condition["status"] == "True"
        });
    }
}

fn mask(value: &mut Value, path: &str, how: How) {
    let (first, rest) = match path.split_once('/') {
        Some((first, rest)) => (first, Some(rest)),
        None => (path, None),
    };
    if first == "*" {
        let Some(rest) = rest else { return };
        let items = value.as_array_mut();
        return items
            .into_iter()
            .flatten()
            .for_each(|item| mask(item, rest, how));
    }
    let name = first.replace("~1", "/");
    let Some(members) = value.as_object_mut() else {
        return;
    };
    match (rest, members.get_mut(&name)) {
        (_, None) => {}
        (Some(rest), Some(member)) => mask(member, rest, how),
        (None, Some(member)) => match how {
            Present => *member = json!("some"),
            Out => {
                members.remove(&name);
            }
            OutIf(text) => {
                let value: Result<Value, _> = serde_json::from_str(text);
                if value.is_ok_and(|value| value == *member) {
                    members.remove(&name);
                }
            }
        },
    }
}

/// Null, zero counts and empty members mean the same as none.
fn prune(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.values_mut().for_each(prune);
            members.retain(|_, member| !is_nothing(member));
        }
        Value::Array(items) => items.iter_mut().for_each(prune),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(members) => members.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}
