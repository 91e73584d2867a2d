//! `kubectl lws preview`: what applying a manifest would do.
//!
//! [`fetch`] reads what there is, or makes it up from a second manifest; [`report`] says what follows, with the planners of the controller; [`render`]
//! prints it.

mod fetch;
mod render;
mod report;

use std::path::PathBuf;

use anyhow::Result;

use crate::cli::Found;
use crate::cluster::Connection;
use crate::manifest;
use crate::output::{self, Format, Paint};
use crate::validate::Assumed;

const EXAMPLES: &str = "Examples:
  kubectl lws preview -f llm.yaml                     against the live object
  kubectl lws preview -f llm.yaml --offline           as a new object, without a cluster
  kubectl lws preview -f new.yaml --from old.yaml     as a change of a healthy set, without a cluster
  kubectl lws preview -f llm.yaml -o json

The manifest stands for the whole spec, as with kubectl replace; where it leaves out spec.replicas, the live number stays. New groups are taken
to become ready one after the other, the highest index first.";

/// Arguments of `kubectl lws preview`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// File with manifests; - is stdin.
    #[arg(short, long, value_name = "FILE")]
    filename: PathBuf,
    /// Ask no cluster: the objects are new.
    #[arg(long, conflicts_with = "from")]
    offline: bool,
    /// Ask no cluster: the objects of this file run, with every group ready.
    #[arg(long, value_name = "FILE")]
    from: Option<PathBuf>,
    #[command(flatten)]
    assumed: Assumed,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Runs the command.
pub async fn run(connection: &Connection, arguments: &Arguments, paint: Paint) -> Result<Found> {
    let manifests = manifest::read(&arguments.filename)?;
    let mut reports = Vec::new();
    if arguments.offline || arguments.from.is_some() {
        let old = match &arguments.from {
            Some(path) => manifest::read(path)?,
            None => Vec::new(),
        };
        for new in &manifests {
            let is_same =
                |old: &&manifest::Manifest| old.kind == new.kind && old.name() == new.name();
            let old = old.iter().find(is_same);
            reports.push(report::offline(new, old, arguments.assumed)?);
        }
    } else {
        let cluster = connection.connect().await?;
        for new in &manifests {
            let seen = fetch::fetch(&cluster, new).await?;
            reports.push(report::live(new, &seen)?);
        }
    }
    let text = match output::structured(&reports, arguments.output)? {
        Some(text) => text,
        None => render::render(&reports, paint),
    };
    output::print(&text)?;
    let is_denied = reports.iter().any(|report| report.denial.is_some());
    Ok(if is_denied { Found::Bad } else { Found::Good })
}
