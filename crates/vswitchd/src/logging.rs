//! Log levels, destinations and patterns, which `-v` and `vlog/set` change while the process runs
//! (ovs-vswitchd(8), ovs-appctl(8)). The messages are those of `tracing`.

mod file;
mod modules;
mod pattern;
mod syslog;

use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use runtime::LogControl;
use tracing::Level;
use tracing::level_filters::LevelFilter;

pub use file::LogFile;
use modules::MODULES;
use pattern::LogLine;
pub use syslog::{Syslog, SyslogTarget};

/// The levels, by Open vSwitch's names, and their syslog severities (RFC 5424, 6.2.1). The level
/// `emer` has no messages here.
#[rustfmt::skip]
const LEVELS: [(&str, LevelFilter, u8); 6] = [
    ("OFF",  LevelFilter::OFF,   7),
    ("EMER", LevelFilter::OFF,   1),
    ("ERR",  LevelFilter::ERROR, 3),
    ("WARN", LevelFilter::WARN,  4),
    ("INFO", LevelFilter::INFO,  5),
    ("DBG",  LevelFilter::DEBUG, 7),
];

/// The level of a destination that takes no messages, not even those of a crash.
const OFF: usize = 0;

/// The level of the report of a crash.
const EMERGENCY: usize = 1;

/// The default level, and the level of `-v` without an argument.
const DEFAULT_LEVEL: usize = 4;
const MOST: usize = 5;

/// The syslog facilities by name and number (RFC 5424, 6.2.1).
#[rustfmt::skip]
const FACILITIES: [(&str, u8); 23] = [
    ("kern", 0), ("user", 1), ("mail", 2), ("daemon", 3), ("auth", 4), ("syslog", 5), ("lpr", 6), ("news", 7),
    ("uucp", 8), ("clock", 9), ("ftp", 11), ("ntp", 12), ("audit", 13), ("alert", 14), ("clock2", 15), ("local0", 16),
    ("local1", 17), ("local2", 18), ("local3", 19), ("local4", 20), ("local5", 21), ("local6", 22), ("local7", 23),
];

/// The value if no facility is set.
const FACILITY_UNSET: usize = usize::MAX;

/// The default facilities, of the system's syslog and of others.
const DAEMON: u8 = 3;
const LOCAL0: u8 = 16;

/// A destination of log lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LogDestination {
    Syslog,
    Console,
    File,
}

/// All destinations, by name, with their default patterns.
#[rustfmt::skip]
const DESTINATIONS: [(LogDestination, &str, &str); 3] = [
    (LogDestination::Syslog,  "syslog",  "ovs|%05N|%c%T|%p|%m"),
    (LogDestination::Console, "console", "%D{%Y-%m-%dT%H:%M:%SZ}|%05N|%c%T|%p|%m"),
    (LogDestination::File,    "file",    "%D{%Y-%m-%dT%H:%M:%S.###Z}|%05N|%c%T|%p|%m"),
];

/// The default pattern for a remote syslog (RFC 5424, 6).
const TARGET_PATTERN: &str = "<%B>1 %D{%Y-%m-%dT%H:%M:%S.###Z} %E %A %P %c - \u{feff}%m";

/// The separators of the words of `vlog/set`.
const SEPARATORS: [char; 4] = [' ', ',', ':', '\t'];

/// The destinations beside the console.
#[derive(Debug, Default)]
pub struct LogOutputs {
    /// The log file, if any.
    pub file: Option<LogFile>,
    /// The system's log.
    pub syslog: Syslog,
    /// A remote syslog beside it.
    pub target: Option<SyslogTarget>,
}

/// A log record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LogRecord<'a> {
    /// The level.
    pub(crate) level: Level,
    /// The `tracing` target.
    pub(crate) target: &'a str,
    /// The thread, unless it is the first.
    pub(crate) thread: Option<&'a str>,
    /// The time since 1970.
    pub(crate) now: Duration,
    /// The message.
    pub(crate) message: &'a str,
}

/// The levels, patterns and destinations of the process.
#[derive(Debug)]
pub struct Logging {
    /// Indices into [`LEVELS`], by destination and module.
    levels: [[AtomicUsize; MODULES.len()]; DESTINATIONS.len()],
    /// The patterns, by destination.
    patterns: [ArcSwap<String>; DESTINATIONS.len()],
    /// An index into [`FACILITIES`].
    facility: AtomicUsize,
    /// The number of lines so far.
    lines: AtomicU64,
    /// The number of lines that the file did not accept since the last one that it did.
    lost: AtomicU64,
    /// The start of the process, since 1970.
    began: Duration,
    host: String,
    /// The role of this process, unless it runs the switch.
    role: Option<&'static str>,
    outlets: LogOutputs,
}

impl Logging {
    /// Applies the arguments of `-v` in their order. `began` is the current time since 1970; `role`
    /// distinguishes this process from the one that runs the switch.
    ///
    /// # Errors
    /// A malformed argument, in Open vSwitch's words.
    pub(crate) fn new(
        specs: &[String],
        outlets: LogOutputs,
        began: Duration,
        role: Option<&'static str>,
    ) -> Result<Self, String> {
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        let logging = Self {
            levels: DESTINATIONS.map(|_| MODULES.map(|_| AtomicUsize::new(DEFAULT_LEVEL))),
            patterns: DESTINATIONS.map(|(_, _, usual)| ArcSwap::from_pointee(usual.to_owned())),
            facility: AtomicUsize::new(FACILITY_UNSET),
            lines: AtomicU64::new(0),
            lost: AtomicU64::new(0),
            began,
            host: host.trim().to_owned(),
            role,
            outlets,
        };
        for spec in specs {
            let set = logging.set(spec);
            set.map_err(|problem| format!("processing \"{spec}\": {problem}"))?;
        }
        Ok(logging)
    }

    /// Returns true if any destination takes records of this level and target.
    pub(crate) fn is_enabled(&self, level: Level, target: &str) -> bool {
        let module = modules::of_target(target);
        DESTINATIONS
            .iter()
            .any(|(destination, ..)| self.is_enabled_at(*destination, level, module))
    }

    fn is_enabled_at(&self, destination: LogDestination, level: Level, module: usize) -> bool {
        let record = self.level(destination, module).load(Ordering::Relaxed);
        LEVELS
            .get(record)
            .is_some_and(|(_, record, _)| level <= *record)
    }

    /// Writes a line to the file. Lines that cannot be written are lost, and the next one that can
    /// follows their number.
    fn write_to_file(&self, mut file: LogFile, text: &str) {
        let lost = self.lost.swap(0, Ordering::Relaxed);
        let note = match lost {
            0 => String::new(),
            lost => format!("{lost} lines before this one could not be written\n"),
        };
        let written = file.write_all(format!("{note}{text}\n").as_bytes());
        if written.is_err() {
            self.lost.fetch_add(lost + 1, Ordering::Relaxed);
        }
    }

    /// Writes a record to all its destinations. Lines that cannot be written are lost.
    pub(crate) fn write(&self, record: LogRecord<'_>) {
        let module = modules::of_target(record.target);
        let sequence = self.lines.fetch_add(1, Ordering::Relaxed) + 1;
        let line = self.line(&record, module, sequence);
        for (destination, ..) in DESTINATIONS {
            if !self.is_enabled_at(destination, record.level, module) {
                continue;
            }
            let text = pattern::write(&self.pattern(destination).load(), &line);
            match destination {
                LogDestination::Console => {
                    drop(io::stderr().write_all(format!("{text}\n").as_bytes()))
                }
                LogDestination::File => {
                    if let Some(file) = self.outlets.file.clone() {
                        self.write_to_file(file, &text);
                    }
                }
                LogDestination::Syslog => self.send_to_syslogs(&line, &text),
            }
        }
    }

    /// Writes `text`, the report of a panic, to all destinations that are not off, whatever the
    /// levels of their modules, with the level `EMER`. Takes no lock that the thread may hold.
    pub(crate) fn write_emergency(&self, thread: Option<&str>, now: Duration, text: &str) {
        let module = modules::of_target("vswitchd");
        for message in text.lines() {
            let record = LogRecord {
                level: Level::ERROR,
                target: "vswitchd",
                thread,
                now,
                message,
            };
            let sequence = self.lines.fetch_add(1, Ordering::Relaxed) + 1;
            let line = self.line(&record, module, sequence).emergency();
            for (destination, ..) in DESTINATIONS {
                if self.level(destination, module).load(Ordering::Relaxed) == OFF {
                    continue;
                }
                let text = pattern::write(&self.pattern(destination).load(), &line);
                match destination {
                    LogDestination::Console => runtime::write_to_stderr(&text),
                    LogDestination::File => {
                        if let Some(file) = self.file() {
                            file.write_emergency(&text);
                        }
                    }
                    LogDestination::Syslog => self.send_to_syslogs(&line, &text),
                }
            }
        }
    }

    fn send_to_syslogs(&self, line: &LogLine<'_>, text: &str) {
        let daemon = LogLine {
            priority: line.priority - line.facility(LOCAL0) + line.facility(DAEMON),
            ..*line
        };
        let prefix = pattern::write(self.outlets.syslog.prefix(), &daemon);
        self.outlets.syslog.send(&format!("{prefix}{text}"));
        if let Some(target) = &self.outlets.target {
            target.send(&pattern::write(TARGET_PATTERN, line));
        }
    }

    fn line<'a>(&'a self, record: &LogRecord<'a>, module: usize, sequence: u64) -> LogLine<'a> {
        let level = level_of(record.level);
        let named = FACILITIES.get(self.facility.load(Ordering::Relaxed));
        let named = named.map(|(_, number)| *number);
        let (level, _, severity) = LEVELS.get(level).copied().unwrap_or(LEVELS[MOST]);
        LogLine {
            application: runtime::PROGRAM,
            priority: u16::from(named.unwrap_or(LOCAL0)) * 8 + u16::from(severity),
            facility: named,
            module: MODULES.get(module).copied().unwrap_or_default(),
            now: record.now,
            since: record.now.saturating_sub(self.began),
            host: &self.host,
            message: record.message,
            sequence,
            level,
            process: std::process::id(),
            thread: self.role.or(record.thread),
        }
    }

    fn set_pattern(&self, words: &str) -> Result<(), String> {
        let (name, behind) = next_word(words);
        if name.is_empty() {
            return Err("missing destination".to_owned());
        }
        let places: Vec<_> = DESTINATIONS
            .iter()
            .filter(|(_, known, _)| is_any(name) || known.eq_ignore_ascii_case(name))
            .collect();
        if places.is_empty() {
            return Err(format!("unknown destination \"{name}\""));
        }
        for (destination, ..) in places {
            self.pattern(*destination).store(behind.to_owned().into());
        }
        Ok(())
    }

    fn set_level(&self, spec: &str) -> Result<(), String> {
        let (mut level, mut destination, mut module) = (None, None, None);
        for word in spec.split(SEPARATORS).filter(|word| !word.is_empty()) {
            let is = |known: &str| known.eq_ignore_ascii_case(word);
            let read = (
                LEVELS.iter().position(|(known, ..)| is(known)),
                DESTINATIONS.iter().find(|(_, known, _)| is(known)),
                modules::named(word),
            );
            let twice = match read {
                _ if is_any(word) => false,
                (Some(read), ..) => level.replace(read).is_some(),
                (_, Some((read, ..)), _) => destination.replace(*read).is_some(),
                (.., Some(read)) => module.replace(read).is_some(),
                _ => return Err(format!("no destination, level, or module \"{word}\"")),
            };
            if twice {
                let what = match read {
                    (Some(_), ..) => "levels",
                    (_, Some(_), _) => "destinations",
                    _ => "modules",
                };
                return Err(format!("cannot specify multiple {what}"));
            }
        }
        for (at, ..) in DESTINATIONS {
            for number in 0..MODULES.len() {
                if destination.is_none_or(|destination| destination == at)
                    && module.is_none_or(|it| it == number)
                {
                    let level = level.unwrap_or(MOST);
                    self.level(at, number).store(level, Ordering::Relaxed);
                }
            }
        }
        Ok(())
    }

    /// Returns the log file.
    #[must_use]
    pub const fn file(&self) -> Option<&LogFile> {
        self.outlets.file.as_ref()
    }

    fn level(&self, destination: LogDestination, module: usize) -> &AtomicUsize {
        &self.levels[destination as usize][module]
    }

    const fn pattern(&self, destination: LogDestination) -> &ArcSwap<String> {
        &self.patterns[destination as usize]
    }
}

impl LogControl for Logging {
    /// Returns the levels, as `vlog/list` prints them.
    fn levels(&self) -> String {
        let mut lines = vec![
            "                 console    syslog    file\n".to_owned(),
            "                 -------    ------    ------\n".to_owned(),
        ];
        for (module, name) in MODULES.iter().enumerate() {
            let [console, syslog, file] = [
                LogDestination::Console,
                LogDestination::Syslog,
                LogDestination::File,
            ]
            .map(|destination| {
                let record = self.level(destination, module).load(Ordering::Relaxed);
                LEVELS.get(record).map_or("", |(name, ..)| *name)
            });
            lines.push(format!(
                "{name:<16}  {console:>4}       {syslog:>4}       {file:>4}\n"
            ));
        }
        lines.concat()
    }

    /// Returns the patterns, as `vlog/list-pattern` prints them.
    fn patterns(&self) -> String {
        let title = "         prefix                            format\n         ------                            ------\n";
        let lines = DESTINATIONS.map(|(destination, name, _)| {
            let prefix = match destination {
                LogDestination::Syslog => self.outlets.syslog.shown_prefix(),
                LogDestination::Console | LogDestination::File => "none",
            };
            let name = name.to_ascii_uppercase();
            format!(
                "{name:<7}  {prefix:<32}  {}\n",
                self.pattern(destination).load()
            )
        });
        format!("{title}{}", lines.concat())
    }

    /// Returns true if a module has this name.
    fn has_module(&self, name: &str) -> bool {
        modules::named(name).is_some()
    }

    /// Applies an argument of `-v` or `vlog/set`: at most one level, destination and module, in any
    /// order, or a pattern, or a facility.
    ///
    /// # Errors
    /// The argument is malformed.
    fn set(&self, spec: &str) -> Result<(), String> {
        let (first, behind) = next_word(spec);
        if first.eq_ignore_ascii_case("PATTERN") {
            return self.set_pattern(behind);
        }
        if first.eq_ignore_ascii_case("FACILITY") {
            let (name, _) = next_word(behind);
            let is_it = |(known, _): &(&str, u8)| known.eq_ignore_ascii_case(name);
            let found = FACILITIES.iter().position(is_it);
            let found = found.ok_or("invalid facility")?;
            self.facility.store(found, Ordering::Relaxed);
            return Ok(());
        }
        self.set_level(spec)
    }

    /// Closes the log file until it is opened again.
    fn close(&self) {
        if let Some(log) = self.file() {
            log.close();
        }
    }

    /// Reopens the log file, after a log rotation.
    fn reopen(&self) -> Result<(), String> {
        let log = self.file().ok_or("there is no log file")?;
        log.reopen().map_err(|error| error.to_string())
    }
}

impl LogLine<'_> {
    /// Returns the line with the level of a crash.
    fn emergency(self) -> Self {
        let (level, _, severity) = LEVELS[EMERGENCY];
        Self {
            level,
            priority: self.facility(LOCAL0) + u16::from(severity),
            ..self
        }
    }
}

/// Returns true for a word that means every destination or every module.
fn is_any(word: &str) -> bool {
    word.eq_ignore_ascii_case("any")
}

/// Splits off the first word, and the separators behind it.
fn next_word(text: &str) -> (&str, &str) {
    let text = text.trim_start_matches(SEPARATORS);
    text.split_once(SEPARATORS).unwrap_or((text, ""))
}

/// Returns the index into [`LEVELS`].
fn level_of(level: Level) -> usize {
    let is_it = |(_, known, _): &(&str, LevelFilter, u8)| *known == level;
    LEVELS.iter().position(is_it).unwrap_or(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logging(specs: &[&str]) -> Result<Logging, String> {
        let specs: Vec<_> = specs.iter().map(|spec| (*spec).to_owned()).collect();
        Logging::new(&specs, LogOutputs::default(), Duration::ZERO, None)
    }

    /// Returns the levels of a module on the console, in the syslog and in the file.
    fn record(specs: &[&str], module: &str) -> String {
        let table = logging(specs).expect("words that say something").levels();
        let row = table
            .lines()
            .find_map(|line| line.strip_prefix(module)?.strip_prefix(' '));
        let words: Vec<_> = row.expect("a module").split_whitespace().collect();
        words.join(" ")
    }

    #[test]
    fn log_levels_match_open_vswitch() {
        assert_eq!(record(&[], "bridge"), "INFO INFO INFO");
        let usual = ["console:emer", "syslog:err", "file:info"];
        assert_eq!(record(&usual, "bridge"), "EMER ERR INFO");
        assert_eq!(record(&["dbg"], "bridge"), "DBG DBG DBG");
        assert_eq!(record(&["ANY:file:dbg"], "bridge"), "INFO INFO DBG");
        assert_eq!(record(&["file"], "bridge"), "INFO INFO DBG");
        let of_one = ["bridge:console:warn"];
        assert_eq!(record(&of_one, "bridge"), "WARN INFO INFO");
        assert_eq!(record(&of_one, "vconn"), "INFO INFO INFO");
        let of_one = logging(&["off", "Bridge CONSOLE,warn"]).expect("legal");
        let target = "runtime::control::steps";
        assert!(of_one.is_enabled(Level::WARN, target) && !of_one.is_enabled(Level::INFO, target));
        assert!(!of_one.is_enabled(Level::ERROR, "vswitchd::database"));
    }

    #[test]
    fn log_levels_have_modules_of_open_vswitch() {
        let specs = ["vconn", "ofproto_dpif", "unixctl", "dpif_netdev:file:dbg"];
        assert_eq!(record(&specs, "vconn"), "DBG DBG DBG");
        assert_eq!(record(&specs, "dpif_netdev"), "INFO INFO DBG");
        let set = logging(&specs).expect("legal");
        assert_eq!(set.levels().lines().count(), 2 + MODULES.len());
        assert!(set.is_enabled(Level::DEBUG, "vconn") && !set.is_enabled(Level::DEBUG, "dpif"));
        assert!(set.has_module("OFPROTO_DPIF_XLATE") && !set.has_module("worker"));
    }

    #[test]
    fn malformed_log_settings_are_refused() {
        let wrong = [
            ("dance:dbg", "no destination, level, or module \"dance\""),
            ("console:file:dbg", "cannot specify multiple destinations"),
            ("dbg:info", "cannot specify multiple levels"),
            ("bridge:vconn:info", "cannot specify multiple modules"),
            ("PATTERN", "missing destination"),
            ("PATTERN:dance:%m", "unknown destination \"dance\""),
            ("FACILITY:dance", "invalid facility"),
        ];
        for (spec, why) in wrong {
            let error = logging(&[spec]).err();
            assert_eq!(error, Some(format!("processing \"{spec}\": {why}")));
        }
    }

    #[test]
    fn patterns_are_listed_as_they_are_set() {
        let set = logging(&["PATTERN:file:%p %m", "pattern:console:"]).expect("legal");
        let listed = set.patterns();
        let lines: Vec<_> = listed.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "SYSLOG   <%B> %D{%h %e %T} %E %A:          ovs|%05N|%c%T|%p|%m",
                "CONSOLE  none                              ",
                "FILE     none                              %p %m",
            ]
        );
    }

    #[test]
    fn emergency_reaches_every_destination_that_is_not_off() {
        let path = std::env::temp_dir().join(format!("comporta-crash-{}", std::process::id()));
        let written = |specs: &[&str]| {
            let specs: Vec<_> = specs.iter().map(|spec| (*spec).to_owned()).collect();
            let outlets = LogOutputs {
                file: Some(LogFile::open(&path).expect("a writable directory")),
                syslog: Syslog::Null,
                target: None,
            };
            let logging = Logging::new(&specs, outlets, Duration::ZERO, None).expect("legal");
            logging.write_emergency(Some("worker-1"), Duration::ZERO, "one\ntwo");
            let text = std::fs::read_to_string(&path).expect("it exists");
            std::fs::remove_file(&path).expect("it exists");
            text
        };
        let quiet = ["console:off", "file:emer", "PATTERN:file:%p %t %m"];
        assert_eq!(written(&quiet), "EMER worker-1 one\nEMER worker-1 two\n");
        assert_eq!(written(&["console:off", "file:off"]), "");
    }
}
