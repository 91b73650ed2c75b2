//! Resources and operating system of the host, for the database (ovs-vswitchd.conf.db(5),
//! `statistics` of the table `Open_vSwitch`). Values that cannot be read are omitted.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use rustix::fs::{StatVfs, StatVfsMountFlags, statvfs};
use rustix::param::{clock_ticks_per_second, page_size};

use runtime::PROGRAM;

/// The file with the name of the operating system (os-release(5)).
const OS_RELEASE: &str = "/etc/os-release";

/// The reported processes, by the names of their pidfiles in the run directory.
const PROGRAMS: [&str; 2] = [PROGRAM, "ovsdb-server"];

/// Types of file systems without storage of this host.
#[rustfmt::skip]
const WITHOUT_STORAGE: [&str; 14] = [
    "proc", "sysfs", "devtmpfs", "devpts", "tmpfs", "cgroup", "cgroup2", "securityfs", "nsfs", "nfs", "nfs4", "cifs", "mqueue", "overlay",
];

/// The limit of reported file systems: a host with more uses them for containers.
const FILE_SYSTEMS_MAX: usize = 64;

/// The state of the host, as the database shows it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostFacts {
    /// Resources of the host and their use, if enabled.
    pub(crate) statistics: BTreeMap<String, String>,
    /// Name and version of the operating system, if known.
    pub(crate) system: (Option<String>, Option<String>),
}

/// Returns the name and the version of the operating system.
pub(super) fn system() -> (Option<String>, Option<String>) {
    let text = fs::read_to_string(OS_RELEASE).unwrap_or_default();
    let value = |key: &str| {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('='))?;
        Some(value.trim_matches('"').to_owned())
    };
    (value("ID"), value("VERSION_ID"))
}

/// Returns the resources of the host and their current use.
pub(super) fn statistics(rundir: &Path) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut add = |key: &str, value: Option<String>| {
        all.extend(value.map(|value| (key.to_owned(), value)));
    };
    let cores = std::thread::available_parallelism();
    add("cpu", cores.ok().map(|count| count.to_string()));
    let load = fs::read_to_string("/proc/loadavg");
    add(
        "load_average",
        load.ok().and_then(|text| load_average(&text)),
    );
    let memory = fs::read_to_string("/proc/meminfo");
    add("memory", memory.ok().and_then(|text| memory_of(&text)));
    for program in PROGRAMS {
        let usage = process(&rundir.join(format!("{program}.pid")));
        add(&format!("process_{program}"), usage);
    }
    let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
    let systems = file_systems(&mounts);
    add("file_systems", (!systems.is_empty()).then_some(systems));
    all
}

/// Returns the three averages of `/proc/loadavg`, separated by commas.
fn load_average(text: &str) -> Option<String> {
    let words: Vec<_> = text.split_whitespace().take(3).collect();
    (words.len() == 3).then(|| words.join(","))
}

/// Returns total memory, used memory, reclaimable memory, total swap and used swap of
/// `/proc/meminfo`, in kilobytes.
fn memory_of(text: &str) -> Option<String> {
    let field = |name: &str| -> Option<u64> {
        let mut lines = text.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        value.trim().trim_end_matches(" kB").parse().ok()
    };
    let (all, free) = (field("MemTotal")?, field("MemFree")?);
    let cached = field("Buffers")? + field("Cached")?;
    let (swap, swap_free) = (field("SwapTotal")?, field("SwapFree")?);
    let (used, swapped) = (all.saturating_sub(free), swap.saturating_sub(swap_free));
    Some(format!("{all},{used},{cached},{swap},{swapped}"))
}

/// Returns the statistics of the process in a pidfile: virtual and resident memory in kilobytes,
/// CPU time, number of crashes, and twice the uptime, in milliseconds.
fn process(pidfile: &Path) -> Option<String> {
    let pid: u32 = fs::read_to_string(pidfile).ok()?.trim().parse().ok()?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    process_of(&stat, &uptime)
}

/// Returns the same from the texts of proc(5).
fn process_of(stat: &str, uptime: &str) -> Option<String> {
    // The name is in parentheses and may contain any character; the field behind it is number 3.
    let (_, rest) = stat.rsplit_once(')')?;
    let fields: Vec<_> = rest.split_whitespace().collect();
    let field = |number: usize| -> Option<u64> { fields.get(number - 3)?.parse().ok() };
    let tick_ms = 1000 / clock_ticks_per_second().max(1);
    let (user, system, began) = (field(14)?, field(15)?, field(22)?);
    let (size, resident) = (field(23)? / 1024, field(24)? * page_size() as u64 / 1024);
    let (seconds, _) = uptime.split_whitespace().next()?.split_once('.')?;
    let up_ms = seconds.parse::<u64>().ok()? * 1000;
    let age_ms = up_ms.saturating_sub(began * tick_ms);
    let used_ms = (user + system) * tick_ms;
    Some(format!("{size},{resident},{used_ms},0,{age_ms},{age_ms}"))
}

/// Returns mount point, size and use, in kilobytes, of the local and writable file systems in
/// `/proc/mounts`.
fn file_systems(mounts: &str) -> String {
    let rows = mounts.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let (device, mount_point, kind) = (words.next()?, words.next()?, words.next()?);
        let is_storage = device.starts_with('/') && !WITHOUT_STORAGE.contains(&kind);
        let usage = statvfs(mount_point).ok().filter(|_| is_storage)?;
        file_system(mount_point, &usage)
    });
    rows.take(FILE_SYSTEMS_MAX).collect::<Vec<_>>().join(" ")
}

fn file_system(mount_point: &str, usage: &StatVfs) -> Option<String> {
    if usage.f_flag.contains(StatVfsMountFlags::RDONLY) {
        return None;
    }
    let kilobytes = |blocks: u64| blocks.saturating_mul(usage.f_frsize) / 1024;
    let all = kilobytes(usage.f_blocks);
    let used = all.saturating_sub(kilobytes(usage.f_bfree));
    let mount_point = mount_point.replace([' ', ','], "_");
    Some(format!("{mount_point},{all},{used}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_and_memory_use_database_format() {
        assert_eq!(
            load_average("0.10 0.25 1.00 2/345 6789\n").as_deref(),
            Some("0.10,0.25,1.00")
        );
        assert_eq!(load_average("0.10"), None);
        let text = "MemTotal: 1000 kB\nMemFree: 300 kB\nMemAvailable: 600 kB\nBuffers: 10 kB\n\
                    Cached: 90 kB\nSwapCached: 0 kB\nSwapTotal: 50 kB\nSwapFree: 45 kB\n";
        assert_eq!(memory_of(text).as_deref(), Some("1000,700,100,50,5"));
    }

    #[test]
    fn process_statistics_accept_any_name() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 0 0 0 0 0 100 20 0 0 20 0 3 0 500 2048000 250 0";
        let usage = process_of(stat, "100.50 20.00").expect("it is whole");
        let numbers: Vec<u64> = usage
            .split(',')
            .map(|word| word.parse().expect(word))
            .collect();
        assert_eq!((numbers[0], numbers[3], numbers.len()), (2000, 0, 6));
        assert_eq!(process_of("7 (x) S 1", "1.0"), None);
    }
}
