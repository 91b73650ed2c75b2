//! What Nicira and Open vSwitch added, under traffic: packet-ins in all forms, frames
//! that wait for their controller, rules that frames make, lookups within lookups.

use openflow::{Message, Version};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Peer;
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    a_packet_in_has_the_form_that_was_asked_for,
    a_frame_waits_for_its_controller_and_goes_on,
    a_frame_that_is_not_waited_for_is_stale,
    controllers_are_told_by_their_ids,
    a_lookup_within_a_lookup_comes_back,
    a_learned_rule_carries_the_answers,
    clauses_hold_together_under_traffic,
    a_hash_keeps_a_flow_on_its_link,
];

const SECURE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";
const THREE: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3";

/// Those that have words for all of it.
const FORMS: [&str; 4] = [
    "-O OpenFlow10",
    "-O OpenFlow13",
    "-O OpenFlow14",
    "-O OpenFlow15",
];

fn a_packet_in_has_the_form_that_was_asked_for(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let flow = "cookie=0x7,udp,actions=load:0x5->reg3[],controller(userdata=01.02)";
    for form in FORMS {
        switch.ofctl(&format!("{form} del-flows br0"))?;
        switch.ofctl(&format!("{form} add-flow br0 {flow}"))?;
        for (asked, told) in [
            ("standard", &["OFPT_PACKET_IN"][..]),
            ("nxm", &["NXT_PACKET_IN ", "cookie=0x7", "reg3=0x5"]),
            (
                "nxt_packet_in2",
                &["NXT_PACKET_IN2", "reg3=0x5", "userdata=01.02"],
            ),
        ] {
            let monitor = switch.monitor(&format!("{form} -P {asked}"))?;
            rig.host(1).send(&["eth / ipv4 / udp(src=77)"])?;
            for what in ["tp_src=77", "in_port=1", "(via action)"]
                .iter()
                .chain(told)
            {
                let what = what.trim_end();
                ground.wait_until(what, || Ok(monitor.written()?.contains(what)))?;
            }
            let said = monitor.written()?;
            assert!(!said.contains("decode error"), "{form} {asked}: {said}");
        }
    }
    Ok(())
}

fn a_frame_waits_for_its_controller_and_goes_on(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let mut two = rig.host(2).eye()?;
    for form in FORMS {
        switch.ofctl("del-flows br0")?;
        for flow in [
            "table=0,udp,actions=load:0x9->reg1[],push:reg1,resubmit(,1),mod_tp_dst:9,output:2",
            "table=1,actions=mod_tp_src:8,controller(pause),pop:reg2,resubmit(,2)",
            "table=2,reg1=0x9,reg2=0x9,actions=output:2",
        ] {
            switch.ofctl(&format!("add-flow br0 {flow}"))?;
        }
        let form = format!("{form} -P nxt_packet_in2");
        let monitor = switch.monitor_with(&form, "65534 resume")?;
        rig.host(1).send(&["eth / ipv4 / udp(src=1,dst=2)"])?;
        two.sees("eth / ipv4 / udp(src=8,dst=2)");
        two.sees("eth / ipv4 / udp(src=8,dst=9)");
        let said = monitor.written()?;
        for what in ["continuation.stack=(top) 0x9 (bottom)", "send: NXT_RESUME"] {
            assert!(said.contains(what), "{form}: {said}");
        }
        assert!(!said.contains("decode error"), "{form}: {said}");
    }
    Ok(())
}

fn a_frame_that_is_not_waited_for_is_stale(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start("--bridge br0")?;
    for (version, fault) in [
        (Version::V10, "Nicira type 1, code 534"),
        (Version::V13, "experimenter 0x00002320, type 35"),
        (Version::V15, "experimenter 0x00002320, type 35"),
    ] {
        let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), version)?;
        let resume = flow::Resume {
            registers: flow::Registers::new(base::PortNo::LOCAL),
            data: vec![0; 60],
            continuation: vec![1; 64],
        };
        match peer.ask(&Message::Resume(resume))? {
            Message::Error(error) => assert_eq!(error.code.to_string(), fault),
            other => panic!("{other:?}"),
        }
    }
    Ok(())
}

/// A controller that gave itself an id is told what is for that id, and no more.
fn controllers_are_told_by_their_ids(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 1)?;
    let switch = rig.start("--bridge br0 --fail-mode secure --port p1")?;
    for version in [Version::V10, Version::V13, Version::V15] {
        let meet = |id: u16| {
            let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), version)?;
            peer.send(&Message::SetConfig(flow::SwitchConfig::default()))?;
            peer.send(&Message::ControllerId(id))?;
            peer.barrier();
            Ok::<_, testbed::Failure>(peer)
        };
        let (mut plain, mut five) = (meet(0)?, meet(5)?);
        plain.add("udp,tp_src=5,actions=controller(id=5)")?;
        plain.add("udp,tp_src=6,actions=controller")?;
        plain.barrier();
        rig.host(1).send(&[
            "eth / ipv4 / udp(src=5)",
            "eth / ipv4 / udp(src=6)",
            "eth / ipv4 / udp(src=5)",
        ])?;
        let port = |message: &Message| match message {
            Message::PacketIn(told) => told.data.get(35).copied(),
            _ => None,
        };
        assert_eq!(five.hear("the first", port)?, 5);
        assert_eq!(five.hear("the third", port)?, 5);
        assert_eq!(plain.hear("the second", port)?, 6);
        let more = |peer: &mut Peer<'_>| peer.heard().iter().filter_map(port).count();
        assert_eq!((more(&mut plain), more(&mut five)), (0, 0));
    }
    Ok(())
}

fn a_lookup_within_a_lookup_comes_back(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
    let (mut two, mut three) = (rig.host(2).eye()?, rig.host(3).eye()?);
    for flow in [
        "table=0,in_port=1,actions=resubmit(7,1),output:3",
        "table=1,in_port=7,actions=mod_nw_tos:40,output:2",
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    rig.host(1).send(&["eth / ipv4 / udp"])?;
    two.sees("eth / ipv4(tos=40) / udp");
    three.sees("eth / ipv4(tos=40) / udp");
    Ok(())
}

/// The rule that the first frame makes takes what comes back to where it came from.
fn a_learned_rule_carries_the_answers(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
    let learn = "learn(table=1,NXM_OF_ETH_DST[]=NXM_OF_ETH_SRC[],load:NXM_OF_IN_PORT[]->NXM_NX_REG0[0..15])";
    for flow in [
        format!("table=0,actions={learn},resubmit(,1),resubmit(,2)"),
        "table=2,reg0=0,actions=flood".to_owned(),
        "table=2,priority=1,actions=output:NXM_NX_REG0[]".to_owned(),
    ] {
        switch.ofctl(&format!("add-flow br0 {flow}"))?;
    }
    let (mut one, mut three) = (rig.host(1).eye()?, rig.host(3).eye()?);
    let there = "eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02) / ipv4 / udp";
    let back = "eth(src=02:00:00:00:00:02,dst=02:00:00:00:00:01) / ipv4 / udp";
    rig.host(1).send(&[there])?;
    three.sees(there);
    ground.wait_until("the rule to be learned", || {
        let flows = switch.flows("dump-flows br0 table=1")?;
        Ok(flows
            .iter()
            .any(|flow| flow.contains("dl_dst=02:00:00:00:00:01")))
    })?;
    rig.host(2).send(&[back])?;
    one.sees(back);
    let last = "eth(src=02:00:00:00:00:02,dst=02:00:00:00:00:33) / arp";
    rig.host(2).send(&[last])?;
    three.sees(last);
    Ok(())
}

fn clauses_hold_together_under_traffic(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let switch = rig.start(SECURE)?;
    let mut two = rig.host(2).eye()?;
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
    rig.host(1).send(&sent)?;
    for (src, dst) in [(1, 80), (1, 81), (2, 80), (2, 81)] {
        two.sees(&frame(src, dst));
    }
    Ok(())
}

/// Frames of a flow all take one link, whichever it is, and flows take different ones.
fn a_hash_keeps_a_flow_on_its_link(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
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
    rig.host(1).send(&sent)?;
    let counts = || -> Result<Vec<u64>, testbed::Failure> {
        let flows = switch.flows("dump-flows br0 table=1")?;
        let count = |flow: &String| {
            let (_, rest) = flow.split_once("n_packets=")?;
            rest.split(',').next()?.parse().ok()
        };
        Ok(flows.iter().filter_map(count).collect())
    };
    ground.wait_until("all frames to be counted", || {
        Ok(counts()?.iter().sum::<u64>() == 64)
    })?;
    let counts = counts()?;
    assert!(
        counts.iter().all(|count| *count >= 8 && count % 2 == 0),
        "{counts:?}"
    );
    Ok(())
}
