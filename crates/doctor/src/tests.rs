//! Simulated hosts: their findings, and remedies that are applied and undone.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use super::*;

/// The files of a host, in a directory that is deleted on drop.
struct HostFixture {
    root: PathBuf,
}

impl HostFixture {
    /// Returns a host without problems, with these files added or replaced.
    fn with(files: &[(&str, &str)]) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("comporta-doctor-{}-{number}", std::process::id());
        let fixture = Self {
            root: std::env::temp_dir().join(name),
        };
        SOUND
            .iter()
            .chain(files)
            .for_each(|(file, text)| fixture.put(file, text));
        fixture
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.root.join(file.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn host(&self) -> Host {
        Host::below(self.root.clone())
    }

    fn read(&self, file: &str) -> String {
        self.host().read(file).unwrap()
    }

    fn journal(&self) -> PathBuf {
        self.root.join("run/doctor.json")
    }
}

impl Drop for HostFixture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

const GOVERNOR: &str = "/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor";

const SOUND: &[(&str, &str)] = &[
    ("/proc/self/status", "Name:\tx\nCapEff:\t000001ffffffffff\n"),
    ("/dev/net/tun", ""),
    (
        "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        "tsc\n",
    ),
    (
        "/proc/stat",
        "cpu  100 0 100 9800 0 0 0 4 0 0\ncpu0 1 2 3\n",
    ),
    ("/proc/sys/net/core/bpf_jit_enable", "1\n"),
    ("/proc/sys/net/core/netdev_max_backlog", "1000\n"),
    (
        "/proc/net/softnet_stat",
        "00000010 00000000 00000000\n00000010 00000000 00000000\n",
    ),
    (
        "/proc/meminfo",
        "HugePages_Total:       4\nHugePages_Free:        4\nHugepagesize:       2048 kB\n",
    ),
    ("/sys/devices/system/cpu/online", "0-3\n"),
    ("/sys/devices/system/cpu/isolated", "1-2\n"),
    ("/sys/devices/system/cpu/nohz_full", "1-2\n"),
    (
        "/sys/devices/system/cpu/cpu1/topology/thread_siblings_list",
        "1\n",
    ),
    (GOVERNOR, "performance\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/latency", "0\n"),
    ("/sys/devices/system/cpu/cpu1/cpuidle/state0/disable", "0\n"),
    ("/proc/irq/24/nic/keep", ""),
    ("/proc/irq/24/smp_affinity_list", "0\n"),
    ("/sys/class/net/eth1/mtu", "1500\n"),
    ("/sys/class/net/eth1/flags", "0x1003\n"),
    ("/sys/class/net/eth1/carrier", "1\n"),
    ("/sys/class/net/eth1/queues/rx-0/rps_cpus", "0\n"),
    ("/proc/sys/net/ipv4/conf/all/rp_filter", "0\n"),
    ("/proc/sys/net/ipv4/conf/eth1/rp_filter", "2\n"),
    ("/proc/sys/net/ipv4/conf/eth1/forwarding", "0\n"),
];

fn setup() -> SwitchSetup {
    SwitchSetup {
        cores: "1".parse().unwrap(),
        ports: vec!["eth1".to_owned()],
    }
}

/// Returns the subject, the observed state and the severity of each problem.
fn problems(fixture: &HostFixture, setup: &SwitchSetup) -> Vec<(String, String, Severity)> {
    let findings = examine(&fixture.host(), setup).into_iter();
    let worse = findings.filter(|finding| finding.severity != Severity::Fine);
    worse
        .map(|finding| {
            assert!(!finding.cost.is_empty(), "{finding:?}");
            assert_ne!(finding.remedy, Remedy::Nothing, "{finding:?}");
            (finding.subject, finding.found, finding.severity)
        })
        .collect()
}

#[test]
fn host_without_problems_has_no_remedies() {
    let fixture = HostFixture::with(&[]);
    assert_eq!(problems(&fixture, &setup()), []);
    let subjects = examine(&fixture.host(), &setup()).into_iter();
    let subjects: Vec<String> = subjects.map(|finding| finding.subject).collect();
    let wanted = [
        "rights", "tun", "clock", "host", "bpf", "backlog", "memory", "cores", "core 1", "core 1",
        "eth1",
    ];
    assert_eq!(subjects, wanted, "every check reports its subject");
}

/// Files that replace those of a host without problems, and the expected subject and observed
/// state.
type ProblemCase<'a> = (&'a [(&'a str, &'a str)], &'a str, &'a str);

#[test]
fn host_problems_are_found_separately() {
    let rps = "/sys/class/net/eth1/queues/rx-0/rps_cpus";
    let idle = "/sys/devices/system/cpu/cpu1/cpuidle/state2";
    #[rustfmt::skip]
    let cases: &[ProblemCase<'_>] = &[
        (&[("/proc/self/status", "CapEff:\t0000000000001000\n")], "rights", "CAP_NET_RAW is missing"),
        (&[("/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet")], "clock", "hpet, read by a system call"),
        (&[("/proc/stat", "cpu  100 0 100 9000 0 0 0 800 0 0\n")], "host", "8.0 % of the CPU time since boot was stolen by other guests"),
        (&[("/proc/sys/net/core/bpf_jit_enable", "0\n")], "bpf", "BPF programs are interpreted"),
        (&[("/proc/net/softnet_stat", "00000010 0000000a 0\n00000010 00000001 0\n")], "backlog", "backlog queues of 1000 frames dropped 11 frames"),
        (&[("/proc/meminfo", "HugePages_Total: 4\nHugePages_Free: 0\nHugepagesize: 2048 kB\n")], "memory", "0 of 4 huge pages of 2 MiB are free"),
        (&[("/sys/devices/system/cpu/online", "0,2-3\n")], "cores", "1 is not online; online cores: 0,2-3"),
        (&[("/sys/devices/system/cpu/isolated", "\n")], "core 1", "not isolated"),
        (&[("/sys/devices/system/cpu/nohz_full", "\n")], "core 1", "isolated, but with timer ticks"),
        (&[("/sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,3\n")], "core 1", "shares a physical core with 3"),
        (&[(GOVERNOR, "powersave\n")], "core 1", "its frequency depends on its load (governor powersave)"),
        (&[(&format!("{idle}/latency"), "133\n"), (&format!("{idle}/disable"), "0\n"), (&format!("{idle}/name"), "C6\n")], "core 1", "enters idle state C6, with an exit latency of 133 us"),
        (&[("/proc/irq/24/smp_affinity_list", "0-3\n")], "irq 24", "nic interrupts core 1"),
        (&[("/sys/class/net/eth1/flags", "0x1002\n")], "eth1", "down"),
        (&[("/sys/class/net/eth1/carrier", "0\n")], "eth1", "up, but without carrier"),
        (&[("/sys/class/net/eth1/device/numa_node", "1\n"), ("/sys/devices/system/node/node1/cpulist", "2-3\n")], "eth1", "on NUMA node 1, unlike core 1"),
        (&[(rps, "00000000,0000000e\n")], "eth1", "RPS steers its frames to core 1"),
        (&[("/proc/sys/net/ipv4/conf/eth1/rp_filter", "1\n")], "eth1", "strict reverse path filtering is enabled"),
        (&[("/proc/sys/net/ipv4/conf/eth1/forwarding", "1\n")], "eth1", "the host forwards IP packets received on it"),
    ];
    for (files, subject, found) in cases {
        let found = [(subject.to_string(), found.to_string())];
        let all = problems(&HostFixture::with(files), &setup()).into_iter();
        let all: Vec<_> = all.map(|(subject, found, _)| (subject, found)).collect();
        assert_eq!(all, found);
    }
}

#[test]
fn interrupt_check_uses_effective_affinity() {
    let fixture = HostFixture::with(&[
        ("/proc/irq/24/smp_affinity_list", "0-3\n"),
        ("/proc/irq/24/effective_affinity_list", "3\n"),
    ]);
    assert_eq!(problems(&fixture, &setup()), []);
}

#[test]
fn ports_are_checked_for_existence_and_equal_mtu() {
    let fixture = HostFixture::with(&[("/sys/class/net/eth2/mtu", "9000\n")]);
    let mut setup = setup();
    setup.ports.extend(["eth2".to_owned(), "eth3".to_owned()]);
    let found = problems(&fixture, &setup);
    let subjects: Vec<_> = found
        .iter()
        .map(|(subject, _, state)| (&**subject, *state))
        .collect();
    assert_eq!(
        subjects,
        [("eth3", Severity::Fails), ("ports", Severity::Costs)]
    );
}

#[test]
fn remedies_can_be_undone() {
    let fixture = HostFixture::with(&[
        (GOVERNOR, "powersave\n"),
        ("/proc/irq/24/smp_affinity_list", "0-3\n"),
        ("/sys/devices/system/cpu/isolated", "\n"),
    ]);
    let (host, journal) = (fixture.host(), fixture.journal());
    let done = apply_remedies(&host, &examine(&host, &setup()), &journal).unwrap();
    assert_eq!(done.len(), 2, "no file isolates a core at run time");
    assert!(done.iter().all(Result::is_ok));
    // A write to a regular file keeps the end of a longer old value, unlike a kernel file.
    assert!(fixture.read(GOVERNOR).starts_with("performance"));
    assert!(
        fixture
            .read("/proc/irq/24/smp_affinity_list")
            .starts_with("0,2-3")
    );
    fixture.put(GOVERNOR, "schedutil");
    apply_remedies(&host, &examine(&host, &setup()), &journal).unwrap();
    let undone = undo(&host, &journal).unwrap();
    assert_eq!(undone.len(), 2);
    assert!(
        fixture.read(GOVERNOR).starts_with("powersave"),
        "the first value is restored"
    );
    assert!(
        fixture
            .read("/proc/irq/24/smp_affinity_list")
            .starts_with("0-3")
    );
    assert!(matches!(
        undo(&host, &journal),
        Err(RemedyError::Nothing(_))
    ));
}

#[test]
fn failed_remedy_is_reported_and_not_recorded() {
    let fixture = HostFixture::with(&[(GOVERNOR, "powersave\n")]);
    let (host, journal) = (fixture.host(), fixture.journal());
    let findings = examine(&host, &setup());
    fs::remove_file(host.path(GOVERNOR)).unwrap();
    let done = apply_remedies(&host, &findings, &journal).unwrap();
    assert!(matches!(&done[..], [Err((file, _))] if file == Path::new(GOVERNOR)));
    assert_eq!(undo(&host, &journal).unwrap().len(), 0);
}

#[test]
fn unreadable_journal_prevents_remedies() {
    let fixture = HostFixture::with(&[(GOVERNOR, "powersave\n"), ("/run/doctor.json", "{")]);
    let (host, journal) = (fixture.host(), fixture.journal());
    let done = apply_remedies(&host, &examine(&host, &setup()), &journal);
    assert!(matches!(done, Err(RemedyError::Unreadable { .. })));
    assert_eq!(
        fixture.read(GOVERNOR),
        "powersave",
        "nothing is written that cannot be undone"
    );
}

#[test]
fn host_without_files_reports_only_missing_tun_and_cores() {
    let root = std::env::temp_dir().join("comporta-doctor-that-is-not-there");
    let findings = examine(&Host::below(root), &SwitchSetup::default());
    let subjects: Vec<_> = findings.iter().map(|finding| &*finding.subject).collect();
    assert_eq!(subjects, ["tun", "cores"]);
}
