//! Durations in suites, in Go style: `30s`, `1h30m`, `250ms`.

use std::time::Duration;

/// Why a text is not a duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    #[error("a duration can't be empty")]
    Empty,
    /// It is below zero.
    #[error("a duration can't be negative")]
    Negative,
    /// A number stands alone.
    #[error("`{0}` has no time unit")]
    NoUnit(String),
    /// The unit is unknown.
    #[error("unknown time unit `{0}`")]
    UnknownUnit(String),
    /// A number was expected.
    #[error("invalid duration `{0}`")]
    NotANumber(String),
    /// More than can be counted.
    #[error("the duration is too long")]
    TooLong,
}

const UNITS: [(&str, u128); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

pub fn parse(text: &str) -> Result<Duration, DurationError> {
    if text.starts_with('-') {
        return Err(DurationError::Negative);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(DurationError::Empty);
    }
    let mut nanos: u128 = 0;
    while !rest.is_empty() {
        let (number, unit, after) = split_part(rest, text)?;
        let add = scaled(number, unit).ok_or(DurationError::TooLong)?;
        nanos = nanos.checked_add(add).ok_or(DurationError::TooLong)?;
        rest = after;
    }
    u64::try_from(nanos)
        .map(Duration::from_nanos)
        .map_err(|_| DurationError::TooLong)
}

/// Writes a duration the way suites do: `1h30m`, `250ms`.
pub fn render(duration: Duration) -> String {
    let mut nanos = duration.as_nanos();
    if nanos == 0 {
        return "0s".to_owned();
    }
    let mut out = String::new();
    for (unit, size) in [
        ("h", 3_600_000_000_000),
        ("m", 60_000_000_000),
        ("s", 1_000_000_000),
        ("ms", 1_000_000),
        ("us", 1_000),
        ("ns", 1),
    ] {
        if nanos >= size {
            out.push_str(&format!("{}{unit}", nanos / size));
            nanos %= size;
        }
    }
    out
}

/// Writes a measured duration with two significant digits: `252µs`, `3.4ms`, `1.5s`.
pub fn brief(duration: Duration) -> String {
    let (unit, size, limit) = match duration.as_nanos() {
        0..1_000_000 => ("µs", 1_000, 1_000_000),
        1_000_000..1_000_000_000 => ("ms", 1_000_000, 1_000_000_000),
        1_000_000_000..60_000_000_000 => ("s", 1_000_000_000, 60_000_000_000),
        _ => return render(Duration::from_secs(duration.as_secs())),
    };
    // Two digits are enough, and one of them is behind the point if there is one before it.
    let tenths = (duration.as_nanos() * 10 + size / 2).min(limit * 10 - 1) / size;
    match (tenths / 10, tenths % 10) {
        (whole, _) if whole >= 10 => format!("{whole}{unit}"),
        (whole, 0) => format!("{whole}{unit}"),
        (whole, tenth) => format!("{whole}.{tenth}{unit}"),
    }
}

/// Splits `1.5h30m` into `1.5`, the size of `h`, and `30m`.
fn split_part<'a>(rest: &'a str, whole: &str) -> Result<(&'a str, u128, &'a str), DurationError> {
    let number_end = rest
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(rest.len());
    let (number, tail) = rest.split_at(number_end);
    let dots = number.matches('.').count();
    if number.is_empty() || number == "." || dots > 1 {
        return Err(DurationError::NotANumber(whole.to_owned()));
    }
    let unit_end = tail
        .find(|c: char| c.is_ascii_digit() || c == '.')
        .unwrap_or(tail.len());
    let (unit, after) = tail.split_at(unit_end);
    if unit.is_empty() {
        return Err(DurationError::NoUnit(whole.to_owned()));
    }
    UNITS
        .iter()
        .find(|(name, _)| *name == unit)
        .map(|(_, size)| (number, *size, after))
        .ok_or_else(|| DurationError::UnknownUnit(unit.trim().to_owned()))
}

fn scaled(number: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole = if whole.is_empty() {
        0
    } else {
        whole.parse::<u128>().ok()?.checked_mul(unit)?
    };
    // Nothing below a nanosecond counts, so digits beyond the unit's own can't change the sum.
    let digits = &fraction[..fraction.len().min(18)];
    if digits.is_empty() {
        return Some(whole);
    }
    let part = digits.parse::<u128>().ok()? * unit / 10_u128.pow(u32::try_from(digits.len()).ok()?);
    whole.checked_add(part)
}

/// Durations in JSON, as whole microseconds.
pub mod micros {
    use std::time::Duration;

    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(time: &Duration, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_u64(u64::try_from(time.as_micros()).unwrap_or(u64::MAX))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Duration, D::Error> {
        u64::deserialize(from).map(Duration::from_micros)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_go_reads_them() {
        let check = |text: &str, nanos: u64| {
            assert_eq!(parse(text), Ok(Duration::from_nanos(nanos)), "{text}");
        };
        check("30s", 30_000_000_000);
        check("5m", 300_000_000_000);
        check("1h30m", 5_400_000_000_000);
        check("250ms", 250_000_000);
        check("1.5h", 5_400_000_000_000);
        check(".5s", 500_000_000);
        check("1.s", 1_000_000_000);
        check("1us", 1_000);
        check("1µs", 1_000);
        check("0", 0);
        check("+1s", 1_000_000_000);
        check("1m1m", 120_000_000_000);
        check("0.000000001s", 1);
    }

    #[test]
    fn invalid_durations_are_explained() {
        let check = |text: &str, message: &str| {
            assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
        };
        check("", "a duration can't be empty");
        check("30", "`30` has no time unit");
        check("1h30", "`1h30` has no time unit");
        check("-5s", "a duration can't be negative");
        check("5 minutes", "unknown time unit `minutes`");
        check("5d", "unknown time unit `d`");
        check("5min", "unknown time unit `min`");
        check("soon", "invalid duration `soon`");
        check("1.2.3s", "invalid duration `1.2.3s`");
        check(".s", "invalid duration `.s`");
        check("9999999999999h", "the duration is too long");
        check(
            "99999999999999999999999999999999999999999h",
            "the duration is too long",
        );
    }

    #[test]
    fn a_measured_duration_is_brief() {
        let check = |nanos: u64, text: &str| assert_eq!(brief(Duration::from_nanos(nanos)), text);
        check(0, "0µs");
        check(252_400, "252µs");
        check(3_379_000, "3.4ms");
        check(2_000_000, "2ms");
        check(999_999_999, "999ms");
        check(1_501_004_707, "1.5s");
        check(59_999_999_999, "59s");
        check(60_001_000_000, "1m");
        check(3_723_000_000_000, "1h2m3s");
    }

    proptest::proptest! {
        #[test]
        fn what_is_written_is_read_back(nanos in 0..u64::MAX) {
            let duration = Duration::from_nanos(nanos);
            proptest::prop_assert_eq!(parse(&render(duration)), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in r"[0-9hmsnu.µ+ -]{0,40}|.{0,20}") {
            let _ = parse(&text);
        }
    }
}
