//! Numbers, and values with masks.

use super::error::ParseError;
use super::lexer::Token;

/// Parses a number from 0 to `max`, decimal or `0x`. If `max` has all 64 bits, `-1` equals it, as
/// in `cookie=1/-1`.
pub(super) fn unsigned(token: Token<'_>, max: u128) -> Result<u128, ParseError> {
    let text = token.text;
    if text == "-1" && max == u128::from(u64::MAX) {
        return Ok(max);
    }
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => (hex, 16),
        None => (text, 10),
    };
    if digits.is_empty() || !digits.chars().all(|c| c.is_digit(radix)) {
        return Err(token.error(format!("expected a number from 0 to {max}")));
    }
    if radix == 10 && digits.len() > 1 && digits.starts_with('0') {
        return Err(
            token.error("a number with a leading zero: decimal has none, hexadecimal has 0x")
        );
    }
    match u128::from_str_radix(digits, radix) {
        Ok(number) if number <= max => Ok(number),
        _ => Err(token.error(format!("out of range: expected a number from 0 to {max}"))),
    }
}

/// Parses a number in the range of `T`.
pub(super) fn number<T: BoundedInt>(token: Token<'_>) -> Result<T, ParseError> {
    unsigned(token, T::MAX).map(T::narrow)
}

/// An unsigned integer type.
pub(super) trait BoundedInt: Sized {
    /// Largest value.
    const MAX: u128;
    /// Converts `number`, which is at most [`BoundedInt::MAX`].
    fn narrow(number: u128) -> Self;
}

macro_rules! bounded {
    ($($type:ty),*) => { $(
        impl BoundedInt for $type {
            const MAX: u128 = <$type>::MAX as u128;
            fn narrow(number: u128) -> Self {
                Self::try_from(number).expect("the caller compared it with MAX")
            }
        }
    )* };
}
bounded!(u8, u16, u32, u64);

/// A value and the bits of it that count.
pub(super) type MaskedValue = (u128, u128);

/// Parses `value` or `value/mask` with `read`; the default mask is `full`. Bits of the value
/// outside the mask are dropped, as in `10.0.0.1/8`.
pub(super) fn masked(
    token: Token<'_>,
    full: u128,
    read: impl Fn(Token<'_>) -> Result<u128, ParseError>,
) -> Result<MaskedValue, ParseError> {
    match token.split_once("/") {
        None => Ok((read(token)?, full)),
        Some((value, mask)) => {
            let (value, mask) = (read(value)?, read(mask)?);
            Ok((value & mask, mask))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lexer::line;
    use super::*;

    fn read<T: BoundedInt>(text: &str) -> Result<T, String> {
        number(line(text).expect("short")).map_err(|error| error.problem)
    }

    #[test]
    fn decimal_and_hexadecimal_are_read_up_to_the_last_value() {
        assert_eq!(read::<u8>("255"), Ok(255));
        assert_eq!(read::<u16>("0xFFff"), Ok(0xffff));
        assert_eq!(read::<u64>("-1"), Ok(u64::MAX));
        assert_eq!(read::<u32>("0"), Ok(0));
    }

    #[test]
    fn out_of_range_error_states_range() {
        for text in ["", "0x", "-1", "+1", "1_0", "1e3", "x", "0x1g"] {
            assert_eq!(
                read::<u16>(text),
                Err("expected a number from 0 to 65535".to_owned()),
                "{text}"
            );
        }
        for text in ["256", "0x100", &"9".repeat(90)] {
            assert_eq!(
                read::<u8>(text),
                Err("out of range: expected a number from 0 to 255".to_owned()),
                "{text}"
            );
        }
        assert!(
            read::<u8>("010")
                .expect_err("octal?")
                .contains("leading zero")
        );
    }
}
