//! `kubectl lws doctor`: is the installation sound?
//!
//! [`facts`] reads and tries, and changes nothing: what it creates are dry runs. [`checks`] judges what was found, and gives advice.

mod checks;
mod facts;

#[cfg(test)]
mod tests;

use anyhow::Result;

use self::checks::{Check, Verdict};
use crate::cli::Found;
use crate::cluster::Connection;
use crate::output::{self, Cell, Format, Paint, Table, Tone};

const EXAMPLES: &str = "Examples:
  kubectl lws doctor
  kubectl lws doctor --system-namespace my-lws
  kubectl lws doctor -o json

Ends with 1 if something is broken. Nothing is changed: objects are created as dry runs only, in the namespace of the context or of -n.";

/// Arguments of `kubectl lws doctor`.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Arguments {
    /// Namespace that the manager runs in.
    #[arg(long, value_name = "NAMESPACE", default_value = "lws-system")]
    system_namespace: String,
    /// How to print.
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

/// Runs the command.
pub async fn run(connection: &Connection, arguments: &Arguments, paint: Paint) -> Result<Found> {
    let cluster = connection.connect().await?;
    let facts = facts::gather(&cluster, &arguments.system_namespace).await;
    let checks = checks::checks(&facts);
    let text = match output::structured(&checks, arguments.output)? {
        Some(text) => text,
        None => render(&checks, paint),
    };
    output::print(&text)?;
    let is_broken = checks.iter().any(|check| check.verdict == Verdict::Broken);
    Ok(if is_broken { Found::Bad } else { Found::Good })
}

fn render(checks: &[Check], paint: Paint) -> String {
    let mut table = Table::new(&["CHECK", "VERDICT", "FOUND"]);
    for check in checks {
        let (tone, verdict) = match check.verdict {
            Verdict::Good => (Tone::Good, "good"),
            Verdict::Doubtful => (Tone::Busy, "doubtful"),
            Verdict::Broken => (Tone::Bad, "broken"),
            Verdict::Unknown => (Tone::Plain, "unknown"),
        };
        table.row(vec![
            check.area.into(),
            Cell::toned(tone, verdict),
            check.found.as_str().into(),
        ]);
        if let Some(advice) = &check.advice {
            table.text(Tone::Plain, format!("  -> {advice}"));
        }
    }
    table.render(paint)
}
