//! Follows sets or StatefulSets until all of them are ready. One kubectl that watches costs the machine much less than many that ask.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStdout, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use lws_local_cluster::{Interrupt, Target};

use super::manifest::NAMESPACE;

/// How often the interrupt is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// One line for each state of an object.
const FIELDS: &str = "jsonpath={.metadata.name}|{.metadata.generation}|{.status.observedGeneration}|{.spec.replicas}|{.status.readyReplicas}|{.status.updatedReplicas}|{.status.conditions[?(@.type==\"Available\")].status}{\"\\n\"}";

/// Kinds that are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// LeaderWorkerSets.
    Sets,
    /// StatefulSets.
    StatefulSets,
}

impl Workload {
    /// Name of the resource.
    pub fn resource(self) -> &'static str {
        match self {
            Self::Sets => "leaderworkersets",
            Self::StatefulSets => "statefulsets",
        }
    }

    /// Whether a state is that of an object of at least this generation that is ready as a whole; its name then.
    fn ready(self, line: &str, generation: u64) -> Option<&str> {
        let [name, current, observed, wanted, ready, updated, available] =
            *line.split('|').collect::<Vec<_>>()
        else {
            return None;
        };
        let is_current = current
            .parse()
            .is_ok_and(|current: u64| current >= generation);
        let is_told = self == Self::StatefulSets || available == "True";
        let is_ready = observed == current && ready == wanted && updated == wanted;
        (is_current && is_told && is_ready).then_some(name)
    }
}

/// A running kubectl; it ends with the value.
#[derive(Debug)]
pub struct Watch {
    workload: Workload,
    process: Child,
    lines: Receiver<String>,
}

impl Watch {
    /// Starts to follow.
    pub fn start(target: &Target, workload: Workload) -> Result<Self> {
        let arguments = [
            "get",
            workload.resource(),
            "-n",
            NAMESPACE,
            "--watch",
            "-o",
            FIELDS,
        ];
        let mut command = target.command(&arguments);
        let mut process = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start kubectl")?;
        let output = process.stdout.take().context("kubectl has no output")?;
        Ok(Self {
            workload,
            process,
            lines: follow(output),
        })
    }

    /// Waits until `count` objects of at least this generation are ready.
    pub fn until_ready(
        &self,
        count: usize,
        generation: u64,
        limit: Duration,
        interrupt: &Interrupt,
    ) -> Result<()> {
        let start = Instant::now();
        let mut ready = BTreeSet::new();
        while ready.len() < count {
            if interrupt.is_set() {
                bail!("interrupted");
            }
            if start.elapsed() > limit {
                bail!(
                    "{} of {count} {} are ready after {limit:?}",
                    ready.len(),
                    self.workload.resource()
                );
            }
            match self.lines.recv_timeout(LOOK) {
                Ok(line) => ready.extend(self.workload.ready(&line, generation).map(str::to_owned)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => bail!("kubectl ended while it watched"),
            }
        }
        Ok(())
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        // A drop cannot fail; kubectl ends with its cluster at the latest.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The lines of an output, as they come.
fn follow(output: ChildStdout) -> Receiver<String> {
    let (sender, receiver) = channel();
    thread::spawn(move || {
        let lines = BufReader::new(output).lines().map_while(Result::ok);
        for line in lines {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_counts_as_ready() {
        let set = |line, generation| Workload::Sets.ready(line, generation);
        assert_eq!(set("a|1|1|4|4|4|True", 1), Some("a"));
        for line in [
            "a|1|1|4|4|4|False",
            "a|1|1|4|3|4|True",
            "a|1|1|4|4|3|True",
            "a|2|1|4|4|4|True",
            "a|1||4|||",
            "",
        ] {
            assert_eq!(set(line, 1), None, "{line}");
        }
        assert_eq!(set("a|1|1|4|4|4|True", 2), None, "before the update");
        assert_eq!(Workload::StatefulSets.ready("a|1|1|4|4|4|", 1), Some("a"));
    }
}
