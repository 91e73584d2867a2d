//! Names that differ from checkout to checkout, so that the tests of two of them can run at once.

use std::path::Path;

use sha2::{Digest, Sha256};

/// `prefix` with a suffix that belongs to this checkout.
#[must_use]
pub fn name_in_checkout(prefix: &str) -> String {
    name(prefix, Path::new(env!("CARGO_MANIFEST_DIR")))
}

fn name(prefix: &str, folder: &Path) -> String {
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let suffix: String = digest
        .iter()
        .take(3)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("{prefix}-{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_differ_between_checkouts_only() {
        let first = name("e2e", Path::new("/a"));
        assert_eq!(first, name("e2e", Path::new("/a")));
        assert_ne!(first, name("e2e", Path::new("/b")));
        assert!(first.starts_with("e2e-") && first.len() == 10, "{first}");
    }
}
