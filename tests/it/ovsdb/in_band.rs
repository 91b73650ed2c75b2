//! Control in band: a controller that is met only through the bridge that it controls. A real
//! `ovs-vswitchd` stands beside and is told the same.

use packet::build::Stack;
use testbed::{DeviceOffload, Failure};

use crate::qos::queue_classes::sent;
use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{OVS_VSWITCHD, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    a_controller_is_met_through_a_bridge_without_rules,
    a_manager_is_met_through_a_bridge_without_rules,
    what_a_dhcp_server_answers_comes_to_the_bridge_once_whatever_rules_say,
    out_of_band_nothing_leads_through_the_bridge,
];

/// The address of the bridge's own interface, in the network of the hosts.
const OWN: &str = "10.1.0.99/16";

/// A secure bridge that is to meet its controller at host 1, behind its port.
fn set_up(deployment: &Deployment<'_, '_>, is_disabled: bool) -> Result<(), Failure> {
    let controller = deployment.network.host(1).address;
    deployment.vsctl(&format!(
        "add-br br0 -- add-port br0 p1 -- add-port br0 p2 \
         -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         other_config:hwaddr=02:00:00:00:00:aa other_config:disable-in-band={is_disabled} \
         -- set-controller br0 tcp:{controller}:6653"
    ))?;
    deployment
        .network
        .run(&format!("ip address add {OWN} dev br0"))?
        .expect_success()?;
    deployment
        .network
        .run("ip link set br0 up")?
        .expect_success()?;
    Ok(())
}

/// The rules that controllers do not see, without how long they have been there and how often they
/// were used.
fn hidden(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = deployment.run_tool("ovs-appctl bridge/dump-flows br0")?;
    let lines = told
        .lines()
        .filter_map(|line| line.find("priority=18").map(|at| &line[at..]));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// Has a bridge meet its controller, and answers what is hidden then.
fn meet(deployment: &Deployment<'_, '_>) -> Result<Vec<String>, Failure> {
    let network = deployment.network;
    set_up(deployment, false)?;
    let listed = deployment.run_tool("ovs-ofctl dump-flows br0")?;
    assert!(!listed.contains("actions="), "{listed}");
    // Open vSwitch's data path in userspace does not finish a checksum that a cable leaves open.
    let host = network.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    // It listens, and says nothing of rules.
    let words = "ovs-testcontroller --mute ptcp:6653";
    let program = deployment.program(words).inside(&network.host(1).namespace);
    let _controller = network.context.spawner.start(program)?;
    deployment.wait_for_column("--columns=is_connected --bare list Controller", "true")?;
    // What is hidden cannot be deleted, is not counted, and lets nobody else through.
    deployment.run_tool("ovs-ofctl del-flows br0")?;
    let aggregate = deployment.run_tool("ovs-ofctl dump-aggregate br0")?;
    assert!(aggregate.contains("flow_count=0"), "{aggregate}");
    assert!(!network.host(2).can_ping(network.host(1).address)?);
    let mac = network
        .host(1)
        .mac
        .map(|byte| format!("{byte:02x}"))
        .join(":");
    let hop = format!("dl_src={mac}");
    network
        .context
        .wait_until("the next station to be known", || {
            Ok(hidden(deployment)?.iter().any(|rule| rule.contains(&hop)))
        })?;
    let told = deployment.run_tool("ovs-appctl bridge/dump-flows br0")?;
    let used = told
        .lines()
        .find(|line| line.contains("priority=180008,tcp"));
    assert!(
        used.is_some_and(|line| !line.contains("n_packets=0,")),
        "{told}"
    );
    hidden(deployment)
}

fn a_controller_is_met_through_a_bridge_without_rules(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let _ours = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&other, "")?;
    let (ours, other) = (meet(&ours)?, meet(&other)?);
    assert_eq!(ours, other, "{OVS_VSWITCHD}");
    assert_eq!(ours.len(), 9);
    Ok(())
}

/// Has the database meet its manager at host 1, and answers what is hidden then. Open vSwitch's data
/// path in userspace sends by no queues.
fn meet_manager(deployment: &Deployment<'_, '_>, has_queues: bool) -> Result<Vec<String>, Failure> {
    let network = deployment.network;
    let host = network.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    set_up(deployment, false)?;
    deployment.vsctl("del-controller br0")?;
    let control = deployment.rundir.join("db.ctl");
    let remote = "ovsdb-server/add-remote db:Open_vSwitch,Open_vSwitch,manager_options";
    deployment.run_tool(&format!("ovs-appctl -t {} {remote}", control.display()))?;
    assert_eq!(hidden(deployment)?, Vec::<String>::new());
    deployment.vsctl(&format!("set-manager tcp:{}:6640", host.address))?;
    network.context.wait_until(
        "the ways to be there",
        || Ok(hidden(deployment)?.len() >= 7),
    )?;
    // The manager waits until the database comes.
    let words = "ovs-vsctl --no-wait --timeout=25 --db=ptcp:6640 get Bridge br0 fail_mode";
    let manager = deployment.program(words).inside(&host.namespace);
    let told = CommandOutput::run(network.context, manager)?.expect_success()?;
    assert_eq!(told.trim(), "secure");
    assert!(!network.host(2).can_ping(host.address)?);
    network
        .context
        .wait_until("the next station to be known", || {
            Ok(hidden(deployment)?.len() == 9)
        })?;
    let mut known = hidden(deployment)?;
    // By a queue of their own.
    deployment.vsctl("set Bridge br0 other_config:in-band-queue=3")?;
    let is_queued = || {
        Ok(hidden(deployment)?
            .iter()
            .all(|rule| rule.contains("set_queue:3")))
    };
    network
        .context
        .wait_until("a queue to be named", is_queued)?;
    known.extend(hidden(deployment)?);
    if has_queues {
        deployment.vsctl(
            "set Port p1 qos=@q -- --id=@q create QoS type=linux-htb queues:3=@three \
             -- --id=@three create Queue other_config:min-rate=1000000",
        )?;
        // The database goes on asking for its manager.
        network.context.wait_until("frames of the queue", || {
            let sent = sent(network, "p1")?;
            Ok(sent.get("1:4").is_some_and(|[_, frames, _]| *frames > 0))
        })?;
    }
    deployment.vsctl("set Manager . connection_mode=out-of-band")?;
    network.context.wait_until(
        "nothing to be hidden",
        || Ok(hidden(deployment)?.is_empty()),
    )?;
    Ok(known)
}

fn a_manager_is_met_through_a_bridge_without_rules(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let _ours = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&other, "")?;
    let (ours, other) = (meet_manager(&ours, true)?, meet_manager(&other, false)?);
    assert_eq!(ours, other, "{OVS_VSWITCHD}");
    Ok(())
}

/// What DHCP servers answer, as much of it as matters, with this mark; and what else looks so.
fn answers(mark: u8) -> [String; 3] {
    let datagram = |of: u16, to: u16, mark: u8| {
        format!(
            "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51) / \
             ipv4(src=10.1.0.1,dst=255.255.255.255) / udp(src={of},dst={to}) / data({mark})"
        )
    };
    [
        datagram(68, 67, mark),
        datagram(67, 68, mark),
        datagram(67, 69, mark),
    ]
}

/// Such an answer as a flow.
const ANSWER: &str = "in_port=1,udp,udp_src=67,udp_dst=68,nw_src=10.1.0.1,nw_dst=255.255.255.255,\
                      dl_dst=ff:ff:ff:ff:ff:ff";

/// The last of several frames: rules have it everywhere.
const LAST: &str = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51,type=0x88b6) / data(50)";

/// What of these answers of host 1 comes to the bridge's own interface and to host 2.
fn heard(deployment: &Deployment<'_, '_>) -> Result<[Vec<String>; 2], Failure> {
    let network = deployment.network;
    let mut captures = [
        network.capture_frames("br0")?,
        network.host(2).capture_frames()?,
    ];
    let sent = [answers(100), answers(101)].concat();
    let sent: Vec<_> = sent.iter().map(String::as_str).collect();
    network.host(1).send(&sent)?;
    network.host(1).send(&[LAST])?;
    let mut heard = [Vec::new(), Vec::new()];
    for (capture, heard) in captures.iter_mut().zip(&mut heard) {
        loop {
            let frame = Stack::dissect(&capture.next_frame()?).to_string();
            if frame.contains("type=0x88b6") {
                break;
            }
            if frame.contains("src=02:00:00:00:00:51") {
                heard.push(frame);
            }
        }
        heard.sort();
    }
    Ok(heard)
}

fn what_a_dhcp_server_answers_comes_to_the_bridge_once_whatever_rules_say(
    context: &TestContext,
) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let _ours = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&other, "")?;
    for deployment in [&ours, &other] {
        set_up(deployment, false)?;
        deployment
            .network
            .context
            .wait_until(
                "the ways to be there",
                || Ok(hidden(deployment)?.len() >= 7),
            )?;
    }
    let rules = [
        ("", 2, 0),
        ("udp,actions=output:2", 2, 6),
        ("udp,actions=output:2,LOCAL", 6, 6),
        ("udp,actions=NORMAL", 6, 6),
    ];
    for (rule, here, second) in rules {
        for deployment in [&ours, &other] {
            deployment.run_tool("ovs-ofctl del-flows br0")?;
            for rule in [rule, "priority=65535,dl_type=0x88b6,actions=all"] {
                if !rule.is_empty() {
                    deployment.run_tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
                }
            }
        }
        let heard = heard(&ours)?;
        assert_eq!(heard.each_ref().map(Vec::len), [here, second], "{rule}");
        // Of all there are two.
        let answers = heard[0]
            .iter()
            .filter(|frame| frame.contains("udp(src=67,dst=68)"));
        assert_eq!(answers.count(), 2, "{rule}");
        // The other sends in an order of its own, and tells what it does.
        let told = other.run_tool(&format!("ovs-appctl ofproto/trace br0 {ANSWER}"))?;
        let is_beside = told.contains("outputting DHCP packet to local port");
        assert_eq!(is_beside, here == 2, "{rule}: {told}");
    }
    // Where nothing is in band, rules alone say.
    ours.vsctl("set Bridge br0 other_config:disable-in-band=true")?;
    ours.run_tool("ovs-ofctl del-flows br0 udp")?;
    assert_eq!(heard(&ours)?.map(|heard| heard.len()), [0, 0]);
    Ok(())
}

fn out_of_band_nothing_leads_through_the_bridge(context: &TestContext) -> TestResult {
    for is_disabled in [true, false] {
        let network = TestNetwork::new(context, 2)?;
        let deployment =
            Deployment::in_directory(&network, if is_disabled { "bridge" } else { "column" })?;
        let _daemon = deployment.start_daemon()?;
        set_up(&deployment, is_disabled)?;
        if !is_disabled {
            assert_eq!(hidden(&deployment)?.len(), 7);
            deployment.vsctl("set Controller br0 connection_mode=out-of-band")?;
        }
        assert_eq!(hidden(&deployment)?, Vec::<String>::new());
        let home = network.run("ping -c 1 -W 1 -I br0 10.1.0.1")?;
        assert!(!home.status.success(), "{home:?}");
        deployment.vsctl("set Controller br0 connection_mode=in-band -- set Bridge br0 other_config:disable-in-band=false")?;
        assert!(!hidden(&deployment)?.is_empty());
    }
    Ok(())
}
