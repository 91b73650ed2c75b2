//! Properties of the machine that a result depends on.

use std::time::Duration;
use std::{fs, io};

use crate::usage::ticks;

/// The times of a core since boot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoreTimes {
    /// Busy time, interrupts included.
    pub busy: Duration,
    /// Part of the busy time: soft interrupts, in which the kernel forwards frames.
    pub softirq: Duration,
    /// Idle time, including waits for a disk.
    pub idle: Duration,
    /// Time in which the core was ready and the hypervisor ran another guest.
    pub steal: Duration,
}

/// A description of the machine.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The kernel's release.
    pub kernel: String,
    /// The processor's name.
    pub processor: String,
    /// The number of cores that this process may use.
    pub cores: usize,
    /// Memory, in bytes.
    pub memory_bytes: u64,
    /// The kernel's clock source; empty if unknown.
    pub clock_source: String,
    /// True if the processor reports a hypervisor.
    pub virtual_machine: bool,
}

impl Machine {
    /// Reads the description of this machine. Unknown properties stay empty.
    #[must_use]
    pub fn this() -> Self {
        let processor = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
        let memory_kib =
            value(&memory, "MemTotal").and_then(|text| text.split(' ').next()?.parse().ok());
        let flags = value(&processor, "flags").unwrap_or_default();
        let clock = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
        Self {
            kernel: rustix::system::uname()
                .release()
                .to_string_lossy()
                .into_owned(),
            processor: value(&processor, "model name")
                .unwrap_or_default()
                .to_owned(),
            cores: std::thread::available_parallelism().map_or(1, usize::from),
            memory_bytes: memory_kib.unwrap_or(0_u64) * 1024,
            clock_source: fs::read_to_string(clock)
                .unwrap_or_default()
                .trim()
                .to_owned(),
            virtual_machine: flags.split(' ').any(|flag| flag == "hypervisor"),
        }
    }
}

/// Reads the times of all cores, in the order of their numbers.
///
/// # Errors
/// Those of reading `/proc/stat`.
pub fn core_times() -> io::Result<Vec<CoreTimes>> {
    let text = fs::read_to_string("/proc/stat")?;
    Ok(text.lines().filter_map(parse_core).collect())
}

/// The time since boot in which some runnable task waited for a core; `None` if the kernel does not
/// record it (Documentation/accounting/psi.rst).
#[must_use]
pub fn core_pressure() -> Option<Duration> {
    let text = fs::read_to_string("/proc/pressure/cpu").ok()?;
    parse_pressure(&text)
}

/// Frames dropped since boot because the backlog of a core was full, over all interfaces; `None` if
/// the kernel does not report it (Documentation/networking/scaling.rst).
#[must_use]
pub fn backlog_drops() -> Option<u64> {
    let text = fs::read_to_string("/proc/net/softnet_stat").ok()?;
    parse_backlog(&text)
}

/// Parses `/proc/net/softnet_stat`: a line of hexadecimal numbers for each core, the second of
/// which counts drops.
fn parse_backlog(text: &str) -> Option<u64> {
    let of_core = |line: &str| {
        let dropped = line.split_whitespace().nth(1)?;
        u64::from_str_radix(dropped, 16).ok()
    };
    text.lines().map(of_core).sum()
}

/// Parses `some avg10=.. avg60=.. avg300=.. total=microseconds`.
fn parse_pressure(text: &str) -> Option<Duration> {
    let line = text.lines().find(|line| line.starts_with("some "))?;
    let (_, total) = line.split_once("total=")?;
    total.trim().parse().ok().map(Duration::from_micros)
}

/// The value of the first line `key : value`.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim())
    })
}

/// Parses a line of proc(5): `cpuN user nice system idle iowait irq softirq steal ...`.
fn parse_core(line: &str) -> Option<CoreTimes> {
    let (name, rest) = line.split_once(' ')?;
    name.strip_prefix("cpu")?.parse::<u32>().ok()?;
    let columns: Vec<u64> = rest
        .split_whitespace()
        .map(|column| column.parse().ok())
        .collect::<Option<_>>()?;
    let [user, nice, system, idle, iowait, irq, softirq, steal, ..] = columns[..] else {
        return None;
    };
    Some(CoreTimes {
        busy: ticks(user + nice + system + irq + softirq),
        softirq: ticks(softirq),
        idle: ticks(idle + iowait),
        steal: ticks(steal),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_times_are_parsed_without_their_sum() {
        assert_eq!(parse_core("cpu  1 2 3 4 5 6 7 8 9 10"), None);
        let core = parse_core("cpu1 1 2 3 4 5 6 7 8 9 10").unwrap();
        assert_eq!(core.busy, ticks(1 + 2 + 3 + 6 + 7));
        assert_eq!(
            (core.idle, core.softirq, core.steal),
            (ticks(9), ticks(7), ticks(8))
        );
    }

    #[test]
    fn core_pressure_is_parsed_in_microseconds() {
        let text = "some avg10=60.92 avg60=85.20 avg300=78.13 total=1525511550\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        assert_eq!(
            parse_pressure(text),
            Some(Duration::from_micros(1_525_511_550))
        );
        assert_eq!(parse_pressure(""), None);
    }

    #[test]
    fn backlog_drops_are_summed_over_cores() {
        let text = "0000ffff 0000000a 00000000 0\n000000ff 00000010 00000001 0\n";
        assert_eq!(parse_backlog(text), Some(26));
        assert_eq!(parse_backlog("0000ffff\n"), None);
        assert_eq!(parse_backlog(""), Some(0));
    }

    #[test]
    fn machine_description_has_a_kernel_and_a_core() {
        let machine = Machine::this();
        assert!(!machine.kernel.is_empty() && machine.cores > 0 && machine.memory_bytes > 0);
        assert!(!core_times().unwrap().is_empty());
    }

    #[test]
    fn keys_are_matched_as_a_whole() {
        assert_eq!(
            value("model : 1\nmodel name\t: a b\n", "model name"),
            Some("a b")
        );
    }
}
