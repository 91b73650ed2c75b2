//! The cores of the workers. Published measurements of software switches isolate theirs; the lab
//! can measure the benefit on a given host.

use crate::finding::{Finding, Remedy};
use crate::{CpuList, Host, SwitchSetup};

/// The exit latency in microseconds up to which an idle state is accepted: a wake-up itself takes
/// longer.
const SLEEP_US_MAX: u64 = 10;

fn list(host: &Host, file: &str) -> CpuList {
    let text = host.read(file).unwrap_or_default();
    text.parse().unwrap_or_default()
}

fn online(host: &Host) -> CpuList {
    list(host, "/sys/devices/system/cpu/online")
}

/// Returns the workers' cores that exist.
fn present<'a>(host: &Host, setup: &'a SwitchSetup) -> impl Iterator<Item = u32> + use<'a> {
    let online = online(host);
    setup.cores.iter().filter(move |core| online.has(*core))
}

/// Checks that the cores exist, and that one is left for other work.
pub(crate) fn presence(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let online = online(host);
    if setup.cores.is_empty() {
        let found = format!("cores {online}; select those of the workers with --cores");
        return vec![Finding::fine("cores", found)];
    }
    let missing = setup.cores.without(&online);
    if !missing.is_empty() {
        return vec![Finding::fails(
            "cores",
            format!("{missing} is not online; online cores: {online}"),
            "workers cannot be pinned to it",
            Remedy::Advice("select other cores with --cores"),
        )];
    }
    let rest = online.without(&setup.cores);
    vec![if rest.is_empty() {
        Finding::costs(
            "cores",
            format!("the workers use all cores, {online}"),
            "the control thread, controllers and the kernel preempt the workers",
            Remedy::Advice("leave one core for other work"),
        )
    } else {
        Finding::fine(
            "cores",
            format!("{} for workers, {rest} for other work", setup.cores),
        )
    }]
}

/// Checks that the cores are isolated from the scheduler and the timer.
pub(crate) fn isolation(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let isolated = list(host, "/sys/devices/system/cpu/isolated");
    let tickless = list(host, "/sys/devices/system/cpu/nohz_full");
    let cores: CpuList = present(host, setup).collect();
    let boot = || {
        Remedy::Boot(format!(
            "isolcpus=managed_irq,domain,{cores} nohz_full={cores} rcu_nocbs={cores}"
        ))
    };
    let mut findings = Vec::new();
    for core in cores.iter() {
        let subject = format!("core {core}");
        findings.push(if !isolated.has(core) {
            Finding::costs(
                subject,
                "not isolated",
                "the scheduler runs other tasks on it, and the worker waits",
                boot(),
            )
        } else if !tickless.has(core) {
            Finding::costs(
                subject,
                "isolated, but with timer ticks",
                "each tick interrupts the worker",
                boot(),
            )
        } else {
            Finding::fine(subject, "isolated, without timer ticks")
        });
    }
    findings
}

/// Checks for sibling hardware threads on the same physical core.
pub(crate) fn siblings(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, setup) {
        let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        let others = list(host, &file).without(&[core].into_iter().collect());
        if !others.is_empty() {
            findings.push(Finding::costs(
                format!("core {core}"),
                format!("shares a physical core with {others}"),
                "tasks there use the caches and execution units of the worker",
                Remedy::Command(format!(
                    "echo 0 > /sys/devices/system/cpu/cpu{}/online",
                    others.iter().next().unwrap_or_default()
                )),
            ));
        }
    }
    findings
}

/// Checks that the frequency of a core does not depend on its load.
pub(crate) fn frequency(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, setup) {
        let directory = format!("/sys/devices/system/cpu/cpu{core}/cpufreq");
        let Some(governor) = host.read(format!("{directory}/scaling_governor")) else {
            continue;
        };
        let subject = format!("core {core}");
        let available = host.read(format!("{directory}/scaling_available_governors"));
        let steady = available.is_none_or(|all| all.split(' ').any(|one| one == "performance"));
        findings.push(if governor == "performance" {
            Finding::fine(subject, "runs at full frequency")
        } else {
            let remedy = match steady {
                true => Remedy::Write {
                    file: format!("{directory}/scaling_governor").into(),
                    word: "performance".to_owned(),
                },
                false => Remedy::Advice("the driver has no governor for a constant frequency"),
            };
            Finding::costs(
                subject,
                format!("its frequency depends on its load (governor {governor})"),
                "the first frames after a pause are processed slowly",
                remedy,
            )
        });
    }
    findings
}

/// Checks for idle states with a long exit latency.
pub(crate) fn sleep(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, setup) {
        let directory = format!("/sys/devices/system/cpu/cpu{core}/cpuidle");
        for state in host.names(&directory) {
            let state = format!("{directory}/{state}");
            let latency = host.number(format!("{state}/latency")).unwrap_or(0);
            let is_off = host.number(format!("{state}/disable")) != Some(0);
            if latency <= SLEEP_US_MAX || is_off {
                continue;
            }
            let name = host.read(format!("{state}/name")).unwrap_or_default();
            findings.push(Finding::costs(
                format!("core {core}"),
                format!("enters idle state {name}, with an exit latency of {latency} us"),
                "a frame that arrives while the worker sleeps is delayed by the exit latency",
                Remedy::Write {
                    file: format!("{state}/disable").into(),
                    word: "1".to_owned(),
                },
            ));
        }
    }
    findings
}

/// Checks for device interrupts on the workers' cores.
pub(crate) fn interrupts(host: &Host, setup: &SwitchSetup) -> Vec<Finding> {
    let others = online(host).without(&setup.cores);
    let mut findings = Vec::new();
    for number in host.names("/proc/irq") {
        let directory = format!("/proc/irq/{number}");
        // An interrupt with a handler has a directory with the handler's name.
        let handlers = host.names(&directory);
        let is_handler = |name: &&String| host.path(format!("{directory}/{name}")).is_dir();
        let Some(handler) = handlers.iter().find(is_handler) else {
            continue;
        };
        let file = format!("{directory}/smp_affinity_list");
        // The allowed cores; on most machines the interrupt is delivered to all of them.
        let effective = format!("{directory}/effective_affinity_list");
        let cores = match host.has(&effective) {
            true => list(host, &effective),
            false => list(host, &file),
        };
        let here = cores.shared_with(&setup.cores);
        if here.is_empty() {
            continue;
        }
        let remedy = match others.is_empty() {
            true => Remedy::Advice("leave a core for interrupts"),
            false => Remedy::Write {
                file: file.into(),
                word: others.to_string(),
            },
        };
        findings.push(Finding::costs(
            format!("irq {number}"),
            format!("{handler} interrupts core {here}"),
            "the worker waits during the interrupt handler and its softirqs",
            remedy,
        ));
    }
    findings
}
