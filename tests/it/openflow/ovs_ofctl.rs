//! `ovs-ofctl` of Open vSwitch 3.1 on the management socket: by default OpenFlow 1.0 with Nicira's
//! extensions, and with `-O` each later version.

use std::fs;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::frames::hex_frame;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SECURE_3, STANDALONE_2, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    show_describes_the_switch_and_its_ports,
    description_probe_and_ping_are_answered,
    benchmark_receives_all_replies,
    flow_table_and_port_counters_count_pings,
    arp_and_icmp_have_separate_counters_per_direction,
    flows_survive_a_round_trip,
    nicira_fields_and_actions_survive_a_round_trip,
    flows_of_a_file_are_added,
    flow_statistics_of_ten_thousand_flows_are_split_into_messages,
    modification_is_loose_or_strict,
    deletion_is_loose_or_strict,
    deletion_and_dumps_filter_by_port_and_cookie,
    replace_flows_changes_only_differences,
    overlap_check_refuses_a_flow,
    goto_table_chains_tables,
    packet_out_executes_its_actions,
    monitor_receives_packet_ins_removals_and_port_status,
    mod_port_sets_a_port_down_and_up,
    mod_port_sets_no_flood_no_forward_and_no_receive,
    fragment_handling_is_configurable,
    unsupported_fields_and_actions_are_refused_with_their_error,
    bridge_accepts_only_its_configured_versions,
    importance_is_reported_since_openflow_14,
    openflow_15_masks_set_field_and_filters_port_descriptions,
    switch_listens_on_tcp_and_unix_sockets,
];

/// Options before each command.
const VERSION_OPTIONS: [&str; 6] = [
    "",
    "-O OpenFlow11",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

/// Options for versions that can express all matches: OpenFlow 1.1 has a match structure of its
/// own.
const FULL_MATCH_OPTIONS: [&str; 5] = [
    "",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

fn show_describes_the_switch_and_its_ports(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    network.switch_namespace.set_mac("p1", [2, 0, 0, 0, 1, 1])?;
    network.switch_namespace.set_mac("p2", [2, 0, 0, 0, 1, 2])?;
    let switch = network
        .start_switch("--bridge br0 --datapath-id 00000000000000ab --port p1=7 --port p2")?;
    let output = switch.ofctl("show br0")?;
    for line in [
        "OFPT_FEATURES_REPLY (xid=0x2): dpid:00000000000000ab",
        "n_tables:254, n_buffers:0",
        "capabilities: FLOW_STATS TABLE_STATS PORT_STATS QUEUE_STATS ARP_MATCH_IP",
        " 7(p1): addr:02:00:00:00:01:01",
        " 1(p2): addr:02:00:00:00:01:02",
        " LOCAL(br0): addr:02:00:00:00:01:01",
        "OFPT_GET_CONFIG_REPLY (xid=0x4): frags=normal miss_send_len=0",
    ] {
        assert!(output.lines().any(|text| text == line), "{line}\n{output}");
    }
    let described = |output: &str| output.split_once("(p2)").map(|(_, text)| text.to_owned());
    let output = switch.ofctl("-O OpenFlow13 show br0")?;
    assert!(output.contains("OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:00000000000000ab"));
    assert!(described(&output).is_some_and(|text| text.contains("state:      LIVE")));
    for options in VERSION_OPTIONS {
        let ports = switch.ofctl(&format!("{options} dump-ports-desc br0"))?;
        assert!(ports.contains(" 7(p1): addr:02:00:00:00:01:01"), "{ports}");
        assert!(ports.contains("10GB-FD"), "{ports}");
    }
    Ok(())
}

fn description_probe_and_ping_are_answered(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    for options in VERSION_OPTIONS {
        let output = switch.ofctl(&format!("{options} dump-desc br0"))?;
        for line in [
            "Manufacturer: Comporta",
            "DP Description: br0",
            "Serial Num: None",
        ] {
            assert!(output.lines().any(|text| text == line), "{output}");
        }
        assert_eq!(switch.ofctl(&format!("{options} probe br0"))?, "");
        let output = switch.ofctl(&format!("{options} ping br0 1000"))?;
        let answers = output
            .lines()
            .filter(|line| line.starts_with("1000 bytes from br0"));
        assert_eq!(answers.count(), 10, "{output}");
    }
    Ok(())
}

fn benchmark_receives_all_replies(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    let output = switch.ofctl("benchmark br0 1000 2000")?;
    let header = "Sending 2000 packets * 1008 bytes (with header) = 2016000 bytes total";
    assert!(
        output.starts_with(header) && output.contains("Finished in "),
        "{output}"
    );
    Ok(())
}

/// As in the published experiment: a ping is a frame of 98 bytes in each direction.
fn flow_table_and_port_counters_count_pings(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
    switch.ofctl("add-flow br0 in_port=2,actions=output:1")?;
    network.add_static_neighbours(1, 2)?;
    network.host(1).ping(network.host(2).address, 78)?;
    let counts = "cookie=0x0, table=0, n_packets=78, n_bytes=7644, ";
    let rows = ["in_port=1 actions=output:2", "in_port=2 actions=output:1"];
    assert_eq!(
        switch.flows("dump-flows br0")?,
        rows.map(|row| format!("{counts}{row}"))
    );
    // OpenFlow 1.3 states `reset_counts`, which is implicit in 1.0.
    assert_eq!(
        switch.flows("-O OpenFlow13 dump-flows br0")?,
        rows.map(|row| format!("{counts}reset_counts {row}"))
    );
    for options in VERSION_OPTIONS {
        let output = switch.ofctl(&format!("{options} dump-aggregate br0"))?;
        assert!(
            output.ends_with("packet_count=156 byte_count=15288 flow_count=2\n"),
            "{output}"
        );
        let output = switch.ofctl(&format!("{options} dump-aggregate br0 in_port=2"))?;
        assert!(
            output.ends_with("packet_count=78 byte_count=7644 flow_count=1\n"),
            "{output}"
        );
        let output = switch.ofctl(&format!("{options} dump-tables br0"))?;
        assert!(
            output.contains("  table 0:\n    active=2, lookup=156, matched=156\n"),
            "{output}"
        );
        for port in [1, 2] {
            let output = switch.ofctl(&format!("{options} dump-ports br0 {port}"))?;
            let rows = [
                format!(
                    "  port  {port}: rx pkts=78, bytes=7644, drop=0, errs=0, frame=0, over=0, crc=?\n"
                ),
                "           tx pkts=78, bytes=7644, drop=0, errs=0, coll=?\n".to_owned(),
            ];
            assert!(output.contains(&rows.concat()), "{output}");
        }
    }
    Ok(())
}

/// The four rules of the published experiment.
fn arp_and_icmp_have_separate_counters_per_direction(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.ofctl(&format!("{options} del-flows br0"))?;
        for (from, to) in [(1, 2), (2, 1)] {
            switch.ofctl(&format!(
                "{options} add-flow br0 in_port={from},arp,actions=output:{to}"
            ))?;
            switch.ofctl(&format!(
                "{options} add-flow br0 in_port={from},icmp,actions=output:{to}"
            ))?;
        }
        for host in [1, 2] {
            network
                .host(host)
                .run("ip neigh flush dev eth0")?
                .expect_success()?;
        }
        network.host(1).ping(network.host(2).address, 5)?;
        let flows = switch.flows(&format!("{options} dump-flows br0"))?;
        for from in [1, 2] {
            // The other host may send an ARP request of its own later.
            let arp = flows
                .iter()
                .find(|flow| flow.contains(&format!("arp,in_port={from}")));
            assert!(
                arp.is_some_and(|flow| !flow.contains("n_packets=0")),
                "{flows:?}"
            );
            let icmp = format!("n_packets=5, n_bytes=490, icmp,in_port={from}");
            assert!(flows.iter().any(|flow| flow.contains(&icmp)), "{flows:?}");
        }
    }
    Ok(())
}

/// Flows, and their text in a flow dump.
const FLOWS: [(&str, &str); 13] = [
    (
        "priority=5,in_port=1,actions=output:2",
        "priority=5,in_port=1 actions=output:2",
    ),
    (
        "cookie=0x12,idle_timeout=60,ip,nw_dst=10.0.0.0/8,actions=LOCAL",
        "idle_timeout=60, ip,nw_dst=10.0.0.0/8 actions=LOCAL",
    ),
    (
        "hard_timeout=100,tcp,tp_dst=80,actions=drop",
        "hard_timeout=100, tcp,tp_dst=80 actions=drop",
    ),
    (
        "arp,arp_tpa=10.0.0.1,arp_op=1,actions=NORMAL",
        "arp,arp_tpa=10.0.0.1,arp_op=1 actions=NORMAL",
    ),
    (
        "dl_src=02:00:00:00:00:00/ff:ff:ff:00:00:00,actions=FLOOD",
        "dl_src=02:00:00:00:00:00/ff:ff:ff:00:00:00 actions=FLOOD",
    ),
    (
        "dl_vlan=10,dl_vlan_pcp=3,actions=strip_vlan,output:2",
        "dl_vlan=10,dl_vlan_pcp=3 actions=strip_vlan,output:2",
    ),
    (
        "ipv6,ipv6_dst=fd00::/8,actions=CONTROLLER:100",
        "ipv6,ipv6_dst=fd00::/8 actions=CONTROLLER:100",
    ),
    (
        "icmp6,icmpv6_type=135,nd_target=fd00::1,actions=ALL",
        "icmp6,icmp_type=135,nd_target=fd00::1 actions=ALL",
    ),
    (
        "udp,nw_src=10.0.0.1,tp_src=53,nw_tos=40,actions=IN_PORT",
        "udp,nw_src=10.0.0.1,nw_tos=40,tp_src=53 actions=IN_PORT",
    ),
    (
        "sctp,tp_dst=2905,actions=output:1,output:2",
        "sctp,tp_dst=2905 actions=output:1,output:2",
    ),
    (
        "icmp,icmp_type=8,icmp_code=0,nw_ttl=64,actions=output:2",
        "icmp,nw_ttl=64,icmp_type=8,icmp_code=0 actions=output:2",
    ),
    (
        "ip,nw_frag=later,actions=output:2",
        "ip,nw_frag=later actions=output:2",
    ),
    (
        "dl_type=0x88cc,actions=CONTROLLER:65535",
        "dl_type=0x88cc actions=CONTROLLER:65535",
    ),
];

fn flows_survive_a_round_trip(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in FULL_MATCH_OPTIONS {
        // Versions have different names for an action, and 1.3 states what is implicit in 1.0.
        for (flow, output) in FLOWS {
            switch.ofctl(&format!("{options} del-flows br0"))?;
            switch.ofctl(&format!("{options} add-flow br0 {flow}"))?;
            for options in FULL_MATCH_OPTIONS {
                let flows = switch.flows(&format!("{options} dump-flows br0"))?;
                let (_, rest) = flows[0]
                    .split_once("n_bytes=0, ")
                    .ok_or("the dump has no flow")?;
                let rest = rest
                    .replace("reset_counts ", "")
                    .replace("idle_age=0, ", "")
                    .replace("pop_vlan", "strip_vlan");
                assert_eq!((&*rest, flows.len()), (output, 1), "{options} {flow}");
            }
        }
    }
    Ok(())
}

/// Fields of Nicira, which are dumped in the syntax in which they are added.
const NICIRA_FIELDS: [&str; 2] = [
    "reg0=0x5,reg15=0x1/0xff,metadata=0x7 actions=drop",
    "pkt_mark=0x1,conj_id=3,tun_src=10.0.0.1 actions=drop",
];

/// Actions of Nicira, which are dumped in the syntax in which they are added.
const NICIRA_ACTIONS: [&str; 22] = [
    "actions=resubmit:3",
    "actions=resubmit(,5)",
    "actions=resubmit(1,4)",
    "actions=load:0x5->NXM_NX_REG0[4..7]",
    "actions=move:NXM_OF_ETH_SRC[0..15]->NXM_NX_REG0[16..31]",
    "actions=push:NXM_NX_REG0[1..3],pop:NXM_NX_REG1[]",
    "actions=output:NXM_NX_REG0[0..15]",
    "actions=output(port=1,max_len=100)",
    "actions=controller(reason=invalid_ttl,max_len=100,id=5)",
    "actions=controller(userdata=01.02.03)",
    "actions=note:01.02.03.00.00.00",
    "actions=exit",
    "actions=clone(output:1,push:NXM_NX_REG0[],clone(exit))",
    "actions=learn(table=1,idle_timeout=10,priority=7,send_flow_rem,cookie=0x5,NXM_OF_VLAN_TCI[0..11],\
     NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],reg1=0x5,load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15],\
     output:NXM_OF_IN_PORT[])",
    "actions=multipath(symmetric_l4,1024,hrw,16,0,NXM_NX_REG0[0..7])",
    "actions=bundle(eth_src,50,active_backup,ofport,members:4,8)",
    "actions=bundle_load(symmetric_l4,60,hrw,ofport,NXM_NX_REG0[0..15],members:1,2)",
    "actions=conjunction(5,2/3),conjunction(6,1/2)",
    "actions=check_pkt_larger(1500)->NXM_NX_REG0[3]",
    "actions=sample(probability=100,collector_set_id=1,obs_domain_id=2,obs_point_id=3)",
    "ip actions=dec_ttl(1,2,3)",
    "tcp actions=move:NXM_OF_TCP_SRC[]->NXM_OF_TCP_DST[]",
];

fn nicira_fields_and_actions_survive_a_round_trip(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for flow in NICIRA_FIELDS {
        expect_round_trip(&switch, flow, &FULL_MATCH_OPTIONS)?;
    }
    for flow in NICIRA_ACTIONS {
        expect_round_trip(&switch, flow, &VERSION_OPTIONS)?;
    }
    Ok(())
}

/// Asserts that a flow added with each of these options is dumped unchanged with all of them.
fn expect_round_trip(switch: &SwitchProcess<'_>, flow: &str, all_options: &[&str]) -> TestResult {
    for options in all_options {
        switch.ofctl(&format!("{options} del-flows br0"))?;
        switch.ofctl(&format!(
            "{options} add-flow br0 {}",
            flow.replace(' ', ",")
        ))?;
        for options in all_options {
            let flows = switch.flows(&format!("{options} dump-flows br0"))?;
            let row = flows.first().and_then(|row| row.split_once("n_bytes=0, "));
            let (_, rest) =
                row.ok_or_else(|| format!("{options}: the dump has no row for {flow}"))?;
            let rest = rest
                .replace("reset_counts ", "")
                .replace("idle_age=0, ", "");
            // OpenFlow 1.5 prints a `load` as `set_field`.
            let rest = rest.replace("set_field:0x50/0xf0->reg0", "load:0x5->NXM_NX_REG0[4..7]");
            assert_eq!((&*rest, flows.len()), (flow, 1), "{options}");
        }
    }
    Ok(())
}

fn flows_of_a_file_are_added(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let file = context.unique_path("flows");
    let text: String = FLOWS.iter().map(|(flow, _)| format!("{flow}\n")).collect();
    fs::write(&file, format!("# A comment.\n{text}"))?;
    for options in FULL_MATCH_OPTIONS {
        switch.ofctl(&format!("{options} del-flows br0"))?;
        switch.ofctl(&format!("{options} add-flows br0 {}", file.display()))?;
        assert_eq!(
            switch.flows(&format!("{options} dump-flows br0"))?.len(),
            FLOWS.len()
        );
    }
    Ok(())
}

/// About 1.5 MB of statistics, in messages of at most 64 KB.
fn flow_statistics_of_ten_thousand_flows_are_split_into_messages(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure")?;
    let file = context.unique_path("flows");
    let flow = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        format!(
            "ip,nw_dst=10.{a}.{b}.{c},actions=output:{}\n",
            1 + number % 7
        )
    };
    fs::write(&file, (0..10_000).map(flow).collect::<String>())?;
    for options in VERSION_OPTIONS {
        switch.ofctl(&format!("{options} del-flows br0"))?;
        switch.ofctl(&format!("{options} add-flows br0 {}", file.display()))?;
        let mut flows = switch.flows(&format!("{options} dump-flows br0"))?;
        flows.dedup();
        assert_eq!(flows.len(), 10_000);
        let output = switch.ofctl(&format!("{options} dump-aggregate br0"))?;
        assert!(output.contains("flow_count=10000"), "{output}");
    }
    Ok(())
}

fn modification_is_loose_or_strict(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.replace_flows(
            options,
            &[
                "priority=1,ip,actions=drop",
                "priority=2,tcp,actions=drop",
                "priority=2,arp,actions=drop",
            ],
        )?;
        switch.ofctl(&format!("{options} mod-flows br0 ip,actions=output:1"))?;
        assert_eq!(
            switch.flow_rules(options)?,
            [
                "priority=1,ip actions=output:1",
                "priority=2,arp actions=drop",
                "priority=2,tcp actions=output:1"
            ]
        );
        switch.ofctl(&format!(
            "{options} --strict mod-flows br0 priority=1,ip,actions=output:2"
        ))?;
        switch.ofctl(&format!(
            "{options} --strict mod-flows br0 priority=1,arp,actions=LOCAL"
        ))?;
        let mut flow_rules = vec![
            "priority=1,ip actions=output:2",
            "priority=2,arp actions=drop",
            "priority=2,tcp actions=output:1",
        ];
        // Before 1.2 a modification that matches no rule adds one.
        if options.is_empty() || options.ends_with("OpenFlow11") {
            flow_rules.insert(0, "priority=1,arp actions=LOCAL");
        }
        assert_eq!(switch.flow_rules(options)?, flow_rules);
    }
    Ok(())
}

fn deletion_is_loose_or_strict(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.replace_flows(
            options,
            &[
                "priority=1,ip,actions=drop",
                "priority=2,ip,actions=drop",
                "priority=2,udp,actions=drop",
                "arp,actions=drop",
            ],
        )?;
        switch.ofctl(&format!("{options} --strict del-flows br0 priority=2,ip"))?;
        assert_eq!(
            switch.flow_rules(options)?,
            [
                "arp actions=drop",
                "priority=1,ip actions=drop",
                "priority=2,udp actions=drop"
            ]
        );
        switch.ofctl(&format!("{options} del-flows br0 ip"))?;
        assert_eq!(switch.flow_rules(options)?, ["arp actions=drop"]);
        switch.ofctl(&format!("{options} del-flows br0"))?;
        assert!(switch.flow_rules(options)?.is_empty());
    }
    Ok(())
}

fn deletion_and_dumps_filter_by_port_and_cookie(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.replace_flows(
            options,
            &[
                "cookie=0x11,priority=1,actions=output:1",
                "cookie=0x12,priority=2,actions=output:1,output:2",
                "cookie=0x23,priority=3,actions=output:2",
                "cookie=0x24,priority=4,actions=drop",
            ],
        )?;
        let dumped = |selection: &str| {
            let flows = switch.flows(&format!("{options} dump-flows br0 {selection}"))?;
            let cookie = |flow: &String| flow.split(", ").next().unwrap_or_default().to_owned();
            Ok::<Vec<String>, Failure>(flows.iter().map(cookie).collect())
        };
        assert_eq!(dumped("out_port=2")?, ["cookie=0x12", "cookie=0x23"]);
        assert_eq!(dumped("cookie=0x10/0xf0")?, ["cookie=0x11", "cookie=0x12"]);
        assert_eq!(dumped("cookie=0x23/-1")?, ["cookie=0x23"]);
        switch.ofctl(&format!(
            "{options} del-flows br0 out_port=1,cookie=0x12/-1"
        ))?;
        assert_eq!(dumped("")?, ["cookie=0x11", "cookie=0x23", "cookie=0x24"]);
        switch.ofctl(&format!(
            "{options} mod-flows br0 cookie=0x20/0xf0,actions=output:1"
        ))?;
        assert_eq!(
            dumped("out_port=1")?,
            ["cookie=0x11", "cookie=0x23", "cookie=0x24"]
        );
        switch.ofctl(&format!("{options} del-flows br0 cookie=0x20/0xf0"))?;
        assert_eq!(dumped("")?, ["cookie=0x11"]);
    }
    Ok(())
}

fn replace_flows_changes_only_differences(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let file = context.unique_path("flows");
    fs::write(
        &file,
        "priority=1,actions=output:2\npriority=2,arp,actions=drop\n",
    )?;
    let path = file.display();
    for options in VERSION_OPTIONS {
        switch.replace_flows(
            options,
            &["priority=1,actions=output:2", "priority=3,ip,actions=drop"],
        )?;
        network.host(1).send(&["eth / arp"])?;
        context.wait_until("the counter of the frame", || {
            Ok(switch
                .ofctl(&format!("{options} dump-aggregate br0"))?
                .contains("packet_count=1"))
        })?;
        let differences = switch.ofctl_output(&format!("{options} diff-flows br0 {path}"))?;
        assert_eq!(differences.status.code(), Some(2), "{differences:?}");
        assert_eq!(
            differences.stdout,
            "-priority=3,ip actions=drop\n+priority=2,arp actions=drop\n"
        );
        switch.ofctl(&format!("{options} replace-flows br0 {path}"))?;
        assert_eq!(
            switch.flows(&format!("{options} dump-flows br0"))?,
            [
                "cookie=0x0, table=0, n_packets=0, n_bytes=0, priority=2,arp actions=drop",
                "cookie=0x0, table=0, n_packets=1, n_bytes=42, priority=1 actions=output:2",
            ]
        );
        switch.ofctl(&format!("{options} diff-flows br0 {path}"))?;
    }
    Ok(())
}

fn overlap_check_refuses_a_flow(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.replace_flows(options, &["priority=5,arp,actions=drop"])?;
        let words =
            format!("{options} add-flow br0 check_overlap,priority=5,in_port=2,actions=drop");
        let refused = switch.ofctl_failure(&words)?;
        assert!(refused.contains("OFPFMFC_OVERLAP"), "{refused}");
        switch.ofctl(&words.replace("priority=5", "priority=6"))?;
        switch.ofctl(&words.replace("check_overlap,", ""))?;
    }
    Ok(())
}

fn goto_table_chains_tables(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let add = |flow: &str| switch.ofctl(&format!("-O OpenFlow13 add-flow br0 {flow}"));
    add(
        "table=0,in_port=1,ip,actions=mod_dl_src:02:00:00:00:00:99,write_metadata:0x5/0xff,goto_table:3",
    )?;
    add("table=3,metadata=0x5/0x0f,actions=write_actions(output:2),goto_table:253")?;
    add("table=253,udp,tp_dst=9,actions=clear_actions")?;
    add("table=253,priority=0,actions=drop")?;
    let mut two = network.host(2).capture_frames()?;
    network
        .host(1)
        .send(&["eth / ipv4 / udp(dst=9)", "eth / ipv4 / udp(dst=10)"])?;
    two.expect_frame("eth(src=02:00:00:00:00:99) / ipv4 / udp(dst=10)");
    // Open vSwitch's table of hidden rules.
    let refused = switch.ofctl_failure("-O OpenFlow13 add-flow br0 table=254,actions=drop")?;
    assert!(refused.contains("OFPBRC_EPERM"), "{refused}");
    let output = switch.ofctl("-O OpenFlow13 dump-tables br0")?;
    for row in [
        "  table 3:\n    active=1, lookup=2, matched=2\n",
        "  table 253:\n    active=2, lookup=2, matched=2\n",
    ] {
        assert!(output.contains(row), "{output}");
    }
    Ok(())
}

fn packet_out_executes_its_actions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let (mut one, mut two) = (
        network.host(1).capture_frames()?,
        network.host(2).capture_frames()?,
    );
    let stack = "eth / ipv4 / udp(dst=7) / data(18)";
    let frame = hex_frame(stack);
    for options in VERSION_OPTIONS {
        switch.ofctl(&format!(
            "{options} packet-out br0 in_port=controller,packet={frame},actions=output:2"
        ))?;
        two.expect_frame(stack);
        switch.ofctl(&format!("{options} packet-out br0 in_port=2,packet={frame},actions=mod_dl_src:02:00:00:00:00:77,FLOOD"))?;
        one.expect_frame("eth(src=02:00:00:00:00:77) / ipv4 / udp(dst=7) / data(18)");
        // Uses the rules, with port 1 as the ingress port.
        switch.replace_flows(options, &["in_port=1,udp,actions=output:2"])?;
        switch.ofctl(&format!(
            "{options} packet-out br0 in_port=1,packet={frame},actions=TABLE"
        ))?;
        two.expect_frame(stack);
        let flows = switch.flows(&format!("{options} dump-flows br0"))?;
        assert!(flows[0].contains("n_packets=1, n_bytes=60"), "{flows:?}");
    }
    Ok(())
}

fn monitor_receives_packet_ins_removals_and_port_status(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for options in VERSION_OPTIONS {
        switch.replace_flows(options, &["priority=9,icmp,actions=drop"])?;
        let monitor = switch.start_monitor(options)?;
        let wait_for_text =
            |text: &str| context.wait_until(text, || Ok(monitor.written()?.contains(text)));
        switch.ofctl(&format!(
            "{options} add-flow br0 cookie=0x7,send_flow_rem,priority=5,udp,actions=controller:65535"
        ))?;
        network
            .host(1)
            .send(&["eth / ipv4(src=10.0.0.3) / udp(src=77)"])?;
        wait_for_text("10.0.0.3")?;
        wait_for_text("total_len=42 in_port=1 (via action) data_len=42 (unbuffered)")?;
        wait_for_text("tp_src=77")?;
        switch.ofctl(&format!("{options} del-flows br0 cookie=0x7/-1"))?;
        wait_for_text("OFPT_FLOW_REMOVED")?;
        wait_for_text("reason=delete")?;
        switch.ofctl(&format!("{options} mod-port br0 2 no-flood"))?;
        switch.ofctl(&format!("{options} mod-port br0 2 flood"))?;
        switch.ofctl(&format!("{options} mod-port br0 2 no-forward"))?;
        switch.ofctl(&format!("{options} mod-port br0 2 forward"))?;
        wait_for_text("OFPT_PORT_STATUS")?;
        wait_for_text("MOD: 2(p2)")?;
    }
    Ok(())
}

fn mod_port_sets_a_port_down_and_up(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(STANDALONE_2)?;
    let described = |options| {
        let output = switch.ofctl(&format!("{options} dump-ports-desc br0"))?;
        let (_, port) = output.split_once(" 2(p2)").expect("port 2 is listed");
        let (port, _) = port.split_once(" LOCAL(").expect("LOCAL is listed last");
        Ok::<_, Failure>(port.to_owned())
    };
    for options in VERSION_OPTIONS {
        network.host(1).ping_until_reply(network.host(2).address)?;
        switch.ofctl(&format!("{options} mod-port br0 2 down"))?;
        let link = network.run("ip link show p2")?.expect_success()?;
        assert!(!link.contains("UP"), "{link}");
        let port = described(options)?;
        assert!(
            port.contains("config:     PORT_DOWN\n     state:      LINK_DOWN"),
            "{port}"
        );
        assert!(!network.host(1).can_ping(network.host(2).address)?);
        switch.ofctl(&format!("{options} mod-port br0 p2 up"))?;
        network.host(1).ping_until_reply(network.host(2).address)?;
        assert!(!described(options)?.contains("DOWN"));
    }
    Ok(())
}

fn mod_port_sets_no_flood_no_forward_and_no_receive(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    switch.ofctl("add-flow br0 in_port=1,arp,actions=FLOOD")?;
    switch.ofctl("add-flow br0 in_port=1,ip,actions=output:2,output:3")?;
    let (mut two, mut three) = (
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    let (arp, ip) = ("eth / arp", "eth / ipv4 / udp");
    switch.ofctl("mod-port br0 2 no-flood")?;
    network.host(1).send(&[arp, ip])?;
    two.expect_frame(ip);
    three.expect_frame(arp);
    three.expect_frame(ip);
    switch.ofctl("mod-port br0 2 flood")?;
    switch.ofctl("-O OpenFlow13 mod-port br0 3 no-forward")?;
    network.host(1).send(&[arp, ip])?;
    two.expect_frame(arp);
    two.expect_frame(ip);
    switch.ofctl("-O OpenFlow13 mod-port br0 3 forward")?;
    network.host(1).send(&[ip])?;
    two.expect_frame(ip);
    three.expect_frame(ip);
    switch.ofctl("-O OpenFlow13 mod-port br0 1 no-receive")?;
    network.host(1).send(&[arp])?;
    switch.wait_for_counter("worker ingress_closed", 1)?;
    switch.ofctl("-O OpenFlow13 mod-port br0 1 receive")?;
    network.host(1).send(&[ip])?;
    two.expect_frame(ip);
    Ok(())
}

/// Without another mode, no fragment has ports; with nx-match, the first one does.
fn fragment_handling_is_configurable(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    switch.ofctl("add-flow br0 priority=2,udp,tp_dst=53,actions=output:2")?;
    switch.ofctl("add-flow br0 priority=1,udp,actions=mod_dl_src:02:00:00:00:00:99,output:2")?;
    let mut two = network.host(2).capture_frames()?;
    let first = "eth / ipv4(mf) / udp(dst=53) / data(16)";
    let later = "eth / ipv4(offset=24,proto=17) / data(16)";
    let marked = [
        "eth(src=02:00:00:00:00:99) / ipv4(mf) / udp(dst=53) / data(16)",
        "eth(src=02:00:00:00:00:99) / ipv4(offset=24,proto=17) / data(16)",
    ];
    let whole = "eth / ipv4 / udp(dst=53) / data(16)";
    for options in VERSION_OPTIONS {
        let mode = |mode: &str| switch.ofctl(&format!("{options} set-frags br0 {mode}"));
        let output = || switch.ofctl(&format!("{options} get-frags br0"));
        assert_eq!(output()?, "normal\n");
        network.host(1).send(&[first, later, whole])?;
        for fragment in marked {
            two.expect_frame(fragment);
        }
        two.expect_frame(whole);
        mode("drop")?;
        assert_eq!(output()?, "drop\n");
        network.host(1).send(&[first, later, whole])?;
        two.expect_frame(whole);
        mode("nx-match")?;
        assert_eq!(output()?, "nx-match\n");
        switch.ofctl("add-flow br0 priority=3,ip,nw_frag=later,actions=drop")?;
        network.host(1).send(&[first, later, whole])?;
        two.expect_frame(first);
        two.expect_frame(whole);
        switch.ofctl("del-flows br0 ip,nw_frag=later")?;
        let refused = switch.ofctl_failure(&format!("{options} set-frags br0 reassemble"))?;
        assert!(refused.contains("OFPT_ERROR"), "{refused}");
        mode("normal")?;
    }
    Ok(())
}

/// Commands that Comporta does not support, with the error, among them all fields of
/// `ovs-fields(7)` and actions of `ovs-actions(7)` of Open vSwitch 3.1 that Comporta lacks.
#[rustfmt::skip]
const REFUSED_COMMANDS: [(&str, &str); 8] = [
    ("-O OpenFlow13 add-flow br0 recirc_id=0,actions=drop",                            "OFPBRC_EPERM"),
    ("-O OpenFlow13 add-flow br0 dp_hash=0,actions=drop",                              "OFPBRC_EPERM"),
    ("-O OpenFlow13 add-flow br0 actions=table",                                       "OFPBAC_BAD_OUT_PORT"),
    ("-O OpenFlow13 add-flow br0 actions=meter:5",                                     "OFPMMFC_INVALID_METER"),
    ("dump-ports br0 9", "OFPBRC_BAD_PORT"),
    ("-O OpenFlow13 queue-stats br0 1 5", "OFPQOFC_BAD_QUEUE"),
    ("queue-get-config br0 9", "OFPQOFC_BAD_PORT"),
    ("dump-ipfix-bridge br0", "OFPT_ERROR"),
];

fn unsupported_fields_and_actions_are_refused_with_their_error(
    context: &TestContext,
) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    for (words, error) in REFUSED_COMMANDS {
        let result = switch.ofctl_output(words)?;
        let output = format!("{}{}", result.stdout, result.stderr);
        assert!(output.contains(error), "{words}\n{output}");
    }
    for words in [
        "dump-groups",
        "dump-group-stats",
        "dump-meters",
        "meter-stats",
        "queue-stats",
    ] {
        let output = switch.ofctl(&format!("-O OpenFlow13 {words} br0"))?;
        assert!(output.contains("reply (OF1.3)"), "{output}");
    }
    assert!(switch.flow_rules("")?.is_empty());
    Ok(())
}

fn bridge_accepts_only_its_configured_versions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch =
        network.start_switch("--bridge br0 --port p1 --protocols OpenFlow10,OpenFlow14")?;
    for (options, supported) in VERSION_OPTIONS
        .into_iter()
        .zip([true, false, false, false, true, false])
    {
        let words = format!("{options} show br0");
        if supported {
            switch.ofctl(&words)?;
        } else {
            let output = switch.ofctl_failure(&words)?;
            assert!(output.contains("version negotiation failed"), "{output}");
        }
    }
    let output = switch.ofctl("-O OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15 show br0")?;
    assert!(output.contains("OFPT_FEATURES_REPLY (OF1.4)"), "{output}");
    Ok(())
}

fn importance_is_reported_since_openflow_14(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure")?;
    for options in ["-O OpenFlow14", "-O OpenFlow15"] {
        switch.replace_flows(options, &["importance=700,arp,actions=drop"])?;
        let flows = switch.flows(&format!("{options} dump-flows br0"))?;
        assert!(flows[0].contains("importance=700, "), "{flows:?}");
        let flows = switch.flows("-O OpenFlow13 dump-flows br0")?;
        assert!(!flows[0].contains("importance"), "{flows:?}");
    }
    Ok(())
}

fn openflow_15_masks_set_field_and_filters_port_descriptions(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let flow =
        "in_port=1,ip,actions=set_field:02:00:00:00:00:05/ff:00:00:00:00:ff->eth_src,output:2";
    switch.ofctl(&format!("-O OpenFlow15 add-flow br0 {flow}"))?;
    let flows = switch.flows("-O OpenFlow15 dump-flows br0")?;
    let output = "set_field:02:00:00:00:00:05/ff:00:00:00:00:ff->eth_src,output:2";
    assert!(flows[0].ends_with(output), "{flows:?}");
    let mut two = network.host(2).capture_frames()?;
    network
        .host(1)
        .send(&["eth(src=0a:11:22:33:44:55) / ipv4 / udp(dst=9)"])?;
    two.expect_frame("eth(src=02:11:22:33:44:05) / ipv4 / udp(dst=9)");
    let ports = switch.ofctl("-O OpenFlow15 dump-ports-desc br0 2")?;
    assert!(
        ports.contains(" 2(p2): addr:") && !ports.contains(" 1(p1)"),
        "{ports}"
    );
    let refused = switch.ofctl("-O OpenFlow15 dump-ports-desc br0 77")?;
    assert!(refused.contains("OFPBRC_BAD_PORT"), "{refused}");
    Ok(())
}

fn switch_listens_on_tcp_and_unix_sockets(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let socket = context.directory().join("tools.sock");
    let words = format!(
        "{STANDALONE_2} --listen ptcp:6654 --listen punix:{}",
        socket.display()
    );
    let switch = network.start_switch(&words)?;
    for options in VERSION_OPTIONS {
        let words = format!("ovs-ofctl {options} show tcp:127.0.0.1:6654");
        let output = network.run(&words)?.expect_success()?;
        assert!(output.contains(" 2(p2): addr:"), "{output}");
        let output = switch.ofctl(&format!("{options} dump-flows unix:{}", socket.display()))?;
        assert!(output.contains("actions=NORMAL"), "{output}");
    }
    Ok(())
}

impl SwitchProcess<'_> {
    /// Deletes all flows, then adds these.
    fn replace_flows(&self, options: &str, flows: &[&str]) -> Result<(), Failure> {
        self.ofctl(&format!("{options} del-flows br0"))?;
        for flow in flows {
            self.ofctl(&format!("{options} add-flow br0 {flow}"))?;
        }
        Ok(())
    }

    /// Priority, match and actions of all flows, sorted.
    fn flow_rules(&self, options: &str) -> Result<Vec<String>, Failure> {
        let flows = self.flows(&format!("{options} dump-flows br0"))?;
        let rule = |flow: &String| flow.rsplit(", ").next().unwrap_or_default().to_owned();
        let mut flow_rules: Vec<_> = flows.iter().map(rule).collect();
        flow_rules.sort();
        Ok(flow_rules)
    }
}
