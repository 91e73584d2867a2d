//! The manager as a process, without a cluster: how it ends.
#![allow(clippy::expect_used, reason = "a test may panic")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

/// Far more than any of it takes; so that nothing waits for ever.
const LIMIT: Duration = Duration::from_secs(60);

fn manager(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lws-manager"));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    command
}

/// An API server that takes connections and never answers, and the files for a manager of it.
struct Silent {
    folder: TempDir,
    _listener: TcpListener,
    probes: u16,
}

impl Silent {
    fn start() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let port = listener.local_addr().expect("an address").port();
        let kubeconfig = format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: a\n\
             clusters: [{{name: a, cluster: {{server: \"http://127.0.0.1:{port}\"}}}}]\n\
             users: [{{name: a, user: {{token: none}}}}]\n\
             contexts: [{{name: a, context: {{cluster: a, user: a}}}}]\n"
        );
        fs::write(folder.path().join("kubeconfig"), kubeconfig).expect("written");
        let probes = free_port();
        let config = format!(
            "apiVersion: config.lws.x-k8s.io/v1\nkind: Configuration\n\
             leaderElection: {{leaderElect: false}}\nmetrics: {{bindAddress: \"0\"}}\n\
             health: {{healthProbeBindAddress: \"127.0.0.1:{probes}\"}}\n"
        );
        fs::write(folder.path().join("config"), config).expect("written");
        Self {
            folder,
            _listener: listener,
            probes,
        }
    }

    /// A manager of this server that answers probes.
    fn running_manager(&self) -> Child {
        let file = |name: &str| self.folder.path().join(name).display().to_string();
        let process = manager(&[
            &format!("--config={}", file("config")),
            &format!("--kubeconfig={}", file("kubeconfig")),
        ])
        .env("ENABLE_WEBHOOKS", "false")
        .spawn()
        .expect("a process");
        until("the health check", || self.answers("/readyz/shutdown", 200));
        process
    }

    /// Status line of a probe; `None` without an answer.
    fn probe(&self, path: &str) -> Option<String> {
        let mut probe = TcpStream::connect((Ipv4Addr::LOCALHOST, self.probes)).ok()?;
        let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        probe.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        probe.read_to_string(&mut answer).ok()?;
        answer.lines().next().map(str::to_owned)
    }

    fn answers(&self, path: &str, code: u16) -> bool {
        self.probe(path)
            .is_some_and(|line| line.starts_with(&format!("HTTP/1.1 {code}")))
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
    listener.local_addr().expect("an address").port()
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < end, "{what} does not come");
        sleep(Duration::from_millis(20));
    }
}

fn code(mut process: Child) -> Option<i32> {
    let mut status = None;
    until("the end", || {
        status = process.try_wait().expect("a process of ours");
        status.is_some()
    });
    status.and_then(|status| status.code())
}

fn terminate(process: &Child) {
    kill_process(Pid::from_child(process), Signal::TERM).expect("a signal");
}

#[test]
fn ops_shd_3_exit_codes_of_what_cannot_start() {
    let rows: [(&[&str], i32); 4] = [
        (&["--version"], 0),
        (&["--no-such-flag"], 2),
        (&["--leader-elect=perhaps"], 2),
        (&["--config=no/such/file"], 1),
    ];
    for (arguments, expected) in rows {
        let process = manager(arguments).spawn().expect("a process");
        assert_eq!(code(process), Some(expected), "{arguments:?}");
    }
}

#[test]
fn ops_shd_1_shd_2_shd_3_stop_is_clean_while_the_api_server_never_answers() {
    let server = Silent::start();
    let process = server.running_manager();
    terminate(&process);
    assert_eq!(code(process), Some(0));
}

#[test]
fn ops_shd_1_shd_3_second_signal_ends_it_at_once() {
    let server = Silent::start();
    let process = server.running_manager();
    terminate(&process);
    until("the stop", || server.answers("/readyz/shutdown", 500));
    terminate(&process);
    assert_eq!(code(process), Some(1));
}
