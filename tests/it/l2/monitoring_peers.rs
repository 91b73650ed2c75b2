//! Connectivity monitoring with other implementations at the other end: BFD with FRR's bfdd, and
//! LLDP with lldpd. They run in the namespace of a host.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use testbed::{Failure, Process, Requirement};

use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::wait_for_appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    bfd_session_with_frr_detects_failures,
    lldpd_receives_the_switch_as_a_neighbour,
];

/// Requirements of FRR.
const FRR: [Requirement; 3] = [
    Requirement::Program {
        program: "/usr/lib/frr/zebra",
        package: "frr",
    },
    Requirement::Program {
        program: "/usr/lib/frr/bfdd",
        package: "frr",
    },
    Requirement::Program {
        program: "vtysh",
        package: "frr",
    },
];

/// Requirements of lldpd.
const LLDPD: [Requirement; 1] = [Requirement::Program {
    program: "lldpd",
    package: "lldpd",
}];

const BRIDGE: &str = "add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 p1";

/// Addresses of the switch in its BFD packets.
const BFD_IP: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 9);
const BFD_MAC: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// Configuration of bfdd: a session from host 1 to [`BFD_IP`].
const BFDD: &str = "bfd
 peer 10.1.0.9 local-address 10.1.0.1 interface eth0
  detect-multiplier 3
  receive-interval 300
  transmit-interval 300
  no shutdown
 !
!
";

/// Settings of BFD for a peer with the addresses of host 1.
const BFD_SETTINGS: [&str; 8] = [
    "bfd:enable=true",
    "bfd:min_tx=100",
    "bfd:min_rx=100",
    "bfd:bfd_src_ip=10.1.0.9",
    "bfd:bfd_dst_ip=10.1.0.1",
    "bfd:bfd_local_src_mac=\"02:00:00:00:00:09\"",
    "bfd:bfd_local_dst_mac=\"02:00:00:00:00:01\"",
    "bfd:bfd_remote_dst_mac=\"02:00:00:00:00:09\"",
];

/// Fails with a skip if a requirement is not met.
fn require(requirements: &[Requirement]) -> Result<(), TestError> {
    testbed::check(requirements).map_err(|missing| TestError::Skip(missing.to_string()))
}

/// FRR's daemons on a host. bfdd receives the host's interfaces from zebra.
struct FrrDaemons {
    _zebra: Process,
    bfdd: Process,
}

impl FrrDaemons {
    /// Starts both in `directory`, which has their sockets.
    fn start(
        context: &TestContext,
        host: &TestHost<'_>,
        directory: &Path,
    ) -> Result<Self, TestError> {
        fs::write(directory.join("zebra.conf"), "")?;
        fs::write(directory.join("bfdd.conf"), BFDD)?;
        let start = |name: &str, options: &str| {
            // The group of terminals is required of the user.
            let words = format!(
                "/usr/lib/frr/{name} -u root -g frrvty -f {name}.conf -i {name}.pid \
                 -z zserv.api --vty_socket . -A 127.0.0.1 -P 0 --log stdout {options}"
            );
            let daemon = program(&words).inside(&host.namespace).directory(directory);
            let log = context.unique_path(&format!("{name}.log"));
            context.spawner.start(daemon.log(log))
        };
        let zebra = start("zebra", "")?;
        let socket = directory.join("zserv.api");
        context.wait_until("the socket of zebra", || Ok(socket.exists()))?;
        Ok(Self {
            _zebra: zebra,
            bfdd: start("bfdd", "--bfdctl bfdd.sock")?,
        })
    }
}

fn bfd_session_with_frr_detects_failures(context: &TestContext) -> TestResult {
    require(&FRR)?;
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(BRIDGE)?;
    let host = network.host(1);
    host.namespace
        .add_neighbour(host.interface, BFD_IP, BFD_MAC)?;
    let mut frr = FrrDaemons::start(context, host, &deployment.rundir)?;
    let settings = BFD_SETTINGS.join(" ");
    deployment.vsctl(&format!("set Interface p1 {settings}"))?;
    for text in [
        "Local Session State: up",
        "Remote Session State: up",
        "Remote Minimum TX Interval: 300ms",
        "Remote Minimum RX Interval: 300ms",
        "Remote Detect Multiplier: 3",
        "Forwarding: true",
    ] {
        wait_for_appctl(&deployment, "bfd/show p1", text)?;
    }
    wait_for_peer(&deployment, host, "Status: up")?;
    // Each end detects the failure of the other one.
    deployment.vsctl("set Interface p1 bfd:enable=false")?;
    wait_for_peer(&deployment, host, "Status: down")?;
    deployment.vsctl("set Interface p1 bfd:enable=true")?;
    wait_for_peer(&deployment, host, "Status: up")?;
    wait_for_appctl(&deployment, "bfd/show p1", "Local Session State: up")?;
    frr.bfdd.kill()?;
    wait_for_appctl(&deployment, "bfd/show p1", "Control Detection Time Expired")?;
    deployment.wait_for_column("get Interface p1 bfd_status:forwarding", "\"false\"")?;
    Ok(())
}

/// Waits until bfdd's description of its peer contains `text`.
fn wait_for_peer(
    deployment: &Deployment<'_, '_>,
    host: &TestHost<'_>,
    text: &str,
) -> Result<(), Failure> {
    let context = deployment.network.context;
    context.wait_until(&format!("'{text}' of bfdd"), || {
        let vtysh = program("vtysh --vty_socket . -d bfdd -c").arg("show bfd peers");
        let vtysh = vtysh.inside(&host.namespace).directory(&deployment.rundir);
        Ok(CommandOutput::run(context, vtysh)?.stdout.contains(text))
    })
}

fn lldpd_receives_the_switch_as_a_neighbour(context: &TestContext) -> TestResult {
    require(&LLDPD)?;
    let network = TestNetwork::new(context, 1)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    deployment.vsctl(BRIDGE)?;
    deployment.vsctl(
        "-- --id=@a create AutoAttach system_name=sw system_description=text \
         -- set Bridge br0 auto_attach=@a -- set Interface p1 lldp:enable=true",
    )?;
    let (host, directory) = (network.host(1), &deployment.rundir);
    fs::write(directory.join("lldpd.conf"), "")?;
    let words = "lldpd -dd -u lldpd.socket -p lldpd.pid -O lldpd.conf -I eth0";
    let lldpd = program(words).inside(&host.namespace).directory(directory);
    let lldpd = lldpd.log(context.unique_path("lldpd.log"));
    let _lldpd = context.spawner.start(lldpd)?;
    let mac = deployment.vsctl("get Interface p1 mac_in_use")?;
    let mac = mac.trim_matches('"');
    for line in [
        "lldp.eth0.chassis.name=sw".to_owned(),
        "lldp.eth0.chassis.descr=text".to_owned(),
        format!("lldp.eth0.chassis.mac={mac}"),
    ] {
        context.wait_until(&format!("'{line}' of lldpd"), || {
            let client = program("lldpcli -u lldpd.socket -f keyvalue show neighbors");
            let client = client.inside(&host.namespace).directory(directory);
            let neighbours = CommandOutput::run(context, client)?.stdout;
            Ok(neighbours.lines().any(|other| other == line))
        })?;
    }
    Ok(())
}
