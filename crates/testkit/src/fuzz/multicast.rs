//! Frames of group membership (IGMP, MLD) and of neighbour discovery, or any bytes, received by a
//! bridge that snoops. The table is bounded, and forgets everything in time.

use std::time::Duration;

use base::{Instant, PortNo};
use config::{SnoopingConfig, SwitchingConfig};
use l2::multicast_snooping::MulticastTable;
use packet::neighbour::NeighbourMessage;
use packet::{Frame, Link, MembershipMessage, Multicast};

/// The largest number of groups in the table.
const GROUPS_MAX: usize = 4;
/// The largest number of frames. More only cost time.
const FRAMES_MAX: usize = 64;
/// Seconds between two frames: some expire a membership.
const PAUSE: u64 = 40;
/// Longer than any membership lives.
const END: Duration = Duration::from_secs(3600);

/// Receives the frames in `data`. Each begins with a byte of options (the port) and its length.
///
/// # Panics
/// If an invariant of this module is violated.
pub fn multicast(data: &[u8]) {
    let snooping = SnoopingConfig {
        groups_max: GROUPS_MAX,
        ..SnoopingConfig::default()
    };
    let mut table = MulticastTable::new(&snooping, &SwitchingConfig::default());
    let (mut rest, mut now) = (data, Instant::START);
    for _ in 0..FRAMES_MAX {
        let Some(([options, len], tail)) = rest.split_first_chunk::<2>() else {
            break;
        };
        let (bytes, tail) = tail.split_at(usize::from(*len).min(tail.len()));
        rest = tail;
        now += Duration::from_secs(PAUSE);
        let _ = NeighbourMessage::parse(&Frame::from_bytes(bytes));
        let kind = Link::parse(bytes)
            .ok()
            .and_then(|link| Multicast::classify(bytes, &link));
        let message = MembershipMessage::parse(bytes);
        match message {
            None => {}
            Some(MembershipMessage::Query) => assert_eq!(kind, Some(Multicast::Query)),
            Some(MembershipMessage::Report(_)) => assert_eq!(kind, Some(Multicast::Report)),
        }
        if let Some(message) = message {
            let port = PortNo(u32::from(options % 4));
            table.handle_message((port, u16::from(options >> 6)), &message, now);
        }
        table.expire(now);
        let groups: std::collections::BTreeSet<_> =
            table.members(now).map(|(group, ..)| group).collect();
        assert!(groups.len() <= GROUPS_MAX, "{groups:?}");
    }
    table.expire(now + END);
    assert_eq!(table.members(now + END).count(), 0);
    assert_eq!(table.next_expiry(), None);
}
