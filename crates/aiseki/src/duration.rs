//! Durations as people write them: a whole number and a unit, such as `300s`, `5m` or `1500ms`.

use std::fmt;
use std::ops::RangeInclusive;

use aiseki_lobby::Millis;

/// One second in milliseconds.
pub const SECOND: Millis = 1_000;
/// One minute in milliseconds.
pub const MINUTE: Millis = 60 * SECOND;
/// One hour in milliseconds.
pub const HOUR: Millis = 60 * MINUTE;
/// One day in milliseconds: always 24 hours.
pub const DAY: Millis = 24 * HOUR;

/// Largest first, so that the first one that divides a duration is the shortest way to write it.
const UNITS: [(&str, Millis); 5] =
    [("d", DAY), ("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)];

/// Why a text is no usable duration: one clause for the person who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DurationError(String);

impl fmt::Display for DurationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for DurationError {}

/// Reads a duration that lies within `bounds`. Fractions, signs and compound forms (`1m30s`) are
/// refused: each duration has one way to be read.
pub fn parse(text: &str, bounds: RangeInclusive<Millis>) -> Result<Millis, DurationError> {
    let text = text.trim();
    let malformed =
        || DurationError("expected a whole number and a unit, such as 300s, 5m or 1500ms".into());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    if number.is_empty() {
        return Err(malformed());
    }
    if unit.is_empty() {
        return Err(DurationError(format!(
            "a duration needs a unit (ms, s, m, h or d), such as {number}s"
        )));
    }
    let (_, scale) =
        UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(malformed)?;
    let millis = number.parse::<Millis>().ok().and_then(|number| number.checked_mul(*scale));
    match millis {
        Some(millis) if bounds.contains(&millis) => Ok(millis),
        _ => Err(DurationError(format!(
            "expected a duration from {} to {}",
            Shown(*bounds.start()),
            Shown(*bounds.end())
        ))),
    }
}

/// Shows a duration in the largest unit that divides it: the form that [`parse`] reads.
#[derive(Clone, Copy, Debug)]
pub struct Shown(pub Millis);

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, scale) = UNITS
            .iter()
            .find(|(_, scale)| self.0 >= *scale && self.0.is_multiple_of(*scale))
            .unwrap_or(&("ms", 1));
        write!(f, "{}{name}", self.0 / scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown_in_the_largest_unit_that_divides_them() {
        for (text, millis, shown) in [
            ("300s", 300_000, "5m"),
            ("5m", 300_000, "5m"),
            ("1500ms", 1_500, "1500ms"),
            ("2h", 7_200_000, "2h"),
            ("1d", 86_400_000, "1d"),
            ("90 s", 90_000, "90s"),
            (" 1s ", 1_000, "1s"),
            ("0060s", 60_000, "1m"),
        ] {
            assert_eq!(parse(text, 1..=7 * DAY), Ok(millis), "{text:?}");
            assert_eq!(Shown(millis).to_string(), shown);
        }
        assert_eq!(Shown(0).to_string(), "0ms");
    }

    #[test]
    fn what_is_no_duration_is_refused_with_what_is_expected() {
        for text in ["", "s", "-5s", "+5s", "1.5s", "5 minutes", "5S", "1m30s", "５s", "5s5"] {
            let error = parse(text, 1..=DAY).unwrap_err().to_string();
            assert!(error.starts_with("expected a whole number and a unit"), "{text:?}: {error}");
        }
        let error = parse("300", 1..=DAY).unwrap_err().to_string();
        assert_eq!(error, "a duration needs a unit (ms, s, m, h or d), such as 300s");
    }

    #[test]
    fn durations_outside_their_bounds_and_overflows_are_refused_with_the_bounds() {
        for text in ["0s", "999ms", "56s", "99999999999999999999s", "18446744073709551615d"] {
            let error = parse(text, SECOND..=55 * SECOND).unwrap_err().to_string();
            assert_eq!(error, "expected a duration from 1s to 55s", "{text:?}");
        }
    }
}
