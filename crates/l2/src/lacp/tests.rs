//! Tests of two groups at the two ends of links, on simulated time.

use std::collections::BTreeMap;
use std::time::Duration;

use base::{Instant, PortNo};
use packet::MacAddr;
use packet::wire::slow::{LacpState, LacpSystem, Marker, SlowPdu};
use proptest::prelude::*;

use packet::wire::slow::Lacpdu;

use super::*;

const ADDRESS: MacAddr = MacAddr([2, 0, 0, 0, 0, 1]);

fn settings(activity: LacpActivity, system: u64) -> LacpSettings {
    LacpSettings {
        activity,
        is_fast: false,
        system: LacpSystem {
            priority: 65534,
            address: MacAddr::from_u64(system),
        },
        lacp_fallback: false,
        aggregates: true,
    }
}

/// Two systems with links between ports of equal numbers; some links are cut.
struct Pair {
    ends: [LacpGroup; 2],
    cut: Vec<PortNo>,
    now: Instant,
}

impl Pair {
    fn new(settings: [LacpSettings; 2], cables: u32) -> Self {
        let mut ends = settings.map(LacpGroup::new);
        for (end, settings) in ends.iter_mut().zip(settings) {
            end.configure(settings, &ports(cables));
            for port in 1..=cables {
                end.handle_carrier(PortNo(port), true, Instant::START);
            }
        }
        Self {
            ends,
            cut: Vec::new(),
            now: Instant::START,
        }
    }

    /// Advances the time and returns the number of LACPDUs sent.
    fn run(&mut self, time: Duration) -> usize {
        let until = self.now + time;
        let mut sent = 0;
        loop {
            for from in 0..2 {
                self.ends[from].handle_timeout(self.now);
                while let Some((port, pdu)) = self.ends[from].poll_transmit(self.now) {
                    sent += 1;
                    if !self.cut.contains(&port) {
                        let frame = pdu.emit(ADDRESS);
                        let answer = self.ends[1 - from].handle_frame(port, &frame, self.now);
                        assert_eq!(answer, None);
                    }
                }
            }
            let due = self.ends.iter().filter_map(LacpGroup::next_timeout).min();
            match due.filter(|due| *due <= until) {
                Some(due) => self.now = due.max(self.now),
                None => break,
            }
        }
        self.now = until;
        sent
    }

    fn enabled(&self, end: usize) -> Vec<u32> {
        let end = &self.ends[end];
        let ports = end.ports().map(|(number, _)| number);
        ports
            .filter(|number| end.may_enable(*number))
            .map(|number| number.0)
            .collect()
    }
}

fn ports(count: u32) -> BTreeMap<PortNo, LacpPortSettings> {
    let settings = |number: u32| LacpPortSettings {
        number: u16::try_from(number).expect("few ports"),
        priority: 65535,
        key: 1,
    };
    (1..=count)
        .map(|number| (PortNo(number), settings(number)))
        .collect()
}

#[test]
fn active_and_passive_ends_agree_at_once_and_send_rarely() {
    use LacpActivity::{Active, Passive};
    for (a, b) in [(Active, Active), (Active, Passive), (Passive, Active)] {
        let mut pair = Pair::new([settings(a, 1), settings(b, 2)], 2);
        pair.run(Duration::from_millis(1500));
        assert_eq!(pair.enabled(0), [1, 2]);
        assert_eq!(pair.enabled(1), [1, 2]);
        assert_eq!(pair.ends[0].status(), LacpStatus::Negotiated);
        pair.run(Duration::from_secs(60));
        // One LACPDU for each 30 s and port.
        assert!(pair.run(Duration::from_secs(300)) <= 2 * 2 * 11);
        assert_eq!(pair.enabled(0), [1, 2]);
    }
}

#[test]
fn passive_ends_send_nothing() {
    let passive = LacpActivity::Passive;
    let mut pair = Pair::new([settings(passive, 1), settings(passive, 2)], 2);
    assert_eq!(pair.run(Duration::from_secs(100)), 0);
    assert_eq!(pair.ends[0].status(), LacpStatus::Configured);
    assert_eq!(pair.ends[0].next_timeout(), None);
}

#[test]
fn individual_port_accepts_a_partner_without_aggregation() {
    let alone = |settings| LacpSettings {
        aggregates: false,
        ..settings
    };
    let ends = [
        settings(LacpActivity::Active, 1),
        settings(LacpActivity::Passive, 2),
    ];
    let mut cable = Pair::new(ends.map(alone), 1);
    cable.run(Duration::from_secs(2));
    assert_eq!([0, 1].map(|end| cable.enabled(end)), [[1], [1]]);
    // An aggregatable port does not attach to an individual partner.
    let [one, other] = ends;
    let mut cables = Pair::new([one, alone(other)], 2);
    cables.run(Duration::from_secs(2));
    assert!(cables.enabled(0).is_empty());
}

#[test]
fn silent_partner_expires_and_recovers() {
    let fast = LacpSettings {
        is_fast: true,
        ..settings(LacpActivity::Active, 1)
    };
    let mut pair = Pair::new([fast, settings(LacpActivity::Active, 2)], 2);
    pair.run(Duration::from_secs(5));
    assert_eq!(pair.enabled(0), [1, 2]);
    pair.cut.push(PortNo(2));
    pair.run(Duration::from_secs(4));
    assert_eq!(pair.enabled(0), [1]);
    let port = pair.ends[0].port(PortNo(2)).expect("port exists");
    assert_eq!(port.receive(), ReceiveState::Expired);
    pair.run(Duration::from_secs(4));
    let port = pair.ends[0].port(PortNo(2)).expect("port exists");
    assert_eq!(port.receive(), ReceiveState::Defaulted);
    assert_eq!((port.counters().expired, port.counters().defaulted), (1, 1));
    pair.cut.clear();
    pair.run(Duration::from_secs(2));
    assert_eq!((pair.enabled(0), pair.enabled(1)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn port_without_carrier_is_detached_at_once() {
    let active = LacpActivity::Active;
    let mut pair = Pair::new([settings(active, 1), settings(active, 2)], 2);
    pair.run(Duration::from_secs(3));
    pair.ends[0].handle_carrier(PortNo(1), false, pair.now);
    assert_eq!(pair.enabled(0), [2]);
    pair.ends[1].handle_carrier(PortNo(1), false, pair.now);
    pair.run(Duration::from_secs(1));
    for end in &mut pair.ends {
        end.handle_carrier(PortNo(1), true, pair.now);
    }
    pair.run(Duration::from_secs(2));
    assert_eq!((pair.enabled(0), pair.enabled(1)), (vec![1, 2], vec![1, 2]));
}

#[test]
fn link_to_another_system_is_not_attached() {
    let mut group = LacpGroup::new(settings(LacpActivity::Active, 1));
    group.configure(settings(LacpActivity::Active, 1), &ports(3));
    let mut others: Vec<_> = [2, 2, 3]
        .map(|system| {
            let mut other = LacpGroup::new(settings(LacpActivity::Active, system));
            other.configure(settings(LacpActivity::Active, system), &ports(3));
            other
        })
        .into();
    for number in 1..=3 {
        group.handle_carrier(PortNo(number), true, Instant::START);
        others[number as usize - 1].handle_carrier(PortNo(number), true, Instant::START);
    }
    for second in 0..6 {
        let now = Instant::from_secs(second);
        for _ in 0..4 {
            while let Some((port, pdu)) = group.poll_transmit(now) {
                let other = &mut others[port.0 as usize - 1];
                other.handle_frame(port, &pdu.emit(ADDRESS), now);
            }
            for other in &mut others {
                while let Some((port, pdu)) = other.poll_transmit(now) {
                    group.handle_frame(port, &pdu.emit(ADDRESS), now);
                }
            }
        }
    }
    let enabled: Vec<_> = (1..=3).map(|port| group.may_enable(PortNo(port))).collect();
    assert_eq!(enabled, [true, true, false]);
}

#[test]
fn own_system_as_partner_is_not_in_sync() {
    let mut pair = Pair::new(
        [LacpActivity::Active; 2].map(|active| settings(active, 1)),
        1,
    );
    // Both ends are the same system, as with a cable from a port to itself.
    pair.run(Duration::from_secs(10));
    assert_eq!(pair.enabled(0), [0; 0]);
    assert_eq!(pair.ends[0].status(), LacpStatus::Configured);
}

#[test]
fn ports_are_attached_while_they_expect_a_partner() {
    let mut group = LacpGroup::new(settings(LacpActivity::Active, 1));
    group.configure(settings(LacpActivity::Active, 1), &ports(2));
    assert_eq!(group.status(), LacpStatus::Configured);
    group.handle_carrier(PortNo(1), true, Instant::START);
    assert_eq!(group.status(), LacpStatus::Negotiated);
    let port = group.port(PortNo(1)).expect("port exists");
    assert!(port.is_attached() && !group.may_enable(PortNo(1)));
    let state = port.actor(group.settings()).state;
    assert!(state.has(LacpState::SYNCHRONIZATION) && state.has(LacpState::DISTRIBUTING));
    assert!(state.has(LacpState::EXPIRED));
    group.handle_timeout(Instant::from_secs(3));
    let port = group.port(PortNo(1)).expect("port exists");
    assert!(!port.is_attached() && port.partner().state == LacpState::default());
    assert_eq!(group.status(), LacpStatus::Configured);
}

#[test]
fn fallback_enables_ports_without_a_partner() {
    let mut pair = Pair::new(
        [
            LacpSettings {
                lacp_fallback: true,
                ..settings(LacpActivity::Active, 1)
            },
            settings(LacpActivity::Active, 2),
        ],
        2,
    );
    pair.cut = vec![PortNo(1), PortNo(2)];
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.enabled(0), [0; 0]);
    pair.run(Duration::from_secs(2));
    assert_eq!(pair.enabled(0), [1, 2]);
    pair.cut = vec![PortNo(1)];
    pair.run(Duration::from_secs(3));
    assert_eq!(pair.enabled(0), [2]);
}

#[test]
fn markers_are_answered_and_malformed_frames_are_counted() {
    let mut group = LacpGroup::new(settings(LacpActivity::Active, 1));
    group.configure(settings(LacpActivity::Active, 1), &ports(1));
    let request = Marker {
        is_response: false,
        system: ADDRESS,
        port: 4,
        transaction: 9,
    };
    let mut frame = request.emit(ADDRESS);
    let answer = group.handle_frame(PortNo(1), &frame, Instant::START);
    let expected = Marker {
        is_response: true,
        ..request
    };
    assert_eq!(answer, Some(SlowPdu::Marker(expected)));
    frame[16] = 7;
    group.handle_frame(PortNo(1), &frame, Instant::START);
    let counters = group.port(PortNo(1)).expect("port exists").counters();
    assert_eq!((counters.markers, counters.malformed), (1, 1));
}

proptest! {
    /// For any input, at most three LACPDUs leave a port in a second, and a port without a partner
    /// carries nothing.
    #[test]
    fn transmission_rate_is_bounded_for_any_input(frames in proptest::collection::vec(
        (any::<[u8; 20]>(), any::<[u8; 20]>(), 0u64..400), 0..60)) {
        let mut group = LacpGroup::new(settings(LacpActivity::Active, 1));
        group.configure(settings(LacpActivity::Active, 1), &ports(1));
        group.handle_carrier(PortNo(1), true, Instant::START);
        let mut sent: Vec<Instant> = Vec::new();
        let mut now = Instant::START;
        for (actor, partner, pause) in frames {
            now += Duration::from_millis(pause);
            group.handle_timeout(now);
            let mut frame = Lacpdu::default().emit(ADDRESS);
            frame[18..34].copy_from_slice(&actor[2..18]);
            frame[38..54].copy_from_slice(&partner[2..18]);
            group.handle_frame(PortNo(1), &frame, now);
            while let Some((_, pdu)) = group.poll_transmit(now) {
                prop_assert!(!group.may_enable(PortNo(1))
                    || pdu.partner.state.has(LacpState::SYNCHRONIZATION));
                sent.push(now);
            }
        }
        for four in sent.windows(SENT_MAX + 1) {
            prop_assert!(four[SENT_MAX] - four[0] >= FAST_PERIODIC);
        }
    }
}
