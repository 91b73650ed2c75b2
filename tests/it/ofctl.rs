//! `ovs-ofctl` of Open vSwitch 3.1 on the management socket, as it speaks by
//! default (OpenFlow 1.0 with Nicira's extensions) and with `-O` of each later version.

use std::fs;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    show_tells_of_the_switch_and_its_ports,
    desc_probe_and_ping_are_answered,
    benchmark_gets_all_its_answers,
    as_many_pings_as_packets,
    arp_and_icmp_are_counted_apart_in_both_directions,
    a_flow_comes_back_as_it_was_given,
    an_action_of_nicira_comes_back_as_it_was_given,
    flows_from_a_file_are_all_there,
    ten_thousand_flows_are_told_in_parts,
    modification_is_loose_or_strict,
    deletion_is_loose_or_strict,
    deletion_and_dumps_select_by_port_and_cookie,
    replacing_changes_only_what_differs,
    an_overlap_is_refused_if_asked,
    tables_are_chained,
    packet_out_sends_what_it_was_given,
    monitor_tells_of_frames_and_removals,
    a_port_is_taken_down_and_up,
    a_port_is_kept_from_flooding_and_forwarding,
    fragments_are_treated_as_told,
    what_is_not_there_is_refused_by_its_name,
    a_bridge_speaks_the_versions_that_it_was_told,
    importance_is_told_where_there_is_a_word_for_it,
    what_1_5_changed_means_what_it_says,
    it_is_reached_by_tcp_too,
];

/// What goes before each command.
const FORMS: [&str; 6] = [
    "",
    "-O OpenFlow11",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

/// Those in which every match can be said: 1.1 has its own structure for one.
const FULL_FORMS: [&str; 5] = [
    "",
    "-O OpenFlow12",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

const TWO: &str = "--bridge br0 --port p1 --port p2";
const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

fn show_tells_of_the_switch_and_its_ports(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    rig.home.set_mac("p1", [2, 0, 0, 0, 1, 1])?;
    rig.home.set_mac("p2", [2, 0, 0, 0, 1, 2])?;
    let switch = rig.start("--bridge br0 --datapath-id 00000000000000ab --port p1=7 --port p2")?;
    let shown = switch.ofctl("show br0")?;
    for line in [
        "OFPT_FEATURES_REPLY (xid=0x2): dpid:00000000000000ab",
        "n_tables:254, n_buffers:0",
        "capabilities: FLOW_STATS TABLE_STATS PORT_STATS ARP_MATCH_IP",
        " 7(p1): addr:02:00:00:00:01:01",
        " 1(p2): addr:02:00:00:00:01:02",
        " LOCAL(br0): addr:02:00:00:00:01:01",
        "OFPT_GET_CONFIG_REPLY (xid=0x4): frags=normal miss_send_len=0",
    ] {
        assert!(shown.lines().any(|shown| shown == line), "{line}\n{shown}");
    }
    let described = |said: &str| said.split_once("(p2)").map(|(_, text)| text.to_owned());
    let shown = switch.ofctl("-O OpenFlow13 show br0")?;
    assert!(shown.contains("OFPT_FEATURES_REPLY (OF1.3) (xid=0x2): dpid:00000000000000ab"));
    assert!(described(&shown).is_some_and(|text| text.contains("state:      LIVE")));
    for form in FORMS {
        let ports = switch.ofctl(&format!("{form} dump-ports-desc br0"))?;
        assert!(ports.contains(" 7(p1): addr:02:00:00:00:01:01"), "{ports}");
        assert!(ports.contains("10GB-FD"), "{ports}");
    }
    Ok(())
}

fn desc_probe_and_ping_are_answered(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    for form in FORMS {
        let told = switch.ofctl(&format!("{form} dump-desc br0"))?;
        for line in [
            "Manufacturer: Comporta",
            "DP Description: br0",
            "Serial Num: None",
        ] {
            assert!(told.lines().any(|told| told == line), "{told}");
        }
        assert_eq!(switch.ofctl(&format!("{form} probe br0"))?, "");
        let told = switch.ofctl(&format!("{form} ping br0 1000"))?;
        let answers = told
            .lines()
            .filter(|line| line.starts_with("1000 bytes from br0"));
        assert_eq!(answers.count(), 10, "{told}");
    }
    Ok(())
}

fn benchmark_gets_all_its_answers(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    let told = switch.ofctl("benchmark br0 1000 2000")?;
    let promised = "Sending 2000 packets * 1008 bytes (with header) = 2016000 bytes total";
    assert!(
        told.starts_with(promised) && told.contains("Finished in "),
        "{told}"
    );
    Ok(())
}

/// As in the published experiment: a ping is a frame of 98 bytes in each direction.
fn as_many_pings_as_packets(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    switch.ofctl("add-flow br0 in_port=1,actions=output:2")?;
    switch.ofctl("add-flow br0 in_port=2,actions=output:1")?;
    rig.introduce(1, 2)?;
    rig.host(1).ping(rig.host(2).address, 78)?;
    let counted = "cookie=0x0, table=0, n_packets=78, n_bytes=7644, ";
    let rows = ["in_port=1 actions=output:2", "in_port=2 actions=output:1"];
    assert_eq!(
        switch.flows("dump-flows br0")?,
        rows.map(|row| format!("{counted}{row}"))
    );
    // What an addition of OpenFlow 1.0 takes for granted, 1.3 says.
    assert_eq!(
        switch.flows("-O OpenFlow13 dump-flows br0")?,
        rows.map(|row| format!("{counted}reset_counts {row}"))
    );
    for form in FORMS {
        let told = switch.ofctl(&format!("{form} dump-aggregate br0"))?;
        assert!(
            told.ends_with("packet_count=156 byte_count=15288 flow_count=2\n"),
            "{told}"
        );
        let told = switch.ofctl(&format!("{form} dump-aggregate br0 in_port=2"))?;
        assert!(
            told.ends_with("packet_count=78 byte_count=7644 flow_count=1\n"),
            "{told}"
        );
        let told = switch.ofctl(&format!("{form} dump-tables br0"))?;
        assert!(
            told.contains("  table 0:\n    active=2, lookup=156, matched=156\n"),
            "{told}"
        );
        for port in [1, 2] {
            let told = switch.ofctl(&format!("{form} dump-ports br0 {port}"))?;
            let rows = [
                format!(
                    "  port  {port}: rx pkts=78, bytes=7644, drop=0, errs=0, frame=0, over=0, crc=?\n"
                ),
                "           tx pkts=78, bytes=7644, drop=0, errs=0, coll=?\n".to_owned(),
            ];
            assert!(told.contains(&rows.concat()), "{told}");
        }
    }
    Ok(())
}

/// The four rules of the published experiment.
fn arp_and_icmp_are_counted_apart_in_both_directions(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.ofctl(&format!("{form} del-flows br0"))?;
        for (from, to) in [(1, 2), (2, 1)] {
            switch.ofctl(&format!(
                "{form} add-flow br0 in_port={from},arp,actions=output:{to}"
            ))?;
            switch.ofctl(&format!(
                "{form} add-flow br0 in_port={from},icmp,actions=output:{to}"
            ))?;
        }
        for host in [1, 2] {
            rig.host(host).ran("ip neigh flush dev eth0")?.good()?;
        }
        rig.host(1).ping(rig.host(2).address, 5)?;
        let flows = switch.flows(&format!("{form} dump-flows br0"))?;
        for from in [1, 2] {
            // The other host may ask for the address by itself, later.
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

/// Flows and how they are shown in both forms.
const GIVEN: [(&str, &str); 13] = [
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

fn a_flow_comes_back_as_it_was_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FULL_FORMS {
        // Each version has its words for one thing, and 1.3 says what 1.0 takes for granted.
        for (given, shown) in GIVEN {
            switch.ofctl(&format!("{form} del-flows br0"))?;
            switch.ofctl(&format!("{form} add-flow br0 {given}"))?;
            for form in FULL_FORMS {
                let flows = switch.flows(&format!("{form} dump-flows br0"))?;
                let (_, rest) = flows[0].split_once("n_bytes=0, ").ok_or("no such row")?;
                let rest = rest
                    .replace("reset_counts ", "")
                    .replace("idle_age=0, ", "")
                    .replace("pop_vlan", "strip_vlan");
                assert_eq!((&*rest, flows.len()), (shown, 1), "{form} {given}");
            }
        }
    }
    Ok(())
}

/// Fields of Nicira, in the words in which they are also shown.
const NICIRA_FIELDS: [&str; 2] = [
    "reg0=0x5,reg15=0x1/0xff,metadata=0x7 actions=drop",
    "pkt_mark=0x1,conj_id=3,tun_src=10.0.0.1 actions=drop",
];

/// Actions of Nicira, in the words in which they are also shown.
const NICIRA: [&str; 22] = [
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

fn an_action_of_nicira_comes_back_as_it_was_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for given in NICIRA_FIELDS {
        comes_back(&switch, given, &FULL_FORMS)?;
    }
    for given in NICIRA {
        comes_back(&switch, given, &FORMS)?;
    }
    Ok(())
}

/// Whether a flow that is added in each of these forms is shown in all of them as it
/// was given.
fn comes_back(switch: &Switch<'_>, given: &str, forms: &[&str]) -> Outcome {
    for form in forms {
        switch.ofctl(&format!("{form} del-flows br0"))?;
        switch.ofctl(&format!("{form} add-flow br0 {}", given.replace(' ', ",")))?;
        for form in forms {
            let flows = switch.flows(&format!("{form} dump-flows br0"))?;
            let row = flows.first().and_then(|row| row.split_once("n_bytes=0, "));
            let (_, rest) = row.ok_or_else(|| format!("{form}: no row for {given}"))?;
            let rest = rest
                .replace("reset_counts ", "")
                .replace("idle_age=0, ", "");
            // 1.5 sets what the others load.
            let rest = rest.replace("set_field:0x50/0xf0->reg0", "load:0x5->NXM_NX_REG0[4..7]");
            assert_eq!((&*rest, flows.len()), (given, 1), "{form}");
        }
    }
    Ok(())
}

fn flows_from_a_file_are_all_there(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let file = ground.file("flows");
    let text: String = GIVEN
        .iter()
        .map(|(given, _)| format!("{given}\n"))
        .collect();
    fs::write(&file, format!("# A comment.\n{text}"))?;
    for form in FULL_FORMS {
        switch.ofctl(&format!("{form} del-flows br0"))?;
        switch.ofctl(&format!("{form} add-flows br0 {}", file.display()))?;
        assert_eq!(
            switch.flows(&format!("{form} dump-flows br0"))?.len(),
            GIVEN.len()
        );
    }
    Ok(())
}

/// Some 1.5 MB of statistics, in messages of at most 64 KB.
fn ten_thousand_flows_are_told_in_parts(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0 --fail-mode secure")?;
    let file = ground.file("flows");
    let flow = |number: u32| {
        let [_, a, b, c] = number.to_be_bytes();
        format!(
            "ip,nw_dst=10.{a}.{b}.{c},actions=output:{}\n",
            1 + number % 7
        )
    };
    fs::write(&file, (0..10_000).map(flow).collect::<String>())?;
    for form in FORMS {
        switch.ofctl(&format!("{form} del-flows br0"))?;
        switch.ofctl(&format!("{form} add-flows br0 {}", file.display()))?;
        let mut flows = switch.flows(&format!("{form} dump-flows br0"))?;
        flows.dedup();
        assert_eq!(flows.len(), 10_000);
        let told = switch.ofctl(&format!("{form} dump-aggregate br0"))?;
        assert!(told.contains("flow_count=10000"), "{told}");
    }
    Ok(())
}

fn modification_is_loose_or_strict(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.refill(
            form,
            &[
                "priority=1,ip,actions=drop",
                "priority=2,tcp,actions=drop",
                "priority=2,arp,actions=drop",
            ],
        )?;
        switch.ofctl(&format!("{form} mod-flows br0 ip,actions=output:1"))?;
        assert_eq!(
            switch.rules(form)?,
            [
                "priority=1,ip actions=output:1",
                "priority=2,arp actions=drop",
                "priority=2,tcp actions=output:1"
            ]
        );
        switch.ofctl(&format!(
            "{form} --strict mod-flows br0 priority=1,ip,actions=output:2"
        ))?;
        switch.ofctl(&format!(
            "{form} --strict mod-flows br0 priority=1,arp,actions=LOCAL"
        ))?;
        let mut rules = vec![
            "priority=1,ip actions=output:2",
            "priority=2,arp actions=drop",
            "priority=2,tcp actions=output:1",
        ];
        // Before 1.2 a modification that meets nothing adds.
        if form.is_empty() || form.ends_with("OpenFlow11") {
            rules.insert(0, "priority=1,arp actions=LOCAL");
        }
        assert_eq!(switch.rules(form)?, rules);
    }
    Ok(())
}

fn deletion_is_loose_or_strict(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.refill(
            form,
            &[
                "priority=1,ip,actions=drop",
                "priority=2,ip,actions=drop",
                "priority=2,udp,actions=drop",
                "arp,actions=drop",
            ],
        )?;
        switch.ofctl(&format!("{form} --strict del-flows br0 priority=2,ip"))?;
        assert_eq!(
            switch.rules(form)?,
            [
                "arp actions=drop",
                "priority=1,ip actions=drop",
                "priority=2,udp actions=drop"
            ]
        );
        switch.ofctl(&format!("{form} del-flows br0 ip"))?;
        assert_eq!(switch.rules(form)?, ["arp actions=drop"]);
        switch.ofctl(&format!("{form} del-flows br0"))?;
        assert!(switch.rules(form)?.is_empty());
    }
    Ok(())
}

fn deletion_and_dumps_select_by_port_and_cookie(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.refill(
            form,
            &[
                "cookie=0x11,priority=1,actions=output:1",
                "cookie=0x12,priority=2,actions=output:1,output:2",
                "cookie=0x23,priority=3,actions=output:2",
                "cookie=0x24,priority=4,actions=drop",
            ],
        )?;
        let dumped = |selection: &str| {
            let flows = switch.flows(&format!("{form} dump-flows br0 {selection}"))?;
            let cookie = |flow: &String| flow.split(", ").next().unwrap_or_default().to_owned();
            Ok::<Vec<String>, Failure>(flows.iter().map(cookie).collect())
        };
        assert_eq!(dumped("out_port=2")?, ["cookie=0x12", "cookie=0x23"]);
        assert_eq!(dumped("cookie=0x10/0xf0")?, ["cookie=0x11", "cookie=0x12"]);
        assert_eq!(dumped("cookie=0x23/-1")?, ["cookie=0x23"]);
        switch.ofctl(&format!("{form} del-flows br0 out_port=1,cookie=0x12/-1"))?;
        assert_eq!(dumped("")?, ["cookie=0x11", "cookie=0x23", "cookie=0x24"]);
        switch.ofctl(&format!(
            "{form} mod-flows br0 cookie=0x20/0xf0,actions=output:1"
        ))?;
        assert_eq!(
            dumped("out_port=1")?,
            ["cookie=0x11", "cookie=0x23", "cookie=0x24"]
        );
        switch.ofctl(&format!("{form} del-flows br0 cookie=0x20/0xf0"))?;
        assert_eq!(dumped("")?, ["cookie=0x11"]);
    }
    Ok(())
}

fn replacing_changes_only_what_differs(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let file = ground.file("flows");
    fs::write(
        &file,
        "priority=1,actions=output:2\npriority=2,arp,actions=drop\n",
    )?;
    let path = file.display();
    for form in FORMS {
        switch.refill(
            form,
            &["priority=1,actions=output:2", "priority=3,ip,actions=drop"],
        )?;
        rig.host(1).send(&["eth / arp"])?;
        ground.wait_until("the frame to be counted", || {
            Ok(switch
                .ofctl(&format!("{form} dump-aggregate br0"))?
                .contains("packet_count=1"))
        })?;
        let differences = switch.ofctl_ran(&format!("{form} diff-flows br0 {path}"))?;
        assert_eq!(differences.status.code(), Some(2), "{differences:?}");
        assert_eq!(
            differences.output,
            "-priority=3,ip actions=drop\n+priority=2,arp actions=drop\n"
        );
        switch.ofctl(&format!("{form} replace-flows br0 {path}"))?;
        assert_eq!(
            switch.flows(&format!("{form} dump-flows br0"))?,
            [
                "cookie=0x0, table=0, n_packets=0, n_bytes=0, priority=2,arp actions=drop",
                "cookie=0x0, table=0, n_packets=1, n_bytes=42, priority=1 actions=output:2",
            ]
        );
        switch.ofctl(&format!("{form} diff-flows br0 {path}"))?;
    }
    Ok(())
}

fn an_overlap_is_refused_if_asked(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.refill(form, &["priority=5,arp,actions=drop"])?;
        let words = format!("{form} add-flow br0 check_overlap,priority=5,in_port=2,actions=drop");
        let refused = switch.ofctl_refused(&words)?;
        assert!(refused.contains("OFPFMFC_OVERLAP"), "{refused}");
        switch.ofctl(&words.replace("priority=5", "priority=6"))?;
        switch.ofctl(&words.replace("check_overlap,", ""))?;
    }
    Ok(())
}

fn tables_are_chained(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let add = |flow: &str| switch.ofctl(&format!("-O OpenFlow13 add-flow br0 {flow}"));
    add(
        "table=0,in_port=1,ip,actions=mod_dl_src:02:00:00:00:00:99,write_metadata:0x5/0xff,goto_table:3",
    )?;
    add("table=3,metadata=0x5/0x0f,actions=write_actions(output:2),goto_table:253")?;
    add("table=253,udp,tp_dst=9,actions=clear_actions")?;
    add("table=253,priority=0,actions=drop")?;
    let mut two = rig.host(2).eye()?;
    rig.host(1)
        .send(&["eth / ipv4 / udp(dst=9)", "eth / ipv4 / udp(dst=10)"])?;
    two.sees("eth(src=02:00:00:00:00:99) / ipv4 / udp(dst=10)");
    let refused = switch.ofctl_refused("-O OpenFlow13 add-flow br0 table=254,actions=drop")?;
    assert!(refused.contains("OFPFMFC_BAD_TABLE_ID"), "{refused}");
    let told = switch.ofctl("-O OpenFlow13 dump-tables br0")?;
    for row in [
        "  table 3:\n    active=1, lookup=2, matched=2\n",
        "  table 253:\n    active=2, lookup=2, matched=2\n",
    ] {
        assert!(told.contains(row), "{told}");
    }
    Ok(())
}

fn packet_out_sends_what_it_was_given(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let (mut one, mut two) = (rig.host(1).eye()?, rig.host(2).eye()?);
    let stack = "eth / ipv4 / udp(dst=7) / data(18)";
    let frame = hex(stack);
    for form in FORMS {
        switch.ofctl(&format!(
            "{form} packet-out br0 in_port=controller,packet={frame},actions=output:2"
        ))?;
        two.sees(stack);
        switch.ofctl(&format!("{form} packet-out br0 in_port=2,packet={frame},actions=mod_dl_src:02:00:00:00:00:77,FLOOD"))?;
        one.sees("eth(src=02:00:00:00:00:77) / ipv4 / udp(dst=7) / data(18)");
        // By the rules, for a frame that would have come in by port 1.
        switch.refill(form, &["in_port=1,udp,actions=output:2"])?;
        switch.ofctl(&format!(
            "{form} packet-out br0 in_port=1,packet={frame},actions=TABLE"
        ))?;
        two.sees(stack);
        let flows = switch.flows(&format!("{form} dump-flows br0"))?;
        assert!(flows[0].contains("n_packets=1, n_bytes=60"), "{flows:?}");
    }
    Ok(())
}

fn monitor_tells_of_frames_and_removals(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for form in FORMS {
        switch.refill(form, &["priority=9,icmp,actions=drop"])?;
        let monitor = switch.monitor(form)?;
        let heard = |what: &str| ground.wait_until(what, || Ok(monitor.written()?.contains(what)));
        switch.ofctl(&format!(
            "{form} add-flow br0 cookie=0x7,send_flow_rem,priority=5,udp,actions=controller:65535"
        ))?;
        rig.host(1)
            .send(&["eth / ipv4(src=10.0.0.3) / udp(src=77)"])?;
        heard("10.0.0.3")?;
        heard("total_len=42 in_port=1 (via action) data_len=42 (unbuffered)")?;
        heard("tp_src=77")?;
        switch.ofctl(&format!("{form} del-flows br0 cookie=0x7/-1"))?;
        heard("OFPT_FLOW_REMOVED")?;
        heard("reason=delete")?;
        switch.ofctl(&format!("{form} mod-port br0 2 no-flood"))?;
        switch.ofctl(&format!("{form} mod-port br0 2 flood"))?;
        switch.ofctl(&format!("{form} mod-port br0 2 no-forward"))?;
        switch.ofctl(&format!("{form} mod-port br0 2 forward"))?;
        heard("OFPT_PORT_STATUS")?;
        heard("MOD: 2(p2)")?;
    }
    Ok(())
}

fn a_port_is_taken_down_and_up(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(TWO)?;
    let described = |form| {
        let told = switch.ofctl(&format!("{form} dump-ports-desc br0"))?;
        let (_, port) = told.split_once(" 2(p2)").expect("port 2 is there");
        let (port, _) = port.split_once(" LOCAL(").expect("LOCAL comes last");
        Ok::<_, Failure>(port.to_owned())
    };
    for form in FORMS {
        rig.host(1).reach(rig.host(2).address)?;
        switch.ofctl(&format!("{form} mod-port br0 2 down"))?;
        let link = rig.ran("ip link show p2")?.good()?;
        assert!(!link.contains("UP"), "{link}");
        let port = described(form)?;
        assert!(
            port.contains("config:     PORT_DOWN\n     state:      LINK_DOWN"),
            "{port}"
        );
        assert!(!rig.host(1).answers(rig.host(2).address)?);
        switch.ofctl(&format!("{form} mod-port br0 p2 up"))?;
        rig.host(1).reach(rig.host(2).address)?;
        assert!(!described(form)?.contains("DOWN"));
    }
    Ok(())
}

fn a_port_is_kept_from_flooding_and_forwarding(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1 --port p2 --port p3")?;
    switch.ofctl("add-flow br0 in_port=1,arp,actions=FLOOD")?;
    switch.ofctl("add-flow br0 in_port=1,ip,actions=output:2,output:3")?;
    let (mut two, mut three) = (rig.host(2).eye()?, rig.host(3).eye()?);
    let (arp, ip) = ("eth / arp", "eth / ipv4 / udp");
    switch.ofctl("mod-port br0 2 no-flood")?;
    rig.host(1).send(&[arp, ip])?;
    two.sees(ip);
    three.sees(arp);
    three.sees(ip);
    switch.ofctl("mod-port br0 2 flood")?;
    switch.ofctl("-O OpenFlow13 mod-port br0 3 no-forward")?;
    rig.host(1).send(&[arp, ip])?;
    two.sees(arp);
    two.sees(ip);
    switch.ofctl("-O OpenFlow13 mod-port br0 3 forward")?;
    rig.host(1).send(&[ip])?;
    two.sees(ip);
    three.sees(ip);
    switch.ofctl("-O OpenFlow13 mod-port br0 1 no-receive")?;
    rig.host(1).send(&[arp])?;
    switch.wait_for_counter("worker ingress_closed", 1)?;
    switch.ofctl("-O OpenFlow13 mod-port br0 1 receive")?;
    rig.host(1).send(&[ip])?;
    two.sees(ip);
    Ok(())
}

/// A field that is not there matches no rule that has it (OF 1.3.5, 7.3.2): the
/// first fragment has ports, later ones have none.
fn fragments_are_treated_as_told(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    switch.ofctl("add-flow br0 priority=2,udp,tp_dst=53,actions=output:2")?;
    switch.ofctl("add-flow br0 priority=1,udp,actions=mod_dl_src:02:00:00:00:00:99,output:2")?;
    let mut two = rig.host(2).eye()?;
    let first = "eth / ipv4(mf) / udp(dst=53) / data(16)";
    let later = "eth / ipv4(offset=24,proto=17) / data(16)";
    let whole = "eth / ipv4 / udp(dst=53) / data(16)";
    for form in FORMS {
        let mode = |mode: &str| switch.ofctl(&format!("{form} set-frags br0 {mode}"));
        let told = || switch.ofctl(&format!("{form} get-frags br0"));
        assert_eq!(told()?, "normal\n");
        rig.host(1).send(&[first, later, whole])?;
        two.sees(first);
        two.sees("eth(src=02:00:00:00:00:99) / ipv4(offset=24,proto=17) / data(16)");
        two.sees(whole);
        mode("drop")?;
        assert_eq!(told()?, "drop\n");
        rig.host(1).send(&[first, later, whole])?;
        two.sees(whole);
        mode("nx-match")?;
        assert_eq!(told()?, "nx-match\n");
        switch.ofctl("add-flow br0 priority=3,ip,nw_frag=later,actions=drop")?;
        rig.host(1).send(&[first, later, whole])?;
        two.sees(first);
        two.sees(whole);
        switch.ofctl("del-flows br0 ip,nw_frag=later")?;
        let refused = switch.ofctl_refused(&format!("{form} set-frags br0 reassemble"))?;
        assert!(refused.contains("OFPT_ERROR"), "{refused}");
        mode("normal")?;
    }
    Ok(())
}

/// Commands that this switch does not do, and the error that says so. All that
/// `ovs-fields(7)` and `ovs-actions(7)` of Open vSwitch 3.1 have and this switch has not
/// is among them.
#[rustfmt::skip]
const REFUSED: [(&str, &str); 15] = [
    ("-O OpenFlow13 add-flow br0 recirc_id=0,actions=drop",                            "OFPBRC_EPERM"),
    ("-O OpenFlow13 add-flow br0 dp_hash=0,actions=drop",                              "OFPBRC_EPERM"),
    ("-O OpenFlow13 add-flow br0 ip,ct_state=+trk,actions=drop",                       "OFPBMC_BAD_FIELD"),
    ("-O OpenFlow13 add-flow br0 ct_zone=5,actions=drop",                              "OFPBMC_BAD_FIELD"),
    ("-O OpenFlow13 add-flow br0 ct_mark=5,actions=drop",                              "OFPBMC_BAD_FIELD"),
    ("-O OpenFlow13 add-flow br0 ct_label=5,actions=drop",                             "OFPBMC_BAD_FIELD"),
    ("-O OpenFlow13 add-flow br0 ip,actions=ct(commit)",                               "OFPBAC_BAD_VENDOR_TYPE"),
    ("-O OpenFlow13 add-flow br0 ip,actions=ct(table=1,zone=5,nat)",                   "OFPBAC_BAD_VENDOR_TYPE"),
    ("-O OpenFlow13 add-flow br0 actions=ct_clear",                                    "OFPBAC_BAD_VENDOR_TYPE"),
    ("-O OpenFlow13 add-flow br0 actions=table",                                       "OFPBAC_BAD_OUT_PORT"),
    ("-O OpenFlow13 add-flow br0 actions=meter:5",                                     "OFPMMFC_INVALID_METER"),
    ("dump-ports br0 9", "OFPBRC_BAD_PORT"),
    ("-O OpenFlow13 queue-stats br0 1 5", "OFPQOFC_BAD_QUEUE"),
    ("queue-get-config br0 9", "OFPQOFC_BAD_PORT"),
    ("dump-ipfix-bridge br0", "OFPT_ERROR"),
];

fn what_is_not_there_is_refused_by_its_name(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    for (words, error) in REFUSED {
        let ran = switch.ofctl_ran(words)?;
        let said = format!("{}{}", ran.output, ran.errors);
        assert!(said.contains(error), "{words}\n{said}");
    }
    for words in [
        "dump-groups",
        "dump-group-stats",
        "dump-meters",
        "meter-stats",
        "queue-stats",
    ] {
        let said = switch.ofctl(&format!("-O OpenFlow13 {words} br0"))?;
        assert!(said.contains("reply (OF1.3)"), "{said}");
    }
    assert!(switch.rules("")?.is_empty());
    Ok(())
}

fn a_bridge_speaks_the_versions_that_it_was_told(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start("--bridge br0 --port p1 --protocols OpenFlow10,OpenFlow14")?;
    for (form, spoken) in FORMS
        .into_iter()
        .zip([true, false, false, false, true, false])
    {
        let words = format!("{form} show br0");
        if spoken {
            switch.ofctl(&words)?;
        } else {
            let said = switch.ofctl_refused(&words)?;
            assert!(said.contains("version negotiation failed"), "{said}");
        }
    }
    let shown = switch.ofctl("-O OpenFlow10,OpenFlow13,OpenFlow14,OpenFlow15 show br0")?;
    assert!(shown.contains("OFPT_FEATURES_REPLY (OF1.4)"), "{shown}");
    Ok(())
}

fn importance_is_told_where_there_is_a_word_for_it(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0 --fail-mode secure")?;
    for form in ["-O OpenFlow14", "-O OpenFlow15"] {
        switch.refill(form, &["importance=700,arp,actions=drop"])?;
        let flows = switch.flows(&format!("{form} dump-flows br0"))?;
        assert!(flows[0].contains("importance=700, "), "{flows:?}");
        let flows = switch.flows("-O OpenFlow13 dump-flows br0")?;
        assert!(!flows[0].contains("importance"), "{flows:?}");
    }
    Ok(())
}

fn what_1_5_changed_means_what_it_says(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let flow =
        "in_port=1,ip,actions=set_field:02:00:00:00:00:05/ff:00:00:00:00:ff->eth_src,output:2";
    switch.ofctl(&format!("-O OpenFlow15 add-flow br0 {flow}"))?;
    let flows = switch.flows("-O OpenFlow15 dump-flows br0")?;
    let shown = "set_field:02:00:00:00:00:05/ff:00:00:00:00:ff->eth_src,output:2";
    assert!(flows[0].ends_with(shown), "{flows:?}");
    let mut two = rig.host(2).eye()?;
    rig.host(1)
        .send(&["eth(src=0a:11:22:33:44:55) / ipv4 / udp(dst=9)"])?;
    two.sees("eth(src=02:11:22:33:44:05) / ipv4 / udp(dst=9)");
    let ports = switch.ofctl("-O OpenFlow15 dump-ports-desc br0 2")?;
    assert!(
        ports.contains(" 2(p2): addr:") && !ports.contains(" 1(p1)"),
        "{ports}"
    );
    let refused = switch.ofctl("-O OpenFlow15 dump-ports-desc br0 77")?;
    assert!(refused.contains("OFPBRC_BAD_PORT"), "{refused}");
    Ok(())
}

fn it_is_reached_by_tcp_too(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let socket = ground.directory().join("tools.sock");
    let words = format!(
        "{TWO} --listen ptcp:6654 --listen punix:{}",
        socket.display()
    );
    let switch = rig.start(&words)?;
    for form in FORMS {
        let words = format!("ovs-ofctl {form} show tcp:127.0.0.1:6654");
        let shown = rig.ran(&words)?.good()?;
        assert!(shown.contains(" 2(p2): addr:"), "{shown}");
        let shown = switch.ofctl(&format!("{form} dump-flows unix:{}", socket.display()))?;
        assert!(shown.contains("actions=NORMAL"), "{shown}");
    }
    Ok(())
}

impl Switch<'_> {
    /// Empties the tables, then adds these flows.
    fn refill(&self, form: &str, flows: &[&str]) -> Result<(), Failure> {
        self.ofctl(&format!("{form} del-flows br0"))?;
        for flow in flows {
            self.ofctl(&format!("{form} add-flow br0 {flow}"))?;
        }
        Ok(())
    }

    /// All flows without what counts and what ages: priority, match and actions.
    fn rules(&self, form: &str) -> Result<Vec<String>, Failure> {
        let flows = self.flows(&format!("{form} dump-flows br0"))?;
        let rule = |flow: &String| flow.rsplit(", ").next().unwrap_or_default().to_owned();
        let mut rules: Vec<_> = flows.iter().map(rule).collect();
        rules.sort();
        Ok(rules)
    }
}

/// A frame's bytes in hexadecimal.
pub(crate) fn hex(stack: &str) -> String {
    let stack: packet::build::Stack = stack.parse().expect("the text is a stack");
    let frame = stack.build();
    frame
        .bytes()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
