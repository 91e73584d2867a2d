//! Names and keys that tie pods to groups and subgroups (pods.md section 4), computed alike by admission and by the
//! controllers. Everything here is a function of its arguments: random input is drawn by the caller.

use sha1::{Digest, Sha1};

/// Characters of random name parts: no vowels and no look-alikes, so that no word appears by chance.
const SAFE_ALPHABET: [char; 27] = [
    'b', 'c', 'd', 'f', 'g', 'h', 'j', 'k', 'l', 'm', 'n', 'p', 'q', 'r', 's', 't', 'v', 'w', 'x',
    'z', '2', '4', '5', '6', '7', '8', '9',
];

/// Length of the random input of a Hash group key (GK-3).
const KEY_SEED_LENGTH: usize = 16;

/// GK-1: splits `<parent>-<ordinal>` at its last dash. `None` without digits at the end, or when they exceed 31 bits.
pub fn parse_ordinal(name: &str) -> Option<(&str, u32)> {
    let (parent, digits) = name.rsplit_once('-')?;
    let only_digits = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    let ordinal = digits.parse::<i32>().ok().filter(|_| only_digits)?;
    Some((parent, u32::try_from(ordinal).ok()?))
}

/// GK-2: key of an Ordinal group; a recreated group has the same one.
pub fn group_key(namespace: &str, leader_pod: &str) -> String {
    sha1_hex(&format!("{namespace}/{leader_pod}"))
}

/// GK-3: key of a Hash group; new for every leader pod, because `random` is.
pub fn hash_group_key(namespace: &str, random: u128) -> String {
    sha1_hex(&format!(
        "{namespace}/{}",
        safe_text(random, KEY_SEED_LENGTH)
    ))
}

/// First characters of a Hash group key, as used in host names.
pub fn short_key(group_key: &str) -> &str {
    group_key.get(..8).unwrap_or(group_key)
}

/// SG-1: subgroup of worker `worker` in a group of `size` pods cut into subgroups of `subgroup_size`. When the leader is
/// the one pod too many, it joins subgroup 0 and the workers are counted without it. `None` when a division fails.
pub fn subgroup_index(size: i64, subgroup_size: i64, worker: i64) -> Option<i64> {
    let workers_divide = size.checked_sub(1)?.checked_rem(subgroup_size)? == 0;
    let all_divide = size.checked_rem(subgroup_size)? == 0;
    let position = if workers_divide && !all_divide {
        worker.checked_sub(1)?
    } else {
        worker
    };
    position.checked_div(subgroup_size)
}

/// SG-4: key of a subgroup. `group` is the leader pod's name, or the group key of a Hash group.
pub fn subgroup_key(group: &str, subgroup_index: &str) -> String {
    sha1_hex(&format!("{group}/{subgroup_index}"))
}

/// `length` characters of the safe alphabet, read off `random` digit by digit.
pub fn safe_text(random: u128, length: usize) -> String {
    let mut rest = random;
    let mut text = String::with_capacity(length);
    for _ in 0..length {
        let digit = usize::try_from(rest % 27).unwrap_or_default();
        text.extend(SAFE_ALPHABET.get(digit));
        rest /= 27;
    }
    text
}

/// The decimal digits of `number` in the safe alphabet (NAT-34).
pub fn safe_digits(number: u32) -> String {
    let letter = |digit: u8| SAFE_ALPHABET.get(usize::from(digit % 27));
    number.to_string().bytes().filter_map(letter).collect()
}

/// Whether `text` could be the result of [`safe_text`] for that length.
pub fn is_safe_text(text: &str, length: usize) -> bool {
    text.len() == length && text.chars().all(|c| SAFE_ALPHABET.contains(&c))
}

fn sha1_hex(text: &str) -> String {
    let mut hex = String::with_capacity(40);
    for byte in Sha1::digest(text.as_bytes()) {
        hex.push_str(&format!("{byte:02x}"));
    }
    hex
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The number whose digits in base 27 spell `text`.
    fn random_for(text: &str) -> u128 {
        text.chars().rev().fold(0, |number, c| {
            let digit = SAFE_ALPHABET.iter().position(|known| *known == c).unwrap();
            number * 27 + u128::try_from(digit).unwrap()
        })
    }

    #[test]
    fn pod_gk_1_name_parsing() {
        for (name, parsed) in [
            ("my-lws-3", Some(("my-lws", 3))),
            ("my-lws-3-12", Some(("my-lws-3", 12))),
            ("-7", Some(("", 7))),
            ("a-007", Some(("a", 7))),
            ("a-2147483647", Some(("a", 2_147_483_647))),
            ("a-2147483648", None),
            ("no-ordinal", None),
            ("a-", None),
            ("a-+3", None),
            ("a3", None),
            ("", None),
        ] {
            assert_eq!(parse_ordinal(name), parsed, "{name}");
        }
    }

    #[test]
    fn pod_gk_2_ordinal_group_keys() {
        for (namespace, pod, key) in [
            (
                "default",
                "test-sample",
                "95e88034e460983f51a9952fe128729fbc0663b5",
            ),
            (
                "default",
                "podName",
                "390b34ab671d29e9997d7d4252b8bbf8da02f5b7",
            ),
            (
                "leaderworkerset",
                "test-sample",
                "39f5d7e9122b9d94d3932e3720b43fd3b56347e8",
            ),
            (
                "default",
                "leaderworkerset-sample-0",
                "9e1316d2ae590d1547fdcd8e941a83be8889e7d4",
            ),
            (
                "default",
                "my-lws-0",
                "85c75a5bcf357a993c958ca839ff3faf70ec6b0b",
            ),
        ] {
            assert_eq!(group_key(namespace, pod), key, "{namespace}/{pod}");
        }
    }

    #[test]
    fn pod_gk_3_hash_group_key() {
        let random = random_for("bcdfghjklmnpqrst");
        assert_eq!(safe_text(random, 16), "bcdfghjklmnpqrst");
        let key = hash_group_key("default", random);
        assert_eq!(key, "c6da7bccdf722954dd7b0470ffb1e81e301267bc");
        assert_eq!(short_key(&key), "c6da7bcc");
        assert_ne!(hash_group_key("default", random + 1), key);
    }

    #[test]
    fn pod_gk_3_safe_text_stays_in_its_alphabet() {
        for random in [0, 1, 26, 27, u128::MAX] {
            assert!(is_safe_text(&safe_text(random, 16), 16), "{random}");
        }
        for other in ["aaaaa", "bcdf", "bcdfgh", "BCDFG", "bcd-f"] {
            assert!(!is_safe_text(other, 5), "{other}");
        }
    }

    #[test]
    fn pod_sg_1_subgroup_index() {
        for (size, subgroup_size, indexes) in [
            (4, 2, vec![0, 1, 1]),
            (5, 2, vec![0, 0, 1, 1]),
            (3, 1, vec![1, 2]),
            (5, 4, vec![0, 0, 0, 0]),
            (4, 3, vec![0, 0, 0]),
            (3, 3, vec![0, 0]),
            (11, 5, vec![0, 0, 0, 0, 0, 1, 1, 1, 1, 1]),
        ] {
            for (worker, index) in (1..).zip(indexes) {
                assert_eq!(
                    subgroup_index(size, subgroup_size, worker),
                    Some(index),
                    "{size}/{subgroup_size}/{worker}"
                );
            }
        }
        assert_eq!(subgroup_index(4, 0, 1), None);
        assert_eq!(subgroup_index(i64::MIN, -1, 1), None);
    }

    #[test]
    fn pod_sg_4_subgroup_keys() {
        let hash_key = "c6da7bccdf722954dd7b0470ffb1e81e301267bc";
        for (group, index, key) in [
            ("my-lws-0", "0", "5deee8c4a097c2901d4bc8feeb358a6e7ef32eac"),
            ("my-lws-0", "1", "342acf7ff6f85b42bb1b926ba95b46e5f1d93839"),
            (hash_key, "0", "2a05d75a28ada4e83e2a0ea5d0222802c5f09192"),
            (hash_key, "1", "bd596f06c409f076c7d86eeea719086a483cc506"),
        ] {
            assert_eq!(subgroup_key(group, index), key, "{group}/{index}");
        }
    }
}
