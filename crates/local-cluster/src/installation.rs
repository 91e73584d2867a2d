//! This project in a cluster: CRDs, webhook configurations and the certificate of a manager that runs outside; in a local
//! cluster its rights, too.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::certificates::Authority;
use crate::json::merge;
use crate::webhooks::Route;
use crate::{Error, Result, Target};
use crate::{cache, kubeconfig, ports, rights, webhooks};

/// Namespace of the manager's Lease (CLI-7).
const NAMESPACE: &str = "lws-system";
/// Label of everything that was installed from here, so that what others installed is never touched.
const MARK: &str = "lws-local-cluster";
const WEBHOOK_KINDS: &str = "mutatingwebhookconfigurations,validatingwebhookconfigurations";
/// Kinds of everything else that is in no namespace. The rest is in ours, and goes with it.
const KINDS: &str = "crd,namespaces,clusterroles,clusterrolebindings";
/// Kind, name and mark, one object a line.
const LISTING: &str = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.labels.lws-local-cluster}{\"\\n\"}{end}";

/// Service that the webhooks are reached by with [`Certificates::Secret`], and Secret that the manager fills (CRT-1).
const SERVICE: &str = "lws-webhook-service";
const SECRET: &str = "lws-webhook-server-cert";

/// Where the manager's certificate comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Certificates {
    /// From a folder that the installation fills; the webhooks are reached by a URL.
    Folder,
    /// From a Secret that the manager fills, as in production; the webhooks are reached by a Service that stands for the webhook host.
    Secret,
}

/// How to install.
#[derive(Clone, Debug)]
pub struct InstallationOptions {
    /// Host or address under which the API server reaches this machine.
    pub webhook_host: String,
    /// Where the manager's certificate comes from.
    pub certificates: Certificates,
}

impl Default for InstallationOptions {
    fn default() -> Self {
        Self {
            webhook_host: "127.0.0.1".to_owned(),
            certificates: Certificates::Folder,
        }
    }
}

/// An installation; installing once more into the same cluster keeps port and certificates.
#[derive(Clone, Debug)]
pub struct Installation {
    target: Target,
    host: String,
    port: u16,
    certificates: Certificates,
}

impl Installation {
    /// Installs CRDs and webhook configurations, and where the manager is a user of its own, its rights. Until a manager
    /// serves the webhooks, writes of our objects fail.
    ///
    /// # Errors
    /// [`Error::ForeignInstallation`] if any of it is there from someone else; nothing is changed then.
    pub fn install(target: &Target, options: &InstallationOptions) -> Result<Self> {
        let mut documents = definitions(target)?;
        documents.push(namespace());
        let has_account = target.manager_kubeconfig != target.kubeconfig;
        if has_account {
            documents.extend(rights::documents(target)?);
        }
        let kinds = format!("{KINDS},{WEBHOOK_KINDS}");
        let present = target.kubectl(&["get", &kinds, "-o", LISTING])?;
        let names = documents
            .iter()
            .filter_map(key)
            .chain(webhooks::NAMES.map(str::to_owned));
        if let Some(name) = foreign(&present, names) {
            return Err(Error::ForeignInstallation(name));
        }
        let installation = Self::prepare(target, options)?;
        if options.certificates == Certificates::Secret {
            documents.extend([service(&options.webhook_host), secret()]);
        }
        installation.apply(documents)?;
        let selector = selector();
        let established = [
            "wait",
            "--for=condition=Established",
            "--timeout=60s",
            "crd",
        ];
        target.kubectl(&[&established[..], &["-l", &selector]].concat())?;
        installation.add_webhooks()?;
        if has_account {
            rights::write_kubeconfig(target)?;
            rights::wait(target)?;
        }
        Ok(installation)
    }

    /// Port and certificates, made at the first installation into this cluster.
    fn prepare(target: &Target, options: &InstallationOptions) -> Result<Self> {
        let host = options.webhook_host.as_str();
        let folder = target.folder().join("webhooks");
        let record = folder.join("port");
        let known = fs::read_to_string(&record)
            .ok()
            .and_then(|text| text.parse().ok());
        let port = match known {
            Some(port) => port,
            None => {
                let [port] = ports::pick(&BTreeSet::new())?;
                port
            }
        };
        let installation = Self {
            target: target.clone(),
            host: host.to_owned(),
            port,
            certificates: options.certificates,
        };
        if known.is_none() {
            let authority = Authority::new("lws-webhooks")?;
            let names: Vec<&str> = BTreeSet::from([host, "127.0.0.1"]).into_iter().collect();
            authority
                .server("lws-webhooks", &names)?
                .write(&folder, "tls")?;
            cache::write(&folder.join("ca.crt"), authority.certificate())?;
            cache::write(&record, &port.to_string())?;
        }
        Ok(installation)
    }

    /// Writes the webhook configurations, also over changed ones.
    ///
    /// # Errors
    /// [`Error::Kubectl`].
    pub fn add_webhooks(&self) -> Result<()> {
        let authority = cache::read(&self.folder().join("ca.crt"))?;
        let base = format!("https://{}", self.webhook_address());
        let ca_bundle = kubeconfig::encode(&authority);
        let route = match self.certificates {
            Certificates::Folder => Route::Url {
                base: &base,
                ca_bundle: &ca_bundle,
            },
            Certificates::Secret => Route::Service {
                namespace: NAMESPACE,
                name: SERVICE,
                port: self.port,
            },
        };
        self.apply(webhooks::documents(&route).into())
    }

    /// Removes the webhook configurations.
    ///
    /// # Errors
    /// [`Error::Kubectl`].
    pub fn remove_webhooks(&self) -> Result<()> {
        delete_marked(&self.target, WEBHOOK_KINDS)
    }

    /// Removes everything that an installation put into a cluster, and with the CRDs all of our objects. What others
    /// installed under the same names is left alone.
    ///
    /// # Errors
    /// [`Error::Kubectl`].
    pub fn remove_from(target: &Target) -> Result<()> {
        delete_marked(target, WEBHOOK_KINDS)?;
        delete_marked(target, KINDS)?;
        cache::remove(&target.folder().join("webhooks"))
    }

    /// Proves, with a dry run, that the API server reaches the webhooks.
    ///
    /// # Errors
    /// [`Error::WebhooksUnreachable`] with what the API server says.
    pub fn check_webhooks(&self) -> Result<()> {
        let arguments = ["create", "--dry-run=server", "-f", "-"];
        match self.target.kubectl_with(&arguments, &probe().to_string()) {
            Ok(_) => Ok(()),
            Err(Error::Kubectl { message, .. }) => Err(Error::WebhooksUnreachable {
                address: self.webhook_address(),
                message,
            }),
            Err(error) => Err(error),
        }
    }

    fn apply(&self, documents: Vec<Value>) -> Result<()> {
        let documents: Vec<Value> = documents.into_iter().map(marked).collect();
        let list = json!({"apiVersion": "v1", "kind": "List", "items": documents});
        let arguments = ["apply", "--server-side", "--force-conflicts", "-f", "-"];
        self.target.kubectl_with(&arguments, &list.to_string())?;
        Ok(())
    }

    /// The cluster it is in.
    #[must_use]
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Port that the webhook configurations lead to.
    #[must_use]
    pub fn webhook_port(&self) -> u16 {
        self.port
    }

    /// Folder with `tls.crt`, `tls.key` of the webhooks and `ca.crt`.
    fn folder(&self) -> PathBuf {
        self.target.folder().join("webhooks")
    }

    /// What the manager's configuration says about certificates.
    pub(crate) fn certificate_config(&self) -> Value {
        match self.certificates {
            Certificates::Folder => json!({
                "webhook": {"certDir": self.folder()},
                "internalCertManagement": {"enable": false},
            }),
            Certificates::Secret => json!({"internalCertManagement": {"enable": true}}),
        }
    }

    /// Address the manager listens on: loopback, unless the API server is elsewhere.
    pub(crate) fn webhook_bind_address(&self) -> &'static str {
        let loopback = matches!(self.host.as_str(), "127.0.0.1" | "localhost" | "::1");
        if loopback { "127.0.0.1" } else { "" }
    }

    fn webhook_address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}

/// The committed CRDs.
fn definitions(target: &Target) -> Result<Vec<Value>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crds");
    let entries = fs::read_dir(&folder).map_err(Error::file("list", &folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.retain(|file| is_definition(file));
    files.sort();
    files.iter().map(|file| definition(target, file)).collect()
}

fn is_definition(file: &Path) -> bool {
    file.extension()
        .is_some_and(|extension| extension == "yaml")
        && file.file_stem().is_some_and(|stem| stem != "kustomization")
}

/// A YAML file as JSON; kubectl converts it, so that no YAML library is needed here.
fn definition(target: &Target, file: &Path) -> Result<Value> {
    let file = file.display().to_string();
    let arguments = [
        "create",
        "--dry-run=client",
        "--validate=false",
        "-f",
        &file,
    ];
    target.kubectl_json(&arguments)
}

fn namespace() -> Value {
    json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
}

/// Leads the API server, which resolves names itself, to the host of the webhooks.
fn service(host: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": SERVICE, "namespace": NAMESPACE},
        "spec": {"type": "ExternalName", "externalName": host},
    })
}

fn secret() -> Value {
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET, "namespace": NAMESPACE}})
}

/// Kind and name, as in [`LISTING`].
fn key(document: &Value) -> Option<String> {
    let kind = document.get("kind")?.as_str()?;
    let name = document.pointer("/metadata/name")?.as_str()?;
    Some(format!("{kind}/{name}"))
}

/// The first of `names` that a listing has without our mark.
fn foreign(listing: &str, names: impl Iterator<Item = String>) -> Option<String> {
    let wanted: BTreeSet<String> = names.collect();
    let rows = listing.lines().filter_map(|line| line.split_once(' '));
    let mut foreign = rows
        .filter(|(_, mark)| mark.trim() != "true")
        .map(|(name, _)| name);
    foreign
        .find(|name| wanted.contains(*name))
        .map(str::to_owned)
}

fn marked(mut document: Value) -> Value {
    merge(
        &mut document,
        &json!({"metadata": {"labels": {MARK: "true"}}}),
    );
    document
}

fn delete_marked(target: &Target, kinds: &str) -> Result<()> {
    target.kubectl(&["delete", kinds, "-l", &selector()])?;
    Ok(())
}

fn selector() -> String {
    format!("{MARK}=true")
}

/// The smallest LeaderWorkerSet.
fn probe() -> Value {
    let container = json!({"name": "c", "image": "nginx:1.27"});
    json!({
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": "webhook-probe", "namespace": "default"},
        "spec": {"leaderWorkerTemplate": {"workerTemplate": {"spec": {"containers": [container]}}}},
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_definitions_are_taken_from_the_folder() {
        assert!(is_definition(Path::new("crds/a.yaml")));
        assert!(!is_definition(Path::new("crds/kustomization.yaml")));
        assert!(!is_definition(Path::new("crds/README.md")));
    }

    #[test]
    fn only_what_others_installed_under_our_names_is_foreign() {
        let names = || ["CRD/a".to_owned(), "Namespace/b".to_owned()].into_iter();
        assert_eq!(
            foreign("CRD/a true\nNamespace/b true\nCRD/c \n", names()),
            None
        );
        assert_eq!(
            foreign("CRD/a true\nNamespace/b \n", names()).as_deref(),
            Some("Namespace/b")
        );
        assert_eq!(foreign("", names()), None);
    }

    #[test]
    fn listing_asks_for_the_mark() {
        assert!(LISTING.contains(&format!(".labels.{MARK}}}")));
        assert_eq!(key(&namespace()).as_deref(), Some("Namespace/lws-system"));
    }

    #[test]
    fn mark_is_added_to_the_labels() {
        let bare = marked(json!({"metadata": {"name": "a"}}));
        assert_eq!(bare["metadata"]["labels"], json!({MARK: "true"}));
        let labelled = marked(json!({"metadata": {"labels": {"x": "y"}}}));
        assert_eq!(
            labelled["metadata"]["labels"],
            json!({"x": "y", MARK: "true"})
        );
    }
}
