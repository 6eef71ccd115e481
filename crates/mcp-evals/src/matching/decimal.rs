//! A decimal number in one normal form, so that numbers are equal if their forms are.
//!
//! Exponents are only added, never expanded: `1e999999999` costs as little as `1`.

/// The number `0.d₁d₂d₃… × 10^point`, with neither a leading nor a trailing zero among its digits.
///
/// Zero has no digits and no sign. Exponents past the range of `i128` count as its bounds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i128,
}

impl From<&str> for Decimal {
    /// Takes a number as JSON writes it.
    fn from(text: &str) -> Self {
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = || whole.bytes().chain(fraction.bytes());
        let leading = written().take_while(|digit| *digit == b'0').count();
        let mut digits: Vec<u8> = written().skip(leading).collect();
        while digits.last() == Some(&b'0') {
            digits.pop();
        }
        if digits.is_empty() {
            return Self {
                negative: false,
                digits,
                point: 0,
            };
        }
        let point = parse_exponent(exponent)
            .saturating_add(length(whole.len()))
            .saturating_sub(length(leading));
        Self {
            negative,
            digits,
            point,
        }
    }
}

impl Decimal {
    /// The number as an integer of at least 0, if it is one; past the range of `u64`, its bound.
    pub(super) fn whole(&self) -> Option<u64> {
        if self.negative || self.point < length(self.digits.len()) {
            return None;
        }
        let mut places = self.digits.clone();
        // Twenty digits hold every `u64`; more are past its range.
        let width = usize::try_from(self.point).unwrap_or(usize::MAX).min(21);
        places.resize(width.max(places.len()), b'0');
        let text: String = places.into_iter().map(char::from).collect();
        if text.is_empty() {
            return Some(0);
        }
        Some(text.parse().unwrap_or(u64::MAX))
    }
}

fn parse_exponent(written: &str) -> i128 {
    let beyond = if written.starts_with('-') {
        i128::MIN
    } else {
        i128::MAX
    };
    written.parse().unwrap_or(beyond)
}

fn length(len: usize) -> i128 {
    i128::try_from(len).unwrap_or(i128::MAX)
}
