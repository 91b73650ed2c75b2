//! TAP devices: the host at one end, we at the other.

use std::time::Duration;

use ports::tap::{Options, Tap};
use ports::{Counter, Counts, Port};
use sys::interface::Interfaces;

use crate::net::{Hand, Host, ONE, forward, frame, hand, ip, name, scene, tagged, tcp, wait};

const PLAIN: Options = Options {
    address: None,
    queues: ONE,
};

fn tap(text: &str) -> Tap {
    Tap::create(&name(text), PLAIN).unwrap()
}

#[test]
fn frames_cross_both_ways_as_they_are() {
    scene(|| {
        let mut port = tap("tap0");
        ip("link set tap0 mtu 9000");
        port.set_up(true).unwrap();
        let mut here = Hand::new(port.take_queues().remove(0));
        let mut host = hand("tap0");
        let lengths = (14..=1518).chain([4000, 9000, 9014]);
        let mut frames: Vec<_> = lengths.map(|len| frame(len, 1)).collect();
        frames.push(tagged(&[(0x8100, 5)], 100, 1));
        frames.push(tagged(&[(0x88a8, 5), (0x8100, 6)], 100, 1));
        for some in frames.chunks(100) {
            here.send(some);
            assert_eq!(host.receive(some.len()), some);
            host.send(some);
            assert_eq!(here.receive(some.len()), some);
        }
        let packets = frames.len() as u64;
        let bytes = frames.iter().map(|frame| frame.len() as u64).sum();
        assert_eq!(
            here.counts(),
            Counts::from_iter([
                (Counter::RxPackets, packets),
                (Counter::RxBytes, bytes),
                (Counter::TxPackets, packets),
                (Counter::TxBytes, bytes),
            ])
        );
        assert_eq!(here.pool.outstanding(), 0);
    });
}

#[test]
fn a_device_that_is_down_is_counted_and_comes_back() {
    scene(|| {
        let mut port = tap("tap0");
        assert!(!port.status().up);
        let mut here = Hand::new(port.take_queues().remove(0));
        let frames = [1, 2, 3].map(|seed| frame(60, seed));
        here.send(&frames);
        assert!(here.receive_now().is_empty());
        assert_eq!(here.counts(), Counts::from_iter([(Counter::TxDown, 3)]));
        port.set_up(true).unwrap();
        let mut host = hand("tap0");
        here.send(&frames);
        assert_eq!(host.receive(3), frames);
    });
}

#[test]
fn a_removed_device_is_an_error_and_wakes_who_sleeps() {
    scene(|| {
        let mut port = tap("tap0");
        let mut here = Hand::new(port.take_queues().remove(0));
        ip("link delete tap0");
        assert!(wait(
            std::slice::from_ref(&here.queue),
            Duration::from_secs(10)
        ));
        let gone = "interface tap0 is gone";
        let received = here.queue.receive(&mut here.pool, &mut here.batch);
        assert_eq!(received.unwrap_err().to_string(), gone);
        here.batch.push(frame(60, 1)).unwrap();
        let sent = here.queue.send(&mut here.batch, &mut here.pool);
        assert_eq!(sent.unwrap_err().to_string(), gone);
        assert_eq!((here.batch.len(), here.pool.outstanding()), (1, 0));
        assert_eq!(port.status().index, None);
        port.set_up(true).unwrap_err();
    });
}

#[test]
fn a_device_goes_with_its_port_and_queues() {
    scene(|| {
        let interfaces = Interfaces::current().unwrap();
        let mut port = tap("tap0");
        let queues = port.take_queues();
        drop(port);
        assert!(interfaces.index(&name("tap0")).is_ok());
        drop(queues);
        interfaces.index(&name("tap0")).unwrap_err();
    });
}

#[test]
fn a_device_has_the_address_and_the_queues_it_was_given() {
    scene(|| {
        let options = Options {
            address: Some("02:00:00:00:00:09".parse().unwrap()),
            queues: 3.try_into().unwrap(),
        };
        let mut port = Tap::create(&name("tap0"), options).unwrap();
        port.set_up(true).unwrap();
        let status = port.status();
        assert_eq!(status.address, options.address.unwrap());
        assert_eq!(status.driver.as_deref(), Some("tun"));
        let mut host = hand("tap0");
        let queues = port.take_queues();
        assert_eq!(queues.len(), 3);
        for (seed, queue) in (0..).zip(queues) {
            Hand::new(queue).send(&[frame(60, seed)]);
        }
        assert_eq!(host.receive(3), [0, 1, 2].map(|seed| frame(60, seed)));
    });
}

/// What a user does to give a container or a network namespace a port of the switch.
#[test]
fn a_device_may_be_renamed_and_moved_and_goes_on() {
    scene(|| {
        let hosts = [Host::new(1), Host::new(2)];
        let mut ports = [tap("tap1"), tap("tap2")];
        for (host, tap) in hosts.iter().zip(["tap1", "tap2"]) {
            ip(&format!("link set {tap} netns {} name eth0", host.place()));
            host.settle();
        }
        for port in &mut ports {
            let status = port.status();
            assert_eq!((status.name.as_str(), status.up), ("eth0", true));
            port.set_up(false).unwrap();
            assert!(!port.status().up);
            port.set_up(true).unwrap();
        }
        let mut queues = ports.each_mut().map(|port| port.take_queues().remove(0));
        let mut cut = 0;
        tcp(&hosts[0], &hosts[1], 4_000_000, |over| {
            forward(&mut queues, over, |from, frame| {
                cut += u32::from(frame.offload.segmentation.is_some());
                1 - from
            });
        });
        assert!(cut > 10, "only {cut} frames came uncut");
    });
}
