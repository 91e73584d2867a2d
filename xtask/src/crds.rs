//! `cargo xtask crds`: writes what `lws_api::crd` assembles into `crds/` and into the chart, compares it with what is committed, or derives anew
//! the fragments of Kubernetes' own schema that the assembly embeds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::repository;

mod fragments;

/// Arguments of `cargo xtask crds`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  cargo xtask crds --check")]
pub struct Arguments {
    /// Writes nothing and fails when a committed file differs.
    #[arg(long, conflicts_with = "fragments")]
    check: bool,
    /// Derives crates/api/schema/ from this OpenAPI v3 document of core/v1 (in Kubernetes' sources
    /// api/openapi-spec/v3/api__v1_openapi.json) instead of writing CRDs.
    #[arg(long, value_name = "FILE")]
    fragments: Option<PathBuf>,
}

struct Output {
    path: PathBuf,
    content: String,
}

/// Runs the command.
pub fn run(arguments: &Arguments) -> Result<()> {
    let root = repository::root();
    match &arguments.fragments {
        Some(source) => write(&fragments::derive(source, &root)?),
        None if arguments.check => check_committed(),
        None => write(&crds(&root)?),
    }
}

/// Fails when a committed file differs from what would be written.
pub fn check_committed() -> Result<()> {
    let root = repository::root();
    check(&crds(&root)?, &root)
}

/// CRD-10: one file for each CRD, and the list of them that kustomize reads. HELM-1: the chart has copies.
fn crds(root: &Path) -> Result<Vec<Output>> {
    let folder = root.join("crds");
    let mut outputs = Vec::new();
    let mut kustomization = String::from(
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources:\n",
    );
    for crd in lws_api::crd::all().context("a fragment in crates/api/schema is not JSON")? {
        kustomization.push_str(&format!("- {}\n", crd.file));
        for folder in [&folder, &root.join("charts/lws/crds")] {
            outputs.push(Output {
                path: folder.join(&crd.file),
                content: yaml(&crd.definition)?,
            });
        }
    }
    outputs.push(Output {
        path: folder.join("kustomization.yaml"),
        content: kustomization,
    });
    Ok(outputs)
}

fn yaml(value: &Value) -> Result<String> {
    let text = serde_saphyr::to_string(value).context("failed to write YAML")?;
    Ok(format!("---\n{}\n", text.trim_end()))
}

fn write(outputs: &[Output]) -> Result<()> {
    for Output { path, content } in outputs {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)
                .with_context(|| format!("failed to make {}", folder.display()))?;
        }
        fs::write(path, content).with_context(|| format!("failed to write {}", path.display()))?;
    }
    Ok(())
}

fn check(outputs: &[Output], root: &Path) -> Result<()> {
    let stale: Vec<_> = outputs
        .iter()
        .filter(|output| {
            fs::read_to_string(&output.path).ok().as_deref() != Some(output.content.as_str())
        })
        .map(|output| {
            output
                .path
                .strip_prefix(root)
                .unwrap_or(&output.path)
                .display()
                .to_string()
        })
        .collect();
    if !stale.is_empty() {
        bail!(
            "not up to date: {}; run `cargo xtask crds` and commit the result",
            stale.join(", ")
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crd_11_committed_files_are_up_to_date() {
        check_committed().unwrap();
    }

    #[test]
    fn crd_11_the_yaml_reads_back_as_the_definition() {
        for crd in lws_api::crd::all().unwrap() {
            let read: Value = serde_saphyr::from_str(&yaml(&crd.definition).unwrap()).unwrap();
            assert!(read == crd.definition, "{} differs", crd.file);
        }
    }

    #[test]
    fn crd_11_a_differing_file_is_named() {
        let root = Path::new("/nowhere");
        let outputs = [Output {
            path: root.join("crds/a.yaml"),
            content: String::new(),
        }];
        let error = check(&outputs, root).unwrap_err().to_string();
        assert!(
            error.contains("crds/a.yaml") && error.contains("cargo xtask crds"),
            "{error}"
        );
    }
}
