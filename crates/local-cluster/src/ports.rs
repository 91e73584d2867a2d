//! Free ports on loopback.
//!
//! Ports are taken below the range that the kernel hands out for outgoing connections, so that a component that
//! is stopped for a while finds its port free again. A port can still be lost to a process that takes it
//! between the pick and the start of the component: then the start is tried again with other ports.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::net::{Ipv4Addr, TcpListener};

use crate::{Error, Result};

const FIRST: u16 = 20_000;
const LAST: u16 = 32_000;

/// Picks `N` different ports that are free now and not in `taken`.
pub(crate) fn pick<const N: usize>(taken: &BTreeSet<u16>) -> Result<[u16; N]> {
    let mut held = Vec::new();
    let mut ports = [0; N];
    let span = LAST - FIRST;
    let start = random() % span;
    let mut offsets = (0..span).map(|step| (start + step) % span);
    for port in &mut ports {
        // A picked port stays bound until all are picked, so that none is picked twice.
        let (number, listener) = offsets
            .find_map(|offset| bind(FIRST + offset, taken))
            .ok_or(Error::NoFreePort {
                first: FIRST,
                last: LAST,
            })?;
        *port = number;
        held.push(listener);
    }
    Ok(ports)
}

fn bind(port: u16, taken: &BTreeSet<u16>) -> Option<(u16, TcpListener)> {
    if taken.contains(&port) {
        return None;
    }
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))
        .ok()
        .map(|listener| (port, listener))
}

/// A number that differs from process to process and from call to call: the keys of a new hash map do.
fn random() -> u16 {
    let [low, high, ..] = RandomState::new().build_hasher().finish().to_le_bytes();
    u16::from_le_bytes([low, high])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picked_ports_differ_and_are_free() {
        let ports: [u16; 6] = pick(&BTreeSet::new()).unwrap();
        assert_eq!(ports.iter().collect::<BTreeSet<_>>().len(), 6);
        for port in ports {
            assert!((FIRST..LAST).contains(&port));
            assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok());
        }
    }

    #[test]
    fn taken_and_bound_ports_are_not_picked() {
        let [bound] = pick(&BTreeSet::new()).unwrap();
        let _listener = TcpListener::bind((Ipv4Addr::LOCALHOST, bound)).unwrap();
        assert!(bind(bound, &BTreeSet::new()).is_none());
        let [free] = pick(&BTreeSet::new()).unwrap();
        assert!(bind(free, &BTreeSet::from([free])).is_none());
    }

    #[test]
    fn no_free_port_is_an_error() {
        let all = (FIRST..=LAST).collect();
        assert!(matches!(pick::<1>(&all), Err(Error::NoFreePort { .. })));
    }
}
