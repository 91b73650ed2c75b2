//! Resource usage of a process, from `/proc`.

use std::time::Duration;
use std::{fs, io};

/// The resource usage of a process so far, over all its threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user code. The kernel reports it in ticks of 10 ms.
    pub user: Duration,
    /// Processor time in the kernel on its behalf, in the same ticks.
    pub system: Duration,
    /// Resident memory now, in bytes.
    pub resident_bytes: u64,
}

/// Reads the resource usage of process `pid`.
///
/// # Errors
/// There is no such process.
pub fn usage(pid: u32) -> io::Result<Usage> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_process(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Reads the proportional set size of process `pid` in bytes: a page that several processes share
/// counts in equal parts.
///
/// # Errors
/// There is no such process, or it belongs to another user.
pub fn proportional_bytes(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup"))?;
    parse_proportional(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Parses the line of proc(5) `Pss:`, in kB.
fn parse_proportional(text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let size = lines.find_map(|line| line.strip_prefix("Pss:"))?;
    let kilobytes = size.trim().strip_suffix("kB")?.trim();
    Some(kilobytes.parse::<u64>().ok()? * 1024)
}

/// Context switches of a process, over its current threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Switches {
    /// Switches because a thread had no work.
    pub voluntary: u64,
    /// Switches because the kernel needed the core for another thread.
    pub involuntary: u64,
}

/// Reads the context switches of process `pid`.
///
/// # Errors
/// There is no such process.
pub fn switches(pid: u32) -> io::Result<Switches> {
    let mut all = Switches::default();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        // A thread that has ended no longer counts, like those that ended before.
        let Ok(text) = fs::read_to_string(thread?.path().join("status")) else {
            continue;
        };
        let of_thread = parse_switches(&text).ok_or(io::ErrorKind::InvalidData)?;
        all.voluntary += of_thread.voluntary;
        all.involuntary += of_thread.involuntary;
    }
    Ok(all)
}

/// Parses the lines of proc(5) `voluntary_ctxt_switches:` and `nonvoluntary_ctxt_switches:`.
fn parse_switches(text: &str) -> Option<Switches> {
    let value = |wanted: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(':'));
        let (_, value) = lines.find(|(name, _)| *name == wanted)?;
        value.trim().parse().ok()
    };
    Some(Switches {
        voluntary: value("voluntary_ctxt_switches")?,
        involuntary: value("nonvoluntary_ctxt_switches")?,
    })
}

/// Scheduler times of a process, over its current threads, in nanoseconds; [`Usage`] has ticks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunTimes {
    /// The time on a core.
    pub ran: Duration,
    /// The time runnable without a core.
    pub waited: Duration,
}

/// Reads the scheduler times of process `pid` (Documentation/scheduler/sched-stats.rst).
///
/// # Errors
/// There is no such process, or the kernel does not record them.
pub fn run_times(pid: u32) -> io::Result<RunTimes> {
    let mut all = RunTimes::default();
    for thread in fs::read_dir(format!("/proc/{pid}/task"))? {
        let file = thread?.path().join("schedstat");
        let text = match fs::read_to_string(file) {
            Ok(text) => text,
            // A thread that has ended no longer counts; its directory has disappeared.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => return Err(error),
        };
        let of_thread = parse_run_times(&text).ok_or(io::ErrorKind::InvalidData)?;
        all.ran += of_thread.ran;
        all.waited += of_thread.waited;
    }
    match all.ran.is_zero() {
        // A live process has run, so zero means that the kernel does not count.
        true => Err(io::ErrorKind::Unsupported.into()),
        false => Ok(all),
    }
}

/// Parses nanoseconds on a core, nanoseconds runnable, and the number of time slices.
fn parse_run_times(text: &str) -> Option<RunTimes> {
    let mut fields = text.split_whitespace().map(str::parse);
    let mut next = || fields.next()?.ok().map(Duration::from_nanos);
    Some(RunTimes {
        ran: next()?,
        waited: next()?,
    })
}

/// Reads the start time of process `pid` in ticks since boot. Id and start time identify a process
/// uniquely.
///
/// # Errors
/// There is no such process.
pub fn process_start(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(')').unwrap_or_default();
    // The rest begins with the third field; the start time is the 22nd.
    let field = rest.split_whitespace().nth(22 - 3);
    let started = field.and_then(|field| field.parse().ok());
    started.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Parses proc(5): after the name, which may contain any character, the fields from the third on.
fn parse_process(text: &str) -> Option<Usage> {
    let (_, rest) = text.rsplit_once(')')?;
    let fields: Vec<&str> = rest.split_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    Some(Usage {
        user: ticks(number(14)?),
        system: ticks(number(15)?),
        resident_bytes: number(24)? * u64::try_from(rustix::param::page_size()).ok()?,
    })
}

pub(crate) fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(count.saturating_mul(1_000_000_000) / per_second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn process_name_may_contain_any_character() {
        let text = "77 (a (b) 1 2) S 1 77 77 0 -1 4194560 100 0 0 0 250 125 0 0 20 0 1 0 100 1000 3 18446744073709551615";
        let usage = parse_process(text).unwrap();
        assert_eq!(usage.user, ticks(250));
        assert_eq!(usage.system, ticks(125));
        assert_eq!(
            usage.resident_bytes,
            3 * u64::try_from(rustix::param::page_size()).unwrap()
        );
    }

    #[test]
    fn context_switches_are_counted_by_kind() {
        let text = "Name:\tx\nvoluntary_ctxt_switches:\t150\nnonvoluntary_ctxt_switches:\t545\n";
        let expected = Switches {
            voluntary: 150,
            involuntary: 545,
        };
        assert_eq!(parse_switches(text), Some(expected));
        assert_eq!(parse_switches("Name:\tx\n"), None);
        assert!(switches(std::process::id()).is_ok());
        // This is above the kernel's largest process id.
        assert!(switches(4_194_305).is_err() && process_start(4_194_305).is_err());
    }

    #[test]
    fn scheduler_times_are_in_nanoseconds() {
        let expected = RunTimes {
            ran: Duration::from_nanos(683_200),
            waited: Duration::from_nanos(1_942_048),
        };
        assert_eq!(parse_run_times("683200 1942048 2\n"), Some(expected));
        assert_eq!(parse_run_times("683200"), None);
        assert!(run_times(4_194_305).is_err());
        match run_times(std::process::id()) {
            Ok(times) => assert!(!times.ran.is_zero()),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::Unsupported),
        }
    }

    #[test]
    fn proportional_set_size_is_in_bytes() {
        let text =
            "00400000-7fff ---p 0 00:00 0 [rollup]\nRss:    9 kB\nPss:    7 kB\nPss_Dirty: 2 kB\n";
        assert_eq!(parse_proportional(text), Some(7 * 1024));
        assert!(proportional_bytes(std::process::id()).unwrap() > 0);
        assert!(proportional_bytes(4_194_305).is_err());
    }

    #[test]
    fn process_usage_includes_memory() {
        assert!(usage(std::process::id()).unwrap().resident_bytes > 0);
    }
}
