//! Kubeconfig files of a local cluster, complete in one file each, so that they can be copied.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::certificates::Pair;

/// A kubeconfig with one context, named like the cluster, for the holder of `client`.
pub(crate) fn document(cluster: &str, server: &str, authority: &str, client: &Pair) -> Value {
    let name = format!("lws-{cluster}");
    json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{
            "name": name,
            "cluster": {"server": server, "certificate-authority-data": encode(authority)},
        }],
        "users": [{
            "name": name,
            "user": {
                "client-certificate-data": encode(&client.certificate),
                "client-key-data": encode(&client.key),
            },
        }],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
    })
}

/// Base64, as Kubernetes wants certificates in its documents.
pub(crate) fn encode(text: &str) -> String {
    STANDARD.encode(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn context_leads_to_the_server_and_the_client() {
        let client = Pair {
            certificate: "C".to_owned(),
            key: "K".to_owned(),
        };
        let document = document("demo", "https://127.0.0.1:1234", "A", &client);
        assert_eq!(document["current-context"], document["contexts"][0]["name"]);
        assert_eq!(
            document["contexts"][0]["context"]["cluster"],
            document["clusters"][0]["name"]
        );
        assert_eq!(
            document["contexts"][0]["context"]["user"],
            document["users"][0]["name"]
        );
        assert_eq!(
            document["clusters"][0]["cluster"]["server"],
            "https://127.0.0.1:1234"
        );
        assert_eq!(document["users"][0]["user"]["client-key-data"], "Sw==");
    }
}
