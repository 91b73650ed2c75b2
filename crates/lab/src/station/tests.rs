//! Stations of a real Open vSwitch: several bridges, chains, modes, and as a switch that is
//! there already.

use std::os::fd::AsRawFd;

use record::Prober;
use testbed::{Namespace, OpenVswitch, Requirement, Site};

use super::*;
use crate::Interrupt;
use crate::probe::{EchoRequest, echo};

/// Whether this machine can have Open vSwitch. What is missing for root is a fault.
fn can_have_ovs() -> bool {
    let wanted: Vec<Requirement> = DeviceKind::Ovs.requirements("comporta".as_ref());
    let checked = testbed::check(&wanted);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {checked:?}");
        return false;
    }
    checked.unwrap();
    true
}

struct Lab {
    options: Options,
    cores: Cores,
    spawner: Spawner,
    clock: Clock,
}

impl Lab {
    fn new(name: &str) -> Self {
        let name = format!("station-{}-{name}", std::process::id());
        let options = Options {
            directory: std::env::temp_dir().join(name),
            ..Options::default()
        };
        fs::create_dir_all(&options.directory).unwrap();
        Self {
            options,
            cores: Cores {
                tester: Vec::new(),
                device: Vec::new(),
            },
            spawner: Spawner::new().unwrap(),
            clock: Clock::start(),
        }
    }

    fn station(&self, request: Request) -> Result<Station, LabError> {
        let Self {
            options,
            cores,
            spawner,
            clock,
        } = self;
        Station::build_as(request, options, cores, spawner, clock)
    }

    /// Sends echoes between client and server, and tells how many came back, and what the
    /// device's rules have counted.
    fn echoes(&self, station: &mut Station) -> (usize, Option<OpenFlowEvidence>) {
        station.prepare(MatchSet::Udp).unwrap();
        let request = EchoRequest {
            frame_bytes: 64,
            warm_up: 20,
            packets: 100,
            prober: Prober::Solo,
        };
        let (clock, interrupt) = (&self.clock, Interrupt::never());
        let echoes = echo(&station.bench, request, &[], clock, &interrupt).unwrap();
        let told = station.evidence(clock, |told| told.towards_client >= echoes.served);
        (echoes.round_trip_ns.iter().flatten().count(), told.unwrap())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.options.directory).unwrap();
    }
}

fn request(kind: DeviceKind, topology: Topology, mode: Option<Mode>) -> Request {
    Request {
        mode,
        topology,
        ..Request::of(kind)
    }
}

#[test]
fn a_device_that_was_killed_has_called_again_and_has_its_rules() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("killed");
    let mut station = lab.station(Request::of(DeviceKind::Ovs)).unwrap();
    let before = station.bench.device().processes();
    let restarted = station.restart(
        testbed::Ending::Killed,
        MatchSet::Port,
        &lab.spawner,
        &lab.clock,
    );
    let restarted = restarted.unwrap();
    let (called, ruled) = (restarted.called.unwrap(), restarted.ruled.unwrap());
    assert!(restarted.stopped.gone <= called && called <= ruled);
    assert_ne!(station.bench.device().processes(), before);
    let (answered, evidence) = lab.echoes(&mut station);
    assert!(answered > 0 && evidence.unwrap().towards_server > 0);
}

#[test]
fn every_bridge_of_a_device_has_its_controller_and_its_rules() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("bridges");
    for (topology, bridges) in [
        (Topology::parallel(3).unwrap(), 3),
        (Topology::chain(4).unwrap(), 4),
        (Topology::star(4).unwrap(), 1),
    ] {
        let request = request(DeviceKind::Ovs, topology, None);
        let mut station = lab.station(request).unwrap();
        assert_eq!(station.controllers().len(), bridges, "{topology}");
        let (back, told) = lab.echoes(&mut station);
        let told = told.unwrap();
        assert!(back >= 95, "{topology}: {back}");
        assert!(
            told.towards_server >= 115 && told.packet_ins == 0,
            "{topology}: {told:?}"
        );
    }
}

#[test]
fn a_device_without_its_controller_forwards_by_itself() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("legacy");
    let legacy = request(DeviceKind::Ovs, Topology::default(), Some(Mode::Legacy));
    let mut station = lab.station(legacy).unwrap();
    let (back, told) = lab.echoes(&mut station);
    assert!(back >= 95 && told.is_none(), "{back} {told:?}");
    let record = station.record().unwrap();
    assert!(!record.openflow);
    assert_eq!(record.mode.as_deref(), Some("legacy"));
    let bridge = request(
        DeviceKind::LinuxBridge,
        Topology::default(),
        Some(Mode::OpenFlow),
    );
    let refused = lab.station(bridge).err().unwrap();
    assert_eq!(refused.to_string(), "linux-bridge has no mode openflow");
}

/// A switch that nobody but its user knows: two cards in a namespace lead to it, and it calls
/// a controller in another.
struct Shelf {
    cards: Namespace,
    management: Namespace,
    _switch: OpenVswitch,
}

impl Shelf {
    fn new(lab: &Lab, directory: &Path) -> Self {
        let [cards, management, inside] = [(); 3].map(|()| Namespace::new().unwrap());
        for port in ["1", "2"] {
            let (card, far) = (format!("nic{port}"), format!("port{port}"));
            cards.join(&card, &inside, &far).unwrap();
            inside.set_up(&far).unwrap();
            cards.set_up(&card).unwrap();
            // The switch is a process, which knows nothing of sums that are still to be made.
            let off = testbed::DeviceOffload::TxChecksum;
            inside.set_offload(&far, off, false).unwrap();
        }
        management.join("eth0", &inside, "mgmt").unwrap();
        management.set_up("eth0").unwrap();
        inside.set_up("mgmt").unwrap();
        management
            .add_address("eth0", [192, 0, 2, 1].into(), 24)
            .unwrap();
        inside
            .add_address("mgmt", [192, 0, 2, 2].into(), 24)
            .unwrap();
        let site = Site {
            spawner: &lab.spawner,
            inside: &inside,
            directory,
            cores: &[],
        };
        let mut switch = OpenVswitch::start(site, &lab.clock, &[]).unwrap();
        switch
            .vsctl(
                "add-br br0 -- set bridge br0 datapath_type=netdev fail-mode=secure \
                 protocols=OpenFlow13 \
                 -- add-port br0 port1 -- set interface port1 ofport_request=1 \
                 -- add-port br0 port2 -- set interface port2 ofport_request=2",
            )
            .unwrap();
        Self {
            cards,
            management,
            _switch: switch,
        }
    }

    /// What its user writes of it.
    fn description(&self, directory: &Path) -> String {
        let path = |place: &Namespace| format!("/proc/self/fd/{}", place.as_fd().as_raw_fd());
        let (cards, management) = (path(&self.cards), path(&self.management));
        let vsctl = format!(
            "[\"ovs-vsctl\", \"--db=unix:{}/db.sock\", \"--timeout=20\",",
            directory.display()
        );
        format!(
            r#"
brand = "Acme"
model = "Edge 2"
firmware = "1.2.3"
price = 99.0
currency = "USD"
port_count = 2
ports = ["{cards}:nic1", "{cards}:nic2"]
offloads = false

[controller]
listen = "192.0.2.1:6653"
namespace = "{management}"

[modes]
openflow = {vsctl} "set-controller", "br0", "tcp:192.0.2.1:6653", "--", "set-fail-mode", "br0", "secure"]
legacy = {vsctl} "del-controller", "br0", "--", "set-fail-mode", "br0", "standalone"]
"#
        )
    }
}

#[test]
fn a_switch_on_the_shelf_is_measured_in_both_modes_and_its_cards_are_given_back() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("external");
    let directory = lab.options.directory.join("switch");
    fs::create_dir_all(&directory).unwrap();
    let shelf = Shelf::new(&lab, &directory);
    let file = lab.options.directory.join("edge.toml");
    fs::write(&file, shelf.description(&directory)).unwrap();
    let kind: DeviceKind = format!("external:{}", file.display()).parse().unwrap();
    let cards = || ["nic1", "nic2"].map(|card| shelf.cards.mac(card).ok());
    let at_home = cards();
    assert!(at_home.iter().all(Option::is_some));
    for mode in Mode::ALL {
        let jumbo = Topology::default().with_mtu(1_400).unwrap();
        let mut station = lab.station(request(kind, jumbo, Some(mode))).unwrap();
        assert_eq!(cards(), [None, None], "they are lent");
        let (back, told) = lab.echoes(&mut station);
        assert!(back >= 95, "{mode}: {back}");
        assert_eq!(told.is_some(), mode == Mode::OpenFlow);
        if let Some(told) = told {
            assert!(
                told.towards_server >= 115 && told.packet_ins == 0,
                "{told:?}"
            );
        }
        let record = station.record().unwrap();
        assert_eq!(record.name, "edge");
        assert_eq!(record.version, "Acme Edge 2, 1.2.3");
        let inventory = record.inventory.unwrap();
        assert_eq!(inventory.price_per_port(), Some(49.5));
        drop(station);
        assert_eq!(cards(), at_home, "they are given back");
        assert_eq!(shelf.cards.mtu("nic1").unwrap(), 1_500);
        assert!(shelf.cards.is_up("nic2").unwrap());
    }
}

#[test]
fn the_control_plane_of_a_switch_on_the_shelf_is_measured() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("external-control");
    let directory = lab.options.directory.join("switch");
    fs::create_dir_all(&directory).unwrap();
    let shelf = Shelf::new(&lab, &directory);
    let file = lab.options.directory.join("edge.toml");
    fs::write(&file, shelf.description(&directory)).unwrap();
    let kind: DeviceKind = format!("external:{}", file.display()).parse().unwrap();
    let mode = Some(Mode::OpenFlow);
    let mut station = lab
        .station(request(kind, Topology::default(), mode))
        .unwrap();
    let (interrupt, parameters) = (Interrupt::never(), record::Parameters::default());
    let tools = crate::scenario::Tools {
        clock: &lab.clock,
        spawner: &lab.spawner,
        cores: &lab.cores,
        interrupt: &interrupt,
        parameters: &parameters,
        options: &lab.options,
    };
    // It has called, and listens nowhere: the connection is its controller's.
    for (name, figure) in [
        ("control-echo", "p50_us"),
        ("add-flow", "last_ms"),
        ("packet-in", "p50_us"),
        ("flow-stats", "answer_p50_us"),
    ] {
        let all = crate::catalogue::EXPERIMENTS.iter();
        let experiment = all
            .copied()
            .find(|one| one.description.name == name)
            .unwrap();
        let settings = record::Settings {
            profile: record::Profile::Quick,
            ..Default::default()
        };
        let point = &settings.points(&experiment.description).unwrap()[0];
        assert!((experiment.takes)(kind, point), "{name}");
        let measured = (experiment.measure)(point, &mut station, &tools).unwrap();
        let record::Outcome::Reading(reading) = measured.outcome else {
            panic!("{name} has another outcome");
        };
        assert!(reading.figures.contains_key(figure), "{name}: {reading:?}");
    }
    // It is given back, and the device has no rule left.
    assert!(station.controller().unwrap().counts().unwrap().is_empty());
}

#[test]
fn a_switch_that_never_calls_gives_its_cards_back() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("silent");
    let [cards, far] = [(); 2].map(|()| Namespace::new().unwrap());
    for card in ["nic1", "nic2"] {
        cards.join(card, &far, card).unwrap();
    }
    let place = format!("/proc/self/fd/{}", cards.as_fd().as_raw_fd());
    let text = format!(
        "brand = 'Acme'\nmodel = 'Mute'\nports = ['{place}:nic1', '{place}:nic2']\n\
         [modes]\nlegacy = ['false']\n"
    );
    let file = lab.options.directory.join("mute.toml");
    fs::write(&file, text).unwrap();
    let kind: DeviceKind = format!("external:{}", file.display()).parse().unwrap();
    let failed = lab.station(Request::of(kind)).err().unwrap().to_string();
    assert!(failed.starts_with("mute: false failed"), "{failed}");
    assert!(cards.mac("nic1").is_ok() && cards.mac("nic2").is_ok());
    let asked = request(kind, Topology::default(), Some(Mode::OpenFlow));
    let refused = lab.station(asked).err().unwrap().to_string();
    assert_eq!(refused, "mute has no mode openflow");
    let wide = request(kind, Topology::star(4).unwrap(), None);
    let refused = lab.station(wide).err().unwrap().to_string();
    assert_eq!(refused, "mute: mute has 2 network cards, and 4 are needed");
}
