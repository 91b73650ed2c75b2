//! In-band control: a controller that is reachable only through the bridge that it controls,
//! compared with a real `ovs-vswitchd`.

use packet::build::Stack;
use testbed::{DeviceOffload, Failure};

use crate::qos::queue_classes::class_counters;
use crate::support::command::CommandOutput;
use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{OVS_VSWITCHD, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    controller_in_band_connects_through_a_bridge_without_rules,
    manager_in_band_connects_through_a_bridge_without_rules,
    dhcp_replies_reach_the_host_port_once_with_in_band_control,
    out_of_band_control_adds_no_hidden_rules,
];

/// Address of the host port, in the network of the hosts.
const HOST_PORT_ADDRESS: &str = "10.1.0.99/16";

/// Adds a secure bridge whose controller is host 1, behind its port.
fn add_bridge(deployment: &Deployment<'_, '_>, is_disabled: bool) -> Result<(), Failure> {
    let controller = deployment.network.host(1).address;
    deployment.vsctl(&format!(
        "add-br br0 -- add-port br0 p1 -- add-port br0 p2 \
         -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         other_config:hwaddr=02:00:00:00:00:aa other_config:disable-in-band={is_disabled} \
         -- set-controller br0 tcp:{controller}:6653"
    ))?;
    deployment
        .network
        .run(&format!("ip address add {HOST_PORT_ADDRESS} dev br0"))?
        .expect_success()?;
    deployment
        .network
        .run("ip link set br0 up")?
        .expect_success()?;
    Ok(())
}

/// Hidden rules, without durations and counters, sorted.
fn hidden_rules(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let output = deployment.run_tool("ovs-appctl bridge/dump-flows br0")?;
    let lines = output
        .lines()
        .filter_map(|line| line.find("priority=18").map(|at| &line[at..]));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// Connects a bridge to its controller, and returns the hidden rules then.
fn connect_controller(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let network = deployment.network;
    add_bridge(deployment, false)?;
    let flows = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(!flows.contains("actions="), "{flows}");
    // Open vSwitch's userspace datapath does not complete partial checksums.
    let host = network.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    // The controller listens, and installs no rules.
    let words = "ovs-testcontroller --mute ptcp:6653";
    let program = deployment.program(words).inside(&network.host(1).namespace);
    let _controller = network.context.spawner.start(program)?;
    deployment.wait_for_column("--columns=is_connected --bare list Controller", "true")?;
    // Hidden rules cannot be deleted, are not counted, and forward nothing else.
    deployment.run_tool("ovs-ofctl del-flows br0")?;
    let aggregate = deployment.run_tool("ovs-ofctl dump-aggregate br0")?;
    assert!(aggregate.contains("flow_count=0"), "{aggregate}");
    assert!(!network.host(2).can_ping(network.host(1).address)?);
    let mac = network
        .host(1)
        .mac
        .map(|byte| format!("{byte:02x}"))
        .join(":");
    let next_hop = format!("dl_src={mac}");
    network
        .context
        .wait_until("the next hop to be learned", || {
            Ok(hidden_rules(deployment)?
                .iter()
                .any(|rule| rule.contains(&next_hop)))
        })?;
    let output = deployment.run_tool("ovs-appctl bridge/dump-flows br0")?;
    let used = output
        .lines()
        .find(|line| line.contains("priority=180008,tcp"));
    assert!(
        used.is_some_and(|line| !line.contains("n_packets=0,")),
        "{output}"
    );
    hidden_rules(deployment)
}

fn controller_in_band_connects_through_a_bridge_without_rules(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _ovs_vswitchd = start_ovs_vswitchd(&ovs, "")?;
    let (comporta, ovs) = (connect_controller(&comporta)?, connect_controller(&ovs)?);
    assert_eq!(comporta, ovs, "{OVS_VSWITCHD}");
    assert_eq!(comporta.len(), 9);
    Ok(())
}

/// Connects the database to its manager at host 1, and returns the hidden rules then. Open
/// vSwitch's userspace datapath supports no queues.
fn connect_manager(
    deployment: &Deployment<'_, '_>,
    has_queues: bool,
) -> Result<Vec<String>, Failure> {
    let network = deployment.network;
    let host = network.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    add_bridge(deployment, false)?;
    deployment.vsctl("del-controller br0")?;
    let control = deployment.rundir.join("db.ctl");
    let remote = "ovsdb-server/add-remote db:Open_vSwitch,Open_vSwitch,manager_options";
    deployment.run_tool(&format!("ovs-appctl -t {} {remote}", control.display()))?;
    assert_eq!(hidden_rules(deployment)?, Vec::<String>::new());
    deployment.vsctl(&format!("set-manager tcp:{}:6640", host.address))?;
    network.context.wait_until("the hidden rules", || {
        Ok(hidden_rules(deployment)?.len() >= 7)
    })?;
    // The manager waits for the database's connection.
    let words = "ovs-vsctl --no-wait --timeout=25 --db=ptcp:6640 get Bridge br0 fail_mode";
    let manager = deployment.program(words).inside(&host.namespace);
    let fail_mode = CommandOutput::run(network.context, manager)?.expect_success()?;
    assert_eq!(fail_mode.trim(), "secure");
    assert!(!network.host(2).can_ping(host.address)?);
    network
        .context
        .wait_until("the next hop to be learned", || {
            Ok(hidden_rules(deployment)?.len() == 9)
        })?;
    let mut rules_seen = hidden_rules(deployment)?;
    // Hidden rules with a queue.
    deployment.vsctl("set Bridge br0 other_config:in-band-queue=3")?;
    let is_queued = || {
        Ok(hidden_rules(deployment)?
            .iter()
            .all(|rule| rule.contains("set_queue:3")))
    };
    network
        .context
        .wait_until("the queue of the hidden rules", is_queued)?;
    rules_seen.extend(hidden_rules(deployment)?);
    if has_queues {
        deployment.vsctl(
            "set Port p1 qos=@q -- --id=@q create QoS type=linux-htb queues:3=@three \
             -- --id=@three create Queue other_config:min-rate=1000000",
        )?;
        // The database continues to connect to its manager.
        network.context.wait_until("frames by the queue", || {
            let counters = class_counters(network, "p1")?;
            Ok(counters
                .get("1:4")
                .is_some_and(|[_, frames, _]| *frames > 0))
        })?;
    }
    deployment.vsctl("set Manager . connection_mode=out-of-band")?;
    network
        .context
        .wait_until("the removal of the hidden rules", || {
            Ok(hidden_rules(deployment)?.is_empty())
        })?;
    Ok(rules_seen)
}

fn manager_in_band_connects_through_a_bridge_without_rules(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _ovs_vswitchd = start_ovs_vswitchd(&ovs, "")?;
    let (comporta, ovs) = (
        connect_manager(&comporta, true)?,
        connect_manager(&ovs, false)?,
    );
    assert_eq!(comporta, ovs, "{OVS_VSWITCHD}");
    Ok(())
}

/// DHCP replies, shortened to the relevant headers, with `length` bytes of payload, and datagrams
/// that resemble them.
fn dhcp_replies(length: u8) -> [String; 3] {
    let datagram = |from: u16, to: u16, length: u8| {
        format!(
            "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51) / \
             ipv4(src=10.1.0.1,dst=255.255.255.255) / udp(src={from},dst={to}) / data({length})"
        )
    };
    [
        datagram(68, 67, length),
        datagram(67, 68, length),
        datagram(67, 69, length),
    ]
}

/// A DHCP reply as a flow.
const DHCP_REPLY: &str = "in_port=1,udp,udp_src=67,udp_dst=68,nw_src=10.1.0.1,nw_dst=255.255.255.255,\
                      dl_dst=ff:ff:ff:ff:ff:ff";

/// Last of several frames, which a rule floods.
const LAST_FRAME: &str = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51,type=0x88b6) / data(50)";

/// Frames that the host port and host 2 receive when host 1 sends these replies.
fn received_frames(deployment: &Deployment<'_, '_>) -> Result<[Vec<String>; 2], Failure> {
    let network = deployment.network;
    let mut captures = [
        network.capture_frames("br0")?,
        network.host(2).capture_frames()?,
    ];
    let frames = [dhcp_replies(100), dhcp_replies(101)].concat();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    network.host(1).send(&frames)?;
    network.host(1).send(&[LAST_FRAME])?;
    let mut received = [Vec::new(), Vec::new()];
    for (capture, frames) in captures.iter_mut().zip(&mut received) {
        loop {
            let frame = Stack::dissect(&capture.next_frame()?).to_string();
            if frame.contains("type=0x88b6") {
                break;
            }
            if frame.contains("src=02:00:00:00:00:51") {
                frames.push(frame);
            }
        }
        frames.sort();
    }
    Ok(received)
}

fn dhcp_replies_reach_the_host_port_once_with_in_band_control(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _ovs_vswitchd = start_ovs_vswitchd(&ovs, "")?;
    for deployment in [&comporta, &ovs] {
        add_bridge(deployment, false)?;
        deployment
            .network
            .context
            .wait_until("the hidden rules", || {
                Ok(hidden_rules(deployment)?.len() >= 7)
            })?;
    }
    let rules = [
        ("", 2, 0),
        ("udp,actions=output:2", 2, 6),
        ("udp,actions=output:2,LOCAL", 6, 6),
        ("udp,actions=NORMAL", 6, 6),
    ];
    for (rule, at_host_port, at_host_2) in rules {
        for deployment in [&comporta, &ovs] {
            deployment.run_tool("ovs-ofctl del-flows br0")?;
            for rule in [rule, "priority=65535,dl_type=0x88b6,actions=all"] {
                if !rule.is_empty() {
                    deployment.run_tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
                }
            }
        }
        let received = received_frames(&comporta)?;
        assert_eq!(
            received.each_ref().map(Vec::len),
            [at_host_port, at_host_2],
            "{rule}"
        );
        // Both replies arrive, each once.
        let replies = received[0]
            .iter()
            .filter(|frame| frame.contains("udp(src=67,dst=68)"));
        assert_eq!(replies.count(), 2, "{rule}");
        // Open vSwitch sends in another order, and reports it in a trace.
        let trace = ovs.run_tool(&format!("ovs-appctl ofproto/trace br0 {DHCP_REPLY}"))?;
        let is_listed = trace.contains("outputting DHCP packet to local port");
        assert_eq!(is_listed, at_host_port == 2, "{rule}: {trace}");
    }
    // Without in-band control only the rules decide.
    comporta.vsctl("set Bridge br0 other_config:disable-in-band=true")?;
    comporta.run_tool("ovs-ofctl del-flows br0 udp")?;
    assert_eq!(
        received_frames(&comporta)?.map(|frames| frames.len()),
        [0, 0]
    );
    Ok(())
}

fn out_of_band_control_adds_no_hidden_rules(context: &TestContext) -> TestResult {
    for is_disabled in [true, false] {
        let network = TestNetwork::new(context, 2)?;
        let deployment =
            Deployment::in_directory(&network, if is_disabled { "bridge" } else { "column" })?;
        let _daemon = deployment.start_daemon()?;
        add_bridge(&deployment, is_disabled)?;
        if !is_disabled {
            assert_eq!(hidden_rules(&deployment)?.len(), 7);
            deployment.vsctl("set Controller br0 connection_mode=out-of-band")?;
        }
        assert_eq!(hidden_rules(&deployment)?, Vec::<String>::new());
        let ping = network.run("ping -c 1 -W 1 -I br0 10.1.0.1")?;
        assert!(!ping.status.success(), "{ping:?}");
        deployment.vsctl("set Controller br0 connection_mode=in-band -- set Bridge br0 other_config:disable-in-band=false")?;
        assert!(!hidden_rules(&deployment)?.is_empty());
    }
    Ok(())
}
