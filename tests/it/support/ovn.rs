//! OVN over several chassis: its databases and `ovn-northd`, and on each chassis a database, a
//! switch and `ovn-controller` in a network namespace of their own.
//!
//! ```text
//!    host 1   host 2                 host 3
//!      |p1      |p2                    |p3
//!    +--------------+            +--------------+
//!    | chassis 1    |            | chassis 2    |
//!    +--------------+            +--------------+
//!  eth0|        ext0|          eth0|        ext0|
//!      |            +---- outside -|------------+---- host 254, 192.0.2.254
//!      +----------- underlay ------+                  (a physical network)
//!   172.16.0.1                172.16.0.2
//! ```
//!
//! Geneve packets cross the underlay. The outside network is the physical network `phys` of a
//! localnet port.

use std::fs;
use std::net::Ipv4Addr;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

use testbed::{Failure, Namespace, Process, Program, Requirement};

use crate::support::command::{CommandOutput, program};
use crate::support::context::{TestContext, TestError};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

/// Programs of OVN.
pub(crate) const REQUIREMENTS: [Requirement; 2] = [
    Requirement::Program {
        program: "ovn-northd",
        package: "ovn-central",
    },
    Requirement::Program {
        program: "ovn-controller",
        package: "ovn-host",
    },
];

/// The northbound and the southbound database: socket and schema in Debian.
const DATABASES: [(&str, &str); 2] = [
    ("nb", "/usr/share/ovn/ovn-nb.ovsschema"),
    ("sb", "/usr/share/ovn/ovn-sb.ovsschema"),
];

/// MTU of the underlay: that of hosts, and the headers of Geneve by IPv4 with OVN's option.
const UNDERLAY_MTU: u32 = 1500 + 58;

/// Number of the host outside of OVN.
const OUTSIDE_HOST: u8 = 254;

/// Address of the host outside of OVN.
pub(crate) const OUTSIDE: Ipv4Addr = Ipv4Addr::new(192, 0, 2, OUTSIDE_HOST);

/// Lines of the logs that are no failures: `ovn-controller` lacks plug-ins in Debian, a gateway's
/// port has no interface, and a turn takes long on a busy machine.
const ACCEPTED_WARNINGS: [&str; 3] = [
    "vif_plug_provider",
    "Trying to release unknown interface cr-",
    "Unreasonably long ",
];

/// The namespaces of the chassis, with their hosts, and the networks that connect them.
pub(crate) struct OvnNetwork<'g> {
    pub(crate) context: &'g TestContext,
    /// Bridge with a port `cN` for each chassis.
    pub(crate) underlay: Namespace,
    /// Bridge with a port `xN` for each chassis.
    pub(crate) outside: Namespace,
    pub(crate) outside_host: TestHost<'g>,
    chassis: Vec<TestNetwork<'g>>,
}

impl<'g> OvnNetwork<'g> {
    /// Creates a namespace for each chassis, with hosts of these numbers.
    pub(crate) fn new(context: &'g TestContext, hosts: &[&[u8]]) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&REQUIREMENTS) {
            return Err(TestError::Skip(missing.to_string()));
        }
        let [underlay, outside] = [Namespace::new()?, Namespace::new()?];
        let mut outside_host = TestHost::attach(context, OUTSIDE_HOST, &outside)?;
        outside_host.move_to(OUTSIDE, None)?;
        let mut chassis = Vec::new();
        let (mut underlay_ports, mut outside_ports) = (Vec::new(), vec!["p254".to_owned()]);
        for (index, hosts) in hosts.iter().enumerate() {
            let number = index + 1;
            let namespace = Namespace::new()?;
            let [inner, outer] = [format!("c{number}"), format!("x{number}")];
            namespace.join("eth0", &underlay, &inner)?;
            namespace.join("ext0", &outside, &outer)?;
            underlay.set_mtu(&inner, UNDERLAY_MTU)?;
            namespace.set_mtu("eth0", UNDERLAY_MTU)?;
            namespace.add_address("eth0", tunnel_address(number), 24)?;
            for (namespace, interface) in [
                (&namespace, "eth0"),
                (&namespace, "ext0"),
                (&underlay, inner.as_str()),
                (&outside, outer.as_str()),
            ] {
                namespace.set_up(interface)?;
            }
            let hosts = hosts.iter();
            let hosts = hosts.map(|number| TestHost::attach(context, *number, &namespace));
            chassis.push(TestNetwork {
                context,
                hosts: hosts.collect::<Result<_, _>>()?,
                switch_namespace: namespace,
            });
            underlay_ports.push(inner);
            outside_ports.push(outer);
        }
        for (namespace, ports) in [(&underlay, underlay_ports), (&outside, outside_ports)] {
            let ports: Vec<_> = ports.iter().map(String::as_str).collect();
            namespace.bridge("br0", &ports)?;
            namespace.set_up("br0")?;
        }
        Ok(Self {
            context,
            underlay,
            outside,
            outside_host,
            chassis,
        })
    }

    /// Creates the databases of the chassis.
    pub(crate) fn deploy(&self) -> Result<Vec<Deployment<'_, 'g>>, TestError> {
        let networks = self.chassis.iter().enumerate();
        networks
            .map(|(index, network)| Deployment::in_directory(network, &format!("c{}", index + 1)))
            .collect()
    }

    /// The host with this number, on any chassis.
    pub(crate) fn host(&self, number: u8) -> &TestHost<'g> {
        let mut hosts = self.chassis.iter().flat_map(|chassis| &chassis.hosts);
        hosts
            .find(|host| host.mac[5] == number)
            .expect("the test created the host")
    }

    /// Moves a host to another logical network: address with a prefix of 24 bits and the gateway,
    /// which has the number 254 there.
    pub(crate) fn move_host(&mut self, number: u8, address: [u8; 4]) -> Result<(), Failure> {
        let [a, b, c, _] = address;
        let mut hosts = self
            .chassis
            .iter_mut()
            .flat_map(|chassis| &mut chassis.hosts);
        hosts
            .find(|host| host.mac[5] == number)
            .expect("the test created the host")
            .move_to(address.into(), Some(Ipv4Addr::new(a, b, c, 254)))
    }

    /// Disconnects a chassis from the underlay and from the outside network, or connects it again.
    pub(crate) fn connect_chassis(&self, number: usize, is_connected: bool) -> Result<(), Failure> {
        for (namespace, port) in [
            (&self.underlay, format!("c{number}")),
            (&self.outside, format!("x{number}")),
        ] {
            if is_connected {
                namespace.set_up(&port)?;
            } else {
                namespace.set_down(&port)?;
            }
        }
        Ok(())
    }
}

/// The address of a chassis in the underlay.
fn tunnel_address(number: usize) -> Ipv4Addr {
    let number = u8::try_from(number).expect("a test has few chassis");
    Ipv4Addr::new(172, 16, 0, number)
}

/// The switch of a chassis.
enum ChassisSwitch<'d, 'g> {
    Comporta(VswitchdProcess<'d, 'g>),
    OpenVswitch { _process: Process },
    Stopped,
}

/// A chassis.
pub(crate) struct OvnChassis<'d, 'g> {
    pub(crate) deployment: &'d Deployment<'d, 'g>,
    switch: ChassisSwitch<'d, 'g>,
    /// `ovn-controller` and its log.
    controller: Option<(Process, PathBuf)>,
}

/// Databases, `ovn-northd` and chassis.
pub(crate) struct OvnCloud<'d, 'g> {
    pub(crate) context: &'g TestContext,
    network: &'d OvnNetwork<'g>,
    rundir: PathBuf,
    /// Dropped first: a controller would report databases that are gone.
    pub(crate) chassis: Vec<OvnChassis<'d, 'g>>,
    processes: Vec<Process>,
}

impl<'d, 'g> OvnCloud<'d, 'g> {
    /// Starts everything, with Comporta on each chassis.
    pub(crate) fn start(
        network: &'d OvnNetwork<'g>,
        deployments: &'d [Deployment<'d, 'g>],
    ) -> Result<Self, TestError> {
        Self::start_with(network, deployments, &[])
    }

    /// Starts everything, with Open vSwitch on the chassis with these numbers.
    pub(crate) fn start_with(
        network: &'d OvnNetwork<'g>,
        deployments: &'d [Deployment<'d, 'g>],
        open_vswitch: &[usize],
    ) -> Result<Self, TestError> {
        let context = network.context;
        let mut cloud = Self {
            context,
            network,
            rundir: context.directory().join("ovn"),
            chassis: Vec::new(),
            processes: Vec::new(),
        };
        cloud.start_central()?;
        for (deployment, number) in deployments.iter().zip(1..) {
            let switch = if open_vswitch.contains(&number) {
                let process = start_ovs_vswitchd(deployment, "")?;
                ChassisSwitch::OpenVswitch { _process: process }
            } else {
                ChassisSwitch::Comporta(deployment.start_daemon()?)
            };
            cloud.chassis.push(OvnChassis {
                deployment,
                switch,
                controller: None,
            });
            cloud.configure_chassis(number)?;
            cloud.start_controller(number)?;
        }
        let count = deployments.len();
        context.wait_until("all chassis to register", || {
            let names = cloud.sbctl("--bare --columns=name list Chassis")?;
            Ok(names.split_whitespace().count() == count)
        })?;
        Ok(cloud)
    }

    fn start_central(&mut self) -> Result<(), TestError> {
        fs::create_dir_all(&self.rundir)?;
        for (name, schema) in DATABASES {
            let create = self.program(&format!("ovsdb-tool create {name}.db {schema}"));
            CommandOutput::run(self.context, create)?.expect_success()?;
            self.spawn(&format!(
                "ovsdb-server {name}.db --remote=punix:{name}.sock --unixctl={name}.ctl"
            ))?;
        }
        for (name, _) in DATABASES {
            let socket = self.rundir.join(format!("{name}.sock"));
            self.context
                .wait_until("a database of OVN to accept connections", || {
                    Ok(UnixStream::connect(&socket).is_ok())
                })?;
        }
        let [north, south] = [self.remote("nb"), self.remote("sb")];
        self.spawn(&format!(
            "ovn-northd --ovnnb-db={north} --ovnsb-db={south} --unixctl=northd.ctl"
        ))?;
        // ovn-controller 23.03 crashes on a southbound database without its global row.
        self.nbctl("--wait=sb sync")?;
        Ok(())
    }

    /// Configures the database of a chassis: bridges, tunnels, and `ovn-controller`.
    fn configure_chassis(&self, number: usize) -> Result<(), Failure> {
        let chassis = self.chassis(number);
        let (south, address) = (self.remote("sb"), tunnel_address(number));
        chassis.deployment.vsctl(&format!(
            "set Open_vSwitch . external_ids:system-id=c{number} external_ids:ovn-remote={south} \
             external_ids:ovn-encap-type=geneve external_ids:ovn-encap-ip={address} \
             external_ids:ovn-bridge-datapath-type=netdev external_ids:ovn-monitor-all=true \
             external_ids:ovn-bridge-mappings=phys:br-ex -- add-br br-int -- set Bridge br-int \
             fail_mode=secure datapath_type=netdev -- add-br br-ex -- set Bridge br-ex \
             datapath_type=netdev -- add-port br-ex ext0"
        ))?;
        if matches!(chassis.switch, ChassisSwitch::OpenVswitch { .. }) {
            // Its tunnels need the address on a bridge.
            chassis.deployment.vsctl(
                "add-br br-phy -- set Bridge br-phy datapath_type=netdev -- add-port br-phy eth0",
            )?;
            let namespace = &chassis.deployment.network.switch_namespace;
            let network = chassis.deployment.network;
            network.run("ip address flush dev eth0")?.expect_success()?;
            namespace.add_address("br-phy", address, 24)?;
            namespace.set_mtu("br-phy", UNDERLAY_MTU)?;
            namespace.set_up("br-phy")?;
        }
        Ok(())
    }

    /// Starts `ovn-controller` of a chassis.
    pub(crate) fn start_controller(&mut self, number: usize) -> Result<(), Failure> {
        let context = self.context;
        let chassis = &mut self.chassis[number - 1];
        let database = chassis.deployment.rundir.join("db.sock");
        let log = context.unique_path(&format!("ovn-controller-{number}.log"));
        let program = chassis
            .deployment
            .program(&format!("ovn-controller unix:{}", database.display()))
            .env("OVN_RUNDIR", &chassis.deployment.rundir)
            .log(&log);
        chassis.controller = Some((context.spawner.start(program)?, log));
        Ok(())
    }

    /// Kills `ovn-controller` of a chassis.
    pub(crate) fn kill_controller(&mut self, number: usize) -> Result<(), Failure> {
        if let Some((mut controller, _)) = self.chassis[number - 1].controller.take() {
            controller.kill()?;
        }
        Ok(())
    }

    /// Ends the switch of a chassis, as its service does.
    pub(crate) fn stop_switch(&mut self, number: usize) -> Result<(), Failure> {
        let switch = &mut self.chassis[number - 1].switch;
        if let ChassisSwitch::Comporta(daemon) = switch {
            daemon.process.stop()?;
        }
        *switch = ChassisSwitch::Stopped;
        Ok(())
    }

    /// Kills the switch of a chassis.
    pub(crate) fn kill_switch(&mut self, number: usize) -> Result<(), Failure> {
        let switch = &mut self.chassis[number - 1].switch;
        if let ChassisSwitch::Comporta(daemon) = switch {
            daemon.process.kill()?;
        }
        *switch = ChassisSwitch::Stopped;
        Ok(())
    }

    /// Starts the switch of a chassis again.
    pub(crate) fn start_switch(&mut self, number: usize) -> Result<(), Failure> {
        let chassis = &mut self.chassis[number - 1];
        chassis.switch = ChassisSwitch::Comporta(chassis.deployment.start_daemon()?);
        Ok(())
    }

    /// Chassis `number`, counted from 1.
    pub(crate) fn chassis(&self, number: usize) -> &OvnChassis<'d, 'g> {
        &self.chassis[number - 1]
    }

    /// The remote of one of the two databases.
    pub(crate) fn remote(&self, name: &str) -> String {
        format!(
            "unix:{}",
            self.rundir.join(format!("{name}.sock")).display()
        )
    }

    /// A program in the directory of the central databases.
    pub(crate) fn program(&self, words: &str) -> Program<'d> {
        let program = program(words)
            .directory(&self.rundir)
            .inside(&self.network.underlay);
        ["OVS_RUNDIR", "OVN_RUNDIR"]
            .iter()
            .fold(program, |program, name| program.env(*name, &self.rundir))
    }

    fn spawn(&mut self, words: &str) -> Result<(), Failure> {
        let name = words.split(' ').next().unwrap_or(words);
        let log = self.context.unique_path(&format!("{name}.log"));
        let process = self.context.spawner.start(self.program(words).log(log))?;
        self.processes.push(process);
        Ok(())
    }

    /// Runs `ovn-nbctl`, which must succeed. Words between apostrophes are one argument.
    pub(crate) fn nbctl(&self, words: &str) -> Result<String, Failure> {
        let program = self.program(&format!(
            "ovn-nbctl --timeout=30 --db={}",
            self.remote("nb")
        ));
        let program = program.args(quoted_words(words));
        CommandOutput::run(self.context, program)?.expect_success()
    }

    /// Runs `ovn-sbctl`, which must succeed.
    pub(crate) fn sbctl(&self, words: &str) -> Result<String, Failure> {
        let program = self.program(&format!(
            "ovn-sbctl --timeout=30 --db={}",
            self.remote("sb")
        ));
        let program = program.args(quoted_words(words));
        CommandOutput::run(self.context, program)?.expect_success()
    }

    /// Adds a logical switch.
    pub(crate) fn add_switch(&self, name: &str) -> Result<(), Failure> {
        self.nbctl(&format!("ls-add {name}")).map(drop)
    }

    /// Adds hosts to a logical switch: a port `pN` with the addresses of host N, on its chassis.
    pub(crate) fn add_hosts(&self, switch: &str, numbers: &[u8]) -> Result<(), Failure> {
        for number in numbers {
            let host = self.network.host(*number);
            let mac = host.mac.map(|byte| format!("{byte:02x}")).join(":");
            let address = host.address;
            let [_, subnet, ..] = address.octets();
            self.nbctl(&format!(
                "lsp-add {switch} p{number} -- lsp-set-addresses p{number} \
                 '{mac} {address} fd0{subnet}::{number:x}'"
            ))?;
            let chassis = self.chassis.iter();
            for chassis in chassis.filter(|chassis| chassis.has_host(*number)) {
                chassis.deployment.vsctl(&format!(
                    "add-port br-int p{number} -- set Interface p{number} \
                     external_ids:iface-id=p{number}"
                ))?;
                if matches!(chassis.switch, ChassisSwitch::OpenVswitch { .. }) {
                    // Its userspace data path does not complete checksums.
                    host.run("ethtool -K eth0 tx off")?.expect_success()?;
                }
            }
        }
        for number in numbers {
            self.nbctl(&format!("wait-until Logical_Switch_Port p{number} up=true"))?;
        }
        Ok(())
    }

    /// Adds a logical router with a port to each switch: name, address with prefix, and the last
    /// byte of the Ethernet address.
    pub(crate) fn add_router(&self, name: &str, ports: &[(&str, &str, u8)]) -> Result<(), Failure> {
        self.nbctl(&format!("lr-add {name}"))?;
        for (switch, addresses, number) in ports {
            let port = format!("{name}-{switch}");
            self.nbctl(&format!(
                "lrp-add {name} {port} 02:00:00:00:01:{number:02x} {addresses} \
                 -- lsp-add {switch} {switch}-{name} -- lsp-set-type {switch}-{name} router \
                 -- lsp-set-addresses {switch}-{name} router \
                 -- lsp-set-options {switch}-{name} router-port={port}"
            ))?;
        }
        Ok(())
    }

    /// Adds the logical switch `public`, connected to the outside network.
    pub(crate) fn add_public_switch(&self) -> Result<(), Failure> {
        self.nbctl(
            "ls-add public -- lsp-add public localnet -- lsp-set-type localnet localnet \
             -- lsp-set-addresses localnet unknown \
             -- lsp-set-options localnet network_name=phys",
        )
        .map(drop)
    }

    /// Waits until all chassis have installed all changes.
    pub(crate) fn sync(&self) -> Result<(), Failure> {
        self.nbctl("--wait=hv sync").map(drop)
    }

    /// Asserts that no switch refused a message or interpreted a packet, and that neither switches
    /// nor controllers warn.
    #[track_caller]
    pub(crate) fn expect_clean_run(&self) {
        for (chassis, number) in self.chassis.iter().zip(1..) {
            let mut logs = Vec::new();
            if let ChassisSwitch::Comporta(daemon) = &chassis.switch {
                chassis.expect_compiled(number);
                logs.push(&daemon.log);
            }
            logs.extend(chassis.controller.iter().map(|(_, log)| log));
            for log in logs {
                let text = fs::read_to_string(log).expect("the process has a log");
                let is_failure = |line: &&str| {
                    let levels = ["|WARN|", "|ERR|", "|EMER|", "OFPT_ERROR"];
                    levels.iter().any(|level| line.contains(level))
                        && !ACCEPTED_WARNINGS.iter().any(|text| line.contains(text))
                };
                let failures: Vec<_> = text.lines().filter(is_failure).collect();
                assert!(failures.is_empty(), "chassis {number}: {failures:#?}");
            }
        }
    }
}

impl OvnChassis<'_, '_> {
    /// Asserts that no packet continued in the interpreter.
    #[track_caller]
    fn expect_compiled(&self, number: usize) {
        let counters = self.deployment.run_tool("ovs-appctl comporta/counters");
        let counters = counters.expect("the daemon answers");
        let is_slow = |line: &&str| line.starts_with("worker slow_path_");
        let slow: Vec<_> = counters.lines().filter(is_slow).collect();
        assert!(slow.is_empty(), "chassis {number}: {slow:#?}");
    }

    fn has_host(&self, number: u8) -> bool {
        let mut hosts = self.deployment.network.hosts.iter();
        hosts.any(|host| host.mac[5] == number)
    }

    /// The log of `ovn-controller`.
    pub(crate) fn controller_log(&self) -> Result<String, Failure> {
        let log = self.controller.as_ref().map(|(_, log)| log);
        let log = log.expect("ovn-controller of this chassis runs");
        fs::read_to_string(log).map_err(Failure::to("read the log of ovn-controller"))
    }
}

impl Drop for OvnCloud<'_, '_> {
    fn drop(&mut self) {
        // Clients end first: they would report servers that are gone.
        for chassis in &mut self.chassis {
            chassis.controller = None;
        }
        self.chassis.clear();
        while let Some(process) = self.processes.pop() {
            drop(process);
        }
    }
}

/// The words of a command line; words between apostrophes are one.
fn quoted_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in text.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}
