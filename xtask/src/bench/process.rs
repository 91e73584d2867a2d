//! What a process has used, from `/proc`.

use std::fs;

use anyhow::{Context, Result};

/// `USER_HZ`, the same on every Linux that this runs on.
const TICKS_PER_SECOND: f64 = 100.0;

/// Seconds of CPU so far, all threads, in user and kernel mode.
pub fn cpu_seconds(pid: u32) -> Result<f64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("the process ended")?;
    ticks(&stat)
        .map(|ticks| ticks / TICKS_PER_SECOND)
        .context("an unknown form of /proc/<pid>/stat")
}

/// Fields 14 and 15; the second field, a name in parentheses, may contain anything.
fn ticks(stat: &str) -> Option<f64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let user: u32 = fields.next()?.parse().ok()?;
    let kernel: u32 = fields.next()?.parse().ok()?;
    Some(f64::from(user) + f64::from(kernel))
}

/// MiB that were resident at most.
pub fn peak_mib(pid: u32) -> Result<f64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).context("the process ended")?;
    peak(&status).context("no VmHWM in /proc/<pid>/status")
}

fn peak(status: &str) -> Option<f64> {
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u32 = line.split_whitespace().next()?.parse().ok()?;
    Some(f64::from(kib) / 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_an_odd_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 100 0 0 0 150 50 0 0 20 0 4 0 99 1 2";
        assert_eq!(ticks(stat), Some(200.0));
        assert_eq!(
            peak("Name:\tx\nVmHWM:\t   2048 kB\nVmRSS:\t 1 kB\n"),
            Some(2.0)
        );
    }

    #[test]
    fn this_process_uses_something() {
        assert!(cpu_seconds(std::process::id()).unwrap() >= 0.0);
        assert!(peak_mib(std::process::id()).unwrap() > 1.0);
    }
}
