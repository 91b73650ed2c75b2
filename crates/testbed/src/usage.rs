//! What a process has used, from `/proc`.

use std::time::Duration;
use std::{fs, io};

/// What a process, all its threads together, has used so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Processor time in user code. The kernel tells it in ticks of 10 ms.
    pub user: Duration,
    /// Processor time in the kernel on its behalf, in the same ticks.
    pub system: Duration,
    /// Memory it holds now, in bytes.
    pub resident_bytes: u64,
}

/// What process `pid` has used.
///
/// # Errors
/// There is no such process.
pub fn usage(pid: u32) -> io::Result<Usage> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    parse_process(&text).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// When process `pid` was started, in ticks since the machine was: with its number, this tells
/// it from all others.
///
/// # Errors
/// There is no such process.
pub fn process_start(pid: u32) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/stat"))?;
    let (_, rest) = text.rsplit_once(')').unwrap_or_default();
    // The third field is the first of the rest, and this is the twenty-second.
    let field = rest.split_whitespace().nth(22 - 3);
    let started = field.and_then(|field| field.parse().ok());
    started.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// proc(5): after the name, which may hold anything, the fields from the third on.
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
    fn a_process_may_have_any_name() {
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
    fn this_process_uses_memory() {
        assert!(usage(std::process::id()).unwrap().resident_bytes > 0);
    }
}
