//! Queues of ports, as the database says them: classes of the kernel's disciplines, with a real
//! Open vSwitch beside that makes the same of the same rows.

use std::collections::BTreeMap;

use testbed::Failure;

use crate::qos::queue_selection::send;
use crate::support::command::CommandOutput;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::{Deployment, TWO_PORTS};
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::start_ovs_vswitchd;

pub(crate) const TESTS: &[SystemTest] = tests![
    queues_are_the_classes_that_open_vswitch_makes,
    queues_are_told_of_as_by_open_vswitch,
    queues_go_with_their_rows_and_ports_and_stay_when_the_daemon_ends,
    what_cannot_have_queues_is_said,
];

/// Queues 1 and 7 of a port of 8 Mbit/s.
pub(crate) const QUEUES: &str = "set Port p2 qos=@q \
     -- --id=@q create QoS type=linux-htb other_config:max-rate=8000000 queues:1=@one queues:7=@seven \
     -- --id=@one create Queue external_ids:is=one other_config:min-rate=1000000 other_config:max-rate=2000000 \
        other_config:burst=800000 other_config:priority=3 \
     -- --id=@seven create Queue external_ids:is=seven other_config:min-rate=3000000";

/// A bridge whose ports have the numbers of their names.
pub(crate) fn bridge(deployment: &Deployment<'_, '_>) -> Result<(), Failure> {
    deployment.vsctl(&format!(
        "{TWO_PORTS} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    Ok(())
}

/// `words` without runs of spaces.
pub(crate) fn vsctl(deployment: &Deployment<'_, '_>, words: &str) -> Result<String, Failure> {
    let words: Vec<_> = words.split_whitespace().collect();
    deployment.vsctl(&words.join(" "))
}

/// What `tc` shows of the discipline and the classes of an interface, in order.
fn shown(network: &TestNetwork<'_>, interface: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for of in ["qdisc", "class"] {
        let text = network
            .run(&format!("tc {of} show dev {interface}"))?
            .expect_success()?;
        lines.extend(text.lines().map(|line| line.trim().to_owned()));
    }
    lines.sort();
    Ok(lines)
}

/// What each class of an interface has sent and dropped, by its name.
pub(crate) fn sent(
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
            ["class", "htb", of, ..] => name = of,
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

fn queues_are_the_classes_that_open_vswitch_makes(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, real) = (
        Deployment::new(&here)?,
        Deployment::in_directory(&there, "real")?,
    );
    let _daemon = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&real, "")?;
    let both = |words: &str| -> Result<Vec<String>, Failure> {
        vsctl(&ours, words)?;
        vsctl(&real, words)?;
        let wanted = shown(&there, "p2")?;
        context.wait_until(&format!("the classes of {words}"), || {
            Ok(shown(&here, "p2")? == wanted)
        })?;
        Ok(wanted)
    };
    for deployment in [&ours, &real] {
        bridge(deployment)?;
    }
    let classes = both(QUEUES)?;
    assert_eq!(classes.len(), 5, "{classes:?}");
    let of_seven = classes
        .iter()
        .find(|line| line.starts_with("class htb 1:8"));
    let of_seven = of_seven.expect("queue 7 is class 8");
    assert!(of_seven.contains("rate 3Mbit ceil 8Mbit"), "{of_seven}");
    assert_eq!(ours.vsctl("get Interface p2 error")?, "[]");
    // What a queue is to be changes, one goes, one comes, and the whole is faster.
    let seven = |deployment: &Deployment<'_, '_>| {
        deployment.vsctl("--bare --columns=_uuid find Queue external_ids:is=seven")
    };
    for deployment in [&ours, &real] {
        let seven = seven(deployment)?;
        deployment.vsctl(&format!(
            "set Queue {seven} other_config:min-rate=99000000 other_config:burst=8000000"
        ))?;
    }
    both("set QoS . other_config:max-rate=16000000")?;
    both("remove QoS . queues 1")?;
    both("set QoS . queues:0=@z -- --id=@z create Queue other_config:max-rate=500000")?;
    // Without a rate it is the link's.
    both("remove QoS . other_config max-rate")?;
    let classes = both("set Port p2 qos=@q -- --id=@q create QoS type=linux-htb")?;
    assert!(classes.iter().any(|line| line.contains("ceil 10Gbit")));
    // A longer frame is a larger burst.
    let longer = "set Interface p2 mtu_request=4000";
    both(longer)?;
    let nothing = both("clear Port p2 qos")?;
    assert_eq!(nothing.len(), 1, "{nothing:?}");
    Ok(())
}

/// What a tool says of queues, in a form in which their order does not matter, nor how long
/// they have been there.
fn told(deployment: &Deployment<'_, '_>, words: &str) -> Result<Vec<String>, Failure> {
    let text = deployment.run_tool(words)?;
    let mut parts: Vec<_> = match text.contains("tx_packets") {
        true => text
            .split("\n\n")
            .map(|part| part.trim().to_owned())
            .collect(),
        false => {
            let lines = text.lines();
            let lines = lines.map(|line| line.split(", duration=").next().unwrap_or_default());
            let without = |line: &str| line.split("(xid=").next().unwrap_or_default().to_owned();
            lines.map(without).collect()
        }
    };
    parts.sort();
    Ok(parts)
}

fn queues_are_told_of_as_by_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 2)?, TestNetwork::new(context, 2)?);
    let (ours, real) = (
        Deployment::new(&here)?,
        Deployment::in_directory(&there, "real")?,
    );
    let _daemon = ours.start_daemon()?;
    let _theirs = start_ovs_vswitchd(&real, "")?;
    for deployment in [&ours, &real] {
        bridge(deployment)?;
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
        assert_eq!(told(&ours, words)?, told(&real, words)?, "{words}");
    }
    for words in [
        "ovs-ofctl -O OpenFlow13 queue-stats br0 p2 5",
        "ovs-ofctl -O OpenFlow10 queue-stats br0 p1 0",
    ] {
        for deployment in [&ours, &real] {
            let refused = CommandOutput::run(context, deployment.program(words))?;
            let said = format!("{}{}", refused.stdout, refused.stderr);
            assert!(said.contains("OFPQOFC_BAD_QUEUE"), "{words}: {said}");
        }
    }
    let types = ours.run_tool("ovs-appctl qos/show-types p2")?;
    for kind in ["linux-htb", "linux-hfsc", "linux-noop", "egress-policer"] {
        assert!(types.contains(&format!("QoS type: {kind}\n")), "{types}");
    }
    rates_are_told(&ours)?;
    queues_are_traced(&ours, &real)
}

/// Where Open vSwitch tells that there are queues, their rates are told, too.
fn rates_are_told(deployment: &Deployment<'_, '_>) -> TestResult {
    const LEAST: [&str; 3] = [
        "queue 0:",
        "queue 1: min_rate:12.5%",
        "queue 7: min_rate:37.5%",
    ];
    const BOTH: [&str; 3] = [
        "queue 0:",
        "queue 1: min_rate:12.5% max_rate:25.0%",
        "queue 7: min_rate:37.5%",
    ];
    for (version, number, wanted) in [
        ("OpenFlow10", "2", LEAST),
        ("OpenFlow11", "2", LEAST),
        ("OpenFlow12", "2", BOTH),
        ("OpenFlow13", "ANY", BOTH),
        ("OpenFlow14", "ANY", BOTH),
        ("OpenFlow15", "2", BOTH),
    ] {
        let words = format!("ovs-ofctl -O {version} queue-get-config br0 {number}");
        let told = deployment.run_tool(&words)?;
        let lines: Vec<_> = told.lines().skip(1).map(str::trim).collect();
        assert_eq!(lines, wanted, "{words}: {told}");
    }
    let of_one = deployment.run_tool("ovs-ofctl -O OpenFlow14 queue-get-config br0 2 7")?;
    assert_eq!(of_one.lines().count(), 2, "{of_one}");
    Ok(())
}

/// Where frames go is traced with their queues, as by Open vSwitch.
fn queues_are_traced(ours: &Deployment<'_, '_>, real: &Deployment<'_, '_>) -> TestResult {
    for deployment in [ours, real] {
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
    for of in ["udp", "tcp"] {
        let traced = |deployment: &Deployment<'_, '_>| -> Result<String, Failure> {
            let told =
                deployment.run_tool(&format!("ovs-appctl ofproto/trace br0 in_port=1,{of}"))?;
            let mut lines = told.lines();
            let line = lines.find(|line| line.starts_with("Datapath actions"));
            // Ports of the data path have numbers of their own.
            let words = line.unwrap_or_default().split(',');
            let priorities = words.filter(|word| word.contains("skb_priority"));
            Ok(priorities.collect::<Vec<_>>().join(","))
        };
        let same = || Ok(traced(ours)? == traced(real)?);
        ours.network.context.wait_until("the same story", same)?;
        assert!(!traced(ours)?.is_empty());
    }
    Ok(())
}

fn queues_go_with_their_rows_and_ports_and_stay_when_the_daemon_ends(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let deployment = Deployment::new(&network)?;
    let has = |interface: &str, what: &str| -> Result<bool, Failure> {
        Ok(shown(&network, interface)?
            .iter()
            .any(|line| line.contains(what)))
    };
    // What others have put there stays until there is something to put in its place.
    network
        .run("tc qdisc add dev p1 root handle 5: pfifo limit 77")?
        .expect_success()?;
    network
        .run("tc qdisc add dev p2 root handle 5: pfifo limit 77")?
        .expect_success()?;
    {
        let mut daemon = deployment.start_daemon()?;
        bridge(&deployment)?;
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
        send(&network, [1; 5])?;
        context.wait_until("frames", || Ok(sent(&network, "p2")?["1:8"][1] == 5))?;
        deployment.run_tool("ovs-appctl exit")?;
        daemon.process.wait(crate::support::context::WAIT_LIMIT)?;
    }
    // The next one finds them, and changes what has changed meanwhile.
    assert!(has("p2", "class htb 1:8")?);
    let of_port = deployment.vsctl("get Port p2 qos")?;
    vsctl(
        &deployment,
        &format!("--no-wait remove QoS {of_port} queues 1"),
    )?;
    let mut daemon = deployment.start_daemon()?;
    context.wait_until("a queue less", || Ok(!has("p2", "class htb 1:2")?))?;
    assert_eq!(sent(&network, "p2")?["1:8"][1], 5);
    deployment.run_tool("ovs-appctl exit --cleanup")?;
    daemon.process.wait(crate::support::context::WAIT_LIMIT)?;
    assert!(!has("p2", "htb")? && has("p1", "limit 77p")?);
    Ok(())
}

/// What is asked of a port in vain, and what is said of it.
#[rustfmt::skip]
const VAIN: [(&str, &str, &str); 6] = [
    ("i1", "type=linux-htb", "linux-htb: not honoured: its frames"),
    ("t1", "type=linux-htb", "not honoured: it sends by other ports"),
    ("p2", "type=linux-sfq", "linux-sfq: not honoured"),
    ("p2", "type=linux-htb other_config:max-rate=fast", "other_config:max-rate: fast is no number"),
    ("p2", "type=linux-htb queues:61440=@u -- --id=@u create Queue dscp=1", "queues:61440: not honoured"),
    (
        "p2", "type=linux-htb queues:3=@u -- --id=@u create Queue other_config:burst=-1",
        "queues:3: other_config:burst: -1 is no number",
    ),
];

fn what_cannot_have_queues_is_said(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    bridge(&deployment)?;
    for words in [
        "add-port br0 i1 -- set Interface i1 type=internal",
        "add-port br0 t1 -- set Interface t1 type=gre options:remote_ip=10.9.9.9",
    ] {
        vsctl(&deployment, words)?;
    }
    let says = |port: &str, why: &str| {
        let words = format!("get Interface {port} error");
        context.wait_until(why, || Ok(deployment.vsctl(&words)?.contains(why)))
    };
    for (port, qos, why) in VAIN {
        let words = format!("set Port {port} qos=@q -- --id=@q create QoS {qos}");
        vsctl(&deployment, &words)?;
        says(port, why)?;
    }
    // What the kernel has not, it says; what stood there before is gone, and frames pass.
    let lacks = !network
        .run("tc qdisc add dev p1 root hfsc")?
        .status
        .success();
    let curves = "type=linux-hfsc other_config:max-rate=8000000";
    vsctl(
        &deployment,
        &format!("set Port p2 qos=@q -- --id=@q create QoS {curves}"),
    )?;
    if lacks {
        says(
            "p2",
            "linux-hfsc: the kernel has no such queueing discipline",
        )?;
        assert!(
            !shown(&network, "p2")?
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
