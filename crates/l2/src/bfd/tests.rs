//! Tests of two sessions at the two ends of a path, on simulated time.

use std::time::Duration;

use base::Instant;
use packet::MacAddr;
use packet::wire::bfd::{BfdControl, BfdDatagram, BfdDiagnostic, BfdFlags, BfdState};
use proptest::prelude::*;

use super::*;

const OWN: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

fn identity(number: u32) -> BfdIdentity {
    BfdIdentity {
        discriminator: number,
        udp_src: 49152,
        seed: number.into(),
    }
}

fn config(min_tx: u64, min_rx: u64) -> BfdConfig {
    BfdConfig {
        min_tx: millis(min_tx),
        min_rx: millis(min_rx),
        ..BfdConfig::default()
    }
}

/// Two sessions, and the path between them.
struct BfdPair {
    ends: [BfdSession; 2],
    /// True for each direction that loses its packets, by sender.
    cut: [bool; 2],
    /// Frames that each end has received.
    received: [u64; 2],
    now: Instant,
}

impl BfdPair {
    fn new(configs: [BfdConfig; 2]) -> Self {
        let now = Instant::from_secs(10);
        let [one, two] = configs;
        Self {
            ends: [
                BfdSession::new(&one, identity(1), 0, now),
                BfdSession::new(&two, identity(2), 0, now),
            ],
            cut: [false; 2],
            received: [0; 2],
            now,
        }
    }

    /// Advances the time in steps of 50 ms. Returns the number of control packets of each end.
    fn run(&mut self, time: Duration) -> [usize; 2] {
        let (until, mut sent) = (self.now + time, [0; 2]);
        while self.now < until {
            self.now += millis(50);
            for from in [0, 1, 0] {
                while let Some(frame) = self.ends[from].poll_transmit(OWN, self.now) {
                    sent[from] += 1;
                    if !self.cut[from] {
                        self.deliver(1 - from, frame.bytes());
                    }
                }
            }
            for (end, received) in self.ends.iter_mut().zip(self.received) {
                end.handle_timeout(received, self.now);
            }
        }
        sent
    }

    fn deliver(&mut self, to: usize, frame: &[u8]) {
        let datagram = BfdDatagram::find(frame).expect("a control packet");
        self.received[to] += 1;
        let packet = (datagram.payload, datagram.ttl);
        self.ends[to]
            .handle_packet(packet, self.received[to], self.now)
            .expect("the packet is of this session");
    }

    fn states(&self) -> [BfdState; 2] {
        [0, 1].map(|end| self.ends[end].status().local.state)
    }

    fn forwards(&self) -> [bool; 2] {
        [0, 1].map(|end| self.ends[end].is_forwarding())
    }
}

#[test]
fn bfd_session_is_up_within_three_seconds_and_sends_at_the_slower_interval() {
    let mut path = BfdPair::new([config(100, 1000), config(100, 300)]);
    path.run(millis(3000));
    assert_eq!(path.states(), [BfdState::Up; 2]);
    assert_eq!(path.forwards(), [true; 2]);
    path.run(millis(1000));
    let [one, two] = path.run(millis(10_000));
    // 300 ms less 0 to 25 %, in steps of 50 ms, and 1000 ms less 0 to 25 %.
    assert!((30..=45).contains(&one), "{one}");
    assert!((9..=14).contains(&two), "{two}");
    let status = path.ends[0].status();
    assert_eq!(
        (status.tx_interval, status.rx_interval),
        (millis(300), millis(1000))
    );
    assert_eq!(status.flaps, 1);
    assert_eq!(status.local.flags, BfdFlags::default());
}

#[test]
fn bfd_session_that_becomes_up_sends_at_its_interval_at_once() {
    let mut path = BfdPair::new([config(500, 500), config(500, 500)]);
    for _ in 0..100 {
        path.run(millis(50));
        for end in &path.ends {
            let status = end.status();
            if let (BfdState::Up, Some(last), Some(next)) =
                (status.local.state, status.last_tx, status.next_tx)
            {
                assert!(next - last <= millis(500));
            }
        }
    }
    assert_eq!(path.states(), [BfdState::Up; 2]);
}

#[test]
fn bfd_session_detects_loss_in_both_or_one_direction() {
    let mut path = BfdPair::new([config(100, 100), config(100, 100)]);
    path.run(millis(4000));
    path.cut = [true; 2];
    path.run(millis(400));
    assert_eq!(path.states(), [BfdState::Down; 2]);
    let status = path.ends[0].status();
    assert_eq!(status.local.diagnostic, BfdDiagnostic::EXPIRED);
    path.cut = [false; 2];
    path.run(millis(3000));
    assert_eq!(path.states(), [BfdState::Up; 2]);
    path.cut = [true, false];
    path.run(millis(5000));
    assert_eq!(path.states(), [BfdState::Init, BfdState::Down]);
    let status = path.ends[0].status();
    assert_eq!(status.local.diagnostic, BfdDiagnostic::NEIGHBOR_DOWN);
    assert_eq!(status.remote.diagnostic, BfdDiagnostic::EXPIRED);
    assert_eq!(path.forwards(), [false; 2]);
}

#[test]
fn bfd_intervals_change_by_a_poll_sequence() {
    let mut path = BfdPair::new([config(100, 1000), config(100, 1000)]);
    path.run(millis(4000));
    let now = path.now;
    path.ends[0].configure(&config(200, 300), 0, now);
    assert!(path.ends[0].status().local.flags.has(BfdFlags::POLL));
    let status = path.ends[0].status();
    assert_eq!(
        (status.local.min_tx, status.local.min_rx),
        (millis(100), millis(1000))
    );
    path.run(millis(1000));
    let status = path.ends[0].status();
    assert_eq!(
        (status.local.min_tx, status.local.min_rx),
        (millis(200), millis(300))
    );
    assert_eq!(status.local.flags, BfdFlags::default());
    let remote = path.ends[1].status().remote;
    assert_eq!((remote.min_tx, remote.min_rx), (millis(200), millis(300)));
}

#[test]
fn bfd_concatenated_path_down_stops_forwarding_at_the_other_end() {
    let mut path = BfdPair::new([config(100, 100), config(100, 100)]);
    path.run(millis(4000));
    let down = BfdConfig {
        cpath_down: true,
        ..config(100, 100)
    };
    let now = path.now;
    path.ends[0].configure(&down, 0, now);
    path.run(millis(1000));
    assert_eq!(path.states(), [BfdState::Up; 2]);
    assert_eq!(path.forwards(), [true, false]);
    // The override takes precedence and counts no change.
    let flaps = path.ends[1].status().flaps;
    path.ends[1].override_forwarding(Some(true), now);
    path.run(millis(1000));
    assert!(path.ends[1].is_forwarding() && path.ends[1].poll_change());
    assert_eq!(path.ends[1].status().flaps, flaps);
}

#[test]
fn bfd_receive_interval_decays_while_the_interface_is_idle() {
    let decayed = BfdConfig {
        decay_min_rx: Some(millis(3000)),
        ..config(300, 300)
    };
    let mut path = BfdPair::new([decayed.clone(), config(500, 500)]);
    path.run(millis(10_000));
    assert_eq!(path.ends[0].status().rx_interval, millis(3000));
    assert_eq!(path.states(), [BfdState::Up; 2]);
    for _ in 0..100 {
        path.received[0] += 1;
        path.run(millis(50));
    }
    assert_eq!(path.ends[0].status().rx_interval, millis(500));
    // A decayed interval below the receive interval is no decay.
    let too_short = BfdConfig {
        decay_min_rx: Some(millis(200)),
        ..decayed
    };
    let now = path.now;
    path.ends[0].configure(&too_short, 0, now);
    path.run(millis(10_000));
    assert_eq!(path.ends[0].status().rx_interval, millis(500));
}

#[test]
fn bfd_received_frames_replace_control_packets_for_a_while() {
    let by_frames = BfdConfig {
        forwarding_if_rx: true,
        ..config(300, 300)
    };
    let mut path = BfdPair::new([by_frames, config(500, 500)]);
    path.run(millis(5000));
    path.cut = [true; 2];
    for _ in 0..40 {
        path.received[0] += 1;
        path.run(millis(100));
    }
    assert_eq!(
        (path.states()[0], path.forwards()[0]),
        (BfdState::Down, true)
    );
    // One control packet in 100 receive intervals is required.
    for _ in 0..280 {
        path.received[0] += 1;
        path.run(millis(100));
    }
    assert_eq!(path.forwards(), [false; 2]);
    assert_eq!(path.ends[0].status().flaps, 2);
}

#[test]
fn bfd_packets_of_other_sessions_are_discarded() {
    let now = Instant::from_secs(1);
    let mut session = BfdSession::new(&config(100, 100), identity(7), 0, now);
    let control = BfdControl {
        state: BfdState::Init,
        multiplier: 3,
        my_discriminator: 5,
        your_discriminator: 7,
        min_tx_us: 100_000,
        min_rx_us: 100_000,
        ..BfdControl::default()
    };
    let mut handle =
        |control: BfdControl, ttl| session.handle_packet((&control.emit(), ttl), 0, now);
    assert_eq!(handle(control, 254), Err(DiscardedBfd::Ttl(254)));
    let other = BfdControl {
        your_discriminator: 6,
        ..control
    };
    assert_eq!(handle(other, 255), Err(DiscardedBfd::Discriminator(6)));
    let unknown = BfdControl {
        your_discriminator: 0,
        ..control
    };
    assert_eq!(handle(unknown, 255), Err(DiscardedBfd::NoDiscriminator));
    assert_eq!(handle(control, 255), Ok(()));
    assert_eq!(session.status().local.state, BfdState::Up);
}

#[test]
fn bfd_session_answers_polls_of_a_silent_system_only() {
    let now = Instant::from_secs(1);
    let mut session = BfdSession::new(&config(100, 100), identity(7), 0, now);
    let silent = BfdControl {
        state: BfdState::Down,
        flags: BfdFlags::POLL,
        multiplier: 255,
        my_discriminator: 5,
        min_tx_us: 1_000_000,
        ..BfdControl::default()
    };
    assert_eq!(session.handle_packet((&silent.emit(), 255), 0, now), Ok(()));
    assert!(session.poll_transmit(OWN, now).is_some());
    assert!(session.poll_transmit(OWN, now + millis(60_000)).is_none());
}

proptest! {
    /// For any input, the session sends at most one frame for each packet, beside the periodic
    /// ones, and its timers advance.
    #[test]
    fn bfd_session_accepts_any_packet(packets in proptest::collection::vec(
        (any::<[u8; 24]>(), any::<bool>(), 0u64..3000), 0..60)) {
        let mut now = Instant::from_secs(1);
        let mut session = BfdSession::new(&config(100, 100), identity(7), 0, now);
        for (mut packet, valid, pause) in packets {
            if valid {
                packet[0] = 0x20 | packet[0] & 0x1f;
                packet[1] &= !0x05;
                packet[3] = 24;
                packet[8..12].copy_from_slice(&7_u32.to_be_bytes());
            }
            now += millis(pause);
            let _ = session.handle_packet((&packet, 255), 0, now);
            prop_assert!(std::iter::from_fn(|| session.poll_transmit(OWN, now)).take(3).count() < 3);
            session.handle_timeout(0, now);
        }
    }
}
