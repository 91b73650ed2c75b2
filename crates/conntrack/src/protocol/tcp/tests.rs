//! Segments of single connections, and conversations of correct ends.

use proptest::prelude::*;

use super::*;
use TrafficDirection::{Original, Reply};

fn segment(flags: u16, sequence: u32, acknowledgment: u32, payload_len: u32) -> TcpFacts {
    TcpFacts {
        flags,
        sequence,
        acknowledgment,
        window: 1000,
        window_scale: None,
        payload_len,
    }
}

fn apply(
    connection: &mut TcpConnection,
    direction: TrafficDirection,
    segment: &TcpFacts,
) -> PacketEffect {
    connection.apply(segment, direction, SequenceCheck::Strict)
}

/// A connection after its handshake: the ends begin at 100 and 500.
fn established() -> TcpConnection {
    let mut connection = TcpConnection::begin(&segment(SYN, 100, 0, 0)).expect("SYN");
    let opening = PacketEffect::Established(CtTimeout::TcpSynReceived);
    let syn_ack = segment(SYN | ACK, 500, 101, 0);
    assert_eq!(apply(&mut connection, Reply, &syn_ack), opening);
    assert!(connection.is_embryonic());
    let done = PacketEffect::Established(CtTimeout::TcpEstablished);
    let ack = segment(ACK, 101, 501, 0);
    assert_eq!(apply(&mut connection, Original, &ack), done);
    assert!(!connection.is_embryonic());
    connection
}

fn states(connection: &TcpConnection) -> [TcpEndState; 2] {
    connection.ends.map(|end| end.state)
}

#[test]
fn tcp_connection_opens_and_closes() {
    let mut connection = established();
    let effects = [
        (
            Original,
            segment(ACK | PSH, 101, 501, 50),
            CtTimeout::TcpEstablished,
        ),
        (Reply, segment(ACK, 501, 151, 0), CtTimeout::TcpEstablished),
        (
            Original,
            segment(ACK | FIN, 151, 501, 0),
            CtTimeout::TcpFinWait,
        ),
        (
            Reply,
            segment(ACK | FIN, 501, 152, 0),
            CtTimeout::TcpTimeWait,
        ),
        (Original, segment(ACK, 152, 502, 0), CtTimeout::TcpClose),
    ];
    for (direction, segment, timeout) in effects {
        let effect = apply(&mut connection, direction, &segment);
        assert_eq!(effect, PacketEffect::Established(timeout));
    }
    assert_eq!(states(&connection), [TcpEndState::FinWait2; 2]);
    let syn = segment(SYN, 9_000, 0, 0);
    assert_eq!(
        apply(&mut connection, Original, &syn),
        PacketEffect::Restart
    );
}

#[test]
fn tcp_segments_out_of_window_are_invalid() {
    for (direction, segment) in [
        (Original, segment(ACK, 101, 501, 5_000)),
        (Original, segment(ACK, 500_000, 501, 10)),
        (Reply, segment(ACK, 501, 200_000, 10)),
        (Reply, segment(RST, 700, 0, 0)),
        (Original, segment(SYN | FIN, 101, 0, 0)),
        (Original, segment(FIN, 101, 0, 0)),
        (Original, segment(0, 101, 0, 10)),
    ] {
        let mut connection = established();
        let before = connection;
        let effect = apply(&mut connection, direction, &segment);
        assert_eq!(effect, PacketEffect::Invalid, "{segment:?}");
        assert_eq!(connection, before);
    }
}

#[test]
fn tcp_segments_out_of_window_are_legal_without_sequence_check() {
    let mut connection = established();
    let far = segment(ACK, 500_000, 900_000, 10);
    let effect = connection.apply(&far, Original, SequenceCheck::Off);
    assert_eq!(effect, PacketEffect::Established(CtTimeout::TcpEstablished));
    let flags = segment(SYN | RST, 101, 0, 0);
    let effect = connection.apply(&flags, Original, SequenceCheck::Off);
    assert_eq!(effect, PacketEffect::Invalid);
}

#[test]
fn tcp_reset_needs_an_exact_sequence_number() {
    let mut connection = established();
    let reset = segment(RST, 501, 0, 0);
    let effect = apply(&mut connection, Reply, &reset);
    assert_eq!(effect, PacketEffect::Established(CtTimeout::TcpClose));
    assert_eq!(states(&connection), [TcpEndState::TimeWait; 2]);
}

#[test]
fn tcp_connection_opens_from_both_ends() {
    let mut connection = TcpConnection::begin(&segment(SYN, 100, 0, 0)).expect("SYN");
    let still_new = PacketEffect::StillNew(CtTimeout::TcpSynSent);
    assert_eq!(
        apply(&mut connection, Reply, &segment(SYN, 500, 0, 0)),
        still_new
    );
    apply(&mut connection, Original, &segment(SYN | ACK, 100, 501, 0));
    let effect = apply(&mut connection, Reply, &segment(SYN | ACK, 500, 101, 0));
    assert_eq!(effect, PacketEffect::Established(CtTimeout::TcpEstablished));
}

#[test]
fn tcp_syn_with_another_number_replaces_the_first() {
    let mut connection = TcpConnection::begin(&segment(SYN, 900_000, 0, 0)).expect("SYN");
    apply(&mut connection, Original, &segment(SYN, 100, 0, 0));
    apply(&mut connection, Reply, &segment(SYN | ACK, 500, 101, 0));
    let effect = apply(&mut connection, Original, &segment(ACK, 101, 501, 0));
    assert_eq!(effect, PacketEffect::Established(CtTimeout::TcpEstablished));
}

#[test]
fn tcp_answer_begins_no_connection() {
    assert_eq!(TcpConnection::begin(&segment(SYN | ACK, 1, 1, 0)), None);
    let older = TcpConnection::begin(&segment(ACK, 1, 1, 10)).expect("an older connection");
    assert!(older.ends[0].is_liberal());
    assert_eq!(older.ends[0].window_scale(), None);
}

/// An end of a simulated connection that keeps to RFC 9293.
struct SimulatedTcpEnd {
    /// Sequence number of the next new octet, and of the oldest that is not acknowledged.
    next: u32,
    unacknowledged: u32,
    /// Next octet expected from the other end.
    expected: u32,
    /// Sequence number up to which the other end permits to send.
    limit: u32,
}

const SHIFT: u8 = 3;
const WINDOW: u16 = 4_000;

impl SimulatedTcpEnd {
    fn segment(&self, sequence: u32, payload_len: u32) -> TcpFacts {
        TcpFacts {
            flags: ACK,
            sequence,
            acknowledgment: self.expected,
            window: WINDOW,
            window_scale: None,
            payload_len,
        }
    }

    fn receive(&mut self, segment: &TcpFacts) {
        if segment.sequence == self.expected {
            self.expected = self.expected.wrapping_add(segment.payload_len);
        }
        let permitted = segment
            .acknowledgment
            .wrapping_add(u32::from(WINDOW) << SHIFT);
        if is_before(self.limit, permitted) {
            self.limit = permitted;
        }
        if is_before(self.unacknowledged, segment.acknowledgment) {
            self.unacknowledged = segment.acknowledgment;
        }
    }
}

proptest! {
    /// Two correct ends exchange data over a path with loss, duplicates and reordering on both
    /// sides of the switch: no segment is invalid.
    #[test]
    fn tcp_segments_of_correct_ends_are_never_invalid(
        numbers in any::<[u32; 2]>(),
        steps in prop::collection::vec((any::<bool>(), 0_u8..4, 1_u32..1_400, 0_u8..4), 1..300),
    ) {
        let [client, server] = numbers;
        let with_scale = |segment: TcpFacts| TcpFacts {
            window_scale: Some(SHIFT),
            window: WINDOW,
            ..segment
        };
        let syn = with_scale(segment(SYN, client, 0, 0));
        let mut connection = TcpConnection::begin(&syn).expect("SYN");
        let (c, s) = (client.wrapping_add(1), server.wrapping_add(1));
        apply(&mut connection, Reply, &with_scale(segment(SYN | ACK, server, c, 0)));
        let peer = |next: u32, expected| SimulatedTcpEnd {
            next,
            unacknowledged: next,
            expected,
            limit: next.wrapping_add(u32::from(WINDOW)),
        };
        let mut peers = [peer(c, s), peer(s, c)];
        let mut kept: Option<(TrafficDirection, TcpFacts)> = None;
        let handshake = peers[0].segment(c, 0);
        apply(&mut connection, Original, &handshake);
        for (is_client, kind, len, fate) in steps {
            let direction = if is_client { Original } else { Reply };
            let peer = &mut peers[usize::from(!is_client)];
            let room = peer.limit.wrapping_sub(peer.next);
            let segment = match kind {
                0 => peer.segment(peer.next, 0),
                1 if peer.unacknowledged != peer.next => {
                    let sent = peer.next.wrapping_sub(peer.unacknowledged);
                    peer.segment(peer.unacknowledged, len.min(sent))
                }
                _ if len <= room => {
                    let segment = peer.segment(peer.next, len);
                    peer.next = peer.next.wrapping_add(len);
                    segment
                }
                _ => peer.segment(peer.next, 0),
            };
            // Fate 0: lost before the switch. 1: lost after it. 2: delayed before the switch.
            match fate {
                0 => continue,
                2 if kept.is_none() => {
                    kept = Some((direction, segment));
                    continue;
                }
                _ => {}
            }
            let late = kept.take().filter(|_| fate == 3);
            for (direction, segment) in std::iter::once((direction, segment)).chain(late) {
                let effect = apply(&mut connection, direction, &segment);
                prop_assert_ne!(effect, PacketEffect::Invalid, "{:?} {:?}", direction, segment);
                let receiver = usize::from(direction == Original);
                if fate != 1 {
                    peers[receiver].receive(&segment);
                }
            }
        }
    }
}
