//! Rendered documents, and the tools that render them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use lws_local_cluster::{Progress, Tool, Tools};
use serde_json::Value;

/// Documents of one installation, without the CRDs: these are long, and compared byte for byte.
pub struct Documents(pub Vec<Value>);

impl Documents {
    /// Reads a stream of YAML documents.
    pub fn parse(text: &str) -> Self {
        let documents = text
            .split("\n---\n")
            .map(|part| part.trim_start_matches("---\n"));
        let documents = documents.filter(|part| {
            part.contains("kind: ") && !part.contains("\nkind: CustomResourceDefinition\n")
        });
        Self(
            documents
                .map(|part| {
                    serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error}: {part}"))
                })
                .collect(),
        )
    }

    /// The document of this kind and name, if there is one.
    pub fn find(&self, kind: &str, name: &str) -> Option<&Value> {
        self.0
            .iter()
            .find(|document| document["kind"] == kind && document["metadata"]["name"] == name)
    }

    /// The document of this kind and name.
    pub fn get(&self, kind: &str, name: &str) -> &Value {
        self.find(kind, name)
            .unwrap_or_else(|| panic!("no {kind} {name} among {:#?}", self.names()))
    }

    /// Kind, namespace and name of each.
    pub fn names(&self) -> BTreeSet<String> {
        self.0.iter().map(name).collect()
    }

    /// The pod that the Deployment runs.
    pub fn pod(&self) -> &Value {
        let deployment = self
            .0
            .iter()
            .find(|document| document["kind"] == "Deployment");
        &deployment.expect("a Deployment")["spec"]["template"]
    }

    /// The manager's container.
    pub fn container(&self) -> &Value {
        &self.pod()["spec"]["containers"][0]
    }

    /// The manager's configuration.
    pub fn config(&self) -> Value {
        let config = self
            .0
            .iter()
            .find(|document| document["kind"] == "ConfigMap");
        let text = config.expect("a ConfigMap")["data"]["controller_manager_config.yaml"].as_str();
        serde_saphyr::from_str(text.expect("a file")).expect("YAML")
    }
}

fn name(document: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let metadata = &document["metadata"];
    let parts = [&document["kind"], &metadata["namespace"], &metadata["name"]];
    parts.map(text).join("/")
}

/// Top of the checkout.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// What kustomize makes of a folder.
pub fn kustomize(folder: &Path) -> Documents {
    Documents::parse(&run(Command::new(tool(Tool::Kubectl))
        .arg("kustomize")
        .arg(folder)))
}

/// What Helm makes of the chart, as a release in lws-system.
pub fn template(release: &str, arguments: &[&str]) -> Documents {
    let mut command = Command::new(tool(Tool::Helm));
    command.args(["template", release, "charts/lws", "--namespace=lws-system"]);
    command.args(["--kube-version=1.37.0"]).args(arguments);
    Documents::parse(&run(command.current_dir(root())))
}

/// The chart as a release named lws, with one value set.
pub fn with(value: &str) -> Documents {
    template("lws", &["--set-json", value])
}

/// The chart as a release named lws, with no value set. Rendered once.
pub fn default() -> &'static Documents {
    static DEFAULT: OnceLock<Documents> = OnceLock::new();
    DEFAULT.get_or_init(|| template("lws", &[]))
}

/// Path of a tool, which is built if it is missing.
pub fn tool(tool: Tool) -> PathBuf {
    Tools::ensure_one(tool, Progress::stderr()).unwrap_or_else(|error| panic!("{error}"))
}

/// What a command printed. It must succeed.
pub fn run(command: &mut Command) -> String {
    // Neither plugins nor repositories nor a cluster of the user's play a part.
    let output = command
        .env("HELM_NO_PLUGINS", "1")
        .env_remove("KUBECONFIG")
        .output();
    let output = output.unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {message}");
    String::from_utf8(output.stdout).expect("text")
}
