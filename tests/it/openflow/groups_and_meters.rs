//! Groups and meters, by `ovs-ofctl` and with traffic.

use testbed::Failure;

use crate::support::command::number_after;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::frames::hex_frame;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SECURE_3, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    groups_survive_a_round_trip,
    buckets_are_inserted_and_removed,
    group_features_are_reported,
    rules_are_deleted_with_their_group,
    group_errors_name_the_reason,
    meters_survive_a_round_trip,
    rules_are_deleted_with_their_meter,
    meter_errors_name_the_reason,
    group_of_type_all_sends_a_copy_by_each_bucket,
    select_group_distributes_connections_by_weight,
    fast_failover_group_follows_port_state,
    packet_out_executes_a_group,
    meter_passes_its_rate_in_packets,
    controller_meter_limits_packet_ins,
];

const FOUR: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3 --port p4";

/// Groups in the order of their ids, as `dump-groups` prints them.
const GROUPS: [&str; 4] = [
    "group_id=1,type=all,bucket=actions=output:1,bucket=actions=set_field:02:00:00:00:00:0b->eth_dst,output:2",
    "group_id=2,type=select,bucket=weight:3,actions=output:1,bucket=weight:5,watch_port:2,actions=output:2,bucket=weight:0,actions=drop",
    "group_id=3,type=ff,bucket=watch_port:1,actions=output:1,bucket=watch_group:1,actions=group:1",
    "group_id=4294967040,type=indirect,bucket=actions=push_vlan:0x8100,set_field:4097->vlan_vid,group:1",
];

fn groups_survive_a_round_trip(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for group in GROUPS {
        switch.ofctl_13(&format!("add-group br0 {group}"))?;
    }
    assert_eq!(switch.dump_lines("dump-groups br0")?, GROUPS);
    // OpenFlow 1.3 has no request for a single group.
    assert_eq!(switch.dump_lines("dump-groups br0 2")?, GROUPS);
    switch.ofctl_13("add-flow br0 in_port=1,actions=group:1,group:2")?;
    switch.ofctl_13("add-flow br0 in_port=2,actions=write_actions(group:1)")?;
    switch.ofctl_13("mod-group br0 group_id=2,type=indirect,bucket=output:2")?;
    let second = "group_id=2,type=indirect,bucket=actions=output:2";
    assert_eq!(switch.dump_lines("dump-groups br0")?[1], second);
    let counts = switch.dump_lines("dump-group-stats br0")?;
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
    let counts = switch.dump_lines("dump-group-stats br0 group_id=2")?;
    assert_eq!(counts.len(), 1);
    // In OpenFlow 1.0 by Nicira's extension, with bucket ids.
    let output = switch.ofctl("dump-groups br0 1")?;
    let first = "group_id=1,type=all,bucket=bucket_id:0,actions=output:1,bucket=bucket_id:1,actions=mod_dl_dst:02:00:00:00:00:0b,output:2";
    assert!(output.contains(first), "{output}");
    switch.ofctl_13("del-groups br0 group_id=3")?;
    assert_eq!(switch.dump_lines("dump-groups br0")?.len(), 3);
    switch.ofctl_13("del-groups br0")?;
    assert!(switch.dump_lines("dump-groups br0")?.is_empty());
    Ok(())
}

/// OpenFlow 1.0 with Nicira's extension, and 1.5: buckets have ids, and are inserted and removed
/// one by one.
fn buckets_are_inserted_and_removed(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    for options in ["", "-O OpenFlow15"] {
        let group = "group_id=1,type=all,bucket=bucket_id:7,output:2";
        switch.ofctl(&format!("{options} add-group br0 {group}"))?;
        let new_bucket = "group_id=1,command_bucket_id=last,bucket=bucket_id:8,output:3";
        switch.ofctl(&format!("{options} insert-buckets br0 {new_bucket}"))?;
        switch.ofctl("-O OpenFlow13 add-flow br0 in_port=1,actions=group:1")?;
        let (mut two, mut three) = (
            network.host(2).capture_frames()?,
            network.host(3).capture_frames()?,
        );
        network.host(1).send(&["eth / arp"])?;
        two.expect_frame("eth / arp");
        three.expect_frame("eth / arp");
        switch.ofctl(&format!(
            "{options} remove-buckets br0 group_id=1,command_bucket_id=7"
        ))?;
        let output = switch.ofctl(&format!("{options} dump-groups br0"))?;
        let remaining = "group_id=1,type=all,bucket=bucket_id:8,actions=output:3\n";
        assert!(output.contains(remaining), "{output}");
        switch.ofctl(&format!("{options} del-groups br0"))?;
        assert!(switch.flows("dump-flows br0")?.is_empty());
    }
    Ok(())
}

fn group_features_are_reported(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    let output = switch.ofctl_13("dump-group-features br0")?;
    for line in [
        "    Types:  0xf",
        "    Capabilities:  0x7",
        "    fast failover group:",
        "       max_groups=0xffffff00",
    ] {
        assert!(
            output.lines().any(|output_line| output_line == line),
            "{line}\n{output}"
        );
    }
    let description = switch.ofctl_13("show br0")?;
    assert!(description.contains("GROUP_STATS"), "{description}");
    Ok(())
}

fn rules_are_deleted_with_their_group(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let monitor = switch.start_monitor("-O OpenFlow13")?;
    switch.ofctl_13("add-group br0 group_id=1,type=all,bucket=output:2")?;
    switch.ofctl_13("add-flow br0 cookie=0x7,in_port=1,send_flow_rem,actions=group:1")?;
    switch.ofctl_13("add-flow br0 in_port=2,actions=output:1")?;
    switch.ofctl_13("del-groups br0 group_id=1")?;
    let remaining = switch.flows("-O OpenFlow13 dump-flows br0")?;
    assert_eq!(remaining.len(), 1, "{remaining:?}");
    context.wait_until("a flow-removed message", || {
        Ok(monitor.written()?.contains("reason=group_delete"))
    })?;
    Ok(())
}

fn group_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    switch.ofctl_13("add-group br0 group_id=1,type=all,bucket=output:1")?;
    switch.ofctl_13("add-group br0 group_id=2,type=all,bucket=group:1")?;
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
            "add-group br0 group_id=9,type=all,bucket=watch_port:1,output:1",
            "OFPGMFC_WATCH_UNSUPPORTED",
        ),
        ("add-flow br0 actions=group:9", "OFPBAC_BAD_OUT_GROUP"),
    ] {
        let result = switch.ofctl_output(&format!("-O OpenFlow13 {words}"))?;
        let output = format!("{}{}", result.stdout, result.stderr);
        assert!(output.contains(error), "{words}\n{output}");
    }
    assert_eq!(switch.dump_lines("dump-groups br0")?.len(), 2);
    Ok(())
}

fn meters_survive_a_round_trip(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl_13(
        "add-meter br0 meter=5,kbps,burst,stats,band=type=drop,rate=1000,burst_size=100",
    )?;
    switch.ofctl_13("add-meter br0 meter=7,pktps,band=type=dscp_remark,rate=9,prec_level=1")?;
    switch.ofctl_13("add-meter br0 meter=controller,pktps,band=type=drop,rate=10")?;
    let meters = [
        "meter=5 kbps burst stats bands=\ntype=drop rate=1000 burst_size=100\n",
        "meter=7 pktps bands=\ntype=dscp_remark rate=9 prec_level=1\n",
        "meter=controller pktps bands=\ntype=drop rate=10\n",
    ];
    let output = switch.ofctl_13("dump-meters br0")?;
    assert_eq!(without_head(&output), meters.join("\n"));
    switch.ofctl_13("add-flow br0 in_port=1,actions=meter:5,output:2")?;
    let flows = switch.ofctl_13("dump-flows br0")?;
    assert!(flows.contains("actions=meter:5,output:2"), "{flows}");
    let output = switch.ofctl_13("meter-stats br0 meter=5")?;
    let counts = "meter:5 flow_count:1 packet_in_count:0 byte_in_count:0 duration:";
    assert!(without_head(&output).starts_with(counts), "{output}");
    assert!(
        output.contains("0: packet_count:0 byte_count:0"),
        "{output}"
    );
    switch.ofctl_13("mod-meter br0 meter=5,pktps,band=type=drop,rate=20")?;
    let output = switch.ofctl_13("dump-meter br0 meter=5")?;
    assert_eq!(
        without_head(&output),
        "meter=5 pktps bands=\ntype=drop rate=20\n"
    );
    let output = switch.ofctl_13("meter-features br0")?;
    for line in [
        "max_meter:65536 max_bands:8 max_color:0",
        "band_types: drop dscp_remark",
        "capabilities: kbps pktps burst stats",
    ] {
        assert!(
            output.lines().any(|output_line| output_line == line),
            "{line}\n{output}"
        );
    }
    switch.ofctl_13("del-meters br0")?;
    assert_eq!(without_head(&switch.ofctl_13("dump-meters br0")?), "");
    Ok(())
}

/// The reason is deletion, since OpenFlow 1.3 has no reason for a deleted meter.
fn rules_are_deleted_with_their_meter(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let monitor = switch.start_monitor("-O OpenFlow13")?;
    switch.ofctl_13("add-meter br0 meter=1,kbps,band=type=drop,rate=1000")?;
    switch.ofctl_13("add-flow br0 in_port=1,send_flow_rem,actions=meter:1,output:2")?;
    switch.ofctl_13("del-meter br0 meter=1")?;
    assert!(switch.flows("-O OpenFlow13 dump-flows br0")?.is_empty());
    context.wait_until("a flow-removed message", || {
        Ok(monitor.written()?.contains("reason=delete"))
    })?;
    Ok(())
}

fn meter_errors_name_the_reason(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    switch.ofctl_13("add-meter br0 meter=1,kbps,band=type=drop,rate=10")?;
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
        let result = switch.ofctl_output(&format!("-O OpenFlow13 {words}"))?;
        let output = format!("{}{}", result.stdout, result.stderr);
        assert!(output.contains(error), "{words}\n{output}");
    }
    Ok(())
}

fn group_of_type_all_sends_a_copy_by_each_bucket(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 4)?;
    let switch = network.start_switch(FOUR)?;
    let group = "bucket=output:2,bucket=mod_dl_dst:02:00:00:00:00:bb,output:3,bucket=output:4";
    switch.ofctl_13(&format!("add-group br0 group_id=1,type=all,{group}"))?;
    switch.ofctl_13("add-flow br0 in_port=1,actions=group:1")?;
    let mut captures = [
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
        network.host(4).capture_frames()?,
    ];
    network.host(1).send(&[TO_TWO])?;
    let [two, three, four] = &mut captures;
    two.expect_frame(TO_TWO);
    three.expect_frame("eth(dst=02:00:00:00:00:bb,src=02:00:00:00:00:01,type=0x88b5) / data(46)");
    four.expect_frame(TO_TWO);
    let counts = switch.dump_lines("dump-group-stats br0")?;
    assert!(
        counts[0].contains("packet_count=1,byte_count=60,bucket0"),
        "{counts:?}"
    );
    Ok(())
}

/// Each connection uses one port in both rounds, and each port receives some connections.
fn select_group_distributes_connections_by_weight(context: &TestContext) -> TestResult {
    const CONNECTIONS: u64 = 300;
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let group = "bucket=weight:1,output:2,bucket=weight:2,output:3";
    switch.ofctl_13(&format!("add-group br0 group_id=1,type=select,{group}"))?;
    switch.ofctl_13("add-flow br0 in_port=1,udp,actions=group:1")?;
    let frame = |port| format!("eth / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src={port},dst=53)");
    let frames: Vec<_> = (0..CONNECTIONS)
        .map(|number| frame(2000 + number))
        .collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    let bucket_counts = |switch: &SwitchProcess<'_>| -> Result<[u64; 2], Failure> {
        let output = switch.dump_lines("dump-group-stats br0")?;
        Ok([bucket_count(&output[0], 0), bucket_count(&output[0], 1)])
    };
    for round in 1..=2 {
        network.host(1).send(&frames)?;
        context.wait_until("the counters of all frames", || {
            let [two, three] = bucket_counts(&switch)?;
            Ok(two + three == round * CONNECTIONS)
        })?;
    }
    let [two, three] = bucket_counts(&switch)?;
    assert!(two % 2 == 0, "connections changed their port: {two}");
    assert!((70..130).contains(&(two / 2)), "{two} of {}", two + three);
    Ok(())
}

fn fast_failover_group_follows_port_state(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let group = "bucket=watch_port:2,output:2,bucket=watch_port:3,output:3";
    switch.ofctl_13(&format!("add-group br0 group_id=1,type=ff,{group}"))?;
    switch.ofctl_13("add-flow br0 in_port=1,dl_type=0x88b5,actions=group:1")?;
    let (mut two, mut three) = (
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    network.host(1).send(&[TO_TWO])?;
    two.expect_frame(TO_TWO);
    network
        .host(2)
        .namespace
        .set_down(network.host(2).interface)?;
    switch.wait_for_port_state(2, "LINK_DOWN")?;
    network.host(1).send(&[TO_TWO])?;
    three.expect_frame(TO_TWO);
    network
        .host(2)
        .namespace
        .set_up(network.host(2).interface)?;
    switch.wait_for_port_state(2, "LIVE")?;
    let mut two = network.host(2).capture_frames()?;
    network.host(1).send(&[TO_TWO])?;
    two.expect_frame(TO_TWO);
    // A port that the controller takes down is not live either.
    switch.ofctl_13("mod-port br0 p2 down")?;
    network.host(1).send(&[TO_TWO])?;
    three.expect_frame(TO_TWO);
    Ok(())
}

fn packet_out_executes_a_group(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let group = "bucket=output:1,bucket=mod_dl_dst:02:00:00:00:00:bb,output:2";
    switch.ofctl_13(&format!("add-group br0 group_id=1,type=all,{group}"))?;
    let (mut one, mut two) = (
        network.host(1).capture_frames()?,
        network.host(2).capture_frames()?,
    );
    let frame = hex_frame(TO_TWO);
    let words = format!("packet-out br0 in_port=controller,packet={frame},actions=group:1");
    switch.ofctl_13(&words)?;
    one.expect_frame(TO_TWO);
    two.expect_frame("eth(dst=02:00:00:00:00:bb,src=02:00:00:00:00:01,type=0x88b5) / data(46)");
    Ok(())
}

/// The meter passes its burst size of a burst, and as many as its rate allows during the burst;
/// each frame is counted as passed or as dropped.
fn meter_passes_its_rate_in_packets(context: &TestContext) -> TestResult {
    const FRAMES: u64 = 5_000;
    const RATE: u64 = 100;
    const BURST: u64 = 20;
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl_13(&format!(
        "add-meter br0 meter=1,pktps,burst,stats,band=type=drop,rate={RATE},burst_size={BURST}"
    ))?;
    switch.ofctl_13("add-flow br0 in_port=1,dl_type=0x88b5,actions=meter:1,output:2")?;
    let before = context.clock.now();
    let frames = [TO_TWO; 50];
    for _ in 0..FRAMES / 50 {
        network.host(1).send(&frames)?;
    }
    let expected = format!("packet_in_count:{FRAMES} ");
    context.wait_until("the meter to count all frames", || {
        Ok(switch
            .ofctl_13("meter-stats br0 meter=1")?
            .contains(&expected))
    })?;
    let seconds = context.clock.now().since(before).as_secs_f64();
    let output = switch.ofctl_13("meter-stats br0 meter=1")?;
    let dropped: u64 = number_after(&output, "0: packet_count:");
    let passed = FRAMES - dropped;
    switch.wait_for_counter("br0 port 2 tx_packets", passed)?;
    assert_eq!(switch.counter("worker metered")?, dropped);
    let limit = BURST as f64 + RATE as f64 * seconds;
    assert!(
        passed >= BURST && passed as f64 <= limit + 1.0,
        "{passed} in {seconds} s"
    );
    Ok(())
}

fn controller_meter_limits_packet_ins(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl_13("add-flow br0 in_port=1,dl_type=0x88b5,actions=controller")?;
    switch.ofctl_13(
        "add-meter br0 meter=controller,pktps,burst,band=type=drop,rate=1,burst_size=3",
    )?;
    network.host(1).send(&[TO_TWO; 100])?;
    context.wait_until("the meter to count all frames", || {
        let output = switch.ofctl_13("meter-stats br0 meter=controller")?;
        Ok(output.contains("packet_in_count:100 "))
    })?;
    let output = switch.ofctl_13("meter-stats br0 meter=controller")?;
    let dropped: u64 = number_after(&output, "0: packet_count:");
    assert!((87..=97).contains(&dropped), "{output}");
    assert_eq!(switch.counter("worker controller_metered")?, dropped);
    Ok(())
}

const TO_TWO: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01,type=0x88b5) / data(46)";

impl SwitchProcess<'_> {
    /// Runs `ovs-ofctl` with OpenFlow 1.3.
    fn ofctl_13(&self, words: &str) -> Result<String, Failure> {
        self.ofctl(&format!("-O OpenFlow13 {words}"))
    }

    /// Lines of a dump, sorted by group id.
    fn dump_lines(&self, words: &str) -> Result<Vec<String>, Failure> {
        let output = self.ofctl_13(words)?;
        let lines = output.lines().filter_map(|line| line.strip_prefix(' '));
        let mut lines: Vec<_> = lines.map(str::to_owned).collect();
        lines.sort_by_key(|line| number_after(line, "group_id="));
        Ok(lines)
    }

    fn wait_for_port_state(&self, port: u32, state: &str) -> Result<(), Failure> {
        self.wait_until(&format!("port {port} to be {state}"), |switch| {
            let output = switch.ofctl_13(&format!("dump-ports-desc br0 {port}"))?;
            Ok(output.contains(&format!("state:      {state}")))
        })
    }
}

/// Packet count of a bucket in a line of `dump-group-stats`.
fn bucket_count(line: &str, bucket: usize) -> u64 {
    number_after(line, &format!("bucket{bucket}:packet_count="))
}

/// A line of `dump-group-stats` without its duration.
fn without_duration(line: &str) -> String {
    let parts = line
        .split(',')
        .filter(|part| !part.starts_with("duration="));
    parts.collect::<Vec<_>>().join(",")
}

/// Text after the line that names the message.
fn without_head(output: &str) -> &str {
    output.split_once('\n').map_or("", |(_, rest)| rest)
}
