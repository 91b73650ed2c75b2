//! Ports of memory, whose frames come out of a file.

use std::fs;

use openflow::Version;
use packet::build::Stack;
use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Peer;
use crate::rig::{Rig, Switch};

pub(crate) const RULES: &[Rule] = rules![
    frames_of_a_file_are_forwarded_and_counted,
    no_frame_meets_an_older_rule_though_workers_never_rest,
];

/// A file of these frames, as libpcap writes it.
pub(crate) fn capture(stacks: &[&str]) -> Vec<u8> {
    let words =
        |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_ne_bytes()).collect() };
    let mut bytes = words(&[0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, 1]);
    if cfg!(target_endian = "big") {
        bytes[4..8].copy_from_slice(&[0, 2, 0, 4]);
    }
    for stack in stacks {
        let frame = stack.parse::<Stack>().expect(stack).build();
        let len = u32::try_from(frame.len()).expect("it is short");
        bytes.extend(words(&[0, 0, len, len]));
        bytes.extend(frame.bytes());
    }
    bytes
}

fn frames_of_a_file_are_forwarded_and_counted(ground: &Ground) -> Outcome {
    let file = ground.file("two.pcap");
    let frames = ["eth / ipv4 / udp(dst=1)", "eth / ipv4 / udp(dst=2)"];
    fs::write(&file, capture(&frames)).map_err(Failure::to("write a file of frames"))?;
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(&format!(
        "--bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2=7",
        file.display()
    ))?;
    switch.ofctl("add-flow br0 in_port=1,udp,tp_dst=2,actions=output:7")?;
    switch.wait_until("frames to leave", |switch| {
        let told = switch.ofctl("dump-ports br0 7")?;
        Ok(packets(&told, "tx pkts=") > 1000)
    })?;
    // Down it is silent, and what it has received is counted to the last.
    switch.ofctl("mod-port br0 m1 down")?;
    switch.wait_until("no frames to come", |switch| {
        let came = packets(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        let again = packets(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
        Ok(came == again)
    })?;
    let came = packets(&switch.ofctl("dump-ports br0 1")?, "rx pkts=");
    let left = packets(&switch.ofctl("dump-ports br0 7")?, "tx pkts=");
    assert!(left <= came / 2, "every other frame is for the rule");
    let told = switch.ofctl("dump-aggregate br0")?;
    assert_eq!(packets(&told, "packet_count="), left, "{told}");
    drop(switch);
    let told = rig.run("--bridge br0 --port replay:m1,no-such-file.pcap")?;
    assert!(told.bad()?.contains("no-such-file.pcap cannot be replayed"));
    Ok(())
}

/// Changes of the rule.
const ROUNDS: u64 = 100;

/// Workers that always have frames leave the cores to whoever changes rules, and give way
/// between two batches: whether a barrier takes that for rest too early, the counts of
/// rules that were to meet no more frames tell.
fn no_frame_meets_an_older_rule_though_workers_never_rest(ground: &Ground) -> Outcome {
    let file = ground.file("many.pcap");
    let frames: Vec<_> = (0..64)
        .map(|n| format!("eth / ipv4 / udp(dst={n})"))
        .collect();
    let frames: Vec<_> = frames.iter().map(String::as_str).collect();
    fs::write(&file, capture(&frames)).map_err(Failure::to("write a file of frames"))?;
    let rig = Rig::new(ground, 0)?;
    let switch = rig.start(&format!(
        "--cores 0,1 --bridge br0 --fail-mode secure --port replay:m1,{} --port replay:m2",
        file.display()
    ))?;
    let mut peer = Peer::visit(ground, &switch.file("br0.mgmt"), Version::V13)?;
    let mut met = Vec::new();
    for round in 0..ROUNDS {
        let number = round + 1;
        peer.add(&format!(
            "cookie={number},priority={number},in_port=1,actions=output:2"
        ))?;
        peer.barrier();
        // The rule of the last round is behind this one: its count is final.
        if round > 0 {
            met.push(count(&switch, round)?);
        }
    }
    for (cookie, met) in (1..).zip(&met) {
        assert_eq!(count(&switch, cookie)?, *met, "the rule of round {cookie}");
    }
    assert!(met.iter().any(|met| *met > 0), "{met:?}");
    Ok(())
}

/// How many frames have met the rule with this cookie.
fn count(switch: &Switch<'_>, cookie: u64) -> Result<u64, Failure> {
    let told = switch.ofctl(&format!("dump-flows br0 cookie={cookie}/-1"))?;
    Ok(packets(&told, "n_packets="))
}

/// The number behind `key`.
pub(crate) fn packets(told: &str, key: &str) -> u64 {
    let (_, rest) = told.split_once(key).expect(key);
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.expect("more follows")]
        .parse()
        .expect("a number")
}
