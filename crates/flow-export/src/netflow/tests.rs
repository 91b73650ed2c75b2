//! Records decoded byte by byte according to Cisco's description.

use std::net::Ipv4Addr;

use super::*;

const EPOCH: Duration = Duration::from_millis(1_000_000_500);

fn exporter(active: Option<u64>) -> NetflowExporter {
    let settings = NetflowSettings {
        active: active.map(Duration::from_secs),
        engine: [3, 0x85],
        add_id_to_interface: false,
    };
    NetflowExporter::new(settings, EPOCH)
}

/// A flow of this number with `packets` packets of 100 bytes, seen in these seconds.
fn flow(number: u16, packets: u64, seen: [u64; 2]) -> Ipv4Flow {
    let key = Ipv4FlowKey {
        input: PortNo(1),
        output: FlowOutput::Port(PortNo::LOCAL),
        addresses: [Ipv4Addr::new(10, 0, 0, 1), Ipv4Addr::new(10, 0, 0, 2)],
        ports: [number, 80],
        protocol: 6,
        tos: 0xb8,
    };
    let counts = Ipv4FlowCounts {
        seen: seen.map(Instant::from_secs),
        packets,
        bytes: packets * 100,
        flags: 0x12,
    };
    (key, counts)
}

fn due(exporter: &mut NetflowExporter, at: u64) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    exporter.handle_timeout(Instant::from_secs(at), &mut datagrams);
    datagrams
}

fn handle_flows(exporter: &mut NetflowExporter, flows: &[Ipv4Flow], at: u64) -> Vec<Vec<u8>> {
    let mut datagrams = Vec::new();
    exporter.handle_flows(flows, Instant::from_secs(at), &mut datagrams);
    datagrams
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(*bytes[at..].first_chunk().expect("a word"))
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(*bytes[at..].first_chunk().expect("half a word"))
}

#[test]
fn netflow_record_has_documented_layout() {
    let mut exporter = exporter(None);
    assert_eq!(
        handle_flows(&mut exporter, &[flow(7, 5, [2, 4])], 4),
        [[0; 0]; 0]
    );
    assert_eq!(exporter.next_timeout(), Some(Instant::from_secs(19)));
    assert_eq!(due(&mut exporter, 18), [[0; 0]; 0]);
    let datagrams = due(&mut exporter, 19);
    let [datagram] = &datagrams[..] else {
        panic!("one: {datagrams:?}");
    };
    assert_eq!(datagram.len(), HEADER_LEN + RECORD_LEN);
    assert_eq!((half(datagram, 0), half(datagram, 2)), (5, 1));
    assert_eq!(word(datagram, 4), 19_000);
    assert_eq!(
        (word(datagram, 8), word(datagram, 12)),
        (1_000_019, 500_000_000)
    );
    assert_eq!(
        (word(datagram, 16), &datagram[20..24]),
        (0, &[3, 0x85, 0, 0][..])
    );
    let record = &datagram[HEADER_LEN..];
    assert_eq!(record[..12], [10, 0, 0, 1, 10, 0, 0, 2, 0, 0, 0, 0]);
    assert_eq!((half(record, 12), half(record, 14)), (1, 0xfffe));
    assert_eq!((word(record, 16), word(record, 20)), (5, 500));
    assert_eq!((word(record, 24), word(record, 28)), (2000, 4000));
    assert_eq!((half(record, 32), half(record, 34)), (7, 80));
    assert_eq!(record[36..], [0, 0x12, 6, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!((exporter.next_timeout(), exporter.flows.len()), (None, 0));
}

#[test]
fn netflow_datagrams_have_thirty_records_and_sequence_numbers() {
    let mut exporter = exporter(None);
    let flows: Vec<Ipv4Flow> = (0..70).map(|number| flow(number, 1, [1, 1])).collect();
    assert_eq!(handle_flows(&mut exporter, &flows, 1).len(), 0);
    let datagrams = due(&mut exporter, 16);
    let records: Vec<_> = datagrams
        .iter()
        .map(|it| (half(it, 2), word(it, 16)))
        .collect();
    assert_eq!(records, [(30, 0), (30, 30), (10, 60)]);
    assert_eq!(handle_flows(&mut exporter, &flows[..1], 20).len(), 0);
    assert_eq!(word(&due(&mut exporter, 40)[0], 16), 70);
}

#[test]
fn netflow_exports_at_active_and_inactive_timeouts() {
    let mut exporter = exporter(Some(20));
    for second in 1..=19 {
        assert_eq!(
            handle_flows(&mut exporter, &[flow(1, 1, [second; 2])], second).len(),
            0
        );
        assert_eq!(due(&mut exporter, second).len(), 0);
    }
    let datagrams = due(&mut exporter, 21);
    assert_eq!(word(&datagrams[0][HEADER_LEN..], 16), 19);
    // A flow without an active timeout continues indefinitely.
    let mut exporter = self::exporter(None);
    for second in (1..=1000).step_by(10) {
        assert_eq!(
            handle_flows(&mut exporter, &[flow(1, 1, [second; 2])], second).len(),
            0
        );
        assert_eq!(due(&mut exporter, second).len(), 0);
    }
    assert_eq!(word(&due(&mut exporter, 1010)[0][HEADER_LEN..], 16), 100);
    // New settings also apply to existing flows.
    assert_eq!(
        handle_flows(&mut exporter, &[flow(1, 1, [1020; 2])], 1020).len(),
        0
    );
    let settings = NetflowSettings {
        active: Some(Duration::from_secs(3)),
        engine: [0, 1],
        add_id_to_interface: true,
    };
    exporter.configure(settings);
    assert_eq!(exporter.next_timeout(), Some(Instant::from_secs(1023)));
}

#[test]
fn netflow_counts_beyond_32_bits_take_several_records() {
    let mut exporter = exporter(None);
    assert_eq!(
        handle_flows(&mut exporter, &[flow(1, 100_000_000, [1, 9])], 9).len(),
        0
    );
    let mut datagrams = Vec::new();
    exporter.flush(Instant::from_secs(9), &mut datagrams);
    let records: Vec<_> = datagrams[0][HEADER_LEN..].chunks(RECORD_LEN).collect();
    let sum = |at| {
        records
            .iter()
            .map(|record| u64::from(word(record, at)))
            .sum::<u64>()
    };
    assert_eq!(
        (records.len(), sum(16), sum(20)),
        (3, 100_000_000, 10_000_000_000)
    );
    assert_eq!(exporter.next_timeout(), None);
}

#[test]
fn netflow_interface_numbers_include_engine_id() {
    let mut exporter = exporter(None);
    exporter.settings.add_id_to_interface = true;
    let (mut key, counts) = flow(1, 1, [1, 1]);
    key.output = FlowOutput::Flood;
    let (input, output) = (5 << 9 | 1, 5 << 9 | 0x1ff);
    assert_eq!(handle_flows(&mut exporter, &[(key, counts)], 1).len(), 0);
    let records = &due(&mut exporter, 16)[0][HEADER_LEN..];
    assert_eq!((half(records, 12), half(records, 14)), (input, output));
}

#[test]
fn netflow_full_cache_exports_flow_that_is_due_first() {
    let mut exporter = exporter(None);
    let many: Vec<Ipv4Flow> = (0..=u16::MAX)
        .map(|number| flow(number, 1, [2, 2]))
        .collect();
    for protocol in 0..4 {
        let other = |(key, counts): &Ipv4Flow| (Ipv4FlowKey { protocol, ..*key }, *counts);
        let flows: Vec<Ipv4Flow> = many.iter().map(other).collect();
        assert_eq!(handle_flows(&mut exporter, &flows, 2).len(), 0);
    }
    assert_eq!(exporter.flows.len(), FLOWS_MAX);
    let early = flow(1, 1, [1, 1]);
    let records = handle_flows(&mut exporter, &[early], 2);
    assert_eq!(records[0][HEADER_LEN + 38], early.0.protocol);
    assert_eq!(exporter.flows.len(), FLOWS_MAX);
}
