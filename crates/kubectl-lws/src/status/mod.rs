//! `kubectl lws status`: sets as trees of groups and pods, and why something is not ready.
//!
//! [`fetch`] reads the objects of a namespace, [`report`] makes the tree, [`why`] finds the reasons, [`render`] prints.

mod fetch;
mod render;
mod report;
mod why;

#[cfg(test)]
mod tests;

use anyhow::Result;

use crate::cli::Found;
use crate::cluster::{Connection, Named};
use crate::output::{self, Format, Paint};

const EXAMPLES: &str = "Examples:
  kubectl lws status                one line per set of the namespace
  kubectl lws status -A             of all namespaces
  kubectl lws status llm            groups and pods of one set, with reasons
  kubectl lws status ds/llm         the sets of all its roles
  kubectl lws status llm -o json";

/// Arguments of `kubectl lws status`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// NAME, lws/NAME or ds/NAME; without it all LeaderWorkerSets are listed.
    name: Option<Named>,
    /// List the sets of all namespaces.
    #[arg(short = 'A', long, conflicts_with = "name")]
    all_namespaces: bool,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Runs the command.
pub async fn run(connection: &Connection, arguments: &Arguments, paint: Paint) -> Result<Found> {
    let cluster = connection.connect().await?;
    let text = match &arguments.name {
        Some(name) => {
            let seen = fetch::named(&cluster, name).await?;
            let reports: Vec<_> = seen.iter().map(report::report).collect();
            match output::structured(&reports, arguments.output)? {
                Some(text) => text,
                None => render::trees(&reports, arguments.output == Format::Wide, paint),
            }
        }
        None => {
            let sets = fetch::all(&cluster, arguments.all_namespaces).await?;
            let lines: Vec<_> = sets.iter().map(report::summary).collect();
            match output::structured(&lines, arguments.output)? {
                Some(text) => text,
                None => render::list(&lines, arguments.all_namespaces, paint),
            }
        }
    };
    output::print(&text)?;
    Ok(Found::Good)
}
