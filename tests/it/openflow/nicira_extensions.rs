//! Extensions of Nicira and Open vSwitch with traffic: packet-in formats, `controller(pause)` and
//! resume, controller ids, `resubmit`, `learn`, `conjunction` and `multipath`.

use openflow::{Message, Version};

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::controller::TestController;
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SECURE_3};

pub(crate) const TESTS: &[SystemTest] = tests![
    packet_in_format_is_as_requested,
    paused_packet_resumes_after_the_controller_reply,
    resume_with_an_unknown_continuation_is_refused,
    controller_ids_select_the_receiver_of_packet_ins,
    resubmit_returns_to_the_action_list,
    learned_rule_forwards_replies,
    conjunction_matches_all_clauses,
    multipath_keeps_a_flow_on_one_link,
];

/// Versions that can express all of these extensions.
const VERSION_OPTIONS: [&str; 4] = [
    "-O OpenFlow10",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

fn packet_in_format_is_as_requested(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let flow = "cookie=0x7,udp,actions=load:0x5->reg3[],controller(userdata=01.02)";
    for options in VERSION_OPTIONS {
        switch.ofctl(&format!("{options} del-flows br0"))?;
        switch.ofctl(&format!("{options} add-flow br0 {flow}"))?;
        for (format, parts) in [
            ("standard", &["OFPT_PACKET_IN"][..]),
            ("nxm", &["NXT_PACKET_IN ", "cookie=0x7", "reg3=0x5"]),
            (
                "nxt_packet_in2",
                &["NXT_PACKET_IN2", "reg3=0x5", "userdata=01.02"],
            ),
        ] {
            let monitor = switch.start_monitor(&format!("{options} -P {format}"))?;
            network.host(1).send(&["eth / ipv4 / udp(src=77)"])?;
            for part in ["tp_src=77", "in_port=1", "(via action)"]
                .iter()
                .chain(parts)
            {
                let part = part.trim_end();
                context.wait_until(part, || Ok(monitor.written()?.contains(part)))?;
            }
            let output = monitor.written()?;
            assert!(
                !output.contains("decode error"),
                "{options} {format}: {output}"
            );
        }
    }
    Ok(())
}

fn paused_packet_resumes_after_the_controller_reply(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut two = network.host(2).capture_frames()?;
    for options in VERSION_OPTIONS {
        switch.ofctl("del-flows br0")?;
        for flow in [
            "table=0,udp,actions=load:0x9->reg1[],push:reg1,resubmit(,1),mod_tp_dst:9,output:2",
            "table=1,actions=mod_tp_src:8,controller(pause),pop:reg2,resubmit(,2)",
            "table=2,reg1=0x9,reg2=0x9,actions=output:2",
        ] {
            switch.ofctl(&format!("add-flow br0 {flow}"))?;
        }
        let options = format!("{options} -P nxt_packet_in2");
        let monitor = switch.start_monitor_with(&options, "65534 resume")?;
        network.host(1).send(&["eth / ipv4 / udp(src=1,dst=2)"])?;
        two.expect_frame("eth / ipv4 / udp(src=8,dst=2)");
        two.expect_frame("eth / ipv4 / udp(src=8,dst=9)");
        let output = monitor.written()?;
        for part in ["continuation.stack=(top) 0x9 (bottom)", "send: NXT_RESUME"] {
            assert!(output.contains(part), "{options}: {output}");
        }
        assert!(!output.contains("decode error"), "{options}: {output}");
    }
    Ok(())
}

fn resume_with_an_unknown_continuation_is_refused(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let switch = network.start_switch("--bridge br0")?;
    for (version, fault) in [
        (Version::V10, "Nicira type 1, code 534"),
        (Version::V13, "experimenter 0x00002320, type 35"),
        (Version::V15, "experimenter 0x00002320, type 35"),
    ] {
        let mut controller = TestController::connect(context, &switch.file("br0.mgmt"), version)?;
        let resume = flow::Resume {
            registers: flow::PipelineFields::new(base::PortNo::LOCAL),
            data: vec![0; 60],
            continuation: vec![1; 64],
        };
        match controller.request(&Message::Resume(resume))? {
            Message::Error(error) => assert_eq!(error.code.to_string(), fault),
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

/// A controller with an id receives only the packet-ins for that id.
fn controller_ids_select_the_receiver_of_packet_ins(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --fail-mode secure --port p1")?;
    for version in [Version::V10, Version::V13, Version::V15] {
        let connect = |id: u16| {
            let mut controller =
                TestController::connect(context, &switch.file("br0.mgmt"), version)?;
            controller.send(&Message::SetConfig(flow::SwitchConfig::default()))?;
            controller.send(&Message::ControllerId(id))?;
            controller.barrier();
            Ok::<_, testbed::Failure>(controller)
        };
        let (mut plain, mut five) = (connect(0)?, connect(5)?);
        plain.add_flow("udp,tp_src=5,actions=controller(id=5)")?;
        plain.add_flow("udp,tp_src=6,actions=controller")?;
        plain.barrier();
        network.host(1).send(&[
            "eth / ipv4 / udp(src=5)",
            "eth / ipv4 / udp(src=6)",
            "eth / ipv4 / udp(src=5)",
        ])?;
        let port = |message: &Message| match message {
            Message::PacketIn(packet_in) => packet_in.data.get(35).copied(),
            _ => None,
        };
        assert_eq!(five.wait_for_message("the first packet-in", port)?, 5);
        assert_eq!(five.wait_for_message("the third packet-in", port)?, 5);
        assert_eq!(plain.wait_for_message("the second packet-in", port)?, 6);
        let pending = |controller: &mut TestController<'_>| {
            controller.take_messages().iter().filter_map(port).count()
        };
        assert_eq!((pending(&mut plain), pending(&mut five)), (0, 0));
    }
    Ok(())
}

fn resubmit_returns_to_the_action_list(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let (mut two, mut three) = (
        network.host(2).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    for flow in [
        "table=0,in_port=1,actions=resubmit(7,1),output:3",
        "table=1,in_port=7,actions=mod_nw_tos:40,output:2",
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    network.host(1).send(&["eth / ipv4 / udp"])?;
    two.expect_frame("eth / ipv4(tos=40) / udp");
    three.expect_frame("eth / ipv4(tos=40) / udp");
    Ok(())
}

/// The rule that the first frame installs sends replies to the first frame's port.
fn learned_rule_forwards_replies(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    let learn = "learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15])";
    for flow in [
        format!("table=0,actions={learn},resubmit(,1),resubmit(,2)"),
        "table=2,reg0=0,actions=flood".to_owned(),
        "table=2,priority=1,actions=output:NXM_NX_REG0[]".to_owned(),
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    let (mut one, mut three) = (
        network.host(1).capture_frames()?,
        network.host(3).capture_frames()?,
    );
    let request = "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02) / ipv4 / udp";
    let reply = "eth(src=02:00:00:00:00:02,dst=02:00:00:00:00:01) / ipv4 / udp";
    network.host(1).send(&[request])?;
    three.expect_frame(request);
    context.wait_until("the learned rule", || {
        let flows = switch.flows("dump-flows br0 table=1")?;
        Ok(flows
            .iter()
            .any(|flow| flow.contains("dl_dst=02:00:00:00:00:01")))
    })?;
    network.host(2).send(&[reply])?;
    one.expect_frame(reply);
    let last = "eth(src=02:00:00:00:00:02,dst=02:00:00:00:00:33) / arp";
    network.host(2).send(&[last])?;
    three.expect_frame(last);
    Ok(())
}

fn conjunction_matches_all_clauses(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = network.start_switch(SECURE_2)?;
    let mut two = network.host(2).capture_frames()?;
    for flow in [
        "priority=9,ip,nw_src=10.0.0.1,actions=conjunction(3,1/2)",
        "priority=9,ip,nw_src=10.0.0.2,actions=conjunction(3,1/2)",
        "priority=9,udp,tp_dst=80,actions=conjunction(3,2/2)",
        "priority=9,udp,tp_dst=81,actions=conjunction(3,2/2)",
        "priority=9,conj_id=3,ip,actions=output:2",
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    let frame = |src: u8, dst: u16| format!("eth / ipv4(src=10.0.0.{src}) / udp(dst={dst})");
    let mut sent = Vec::new();
    for src in 1..=3 {
        for dst in 79..=81 {
            sent.push(frame(src, dst));
        }
    }
    let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
    network.host(1).send(&sent)?;
    for (src, dst) in [(1, 80), (1, 81), (2, 80), (2, 81)] {
        two.expect_frame(&frame(src, dst));
    }
    Ok(())
}

/// All frames of a flow leave by one link, and the links share the flows.
fn multipath_keeps_a_flow_on_one_link(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 3)?;
    let switch = network.start_switch(SECURE_3)?;
    for flow in [
        "table=0,ip,actions=multipath(symmetric_l3l4+udp,7,hrw,2,0,reg0[0..7]),resubmit(,1)",
        "table=1,reg0=0,actions=output:2",
        "table=1,reg0=1,actions=output:3",
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    let mut sent = Vec::new();
    for port in 1..=32 {
        let frame = format!("eth / ipv4 / udp(src={port})");
        sent.extend([frame.clone(), frame]);
    }
    let sent: Vec<&str> = sent.iter().map(String::as_str).collect();
    network.host(1).send(&sent)?;
    let counts = || -> Result<Vec<u64>, testbed::Failure> {
        let flows = switch.flows("dump-flows br0 table=1")?;
        let count = |flow: &String| {
            let (_, rest) = flow.split_once("n_packets=")?;
            rest.split(',').next()?.parse().ok()
        };
        Ok(flows.iter().filter_map(count).collect())
    };
    context.wait_until("the counters of all frames", || {
        Ok(counts()?.iter().sum::<u64>() == 64)
    })?;
    let counts = counts()?;
    assert!(
        counts.iter().all(|count| *count >= 8 && count % 2 == 0),
        "{counts:?}"
    );
    Ok(())
}
