//! Messages of an exporter, decoded with its own templates.

use packet::Frame;
use proptest::prelude::*;

use super::*;

const EPOCH: u64 = 1_700_000_000;

fn exporter(active: u64, flows_max: usize) -> IpfixExporter {
    let cache = IpfixCache {
        active: Duration::from_secs(active),
        flows_max,
        name: None,
    };
    IpfixExporter::new(cache, EPOCH)
}

fn observation(point: u32) -> IpfixObservation {
    IpfixObservation {
        domain: 9,
        point,
        leaves: false,
        interfaces: [7, 0],
    }
}

fn excerpt(stack: &str) -> FrameExcerpt {
    let stack: packet::build::Stack = stack.parse().expect("a stack");
    let frame: Frame = stack.build();
    FrameExcerpt::of(&frame, 0)
}

/// The values of a record's elements, by element ID.
type DecodedRecord = BTreeMap<u16, u64>;

/// Decodes the records in messages with the templates in them.
fn records(messages: &[Vec<u8>]) -> Vec<DecodedRecord> {
    let mut templates: BTreeMap<u16, Vec<(u16, u16)>> = BTreeMap::new();
    let mut records = Vec::new();
    for message in messages {
        let half = |at: usize| u16::from_be_bytes([message[at], message[at + 1]]);
        assert_eq!((half(0), usize::from(half(2))), (10, message.len()));
        assert!(message.len() <= MESSAGE_MAX);
        let mut at = HEADER_LEN;
        while at < message.len() {
            let (set, end) = (half(at), at + usize::from(half(at + 2)));
            at += SET_LEN;
            if set == TEMPLATES {
                let count = usize::from(half(at + 2));
                let fields = (1..=count).map(|n| (half(at + 4 * n), half(at + 4 * n + 2)));
                templates.insert(half(at), fields.collect());
            } else {
                let mut record = DecodedRecord::new();
                for (number, length) in &templates[&set] {
                    let bytes = &message[at..at + usize::from(*length)];
                    // The last eight bytes of an address are enough.
                    let value = bytes
                        .iter()
                        .fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte));
                    record.insert(*number, value);
                    at += usize::from(*length);
                }
                records.push(record);
            }
            assert!(at <= end);
            at = end;
        }
    }
    records
}

const TAGGED: &str = "eth / vlan(vid=7,pcp=3) / ipv4(src=10.0.0.1,dst=10.0.0.2) / udp(src=5,dst=6)";

#[test]
fn ipfix_without_cache_exports_each_sample_at_once() {
    let mut exporter = exporter(0, 0);
    let mut messages = Vec::new();
    let (now, frame) = (Instant::from_secs(3), excerpt(TAGGED));
    exporter.handle_sample(observation(4), &frame, 10, now, &mut messages);
    exporter.handle_sample(observation(4), &frame, 10, now, &mut messages);
    let exported = records(&messages);
    assert_eq!(exported.len(), 2);
    let expected = [
        (138, 4),
        (61, 0),
        (10, 7),
        (14, 0),
        (256, 0x800),
        (240, 18),
        (58, 7),
        (244, 3),
        (60, 4),
        (4, 17),
        (8, 0x0a00_0001),
        (12, 0x0a00_0002),
        (7, 5),
        (11, 6),
        (2, 10),
        (352, 460),
        (136, 2),
        (1, 280),
        (198, 7840),
        (25, 28),
        (26, 28),
    ];
    for (element, value) in expected {
        assert_eq!(exported[0].get(&element), Some(&value), "element {element}");
    }
    let seconds = u32::try_from(EPOCH + 3)
        .expect("it is before 2106")
        .to_be_bytes();
    assert!(messages.iter().all(|message| message[4..8] == seconds));
    let statistics = exporter.statistics();
    assert_eq!((statistics.flows, statistics.flows_now), (2, 0));
    assert_eq!(statistics.sampled, [2, 2, 0]);
}

#[test]
fn ip_packets_without_known_transport_are_counted_as_errors() {
    let mut exporter = exporter(5, 10);
    let mut messages = Vec::new();
    let now = Instant::from_secs(1);
    for stack in [
        "eth(type=0x0800)",
        "eth / ipv4(proto=47) / data(4)",
        "eth / ipv6(next=47) / data(4)",
        "eth / ipv4 / udp",
        "eth / arp",
    ] {
        exporter.handle_sample(observation(4), &excerpt(stack), 1, now, &mut messages);
    }
    let statistics = exporter.statistics();
    assert_eq!(statistics.sampled, [5, 1, 0]);
    assert_eq!(statistics.failed, [3, 2, 1]);
}

#[test]
fn ipfix_cache_exports_flow_at_active_timeout() {
    let mut exporter = exporter(5, 10);
    let mut messages = Vec::new();
    let frame = excerpt("eth / ipv6(src=fd00::1,dst=fd00::2) / icmpv6(type=128,code=0)");
    for second in 1..4 {
        let now = Instant::from_secs(second);
        exporter.handle_sample(observation(4), &frame, 1, now, &mut messages);
    }
    assert!(messages.is_empty());
    assert_eq!(exporter.next_timeout(), Some(Instant::from_secs(6)));
    exporter.handle_timeout(Instant::from_secs(6), &mut messages);
    let exported = records(&messages);
    assert_eq!(exported.len(), 1);
    for (element, value) in [
        (2, 3),
        (178, 128),
        (158, 5_000_000),
        (159, 3_000_000),
        (136, 2),
    ] {
        assert_eq!(exported[0].get(&element), Some(&value), "element {element}");
    }
    assert_eq!(exporter.next_timeout(), None);
}

#[test]
fn ipfix_full_cache_exports_oldest_flow_first() {
    let mut exporter = exporter(100, 2);
    let mut messages = Vec::new();
    let frame = excerpt("eth / arp");
    for point in 1..4 {
        exporter.handle_sample(
            observation(point),
            &frame,
            1,
            Instant::from_secs(1),
            &mut messages,
        );
    }
    exporter.flush(Instant::from_secs(2), &mut messages);
    let exported = records(&messages);
    let points: Vec<_> = exported
        .iter()
        .map(|record| (record[&138], record[&136]))
        .collect();
    assert_eq!(points, [(1, 5), (2, 4), (3, 4)]);
}

#[test]
fn ipfix_templates_repeat_and_sequence_numbers_count_records() {
    let mut exporter = exporter(0, 0);
    let frame = excerpt("eth / arp");
    let mut counts = Vec::new();
    for second in [0, 1, 600, 601] {
        let mut messages = Vec::new();
        let now = Instant::from_secs(second);
        exporter.handle_sample(observation(1), &frame, 1, now, &mut messages);
        let number = messages[0][8..12]
            .first_chunk()
            .map(|b| u32::from_be_bytes(*b));
        counts.push((messages.len() > 1, number));
    }
    let expected = [
        (true, Some(0)),
        (false, Some(1)),
        (true, Some(2)),
        (false, Some(3)),
    ];
    assert_eq!(counts, expected);
}

#[test]
fn ipfix_records_contain_exporter_name() {
    let mut exporter = exporter(0, 0);
    exporter.cache.name = Some("me".to_owned());
    let mut messages = Vec::new();
    let frame = excerpt("eth / arp");
    exporter.handle_sample(observation(1), &frame, 1, Instant::START, &mut messages);
    let last = messages.last().expect("a message was exported");
    // The name precedes the counters of a non-IP frame, which have 25 bytes.
    assert_eq!(last[last.len() - 28..last.len() - 25], [2, b'm', b'e']);
}

proptest! {
    /// For all samples: no message is too long, records have the lengths of their templates, and no
    /// frame is lost.
    #[test]
    fn ipfix_records_match_their_templates(
        kinds in prop::collection::vec((0..6_usize, 0..4_u32), 1..80),
        flows_max in 0..10_usize,
    ) {
        let frames = [
            "eth / arp",
            "eth / vlan(vid=5) / arp",
            TAGGED,
            "eth / ipv4 / tcp(dst=80)",
            "eth / ipv6 / udp(dst=80)",
            "eth / ipv4 / icmp",
        ].map(excerpt);
        let mut exporter = exporter(2, flows_max);
        let mut messages = Vec::new();
        for (place, (kind, point)) in (0..).zip(&kinds) {
            let now = Instant::from_millis(place * 100);
            exporter.handle_sample(observation(*point), &frames[*kind], 1, now, &mut messages);
        }
        exporter.flush(Instant::from_secs(100), &mut messages);
        let exported = records(&messages);
        let counted: u64 = exported.iter().map(|record| record[&2]).sum();
        prop_assert_eq!(counted, kinds.len() as u64);
    }
}
