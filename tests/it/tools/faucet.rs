//! Under Faucet, from PyPI: the networks of its tutorials, on bridges of a database that go to
//! its port. Hosts are those of the rig, with addresses as each network wants them.

use std::path::{Path, PathBuf};
use std::{env, fs};

use packet::build::Stack;
use testbed::{Failure, Process, Program};

use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    faucet_parts_vlans_and_joins_them_by_a_trunk,
    faucet_filters_and_reloads_without_a_loss,
    faucet_routes_between_vlans_for_both_families,
    faucet_stacks_two_switches_and_goes_round_a_cut,
    faucet_aggregates_by_lacp_and_mirrors,
    gauge_watches_beside_faucet,
];

/// Faucet, and what it is told.
struct Faucet<'s, 'r, 'g> {
    deployment: &'s Deployment<'r, 'g>,
    process: Process,
    file: PathBuf,
}

impl<'s, 'r, 'g> Faucet<'s, 'r, 'g> {
    /// Starts it with this configuration, and waits until it listens.
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

    /// Starts Faucet, or the part of it that an option names.
    fn run(
        deployment: &Deployment<'_, '_>,
        option: &str,
        file: &Path,
    ) -> Result<Process, TestError> {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = root.join("target/venv-faucet/bin");
        let program = folder.join("faucet");
        if !program.exists() {
            let reason =
                "there is no Python environment target/venv-faucet: make it with cargo xtask setup";
            return Err(TestError::Skip(reason.to_owned()));
        }
        let context = deployment.network.context;
        let (name, port) = match option {
            "--gauge" => ("GAUGE", 6654),
            _ => ("FAUCET", 6653),
        };
        // It starts another program of its environment by name.
        let path = env::var("PATH").unwrap_or_default();
        let program = Program::new(program)
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

    /// Waits until somebody listens at a port, which is given as proc(5) writes it.
    fn wait_for_port(deployment: &Deployment<'_, '_>, port: &str) -> Result<(), Failure> {
        let place = format!(":{port} ");
        deployment
            .network
            .context
            .wait_until("faucet to listen", || {
                let listening = || fs::read_to_string("/proc/thread-self/net/tcp");
                let told = deployment.network.switch_namespace.run(listening)?;
                // The state of a listener is 0A.
                Ok(told.is_ok_and(|told| {
                    told.lines()
                        .any(|line| line.contains(&place) && line.contains(" 0A "))
                }))
            })
    }

    /// Has it read another configuration while it runs.
    fn reload(&self, configuration: &str) -> Result<(), Failure> {
        fs::write(&self.file, configuration).map_err(Failure::to("write a configuration"))?;
        self.process.hang_up()
    }

    /// Makes a bridge as the tutorials do; ports are numbered in their order.
    fn bridge(&self, number: u8, ports: &[&str]) -> Result<(), Failure> {
        let bridge = format!("br{number}");
        let mut words = format!(
            "add-br {bridge} -- set bridge {bridge} other-config:datapath-id=000000000000000{number} \
             other-config:disable-in-band=true fail_mode=secure"
        );
        for (place, port) in (1..).zip(ports) {
            words += &format!(
                " -- add-port {bridge} {port} -- set interface {port} ofport_request={place}"
            );
        }
        words += &format!(" -- set-controller {bridge} tcp:127.0.0.1:6653 tcp:127.0.0.1:6654");
        self.deployment.vsctl(&words)?;
        self.deployment
            .network
            .context
            .wait_until("faucet to send rules", || {
                let told = self
                    .deployment
                    .run_tool(&format!("ovs-ofctl -O OpenFlow13 dump-flows {bridge}"))?;
                Ok(told.lines().count() > 5)
            })
    }
}

/// Two VLANs of two ports each, and a trunk of both to a fifth.
const VLANS: &str = "
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

fn faucet_parts_vlans_and_joins_them_by_a_trunk(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 5)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = Faucet::start(&deployment, VLANS)?;
    faucet.bridge(1, &["p1", "p2", "p3", "p4", "p5"])?;
    for (one, two) in [(1, 2), (3, 4)] {
        network
            .host(one)
            .ping_until_reply(network.host(two).address)?;
        network.host(one).ping(network.host(two).address, 5)?;
    }
    assert!(
        !network.host(1).can_ping(network.host(3).address)?,
        "VLANs are apart"
    );
    assert!(
        !network.host(4).can_ping(network.host(2).address)?,
        "VLANs are apart"
    );
    // What is said to all in one, as by whoever asks for an address, comes to the trunk with its tag.
    let mut trunk = network.host(5).capture_frames()?;
    assert!(!network.host(1).can_ping([10, 1, 0, 99].into())?);
    loop {
        let seen = Stack::dissect(&trunk.next_frame()?).to_string();
        if seen.contains("spa=10.1.0.1,") {
            assert!(seen.contains("vlan(vid=100)"), "{seen}");
            return Ok(());
        }
    }
}

fn filter(blocked: &str) -> String {
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

fn faucet_filters_and_reloads_without_a_loss(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = Faucet::start(&deployment, &filter("ping"))?;
    faucet.bridge(1, &["p1", "p2", "p3"])?;
    let (one, two, three) = (network.host(1), network.host(2), network.host(3));
    one.ping_until_reply(two.address)?;
    assert!(!three.can_ping(one.address)?, "the list forbids it");
    assert_eq!(three.transfer(one, b"TCP is let pass")?, b"TCP is let pass");
    // Another list, while others' frames go on.
    let pings = format!("fping -q -c 1500 -p 2 -t 5000 {}", two.address);
    let log = context.unique_path("pings");
    let pings = crate::support::command::program(&pings)
        .inside(&one.namespace)
        .log(&log);
    let mut pings = context.spawner.start(pings)?;
    faucet.reload(&filter("tcp"))?;
    three.ping_until_reply(one.address)?;
    pings.wait(crate::support::context::WAIT_LIMIT)?;
    let said = pings.written()?;
    assert!(said.contains(" = 1500/1500/0%"), "{said}");
    Ok(())
}

/// Two VLANs with a router between them, of both families.
const ROUTES: &str = "
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

fn faucet_routes_between_vlans_for_both_families(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let (one, two) = network.host_pair();
    for (host, net) in [(one, 1), (two, 2)] {
        // A kernel's namespaces may be made without IPv6.
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
    let faucet = Faucet::start(&deployment, ROUTES)?;
    faucet.bridge(1, &["p1", "p2"])?;
    one.ping_until_reply([10, 1, 0, 254].into())?;
    one.ping_until_reply([10, 2, 0, 1].into())?;
    one.ping([10, 2, 0, 1].into(), 5)?;
    two.ping([10, 1, 0, 1].into(), 5)?;
    context.wait_until("the other family", || {
        let ran = one.run("ping -6 -n -q -c 1 -W 1 fd00:2::1")?;
        Ok(ran.status.success())
    })?;
    // What is routed is so by rules, not by the controller.
    let told = deployment.run_tool("ovs-ofctl -O OpenFlow13 dump-flows br1")?;
    assert!(
        told.contains("nw_dst=10.2.0.1") && told.contains("ipv6_dst=fd00:2::1"),
        "{told}"
    );
    assert!(told.contains("dec_ttl"), "{told}");
    Ok(())
}

/// Two switches with two cables between them, of which one goes by a third switch.
const STACK: &str = "
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

fn faucet_stacks_two_switches_and_goes_round_a_cut(context: &TestContext) -> TestResult {
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
    let faucet = Faucet::start(&deployment, STACK)?;
    faucet.bridge(1, &["p1", "first1", "second1"])?;
    faucet.bridge(2, &["p2", "first2", "second2"])?;
    let (one, two) = network.host_pair();
    // Its rules come again with each cable that it finds.
    let settled = || {
        context.wait_until("the stack to settle", || {
            let ran = one.run(&format!("fping -q -c 10 -p 20 -t 500 {}", two.address))?;
            Ok(ran.stderr.contains(" = 10/10/0%"))
        })
    };
    settled()?;
    network.run("ip link set first1 down")?.expect_success()?;
    settled()?;
    network.run("ip link set first1 up")?.expect_success()?;
    network.run("ip link set second1 down")?.expect_success()?;
    settled()?;
    Ok(())
}

/// A port that is one of a group by LACP, and one that is not; and one to which all that another
/// says is copied.
const GROUP: &str = "
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

fn faucet_aggregates_by_lacp_and_mirrors(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = Faucet::start(&deployment, GROUP)?;
    faucet.bridge(1, &["p1", "p2", "p3"])?;
    let (one, two) = network.host_pair();
    assert!(
        !one.can_ping(two.address)?,
        "nobody has said that it is ready"
    );
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let partner = Program::new(root.join("target/venv-faucet/bin/python"))
        .arg(root.join("tests/apps/lacp_partner.py"))
        .arg(one.interface)
        .inside(&one.namespace)
        .log(context.unique_path("partner"));
    let partner = context.spawner.start(partner)?;
    context.wait_until("both to be ready", || {
        Ok(partner.written()?.contains("ready"))
    })?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    let mut mirror = network.host(3).capture_frames()?;
    two.ping_until_reply(one.address)?;
    loop {
        let seen = Stack::dissect(&mirror.next_frame()?).to_string();
        if seen.contains("icmp") {
            return Ok(());
        }
    }
}

fn gauge_watches_beside_faucet(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let faucet = Faucet::start(&deployment, &filter("ping"))?;
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
    let _gauge = Faucet::run(&deployment, "--gauge", &file)?;
    Faucet::wait_for_port(&deployment, "19FE")?;
    faucet.bridge(1, &["p1", "p2", "p3"])?;
    let (one, two) = network.host_pair();
    one.ping_until_reply(two.address)?;
    context.wait_until("a port's counters", || {
        let told = fs::read_to_string(&ports).unwrap_or_default();
        Ok(told.contains("packets-in"))
    })?;
    context.wait_until("the rules", || {
        let entries = fs::read_dir(&flows).map_err(Failure::to("look for rules"))?;
        Ok(entries.count() > 0)
    })?;
    Ok(())
}
