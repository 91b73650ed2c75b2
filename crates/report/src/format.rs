//! Numbers as text: significant digits only, in groups of three.

/// Narrow space between groups of three digits (ISO 80000-1, 7.3.1).
pub(crate) const GROUP: char = '\u{202f}';

/// Returns an integer as text, in groups of three digits.
#[must_use]
pub fn count(value: u64) -> String {
    let digits = value.to_string();
    let length = digits.len();
    let mut text = String::with_capacity(length + length / 3 * GROUP.len_utf8());
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (length - index).is_multiple_of(3) {
            text.push(GROUP);
        }
        text.push(digit);
    }
    text
}

/// Returns a number as text with this number of decimal places, in groups of three before the point.
#[must_use]
pub fn decimal(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let text = format!("{:.decimals$}", value.abs());
    let (whole, rest) = text.split_once('.').unwrap_or((&text, ""));
    let sign = if value < 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0') {
        "−"
    } else {
        ""
    };
    let whole = whole.parse().map_or_else(|_| whole.to_owned(), count);
    if rest.is_empty() {
        format!("{sign}{whole}")
    } else {
        format!("{sign}{whole}.{rest}")
    }
}

/// Parses a percentage, `2%` or `2.5 %`, from 0 to 1000, as a share.
#[must_use]
pub fn read_percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=1_000.0).contains(&number).then_some(number / 100.0)
}

/// Returns a number of any size with three or four significant digits. From a million on, it ends
/// with `M` or `G`, a prefix of the unit after it.
#[must_use]
pub fn figure(value: f64) -> String {
    let scaled = |unit: f64| decimal(value / unit, decimals(value / unit));
    match value.abs() {
        zero if zero <= 0.0 => "0".to_owned(),
        tiny if tiny < 0.001 => format!("{value:.2e}").replacen('-', "−", usize::from(value < 0.0)),
        small if small < 0.1 => decimal(value, 4),
        large if large >= 1e9 => format!("{} G", scaled(1e9)),
        large if large >= 1e6 => format!("{} M", scaled(1e6)),
        _ => decimal(value, decimals(value)),
    }
}

/// Returns nanoseconds as microseconds, with three or four significant digits.
#[must_use]
pub fn micros(nanoseconds: f64) -> String {
    let value = nanoseconds / 1_000.0;
    decimal(value, decimals(value))
}

/// Returns the number of decimal places for about three significant digits: two at most, except for
/// small values.
#[must_use]
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        // Two significant digits.
        small if (1e-6..0.095).contains(&small) => {
            let places = 1.0 - small.log10().floor();
            let found = (0..12_u8).find(|&count| f64::from(count) >= places);
            found.map_or(2, usize::from)
        }
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 999.5 => 1,
        _ => 0,
    }
}

/// Returns a share as a percentage with its sign.
#[must_use]
pub fn percent(share: f64) -> String {
    let value = share * 100.0;
    let shown = match value {
        0.0 => "0".to_owned(),
        small if small < 0.01 => "< 0.01".to_owned(),
        _ => decimal(value, decimals(value).min(if value < 1.0 { 2 } else { 1 })),
    };
    format!("{shown}\u{a0}%")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_are_grouped_by_three() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1\u{202f}000");
        assert_eq!(count(12_345_678), "12\u{202f}345\u{202f}678");
        assert_eq!(decimal(-1_234.56, 1), "−1\u{202f}234.6");
        assert_eq!(decimal(-0.04, 1), "0.0");
        assert_eq!(decimal(f64::NAN, 1), "–");
    }

    #[test]
    fn microseconds_have_three_significant_digits() {
        assert_eq!(micros(9_123.0), "9.12");
        assert_eq!(micros(51_234.0), "51.2");
        assert_eq!(micros(1_234_567.0), "1\u{202f}235");
    }

    #[test]
    fn figures_have_three_or_four_significant_digits() {
        let all = [0.0, -0.000_15, 0.0123, 0.5, 51.234, 1_234.5, -9.4e8, 9.4e9];
        let texts = all.map(figure);
        let expected = [
            "0",
            "−1.50e-4",
            "0.0123",
            "0.50",
            "51.2",
            "1\u{202f}234",
            "−940.0 M",
            "9.40 G",
        ];
        assert_eq!(texts, expected);
    }

    #[test]
    fn small_values_have_two_significant_digits() {
        let text = |value| decimal(value, decimals(value));
        let texts = [0.0, 0.000_001_5, 0.004, 0.0123, 0.5].map(text);
        assert_eq!(texts, ["0.00", "0.0000015", "0.0040", "0.012", "0.50"]);
    }

    #[test]
    fn small_shares_are_not_shown_as_zero() {
        assert_eq!(percent(0.0), "0\u{a0}%");
        assert_eq!(percent(0.000_01), "< 0.01\u{a0}%");
        assert_eq!(percent(0.001_23), "0.12\u{a0}%");
        assert_eq!(percent(0.123), "12.3\u{a0}%");
        assert_eq!(percent(1.0), "100.0\u{a0}%");
    }
}
