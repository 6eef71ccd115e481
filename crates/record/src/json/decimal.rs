//! A decimal number in one normal form, compared and subtracted digit by digit.
//!
//! Its main type is [`Decimal`]. Exponents are only ever compared and added, never expanded,
//! so that `1e999999999` costs as little as `1`.

use std::cmp::Ordering;
use std::fmt;

use serde_json::Number;

/// Further apart than this, numbers are not lined up digit by digit.
const LINED_UP_DIGITS: i128 = 10_000;

/// The number `0.d₁d₂d₃… × 10^point`, with neither a leading nor a trailing zero among its digits.
///
/// Zero has no digits and no sign. Exponents past the range of `i128` count as its bounds.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Decimal {
    negative: bool,
    digits: Vec<u8>,
    point: i128,
}

impl From<&Number> for Decimal {
    fn from(number: &Number) -> Self {
        let text = number.as_str();
        let (negative, text) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let written = || {
            whole
                .bytes()
                .chain(fraction.bytes())
                .map(|digit| digit.wrapping_sub(b'0'))
        };
        let leading = written().take_while(|digit| *digit == 0).count();
        let mut digits: Vec<u8> = written().skip(leading).collect();
        while digits.last() == Some(&0) {
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

impl Decimal {
    pub(super) fn is_negative(&self) -> bool {
        self.negative
    }

    pub(super) fn is_integer(&self) -> bool {
        self.point >= length(self.digits.len())
    }

    /// Compares `|self - other|` with `limit`; `None` if the three lie too far apart.
    pub(super) fn distance_to(&self, other: &Self, limit: &Self) -> Option<Ordering> {
        if limit.negative {
            return Some(Ordering::Greater);
        }
        let present = || {
            [self, other, limit]
                .into_iter()
                .filter(|number| !number.digits.is_empty())
        };
        let high = present().map(|number| number.point).max().unwrap_or(0);
        let low = present().map(Self::last_place).min().unwrap_or(0);
        let width = high.checked_sub(low)?;
        if width > LINED_UP_DIGITS {
            return None;
        }
        // One more place in front, for a carry.
        let line_up = |number: &Self| number.lined_up(high.checked_add(1)?, width.checked_add(1)?);
        let (a, b) = (line_up(self)?, line_up(other)?);
        let distance = if self.negative != other.negative {
            sum(&a, &b)
        } else if a >= b {
            difference(&a, &b)
        } else {
            difference(&b, &a)
        };
        Some(distance.cmp(&line_up(limit)?))
    }

    /// The exponent of the last digit's place.
    fn last_place(&self) -> i128 {
        self.point.saturating_sub(length(self.digits.len()))
    }

    /// The digits in a field of `width` places, the first of which is worth `10^(high - 1)`.
    fn lined_up(&self, high: i128, width: i128) -> Option<Vec<u8>> {
        let mut places = vec![0; usize::try_from(width).ok()?];
        if !self.digits.is_empty() {
            let start = usize::try_from(high.checked_sub(self.point)?).ok()?;
            let end = start.checked_add(self.digits.len())?;
            places.get_mut(start..end)?.copy_from_slice(&self.digits);
        }
        Some(places)
    }

    fn magnitude(&self, other: &Self) -> Ordering {
        match (self.digits.is_empty(), other.digits.is_empty()) {
            (true, true) => Ordering::Equal,
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
            // Without trailing zeros, digits after the point order as text does.
            (false, false) => self
                .point
                .cmp(&other.point)
                .then_with(|| self.digits.cmp(&other.digits)),
        }
    }
}

fn sum(a: &[u8], b: &[u8]) -> Vec<u8> {
    let mut carry = 0;
    let mut places: Vec<u8> = a
        .iter()
        .zip(b)
        .rev()
        .map(|(a, b)| {
            let place = a + b + carry;
            carry = place / 10;
            place % 10
        })
        .collect();
    places.reverse();
    places
}

/// Subtracts digit by digit: `larger - smaller`.
fn difference(larger: &[u8], smaller: &[u8]) -> Vec<u8> {
    let mut borrow = 0;
    let mut places: Vec<u8> = larger
        .iter()
        .zip(smaller)
        .rev()
        .map(|(larger, smaller)| {
            let place = 10 + larger - smaller - borrow;
            borrow = u8::from(place < 10);
            place % 10
        })
        .collect();
    places.reverse();
    places
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self.negative, other.negative) {
            (false, false) => self.magnitude(other),
            (true, true) => other.magnitude(self),
            (true, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        }
    }
}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl fmt::Display for Decimal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.negative {
            f.write_str("-")?;
        }
        f.write_str("0.")?;
        for digit in &self.digits {
            write!(f, "{digit}")?;
        }
        write!(f, "e{}", self.point)
    }
}
