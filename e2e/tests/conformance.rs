//! The simulated cluster against the real one: the same random requests to both, and after each the same answer and the same objects (tier 6).
//!
//! One trace alone: `LWS_TRACE=<seed> cargo test -p lws-e2e --test conformance`.

#[path = "conformance/real.rs"]
mod real;

use std::fmt::Write;

use anyhow::{Result, bail};
use futures::{StreamExt, stream};
use lws_e2e::{Bench, on_shared_cluster};
use lws_sim::conformance::{Simulated, Trace, differences};

use real::Real;

/// Traces at a time: each of them mostly waits.
const AT_A_TIME: usize = 8;
const TRACES: u64 = 50;
const TRACES_IN_FULL: u64 = 200;

fn seeds() -> Vec<u64> {
    match std::env::var("LWS_TRACE") {
        Ok(seed) => seed
            .split(',')
            .filter_map(|seed| seed.parse().ok())
            .collect(),
        Err(_) if std::env::var_os("LWS_FULL").is_some() => (0..TRACES_IN_FULL).collect(),
        Err(_) => (0..TRACES).collect(),
    }
}

#[tokio::test]
async fn simulated_and_real_cluster_do_the_same() -> Result<()> {
    let traces = stream::iter(seeds().into_iter().map(Trace::of));
    let outcomes =
        traces.map(async |trace| on_shared_cluster(async |bench| run(&trace, bench).await).await);
    let outcomes: Vec<Result<()>> = outcomes.buffer_unordered(AT_A_TIME).collect().await;
    let number = outcomes.len();
    let failures: Vec<String> = outcomes
        .into_iter()
        .filter_map(|outcome| outcome.err().map(|error| format!("{error:#}")))
        .collect();
    if !failures.is_empty() {
        bail!(
            "{} of {number} traces differ:\n\n{}",
            failures.len(),
            failures.join("\n")
        );
    }
    println!("{number} traces are equal");
    Ok(())
}

async fn run(trace: &Trace, bench: &Bench) -> Result<()> {
    let mut real = Real::new(bench);
    let mut simulated = Simulated::new(trace.seed, bench.namespace(), trace.is_ours);
    for (number, operation) in trace.operations.iter().enumerate() {
        let expected = simulated.make(operation);
        let view = simulated.rest().map_err(anyhow::Error::msg)?;
        let answer = real.make(operation).await?;
        let mut lines = Vec::new();
        if answer != expected {
            lines.push(format!(
                "  answer\n    simulated  {expected}\n    real       {answer}"
            ));
        }
        let seen = real.rest(&view).await?;
        lines.extend(differences(&view, &seen));
        if !lines.is_empty() {
            bail!(report(trace, number, &lines.join("\n")));
        }
    }
    Ok(())
}

fn report(trace: &Trace, number: usize, lines: &str) -> String {
    let mut text = format!("trace {} ({}):\n", trace.seed, trace.family);
    for (step, operation) in trace.operations.iter().take(number + 1).enumerate() {
        let _ = writeln!(text, "  {step}. {operation:?}");
    }
    let _ = writeln!(text, "After the last one:\n{lines}");
    let _ = writeln!(
        text,
        "  LWS_TRACE={} cargo test -p lws-e2e --test conformance",
        trace.seed
    );
    text
}
