//! TAP devices: the host at one end, a queue at the other.

use std::time::Duration;

use ports::tap::{Tap, TapOptions};
use ports::{Counter, Port, QueueCounts};
use sys::interface::Interfaces;

use crate::net::{
    ONE, TestHost, TestQueue, forward, frame, in_namespace, ip, name, open_queue, tagged, tcp, wait,
};

const PLAIN: TapOptions = TapOptions {
    address: None,
    queues: ONE,
};

fn tap(text: &str) -> Tap {
    Tap::create(&name(text), PLAIN).unwrap()
}

#[test]
fn tap_frames_cross_unmodified_both_ways() {
    in_namespace(|| {
        let mut port = tap("tap0");
        ip("link set tap0 mtu 9000");
        port.set_up(true).unwrap();
        let mut here = TestQueue::new(port.take_queues().remove(0));
        let mut host = open_queue("tap0");
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
            QueueCounts::from_iter([
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
fn tap_device_that_is_down_counts_drops_until_up() {
    in_namespace(|| {
        let mut port = tap("tap0");
        assert!(!port.status().up);
        let mut here = TestQueue::new(port.take_queues().remove(0));
        let frames = [1, 2, 3].map(|seed| frame(60, seed));
        here.send(&frames);
        assert!(here.receive_now().is_empty());
        assert_eq!(
            here.counts(),
            QueueCounts::from_iter([(Counter::TxDown, 3)])
        );
        port.set_up(true).unwrap();
        let mut host = open_queue("tap0");
        here.send(&frames);
        assert_eq!(host.receive(3), frames);
    });
}

#[test]
fn removed_tap_device_is_an_error_and_wakes_poll() {
    in_namespace(|| {
        let mut port = tap("tap0");
        let mut here = TestQueue::new(port.take_queues().remove(0));
        ip("link delete tap0");
        assert!(wait(
            std::slice::from_ref(&here.queue),
            Duration::from_secs(10)
        ));
        let gone = "interface tap0 was removed";
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
fn tap_device_is_deleted_with_last_queue() {
    in_namespace(|| {
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
fn tap_device_has_requested_address_and_queues() {
    in_namespace(|| {
        let options = TapOptions {
            address: Some("02:00:00:00:00:09".parse().unwrap()),
            queues: 3.try_into().unwrap(),
        };
        let mut port = Tap::create(&name("tap0"), options).unwrap();
        port.set_up(true).unwrap();
        let status = port.status();
        assert_eq!(status.address, options.address.unwrap());
        assert_eq!(status.driver.as_deref(), Some("tun"));
        let mut host = open_queue("tap0");
        let queues = port.take_queues();
        assert_eq!(queues.len(), 3);
        for (seed, queue) in (0..).zip(queues) {
            TestQueue::new(queue).send(&[frame(60, seed)]);
        }
        assert_eq!(host.receive(3), [0, 1, 2].map(|seed| frame(60, seed)));
    });
}

/// The steps by which a user gives a port of the switch to a container or a network namespace.
#[test]
fn tap_device_works_after_rename_and_move() {
    in_namespace(|| {
        let hosts = [TestHost::new(1), TestHost::new(2)];
        let mut ports = [tap("tap1"), tap("tap2")];
        for (host, tap) in hosts.iter().zip(["tap1", "tap2"]) {
            ip(&format!(
                "link set {tap} netns {} name eth0",
                host.netns_path()
            ));
            host.configure();
        }
        for port in &mut ports {
            let status = port.status();
            assert_eq!((status.name.as_str(), status.up), ("eth0", true));
            port.set_up(false).unwrap();
            assert!(!port.status().up);
            port.set_up(true).unwrap();
        }
        let mut queues = ports.each_mut().map(|port| port.take_queues().remove(0));
        let mut segmented = 0;
        tcp(&hosts[0], &hosts[1], 4_000_000, |done| {
            forward(&mut queues, done, |from, frame| {
                segmented += u32::from(frame.offload.segmentation.is_some());
                1 - from
            });
        });
        assert!(segmented > 10, "only {segmented} frames were unsegmented");
    });
}
