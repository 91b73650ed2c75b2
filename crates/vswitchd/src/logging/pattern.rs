//! Formats log lines by the patterns of ovs-appctl(8), `vlog/set PATTERN`. Pure.

use std::iter::Peekable;
use std::str::Chars;
use std::time::Duration;

use base::CivilDate;

/// The fields of a log line.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogLine<'a> {
    /// `%A`.
    pub(super) application: &'a str,
    /// `%B`: facility and severity as one number (RFC 5424, 6.2.1).
    pub(super) priority: u16,
    /// The facility, if set.
    pub(super) facility: Option<u8>,
    /// `%c`.
    pub(super) module: &'a str,
    /// `%d` and `%D`: since 1970.
    pub(super) now: Duration,
    /// `%r`: since the start of the process.
    pub(super) since: Duration,
    /// `%E`.
    pub(super) host: &'a str,
    /// `%m`.
    pub(super) message: &'a str,
    /// `%N`.
    pub(super) sequence: u64,
    /// `%p`.
    pub(super) level: &'a str,
    /// `%P`.
    pub(super) process: u32,
    /// `%t` and `%T`: none for the first thread.
    pub(super) thread: Option<&'a str>,
}

impl LogLine<'_> {
    /// Returns the facility's share of the priority; `usual` applies if no facility is set.
    pub(super) fn facility(&self, usual: u8) -> u16 {
        u16::from(self.facility.unwrap_or(usual)) * 8
    }
}

/// The default format of times.
const DEFAULT_TIME_FORMAT: &str = "%Y-%m-%d %H:%M:%S.###";

/// The limit of the width to which a field is padded.
const WIDTH_MAX: usize = 1000;

/// Formats a line.
pub(super) fn write(pattern: &str, line: &LogLine<'_>) -> String {
    let (mut text, mut rest) = (String::new(), pattern.chars().peekable());
    while let Some(next) = rest.next() {
        if next != '%' {
            text.push(next);
            continue;
        }
        let at_left = rest.next_if_eq(&'-').is_some();
        let filler = rest.next_if_eq(&'0').unwrap_or(' ');
        let mut width = 0;
        while let Some(digit) = rest.peek().and_then(|digit| digit.to_digit(10)) {
            rest.next();
            width = (width * 10 + digit as usize).min(WIDTH_MAX);
        }
        let Some(what) = rest.next() else { break };
        let expanded = expand(what, &mut rest, line);
        let missing = width.saturating_sub(expanded.chars().count());
        let fill: String = std::iter::repeat_n(filler, missing).collect();
        match at_left {
            true => text.extend([expanded, fill]),
            false => text.extend([fill, expanded]),
        }
    }
    text
}

/// Expands the character after a `%`; an unknown one stands for itself.
fn expand(what: char, rest: &mut Peekable<Chars<'_>>, line: &LogLine<'_>) -> String {
    match what {
        'A' => line.application.to_owned(),
        'B' => line.priority.to_string(),
        'c' => line.module.to_owned(),
        'd' => format_time(
            &format_in_braces(rest),
            line.now,
            sys::calendar::local(line.now),
        ),
        'D' => format_time(&format_in_braces(rest), line.now, 0),
        'E' => line.host.to_owned(),
        'm' => line.message.to_owned(),
        'n' => "\n".to_owned(),
        'N' => line.sequence.to_string(),
        'p' => line.level.to_owned(),
        'P' => line.process.to_string(),
        'r' => line.since.as_millis().to_string(),
        't' => line.thread.unwrap_or("main").to_owned(),
        'T' => line
            .thread
            .map_or_else(String::new, |name| format!("({name})")),
        other => other.to_string(),
    }
}

/// Returns the format in braces; the default format if there is none.
fn format_in_braces(rest: &mut Peekable<Chars<'_>>) -> String {
    match rest.next_if_eq(&'{') {
        Some(_) => rest.by_ref().take_while(|next| *next != '}').collect(),
        None => DEFAULT_TIME_FORMAT.to_owned(),
    }
}

/// Formats a time like strftime(3), at `east` seconds east of Greenwich; `###` are milliseconds.
fn format_time(form: &str, now: Duration, east: i64) -> String {
    const DAY: i64 = 86_400;
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    let seconds = i64::try_from(now.as_secs()).unwrap_or(0) + east;
    let (days, second) = (seconds.div_euclid(DAY), seconds.rem_euclid(DAY));
    let CivilDate { year, month, day } = CivilDate::from_epoch_days(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let name = |names: &[&'static str], number: i64| {
        let found = usize::try_from(number)
            .ok()
            .and_then(|at| names.get(at).copied());
        found.unwrap_or_default().to_owned()
    };
    let form = form.replace("###", &format!("{:03}", now.subsec_millis()));
    let (mut text, mut rest) = (String::new(), form.chars());
    while let Some(next) = rest.next() {
        let what = match next {
            '%' => rest.next().unwrap_or('%'),
            _ => {
                text.push(next);
                continue;
            }
        };
        text += &match what {
            'Y' => year.to_string(),
            'y' => format!("{:02}", year.rem_euclid(100)),
            'm' => format!("{month:02}"),
            'd' => format!("{day:02}"),
            'e' => format!("{day:2}"),
            'b' | 'h' => name(&MONTHS, month - 1),
            'a' => name(&DAYS, days.rem_euclid(7)),
            'H' => format!("{hour:02}"),
            'M' => format!("{minute:02}"),
            'S' => format!("{second:02}"),
            'T' => format!("{hour:02}:{minute:02}:{second:02}"),
            'F' => format!("{year}-{month:02}-{day:02}"),
            's' => (seconds - east).to_string(),
            'z' => format!(
                "{}{:02}{:02}",
                if east < 0 { '-' } else { '+' },
                east.abs() / 3600,
                east.abs() / 60 % 60
            ),
            '%' => "%".to_owned(),
            other => format!("%{other}"),
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(pattern: &str) -> String {
        let line = LogLine {
            application: "ovs-vswitchd",
            priority: 133,
            facility: None,
            module: "bridge",
            now: Duration::from_millis(1_795_447_771_802),
            since: Duration::from_millis(1002),
            host: "vm",
            message: "a line",
            sequence: 7,
            level: "INFO",
            process: 28_091,
            thread: None,
        };
        write(pattern, &line)
    }

    #[test]
    fn pattern_specifiers_match_manual() {
        assert_eq!(
            written("%t,%T,%q,%r,%P,%A,%5p,%-6p|,%08P,%%n,%D{%Y.###},%D,%B,%E,%7c|,%m"),
            "main,,q,1002,28091,ovs-vswitchd, INFO,INFO  |,00028091,%n,2026.802,\
             2026-11-23 15:29:31.802,133,vm, bridge|,a line"
        );
        assert_eq!(
            written("%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m"),
            "2026-11-23T15:29:31.802Z|00007|bridge|INFO|a line"
        );
        assert_eq!(written("%D{%h %e %T %a %%}%"), "Nov 23 15:29:31 Mon %");
    }
}
