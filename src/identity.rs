//! Who and where this process is (LE-2, CLI-4, CLI-7).

use std::hash::{BuildHasher as _, Hasher as _, RandomState};

const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
const DEFAULT_NAMESPACE: &str = "lws-system";

/// CLI-7: where the Lease is.
pub fn operator_namespace() -> String {
    let namespace = std::fs::read_to_string(NAMESPACE_FILE).unwrap_or_default();
    let namespace = namespace.trim();
    if namespace.is_empty() {
        DEFAULT_NAMESPACE.to_owned()
    } else {
        namespace.to_owned()
    }
}

/// Name of the machine or pod.
pub fn host_name() -> String {
    let of_kernel = || std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = std::env::var("HOSTNAME")
        .ok()
        .filter(|name| !name.is_empty())
        .unwrap_or_else(of_kernel);
    let name = name.trim();
    if name.is_empty() {
        "localhost".to_owned()
    } else {
        name.to_owned()
    }
}

/// LE-2: new for each process.
pub fn new_identity() -> String {
    format!("{}_{}", host_name(), new_uuid())
}

/// A new UUID.
pub fn new_uuid() -> String {
    uuid(random(), random())
}

/// A random number from 0 up to 1, without 1.
pub fn random_unit() -> f64 {
    let bits = u32::try_from(random() >> 32).unwrap_or_default();
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

/// The standard library keys its hash maps from the operating system's randomness; nothing here must be secret.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A UUID of version 4 from two random numbers.
fn uuid(high: u64, low: u64) -> String {
    let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    let (head, tail) = (format!("{high:016x}"), format!("{low:016x}"));
    let part =
        |text: &str, from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
    [
        part(&head, 0, 8),
        part(&head, 8, 12),
        part(&head, 12, 16),
        part(&tail, 0, 4),
        part(&tail, 4, 16),
    ]
    .join("-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_le_2_identity_is_host_and_uuid_and_new_each_time() {
        assert_eq!(uuid(u64::MAX, 0), "ffffffff-ffff-4fff-8000-000000000000");
        let (one, other) = (new_identity(), new_identity());
        assert_ne!(one, other);
        let (host, uuid) = one.rsplit_once('_').expect("two parts");
        assert_eq!(host, host_name());
        assert_eq!(uuid.len(), 36);
    }

    #[test]
    fn random_numbers_are_from_0_to_1() {
        let numbers: Vec<f64> = (0..1000).map(|_| random_unit()).collect();
        assert!(numbers.iter().all(|n| (0.0..1.0).contains(n)));
        assert!(numbers.iter().any(|n| *n < 0.5) && numbers.iter().any(|n| *n > 0.5));
    }
}
