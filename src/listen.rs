//! Listen addresses as Go writes them: `:8081` is every address of the machine, `0` none.

use std::io;

use tokio::net::TcpListener;

/// Whether `address` means that nothing is served.
pub fn is_disabled(address: &str) -> bool {
    address == "0"
}

/// Binds `address`; an empty host means every address, IPv6 included where the machine has it.
///
/// # Errors
/// The operating system's.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    match address.strip_prefix(':') {
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Ok(listener) => Ok(listener),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => Err(error),
            Err(_) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
        },
        None => TcpListener::bind(address).await,
    }
}
