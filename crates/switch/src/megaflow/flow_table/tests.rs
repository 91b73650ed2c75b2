//! The life of active flows.

use flow::PipelineFields;
use packet::build::Stack;

use super::super::key_of;
use super::*;

/// Returns a flow of all packets with the Ethernet source of this frame, and the frame's own.
fn flow(text: &str) -> (ActiveFlow<u32>, Megaflow) {
    let frame = text.parse::<Stack>().expect(text).build();
    let key = key_of(&frame, &PipelineFields::new(base::PortNo(1))).expect("well formed");
    let exact = Megaflow::exact(&key, &frame);
    let mut megaflow = exact.clone();
    megaflow.mask = KeyBits::ZERO;
    megaflow.mask.set(KeyField::ETH_SRC, 0xffff_ffff_ffff);
    let flow = ActiveFlow {
        port: 1,
        frame,
        tunnel: None,
        megaflow,
        actions: "2".to_owned(),
        packets: 0,
        bytes: 0,
        used: None,
        tcp_flags: 0,
        created: Instant::START,
    };
    (flow, exact)
}

#[test]
fn flow_counts_packets_that_agree_in_examined_bits() {
    let mut table = ActiveFlowTable::default();
    let (first, exact) = flow("eth(src=02:00:00:00:00:01) / ipv4 / tcp(flags=S)");
    let (_, same) = flow("eth(src=02:00:00:00:00:01) / ipv4 / tcp(flags=SA)");
    let (_, other) = flow("eth(src=02:00:00:00:00:02) / ipv4 / tcp");
    let now = Instant::START + Duration::from_secs(1);
    let count = |table: &mut ActiveFlowTable<u32>, exact: &Megaflow| {
        table.count(&PacketSummary {
            exact,
            packets: 1,
            bytes: 60,
            now,
        })
    };
    assert!(!count(&mut table, &exact));
    let ufid = table.insert(first).expect("there is room");
    assert!(count(&mut table, &exact) && count(&mut table, &same));
    assert!(!count(&mut table, &other));
    let flow = table.get(ufid).expect("it was added");
    assert_eq!((flow.packets, flow.bytes), (2, 120));
    let later = now + Duration::from_millis(1500);
    assert_eq!(
        flow.counters(later),
        "packets:2, bytes:120, used:1.500s, flags:S."
    );
    assert_eq!(table.len(), 1);
    assert!(table.remove(ufid).is_some() && table.is_empty());
    assert!(!count(&mut table, &exact));
}

#[test]
fn idle_flow_expires() {
    let mut table = ActiveFlowTable::default();
    let (used, exact) = flow("eth(src=02:00:00:00:00:01)");
    let (unused, _) = flow("eth(src=02:00:00:00:00:02)");
    assert_eq!(
        unused.counters(Instant::START),
        "packets:0, bytes:0, used:never"
    );
    let kept = table.insert(used).expect("there is room");
    let gone = table.insert(unused).expect("there is room");
    let now = Instant::START + Duration::from_secs(9);
    let summary = PacketSummary {
        exact: &exact,
        packets: 1,
        bytes: 1,
        now,
    };
    assert!(table.count(&summary));
    let expired = table.expire(Instant::START + Duration::from_secs(11));
    let expired: Vec<_> = expired.into_iter().map(|(ufid, _)| ufid).collect();
    assert_eq!(expired, [gone]);
    assert!(table.get(kept).is_some());
    assert_eq!(table.clear().len(), 1);
}

#[test]
fn revalidation_keeps_modifies_or_deletes() {
    let (flow, exact) = flow("eth(src=02:00:00:00:00:01)");
    let same = flow.megaflow.clone();
    assert_eq!(flow.revalidate(&same, "2"), Revalidation::Keep);
    assert_eq!(
        flow.revalidate(&same, "3"),
        Revalidation::Modify("3".to_owned())
    );
    assert_eq!(flow.revalidate(&exact, "2"), Revalidation::Delete);
}

#[test]
fn table_is_bounded() {
    let mut table = ActiveFlowTable::default();
    for number in 0..=FLOWS_MAX {
        let (mut flow, _) = flow("eth");
        flow.megaflow.packet.set(KeyField::ETH_SRC, number as u128);
        assert_eq!(table.insert(flow).is_some(), number < FLOWS_MAX);
    }
}

#[test]
fn ufid_is_stable_and_survives_its_text() {
    let (flow, _) = flow("eth(src=02:00:00:00:00:01)");
    let ufid = FlowUfid::of(&flow.megaflow);
    assert_eq!(ufid, FlowUfid::of(&flow.megaflow));
    assert_eq!(FlowUfid::parse(&ufid.to_string()), Some(ufid));
    assert_eq!(
        FlowUfid(1).to_string(),
        "ufid:00000000-0000-0000-0000-000000000001"
    );
    for text in [
        "",
        "ufid:",
        "ufid:x",
        "1234",
        "ufid:0123456789abcdef0123456789abcdef0",
    ] {
        assert_eq!(FlowUfid::parse(text), None, "{text}");
    }
}

#[test]
fn flow_table_counts_several_packets_at_once_up_to_its_capacity() {
    let (first, exact) = flow("eth(src=02:00:00:00:00:01) / ipv4 / udp(dst=53)");
    let (second, _) = flow("eth(src=02:00:00:00:00:02) / ipv4 / udp(dst=53)");
    let mut table = ActiveFlowTable {
        capacity: 1,
        ..ActiveFlowTable::default()
    };
    let ufid = table.insert(first).expect("there is room");
    assert!(table.is_full() && table.insert(second).is_none());
    assert!(table.count(&PacketSummary {
        exact: &exact,
        packets: 7,
        bytes: 700,
        now: Instant::START,
    }));
    let flow = table.get(ufid).expect("it is there");
    assert_eq!((flow.packets, flow.bytes), (7, 700));
}
