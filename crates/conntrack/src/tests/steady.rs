//! Packets of a steady state have the outcome of [`Conntrack::track`].

use super::*;
use crate::extract::{ChecksumCheck, extract, sum};
use crate::key::AddressFamily;
use crate::steady::KeyWords;
use crate::steady_lookup::{SteadyNat, SteadyPacket};
use crate::{ConnectionWrites, SteadyLookup};
use packet::PlainEnds;
use packet::wire::tcp::URG;

/// A segment or datagram between two hosts.
#[derive(Clone, Copy, Debug)]
struct TestPacket {
    is_tcp: bool,
    is_reply: bool,
    flags: u16,
    /// Distance of the sequence and acknowledgment numbers from the first ones.
    numbers: [u32; 2],
    payload_len: u8,
    is_damaged: bool,
    /// True if the client has the address 10.0.0.9.
    is_translated: bool,
}

impl TestPacket {
    fn bytes(&self) -> Vec<u8> {
        let [mut src, mut dst] = [([10, 0, 0, 1], 1000_u16), ([10, 0, 0, 2], 80)];
        if self.is_translated {
            src.0[3] = 9;
        }
        if self.is_reply {
            (src, dst) = (dst, src);
        }
        let [sequence, acknowledgment] = self.numbers.map(|number| (7000 + number).to_be_bytes());
        let mut upper = [src.1.to_be_bytes(), dst.1.to_be_bytes()].concat();
        let (protocol, checksum_at) = if self.is_tcp {
            let flags = (0x5000 | self.flags).to_be_bytes();
            upper.extend([&sequence[..], &acknowledgment, &flags, &[4, 0, 0, 0, 0, 0]].concat());
            (6, 16)
        } else {
            upper.extend([0, 8 + self.payload_len, 0, 0]);
            (17, 6)
        };
        upper.extend((0..self.payload_len).map(|at| at ^ 0x5a));
        let ends = [src.0, dst.0].concat();
        let len = u32::try_from(upper.len()).expect("short");
        write_checksum(&mut upper, checksum_at, sum(&ends, protocol + len));
        let total = u16::try_from(20 + len).expect("short").to_be_bytes();
        let protocol = u8::try_from(protocol).expect("a protocol");
        let mut header = [
            &[0x45, 0],
            &total[..],
            &[0, 0, 0, 0, 64, protocol, 0, 0],
            &ends,
        ]
        .concat();
        write_checksum(&mut header, 10, 0);
        header.extend(upper);
        if self.is_damaged {
            header[19] ^= 0x10;
            header[11] ^= 0x20;
        }
        header
    }
}

fn write_checksum(bytes: &mut [u8], at: usize, start: u32) {
    let total = u16::try_from(sum(bytes, start)).expect("a folded sum");
    bytes[at..at + 2].copy_from_slice(&(!total).to_be_bytes());
}

fn packet(is_tcp: bool, is_reply: bool, flags: u16) -> TestPacket {
    TestPacket {
        is_tcp,
        is_reply,
        flags,
        numbers: [u32::from(flags & SYN == 0); 2],
        payload_len: 0,
        is_damaged: false,
        is_translated: false,
    }
}

fn track(tracker: &Conntrack, bytes: &[u8], request: &CtRequest, now: Instant) -> CtOutcome {
    let extracted = extract(bytes, AddressFamily::V4, ChecksumCheck::Verify).ok();
    let packet = CtPacket {
        facts: extracted.map(|extracted| extracted.facts),
        payload: extracted.map_or(&[], |extracted| extracted.payload),
        metadata: CtMetadata::default(),
    };
    tracker.track(&packet, request, now)
}

/// Begins the lookup of a packet over IPv4 in the default zone.
fn begin_steady<'a>(
    tracker: &Conntrack,
    bytes: &'a [u8],
    translated: CtState,
) -> Option<SteadyLookup<'a>> {
    tracker.begin_steady((bytes, AddressFamily::V4), CtZone(0), translated)
}

/// Returns the fields that `track` writes, if it tracks the packet.
fn fields_if(track: impl FnOnce(&mut SteadyPacket) -> bool) -> Option<SteadyPacket> {
    let mut fields = SteadyPacket::NONE;
    track(&mut fields).then_some(fields)
}

fn track_steady(tracker: &Conntrack, bytes: &[u8], now: Instant) -> Option<SteadyPacket> {
    track_steady_again(tracker, bytes, CtState::NONE, now)
}

/// Tracks a packet with the flags of an earlier translation.
fn track_steady_again(
    tracker: &Conntrack,
    bytes: &[u8],
    translated: CtState,
    now: Instant,
) -> Option<SteadyPacket> {
    let mut lookup = begin_steady(tracker, bytes, translated)?;
    tracker.find_steady(&mut lookup)?;
    let settings = (ChecksumCheck::Verify, SteadyNat::Apply);
    fields_if(|fields| tracker.track_steady(&lookup, settings, now, fields))
}

/// Commits the connection of a packet that has none.
fn track_new(
    tracker: &Conntrack,
    bytes: &[u8],
    writes: &ConnectionWrites,
    now: Instant,
) -> Option<SteadyPacket> {
    let mut lookup = begin_steady(tracker, bytes, CtState::NONE)?;
    tracker.begin_absent(&mut lookup);
    tracker.prefetch_head(&lookup);
    tracker.prefetch_link(&lookup);
    let new = fields_if(|fields| tracker.track_absent(&lookup, ChecksumCheck::Verify, fields));
    let is_committed = tracker.commit_absent(&lookup, ChecksumCheck::Verify, writes, now);
    assert_eq!(new.is_some(), is_committed);
    new
}

/// Tracks a packet of a connection that its shard has.
fn track_changing(tracker: &Conntrack, bytes: &[u8], now: Instant) -> Option<SteadyPacket> {
    let mut lookup = begin_steady(tracker, bytes, CtState::NONE)?;
    tracker.begin_absent(&mut lookup);
    fields_if(|fields| tracker.track_changing(&lookup, ChecksumCheck::Verify, now, fields))
}

/// Tracks a packet as the compiled path does. Returns the metadata, and whether the packet was one of
/// a steady state.
fn track_either(
    tracker: &Conntrack,
    bytes: &[u8],
    request: &CtRequest,
    now: Instant,
) -> (CtMetadata, bool) {
    let writes = request.writes();
    let steady = match (request.commit, writes == ConnectionWrites::NONE) {
        (CtCommit::Force, _) => None,
        (_, true) => {
            let steady = track_steady(tracker, bytes, now);
            let steady = steady.or_else(|| track_new(tracker, bytes, &writes, now));
            steady.or_else(|| track_changing(tracker, bytes, now))
        }
        (_, false) => {
            // The packet continues without the fields of its connection.
            track_new(tracker, bytes, &writes, now).map(|new| SteadyPacket {
                mark: writes.mark.map_or(0, |write| write.apply(0)),
                label: writes.label.map_or(0, |write| write.apply(0)),
                ..new
            })
        }
    };
    let Some(steady) = steady else {
        return (track(tracker, bytes, request, now).metadata, false);
    };
    let facts = extract(bytes, AddressFamily::V4, ChecksumCheck::Verify).expect("it is valid");
    let key = facts.facts.tuple.in_zone(steady.zone);
    let words = KeyWords::of(&key).expect("TCP or UDP");
    let is_original = words.addresses == steady.addresses && words.ports() == steady.ports;
    let metadata = CtMetadata {
        state: steady.state,
        zone: steady.zone,
        mark: steady.mark,
        label: steady.label,
        original: Some(if is_original { key } else { key.reversed() }),
    };
    (metadata, true)
}

fn handshake() -> [TestPacket; 3] {
    [
        packet(true, false, SYN),
        TestPacket {
            numbers: [0, 1],
            ..packet(true, true, SYN | ACK)
        },
        packet(true, false, ACK),
    ]
}

fn packets() -> impl Strategy<Value = TestPacket> {
    const FLAGS: [u16; 9] = [
        ACK,
        ACK,
        ACK,
        ACK | PSH,
        ACK | PSH,
        ACK | FIN,
        RST,
        SYN,
        URG,
    ];
    const NUMBERS: [u32; 9] = [0, 1, 1, 5, 20, 300, 1200, 5000, 90_000];
    (
        (
            any::<bool>(),
            any::<bool>(),
            prop::sample::select(&FLAGS[..]),
        ),
        [
            prop::sample::select(&NUMBERS[..]),
            prop::sample::select(&NUMBERS[..]),
        ],
        (0_u8..100, prop::bool::weighted(0.05)),
    )
        .prop_map(
            |((is_tcp, is_reply, flags), numbers, (payload_len, is_damaged))| TestPacket {
                is_tcp,
                is_reply,
                flags,
                numbers,
                payload_len,
                is_damaged,
                is_translated: false,
            },
        )
}

proptest! {
    #[test]
    fn steady_packets_have_the_outcome_of_the_tracker(
        steps in prop::collection::vec(
            (packets(), 0_u64..40, prop::sample::select(&[0_u64, 0, 100, 3000, 31_000][..])),
            1..60,
        ),
    ) {
        let [plain, steady] = [tracker(), tracker()];
        let mut now = START;
        let begin = handshake().map(|packet| (packet, 0, 0));
        for (packet, choice, pause) in begin.into_iter().chain(steps) {
            now += Duration::from_millis(pause);
            let mut request = commit();
            match choice {
                36 => request.commit = CtCommit::Force,
                37 => request.mark = Some(MaskedWrite { value: 5, mask: 7 }),
                38 => request.label = Some(MaskedWrite { value: 3 << 80, mask: 7 << 80 }),
                39 => { prop_assert_eq!(plain.flush_all(), steady.flush_all()); }
                _ => {}
            }
            let bytes = packet.bytes();
            let expected = track(&plain, &bytes, &request, now).metadata;
            let actual = track_either(&steady, &bytes, &request, now).0;
            prop_assert_eq!(actual, expected, "{:?}", packet);
            prop_assert_eq!(steady.connections(now), plain.connections(now));
            plain.expire(now, 100);
            steady.expire(now, 100);
        }
    }
}

#[test]
fn new_packets_are_left_to_the_tracker_at_a_limit() {
    let tracker = tracker();
    let [first, mut second] = [packet(false, false, 0), packet(false, false, 0)];
    second.is_translated = true;
    tracker.set_connections_max(1);
    assert!(track_new(&tracker, &first.bytes(), &ConnectionWrites::NONE, START).is_some());
    assert_eq!(
        (tracker.len(), tracker.counter(CtCounter::Committed)),
        (1, 1)
    );
    let bytes = second.bytes();
    let lookup = begin_steady(&tracker, &bytes, CtState::NONE).expect("plain");
    assert!(!tracker.commit_absent(
        &lookup,
        ChecksumCheck::Verify,
        &ConnectionWrites::NONE,
        START
    ));
    assert_eq!(tracker.len(), 1);
    tracker.set_connections_max(2);
    assert!(tracker.commit_absent(
        &lookup,
        ChecksumCheck::Verify,
        &ConnectionWrites::NONE,
        START
    ));
    assert!(
        track_new(&tracker, &bytes, &ConnectionWrites::NONE, START).is_none(),
        "it exists"
    );
}

#[test]
fn established_connections_are_in_a_steady_state() {
    let tracker = tracker();
    let handshake = handshake().map(|packet| packet.bytes());
    for bytes in &handshake {
        assert_eq!(track_steady(&tracker, bytes, START), None);
        track(&tracker, bytes, &commit(), START);
    }
    let data = TestPacket {
        payload_len: 9,
        ..packet(true, false, ACK | PSH)
    };
    let read = track_steady(&tracker, &data.bytes(), START).expect("it is established");
    assert_eq!(read.state, CtState::ESTABLISHED.with(CtState::TRACKED));
    let reset = packet(true, true, RST).bytes();
    assert_eq!(track_steady(&tracker, &reset, START), None);
    track(&tracker, &reset, &commit(), START);
    assert_eq!(track_steady(&tracker, &data.bytes(), START), None);
}

/// Removes all connections that have expired.
fn expire_all(tracker: &Conntrack, now: Instant) {
    for _ in 0..64 {
        tracker.expire(now, 10);
    }
}

#[test]
fn steady_packets_prolong_their_connection() {
    let tracker = tracker();
    let [request, reply] = [false, true].map(|is_reply| packet(false, is_reply, 0).bytes());
    let mut now = START;
    track(&tracker, &request, &commit(), now);
    track(&tracker, &reply, &commit(), now);
    for _ in 0..10 {
        now += Duration::from_secs(20);
        assert!(track_steady(&tracker, &request, now).is_some());
        expire_all(&tracker, now);
    }
    assert_eq!(tracker.connections(now)[0].timeout, Duration::from_secs(30));
    let late = now + Duration::from_secs(31);
    assert_eq!(track_steady(&tracker, &request, late), None);
    expire_all(&tracker, late);
    assert!(tracker.is_empty());
    assert_eq!(track_steady(&tracker, &request, now), None);
}

/// Addresses and ports that the tracker gives a packet.
fn ends_of(outcome: &CtOutcome) -> Option<PlainEnds> {
    let header = outcome.translation?.header;
    let words = KeyWords::of(&header)?;
    Some(PlainEnds {
        addresses: words.addresses[0],
        ports: words.ports(),
    })
}

/// Tracks packets of a translated connection again, as the first `ct` has left them.
fn compare_packets_that_are_translated(tracker: &Conntrack, nat: &CtRequest) {
    let mut translated = packet(false, false, 0);
    translated.is_translated = true;
    for (mut packet, flag) in [
        (translated, CtState::SOURCE_NAT),
        (packet(false, true, 0), CtState::DESTINATION_NAT),
    ] {
        packet.payload_len = 3;
        let bytes = packet.bytes();
        let read = track_steady_again(tracker, &bytes, flag, START).expect("its connection");
        let facts = extract(&bytes, AddressFamily::V4, ChecksumCheck::Verify).expect("valid");
        let again = CtPacket {
            facts: Some(facts.facts),
            payload: &[],
            metadata: CtMetadata {
                state: flag,
                ..CtMetadata::default()
            },
        };
        let expected = tracker.track(&again, nat, START);
        assert_eq!(
            (read.state, read.translation),
            (expected.metadata.state, None)
        );
        assert_eq!(expected.translation, None);
        assert!(read.state.contains(CtState::ESTABLISHED.with(flag)));
        assert_eq!(
            read.state.contains(CtState::REPLY),
            flag == CtState::DESTINATION_NAT
        );
    }
}

#[test]
fn steady_packets_are_translated_as_their_connection_is() {
    let tracker = tracker();
    let to = |host: u8| {
        CtNat::New(NatRange::to_address(
            NatSide::Source,
            endpoint(host, 0).address,
        ))
    };
    let nat = CtRequest {
        nat: Some(to(9)),
        ..commit()
    };
    let request = packet(false, false, 0).bytes();
    let first = track(&tracker, &request, &nat, START);
    let mut reply = packet(false, true, 0);
    reply.is_translated = true;
    let reply = reply.bytes();
    assert_eq!(track_steady(&tracker, &reply, START), None);
    let expected = track(&tracker, &reply, &nat, START);
    let read = track_steady(&tracker, &reply, START).expect("packets of both directions");
    assert_eq!(
        (read.translation, read.state),
        (ends_of(&expected), expected.metadata.state)
    );
    assert!(read.state.contains(CtState::DESTINATION_NAT));
    let read = track_steady(&tracker, &request, START).expect("packets of both directions");
    assert_eq!(read.translation, ends_of(&first));
    let expected = track(&tracker, &request, &nat, START).metadata;
    assert_eq!(read.state, expected.state);
    compare_packets_that_are_translated(&tracker, &nat);
    assert_eq!(tracker.flush_all(), 1);
    assert_eq!(track_steady(&tracker, &reply, START), None);
    assert_eq!(track_steady(&tracker, &request, START), None);
}
