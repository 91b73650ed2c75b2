//! Fragments over both versions of IP, and the comparison of the table with a list of units.

use std::ops::Range;

use proptest::prelude::*;

use super::*;
use crate::extract::sum;
use AddressFamily::{V4, V6};

const START: Instant = Instant::from_secs(100);
/// Length of fragments: the least that the settings of the tests permit.
const UNIT: usize = 400;

fn settings() -> IpfSettings {
    let family = IpfFamilySettings {
        is_enabled: true,
        len_min: UNIT,
    };
    IpfSettings {
        fragments_max: 100,
        v4: family,
        v6: family,
    }
}

fn table() -> FragmentTable<Vec<u8>> {
    FragmentTable::new(settings())
}

/// Returns the payload of packets of this length.
fn payload(len: usize) -> Vec<u8> {
    let bytes = (0..len).map(|at| u8::try_from(at % 251).expect("below 251"));
    bytes.collect()
}

/// Returns a packet of IPv4 with this identification, and these flags and offset.
fn ipv4_packet(id: u16, word: u16, payload: &[u8]) -> Vec<u8> {
    let total_len = u16::try_from(20 + payload.len()).expect("a short packet");
    let mut bytes = vec![0x45, 0];
    bytes.extend(total_len.to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend(word.to_be_bytes());
    bytes.extend([64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    let checksum = !u16::try_from(sum(&bytes, 0)).expect("a folded sum");
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns a packet of IPv6 with hop-by-hop options, and a fragment header with this identification
/// and offset.
fn ipv6_packet(fragment: Option<(u32, u16)>, payload: &[u8]) -> Vec<u8> {
    let header_len = if fragment.is_some() { 16 } else { 8 };
    let payload_len = u16::try_from(header_len + payload.len()).expect("a short packet");
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(payload_len.to_be_bytes());
    bytes.extend([0, 64]);
    bytes.extend([0xfd_u8; 16]);
    bytes.extend([0xfe_u8; 16]);
    let next = if fragment.is_some() { 44 } else { 17 };
    bytes.extend([next, 0, 1, 4, 0, 0, 0, 0]);
    if let Some((id, word)) = fragment {
        bytes.extend([17, 0]);
        bytes.extend(word.to_be_bytes());
        bytes.extend(id.to_be_bytes());
    }
    bytes.extend(payload);
    bytes
}

/// Returns a packet that is not fragmented.
fn whole(family: AddressFamily, id: u8, len: usize) -> Vec<u8> {
    match family {
        V4 => ipv4_packet(id.into(), 0, &payload(len)),
        V6 => ipv6_packet(None, &payload(len)),
    }
}

/// Returns a fragment with these bytes of the payload.
fn fragment(family: AddressFamily, id: u8, range: Range<usize>, is_last: bool) -> Vec<u8> {
    let start = u16::try_from(range.start).expect("a short packet");
    let payload = &payload(range.end)[range.start..];
    match family {
        V4 => {
            let more = if is_last { 0 } else { 0x2000 };
            ipv4_packet(id.into(), (start / 8) | more, payload)
        }
        V6 => ipv6_packet(Some((id.into(), start | u16::from(!is_last))), payload),
    }
}

fn handle(
    table: &mut FragmentTable<Vec<u8>>,
    family: AddressFamily,
    packet: &[u8],
    now: Instant,
) -> FragmentOutcome<Vec<u8>> {
    table.handle(
        packet.to_vec(),
        CtZone(3),
        family,
        ChecksumCheck::Verify,
        now,
    )
}

#[test]
fn fragments_are_released_in_the_order_of_their_arrival() {
    for family in [V4, V6] {
        let mut table = table();
        let fragments = [
            fragment(family, 1, 1_600..1_999, true),
            fragment(family, 1, 0..800, false),
            fragment(family, 1, 800..1_600, false),
        ];
        for packet in &fragments[..2] {
            let outcome = handle(&mut table, family, packet, START);
            assert_eq!(outcome, FragmentOutcome::Held);
        }
        assert_eq!(table.held(), 2);
        let outcome = handle(&mut table, family, &fragments[2], START);
        let complete = ReassembledPacket {
            bytes: whole(family, 1, 1_999),
            fragments: fragments.to_vec(),
            first: 1,
        };
        assert_eq!(outcome, FragmentOutcome::Complete(complete));
        assert_eq!((table.held(), table.deadline()), (0, None));
        let statistics = table.statistics(family);
        assert_eq!((statistics.accepted, statistics.completed), (3, 3));
    }
}

#[test]
fn fragments_of_other_packets_and_zones_are_apart() {
    let mut table = table();
    let (first, last) = (
        fragment(V4, 1, 0..UNIT, false),
        fragment(V4, 2, UNIT..500, true),
    );
    assert_eq!(handle(&mut table, V4, &first, START), FragmentOutcome::Held);
    assert_eq!(handle(&mut table, V4, &last, START), FragmentOutcome::Held);
    let last = fragment(V4, 1, UNIT..500, true);
    let outcome = table.handle(last, CtZone(4), V4, ChecksumCheck::Verify, START);
    assert_eq!(outcome, FragmentOutcome::Held);
    assert_eq!(table.held(), 3);
}

#[test]
fn fragments_of_other_owners_are_apart() {
    let mut table = table();
    let packets = [
        fragment(V4, 1, 0..UNIT, false),
        fragment(V4, 1, UNIT..500, true),
    ];
    for (owner, packet) in (1..).zip(packets) {
        let scope = FragmentScope {
            zone: CtZone(3),
            owner,
        };
        let outcome = table.handle(packet, scope, V4, ChecksumCheck::Verify, START);
        assert_eq!(outcome, FragmentOutcome::Held);
    }
    assert_eq!(table.held(), 2);
}

#[test]
fn expired_fragments_are_purged_without_a_poll() {
    let mut table = table();
    handle(&mut table, V4, &fragment(V4, 1, 0..UNIT, false), START);
    table.purge(START + TIMEOUT);
    assert_eq!(table.held(), 1, "another fragment may still poll it");
    table.purge(START + TIMEOUT + PURGE_DELAY);
    assert_eq!((table.held(), table.deadline()), (0, None));
    assert_eq!(table.statistics(V4).purged, 1);
}

#[test]
fn packets_that_are_no_fragments_are_not_held() {
    let mut table = table();
    for family in [V4, V6] {
        let packet = whole(family, 1, 100);
        let outcome = handle(&mut table, family, &packet, START);
        assert_eq!(outcome, FragmentOutcome::NotHeld(packet));
    }
    let mut off = settings();
    off.v4.is_enabled = false;
    table.set_settings(off);
    assert_eq!(table.settings(), &off);
    let packet = fragment(V4, 1, 0..UNIT, false);
    let outcome = handle(&mut table, V4, &packet, START);
    assert_eq!(outcome, FragmentOutcome::NotHeld(packet));
    let packet = fragment(V6, 1, 0..UNIT, false);
    let outcome = handle(&mut table, V6, &packet, START);
    assert_eq!(outcome, FragmentOutcome::Held);
}

#[test]
fn impossible_fragments_are_refused_by_name() {
    let mut table = table();
    let mut wrong = fragment(V4, 1, 0..UNIT, false);
    wrong[10] ^= 1;
    let first = fragment(V4, 1, UNIT..2 * UNIT, false);
    let outcome = handle(&mut table, V4, &first, START);
    assert_eq!(outcome, FragmentOutcome::Held);
    let last = fragment(V4, 1, 2 * UNIT..3 * UNIT, true);
    let outcome = handle(&mut table, V4, &last, START);
    assert_eq!(outcome, FragmentOutcome::Held);
    let too_long = ipv4_packet(1, 8_191, &payload(100));
    for (packet, refusal) in [
        (fragment(V4, 1, 0..200, false), FragmentRefusal::TooSmall),
        (
            fragment(V4, 1, 0..UNIT + 8, false),
            FragmentRefusal::Overlap,
        ),
        (first, FragmentRefusal::Overlap),
        (
            fragment(V4, 1, 0..UNIT + 1, false),
            FragmentRefusal::Malformed,
        ),
        (
            fragment(V4, 1, 1_200..1_600, false),
            FragmentRefusal::Malformed,
        ),
        (fragment(V4, 1, 200..UNIT, true), FragmentRefusal::Malformed),
        (ipv4_packet(1, 100, &[]), FragmentRefusal::Malformed),
        (wrong, FragmentRefusal::Malformed),
        (too_long, FragmentRefusal::Malformed),
    ] {
        let outcome = handle(&mut table, V4, &packet, START);
        assert_eq!(outcome, FragmentOutcome::Invalid(packet, refusal));
    }
    let statistics = table.statistics(V4);
    assert_eq!((statistics.too_small, statistics.overlapped), (1, 2));
    assert_eq!((statistics.malformed, statistics.accepted), (6, 2));
    assert_eq!(table.held(), 2);
}

#[test]
fn fragments_are_bounded_in_number() {
    let mut table = FragmentTable::new(IpfSettings {
        fragments_max: 2,
        ..settings()
    });
    for id in 1..=3 {
        let packet = fragment(V6, id, 0..UNIT, false);
        let outcome = handle(&mut table, V6, &packet, START);
        let expected = if id == 3 {
            FragmentOutcome::Invalid(packet, FragmentRefusal::Full)
        } else {
            FragmentOutcome::Held
        };
        assert_eq!(outcome, expected);
    }
    assert_eq!((table.held(), table.statistics(V6).full), (2, 1));
}

#[test]
fn fragments_of_one_packet_are_bounded_in_number() {
    let mut small = settings();
    (small.v4.len_min, small.fragments_max) = (0, 1_000);
    let mut table = FragmentTable::new(small);
    let mut refused = 0;
    for at in 1..=200 {
        let packet = fragment(V4, 1, at * 8..at * 8 + 8, false);
        let outcome = handle(&mut table, V4, &packet, START);
        refused += u32::from(outcome != FragmentOutcome::Held);
    }
    assert_eq!((refused, table.held()), (8, FRAGMENTS_OF_PACKET_MAX));
}

#[test]
fn fragments_expire_in_the_order_of_their_arrival() {
    let mut table = table();
    let packets = [
        fragment(V4, 1, UNIT..2 * UNIT, false),
        fragment(V4, 2, 0..UNIT, false),
        fragment(V4, 1, 0..UNIT, false),
    ];
    for (packet, seconds) in packets.iter().zip([0, 1, 2]) {
        let now = START + Duration::from_secs(seconds);
        assert_eq!(handle(&mut table, V4, packet, now), FragmentOutcome::Held);
    }
    assert_eq!(table.deadline(), Some(START + TIMEOUT));
    assert_eq!(table.poll_expired(START + Duration::from_secs(14)), None);
    let [first, second, third] = packets;
    let late = START + TIMEOUT;
    assert_eq!(table.poll_expired(late), Some(first));
    assert_eq!(table.deadline(), Some(Instant::START));
    assert_eq!(table.poll_expired(late), Some(third));
    assert_eq!(table.poll_expired(late), None);
    assert_eq!(table.held(), 1);

    // Nothing has polled for a long time.
    assert_eq!(table.poll_expired(late + PURGE_DELAY * 2), None);
    let statistics = table.statistics(V4);
    assert_eq!((statistics.expired, statistics.purged), (2, 1));
    assert_eq!((table.held(), table.deadline()), (0, None));
    assert_eq!(second.len(), 20 + UNIT);
}

#[test]
fn late_fragment_begins_another_packet() {
    let mut table = table();
    let (first, last) = (
        fragment(V4, 1, 0..UNIT, false),
        fragment(V4, 1, UNIT..500, true),
    );
    handle(&mut table, V4, &first, START);
    let outcome = handle(&mut table, V4, &last, START + TIMEOUT);
    assert_eq!(outcome, FragmentOutcome::Held);
    assert_eq!(table.poll_expired(START + TIMEOUT), Some(first));
    assert_eq!(table.held(), 1);
}

#[test]
fn fragment_settings_have_the_bounds_of_open_vswitch() {
    let default = IpfSettings::default();
    assert_eq!(default.check(), Ok(()));
    let many = IpfSettings {
        fragments_max: 5_001,
        ..default
    };
    assert_eq!(many.check(), Err(IpfSettingError::FragmentsMax));
    let mut small = default;
    small.v6.len_min = 399;
    assert_eq!(small.check(), Err(IpfSettingError::LenMin));
}

/// Fragments of a packet in the model: units of the payload that are present.
#[derive(Debug, Default)]
struct ModelFragments {
    packets: Vec<Vec<u8>>,
    units: [bool; 8],
    first: usize,
    end: Option<usize>,
}

impl ModelFragments {
    /// Handles a fragment with these units.
    fn handle(
        &mut self,
        packet: &[u8],
        units: Range<usize>,
        is_last: bool,
    ) -> Result<(), FragmentRefusal> {
        if self.units[units.clone()].contains(&true) {
            return Err(FragmentRefusal::Overlap);
        }
        let is_beyond_end = self.end.is_some_and(|end| units.end > end);
        let is_before_others = is_last && self.units[units.start..].contains(&true);
        if is_beyond_end || is_before_others {
            return Err(FragmentRefusal::Malformed);
        }
        if units.start == 0 {
            self.first = self.packets.len();
        }
        if is_last {
            self.end = Some(units.end);
        }
        self.units[units].fill(true);
        self.packets.push(packet.to_vec());
        Ok(())
    }

    /// Returns the length of the packet in units, if it is complete.
    fn complete_len(&self) -> Option<usize> {
        let end = self.end?;
        self.units[..end].iter().all(|unit| *unit).then_some(end)
    }
}

proptest! {
    #[test]
    fn fragment_table_agrees_with_a_list_of_units(
        steps in prop::collection::vec(
            (0_u8..2, 0_usize..6, 1_usize..3, prop::bool::weighted(0.3)),
            1..80,
        ),
        is_v6 in any::<bool>(),
    ) {
        let family = if is_v6 { V6 } else { V4 };
        let mut table = table();
        let mut models = [ModelFragments::default(), ModelFragments::default()];
        for (id, start, len, is_last) in steps {
            // The last fragment does not begin a packet: that would be no fragment.
            let is_last = is_last && start > 0;
            let units = start..start + len;
            let packet = fragment(family, id, units.start * UNIT..units.end * UNIT, is_last);
            let model = &mut models[usize::from(id)];
            let expected = match model.handle(&packet, units, is_last) {
                Err(refusal) => FragmentOutcome::Invalid(packet.clone(), refusal),
                Ok(()) => match model.complete_len() {
                    None => FragmentOutcome::Held,
                    Some(len) => {
                        let model = std::mem::take(model);
                        FragmentOutcome::Complete(ReassembledPacket {
                            bytes: whole(family, id, len * UNIT),
                            fragments: model.packets,
                            first: model.first,
                        })
                    }
                },
            };
            prop_assert_eq!(handle(&mut table, family, &packet, START), expected);
            let held: usize = models.iter().map(|model| model.packets.len()).sum();
            prop_assert_eq!(table.held(), held);
        }
    }
}
