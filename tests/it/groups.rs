//! Groups and meters, by `ovs-ofctl` and under traffic.

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::ofctl::hex;
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    groups_are_told_as_they_were_given,
    group_features_are_told,
    a_deleted_group_takes_its_rules_along,
    what_groups_cannot_be_is_refused_by_its_name,
    meters_are_told_as_they_were_given,
    a_deleted_meter_takes_its_rules_along,
    what_meters_cannot_be_is_refused_by_its_name,
    a_group_of_all_copies_to_each_port,
    a_select_group_shares_connections_out,
    a_fast_failover_group_follows_the_link,
    a_packet_out_goes_through_a_group,
    a_meter_in_packets_lets_its_rate_pass,
    packet_ins_are_metered,
];

const FOUR: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3 --port p4";
const THREE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3";

/// Groups, in the order of their numbers and in the words of `dump-groups`.
const GROUPS: [&str; 4] = [
    "group_id=1,type=all,bucket=actions=output:1,bucket=actions=set_field:02:00:00:00:00:0b->eth_dst,output:2",
    "group_id=2,type=select,bucket=weight:3,actions=output:1,bucket=weight:5,watch_port:2,actions=output:2,bucket=weight:0,actions=drop",
    "group_id=3,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:1,actions=group:1",
    "group_id=4294967040,type=indirect,bucket=actions=push_vlan:0x8100,set_field:4097->vlan_vid,group:1",
];

fn groups_are_told_as_they_were_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    for group in GROUPS {
        switch.groups(&format!("add-group br0 {group}"))?;
    }
    assert_eq!(switch.told("dump-groups br0")?, GROUPS);
    // OpenFlow 1.3 has no word for one.
    assert_eq!(switch.told("dump-groups br0 2")?, GROUPS);
    switch.groups("add-flow br0 in_port=1,actions=group:1,group:2")?;
    switch.groups("add-flow br0 in_port=2,actions=write_actions(group:1)")?;
    switch.groups("mod-group br0 group_id=2,type=indirect,bucket=output:2")?;
    let second = "group_id=2,type=indirect,bucket=actions=output:2";
    assert_eq!(switch.told("dump-groups br0")?[1], second);
    let counts = switch.told("dump-group-stats br0")?;
    let counts: Vec<_> = counts.iter().map(|line| without_duration(line)).collect();
    let none = "packet_count=0,byte_count=0";
    assert_eq!(
        counts,
        [
            format!("group_id=1,ref_count=4,{none},bucket0:{none},bucket1:{none}"),
            format!("group_id=2,ref_count=1,{none},bucket0:{none}"),
            format!("group_id=3,ref_count=0,{none},bucket0:{none},bucket1:{none}"),
            format!("group_id=4294967040,ref_count=0,{none},bucket0:{none}"),
        ]
    );
    let counts = switch.told("dump-group-stats br0 group_id=2")?;
    assert_eq!(counts.len(), 1);
    // Also in OpenFlow 1.0, as Nicira's extension has it, with the buckets' numbers.
    let told = switch.ofctl("dump-groups br0 1")?;
    let first = "group_id=1,type=all,bucket=bucket_id:0,actions=output:1,bucket=bucket_id:1,actions=mod_dl_dst:02:00:00:00:00:0b,output:2";
    assert!(told.contains(first), "{told}");
    switch.groups("del-groups br0 group_id=3")?;
    assert_eq!(switch.told("dump-groups br0")?.len(), 3);
    switch.groups("del-groups br0")?;
    assert!(switch.told("dump-groups br0")?.is_empty());
    Ok(())
}

fn group_features_are_told(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    let told = switch.groups("dump-group-features br0")?;
    for line in [
        "    Types:  0xf",
        "    Capabilities:  0xf",
        "    fast failover group:",
        "       max_groups=0x10000",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    let shown = switch.groups("show br0")?;
    assert!(shown.contains("GROUP_STATS"), "{shown}");
    Ok(())
}

fn a_deleted_group_takes_its_rules_along(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let monitor = switch.monitor("-O OpenFlow13")?;
    switch.groups("add-group br0 group_id=1,type=all,bucket=output:2")?;
    switch.groups("add-flow br0 cookie=0x7,in_port=1,send_flow_rem,actions=group:1")?;
    switch.groups("add-flow br0 in_port=2,actions=output:1")?;
    switch.groups("del-groups br0 group_id=1")?;
    let left = switch.flows("-O OpenFlow13 dump-flows br0")?;
    assert_eq!(left.len(), 1, "{left:?}");
    ground.wait_until("the end of the rule to be told", || {
        Ok(monitor.written()?.contains("reason=group_delete"))
    })?;
    Ok(())
}

fn what_groups_cannot_be_is_refused_by_its_name(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    switch.groups("add-group br0 group_id=1,type=all,bucket=output:1")?;
    switch.groups("add-group br0 group_id=2,type=all,bucket=group:1")?;
    for (words, error) in [
        ("add-group br0 group_id=1,type=all", "OFPGMFC_GROUP_EXISTS"),
        (
            "add-group br0 group_id=9,type=indirect",
            "OFPGMFC_INVALID_GROUP",
        ),
        ("mod-group br0 group_id=9,type=all", "OFPGMFC_UNKNOWN_GROUP"),
        (
            "mod-group br0 group_id=1,type=all,bucket=group:2",
            "OFPGMFC_LOOP",
        ),
        ("del-groups br0 group_id=1", "OFPGMFC_CHAINED_GROUP"),
        (
            "add-group br0 group_id=9,type=all,bucket=group:7",
            "OFPBAC_BAD_OUT_GROUP",
        ),
        (
            "add-group br0 group_id=9,type=all,bucket=watch_port:1,output:1",
            "OFPGMFC_WATCH_UNSUPPORTED",
        ),
        ("add-flow br0 actions=group:9", "OFPBAC_BAD_OUT_GROUP"),
    ] {
        let ran = switch.ofctl_ran(&format!("-O OpenFlow13 {words}"))?;
        let said = format!("{}{}", ran.output, ran.errors);
        assert!(said.contains(error), "{words}\n{said}");
    }
    assert_eq!(switch.told("dump-groups br0")?.len(), 2);
    Ok(())
}

fn meters_are_told_as_they_were_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch
        .groups("add-meter br0 meter=5,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100")?;
    switch.groups("add-meter br0 meter=7,pktps,band=type=dscp_remark,rate=9,prec_level=1")?;
    switch.groups("add-meter br0 meter=controller,pktps,band=type=drop,rate=10")?;
    let meters = [
        "meter=5 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\n",
        "meter=7 pktps bands=\ntype=dscp_remark rate=9 prec_level=1\n",
        "meter=controller pktps bands=\ntype=drop rate=10\n",
    ];
    let told = switch.groups("dump-meters br0")?;
    assert_eq!(without_head(&told), meters.join("\n"));
    switch.groups("add-flow br0 in_port=1,actions=meter:5,output:2")?;
    let flows = switch.groups("dump-flows br0")?;
    assert!(flows.contains("actions=meter:5,output:2"), "{flows}");
    let told = switch.groups("meter-stats br0 meter=5")?;
    let counts = "meter:5 flow_count:1 packet_in_count:0 byte_in_count:0 duration:";
    assert!(without_head(&told).starts_with(counts), "{told}");
    assert!(told.contains("0: packet_count:0 byte_count:0"), "{told}");
    switch.groups("mod-meter br0 meter=5,pktps,band=type=drop,rate=20")?;
    let told = switch.groups("dump-meter br0 meter=5")?;
    assert_eq!(
        without_head(&told),
        "meter=5 pktps bands=\ntype=drop rate=20\n"
    );
    let told = switch.groups("meter-features br0")?;
    for line in [
        "max_meter:65536 max_bands:8 max_color:0",
        "band_types: drop dscp_remark",
        "capabilities: kbps pktps burst stats",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}\n{told}");
    }
    switch.groups("del-meters br0")?;
    assert_eq!(without_head(&switch.groups("dump-meters br0")?), "");
    Ok(())
}

/// OpenFlow 1.3 calls it a deletion: only later versions know what a meter's is.
fn a_deleted_meter_takes_its_rules_along(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let monitor = switch.monitor("-O OpenFlow13")?;
    switch.groups("add-meter br0 meter=1,kbps,band=type=drop,rate=1000")?;
    switch.groups("add-flow br0 in_port=1,send_flow_rem,actions=meter:1,output:2")?;
    switch.groups("del-meter br0 meter=1")?;
    assert!(switch.flows("-O OpenFlow13 dump-flows br0")?.is_empty());
    ground.wait_until("the end of the rule to be told", || {
        Ok(monitor.written()?.contains("reason=delete"))
    })?;
    Ok(())
}

fn what_meters_cannot_be_is_refused_by_its_name(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    switch.groups("add-meter br0 meter=1,kbps,band=type=drop,rate=10")?;
    let nine = ["type=drop,rate=1"; 9].join(",");
    for (words, error) in [
        (
            "add-meter br0 meter=1,kbps,band=type=drop,rate=10",
            "OFPMMFC_METER_EXISTS",
        ),
        (
            "mod-meter br0 meter=2,kbps,band=type=drop,rate=10",
            "OFPMMFC_UNKNOWN_METER",
        ),
        (
            "add-meter br0 meter=controller,kbps,band=type=dscp_remark,rate=10,prec_level=1",
            "OFPMMFC_BAD_BAND",
        ),
        (
            &format!("add-meter br0 meter=2,kbps,bands={nine}"),
            "OFPMMFC_OUT_OF_BANDS",
        ),
        ("meter-stats br0 meter=2", "OFPMMFC_UNKNOWN_METER"),
        (
            "add-flow br0 actions=meter:2,output:1",
            "OFPMMFC_INVALID_METER",
        ),
    ] {
        let ran = switch.ofctl_ran(&format!("-O OpenFlow13 {words}"))?;
        let said = format!("{}{}", ran.output, ran.errors);
        assert!(said.contains(error), "{words}\n{said}");
    }
    Ok(())
}

fn a_group_of_all_copies_to_each_port(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 4)?;
    let switch = rig.start(FOUR)?;
    let group = "bucket=output:2,bucket=mod_dl_dst:02:00:00:00:00:bb,output:3,bucket=output:4";
    switch.groups(&format!("add-group br0 group_id=1,type=all,{group}"))?;
    switch.groups("add-flow br0 in_port=1,actions=group:1")?;
    let mut eyes = [rig.host(2).eye()?, rig.host(3).eye()?, rig.host(4).eye()?];
    rig.host(1).send(&[TO_TWO])?;
    let [two, three, four] = &mut eyes;
    two.sees(TO_TWO);
    three.sees("eth(dst=02:00:00:00:00:bb,src=02:00:00:00:00:01,type=0x88b5) / data(46)");
    four.sees(TO_TWO);
    let counts = switch.told("dump-group-stats br0")?;
    assert!(
        counts[0].contains("packet_count=1,byte_count=60,bucket0"),
        "{counts:?}"
    );
    Ok(())
}

/// Each connection goes to one port, whatever the direction of its addresses, and
/// each port gets some.
fn a_select_group_shares_connections_out(ground: &Ground) -> Outcome {
    const CONNECTIONS: u64 = 300;
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
    let group = "bucket=weight:1,output:2,bucket=weight:2,output:3";
    switch.groups(&format!("add-group br0 group_id=1,type=select,{group}"))?;
    switch.groups("add-flow br0 in_port=1,udp,actions=group:1")?;
    let frame = |port| format!("eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src={port},dst=53)");
    let frames: Vec<_> = (0..CONNECTIONS)
        .map(|number| frame(2000 + number))
        .collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    let share = |switch: &Switch<'_>| -> Result<[u64; 2], Failure> {
        let told = switch.told("dump-group-stats br0")?;
        Ok([bucket_count(&told[0], 0), bucket_count(&told[0], 1)])
    };
    for round in 1..=2 {
        rig.host(1).send(&frames)?;
        ground.wait_until("all frames to be counted", || {
            let [two, three] = share(&switch)?;
            Ok(two + three == round * CONNECTIONS)
        })?;
    }
    let [two, three] = share(&switch)?;
    assert!(two % 2 == 0, "the same connections went another way: {two}");
    assert!((70..130).contains(&(two / 2)), "{two} of {}", two + three);
    Ok(())
}

fn a_fast_failover_group_follows_the_link(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
    let group = "bucket=watch_port:2,output:2,bucket=watch_port:3,output:3";
    switch.groups(&format!("add-group br0 group_id=1,type=ff,{group}"))?;
    switch.groups("add-flow br0 in_port=1,dl_type=0x88b5,actions=group:1")?;
    let (mut two, mut three) = (rig.host(2).eye()?, rig.host(3).eye()?);
    rig.host(1).send(&[TO_TWO])?;
    two.sees(TO_TWO);
    rig.host(2).namespace.set_down(rig.host(2).interface)?;
    switch.wait_for_port_state(2, "LINK_DOWN")?;
    rig.host(1).send(&[TO_TWO])?;
    three.sees(TO_TWO);
    rig.host(2).namespace.set_up(rig.host(2).interface)?;
    switch.wait_for_port_state(2, "LIVE")?;
    let mut two = rig.host(2).eye()?;
    rig.host(1).send(&[TO_TWO])?;
    two.sees(TO_TWO);
    // The controller's own word counts too.
    switch.groups("mod-port br0 p2 down")?;
    rig.host(1).send(&[TO_TWO])?;
    three.sees(TO_TWO);
    Ok(())
}

fn a_packet_out_goes_through_a_group(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    let group = "bucket=output:1,bucket=mod_dl_dst:02:00:00:00:00:bb,output:2";
    switch.groups(&format!("add-group br0 group_id=1,type=all,{group}"))?;
    let (mut one, mut two) = (rig.host(1).eye()?, rig.host(2).eye()?);
    let frame = hex(TO_TWO);
    let words = format!("packet-out br0 in_port=controller,packet={frame},actions=group:1");
    switch.groups(&words)?;
    one.sees(TO_TWO);
    two.sees("eth(dst=02:00:00:00:00:bb,src=02:00:00:00:00:01,type=0x88b5) / data(46)");
    Ok(())
}

/// Of a flood, the burst passes and what the rate allows while it lasts; every
/// frame is counted as passed or as dropped.
fn a_meter_in_packets_lets_its_rate_pass(ground: &Ground) -> Outcome {
    const FRAMES: u64 = 5_000;
    const RATE: u64 = 100;
    const BURST: u64 = 20;
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.groups(&format!(
        "add-meter br0 meter=1,pktps,burst,stats,band=type=drop,rate={RATE},burst_size={BURST}"
    ))?;
    switch.groups("add-flow br0 in_port=1,dl_type=0x88b5,actions=meter:1,output:2")?;
    let before = ground.clock.now();
    let frames = [TO_TWO; 50];
    for _ in 0..FRAMES / 50 {
        rig.host(1).send(&frames)?;
    }
    let submitted = format!("packet_in_count:{FRAMES} ");
    ground.wait_until("all frames to be submitted", || {
        Ok(switch
            .groups("meter-stats br0 meter=1")?
            .contains(&submitted))
    })?;
    let seconds = ground.clock.now().since(before).as_secs_f64();
    let told = switch.groups("meter-stats br0 meter=1")?;
    let dropped: u64 = number_behind(&told, "0: packet_count:");
    let passed = FRAMES - dropped;
    switch.wait_for_counter("br0 port 2 tx_packets", passed)?;
    assert_eq!(switch.counter("worker metered")?, dropped);
    let most = BURST as f64 + RATE as f64 * seconds;
    assert!(
        passed >= BURST && passed as f64 <= most + 1.0,
        "{passed} in {seconds} s"
    );
    Ok(())
}

fn packet_ins_are_metered(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2")?;
    switch.groups("add-flow br0 in_port=1,dl_type=0x88b5,actions=controller")?;
    switch
        .groups("add-meter br0 meter=controller,pktps,burst,band=type=drop,rate=1,burst_size=3")?;
    rig.host(1).send(&[TO_TWO; 100])?;
    ground.wait_until("all frames to be submitted", || {
        let told = switch.groups("meter-stats br0 meter=controller")?;
        Ok(told.contains("packet_in_count:100 "))
    })?;
    let told = switch.groups("meter-stats br0 meter=controller")?;
    let dropped: u64 = number_behind(&told, "0: packet_count:");
    assert!((87..=97).contains(&dropped), "{told}");
    assert_eq!(switch.counter("worker controller_metered")?, dropped);
    Ok(())
}

const TO_TWO: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01,type=0x88b5) / data(46)";

impl Switch<'_> {
    /// What `ovs-ofctl` says in OpenFlow 1.3.
    fn groups(&self, words: &str) -> Result<String, Failure> {
        self.ofctl(&format!("-O OpenFlow13 {words}"))
    }

    /// The lines of a dump, sorted by the number that each begins with.
    fn told(&self, words: &str) -> Result<Vec<String>, Failure> {
        let told = self.groups(words)?;
        let lines = told.lines().filter_map(|line| line.strip_prefix(' '));
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort_by_key(|line| number_behind(line, "group_id="));
        Ok(lines)
    }

    fn wait_for_port_state(&self, port: u32, state: &str) -> Result<(), Failure> {
        self.wait_until(&format!("port {port} to be {state}"), |switch| {
            let told = switch.groups(&format!("dump-ports-desc br0 {port}"))?;
            Ok(told.contains(&format!("state:      {state}")))
        })
    }
}

/// The number that stands behind `name`.
#[track_caller]
fn number_behind(text: &str, name: &str) -> u64 {
    let (_, rest) = text.split_once(name).expect(name);
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().expect("a number")
}

/// The frames of a bucket, in a line of `dump-group-stats`.
fn bucket_count(line: &str, bucket: usize) -> u64 {
    number_behind(line, &format!("bucket{bucket}:packet_count="))
}

/// A line of `dump-group-stats` without the group's age.
fn without_duration(line: &str) -> String {
    let parts = line
        .split(',')
        .filter(|part| !part.starts_with("duration="));
    parts.collect::<Vec<_>>().join(",")
}

/// What comes behind the line that names the message.
fn without_head(told: &str) -> &str {
    told.split_once('\n').map_or("", |(_, rest)| rest)
}
