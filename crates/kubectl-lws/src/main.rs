//! The program that kubectl runs for `kubectl lws`.

use std::process::ExitCode;

#[tokio::main]
async fn main() -> ExitCode {
    kubectl_lws::run(std::env::args_os()).await
}
