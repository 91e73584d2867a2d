//! Plain HTTP on loopback, just enough to ask for a health endpoint.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(2);

/// Status code and body of `GET path`; `None` if nothing answers.
pub(crate) fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT).ok()?;
    stream.set_read_timeout(Some(TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(TIMEOUT)).ok()?;
    let request = format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    parse(&String::from_utf8_lossy(&answer))
}

/// Whether something listens.
pub(crate) fn is_open(port: u16) -> bool {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    TcpStream::connect_timeout(&address, TIMEOUT).is_ok()
}

fn parse(answer: &str) -> Option<(u16, String)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.split(' ').nth(1)?.parse().ok()?;
    Some((code, body.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_and_body_are_read() {
        let answer = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 2\r\n\r\nno";
        assert_eq!(parse(answer), Some((500, "no".to_owned())));
        assert_eq!(parse("HTTP/1.1"), None);
        assert_eq!(parse(""), None);
    }

    #[test]
    fn silence_is_no_answer() {
        let [port] = crate::ports::pick(&std::collections::BTreeSet::new()).unwrap();
        assert_eq!(get(port, "/readyz"), None);
    }
}
