//! Processes that outlive the command that started them, known by id *and* start time.
//!
//! An id alone is not enough: after the process ended the system may give it to another one. Signals go through a
//! process descriptor that was opened before the start time was compared, so that they cannot hit a stranger.

use std::fs::{self, File};
use std::io::{Read, Seek, SeekFrom};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitOptions, pidfd_open, pidfd_send_signal, waitpid,
};
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// How much of a log is shown when its process ended.
const TAIL_BYTES: u64 = 4_000;
const TAIL_LINES: usize = 12;

/// A process of this boot of this machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub(crate) pid: u32,
    /// Start time in clock ticks since boot, field 22 of `/proc/<pid>/stat`.
    started: u64,
    /// Id of the boot, since ticks start anew with each.
    boot: String,
}

impl ProcessId {
    /// The process that has this id now; `None` if none has, or if it ended and only waits to be collected.
    pub(crate) fn of(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        let started = start_time(&stat)?;
        Some(Self {
            pid,
            started,
            boot: boot.trim().to_owned(),
        })
    }

    /// The process that runs this code.
    pub(crate) fn this() -> Option<Self> {
        Self::of(std::process::id())
    }

    /// Whether this very process still runs.
    pub(crate) fn is_running(&self) -> bool {
        Self::of(self.pid).as_ref() == Some(self)
    }

    /// Stops the process with SIGTERM and, if that takes longer than `grace`, with SIGKILL.
    pub(crate) fn stop(&self, name: &str, grace: Duration) -> Result<()> {
        if !self.signal_and_wait(Signal::TERM, grace) {
            return self.kill(name);
        }
        Ok(())
    }

    /// Stops the process with SIGKILL.
    pub(crate) fn kill(&self, name: &str) -> Result<()> {
        if self.signal_and_wait(Signal::KILL, Duration::from_secs(10)) {
            return Ok(());
        }
        Err(Error::Stop {
            name: name.to_owned(),
            pid: self.pid,
        })
    }

    /// Sends a signal that does not end the process.
    pub(crate) fn send(&self, name: &str, signal: Signal) -> Result<()> {
        let sent = self
            .open()
            .map(|descriptor| pidfd_send_signal(&descriptor, signal));
        match sent {
            Some(Ok(())) => Ok(()),
            Some(Err(_)) | None => Err(Error::Signal {
                name: name.to_owned(),
                pid: self.pid,
            }),
        }
    }

    /// Sends a signal and waits for the end; true if the process is gone.
    fn signal_and_wait(&self, signal: Signal, limit: Duration) -> bool {
        let Some(descriptor) = self.open() else {
            return true;
        };
        // A failure means that it ended in between, which the wait finds out.
        let _ = pidfd_send_signal(&descriptor, signal);
        let gone = wait_for_end(&descriptor, limit);
        self.collect();
        gone
    }

    fn open(&self) -> Option<OwnedFd> {
        let pid = Pid::from_raw(i32::try_from(self.pid).ok()?)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty()).ok()?;
        self.is_running().then_some(descriptor)
    }

    /// Collects the exit status if the process is a child of this one; no zombie stays behind.
    fn collect(&self) {
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = waitpid(Some(pid), WaitOptions::NOHANG);
        }
    }
}

fn wait_for_end(descriptor: &OwnedFd, limit: Duration) -> bool {
    let mut descriptors = [PollFd::new(descriptor, PollFlags::IN)];
    let timeout = Timespec::try_from(limit).ok();
    matches!(poll(&mut descriptors, timeout.as_ref()), Ok(1))
}

/// Start time from `/proc/<pid>/stat`; `None` for a process that ended. The command name in it may hold spaces
/// and brackets, so the fields are counted from its closing bracket.
fn start_time(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let status = fields.next()?;
    let ended = matches!(status, "Z" | "X");
    let started = fields.nth(18)?.parse().ok()?;
    (!ended).then_some(started)
}

/// Starts a program in a process group of its own (so that Ctrl-C does not reach it), with its output in `log`.
pub(crate) fn spawn(argv: &[String], env: &[(String, String)], log: &Path) -> Result<ProcessId> {
    let output = File::options()
        .create(true)
        .append(true)
        .open(log)
        .map_err(Error::file("open", log))?;
    let errors = output.try_clone().map_err(Error::file("open", log))?;
    let (program, arguments) = argv.split_first().ok_or_else(|| nothing_to_start(log))?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env_remove("KUBECONFIG")
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .process_group(0);
    let child = command.spawn().map_err(|source| Error::Start {
        program: program.into(),
        source,
    })?;
    ProcessId::of(child.id()).ok_or_else(|| Error::Ended {
        name: file_name(program),
        log: log.to_path_buf(),
        tail: tail(log),
    })
}

/// Runs a program to its end and returns what it printed.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let program = Path::new(command.get_program()).to_path_buf();
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|source| Error::Start {
            program: program.clone(),
            source,
        })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::Program {
        program,
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}

fn file_name(program: &str) -> String {
    program.rsplit('/').next().unwrap_or(program).to_owned()
}

fn nothing_to_start(log: &Path) -> Error {
    let source = std::io::Error::from(std::io::ErrorKind::InvalidInput);
    Error::Start {
        program: log.to_path_buf(),
        source,
    }
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let text = end_of(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    let skipped = lines.len().saturating_sub(TAIL_LINES);
    lines
        .into_iter()
        .skip(skipped)
        .collect::<Vec<_>>()
        .join("\n")
}

fn end_of(log: &Path) -> std::io::Result<String> {
    let mut file = File::open(log)?;
    let length = file.metadata()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(TAIL_BYTES)))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeper(log: &Path) -> ProcessId {
        spawn(&["sleep".to_owned(), "600".to_owned()], &[], log).unwrap()
    }

    #[test]
    fn start_time_is_field_22_whatever_the_command_is_called() {
        let rest = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(start_time(&format!("12 (cat) {rest}")), Some(4711));
        assert_eq!(start_time(&format!("12 (a) b (c)) {rest}")), Some(4711));
        assert_eq!(start_time("12 (cat) S 1"), None);
        assert_eq!(start_time(""), None);
    }

    #[test]
    fn ended_process_has_no_start_time() {
        let rest = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21";
        assert_eq!(start_time(&format!("12 (cat) Z {rest}")), None);
    }

    #[test]
    fn stop_ends_the_process() {
        let folder = tempfile::tempdir().unwrap();
        let process = sleeper(&folder.path().join("log"));
        assert!(process.is_running());
        process.stop("sleep", Duration::from_secs(5)).unwrap();
        assert!(!process.is_running());
        process.stop("sleep", Duration::from_secs(5)).unwrap();
    }

    #[test]
    fn kill_ends_a_process_that_ignores_sigterm() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let script = "trap '' TERM; echo ready; while :; do sleep 1; done";
        let argv = ["sh", "-c", script].map(str::to_owned);
        let process = spawn(&argv, &[], &log).unwrap();
        while !tail(&log).contains("ready") {
            std::thread::yield_now();
        }
        process.stop("sh", Duration::from_millis(200)).unwrap();
        assert!(!process.is_running());
    }

    #[test]
    fn reused_id_is_another_process() {
        let folder = tempfile::tempdir().unwrap();
        let process = sleeper(&folder.path().join("log"));
        let earlier = ProcessId {
            started: process.started - 1,
            ..process.clone()
        };
        let other_boot = ProcessId {
            boot: "other".to_owned(),
            ..process.clone()
        };
        for stale in [earlier, other_boot] {
            assert!(!stale.is_running());
            stale.kill("stale").unwrap();
            assert!(process.is_running());
        }
        process.kill("sleep").unwrap();
    }

    #[test]
    fn tail_keeps_the_last_lines() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let lines: Vec<String> = (0..1000).map(|line| format!("line {line}")).collect();
        fs::write(&log, lines.join("\n")).unwrap();
        assert_eq!(tail(&log), lines[1000 - TAIL_LINES..].join("\n"));
        assert_eq!(tail(&folder.path().join("absent")), "");
    }
}
