//! Queues of ports, as the database says them: classes of the kernel's disciplines, with a real
//! Open vSwitch beside that makes the same of the same rows.

use std::collections::BTreeMap;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Ran, Rig};
use crate::site::{Site, TWO};
use crate::unixctl::theirs;

pub(crate) const RULES: &[Rule] = rules![
    queues_are_the_classes_that_open_vswitch_makes,
    queues_are_told_of_as_by_open_vswitch,
    frames_leave_by_the_queue_that_rules_name,
    queues_share_a_link_by_their_rates,
    queues_go_with_their_rows_and_ports_and_stay_when_the_daemon_ends,
    what_cannot_have_queues_is_said,
];

/// Queues 1 and 7 of a port of 8 Mbit/s.
const QUEUES: &str = "set Port p2 qos=@q \
     -- --id=@q create QoS type=linux-htb other_config:max-rate=8000000 queues:1=@one queues:7=@seven \
     -- --id=@one create Queue external_ids:is=one other_config:min-rate=1000000 other_config:max-rate=2000000 \
        other_config:burst=800000 other_config:priority=3 \
     -- --id=@seven create Queue external_ids:is=seven other_config:min-rate=3000000";

/// A bridge whose ports have the numbers of their names.
fn bridge(site: &Site<'_, '_>) -> Result<(), Failure> {
    site.vsctl(&format!(
        "{TWO} -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2"
    ))?;
    Ok(())
}

/// `words` without runs of spaces.
fn vsctl(site: &Site<'_, '_>, words: &str) -> Result<String, Failure> {
    let words: Vec<_> = words.split_whitespace().collect();
    site.vsctl(&words.join(" "))
}

/// What `tc` shows of the discipline and the classes of an interface, in order.
fn shown(rig: &Rig<'_>, interface: &str) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    for of in ["qdisc", "class"] {
        let text = rig.ran(&format!("tc {of} show dev {interface}"))?.good()?;
        lines.extend(text.lines().map(|line| line.trim().to_owned()));
    }
    lines.sort();
    Ok(lines)
}

/// What each class of an interface has sent and dropped, by its name.
pub(crate) fn sent(rig: &Rig<'_>, interface: &str) -> Result<BTreeMap<String, [u64; 3]>, Failure> {
    let text = rig
        .ran(&format!("tc -s class show dev {interface}"))?
        .good()?;
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

fn queues_are_the_classes_that_open_vswitch_makes(ground: &Ground) -> Outcome {
    let (here, there) = (Rig::new(ground, 2)?, Rig::new(ground, 2)?);
    let (ours, real) = (Site::new(&here)?, Site::at(&there, "real")?);
    let _daemon = ours.daemon()?;
    let _theirs = theirs(&real, "")?;
    let both = |words: &str| -> Result<Vec<String>, Failure> {
        vsctl(&ours, words)?;
        vsctl(&real, words)?;
        let wanted = shown(&there, "p2")?;
        ground.wait_until(&format!("the classes of {words}"), || {
            Ok(shown(&here, "p2")? == wanted)
        })?;
        Ok(wanted)
    };
    for site in [&ours, &real] {
        bridge(site)?;
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
    let seven =
        |site: &Site<'_, '_>| site.vsctl("--bare --columns=_uuid find Queue external_ids:is=seven");
    for site in [&ours, &real] {
        let seven = seven(site)?;
        site.vsctl(&format!(
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
fn told(site: &Site<'_, '_>, words: &str) -> Result<Vec<String>, Failure> {
    let text = site.tool(words)?;
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

fn queues_are_told_of_as_by_open_vswitch(ground: &Ground) -> Outcome {
    let (here, there) = (Rig::new(ground, 2)?, Rig::new(ground, 2)?);
    let (ours, real) = (Site::new(&here)?, Site::at(&there, "real")?);
    let _daemon = ours.daemon()?;
    let _theirs = theirs(&real, "")?;
    for site in [&ours, &real] {
        bridge(site)?;
        vsctl(site, QUEUES)?;
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
        for site in [&ours, &real] {
            let refused = Ran::of(ground, site.program(words))?;
            let said = format!("{}{}", refused.output, refused.errors);
            assert!(said.contains("OFPQOFC_BAD_QUEUE"), "{words}: {said}");
        }
    }
    // Open vSwitch tells no rates.
    for (version, number, rates) in [
        ("OpenFlow10", "2", ["min_rate:12.5%", "min_rate:37.5%"]),
        ("OpenFlow11", "2", ["min_rate:12.5%", "min_rate:37.5%"]),
        (
            "OpenFlow12",
            "2",
            ["min_rate:12.5% max_rate:25.0%", "min_rate:37.5%"],
        ),
        (
            "OpenFlow13",
            "ANY",
            ["min_rate:12.5% max_rate:25.0%", "min_rate:37.5%"],
        ),
        (
            "OpenFlow14",
            "ANY",
            ["min_rate:12.5% max_rate:25.0%", "min_rate:37.5%"],
        ),
        (
            "OpenFlow15",
            "2",
            ["min_rate:12.5% max_rate:25.0%", "min_rate:37.5%"],
        ),
    ] {
        let words = format!("ovs-ofctl -O {version} queue-get-config br0 {number}");
        let told = ours.tool(&words)?;
        let lines: Vec<_> = told.lines().skip(1).map(str::trim).collect();
        let [one, seven] = rates;
        let wanted = [
            "queue 0:".to_owned(),
            format!("queue 1: {one}"),
            format!("queue 7: {seven}"),
        ];
        assert_eq!(lines, wanted, "{words}: {told}");
    }
    let of_one = ours.tool("ovs-ofctl -O OpenFlow14 queue-get-config br0 2 7")?;
    assert_eq!(of_one.lines().count(), 2, "{of_one}");
    let types = ours.tool("ovs-appctl qos/show-types p2")?;
    for kind in ["linux-htb", "linux-hfsc", "linux-noop", "egress-policer"] {
        assert!(types.contains(&format!("QoS type: {kind}\n")), "{types}");
    }
    // Where frames go is traced with their queues, as by Open vSwitch.
    for site in [&ours, &real] {
        site.rig.ran("ip link set br0 up")?.good()?;
        for flow in [
            "in_port=1,udp,actions=set_queue:1,output:2,set_queue:7,output:2,output:local",
            "in_port=1,tcp,actions=enqueue:2:7,output:local",
        ] {
            site.tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
        }
    }
    for of in ["udp", "tcp"] {
        let traced = |site: &Site<'_, '_>| -> Result<String, Failure> {
            let told = site.tool(&format!("ovs-appctl ofproto/trace br0 in_port=1,{of}"))?;
            let line = told
                .lines()
                .find(|line| line.starts_with("Datapath actions"));
            // Ports of the data path have numbers of their own.
            let words = line.unwrap_or_default().split(',');
            let priorities = words.filter(|word| word.contains("skb_priority"));
            Ok(priorities.collect::<Vec<_>>().join(","))
        };
        ground.wait_until("the same story", || Ok(traced(&ours)? == traced(&real)?))?;
        assert!(!traced(&ours)?.is_empty());
    }
    Ok(())
}

const UDP: &str =
    "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / ipv4(src=10.1.0.1,dst=10.1.0.2)";

/// Frames to these ports of UDP, one each.
fn to(ports: impl IntoIterator<Item = u16>) -> Vec<String> {
    let frames = ports.into_iter();
    frames
        .map(|port| format!("{UDP} / udp(src=1000,dst={port}) / data(500)"))
        .collect()
}

fn send(rig: &Rig<'_>, ports: impl IntoIterator<Item = u16>) -> Result<(), Failure> {
    let frames = to(ports);
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    rig.host(1).send(&frames)
}

fn frames_leave_by_the_queue_that_rules_name(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    bridge(&site)?;
    vsctl(
        &site,
        "add-port br0 p3 -- set Interface p3 ofport_request=3",
    )?;
    vsctl(&site, QUEUES)?;
    // The hosts say nothing of their own that a rule would take along.
    for (port, actions) in [
        (1, "set_queue:1,output:2"),
        (2, "enqueue:2:7,output:3"),
        (3, "output:2"),
        (4, "set_queue:1,pop_queue,output:2"),
        (5, "set_queue:5,output:2"),
        (6, "set_queue:7,output:3,output:2,set_queue:1,output:2"),
        (7, "set_queue:61440,output:2"),
        (8, "set_queue:0,output:2"),
        (9, "set_queue:7,normal"),
        (10, "set_queue:1,resubmit(,1)"),
        (11, "clone(set_queue:1,mod_nw_ttl:9,output:2),output:2"),
    ] {
        let flow = format!("in_port=1,udp,tp_dst={port},actions={actions}");
        site.tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    site.tool("ovs-ofctl add-flow br0 table=1,actions=output:2")?;
    let group = "group_id=1,type=all,bucket=set_queue:7,output:2,bucket=output:2";
    for words in [
        format!("add-group br0 {group}"),
        "add-flow br0 in_port=1,udp,tp_dst=12,actions=group:1".to_owned(),
        "add-flow br0 table=0,in_port=1,udp,tp_dst=13,actions=write_actions(set_queue:1,output:2)"
            .to_owned(),
    ] {
        site.tool(&format!("ovs-ofctl -O OpenFlow13 {words}"))?;
    }
    let mut wanted = BTreeMap::from([("1:1", 0), ("1:2", 0), ("1:8", 0)]);
    let frame_bytes = 14 + 20 + 8 + 500;
    // How many of one frame leave by queues 0, 1 and 7.
    for (port, zero, one, seven) in [
        (1, 0, 1, 0),
        (2, 0, 0, 1),
        (3, 1, 0, 0),
        (4, 1, 0, 0),
        (5, 1, 0, 0),
        (6, 0, 1, 1),
        (7, 1, 0, 0),
        (8, 1, 0, 0),
        (9, 0, 0, 1),
        (10, 0, 1, 0),
        (11, 1, 1, 0),
        (12, 1, 0, 1),
        (13, 0, 1, 0),
    ] {
        send(&rig, [port; 3])?;
        for (class, count) in [("1:1", zero), ("1:2", one), ("1:8", seven)] {
            *wanted.entry(class).or_default() += 3 * count;
        }
        ground.wait_until(&format!("frames {port} in {wanted:?}"), || {
            let sent = sent(&rig, "p2")?;
            Ok(wanted
                .iter()
                .all(|(class, count)| sent.get(*class) == Some(&[count * frame_bytes, *count, 0])))
        })?;
    }
    // Frames of several queues that come together are taken apart, and all leave.
    send(&rig, (0..300).map(|place| 1 + place % 3))?;
    for count in wanted.values_mut() {
        *count += 100;
    }
    let counted = |class: &str| -> Result<u64, Failure> { Ok(sent(&rig, "p2")?[class][1]) };
    ground.wait_until("all frames", || {
        Ok(wanted
            .iter()
            .all(|(class, count)| counted(class).ok() == Some(*count)))
    })?;
    // A controller's frames, too, and the counts are those of OpenFlow.
    let hex = "0200000000020200000000018888";
    for actions in ["set_queue:7,output:2", "enqueue:2:1"] {
        let words = format!(
            "in_port=controller,packet={hex}{},actions={actions}",
            "00".repeat(46)
        );
        Ran::of(ground, site.program("ovs-ofctl packet-out br0").arg(words))?.good()?;
    }
    for class in ["1:2", "1:8"] {
        *wanted.entry(class).or_default() += 1;
        ground.wait_until("the controller's frame", || {
            Ok(counted(class)? == wanted[class])
        })?;
    }
    let told = site.tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 7")?;
    assert!(
        told.contains(&format!("pkts={}, errors=0", wanted["1:8"])),
        "{told}"
    );
    let told = site.tool("ovs-appctl qos/show p2")?;
    assert!(
        told.contains(&format!("tx_packets: {}\n", wanted["1:2"])),
        "{told}"
    );
    Ok(())
}

fn queues_share_a_link_by_their_rates(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    bridge(&site)?;
    // Three shares to one.
    vsctl(
        &site,
        "set Port p2 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=4000000 queues:1=@one queues:2=@two \
         -- --id=@one create Queue other_config:min-rate=3000000 -- --id=@two create Queue other_config:min-rate=1000000",
    )?;
    for queue in [1, 2] {
        let flow = format!("in_port=1,udp,tp_dst={queue},actions=set_queue:{queue},output:2");
        site.tool(&format!("ovs-ofctl add-flow br0 {flow}"))?;
    }
    // A class keeps a thousand frames back; the rest it drops, and says so.
    send(&rig, (0..4000).map(|place| 1 + place % 2))?;
    let counts = || -> Result<[[u64; 3]; 2], Failure> {
        let sent = sent(&rig, "p2")?;
        Ok(["1:2", "1:3"].map(|class| sent[class]))
    };
    ground.wait_until("frames of the first queue", || Ok(counts()?[0][1] >= 400))?;
    let [one, two] = counts()?;
    assert!(
        one[1] > 2 * two[1] && one[1] < 5 * two[1],
        "{one:?} {two:?}"
    );
    ground.wait_until("frames to be dropped", || {
        Ok(counts()?.iter().all(|[_, _, drops]| *drops > 0))
    })?;
    let told = site.tool("ovs-ofctl -O OpenFlow13 queue-stats br0 2 1")?;
    assert!(!told.contains("errors=0"), "{told}");
    Ok(())
}

fn queues_go_with_their_rows_and_ports_and_stay_when_the_daemon_ends(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let site = Site::new(&rig)?;
    let has = |interface: &str, what: &str| -> Result<bool, Failure> {
        Ok(shown(&rig, interface)?
            .iter()
            .any(|line| line.contains(what)))
    };
    // What others have put there stays until there is something to put in its place.
    rig.ran("tc qdisc add dev p1 root handle 5: pfifo limit 77")?
        .good()?;
    rig.ran("tc qdisc add dev p2 root handle 5: pfifo limit 77")?
        .good()?;
    {
        let mut daemon = site.daemon()?;
        bridge(&site)?;
        vsctl(&site, QUEUES)?;
        vsctl(
            &site,
            "add-port br0 p3 -- set Port p3 qos=@q -- --id=@q create QoS type=linux-htb",
        )?;
        assert!(has("p2", "class htb 1:8")? && has("p3", "class htb 1:1")?);
        assert!(has("p1", "limit 77p")?);
        vsctl(&site, "del-port p3")?;
        assert!(!has("p3", "htb")?);
        site.tool("ovs-ofctl add-flow br0 in_port=1,udp,actions=enqueue:2:7")?;
        send(&rig, [1; 5])?;
        ground.wait_until("frames", || Ok(sent(&rig, "p2")?["1:8"][1] == 5))?;
        site.tool("ovs-appctl exit")?;
        daemon.process.wait(crate::ground::PATIENCE)?;
    }
    // The next one finds them, and changes what has changed meanwhile.
    assert!(has("p2", "class htb 1:8")?);
    let of_port = site.vsctl("get Port p2 qos")?;
    vsctl(&site, &format!("--no-wait remove QoS {of_port} queues 1"))?;
    let mut daemon = site.daemon()?;
    ground.wait_until("a queue less", || Ok(!has("p2", "class htb 1:2")?))?;
    assert_eq!(sent(&rig, "p2")?["1:8"][1], 5);
    site.tool("ovs-appctl exit --cleanup")?;
    daemon.process.wait(crate::ground::PATIENCE)?;
    assert!(!has("p2", "htb")? && has("p1", "limit 77p")?);
    Ok(())
}

fn what_cannot_have_queues_is_said(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    bridge(&site)?;
    vsctl(&site, "add-port br0 i1 -- set Interface i1 type=internal")?;
    vsctl(
        &site,
        "add-port br0 t1 -- set Interface t1 type=gre options:remote_ip=10.9.9.9",
    )?;
    for (port, qos, why) in [
        (
            "i1",
            "type=linux-htb",
            "linux-htb: not honoured: its frames",
        ),
        (
            "t1",
            "type=linux-htb",
            "not honoured: it sends by other ports",
        ),
        ("p2", "type=linux-sfq", "linux-sfq: not honoured"),
        (
            "p2",
            "type=linux-htb other_config:max-rate=fast",
            "other_config:max-rate: fast is no number",
        ),
        (
            "p2",
            "type=linux-htb queues:61440=@u -- --id=@u create Queue dscp=1",
            "queues:61440: not honoured",
        ),
        (
            "p2",
            "type=linux-htb queues:3=@u -- --id=@u create Queue other_config:burst=-1",
            "queues:3: other_config:burst: -1 is no number",
        ),
    ] {
        vsctl(
            &site,
            &format!("set Port {port} qos=@q -- --id=@q create QoS {qos}"),
        )?;
        ground.wait_until(why, || {
            Ok(site
                .vsctl(&format!("get Interface {port} error"))?
                .contains(why))
        })?;
    }
    // What the kernel has not, it says; what stood there before is gone, and frames pass.
    let lacks = !rig.ran("tc qdisc add dev p1 root hfsc")?.status.success();
    vsctl(
        &site,
        "set Port p2 qos=@q -- --id=@q create QoS type=linux-hfsc other_config:max-rate=8000000",
    )?;
    if lacks {
        ground.wait_until("that the kernel has none", || {
            Ok(site
                .vsctl("get Interface p2 error")?
                .contains("linux-hfsc: the kernel has no such queueing discipline"))
        })?;
        assert!(!shown(&rig, "p2")?.iter().any(|line| line.contains("htb")));
    }
    vsctl(
        &site,
        "clear Port p2 qos -- clear Port i1 qos -- clear Port t1 qos",
    )?;
    site.tool("ovs-ofctl add-flow br0 actions=normal")?;
    for port in ["p2", "i1", "t1"] {
        site.wait_for_column(&format!("get Interface {port} error"), "[]")?;
    }
    rig.host(1).reach(rig.host(2).address)?;
    Ok(())
}
