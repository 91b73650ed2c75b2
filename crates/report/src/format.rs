//! Numbers as people read them: as many digits as mean something, thousands apart.

/// The narrow space that stands between groups of three digits (ISO 80000-1, 7.3.1).
pub(crate) const GROUP: char = '\u{202f}';

/// A whole number, in groups of three digits.
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

/// A number with `decimals` digits after the point, in groups of three before it.
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

/// Reads a share that is written as per cent, `2%` or `2.5 %`, from 0 to 1000 of them.
#[must_use]
pub fn read_percent(text: &str) -> Option<f64> {
    let number: f64 = text.strip_suffix('%')?.trim().parse().ok()?;
    (0.0..=1_000.0).contains(&number).then_some(number / 100.0)
}

/// A number of whatever size, to three or four digits: of shares that are small, too. Millions
/// and more are told by `M` and `G`, which the unit behind it takes.
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

/// Nanoseconds as microseconds, to three or four digits.
#[must_use]
pub fn micros(nanoseconds: f64) -> String {
    let value = nanoseconds / 1_000.0;
    decimal(value, decimals(value))
}

/// How many digits behind the point leave about three in all, two at most.
#[must_use]
pub fn decimals(value: f64) -> usize {
    match value.abs() {
        magnitude if magnitude < 9.995 => 2,
        magnitude if magnitude < 999.5 => 1,
        _ => 0,
    }
}

/// Frames a second, with its unit.
#[must_use]
pub fn rate(pps: f64) -> String {
    if pps >= 999_500.0 {
        format!("{} Mpps", decimal(pps / 1e6, 2))
    } else {
        format!("{} kpps", decimal(pps / 1e3, 0))
    }
}

/// Bit/s, with its unit.
#[must_use]
pub fn throughput(bits_per_second: f64) -> String {
    if bits_per_second >= 1e9 {
        format!("{} Gbit/s", decimal(bits_per_second / 1e9, 2))
    } else {
        format!("{} Mbit/s", decimal(bits_per_second / 1e6, 0))
    }
}

/// A share as per cent, with its sign.
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
    fn thousands_stand_apart() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1\u{202f}000");
        assert_eq!(count(12_345_678), "12\u{202f}345\u{202f}678");
        assert_eq!(decimal(-1_234.56, 1), "−1\u{202f}234.6");
        assert_eq!(decimal(-0.04, 1), "0.0");
        assert_eq!(decimal(f64::NAN, 1), "–");
    }

    #[test]
    fn microseconds_keep_three_digits() {
        assert_eq!(micros(9_123.0), "9.12");
        assert_eq!(micros(51_234.0), "51.2");
        assert_eq!(micros(1_234_567.0), "1\u{202f}235");
    }

    #[test]
    fn figures_keep_what_means_something() {
        let all = [0.0, -0.000_15, 0.0123, 0.5, 51.234, 1_234.5, -9.4e8, 9.4e9];
        let told = all.map(figure);
        let wanted = [
            "0",
            "−1.50e-4",
            "0.0123",
            "0.50",
            "51.2",
            "1\u{202f}234",
            "−940.0 M",
            "9.40 G",
        ];
        assert_eq!(told, wanted);
    }

    #[test]
    fn shares_of_nearly_nothing_are_not_nothing() {
        assert_eq!(percent(0.0), "0\u{a0}%");
        assert_eq!(percent(0.000_01), "< 0.01\u{a0}%");
        assert_eq!(percent(0.001_23), "0.12\u{a0}%");
        assert_eq!(percent(0.123), "12.3\u{a0}%");
        assert_eq!(percent(1.0), "100.0\u{a0}%");
    }
}
