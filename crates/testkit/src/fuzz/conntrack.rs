//! A sequence of packets through connection tracking: fragments, headers, helpers and translations.
//! No bytes cause a panic, no packet creates more than one connection, held fragments are bounded,
//! and a rewrite is within its payload.

use base::Instant;
use conntrack::{
    AddressFamily, AlgHelper, ChecksumCheck, Conntrack, CtAddress, CtCommit, CtMetadata, CtNat,
    CtPacket, CtRequest, CtState, CtZone, FragmentOutcome, FragmentTable, HashSeed,
    IpfFamilySettings, IpfSettings, NatRange, NatSide, SteadyNat, SteadyPacket, extract,
};

/// The largest number of packets. More only cost time.
const PACKETS_MAX: usize = 64;
/// Seconds between two packets: several of them expire a connection, and fragments.
const PAUSE: u64 = 5;
/// The largest number of fragments.
const FRAGMENTS_MAX: usize = 8;

/// Tracks the packets in `data`. Each begins with a byte of options and its length.
///
/// # Panics
/// If an invariant of this module is violated.
pub fn conntrack(data: &[u8]) {
    let tracker = Conntrack::new(HashSeed([1, 2]), 16);
    let mut fragments = FragmentTable::new(settings());
    let mut rest = data;
    for number in 1..=PACKETS_MAX {
        let Some(([options, len], tail)) = rest.split_first_chunk::<2>() else {
            break;
        };
        let (bytes, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        let now = Instant::from_secs(number as u64 * PAUSE);
        let (zone, family) = (CtZone::default(), family(*options));
        match fragments.handle(bytes.to_vec(), zone, family, ChecksumCheck::Skip, now) {
            FragmentOutcome::NotHeld(bytes) | FragmentOutcome::Invalid(bytes, _) => {
                track(&tracker, *options, &bytes, now);
            }
            FragmentOutcome::Held => {}
            FragmentOutcome::Complete(packet) => {
                assert!(packet.first < packet.fragments.len(), "{packet:?}");
                track(&tracker, *options, &packet.bytes, now);
            }
        }
        assert!(fragments.held() <= FRAGMENTS_MAX, "fragments are bounded");
        while fragments.poll_expired(now).is_some() {}
        tracker.expire(now, 4);
        assert!(tracker.len() as usize <= number.min(16), "one per packet");
    }
    tracker.flush(Instant::START, |_| true);
    assert!(tracker.is_empty(), "each connection is counted once");
}

fn settings() -> IpfSettings {
    let family = IpfFamilySettings {
        is_enabled: true,
        len_min: 0,
    };
    IpfSettings {
        fragments_max: FRAGMENTS_MAX,
        v4: family,
        v6: family,
    }
}

fn family(options: u8) -> AddressFamily {
    match options & 1 {
        0 => AddressFamily::V4,
        _ => AddressFamily::V6,
    }
}

fn track(tracker: &Conntrack, options: u8, bytes: &[u8], now: Instant) {
    let extracted = extract(bytes, family(options), ChecksumCheck::Skip);
    let payload = extracted.map_or(&[] as &[u8], |extracted| extracted.payload);
    let packet = CtPacket {
        facts: extracted.ok().map(|extracted| extracted.facts),
        payload,
        metadata: CtMetadata::default(),
    };
    let packet_of = (bytes, family(options));
    let lookup = tracker.begin_steady(packet_of, CtZone::default(), CtState::NONE);
    if let Some(mut lookup) = lookup {
        assert!(extracted.is_ok(), "plain packets have facts");
        let is_found = tracker.find_steady(&mut lookup).is_some();
        let settings = (ChecksumCheck::Skip, SteadyNat::Apply);
        let mut fields = SteadyPacket::NONE;
        let is_steady = tracker.track_steady(&lookup, settings, now, &mut fields);
        assert!(is_found || !is_steady);
    }
    let outcome = tracker.track(&packet, &request(options), now);
    let state = outcome.metadata.state;
    assert!(state.contains(CtState::TRACKED), "{state:?}");
    assert!(packet.facts.is_some() || state.contains(CtState::INVALID));
    if let Some(rewrite) = outcome.rewrite {
        assert!(rewrite.range.end <= payload.len(), "{rewrite:?}");
    }
}

fn request(options: u8) -> CtRequest {
    let range = |side| {
        let address = CtAddress::from_bits(0xc000_0201);
        Some(CtNat::New(NatRange::to_address(side, address)))
    };
    CtRequest {
        commit: match options >> 1 & 3 {
            0 => CtCommit::No,
            1 => CtCommit::Force,
            _ => CtCommit::Commit,
        },
        nat: match options >> 3 & 3 {
            0 => None,
            1 => Some(CtNat::Existing),
            2 => range(NatSide::Source),
            _ => range(NatSide::Destination),
        },
        helper: match options >> 5 & 3 {
            1 => Some(AlgHelper::Ftp),
            2 => Some(AlgHelper::Tftp),
            _ => None,
        },
        ..CtRequest::default()
    }
}
