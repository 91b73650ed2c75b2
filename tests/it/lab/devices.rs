//! Devices under test as the lab sets them up: Comporta with several hosts, bridges, chains and
//! modes, external switches, and the cleanup after a killed run.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{
    Bench, DeviceKind, DeviceOptions, Failure, Host, Mode, Namespace, PortKind, Process, Setup,
    Topology,
};

use crate::lab::{lab_program, run_lab};
use crate::support::command::{comporta_binary, comporta_program};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// Longest duration of a command of the lab, with one device.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Directory in which the lab records the interfaces that it uses.
const STATE_DIRECTORY: &str = "/run/comporta-lab";

pub(crate) const TESTS: &[SystemTest] = tests![
    comporta_forwards_in_topologies_without_a_controller,
    comporta_forwards_jumbo_frames_and_vlan_ports,
    lab_measures_devices_with_vlan_ports,
    lab_measures_the_delay_of_an_impaired_device,
    interfaces_are_returned_after_a_run_and_an_interruption,
    clean_command_removes_the_state_of_a_killed_run,
];

fn comporta_forwards_in_topologies_without_a_controller(context: &TestContext) -> TestResult {
    for topology in [
        Topology::star(6)?,
        Topology::parallel(3)?,
        Topology::chain(1)?,
        Topology::chain(2)?,
        Topology::chain(4)?,
        Topology::chain(8)?,
    ] {
        expect_delivery(context, DeviceKind::Comporta, topology, 5)?;
    }
    for kind in [DeviceKind::ComportaXdp, DeviceKind::ComportaTap] {
        expect_delivery(context, kind, Topology::parallel(2)?, 5)?;
    }
    Ok(())
}

fn comporta_forwards_jumbo_frames_and_vlan_ports(context: &TestContext) -> TestResult {
    let jumbo = Topology::default().with_mtu(9_216)?;
    // An IPv4 header of 20 bytes and a UDP header of 8 bytes complete the packet.
    for kind in [DeviceKind::Comporta, DeviceKind::ComportaTap] {
        expect_delivery(context, kind, jumbo, 9_188)?;
    }
    let vlans = Topology::default().with_ports(PortKind::Vlan);
    expect_delivery(context, DeviceKind::Comporta, vlans, 1_472)?;
    expect_delivery(context, DeviceKind::ComportaXdp, vlans, 1_472)
}

/// Asserts that a datagram of `length` bytes crosses the device from the first host to the second,
/// and from the last to the one before it.
fn expect_delivery(
    context: &TestContext,
    kind: DeviceKind,
    topology: Topology,
    length: usize,
) -> TestResult {
    let options = DeviceOptions {
        kind,
        directory: context.unique_path(kind.name()),
        cores: Vec::new(),
        comporta: comporta_binary(),
    };
    fs::create_dir_all(&options.directory)?;
    let setup = Setup {
        topology,
        mode: Some(Mode::Legacy),
        ..Setup::default()
    };
    let bench = Bench::build_as(&context.spawner, &context.clock, &options, &setup)?;
    let hosts = bench.hosts();
    let last = hosts.len() - 1;
    for (from, to) in [(0, 1), (last, last - 1)] {
        let (from, to) = (&hosts[from], &hosts[to]);
        let condition = format!("{length} bytes to cross {kind} as {topology}");
        context.wait_until(&condition, || is_delivered(from, to, length))?;
    }
    Ok(())
}

fn is_delivered(from: &Host, to: &Host, length: usize) -> Result<bool, Failure> {
    let open = |host: &Host, port| {
        let bound = host
            .namespace
            .run(|| UdpSocket::bind((host.address, port)))?;
        bound.map_err(Failure::to("open a socket"))
    };
    let (listener, sender) = (open(to, 7)?, open(from, 0)?);
    let failure = || Failure::to("send a datagram");
    listener
        .set_read_timeout(Some(Duration::from_millis(500)))
        .map_err(failure())?;
    let sent = sender.send_to(&vec![b'h'; length], (to.address, 7));
    sent.map_err(failure())?;
    let mut buffer = vec![0; length + 1];
    Ok(listener
        .recv(&mut buffer)
        .is_ok_and(|received| received == length))
}

/// Arguments of an echo experiment with one frame size and one kind of rules.
fn echo_arguments(device: &str, out: &Path, packets: u32) -> String {
    format!(
        "run echo --quick --runs 1 --packets {packets} --match port --frame-bytes 64 \
         --device {device} --no-calibration --out {}",
        out.display()
    )
}

fn lab_measures_devices_with_vlan_ports(context: &TestContext) -> TestResult {
    let out = context.unique_path("vlans");
    run_lab(
        context,
        WAIT_LIMIT,
        &echo_arguments("vlan-bridge,ovs-vlan-bridge", &out, 200),
    )?;
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    let trials = records
        .lines()
        .filter(|line| line.contains(r#""kind":"trial""#));
    assert_eq!(trials.count(), 2, "{records}");
    assert!(!records.contains(r#""void":true"#), "{records}");
    Ok(())
}

fn lab_measures_the_delay_of_an_impaired_device(context: &TestContext) -> TestResult {
    let file = context.unique_path("slow.toml");
    fs::write(&file, "[forth]\ndelay_us = 3000\n[back]\ndelay_us = 2000\n")?;
    let out = context.unique_path("slow");
    let device = format!("impaired:{}", file.display());
    run_lab(context, WAIT_LIMIT, &echo_arguments(&device, &out, 100))?;
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    let (_, trips) = records
        .split_once(r#""round_trip_ns":["#)
        .ok_or("the record has no round trips")?;
    let (trips, _) = trips
        .split_once(']')
        .ok_or("the list of round trips has no end")?;
    let trips: Vec<u64> = trips
        .split(',')
        .filter_map(|trip| trip.parse().ok())
        .collect();
    assert!(trips.len() >= 95, "{} round trips", trips.len());
    assert!(trips.iter().all(|trip| *trip >= 5_000_000), "{trips:?}");
    assert!(
        records.contains("forth: delay 3ms; back: delay 2ms; seed 1"),
        "{records}"
    );
    Ok(())
}

fn file_stem(file: &Path) -> String {
    let stem = file.file_stem().unwrap_or_default();
    stem.to_string_lossy().into_owned()
}

/// An external switch, with two interfaces connected to it.
struct ExternalSwitch {
    interfaces: Namespace,
    description: PathBuf,
    _switch: Process,
}

impl ExternalSwitch {
    fn new(context: &TestContext) -> Result<Self, Failure> {
        let (interfaces, switch_namespace) = (Namespace::new()?, Namespace::new()?);
        for port in ["1", "2"] {
            let (interface, far) = (format!("nic{port}"), format!("p{port}"));
            interfaces.join(&interface, &switch_namespace, &far)?;
            switch_namespace.set_up(&far)?;
        }
        let words = "switch --bridge br0 --port p1 --port p2 --fail-mode standalone --rundir";
        let program = comporta_program()
            .args(words.split_whitespace())
            .arg(context.directory().join("run"))
            .log(context.unique_path("switch.log"))
            .inside(&switch_namespace);
        let namespace = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            interfaces.as_fd().as_raw_fd()
        );
        let description = context.unique_path("edge.toml");
        let text = format!(
            "brand = 'Acme'\nmodel = 'Edge'\nports = ['{namespace}:nic1', '{namespace}:nic2']\n"
        );
        fs::write(&description, text).map_err(Failure::to("write a device description"))?;
        Ok(Self {
            interfaces,
            description,
            _switch: context.spawner.start(program)?,
        })
    }

    /// Addresses of the interfaces that are in their original namespace.
    fn original_addresses(&self) -> Vec<[u8; 6]> {
        let interfaces = ["nic1", "nic2"].into_iter();
        interfaces
            .flat_map(|interface| self.interfaces.mac(interface))
            .collect()
    }

    /// Name of the device in the lab.
    fn name(&self) -> String {
        file_stem(&self.description)
    }

    /// Starts a run of several minutes, and waits until it uses the interfaces.
    fn start_long_run(
        &self,
        context: &TestContext,
        name: &str,
    ) -> Result<(Process, PathBuf), Failure> {
        let out = context.unique_path(name);
        let device = format!("external:{}", self.description.display());
        let words = echo_arguments(&device, &out, 1_000_000);
        let program = lab_program(&words).log(context.unique_path("lab.log"));
        let process = context.spawner.start(program)?;
        let record =
            Path::new(STATE_DIRECTORY).join(format!("{}-{}.json", process.id(), self.name()));
        context.wait_until("the run to use the interfaces", || {
            let begun = fs::metadata(out.join("records.jsonl"));
            let begun = begun.is_ok_and(|records| records.len() > 0);
            Ok(begun && record.exists() && self.original_addresses().is_empty())
        })?;
        Ok((process, record))
    }
}

fn interfaces_are_returned_after_a_run_and_an_interruption(context: &TestContext) -> TestResult {
    let external = ExternalSwitch::new(context)?;
    let before = external.original_addresses();
    assert_eq!(before.len(), 2);
    let device = format!("external:{}", external.description.display());
    let listed = run_lab(context, WAIT_LIMIT, &format!("devices {device} --json"))?;
    let named = format!(r#""name": "{}""#, external.name());
    assert!(
        listed.contains(&named) && listed.contains(r#""brand": "Acme""#),
        "{listed}"
    );
    let out = context.unique_path("whole");
    run_lab(context, WAIT_LIMIT, &echo_arguments(&device, &out, 200))?;
    assert_eq!(external.original_addresses(), before);
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    assert!(records.contains(r#""model":"Edge""#) && !records.contains(r#""void":true"#));
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(report.contains("Acme Edge"), "the report names the device");

    let (mut run, record) = external.start_long_run(context, "interrupted")?;
    let status = run.stop()?;
    assert_eq!(status.code(), Some(130), "{}", run.last_words());
    assert_eq!(external.original_addresses(), before);
    assert!(!record.exists());
    Ok(())
}

fn clean_command_removes_the_state_of_a_killed_run(context: &TestContext) -> TestResult {
    let external = ExternalSwitch::new(context)?;
    let (mut run, record) = external.start_long_run(context, "killed")?;
    run.kill()?;
    assert!(record.exists(), "a killed run leaves its record");
    let output = run_lab(context, WAIT_LIMIT, "clean")?;
    assert!(!record.exists(), "{output}");
    // These interfaces are virtual: the kernel removed them with their namespaces.
    let is_reported_gone = |interface: &str| {
        let mut lines = output.lines().filter(|line| line.contains(interface));
        lines.any(|line| line.contains("no longer exists"))
    };
    assert!(
        is_reported_gone(":nic1") && is_reported_gone(":nic2"),
        "{output}"
    );
    let second_output = run_lab(context, WAIT_LIMIT, "clean")?;
    assert!(!second_output.contains(":nic1"), "{second_output}");
    Ok(())
}
