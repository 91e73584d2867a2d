//! Durations as Go writes them (CFG-6): `15s`, `1h30m`, `1.5h`, `300ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A duration that is read and written in Go's form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct GoDuration(pub Duration);

/// A text that is no Go duration.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("invalid duration {0:?}, expected a form like 15s, 1h30m or 300ms")]
pub struct InvalidDuration(String);

const NANOS: &[(&str, f64)] = &[
    ("ns", 1.0),
    ("us", 1e3),
    ("µs", 1e3),
    ("μs", 1e3),
    ("ms", 1e6),
    ("s", 1e9),
    ("m", 60e9),
    ("h", 3600e9),
];

impl FromStr for GoDuration {
    type Err = InvalidDuration;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text)
            .map(Self)
            .ok_or_else(|| InvalidDuration(text.to_owned()))
    }
}

fn parse(text: &str) -> Option<Duration> {
    if text == "0" {
        return Some(Duration::ZERO);
    }
    let mut rest = text;
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.')?;
        let (number, tail) = rest.split_at(digits);
        let letters = tail
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(tail.len());
        let (unit, after) = tail.split_at(letters);
        let (_, nanos) = NANOS.iter().find(|(name, _)| *name == unit)?;
        let part = Duration::try_from_secs_f64(number.parse::<f64>().ok()? * nanos / 1e9).ok()?;
        total = total.checked_add(part)?;
        rest = after;
    }
    (!text.is_empty()).then_some(total)
}

impl fmt::Display for GoDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0.as_secs();
        let nanos = self.0.subsec_nanos();
        if whole == 0 && nanos > 0 {
            let (unit, per) = match nanos {
                0..1_000 => ("ns", 1.0),
                1_000..1_000_000 => ("µs", 1e3),
                1_000_000.. => ("ms", 1e6),
            };
            return write!(f, "{}{unit}", f64::from(nanos) / per);
        }
        let (hours, minutes, seconds) = (whole / 3600, whole / 60 % 60, whole % 60);
        if hours > 0 {
            write!(f, "{hours}h")?;
        }
        if hours > 0 || minutes > 0 {
            write!(f, "{minutes}m")?;
        }
        if nanos == 0 {
            return write!(f, "{seconds}s");
        }
        let fraction = format!("{nanos:09}");
        write!(f, "{seconds}.{}s", fraction.trim_end_matches('0'))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ops_cfg_6_go_forms_are_read_and_written_back() {
        for (text, millis, written) in [
            ("15s", 15_000, "15s"),
            ("5m", 300_000, "5m0s"),
            ("1h30m", 5_400_000, "1h30m0s"),
            ("1.5h", 5_400_000, "1h30m0s"),
            ("300ms", 300, "300ms"),
            ("1.5s", 1_500, "1.5s"),
            ("0", 0, "0s"),
            ("1h", 3_600_000, "1h0m0s"),
        ] {
            let duration: GoDuration = text.parse().expect(text);
            assert_eq!(duration.0, Duration::from_millis(millis), "{text}");
            assert_eq!(duration.to_string(), written, "{text}");
        }
    }

    #[test]
    fn ops_cfg_6_other_texts_are_refused() {
        for text in [
            "",
            "15",
            "s",
            "15 s",
            "-5s",
            "1d",
            "1.2.3s",
            "999999999999999999999h",
        ] {
            assert_eq!(
                text.parse::<GoDuration>(),
                Err(InvalidDuration(text.into())),
                "{text}"
            );
        }
    }
}
