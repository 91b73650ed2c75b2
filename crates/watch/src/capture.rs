//! `comporta capture`: the frames that cross a bridge, as received and as sent, each with its
//! matching rules; printed as lines, or written to a pcapng file for Wireshark.

mod file;
mod line;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control_api::capture::{Captured, READ, Reading, RuleTaken, START, STOP};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::error::WatchError;
use crate::target::Target;
use file::File;

/// The interval between two reads of the capture.
const INTERVAL: Duration = Duration::from_millis(100);

/// Options of a capture.
#[derive(Clone, Debug)]
pub struct Options {
    /// The switch.
    pub target: Target,
    /// The bridge.
    pub bridge: String,
    /// The filter for received frames, in the syntax of `ovs-ofctl`.
    pub flow: String,
    /// The output file instead of lines; `-` for standard output.
    pub file: Option<PathBuf>,
    /// The number of received frames after which the capture ends.
    pub count: Option<u64>,
    /// The time after which the capture ends.
    pub time: Option<Duration>,
    /// The number of bytes of each frame to capture.
    pub snaplen: usize,
}

/// The result of a capture.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Received frames.
    pub frames: u64,
    /// Frames that were not reported, for lack of space.
    pub missed: u64,
}

/// The destination of captured frames.
enum Output {
    Lines(io::Stdout),
    File(File<Box<dyn Write>>),
}

/// Captures until the count or the time is reached, or a signal arrives.
///
/// # Errors
/// The switch refuses or ends, or the file cannot be written. The file contains the frames captured
/// until then.
pub fn run(options: &Options) -> Result<Summary, WatchError> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.map_err(WatchError::io("signals"))?;
    }
    let mut output = Output::open(options.file.as_ref())?;
    let snaplen = options.snaplen.to_string();
    let question = [options.bridge.clone(), options.flow.clone(), snaplen];
    let capture = options.target.ask(START, &question)?.trim().to_owned();
    let captured = follow(options, &capture, &mut output, &ended);
    // Without this request, the capture would time out; if the switch is down, the request fails.
    let stopped = options.target.ask(STOP, &[capture]);
    let summary = captured?;
    stopped?;
    Ok(summary)
}

fn follow(
    options: &Options,
    capture: &str,
    output: &mut Output,
    ended: &AtomicBool,
) -> Result<Summary, WatchError> {
    let due = options.time.map(|time| clock::now() + time);
    let mut summary = Summary::default();
    loop {
        // The frames that were captured before the end are still read.
        let is_last = ended.load(Ordering::Relaxed) || due.is_some_and(|due| clock::now() >= due);
        let said = options.target.ask(READ, &[capture.to_owned()])?;
        let reading: Result<Reading, _> = serde_json::from_str(&said);
        let reading = reading.map_err(|error| WatchError::NotUnderstood(error.to_string()))?;
        summary.missed = reading.missed;
        for captured in &reading.frames {
            if options.count.is_some_and(|count| summary.frames >= count) {
                break;
            }
            summary.frames += 1;
            match output.write(captured, &reading) {
                // The reader of the pipe has closed it.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(summary),
                written => written.map_err(WatchError::io("what was captured"))?,
            }
        }
        output
            .flush()
            .map_err(WatchError::io("what was captured"))?;
        if options.count.is_some_and(|count| summary.frames >= count) {
            return Ok(summary);
        }
        if !reading.more {
            if is_last {
                return Ok(summary);
            }
            clock::wait(INTERVAL);
        }
    }
}

impl Output {
    fn open(file: Option<&PathBuf>) -> Result<Self, WatchError> {
        let Some(path) = file else {
            return Ok(Self::Lines(io::stdout()));
        };
        let out: Box<dyn Write> = match path.to_str() {
            Some("-") => Box::new(io::stdout()),
            _ => {
                let made = std::fs::File::create(path);
                let made = made.map_err(WatchError::io(path.display().to_string()))?;
                Box::new(io::BufWriter::new(made))
            }
        };
        let file = File::begin(out).map_err(WatchError::io(path.display().to_string()))?;
        Ok(Self::File(file))
    }

    fn write(&mut self, captured: &Captured, reading: &Reading) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.write_all(line::lines(captured, &reading.ports).as_bytes()),
            Self::File(file) => file.write(captured, &reading.ports),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Lines(out) => out.flush(),
            Self::File(file) => file.flush(),
        }
    }
}

/// Formats the rules that a frame matched, in order.
fn rules_told(rules: &[RuleTaken]) -> String {
    if rules.is_empty() {
        return "no table: as an ordinary switch".to_owned();
    }
    let told = rules.iter().map(|RuleTaken { table, rule }| match rule {
        None => format!("table={table}, no rule"),
        Some(rule) => {
            let cookie = match rule.cookie {
                0 => String::new(),
                cookie => format!("cookie={cookie:#x},"),
            };
            let comma = if rule.matching.is_empty() { "" } else { "," };
            let (priority, matching) = (rule.priority, &rule.matching);
            format!("table={table},{cookie}priority={priority}{comma}{matching}")
        }
    });
    told.collect::<Vec<_>>().join(" -> ")
}

/// Returns the name of a port, or its number if it has no name.
fn port_told<'a>(port: &'a str, names: &'a std::collections::BTreeMap<String, String>) -> &'a str {
    names.get(port).map_or(port, String::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use control_api::capture::{Exit, RuleName, Snapped};

    use super::*;

    /// An ARP frame received on one port and sent on another, with another destination.
    pub(super) fn captured() -> Captured {
        let frame = |dst| {
            let mut bytes = vec![0; 60];
            bytes[5] = dst;
            bytes[12..14].copy_from_slice(&[8, 6]);
            Snapped::new(&bytes, 60, 1)
        };
        let rule = |priority, cookie, matching: &str| {
            Some(RuleName {
                priority,
                cookie,
                matching: matching.to_owned(),
            })
        };
        Captured {
            time_ns: 1_700_000_000_000_000_123,
            port: "1".to_owned(),
            frame: frame(1),
            rules: vec![
                RuleTaken {
                    table: 0,
                    rule: rule(9, 0x2a, "arp"),
                },
                RuleTaken {
                    table: 4,
                    rule: rule(0, 0, ""),
                },
            ],
            exits: vec![Exit {
                port: "2".to_owned(),
                frame: frame(2),
                rules: 1,
            }],
            drops: Vec::new(),
        }
    }

    pub(super) fn names() -> BTreeMap<String, String> {
        [("1", "eth1"), ("2", "eth2")]
            .map(|(number, name)| (number.to_owned(), name.to_owned()))
            .into()
    }

    #[test]
    fn matching_rules_print_in_lookup_order() {
        assert_eq!(
            rules_told(&captured().rules),
            "table=0,cookie=0x2a,priority=9,arp -> table=4,priority=0"
        );
        let missed = RuleTaken {
            table: 3,
            rule: None,
        };
        assert_eq!(rules_told(&[missed]), "table=3, no rule");
        assert_eq!(rules_told(&[]), "no table: as an ordinary switch");
        assert_eq!(port_told("2", &names()), "eth2");
        assert_eq!(port_told("LOCAL", &names()), "LOCAL");
    }
}
