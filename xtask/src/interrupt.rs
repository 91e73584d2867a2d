//! Ctrl-C and SIGTERM as a flag that the waiting parts look at, so that everything started is also stopped.

use anyhow::{Context, Result};
use lws_local_cluster::Interrupt;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;

/// An interrupt that the first signal sets; the second ends the process at once.
pub fn on_signal() -> Result<Interrupt> {
    let interrupt = Interrupt::default();
    for signal in [SIGINT, SIGTERM] {
        flag::register_conditional_shutdown(signal, 1, interrupt.flag())
            .and_then(|_| flag::register(signal, interrupt.flag()))
            .context("cannot listen for signals")?;
    }
    Ok(interrupt)
}
