//! Queues of ports configured in the database: classes of the kernel's queueing disciplines,
//! compared with those that Open vSwitch creates from equal rows.

use std::collections::BTreeMap;

use testbed::Failure;

use crate::qos::queue_selection::send_to_ports;
use crate::support::command::CommandOutput;
use crate::support::comparison::NetworkPair;
use crate::support::context::{SystemTest, TestContext, TestResult, WAIT_LIMIT, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    queues_create_the_same_classes_as_open_vswitch,
    queues_are_reported_like_open_vswitch,
    queue_classes_follow_rows_and_survive_the_daemon,
    qos_errors_are_reported,
];

/// Arguments of `ovs-vsctl` for queues 1 and 7 of a port with 8 Mbit/s.
pub(crate) const QUEUES: &str = "set Port p2 qos=@q \
     -- --id=@q create QoS type=linux-htb other_config:max-rate=8000000 queues:1=@one queues:7=@seven \
     -- --id=@one create Queue external_ids:is=one other_config:min-rate=1000000 other_config:max-rate=2000000 \
        other_config:burst=800000 other_config:priority=3 \
     -- --id=@seven create Queue external_ids:is=seven other_config:min-rate=3000000";

/// Adds a bridge whose ports have the numbers of their names.
pub(crate) fn add_bridge(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    Ok(())
}

/// Runs `ovs-vsctl` with these arguments, which may be separated by several spaces.
pub(crate) fn vsctl(deployment: &Deployment<'_, '_>, words: &str) -> Result<String, Failure> {
    let words: Vec<_> = words.split_whitespace().collect();
    deployment.vsctl(&words.join(" "))
}

/// Disciplines and classes of an interface as `tc` prints them, sorted.
fn tc_lines(network: &TestNetwork<'_>, interface: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for kind in ["qdisc", "class"] {
        let text = network
            .run(&format!("tc {kind} show dev {interface}"))?
            .expect_success()?;
        lines.extend(text.lines().map(|line| line.trim().to_owned()));
    }
    lines.sort();
    Ok(lines)
}

/// Bytes and packets that each class of an interface sent, and packets that it dropped, by the name
/// of the class.
pub(crate) fn class_counters(
    network: &TestNetwork<'_>,
    interface: &str,
) -> Result<BTreeMap<String, [u64; 3]>, Failure> {
    let text = network
        .run(&format!("tc -s class show dev {interface}"))?
        .expect_success()?;
    let mut classes = BTreeMap::new();
    let mut name = "";
    for line in text.lines() {
        let words: Vec<_> = line.split_whitespace().collect();
        match words[..] {
            ["class", "htb", kind, ..] => name = kind,
            [
                "Sent",
                bytes,
                "bytes",
                packets,
                "pkt",
                "(dropped",
                drops,
                ..,
            ] => {
                let number = |word: &str| word.trim_end_matches(',').parse().unwrap_or(u64::MAX);
                classes.insert(name.to_owned(), [bytes, packets, drops].map(number));
            }
            _ => {}
        }
    }
    Ok(classes)
}

fn queues_create_the_same_classes_as_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&ovs, "")?;
    let apply_to_both = |words: &str| -> Result<Vec<String>, Failure> {
        vsctl(&comporta, words)?;
        vsctl(&ovs, words)?;
        let expected = tc_lines(&pair.ovs, "p2")?;
        context.wait_until(&format!("the classes of {words}"), || {
            Ok(tc_lines(&pair.comporta, "p2")? == expected)
        })?;
        Ok(expected)
    };
    for deployment in [&comporta, &ovs] {
        add_bridge(deployment)?;
    }
    let classes = apply_to_both(QUEUES)?;
    assert_eq!(classes.len(), 5, "{classes:?}");
    let class_of_seven = classes
        .iter()
        .find(|line| line.starts_with("class htb 1:8"));
    let class_of_seven = class_of_seven.expect("queue 7 is class 8");
    assert!(
        class_of_seven.contains("rate 3Mbit ceil 8Mbit"),
        "{class_of_seven}"
    );
    assert_eq!(comporta.vsctl("get Interface p2 error")?, "[]");
    // Changes of a queue's settings, a removed and an added queue, and a higher rate of the whole.
    let seven = |deployment: &Deployment<'_, '_>| {
        deployment.vsctl("--bare --columns=_uuid find Queue external_ids:is=seven")
    };
    for deployment in [&comporta, &ovs] {
        let seven = seven(deployment)?;
        deployment.vsctl(&format!(
            "set Queue {seven} other_config:min-rate=99000000 other_config:burst=8000000"
        ))?;
    }
    apply_to_both("set QoS . other_config:max-rate=16000000")?;
    apply_to_both("remove QoS . queues 1")?;
    apply_to_both("set QoS . queues:0=@z -- --id=@z create Queue other_config:max-rate=500000")?;
    // The default rate is the link's.
    apply_to_both("remove QoS . other_config max-rate")?;
    let classes = apply_to_both("set Port p2 qos=@q -- --id=@q create QoS type=linux-htb")?;
    assert!(classes.iter().any(|line| line.contains("ceil 10Gbit")));
    // A larger MTU increases the burst.
    let larger_mtu = "set Interface p2 mtu_request=4000";
    apply_to_both(larger_mtu)?;
    let cleared = apply_to_both("clear Port p2 qos")?;
    assert_eq!(cleared.len(), 1, "{cleared:?}");
    Ok(())
}

/// Output of a tool about queues, sorted, without durations.
fn queue_report(deployment: &Deployment<'_, '_>, words: &str) -> Result<Vec<String>, Failure> {
    let text = deployment.run_tool(words)?;
    let mut parts: Vec<_> = match text.contains("tx_packets") {
        true => text
            .split("\n\n")
            .map(|part| part.trim().to_owned())
            .collect(),
        false => {
            let lines = text.lines();
            let lines = lines.map(|line| line.split(", duration=").next().unwrap_or_default());
            let without_xid =
                |line: &str| line.split("(xid=").next().unwrap_or_default().to_owned();
            lines.map(without_xid).collect()
        }
    };
    parts.sort();
    Ok(parts)
}

fn queues_are_reported_like_open_vswitch(context: &TestContext) -> TestResult {
    let pair = NetworkPair::with_hosts(context, 2)?;
    let [comporta, ovs] = pair.deploy()?;
    let _daemon = comporta.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&ovs, "")?;
    for deployment in [&comporta, &ovs] {
        add_bridge(deployment)?;
        vsctl(deployment, QUEUES)?;
    }
    for words in [
        "ovs-appctl qos/show p2",
        "ovs-appctl qos/show p1",
        "ovs-ofctl -O OpenFlow10 queue-stats br0",
        "ovs-ofctl -O OpenFlow13 queue-stats br0",
        "ovs-ofctl -O OpenFlow15 queue-stats br0 p2",
        "ovs-ofctl -O OpenFlow13 queue-stats br0 p2 7",
        "ovs-ofctl -O OpenFlow13 queue-stats br0 p1",
    ] {
        assert_eq!(
            queue_report(&comporta, words)?,
            queue_report(&ovs, words)?,
            "{words}"
        );
    }
    for words in [
        "ovs-ofctl -O OpenFlow13 queue-stats br0 p2 5",
        "ovs-ofctl -O OpenFlow10 queue-stats br0 p1 0",
    ] {
        for deployment in [&comporta, &ovs] {
            let refused = CommandOutput::run(context, deployment.program(words))?;
            let output = format!("{}{}", refused.stdout, refused.stderr);
            assert!(output.contains("OFPQOFC_BAD_QUEUE"), "{words}: {output}");
        }
    }
    let types = comporta.run_tool("ovs-appctl qos/show-types p2")?;
    for kind in ["linux-htb", "linux-hfsc", "linux-noop", "egress-policer"] {
        assert!(types.contains(&format!("QoS type: {kind}\n")), "{types}");
    }
    expect_rates(&comporta)?;
    expect_queues_in_traces(&comporta, &ovs)
}

/// Asserts that the rates of queues are reported, where Open vSwitch reports the queues.
fn expect_rates(deployment: &Deployment<'_, '_>) -> TestResult {
    const MIN_RATES: [&str; 3] = [
        "queue 0:",
        "queue 1: min_rate:12.5%",
        "queue 7: min_rate:37.5%",
    ];
    const MIN_AND_MAX_RATES: [&str; 3] = [
        "queue 0:",
        "queue 1: min_rate:12.5% max_rate:25.0%",
        "queue 7: min_rate:37.5%",
    ];
    for (version, number, expected) in [
        ("OpenFlow10", "2", MIN_RATES),
        ("OpenFlow11", "2", MIN_RATES),
        ("OpenFlow12", "2", MIN_AND_MAX_RATES),
        ("OpenFlow13", "ANY", MIN_AND_MAX_RATES),
        ("OpenFlow14", "ANY", MIN_AND_MAX_RATES),
        ("OpenFlow15", "2", MIN_AND_MAX_RATES),
    ] {
        let words = format!("ovs-ofctl -O {version} queue-get-config br0 {number}");
        let output = deployment.run_tool(&words)?;
        let lines: Vec<_> = output.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines, expected, "{words}: {output}");
    }
    let one_queue = deployment.run_tool("ovs-ofctl -O OpenFlow14 queue-get-config br0 2 7")?;
    assert_eq!(one_queue.lines().count(), 2, "{one_queue}");
    Ok(())
}

/// Asserts that traces contain the same queues as Open vSwitch's.
fn expect_queues_in_traces(comporta: &Deployment<'_, '_>, ovs: &Deployment<'_, '_>) -> TestResult {
    for deployment in [comporta, ovs] {
        deployment
            .network
            .run("ip link set br0 up")?
            .expect_success()?;
        for flow in [
            "in_port=1,udp,actions=set_queue:1,output:2,set_queue:7,output:2,output:local",
            "in_port=1,tcp,actions=enqueue:2:7,output:local",
        ] {
            deployment.run_tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
    }
    for kind in ["udp", "tcp"] {
        let priorities = |deployment: &Deployment<'_, '_>| -> Result<String, Failure> {
            let output =
                deployment.run_tool(&format!("ovs-appctl ofproto/trace br0 in_port=1,{kind}"))?;
            let mut lines = output.lines();
            let line = lines.find(|line| line.starts_with("Datapath actions"));
            // Datapath port numbers differ.
            let words = line.unwrap_or_default().split(',');
            let priorities = words.filter(|word| word.contains("skb_priority"));
            Ok(priorities.collect::<Vec<_>>().join(","))
        };
        let same = || Ok(priorities(comporta)? == priorities(ovs)?);
        comporta
            .network
            .context
            .wait_until("the same trace", same)?;
        assert!(!priorities(comporta)?.is_empty());
    }
    Ok(())
}

fn queue_classes_follow_rows_and_survive_the_daemon(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let has = |interface: &str, text: &str| -> Result<bool, Failure> {
        Ok(tc_lines(&network, interface)?
            .iter()
            .any(|line| line.contains(text)))
    };
    // Disciplines of other programs stay until the switch replaces them.
    network
        .run("tc qdisc add dev p1 root handle 5: pfifo limit 77")?
        .expect_success()?;
    network
        .run("tc qdisc add dev p2 root handle 5: pfifo limit 77")?
        .expect_success()?;
    {
        let mut daemon = deployment.start_daemon()?;
        add_bridge(&deployment)?;
        vsctl(&deployment, QUEUES)?;
        vsctl(
            &deployment,
            "add-port br0 p3 -- set Port p3 qos=@q -- --id=@q create QoS type=linux-htb",
        )?;
        assert!(has("p2", "class htb 1:8")? && has("p3", "class htb 1:1")?);
        assert!(has("p1", "limit 77p")?);
        vsctl(&deployment, "del-port p3")?;
        assert!(!has("p3", "htb")?);
        deployment.run_tool("ovs-ofctl add-flow br0 in_port=1,udp,actions=enqueue:2:7")?;
        send_to_ports(&network, [1; 5])?;
        context.wait_until("the counter of the frames", || {
            Ok(class_counters(&network, "p2")?["1:8"][1] == 5)
        })?;
        deployment.run_tool("ovs-appctl exit")?;
        daemon.process.wait(WAIT_LIMIT)?;
    }
    // The next daemon adopts the classes, and applies the changes made in the meantime.
    assert!(has("p2", "class htb 1:8")?);
    let qos = deployment.vsctl("get Port p2 qos")?;
    vsctl(&deployment, &format!("--no-wait remove QoS {qos} queues 1"))?;
    let mut daemon = deployment.start_daemon()?;
    context.wait_until("the removal of a queue", || {
        Ok(!has("p2", "class htb 1:2")?)
    })?;
    assert_eq!(class_counters(&network, "p2")?["1:8"][1], 5);
    deployment.run_tool("ovs-appctl exit --cleanup")?;
    daemon.process.wait(WAIT_LIMIT)?;
    assert!(!has("p2", "htb")? && has("p1", "limit 77p")?);
    Ok(())
}

/// Ports, QoS settings that they do not support, and the error.
#[rustfmt::skip]
const UNSUPPORTED: [(&str, &str, &str); 6] = [
    ("i1", "type=linux-htb", "linux-htb: ignored: this backend"),
    ("t1", "type=linux-htb", "ignored: the port is virtual"),
    ("p2", "type=linux-sfq", "linux-sfq: ignored"),
    ("p2", "type=linux-htb other_config:max-rate=fast", "other_config:max-rate: fast is no number"),
    ("p2", "type=linux-htb queues:61440=@u -- --id=@u create Queue dscp=1", "queues:61440: ignored"),
    (
        "p2", "type=linux-htb queues:3=@u -- --id=@u create Queue other_config:burst=-1",
        "queues:3: other_config:burst: -1 is no number",
    ),
];

fn qos_errors_are_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    add_bridge(&deployment)?;
    for words in [
        "add-port br0 i1 -- set Interface i1 type=internal",
        "add-port br0 t1 -- set Interface t1 type=gre options:remote_ip=10.9.9.9",
    ] {
        vsctl(&deployment, words)?;
    }
    let wait_for_error = |port: &str, error: &str| {
        let words = format!("get Interface {port} error");
        context.wait_until(error, || Ok(deployment.vsctl(&words)?.contains(error)))
    };
    for (port, qos, error) in UNSUPPORTED {
        let words = format!("set Port {port} qos=@q -- --id=@q create QoS {qos}");
        vsctl(&deployment, &words)?;
        wait_for_error(port, error)?;
    }
    // A discipline that the kernel lacks is reported; the earlier one is removed, and frames pass.
    let is_missing = !network
        .run("tc qdisc add dev p1 root hfsc")?
        .status
        .success();
    let curves = "type=linux-hfsc other_config:max-rate=8000000";
    vsctl(
        &deployment,
        &format!("set Port p2 qos=@q -- --id=@q create QoS {curves}"),
    )?;
    if is_missing {
        wait_for_error(
            "p2",
            "linux-hfsc: the kernel has no such queueing discipline",
        )?;
        assert!(
            !tc_lines(&network, "p2")?
                .iter()
                .any(|line| line.contains("htb"))
        );
    }
    let clear = "clear Port p2 qos -- clear Port i1 qos -- clear Port t1 qos";
    vsctl(&deployment, clear)?;
    deployment.run_tool("ovs-ofctl add-flow br0 actions=normal")?;
    for port in ["p2", "i1", "t1"] {
        deployment.wait_for_column(&format!("get Interface {port} error"), "[]")?;
    }
    network.host(1).ping_until_reply(network.host(2).address)?;
    Ok(())
}
