//! The manager's rights in a local cluster: those that `manifests.yaml` gives it, and no more. It is the ServiceAccount of the
//! manifests there, with a token of the API server.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use crate::{Error, Interrupt, Result, Target, cache};

/// Who the manager is to the API server of a local cluster.
pub const MANAGER_USER: &str = "system:serviceaccount:lws-system:lws-controller-manager";

const NAMESPACE: &str = "lws-system";
const ACCOUNT: &str = "lws-controller-manager";
/// Longer than a cluster lives.
const TOKEN_DURATION: &str = "--duration=8760h";
/// How long the API server may take to know new bindings.
const LIMIT: Duration = Duration::from_secs(30);
const KINDS: [&str; 5] = [
    "ServiceAccount",
    "ClusterRole",
    "ClusterRoleBinding",
    "Role",
    "RoleBinding",
];

/// The account, its roles and bindings, and the roles for people, from the committed manifests.
pub(crate) fn documents(target: &Target) -> Result<Vec<Value>> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../manifests.yaml");
    let file = file.display().to_string();
    let arguments = ["create", "--dry-run=client", "--validate=false"];
    let text = target.kubectl(&[&arguments[..], &["-o", "json", "-f", &file]].concat())?;
    let mut documents = parse(&text)?;
    documents.retain(is_right);
    Ok(documents)
}

/// kubectl prints one document after the other.
fn parse(text: &str) -> Result<Vec<Value>> {
    let documents = serde_json::Deserializer::from_str(text).into_iter();
    documents
        .collect::<std::result::Result<_, _>>()
        .map_err(|source| Error::Json {
            what: "output of kubectl",
            source,
        })
}

fn is_right(document: &Value) -> bool {
    let kind = document.get("kind").and_then(Value::as_str);
    kind.is_some_and(|kind| KINDS.contains(&kind))
}

/// Writes the manager's kubeconfig: the cluster as in the administrator's, and a new token of the account.
pub(crate) fn write_kubeconfig(target: &Target) -> Result<()> {
    let token = target.kubectl(&["create", "token", ACCOUNT, "-n", NAMESPACE, TOKEN_DURATION])?;
    let text = cache::read(&target.kubeconfig)?;
    let document: Value = serde_json::from_str(&text).map_err(|source| Error::Json {
        what: "kubeconfig of a local cluster",
        source,
    })?;
    let document = with_token(document, token.trim());
    cache::write_secret(&target.manager_kubeconfig, &document.to_string())
}

fn with_token(mut kubeconfig: Value, token: &str) -> Value {
    let users = kubeconfig.get_mut("users").and_then(Value::as_array_mut);
    for user in users.into_iter().flatten().filter_map(Value::as_object_mut) {
        user.insert("user".to_owned(), json!({"token": token}));
    }
    kubeconfig
}

/// Waits until the API server grants what the bindings say.
pub(crate) fn wait(target: &Target) -> Result<()> {
    let account = format!("--as={MANAGER_USER}");
    for (verb, resource, namespace) in [
        ("list", "pods", "--all-namespaces"),
        (
            "create",
            "leases.coordination.k8s.io",
            "--namespace=lws-system",
        ),
    ] {
        let question = ["auth", "can-i", verb, resource, namespace, &account];
        Interrupt::default().wait_until("the manager gets no rights", LIMIT, || {
            match target.kubectl(&question) {
                Ok(_) => Ok(true),
                // It ends with an error when the answer is no.
                Err(Error::Kubectl { .. }) => Ok(false),
                Err(error) => Err(error),
            }
        })?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_told_from_the_rest() {
        let text = r#"{"kind":"ClusterRole"} {"kind":"Deployment"}
            {"kind":"RoleBinding"}"#;
        let documents = parse(text).unwrap();
        let rights: Vec<_> = documents.iter().map(is_right).collect();
        assert_eq!(rights, [true, false, true]);
    }

    #[test]
    fn token_takes_the_place_of_the_certificate() {
        let kubeconfig = json!({"clusters": [{"name": "c"}], "users": [
            {"name": "u", "user": {"client-key-data": "K"}},
        ]});
        assert_eq!(
            with_token(kubeconfig, "T"),
            json!({"clusters": [{"name": "c"}], "users": [{"name": "u", "user": {"token": "T"}}]})
        );
    }
}
