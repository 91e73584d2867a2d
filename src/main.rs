//! `lws-manager`: reads the command line and the configuration, and runs until it is asked to stop.

use std::process::ExitCode;

use lws::flags::Flags;
use lws::{logging, start, version};

fn main() -> ExitCode {
    let flags = match Flags::parse_go(std::env::args_os()) {
        Ok(flags) => flags,
        Err(error) => {
            // Help and usage; there is nowhere to tell it if that fails.
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    if flags.version {
        println!("{}", version::lines());
        return ExitCode::SUCCESS;
    }
    // KRS-3: fails only if it was done before.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match logging::start(&flags.log)
        .map_err(Into::into)
        .and_then(|()| start::run(flags))
    {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(target: "setup", error = start::chain(error.as_ref()), "exiting");
            ExitCode::FAILURE
        }
    }
}
