//! What can go wrong with a local cluster, in words for the person at the terminal.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Error of the local cluster.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No folder for the per-user cache could be found.
    #[error("no cache folder: set LWS_CACHE_DIR, XDG_CACHE_HOME or HOME")]
    NoCacheFolder,
    /// The `go` command is absent.
    #[error(
        "Go is not installed: install Go {wanted} or newer (https://go.dev/dl) and put `go` on your PATH; the local control plane is built with it once"
    )]
    GoMissing {
        /// The version that the modules ask for.
        wanted: String,
    },
    /// A binary of the control plane could not be built.
    #[error("building {binary} failed: {reason}; install Go {wanted} or newer and make sure that Go modules can be downloaded (whole output: {})", log.display())]
    Build {
        /// The binary.
        binary: &'static str,
        /// The last line that `go build` printed.
        reason: String,
        /// The version that the modules ask for.
        wanted: String,
        /// The file with the whole output.
        log: PathBuf,
    },
    /// A `go.mod` does not say what is needed from it.
    #[error("{} names no version of {module}", path.display())]
    GoModule {
        /// The file.
        path: PathBuf,
        /// The module that was looked for.
        module: String,
    },
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        /// What was tried.
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A program could not be started.
    #[error("cannot start {}: {source}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A program reported a failure.
    #[error("{} failed: {message}", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// What it printed on stderr.
        message: String,
    },
    /// Packages of the system could not be had.
    #[error("a real node needs Debian's packages {names}, which apt-get did not bring: {reason}")]
    Packages {
        /// Their names.
        names: String,
        /// What apt-get said.
        reason: String,
    },
    /// The machine cannot run containers.
    #[error("this machine cannot run containers: {0}")]
    NoContainers(String),
    /// The cluster was started without a real node.
    #[error("cluster {0:?} has no real node")]
    NoRealNode(String),
    /// A process could not be stopped.
    #[error("process {pid} ({name}) does not stop")]
    Stop {
        /// What runs in the process.
        name: String,
        /// Its id.
        pid: u32,
    },
    /// A process could not be paused or resumed.
    #[error("process {pid} ({name}) takes no signal")]
    Signal {
        /// What runs in the process.
        name: String,
        /// Its id.
        pid: u32,
    },
    /// A state file cannot be read.
    #[error("{} is damaged: {source}", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// The reason.
        source: serde_json::Error,
    },
    /// A certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// No free port was found.
    #[error("no free port on 127.0.0.1 between {first} and {last}")]
    NoFreePort {
        /// Start of the range.
        first: u16,
        /// End of the range.
        last: u16,
    },
    /// A component ended by itself.
    #[error("{name} ended; last lines of {}:\n{tail}", log.display())]
    Ended {
        /// The component.
        name: String,
        /// Its log file.
        log: PathBuf,
        /// The end of that file.
        tail: String,
    },
    /// Something did not happen in time.
    #[error("{what}: not after {} s", limit.as_secs())]
    Timeout {
        /// What was waited for.
        what: String,
        /// How long.
        limit: Duration,
    },
    /// kubectl reported a failure.
    #[error("kubectl {arguments} failed: {message}")]
    Kubectl {
        /// Its arguments.
        arguments: String,
        /// What it printed on stderr.
        message: String,
    },
    /// No cluster of this name is there.
    #[error("no cluster named {0:?} is running; `cargo xtask cluster up` starts one")]
    NoCluster(String),
    /// A cluster that was to be started for one process only is there already.
    #[error(
        "cluster {0} runs already: another demo or test uses it, or `cargo xtask cluster down --name {0}` stops it"
    )]
    InUse(String),
    /// A manager of this name runs in the cluster.
    #[error("manager {0} runs in this cluster already")]
    ManagerRuns(String),
    /// Another demo on a cluster of the user's runs.
    #[error("another demo on a cluster of yours runs; end it first")]
    GuestInUse,
    /// A healthy cluster of this name was started with other options or binaries.
    #[error(
        "cluster {0} runs with other options or binaries; `cargo xtask cluster down --name {0}` stops it"
    )]
    OtherOptions(String),
    /// A cluster cannot have this name.
    #[error("{0:?} cannot name a cluster: use 1 to 40 lower-case letters, digits and dashes")]
    BadName(String),
    /// The cluster has no such component.
    #[error("{component} was never started in cluster {cluster:?}")]
    NoComponent {
        /// The component.
        component: &'static str,
        /// The cluster.
        cluster: String,
    },
    /// A document that must be JSON is not.
    #[error("{what} is no valid JSON: {source}")]
    Json {
        /// The document.
        what: &'static str,
        /// The reason.
        source: serde_json::Error,
    },
    /// The cluster already has an object of the installation, from someone else.
    #[error("this cluster already has {0}, installed by someone else: it is left alone")]
    ForeignInstallation(String),
    /// The API server does not reach the webhooks.
    #[error("the API server cannot reach the webhooks at https://{address}: {message}")]
    WebhooksUnreachable {
        /// Host and port in the webhook configuration.
        address: String,
        /// What the API server said.
        message: String,
    },
    /// The user asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    /// An error of a file operation, for `map_err`.
    pub(crate) fn file(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_path_buf();
        move |source| Self::File {
            action,
            path,
            source,
        }
    }
}
