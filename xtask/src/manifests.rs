//! `cargo xtask manifests`: renders `config/default` into `manifests.yaml`, the single file that installs everything, or
//! compares it with what is committed (KUS-5, KUS-6).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use lws_local_cluster::{Progress, Tool, Tools};
use serde_json::Value;

use crate::repository;

/// The rendered file, at the top of the checkout.
pub const FILE: &str = "manifests.yaml";
const SOURCE: &str = "config/default";
/// DEP-6: client-side apply stores a whole object in an annotation, which has room for 262144 bytes.
const CRD_LIMIT: usize = 200_000;

/// Arguments of `cargo xtask manifests`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo xtask manifests --check")]
pub struct Arguments {
    /// Writes nothing and fails when the committed file differs.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    if arguments.check {
        return check_committed();
    }
    write()
}

/// Renders the file anew.
pub fn write() -> Result<()> {
    let rendered = render(&repository::root().join(SOURCE))?;
    fs::write(path(), rendered).with_context(|| format!("failed to write {FILE}"))
}

/// Fails when the committed file is not what would be written, or a CRD in it is too large to be applied client-side.
pub fn check_committed() -> Result<()> {
    let committed = fs::read_to_string(path()).unwrap_or_default();
    if committed != render(&repository::root().join(SOURCE))? {
        bail!("{FILE} is not up to date; run `cargo xtask manifests` and commit the result");
    }
    check_sizes(&committed)
}

/// What kustomize makes of a folder.
fn render(folder: &Path) -> Result<String> {
    let kubectl = Tools::ensure_one(Tool::Kubectl, Progress::stderr())?;
    let mut command = Command::new(kubectl);
    command.arg("kustomize").arg(folder);
    repository::output(&mut command)
}

fn check_sizes(manifests: &str) -> Result<()> {
    for document in definitions(manifests) {
        let definition: Value = serde_saphyr::from_str(document)
            .with_context(|| format!("a CRD in {FILE} is no YAML"))?;
        let size = definition.to_string().len();
        let name = definition.pointer("/metadata/name").and_then(Value::as_str);
        if size >= CRD_LIMIT {
            bail!(
                "CRD {} has {size} bytes, {CRD_LIMIT} are too many",
                name.unwrap_or_default()
            );
        }
    }
    Ok(())
}

fn definitions(manifests: &str) -> impl Iterator<Item = &str> {
    let documents = manifests.split("\n---\n");
    documents.filter(|document| document.contains("\nkind: CustomResourceDefinition\n"))
}

fn path() -> PathBuf {
    repository::root().join(FILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_dep_6_too_large_a_definition_is_refused() {
        let of_size = |size: usize| {
            let filler = "x".repeat(size);
            format!(
                "apiVersion: v1\nkind: Namespace\n---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: a.b\nspec: {filler}\n"
            )
        };
        check_sizes(&of_size(CRD_LIMIT - 200)).unwrap();
        let error = check_sizes(&of_size(CRD_LIMIT)).unwrap_err().to_string();
        assert!(error.contains("a.b"), "{error}");
    }

    #[test]
    fn ops_dep_6_committed_definitions_are_small() {
        let committed = fs::read_to_string(path()).unwrap();
        assert_eq!(definitions(&committed).count(), 3);
        check_sizes(&committed).unwrap();
    }
}
