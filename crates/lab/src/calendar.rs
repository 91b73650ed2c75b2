//! Dates in RFC 3339 format, in UTC with milliseconds.

use std::time::Duration;

use base::CivilDate;

/// Returns the date and time `since_epoch` after 1970-01-01 00:00 UTC.
#[must_use]
pub(crate) fn rfc3339(since_epoch: Duration) -> String {
    let seconds = since_epoch.as_secs();
    let days = i64::try_from(seconds / 86_400).expect("64 bits of seconds are fewer days");
    let CivilDate { year, month, day } = CivilDate::from_epoch_days(days);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    let millis = since_epoch.subsec_millis();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_equal_those_of_the_calendar() {
        // Expected values are the output of GNU date.
        for (seconds, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400, "2000-02-29T00:00:00.000Z"),
            (1_795_257_788, "2026-11-21T10:43:08.000Z"),
            (4_107_542_399, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(rfc3339(Duration::from_secs(seconds)), expected);
        }
        assert_eq!(
            rfc3339(Duration::from_millis(1_234)),
            "1970-01-01T00:00:01.234Z"
        );
    }
}
