//! SHD-1: the first SIGTERM or SIGINT asks for a graceful stop, the second ends the process at once.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;

/// Tells once that the process is asked to stop.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A stop that comes when `true` is sent.
    pub fn when(asked: watch::Receiver<bool>) -> Self {
        Self(asked)
    }

    /// Waits until the process is asked to stop.
    pub async fn asked(&mut self) {
        // The sender lives as long as the process; if it were gone, nobody could ask any more.
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Listens for signals from now on.
///
/// # Errors
/// When the operating system does not let us.
pub fn listen() -> io::Result<Stop> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let (ask, asked) = watch::channel(false);
    tokio::spawn(async move {
        one_of(&mut terminate, &mut interrupt).await;
        tracing::info!(target: "setup", "stopping");
        ask.send_replace(true);
        one_of(&mut terminate, &mut interrupt).await;
        tracing::error!(target: "setup", "asked to stop a second time, exiting at once");
        std::process::exit(1);
    });
    Ok(Stop(asked))
}

async fn one_of(terminate: &mut Signal, interrupt: &mut Signal) {
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}
