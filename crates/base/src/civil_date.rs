//! Dates of the proleptic Gregorian calendar from day numbers (H. Hinnant, "chrono-compatible
//! low-level date algorithms", 2013). Years begin in March here, so that the leap day is the last
//! day of a year.
//!
//! Time zones and leap seconds are **not** supported.

/// Days of four hundred years, the period of the calendar.
const ERA_DAYS: i64 = 146_097;
/// Days from 1 March of year 0 to 1 January 1970.
const EPOCH_DAYS: i64 = 719_468;

/// A date.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilDate {
    /// The year; 0 is 1 BC.
    pub year: i64,
    /// The month, from 1 to 12.
    pub month: i64,
    /// The day of the month, from 1.
    pub day: i64,
}

impl CivilDate {
    /// Returns the date `days` days after 1 January 1970.
    ///
    /// ```
    /// use base::CivilDate;
    ///
    /// let date = CivilDate::from_epoch_days(20_780);
    /// assert_eq!((date.year, date.month, date.day), (2026, 11, 23));
    /// ```
    #[must_use]
    pub fn from_epoch_days(days: i64) -> Self {
        let days = days + EPOCH_DAYS;
        let (era, day) = (days.div_euclid(ERA_DAYS), days.rem_euclid(ERA_DAYS));
        let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
        let day = day - (365 * year + year / 4 - year / 100);
        let month = (5 * day + 2) / 153;
        let is_next_year = i64::from(month >= 10);
        Self {
            year: year + era * 400 + is_next_year,
            month: if month < 10 { month + 3 } else { month - 9 },
            day: day - (153 * month + 2) / 5 + 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_match_calendar() {
        let known = [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (20_780, (2026, 11, 23)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ];
        for (days, (year, month, day)) in known {
            let expected = CivilDate { year, month, day };
            assert_eq!(CivilDate::from_epoch_days(days), expected, "{days}");
        }
    }
}
