//! `comporta capture`: the frames that cross a bridge, as received and as sent, each with its
//! matching rules; printed as lines, or written to a pcapng file for Wireshark.

mod file;
mod line;

use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use control_api::capture::{CaptureReading, CapturedFrame, READ, START, STOP, TableMatch};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::clock;
use crate::error::WatchError;
use crate::target::SwitchTarget;
use file::PcapngFile;

/// The interval between two reads of the capture.
const INTERVAL: Duration = Duration::from_millis(100);

/// Options of a capture.
#[derive(Clone, Debug)]
pub struct CaptureOptions {
    /// The switch.
    pub target: SwitchTarget,
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
pub struct CaptureSummary {
    /// Received frames.
    pub frames: u64,
    /// Frames that were not reported, for lack of space.
    pub missed: u64,
}

/// The destination of captured frames.
enum CaptureOutput {
    Lines(io::Stdout),
    File(PcapngFile<Box<dyn Write>>),
}

/// Captures until the count or the time is reached, or a signal arrives.
///
/// # Errors
/// The switch refuses or ends, or the file cannot be written. The file contains the frames captured
/// until then.
pub fn run(options: &CaptureOptions) -> Result<CaptureSummary, WatchError> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGHUP, SIGINT, SIGTERM] {
        let registered = signal_hook::flag::register(signal, Arc::clone(&ended));
        registered.map_err(WatchError::io("signals"))?;
    }
    let mut output = CaptureOutput::open(options.file.as_ref())?;
    let snaplen = options.snaplen.to_string();
    let arguments = [options.bridge.clone(), options.flow.clone(), snaplen];
    let capture = options.target.request(START, &arguments)?.trim().to_owned();
    let captured = follow(options, &capture, &mut output, &ended);
    // Without this request, the capture would time out; if the switch is down, the request fails.
    let stopped = options.target.request(STOP, &[capture]);
    let summary = captured?;
    stopped?;
    Ok(summary)
}

fn follow(
    options: &CaptureOptions,
    capture: &str,
    output: &mut CaptureOutput,
    ended: &AtomicBool,
) -> Result<CaptureSummary, WatchError> {
    let due = options.time.map(|time| clock::now() + time);
    let mut summary = CaptureSummary::default();
    loop {
        // The frames that were captured before the end are still read.
        let is_last = ended.load(Ordering::Relaxed) || due.is_some_and(|due| clock::now() >= due);
        let reply = options.target.request(READ, &[capture.to_owned()])?;
        let reading: Result<CaptureReading, _> = serde_json::from_str(&reply);
        let reading = reading.map_err(|error| WatchError::MalformedReply(error.to_string()))?;
        summary.missed = reading.missed;
        for captured in &reading.frames {
            if options.count.is_some_and(|count| summary.frames >= count) {
                break;
            }
            summary.frames += 1;
            match output.write(captured, &reading) {
                // The reader of the pipe has closed it.
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(summary),
                written => written.map_err(WatchError::io("captured frames"))?,
            }
        }
        output.flush().map_err(WatchError::io("captured frames"))?;
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

impl CaptureOutput {
    fn open(file: Option<&PathBuf>) -> Result<Self, WatchError> {
        let Some(path) = file else {
            return Ok(Self::Lines(io::stdout()));
        };
        let out: Box<dyn Write> = match path.to_str() {
            Some("-") => Box::new(io::stdout()),
            _ => {
                let created = std::fs::File::create(path);
                let created = created.map_err(WatchError::io(path.display().to_string()))?;
                Box::new(io::BufWriter::new(created))
            }
        };
        let file = PcapngFile::begin(out).map_err(WatchError::io(path.display().to_string()))?;
        Ok(Self::File(file))
    }

    fn write(&mut self, captured: &CapturedFrame, reading: &CaptureReading) -> io::Result<()> {
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
fn format_rules(rules: &[TableMatch]) -> String {
    if rules.is_empty() {
        return "no table: normal forwarding".to_owned();
    }
    let tables = rules.iter().map(|TableMatch { table, rule }| match rule {
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
    tables.collect::<Vec<_>>().join(" -> ")
}

/// Returns the name of a port, or its number if it has no name.
fn port_name<'a>(port: &'a str, names: &'a std::collections::BTreeMap<String, String>) -> &'a str {
    names.get(port).map_or(port, String::as_str)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use control_api::capture::{Exit, RuleName, TruncatedFrame};

    use super::*;

    /// An ARP frame received on one port and sent on another, with another destination.
    pub(super) fn captured() -> CapturedFrame {
        let frame = |dst| {
            let mut bytes = vec![0; 60];
            bytes[5] = dst;
            bytes[12..14].copy_from_slice(&[8, 6]);
            TruncatedFrame::new(&bytes, 60, 1)
        };
        let rule = |priority, cookie, matching: &str| {
            Some(RuleName {
                priority,
                cookie,
                matching: matching.to_owned(),
            })
        };
        CapturedFrame {
            time_ns: 1_700_000_000_000_000_123,
            port: "1".to_owned(),
            frame: frame(1),
            rules: vec![
                TableMatch {
                    table: 0,
                    rule: rule(9, 0x2a, "arp"),
                },
                TableMatch {
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
            format_rules(&captured().rules),
            "table=0,cookie=0x2a,priority=9,arp -> table=4,priority=0"
        );
        let missed = TableMatch {
            table: 3,
            rule: None,
        };
        assert_eq!(format_rules(&[missed]), "table=3, no rule");
        assert_eq!(format_rules(&[]), "no table: normal forwarding");
        assert_eq!(port_name("2", &names()), "eth2");
        assert_eq!(port_name("LOCAL", &names()), "LOCAL");
    }
}
