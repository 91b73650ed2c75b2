//! Settings of the whole host.

use crate::finding::{Finding, Remedy};
use crate::{Host, SwitchSetup};

/// Checks for the capabilities that a switch needs (capabilities(7)).
pub(crate) fn rights(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    /// The capabilities to set interfaces up, and to open packet sockets.
    const WANTED: [(u32, &str); 2] = [(12, "CAP_NET_ADMIN"), (13, "CAP_NET_RAW")];
    let status = host.read("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(effective) = line.and_then(|line| u64::from_str_radix(line.trim(), 16).ok()) else {
        return Vec::new();
    };
    let missing = WANTED.iter().filter(|(bit, _)| effective >> bit & 1 == 0);
    let missing: Vec<&str> = missing.map(|(_, name)| *name).collect();
    vec![if missing.is_empty() {
        Finding::fine("rights", "interfaces can be opened as ports")
    } else {
        Finding::fails(
            "rights",
            format!("{} is missing", missing.join(" and ")),
            "no interface can be opened as a port",
            Remedy::Advice("run it as root, or give the program these capabilities (setcap(8))"),
        )
    }]
}

/// Checks for the device that creates local ports and TAP ports.
pub(crate) fn tun(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    vec![if host.has("/dev/net/tun") {
        Finding::fine("tun", "/dev/net/tun exists")
    } else {
        Finding::fails(
            "tun",
            "/dev/net/tun does not exist",
            "bridges have no local port, and TAP ports cannot be opened",
            Remedy::Command("modprobe tun".to_owned()),
        )
    }]
}

/// Checks the clock source of the kernel.
pub(crate) fn clock(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    /// The clock sources that can be read without a system call (vdso(7)).
    const READ_AT_ONCE: [&str; 4] = [
        "tsc",
        "kvm-clock",
        "hyperv_clocksource_tsc_page",
        "arch_sys_counter",
    ];
    let directory = "/sys/devices/system/clocksource/clocksource0";
    let Some(current) = host.read(format!("{directory}/current_clocksource")) else {
        return Vec::new();
    };
    if READ_AT_ONCE.contains(&current.as_str()) {
        return vec![Finding::fine(
            "clock",
            format!("{current}, read without a system call"),
        )];
    }
    let available = host.read(format!("{directory}/available_clocksource"));
    let better = READ_AT_ONCE.into_iter().find(|wanted| {
        available
            .iter()
            .flat_map(|all| all.split(' '))
            .any(|one| one == *wanted)
    });
    let remedy = match better {
        Some(better) => Remedy::Write {
            file: format!("{directory}/current_clocksource").into(),
            word: better.to_owned(),
        },
        None => {
            Remedy::Advice("the host has no clock source that can be read without a system call")
        }
    };
    vec![Finding::costs(
        "clock",
        format!("{current}, read by a system call"),
        "workers read the time once a batch, the lab once a frame: each read is a system call",
        remedy,
    )]
}

/// Checks for time that a hypervisor gave to other guests (proc(5), `/proc/stat`, steal).
pub(crate) fn stolen_time(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    let stat = host.read("/proc/stat").unwrap_or_default();
    let line = stat.lines().find_map(|line| line.strip_prefix("cpu "));
    let Some(line) = line else {
        return Vec::new();
    };
    // The last two numbers, guest times, are included in the first two.
    let times = line.split_whitespace().map_while(|word| word.parse().ok());
    let times: Vec<u64> = times.take(8).collect();
    let (total, stolen) = (
        times.iter().sum::<u64>(),
        times.get(7).copied().unwrap_or(0),
    );
    if total == 0 {
        return Vec::new();
    }
    let per_mille = stolen * 1000 / total;
    let found = format!(
        "{}.{} % of the CPU time since boot was stolen by other guests",
        per_mille / 10,
        per_mille % 10
    );
    vec![if per_mille < 5 {
        Finding::fine("host", found)
    } else {
        Finding::costs(
            "host",
            found,
            "a worker without its core forwards nothing, and receive rings overflow",
            Remedy::Advice("give this guest dedicated cores on its host"),
        )
    }]
}

/// Checks that BPF programs are compiled, such as that of `AF_XDP` ports.
pub(crate) fn jit(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    let file = "/proc/sys/net/core/bpf_jit_enable";
    host.number(file)
        .map(|enabled| match enabled {
            0 => Finding::costs(
                "bpf",
                "BPF programs are interpreted",
                "each frame of an AF_XDP port runs one",
                Remedy::Write {
                    file: file.into(),
                    word: "1".to_owned(),
                },
            ),
            _ => Finding::fine("bpf", "BPF programs are compiled"),
        })
        .into_iter()
        .collect()
}

/// Checks for frames that the kernel dropped between two interfaces, as between the ends of a veth:
/// the backlog queue of a core was full (`/proc/net/softnet_stat`, second word).
pub(crate) fn backlog(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    let stat = host.read("/proc/net/softnet_stat").unwrap_or_default();
    let dropped = stat.lines().filter_map(|line| {
        let word = line.split_whitespace().nth(1)?;
        u64::from_str_radix(word, 16).ok()
    });
    let dropped: u64 = dropped.sum();
    let file = "/proc/sys/net/core/netdev_max_backlog";
    let Some(room) = host.number(file) else {
        return Vec::new();
    };
    let found = format!("backlog queues of {room} frames dropped {dropped} frames");
    vec![if dropped == 0 {
        Finding::fine("backlog", found)
    } else {
        Finding::costs(
            "backlog",
            found,
            "bursts through veths and TAPs lose frames that no port counts",
            Remedy::Write {
                file: file.into(),
                word: (4 * room.min(100_000)).to_string(),
            },
        )
    }]
}

/// Checks for free huge pages, which DPDK uses.
pub(crate) fn huge_pages(host: &Host, _: &SwitchSetup) -> Vec<Finding> {
    let meminfo = host.read("/proc/meminfo").unwrap_or_default();
    let of = |name: &str| {
        let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
        let number = line.trim_start_matches(':').trim().trim_end_matches(" kB");
        number.parse::<u64>().ok()
    };
    let (Some(total), Some(free), Some(kib)) = (
        of("HugePages_Total"),
        of("HugePages_Free"),
        of("Hugepagesize"),
    ) else {
        return Vec::new();
    };
    let found = format!(
        "{free} of {total} huge pages of {} MiB are free",
        kib / 1024
    );
    vec![if total == 0 || free > 0 {
        // Without DPDK no huge pages are needed.
        Finding::fine("memory", found)
    } else {
        Finding::costs(
            "memory",
            found,
            "programs with DPDK, such as some devices of the lab, do not start",
            Remedy::Command(format!("sysctl -w vm.nr_hugepages={}", total * 2)),
        )
    }]
}
