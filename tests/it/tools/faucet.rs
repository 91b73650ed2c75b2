//! Faucet, from PyPI: the networks of its tutorials, on bridges of a database. The hosts' addresses
//! are those of each tutorial.

pub(crate) mod connection_tracking;

use std::path::{Path, PathBuf};
use std::{env, fs};

use packet::build::Stack;
use testbed::{Failure, Process, Program};

use crate::support::command::{program, project_file, python_environment};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    faucet_separates_vlans_and_connects_them_by_a_trunk,
    faucet_reloads_access_lists_without_loss,
    faucet_routes_between_vlans_by_ipv4_and_ipv6,
    faucet_stack_reroutes_around_a_cut_cable,
    faucet_uses_lacp_and_mirrors,
    gauge_collects_statistics,
];

/// FaucetController and its configuration file.
struct FaucetController<'s, 'r, 'g> {
    deployment: &'s Deployment<'r, 'g>,
    process: Process,
    file: PathBuf,
}

impl<'s, 'r, 'g> FaucetController<'s, 'r, 'g> {
    /// Starts FaucetController with this configuration, and waits until it listens.
    fn start(deployment: &'s Deployment<'r, 'g>, configuration: &str) -> Result<Self, TestError> {
        let file = deployment.network.context.unique_path("faucet.yaml");
        fs::write(&file, configuration)?;
        let process = Self::run(deployment, "--verbose", &file)?;
        Self::wait_for_port(deployment, "19FD")?;
        Ok(Self {
            deployment,
            process,
            file,
        })
    }

    /// Starts FaucetController, or the part of it that an option selects.
    fn run(
        deployment: &Deployment<'_, '_>,
        option: &str,
        file: &Path,
    ) -> Result<Process, TestError> {
        let folder = python_environment("venv-faucet")?;
        let context = deployment.network.context;
        let (name, port) = match option {
            "--gauge" => ("GAUGE", 6654),
            _ => ("FAUCET", 6653),
        };
        // It starts another program of its environment by name.
        let path = env::var("PATH").unwrap_or_default();
        let program = Program::new(folder.join("faucet"))
            .arg(option)
            .arg(format!("--ryu-ofp-tcp-listen-port={port}"))
            .env("PATH", format!("{}:{path}", folder.display()))
            .env(format!("{name}_CONFIG"), file)
            .env(format!("{name}_LOG"), context.unique_path("faucet.log"))
            .env(
                format!("{name}_EXCEPTION_LOG"),
                context.unique_path("faucet.exceptions"),
            )
            .inside(&deployment.network.switch_namespace)
            .log(context.unique_path("faucet.err"));
        Ok(context.spawner.start(program)?)
    }

    /// Waits until a port is open, which is given as proc(5) prints it.
    fn wait_for_port(deployment: &Deployment<'_, '_>, port: &str) -> Result<(), Failure> {
        let local_port = format!(":{port} ");
        deployment
            .network
            .context
            .wait_until("Faucet to listen", || {
                let listening = || fs::read_to_string("/proc/thread-self/net/tcp");
                let sockets = deployment.network.switch_namespace.run(listening)?;
                // The state of a listener is 0A.
                Ok(sockets.is_ok_and(|text| {
                    text.lines()
                        .any(|line| line.contains(&local_port) && line.contains(" 0A "))
                }))
            })
    }

    /// Reloads another configuration.
    fn reload(&self, configuration: &str) -> Result<(), Failure> {
        fs::write(&self.file, configuration).map_err(Failure::to("write a configuration"))?;
        self.process.hang_up()
    }

    /// Adds a bridge as the tutorials do; ports are numbered in their order.
    fn add_bridge(&self, id: u8, ports: &[&str]) -> Result<(), Failure> {
        let bridge = format!("br{id}");
        let mut words = format!(
            "add-br {bridge} -- set bridge {bridge} other-config:datapath-id=000000000000000{id} \
             other-config:disable-in-band=true fail_mode=secure"
        );
        for (number, port) in (1..).zip(ports) {
            words += &format!(
                " -- add-port {bridge} {port} -- set interface {port} ofport_request={number}"
            );
        }
        words += &format!(" -- set-controller {bridge} tcp:127.0.0.1:6653 tcp:127.0.0.1:6654");
        self.deployment.vsctl(&words)?;
        self.deployment
            .network
            .context
            .wait_until("rules of Faucet", || {
                let flows = self
                    .deployment
                    .run_tool(&format!("ovs-ofctl -O OpenFlow13 dump-flows {bridge}"))?;
                Ok(flows.lines().count() > 5)
            })
    }
}

/// Two VLANs of two ports each, and a trunk of both at the fifth port.
const TWO_VLANS: &str = "
vlans:
    office: {vid: 100}
    guest: {vid: 200}
dps:
    sw1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        interfaces:
            1: {native_vlan: office}
            2: {native_vlan: office}
            3: {native_vlan: guest}
            4: {native_vlan: guest}
            5: {tagged_vlans: [office, guest]}
";

fn faucet_separates_vlans_and_connects_them_by_a_trunk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 5)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = FaucetController::start(&deployment, TWO_VLANS)?;
    faucet.add_bridge(1, &["p1", "p2", "p3", "p4", "p5"])?;
    for (one, two) in [(1, 2), (3, 4)] {
        network
            .host(one)
            .ping_until_reply(network.host(two).address)?;
        network.host(one).ping(network.host(two).address, 5)?;
    }
    assert!(
        !network.host(1).can_ping(network.host(3).address)?,
        "VLANs are separate"
    );
    assert!(
        !network.host(4).can_ping(network.host(2).address)?,
        "VLANs are separate"
    );
    // A broadcast of one VLAN, here an ARP request, is sent on the trunk with its tag.
    let mut trunk = network.host(5).capture_frames()?;
    assert!(!network.host(1).can_ping([10, 1, 0, 99].into())?);
    loop {
        let frame = Stack::dissect(&trunk.next_frame()?).to_string();
        if frame.contains("spa=10.1.0.1,") {
            assert!(frame.contains("vlan(vid=100)"), "{frame}");
            return Ok(());
        }
    }
}

fn block_list(blocked: &str) -> String {
    format!(
        "
vlans:
    office: {{vid: 100}}
acls:
    block-{blocked}:
        - rule: {{dl_type: 0x800, {}, actions: {{allow: False}}}}
        - rule: {{actions: {{allow: True}}}}
dps:
    sw1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        interfaces:
            1: {{native_vlan: office}}
            2: {{native_vlan: office}}
            3: {{native_vlan: office, acls_in: [block-{blocked}]}}
",
        match blocked {
            "ping" => "ip_proto: 1",
            _ => "ip_proto: 6",
        }
    )
}

fn faucet_reloads_access_lists_without_loss(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = FaucetController::start(&deployment, &block_list("ping"))?;
    faucet.add_bridge(1, &["p1", "p2", "p3"])?;
    let (one, two, three) = (network.host(1), network.host(2), network.host(3));
    one.ping_until_reply(two.address)?;
    assert!(!three.can_ping(one.address)?, "the access list drops pings");
    assert_eq!(
        three.transfer(one, b"TCP is not filtered")?,
        b"TCP is not filtered"
    );
    // Another access list, while frames of other hosts cross.
    let pings = format!("fping -q -c 1500 -p 2 -t 5000 {}", two.address);
    let log = context.unique_path("pings");
    let pings = program(&pings).inside(&one.namespace).log(&log);
    let mut pings = context.spawner.start(pings)?;
    faucet.reload(&block_list("tcp"))?;
    three.ping_until_reply(one.address)?;
    pings.wait(WAIT_LIMIT)?;
    let output = pings.written()?;
    assert!(output.contains(" = 1500/1500/0%"), "{output}");
    Ok(())
}

/// Two VLANs with a router between them, for IPv4 and IPv6.
const ROUTED_VLANS: &str = "
vlans:
    one:
        vid: 100
        faucet_mac: '0e:00:00:00:01:00'
        faucet_vips: ['10.1.0.254/24', 'fd00:1::254/64']
    two:
        vid: 200
        faucet_mac: '0e:00:00:00:02:00'
        faucet_vips: ['10.2.0.254/24', 'fd00:2::254/64']
routers:
    router-1: {vlans: [one, two]}
dps:
    sw1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        interfaces:
            1: {native_vlan: one}
            2: {native_vlan: two}
";

fn faucet_routes_between_vlans_by_ipv4_and_ipv6(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let (one, two) = network.host_pair();
    for (host, net) in [(one, 1), (two, 2)] {
        // Namespaces may be configured without IPv6.
        host.run("sysctl -w net.ipv6.conf.eth0.disable_ipv6=0")?
            .expect_success()?;
        for words in [
            "address flush dev eth0 scope global".to_owned(),
            format!("address add 10.{net}.0.1/24 dev eth0"),
            format!("route add default via 10.{net}.0.254"),
            format!("-6 address add fd00:{net}::1/64 dev eth0 nodad"),
            format!("-6 route add default via fd00:{net}::254"),
        ] {
            host.run(&format!("ip {words}"))?.expect_success()?;
        }
    }
    let faucet = FaucetController::start(&deployment, ROUTED_VLANS)?;
    faucet.add_bridge(1, &["p1", "p2"])?;
    one.ping_until_reply([10, 1, 0, 254].into())?;
    one.ping_until_reply([10, 2, 0, 1].into())?;
    one.ping([10, 2, 0, 1].into(), 5)?;
    two.ping([10, 1, 0, 1].into(), 5)?;
    context.wait_until("a reply by IPv6", || {
        let result = one.run("ping -6 -n -q -c 1 -W 1 fd00:2::1")?;
        Ok(result.status.success())
    })?;
    // Packets are routed by rules, not by the controller.
    let output = deployment.run_tool("ovs-ofctl -O OpenFlow13 dump-flows br1")?;
    assert!(
        output.contains("nw_dst=10.2.0.1") && output.contains("ipv6_dst=fd00:2::1"),
        "{output}"
    );
    assert!(output.contains("dec_ttl"), "{output}");
    Ok(())
}

/// Two switches with two cables between them.
const STACKED_SWITCHES: &str = "
vlans:
    hosts: {vid: 100}
dps:
    br1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        stack: {priority: 1}
        lldp_beacon: {send_interval: 1, max_per_interval: 5}
        interfaces:
            1: {native_vlan: hosts}
            2: {stack: {dp: br2, port: 2}}
            3: {stack: {dp: br2, port: 3}}
    br2:
        dp_id: 0x2
        hardware: 'Open vSwitch'
        lldp_beacon: {send_interval: 1, max_per_interval: 5}
        interfaces:
            1: {native_vlan: hosts}
            2: {stack: {dp: br1, port: 2}}
            3: {stack: {dp: br1, port: 3}}
";

fn faucet_stack_reroutes_around_a_cut_cable(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    for cable in ["first", "second"] {
        network
            .run(&format!(
                "ip link add {cable}1 type veth peer name {cable}2"
            ))?
            .expect_success()?;
        for end in 1..=2 {
            network
                .run(&format!("ip link set {cable}{end} up"))?
                .expect_success()?;
        }
    }
    let faucet = FaucetController::start(&deployment, STACKED_SWITCHES)?;
    faucet.add_bridge(1, &["p1", "first1", "second1"])?;
    faucet.add_bridge(2, &["p2", "first2", "second2"])?;
    let (one, two) = network.host_pair();
    // FaucetController sends its rules again for each cable that it detects.
    let wait_for_connectivity = || {
        context.wait_until("the stack to converge", || {
            let result = one.run(&format!("fping -q -c 10 -p 20 -t 500 {}", two.address))?;
            Ok(result.stderr.contains(" = 10/10/0%"))
        })
    };
    wait_for_connectivity()?;
    network.run("ip link set first1 down")?.expect_success()?;
    wait_for_connectivity()?;
    network.run("ip link set first1 up")?.expect_success()?;
    network.run("ip link set second1 down")?.expect_success()?;
    wait_for_connectivity()?;
    Ok(())
}

/// A port with LACP, a port without, and a port that mirrors the second.
const LACP_AND_MIRROR: &str = "
vlans:
    office: {vid: 100}
dps:
    sw1:
        dp_id: 0x1
        hardware: 'Open vSwitch'
        interfaces:
            1: {native_vlan: office, lacp: 1, lacp_active: True}
            2: {native_vlan: office}
            3: {output_only: True, mirror: 2}
";

fn faucet_uses_lacp_and_mirrors(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = FaucetController::start(&deployment, LACP_AND_MIRROR)?;
    faucet.add_bridge(1, &["p1", "p2", "p3"])?;
    let (one, two) = network.host_pair();
    assert!(!one.can_ping(two.address)?, "LACP has no partner yet");
    let partner = Program::new(python_environment("venv-faucet")?.join("python"))
        .arg(project_file("tests/apps/lacp_partner.py"))
        .arg(one.interface)
        .inside(&one.namespace)
        .log(context.unique_path("partner"));
    let partner = context.spawner.start(partner)?;
    context.wait_until("LACP to be ready", || {
        Ok(partner.written()?.contains("ready"))
    })?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let mut mirror = network.host(3).capture_frames()?;
    two.ping_until_reply(one.address)?;
    loop {
        let frame = Stack::dissect(&mirror.next_frame()?).to_string();
        if frame.contains("icmp") {
            return Ok(());
        }
    }
}

fn gauge_collects_statistics(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = FaucetController::start(&deployment, &block_list("ping"))?;
    let (ports, flows) = (context.unique_path("ports"), context.unique_path("flows"));
    fs::create_dir_all(&flows)?;
    let file = context.unique_path("gauge.yaml");
    fs::write(
        &file,
        format!(
            "
faucet_configs: ['{}']
watchers:
    ports: {{type: port_stats, dps: [sw1], interval: 1, db: ports}}
    flows: {{type: flow_table, dps: [sw1], interval: 1, db: flows}}
dbs:
    ports: {{type: text, file: '{}'}}
    flows: {{type: text, path: '{}'}}
",
            faucet.file.display(),
            ports.display(),
            flows.display()
        ),
    )?;
    let _gauge = FaucetController::run(&deployment, "--gauge", &file)?;
    FaucetController::wait_for_port(&deployment, "19FE")?;
    faucet.add_bridge(1, &["p1", "p2", "p3"])?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    context.wait_until("port counters", || {
        let output = fs::read_to_string(&ports).unwrap_or_default();
        Ok(output.contains("packets-in"))
    })?;
    context.wait_until("a file of rules", || {
        let entries = fs::read_dir(&flows).map_err(Failure::to("list the files of rules"))?;
        Ok(entries.count() > 0)
    })?;
    Ok(())
}
