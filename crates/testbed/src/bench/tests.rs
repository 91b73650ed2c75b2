//! Benches with real namespaces, and what is left of them: nothing.

use super::*;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::time::Duration;

use crate::check;

/// A bench of `kind`, or none where the machine cannot have it.
fn bench(kind: DeviceKind) -> Option<Bench> {
    if let Err(missing) = check(&kind.requirements("comporta".as_ref())) {
        println!("skipped: {missing}");
        return None;
    }
    let options = DeviceOptions {
        kind,
        directory: PathBuf::from("."),
        cores: Vec::new(),
        comporta: PathBuf::from("comporta"),
    };
    let spawner = Spawner::new().unwrap();
    Some(Bench::build(&spawner, &Clock::start(), &options).unwrap())
}

fn hello_passes(bench: &Bench) {
    let (client, server) = (bench.client(), bench.server());
    let listener = server
        .namespace
        .run(|| UdpSocket::bind((server.address, 7)).unwrap())
        .unwrap();
    let sender = client
        .namespace
        .run(|| UdpSocket::bind((client.address, 0)).unwrap())
        .unwrap();
    listener
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    sender.send_to(b"hello", (server.address, 7)).unwrap();
    let mut buffer = [0; 64];
    let (length, from) = listener.recv_from(&mut buffer).unwrap();
    assert_eq!(
        (&buffer[..length], from),
        (&b"hello"[..], sender.local_addr().unwrap())
    );
}

#[test]
fn hosts_talk_over_a_cable_and_count_it() {
    let Some(bench) = bench(DeviceKind::Direct) else {
        return;
    };
    let before = bench.server().counters().unwrap();
    hello_passes(&bench);
    let after = bench.server().counters().unwrap();
    assert_eq!(after.since(&before).rx_packets, 1);
    assert_eq!(bench.port_counters().unwrap(), None);
}

#[test]
fn hosts_talk_through_the_kernels_bridge() {
    let Some(bench) = bench(DeviceKind::LinuxBridge) else {
        return;
    };
    hello_passes(&bench);
    let [first, second] = bench.port_counters().unwrap().unwrap();
    assert_eq!(first.rx_packets, 1);
    // A bridge also tells of groups that it joined (224.0.0.106, all snoopers).
    assert!(second.tx_packets >= 1);
}

#[test]
fn whole_frames_cross_a_cable_and_only_what_came_in_is_heard() {
    let Some(bench) = bench(DeviceKind::Direct) else {
        return;
    };
    let (client, server) = (bench.client(), bench.server());
    let sender = client.namespace.raw_sender(client.interface).unwrap();
    let receiver = server.namespace.raw_receiver(server.interface).unwrap();
    let frames = [[0xaa; 60], [0xbb; 60]];
    assert_eq!(receiver.send(&frames[..1]).unwrap(), 1);
    assert_eq!(sender.send(&frames).unwrap(), 2);
    let mut room = [0; 128];
    for frame in frames {
        let length = Clock::start()
            .wait_for("a frame", Duration::from_secs(30), || {
                Ok(receiver.receive(&mut room).unwrap())
            })
            .unwrap();
        assert_eq!(room[..length], frame);
    }
    assert_eq!(receiver.receive(&mut room).unwrap(), None);
}

#[test]
fn an_interface_can_be_handed_over() {
    let Some(bench) = bench(DeviceKind::Direct) else {
        return;
    };
    let (client, server) = (&bench.client().namespace, &bench.server().namespace);
    client.join("a", client, "b").unwrap();
    client.hand_over("b", server).unwrap();
    assert!(client.counters("b").is_err() && server.counters("b").is_ok());
}

#[test]
fn offloads_are_on_until_switched_off() {
    let Some(bench) = bench(DeviceKind::Direct) else {
        return;
    };
    let client = bench.client();
    assert!(
        client
            .offloads()
            .unwrap()
            .contains(&Offload::TcpSegmentation)
    );
    client
        .namespace
        .set_offload(client.interface, Offload::TxChecksum, false)
        .unwrap();
    let on = client.offloads().unwrap();
    assert!(!on.contains(&Offload::TxChecksum) && !on.contains(&Offload::TcpSegmentation));
}

#[test]
fn what_is_refused_is_told_with_its_reason() {
    if check(&DeviceKind::Direct.requirements("comporta".as_ref())).is_err() {
        return;
    }
    let namespace = Namespace::new().unwrap();
    assert_eq!(
        namespace.set_up("eth7").unwrap_err().to_string(),
        "cannot set eth7 up: No such device (os error 19)"
    );
    namespace.join("a", &namespace, "b").unwrap();
    assert_eq!(
        namespace
            .join("a", &namespace, "c")
            .unwrap_err()
            .to_string(),
        "cannot make the veth pair a and c: File exists (os error 17)"
    );
    namespace.remove("b").unwrap();
    assert!(namespace.counters("a").is_err(), "a cable has two ends");
}
