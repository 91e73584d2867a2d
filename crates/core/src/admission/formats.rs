//! Formats of names in Kubernetes. Texts that do not follow them are refused by the API server sooner or later.

/// `[a-z]([-a-z0-9]*[a-z0-9])?`, at most 63 characters.
pub(super) fn is_dns1035_label(text: &str) -> bool {
    is_dns1123_label(text) && text.starts_with(|c: char| c.is_ascii_lowercase())
}

/// `[a-z0-9]([-a-z0-9]*[a-z0-9])?`, at most 63 characters.
pub(super) fn is_dns1123_label(text: &str) -> bool {
    text.len() <= 63 && is_dns_part(text)
}

/// Parts like labels, of any length, joined by dots; at most 253 characters.
pub(super) fn is_dns1123_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_dns_part)
}

/// Key of a label, an annotation or a finalizer: `[<subdomain>/]<name>`.
pub(super) fn is_qualified_name(text: &str) -> bool {
    match text.split_once('/') {
        Some((prefix, name)) => is_dns1123_subdomain(prefix) && is_name_part(name),
        None => is_name_part(text),
    }
}

/// Value of a label: like a name, or empty.
pub(super) fn is_label_value(text: &str) -> bool {
    text.is_empty() || is_name_part(text)
}

fn is_dns_part(text: &str) -> bool {
    is_framed(
        text,
        |c| c.is_ascii_lowercase() || c.is_ascii_digit(),
        |c| c == '-',
    )
}

fn is_name_part(text: &str) -> bool {
    text.len() <= 63
        && is_framed(
            text,
            |c| c.is_ascii_alphanumeric(),
            |c| matches!(c, '-' | '_' | '.'),
        )
}

/// Whether the text is not empty, has only `outer` and `inner` characters, and `outer` ones at both ends.
fn is_framed(text: &str, outer: impl Fn(char) -> bool, inner: impl Fn(char) -> bool) -> bool {
    text.starts_with(&outer) && text.ends_with(&outer) && text.chars().all(|c| outer(c) || inner(c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adm_v_1_dns_formats() {
        let long = "a".repeat(64);
        let longest = "a".repeat(63);
        for (text, dns1035, dns1123, subdomain) in [
            ("demo", true, true, true),
            ("a", true, true, true),
            (longest.as_str(), true, true, true),
            ("2cube", false, true, true),
            ("de.mo", false, false, true),
            (long.as_str(), false, false, true),
            ("-a", false, false, false),
            ("a-", false, false, false),
            ("A", false, false, false),
            ("a..b", false, false, false),
            ("ü", false, false, false),
            ("", false, false, false),
        ] {
            let found = (
                is_dns1035_label(text),
                is_dns1123_label(text),
                is_dns1123_subdomain(text),
            );
            assert_eq!(found, (dns1035, dns1123, subdomain), "{text}");
        }
    }

    #[test]
    fn adm_v_1_s_15_keys_and_label_values() {
        for (text, key, value) in [
            ("a", true, true),
            ("A.b_c-9", true, true),
            ("topology.kubernetes.io/zone", true, false),
            ("", false, true),
            ("-a", false, false),
            ("a/b/c", false, false),
            ("/a", false, false),
            ("Upper.io/a", false, false),
            ("a b", false, false),
        ] {
            assert_eq!(
                (is_qualified_name(text), is_label_value(text)),
                (key, value),
                "{text}"
            );
        }
    }
}
