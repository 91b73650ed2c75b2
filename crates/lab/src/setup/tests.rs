//! Test setups with Open vSwitch: several bridges, chains, modes, and an external switch.

use std::os::fd::AsRawFd;

use testbed::{Namespace, OpenVswitch, Requirement, Site, Spawner};

use super::*;
use crate::Interrupt;
use crate::catalogue::EXPERIMENTS;
use crate::cores::Cores;
use crate::probe::{EchoRequest, Prober, echo};
use crate::tools::Paths;

/// Returns true if the tests run as root; with root, Open vSwitch is required.
fn can_have_ovs() -> bool {
    let required: Vec<Requirement> = DeviceKind::Ovs.requirements("comporta".as_ref());
    let checked = testbed::check(&required);
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {checked:?}");
        return false;
    }
    checked.unwrap();
    true
}

struct Lab {
    paths: Paths,
    cores: Cores,
    spawner: Spawner,
    clock: Clock,
    interrupt: Interrupt,
}

impl Lab {
    fn new(name: &str) -> Self {
        let name = format!("setup-{}-{name}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(&directory).unwrap();
        Self {
            paths: Paths {
                directory,
                comporta: PathBuf::new(),
            },
            cores: Cores {
                tester: Vec::new(),
                device: Vec::new(),
            },
            spawner: Spawner::new().unwrap(),
            clock: Clock::start(),
            interrupt: Interrupt::never(),
        }
    }

    fn tools(&self) -> Tools<'_> {
        Tools {
            clock: &self.clock,
            spawner: &self.spawner,
            cores: &self.cores,
            interrupt: &self.interrupt,
            paths: &self.paths,
        }
    }

    fn build(&self, request: SetupRequest) -> Result<TestSetup, LabError> {
        TestSetup::build(request, &self.tools())
    }

    /// Sends 100 echoes between client and server, and returns the number of replies and the
    /// counters of the rules.
    fn echoes(&self, setup: &mut TestSetup) -> (usize, Option<OpenFlowEvidence>) {
        setup.prepare(MatchSet::Udp).unwrap();
        let request = EchoRequest {
            frame_bytes: 64,
            warm_up: 20,
            packets: 100,
            prober: Prober::Solo,
        };
        let clock = &self.clock;
        let echoes = echo(&setup.bench, request, &[], clock, &self.interrupt).unwrap();
        let enough = |evidence: &OpenFlowEvidence| evidence.towards_client >= echoes.served;
        let evidence = setup.evidence(clock, enough).unwrap();
        (echoes.round_trip_ns.iter().flatten().count(), evidence)
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.paths.directory).unwrap();
    }
}

fn request(kind: DeviceKind, topology: Topology, mode: Option<Mode>) -> SetupRequest {
    SetupRequest {
        mode,
        topology,
        ..SetupRequest::of(kind)
    }
}

#[test]
fn restarted_device_connects_and_has_its_rules() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("killed");
    let mut setup = lab.build(SetupRequest::of(DeviceKind::Ovs)).unwrap();
    let before = setup.bench.device().processes();
    let restarted = setup.restart(testbed::StopSignal::Kill, MatchSet::Port, &lab.tools());
    let restarted = restarted.unwrap();
    let connected = restarted.connected.unwrap();
    let rules_installed = restarted.rules_installed.unwrap();
    assert!(restarted.stopped.ended <= connected && connected <= rules_installed);
    assert_ne!(setup.bench.device().processes(), before);
    let (replies, evidence) = lab.echoes(&mut setup);
    assert!(replies > 0 && evidence.unwrap().towards_server > 0);
}

#[test]
fn bridges_have_their_own_controllers_and_rules() {
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
        let mut setup = lab.build(request).unwrap();
        assert_eq!(setup.controllers().len(), bridges, "{topology}");
        let (replies, evidence) = lab.echoes(&mut setup);
        let evidence = evidence.unwrap();
        assert!(replies >= 95, "{topology}: {replies}");
        assert!(
            evidence.towards_server >= 115 && evidence.packet_ins == 0,
            "{topology}: {evidence:?}"
        );
    }
}

#[test]
fn device_in_legacy_mode_forwards_without_a_controller() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("legacy");
    let legacy = request(DeviceKind::Ovs, Topology::default(), Some(Mode::Legacy));
    let mut setup = lab.build(legacy).unwrap();
    let (replies, evidence) = lab.echoes(&mut setup);
    assert!(
        replies >= 95 && evidence.is_none(),
        "{replies} {evidence:?}"
    );
    let record = setup.record().unwrap();
    assert!(!record.openflow);
    assert_eq!(record.mode.as_deref(), Some("legacy"));
    let bridge = request(
        DeviceKind::LinuxBridge,
        Topology::default(),
        Some(Mode::OpenFlow),
    );
    let error = lab.build(bridge).err().unwrap();
    assert_eq!(
        error.to_string(),
        "device linux-bridge has no mode openflow"
    );
}

/// External switch: two network interfaces of a namespace are connected to it, and it connects to
/// a controller in another namespace.
struct ExternalSwitch {
    interfaces: Namespace,
    management: Namespace,
    _switch: OpenVswitch,
}

impl ExternalSwitch {
    fn new(lab: &Lab, directory: &Path) -> Self {
        let [interfaces, management, inside] = [(); 3].map(|()| Namespace::new().unwrap());
        for port in ["1", "2"] {
            let (interface, far) = (format!("nic{port}"), format!("port{port}"));
            interfaces.join(&interface, &inside, &far).unwrap();
            inside.set_up(&far).unwrap();
            interfaces.set_up(&interface).unwrap();
            // The switch is a process, which does not complete checksums.
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
            interfaces,
            management,
            _switch: switch,
        }
    }

    /// Returns the description file of its user.
    fn description(&self, directory: &Path) -> String {
        let path =
            |namespace: &Namespace| format!("/proc/self/fd/{}", namespace.as_fd().as_raw_fd());
        let (interfaces, management) = (path(&self.interfaces), path(&self.management));
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
ports = ["{interfaces}:nic1", "{interfaces}:nic2"]
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

    /// Starts the switch, and returns it with the device of its description file.
    fn start(lab: &Lab) -> (Self, DeviceKind) {
        let directory = lab.paths.directory.join("switch");
        fs::create_dir_all(&directory).unwrap();
        let switch = Self::new(lab, &directory);
        let file = lab.paths.directory.join("edge.toml");
        fs::write(&file, switch.description(&directory)).unwrap();
        let kind = format!("external:{}", file.display()).parse().unwrap();
        (switch, kind)
    }
}

#[test]
fn external_switch_is_measured_in_both_modes_and_returns_its_interfaces() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("external");
    let (switch, kind) = ExternalSwitch::start(&lab);
    let interfaces = || ["nic1", "nic2"].map(|name| switch.interfaces.mac(name).ok());
    let before = interfaces();
    assert!(before.iter().all(Option::is_some));
    for mode in Mode::ALL {
        let jumbo = Topology::default().with_mtu(1_400).unwrap();
        let mut setup = lab.build(request(kind, jumbo, Some(mode))).unwrap();
        assert_eq!(interfaces(), [None, None], "the lab has moved them");
        let (replies, evidence) = lab.echoes(&mut setup);
        assert!(replies >= 95, "{mode}: {replies}");
        assert_eq!(evidence.is_some(), mode == Mode::OpenFlow);
        if let Some(evidence) = evidence {
            assert!(
                evidence.towards_server >= 115 && evidence.packet_ins == 0,
                "{evidence:?}"
            );
        }
        let record = setup.record().unwrap();
        assert_eq!(record.name, "edge");
        assert_eq!(record.version, "Acme Edge 2, 1.2.3");
        let inventory = record.inventory.unwrap();
        assert_eq!(inventory.price_per_port(), Some(49.5));
        drop(setup);
        assert_eq!(interfaces(), before);
        assert_eq!(switch.interfaces.mtu("nic1").unwrap(), 1_500);
        assert!(switch.interfaces.is_up("nic2").unwrap());
    }
}

#[test]
fn control_plane_of_an_external_switch_is_measured() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("external-control");
    let (_switch, kind) = ExternalSwitch::start(&lab);
    let openflow = request(kind, Topology::default(), Some(Mode::OpenFlow));
    let mut setup = lab.build(openflow).unwrap();
    // The switch does not listen: the experiments use the connection of the setup's controller.
    for (name, figure) in [
        ("control-echo", "p50_us"),
        ("add-flow", "last_ms"),
        ("packet-in", "p50_us"),
        ("flow-stats", "answer_p50_us"),
    ] {
        let mut all = EXPERIMENTS.iter();
        let experiment = all.find(|one| one.description.name == name).unwrap();
        let settings = record::Settings {
            profile: record::Profile::Quick,
            ..Default::default()
        };
        let point = &settings.points(&experiment.description).unwrap()[0];
        assert!((experiment.applies_to)(kind, point), "{name}");
        let measured = (experiment.measure)(point, &mut setup, &lab.tools()).unwrap();
        let reading = measured.reading;
        assert!(reading.figures.contains_key(figure), "{name}: {reading:?}");
    }
    // The connection is returned, and the device has no rules.
    assert!(setup.controller().unwrap().counts().unwrap().is_empty());
}

#[test]
fn failed_setup_of_an_external_switch_returns_its_interfaces() {
    if !can_have_ovs() {
        return;
    }
    let lab = Lab::new("silent");
    let [interfaces, far] = [(); 2].map(|()| Namespace::new().unwrap());
    for interface in ["nic1", "nic2"] {
        interfaces.join(interface, &far, interface).unwrap();
    }
    let path = format!("/proc/self/fd/{}", interfaces.as_fd().as_raw_fd());
    let text = format!(
        "brand = 'Acme'\nmodel = 'Mute'\nports = ['{path}:nic1', '{path}:nic2']\n\
         [modes]\nlegacy = ['false']\n"
    );
    let file = lab.paths.directory.join("mute.toml");
    fs::write(&file, text).unwrap();
    let kind: DeviceKind = format!("external:{}", file.display()).parse().unwrap();
    let error = |request| lab.build(request).err().unwrap().to_string();
    let failed = error(SetupRequest::of(kind));
    assert!(failed.starts_with("mute: false failed"), "{failed}");
    assert!(interfaces.mac("nic1").is_ok() && interfaces.mac("nic2").is_ok());
    let openflow = request(kind, Topology::default(), Some(Mode::OpenFlow));
    assert_eq!(error(openflow), "device mute has no mode openflow");
    let four = request(kind, Topology::star(4).unwrap(), None);
    let expected = "mute: mute has 2 network cards, and 4 are needed";
    assert_eq!(error(four), expected);
}
