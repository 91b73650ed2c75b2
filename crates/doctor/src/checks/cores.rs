//! The cores of the workers. Published measurements of software switches isolate theirs; the lab
//! can measure the benefit on a given host.

use crate::finding::{Finding, Mend};
use crate::{Asked, CpuList, Host};

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
fn present<'a>(host: &Host, asked: &'a Asked) -> impl Iterator<Item = u32> + use<'a> {
    let online = online(host);
    asked.cores.iter().filter(move |core| online.has(*core))
}

/// Checks that the cores exist, and that one is left for other work.
pub(crate) fn presence(host: &Host, asked: &Asked) -> Vec<Finding> {
    let online = online(host);
    if asked.cores.is_empty() {
        let found = format!("cores {online}; which of them are the workers', --cores says");
        return vec![Finding::fine("cores", found)];
    }
    let missing = asked.cores.without(&online);
    if !missing.is_empty() {
        return vec![Finding::fails(
            "cores",
            format!("{missing} is not among the cores that are online, {online}"),
            "a worker cannot be pinned there",
            Mend::Advice("name others by --cores"),
        )];
    }
    let rest = online.without(&asked.cores);
    vec![if rest.is_empty() {
        Finding::costs(
            "cores",
            format!("the workers have all there are, {online}"),
            "the control thread, controllers and the kernel's own work take turns with them",
            Mend::Advice("leave one core to them"),
        )
    } else {
        Finding::fine(
            "cores",
            format!("{} for workers, {rest} for all else", asked.cores),
        )
    }]
}

/// Checks that the cores are isolated from the scheduler and the timer.
pub(crate) fn isolation(host: &Host, asked: &Asked) -> Vec<Finding> {
    let isolated = list(host, "/sys/devices/system/cpu/isolated");
    let tickless = list(host, "/sys/devices/system/cpu/nohz_full");
    let cores: CpuList = present(host, asked).collect();
    let boot = || {
        Mend::Boot(format!(
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
                "what else the scheduler puts there runs in the worker's stead, a turn at a time",
                boot(),
            )
        } else if !tickless.has(core) {
            Finding::costs(
                subject,
                "isolated, but not from the timer",
                "the worker is interrupted at each tick",
                boot(),
            )
        } else {
            Finding::fine(subject, "isolated, without ticks")
        });
    }
    findings
}

/// Checks for sibling hardware threads on the same physical core.
pub(crate) fn siblings(host: &Host, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, asked) {
        let file = format!("/sys/devices/system/cpu/cpu{core}/topology/thread_siblings_list");
        let others = list(host, &file).without(&[core].into_iter().collect());
        if !others.is_empty() {
            findings.push(Finding::costs(
                format!("core {core}"),
                format!("one processor with {others}"),
                "what runs there takes caches and units of execution from the worker",
                Mend::Command(format!(
                    "echo 0 > /sys/devices/system/cpu/cpu{}/online",
                    others.iter().next().unwrap_or_default()
                )),
            ));
        }
    }
    findings
}

/// Checks that the frequency of a core does not depend on its load.
pub(crate) fn frequency(host: &Host, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, asked) {
        let directory = format!("/sys/devices/system/cpu/cpu{core}/cpufreq");
        let Some(governor) = host.read(format!("{directory}/scaling_governor")) else {
            continue;
        };
        let subject = format!("core {core}");
        let available = host.read(format!("{directory}/scaling_available_governors"));
        let steady = available.is_none_or(|all| all.split(' ').any(|one| one == "performance"));
        findings.push(if governor == "performance" {
            Finding::fine(subject, "at its full frequency")
        } else {
            let mend = match steady {
                true => Mend::Write {
                    file: format!("{directory}/scaling_governor").into(),
                    word: "performance".to_owned(),
                },
                false => Mend::Advice("the driver has no governor that keeps it up"),
            };
            Finding::costs(
                subject,
                format!("its frequency follows its load ({governor})"),
                "the first frames after a pause find a slow core",
                mend,
            )
        });
    }
    findings
}

/// Checks for idle states with a long exit latency.
pub(crate) fn sleep(host: &Host, asked: &Asked) -> Vec<Finding> {
    let mut findings = Vec::new();
    for core in present(host, asked) {
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
                format!("sleeps as deep as {name}, from which it wakes after {latency} us"),
                "a frame that comes when the worker has gone to sleep waits so much longer",
                Mend::Write {
                    file: format!("{state}/disable").into(),
                    word: "1".to_owned(),
                },
            ));
        }
    }
    findings
}

/// Checks for device interrupts on the workers' cores.
pub(crate) fn interrupts(host: &Host, asked: &Asked) -> Vec<Finding> {
    let others = online(host).without(&asked.cores);
    let mut findings = Vec::new();
    for number in host.names("/proc/irq") {
        let directory = format!("/proc/irq/{number}");
        // An interrupt with a handler has a directory with the handler's name.
        let handlers = host.names(&directory);
        let is_handler = |name: &&String| host.place(format!("{directory}/{name}")).is_dir();
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
        let here = cores.shared_with(&asked.cores);
        if here.is_empty() {
            continue;
        }
        let mend = match others.is_empty() {
            true => Mend::Advice("leave a core to interrupts"),
            false => Mend::Write {
                file: file.into(),
                word: others.to_string(),
            },
        };
        findings.push(Finding::costs(
            format!("irq {number}"),
            format!("{handler} interrupts core {here}"),
            "the worker stands still while the interrupt is served, and what it brings along",
            mend,
        ));
    }
    findings
}
