//! Devices under test as the lab sets them up: hosts, bridges, chains and modes of this
//! switch, switches of the user's own, and what is left of a run that was killed.

use std::fs;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{
    Bench, DeviceKind, DeviceOptions, Failure, Host, Mode, Namespace, PortKind, Process, Program,
    Setup, Topology,
};

use crate::support::command::{CommandOutput, comporta_binary};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};

/// How long the lab may take for hosts, a device, and some round trips.
const WAIT_LIMIT: Duration = Duration::from_secs(120);

/// Where the lab writes down what it takes.
const STATE: &str = "/run/comporta-lab";

pub(crate) const TESTS: &[SystemTest] = tests![
    this_switch_has_many_hosts_bridges_and_chains_without_a_controller,
    this_switch_carries_large_frames_and_has_vlans_for_ports,
    the_lab_measures_devices_behind_vlans,
    the_lab_finds_the_delay_of_an_impaired_device,
    cards_are_given_back_after_a_run_and_after_an_interruption,
    what_a_killed_run_leaves_is_cleaned_up,
];

fn this_switch_has_many_hosts_bridges_and_chains_without_a_controller(
    context: &TestContext,
) -> TestResult {
    for topology in [
        Topology::star(6)?,
        Topology::parallel(3)?,
        Topology::chain(1)?,
        Topology::chain(2)?,
        Topology::chain(4)?,
        Topology::chain(8)?,
    ] {
        passes(context, DeviceKind::Comporta, topology, 5)?;
    }
    for kind in [DeviceKind::ComportaXdp, DeviceKind::ComportaTap] {
        passes(context, kind, Topology::parallel(2)?, 5)?;
    }
    Ok(())
}

fn this_switch_carries_large_frames_and_has_vlans_for_ports(context: &TestContext) -> TestResult {
    let jumbo = Topology::default().with_mtu(9_216)?;
    // An IPv4 header of 20 bytes and one of UDP of 8 fill it.
    for kind in [DeviceKind::Comporta, DeviceKind::ComportaTap] {
        passes(context, kind, jumbo, 9_188)?;
    }
    let vlans = Topology::default().with_ports(PortKind::Vlan);
    passes(context, DeviceKind::Comporta, vlans, 1_472)?;
    passes(context, DeviceKind::ComportaXdp, vlans, 1_472)
}

/// Whether a datagram of `length` bytes crosses the device from the first host to the second,
/// and from the last to the one before it.
fn passes(
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
        let what = format!("{length} bytes to cross {kind} as {topology}");
        context.wait_until(&what, || arrives(from, to, length))?;
    }
    Ok(())
}

fn arrives(from: &Host, to: &Host, length: usize) -> Result<bool, Failure> {
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
    let mut room = vec![0; length + 1];
    Ok(listener.recv(&mut room).is_ok_and(|came| came == length))
}

fn lab(context: &TestContext, words: &str) -> Result<String, Failure> {
    CommandOutput::run_within(WAIT_LIMIT, context, lab_program(words))?.expect_success()
}

fn lab_program(words: &str) -> Program<'static> {
    let words = words.split_whitespace();
    Program::new(comporta_binary()).arg("lab").args(words)
}

/// Echoes of one size by rules of one kind.
fn run(device: &str, out: &Path, packets: u32) -> String {
    format!(
        "run echo --quick --runs 1 --packets {packets} --match port --frame-bytes 64 \
         --device {device} --no-calibration --out {}",
        out.display()
    )
}

fn the_lab_measures_devices_behind_vlans(context: &TestContext) -> TestResult {
    let out = context.unique_path("vlans");
    lab(context, &run("vlan-bridge,ovs-vlan-bridge", &out, 200))?;
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    let trials = records
        .lines()
        .filter(|line| line.contains(r#""kind":"trial""#));
    assert_eq!(trials.count(), 2, "{records}");
    assert!(!records.contains(r#""void":true"#), "{records}");
    Ok(())
}

fn the_lab_finds_the_delay_of_an_impaired_device(context: &TestContext) -> TestResult {
    let file = context.unique_path("slow.toml");
    fs::write(&file, "[forth]\ndelay_us = 3000\n[back]\ndelay_us = 2000\n")?;
    let out = context.unique_path("slow");
    let device = format!("impaired:{}", file.display());
    lab(context, &run(&device, &out, 100))?;
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    let (_, trips) = records
        .split_once(r#""round_trip_ns":["#)
        .ok_or("no echoes")?;
    let (trips, _) = trips.split_once(']').ok_or("no end of echoes")?;
    let trips: Vec<u64> = trips
        .split(',')
        .filter_map(|trip| trip.parse().ok())
        .collect();
    assert!(trips.len() >= 95, "{} came back", trips.len());
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

/// A switch of the user's, with two cards that lead to it.
struct Shelf {
    cards: Namespace,
    described: PathBuf,
    _switch: Process,
}

impl Shelf {
    fn new(context: &TestContext) -> Result<Self, Failure> {
        let (cards, inside) = (Namespace::new()?, Namespace::new()?);
        for port in ["1", "2"] {
            let (card, far) = (format!("nic{port}"), format!("p{port}"));
            cards.join(&card, &inside, &far)?;
            inside.set_up(&far)?;
        }
        let words = "switch --bridge br0 --port p1 --port p2 --fail-mode standalone --rundir";
        let program = Program::new(comporta_binary())
            .args(words.split_whitespace())
            .arg(context.directory().join("run"))
            .log(context.unique_path("switch.log"))
            .inside(&inside);
        let place = format!(
            "/proc/{}/fd/{}",
            std::process::id(),
            cards.as_fd().as_raw_fd()
        );
        let described = context.unique_path("edge.toml");
        let text =
            format!("brand = 'Acme'\nmodel = 'Edge'\nports = ['{place}:nic1', '{place}:nic2']\n");
        fs::write(&described, text).map_err(Failure::to("describe a switch"))?;
        Ok(Self {
            cards,
            described,
            _switch: context.spawner.start(program)?,
        })
    }

    /// The address of each card that is where it belongs.
    fn at_home(&self) -> Vec<[u8; 6]> {
        let cards = ["nic1", "nic2"].into_iter();
        cards.flat_map(|card| self.cards.mac(card)).collect()
    }

    /// What the lab calls it.
    fn name(&self) -> String {
        file_stem(&self.described)
    }

    /// Starts a run that would take minutes, and waits until it has the cards.
    fn long_run(&self, context: &TestContext, name: &str) -> Result<(Process, PathBuf), Failure> {
        let out = context.unique_path(name);
        let device = format!("external:{}", self.described.display());
        let words = run(&device, &out, 1_000_000);
        let program = lab_program(&words).log(context.unique_path("lab.log"));
        let process = context.spawner.start(program)?;
        let written = Path::new(STATE).join(format!("{}-{}.json", process.id(), self.name()));
        context.wait_until("the run to take the cards", || {
            let begun = fs::metadata(out.join("records.jsonl"));
            let begun = begun.is_ok_and(|records| records.len() > 0);
            Ok(begun && written.exists() && self.at_home().is_empty())
        })?;
        Ok((process, written))
    }
}

fn cards_are_given_back_after_a_run_and_after_an_interruption(context: &TestContext) -> TestResult {
    let shelf = Shelf::new(context)?;
    let before = shelf.at_home();
    assert_eq!(before.len(), 2);
    let device = format!("external:{}", shelf.described.display());
    let listed = lab(context, &format!("devices {device} --json"))?;
    let named = format!(r#""name": "{}""#, shelf.name());
    assert!(
        listed.contains(&named) && listed.contains(r#""brand": "Acme""#),
        "{listed}"
    );
    let out = context.unique_path("whole");
    lab(context, &run(&device, &out, 200))?;
    assert_eq!(shelf.at_home(), before);
    let records = fs::read_to_string(out.join("records.jsonl"))?;
    assert!(records.contains(r#""model":"Edge""#) && !records.contains(r#""void":true"#));
    let report = fs::read_to_string(out.join("report.html"))?;
    assert!(report.contains("Acme Edge"), "its inventory is reported");

    let (mut run, written) = shelf.long_run(context, "interrupted")?;
    let ended = run.stop()?;
    assert_eq!(ended.code(), Some(130), "{}", run.last_words());
    assert_eq!(shelf.at_home(), before);
    assert!(!written.exists());
    Ok(())
}

fn what_a_killed_run_leaves_is_cleaned_up(context: &TestContext) -> TestResult {
    let shelf = Shelf::new(context)?;
    let (mut run, written) = shelf.long_run(context, "killed")?;
    run.kill()?;
    assert!(written.exists(), "nobody was there to strike it out");
    let said = lab(context, "clean")?;
    assert!(!written.exists(), "{said}");
    // These cards are virtual: the kernel ended them with their namespaces.
    let gone = |card: &str| {
        let mut lines = said.lines().filter(|line| line.contains(card));
        lines.any(|line| line.contains("is gone"))
    };
    assert!(gone(":nic1") && gone(":nic2"), "{said}");
    let again = lab(context, "clean")?;
    assert!(!again.contains(":nic1"), "{again}");
    Ok(())
}
