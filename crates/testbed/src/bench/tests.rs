//! Test setups with real namespaces, and their complete removal.

use super::*;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use crate::{Mode, check};

/// A test setup of `kind`, or `None` without root.
fn bench(kind: DeviceKind) -> Option<Bench> {
    bench_as(kind, &Setup::default())
}

/// A test setup as `setup` describes. As root, a missing requirement fails the test instead of
/// skipping it.
fn bench_as(kind: DeviceKind, setup: &Setup) -> Option<Bench> {
    let (bench, directory) = bench_with_directory(kind, setup)?;
    // Open files remain usable, and no new ones are needed.
    std::fs::remove_dir_all(directory).unwrap();
    Some(bench)
}

/// A test setup with its directory, for tests that start a program there again.
fn bench_with_directory(kind: DeviceKind, setup: &Setup) -> Option<(Bench, PathBuf)> {
    let checked = check(&kind.requirements("comporta".as_ref()));
    if !rustix::process::geteuid().is_root() {
        println!("skipped: {checked:?}");
        return None;
    }
    checked.unwrap();
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let place = COUNT.fetch_add(1, Ordering::Relaxed);
    let name = format!("bench-{}-{place}", std::process::id());
    let options = DeviceOptions {
        kind,
        directory: std::env::temp_dir().join(name),
        cores: Vec::new(),
        comporta: PathBuf::from("comporta"),
    };
    std::fs::create_dir_all(&options.directory).unwrap();
    let spawner = Spawner::new().unwrap();
    let bench = Bench::build_as(&spawner, &Clock::start(), &options, setup).unwrap();
    Some((bench, options.directory))
}

fn setup(topology: Topology) -> Setup {
    Setup {
        topology,
        ..Setup::default()
    }
}

fn hello_passes(bench: &Bench) {
    let patience = Duration::from_secs(30);
    assert!(arrives(bench, (0, 1), 5, patience), "hello does not pass");
}

/// True if a datagram of `length` bytes passes from one host to the other. It is sent repeatedly
/// for a while, since a switch may start to forward late.
fn datagram_passes(bench: &Bench, from: usize, to: usize, length: usize) -> bool {
    let patience = Duration::from_millis(500);
    (0..40).any(|_| arrives(bench, (from, to), length, patience))
}

fn arrives(bench: &Bench, (from, to): (usize, usize), length: usize, patience: Duration) -> bool {
    let (client, server) = (&bench.hosts()[from], &bench.hosts()[to]);
    let open = |host: &Host, port| {
        let address = (host.address, port);
        host.namespace
            .run(|| UdpSocket::bind(address).unwrap())
            .unwrap()
    };
    let (listener, sender) = (open(server, 7), open(client, 0));
    listener.set_read_timeout(Some(patience)).unwrap();
    let sent = vec![b'h'; length];
    sender.send_to(&sent, (server.address, 7)).unwrap();
    let mut buffer = vec![0; length + 1];
    let Ok((length, who)) = listener.recv_from(&mut buffer) else {
        return false;
    };
    assert_eq!(
        (&buffer[..length], who),
        (&sent[..], sender.local_addr().unwrap())
    );
    true
}

#[test]
fn hosts_exchange_frames_over_a_link_and_count_them() {
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
fn hosts_exchange_frames_through_the_linux_bridge() {
    let Some(bench) = bench(DeviceKind::LinuxBridge) else {
        return;
    };
    hello_passes(&bench);
    let [first, second] = bench.port_counters().unwrap().unwrap();
    assert_eq!(first.rx_packets, 1);
    // A bridge also reports groups that it joined (224.0.0.106, all snoopers).
    assert!(second.tx_packets >= 1);
}

#[test]
fn raw_socket_receives_frames_but_not_its_own() {
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
fn interface_moves_to_another_namespace() {
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
            .contains(&DeviceOffload::TcpSegmentation)
    );
    client
        .namespace
        .set_offload(client.interface, DeviceOffload::TxChecksum, false)
        .unwrap();
    let on = client.offloads().unwrap();
    assert!(
        !on.contains(&DeviceOffload::TxChecksum) && !on.contains(&DeviceOffload::TcpSegmentation)
    );
}

#[test]
fn refused_requests_report_their_reason() {
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
        "cannot create the veth pair a and c: File exists (os error 17)"
    );
    namespace.remove("b").unwrap();
    assert!(namespace.counters("a").is_err(), "a cable has two ends");
}

#[test]
fn six_hosts_reach_each_other_around_one_bridge() {
    let Some(bench) = bench_as(DeviceKind::LinuxBridge, &setup(Topology::star(6).unwrap())) else {
        return;
    };
    for (from, to) in [(0, 1), (2, 5), (5, 0), (3, 4)] {
        assert!(datagram_passes(&bench, from, to, 5), "{from} to {to}");
    }
    assert_eq!(bench.counters_of_ports().unwrap().len(), 6);
}

#[test]
fn parallel_bridges_are_isolated() {
    for kind in [DeviceKind::LinuxBridge, DeviceKind::Direct] {
        let Some(bench) = bench_as(kind, &setup(Topology::parallel(3).unwrap())) else {
            return;
        };
        for first in [0, 2, 4] {
            assert!(
                datagram_passes(&bench, first, first + 1, 5),
                "{kind} {first}"
            );
        }
        let patience = Duration::from_millis(200);
        for strangers in [(0, 2), (3, 4)] {
            assert!(!arrives(&bench, strangers, 5, patience), "{strangers:?}");
        }
    }
}

#[test]
fn chain_of_bridges_forwards_between_its_hosts() {
    for length in [1, 2, 4, 8] {
        let setup = setup(Topology::chain(length).unwrap());
        let Some(bench) = bench_as(DeviceKind::LinuxBridge, &setup) else {
            return;
        };
        hello_passes(&bench);
        let bridges = bench.topology().bridges();
        assert_eq!(bridges.len(), length);
        for bridge in bridges {
            let first = bench.device_namespace().counters(&bridge.ports[0]).unwrap();
            assert!(first.rx_packets >= 1, "{bridge:?} was passed by");
        }
    }
}

#[test]
fn large_frames_pass_if_the_mtu_allows_them() {
    let jumbo = Topology::default().with_mtu(9_216).unwrap();
    for kind in [DeviceKind::LinuxBridge, DeviceKind::Forwarder] {
        let Some(bench) = bench_as(kind, &setup(jumbo)) else {
            return;
        };
        // With an IPv4 header of 20 bytes and a UDP header of 8 it fills the MTU.
        assert!(datagram_passes(&bench, 0, 1, 9_188), "{kind}");
    }
}

#[test]
fn open_vswitch_ports_can_be_vlans_of_a_front_bridge() {
    let legacy = Setup {
        mode: Some(Mode::Legacy),
        ..Setup::default()
    };
    for kind in [DeviceKind::VlanBridge, DeviceKind::OvsVlanBridge] {
        let Some(bench) = bench_as(kind, &legacy) else {
            return;
        };
        assert!(datagram_passes(&bench, 0, 1, 5), "{kind}");
        assert!(bench.device().processes().is_empty(), "the kernel forwards");
    }
    let vlans = Setup {
        topology: Topology::default().with_ports(PortKind::Vlan),
        ..legacy
    };
    let Some(bench) = bench_as(DeviceKind::Ovs, &vlans) else {
        return;
    };
    assert!(datagram_passes(&bench, 0, 1, 5));
    let switch = bench.device_namespace();
    assert!(switch.counters("vlan10").unwrap().rx_packets >= 1);
    assert!(switch.counters("vlan20").unwrap().tx_packets >= 1);
}

#[test]
fn open_vswitch_forwards_standalone_and_in_chains() {
    for topology in [Topology::star(4), Topology::parallel(3), Topology::chain(4)] {
        let setup = Setup {
            mode: Some(Mode::Legacy),
            ..setup(topology.unwrap())
        };
        let Some(bench) = bench_as(DeviceKind::Ovs, &setup) else {
            return;
        };
        assert!(
            datagram_passes(&bench, 0, 1, 5),
            "{topology}",
            topology = bench.topology()
        );
        let last = bench.hosts().len() - 1;
        assert!(datagram_passes(&bench, last, last - 1, 5));
        assert_eq!(bench.device().mode(), Mode::Legacy);
    }
}

#[test]
fn restarted_device_forwards_over_the_same_links() {
    let kinds = [
        (DeviceKind::LinuxBridge, StopSignal::Term),
        (DeviceKind::Ovs, StopSignal::Term),
        (DeviceKind::Ovs, StopSignal::Kill),
    ];
    for (kind, ending) in kinds {
        let legacy = Setup {
            mode: Some(Mode::Legacy),
            ..Setup::default()
        };
        let (spawner, clock) = (Spawner::new().unwrap(), Clock::start());
        let Some((mut bench, directory)) = bench_with_directory(kind, &legacy) else {
            return;
        };
        assert!(datagram_passes(&bench, 0, 1, 5), "{kind}");
        let stopped = bench.end_device(&clock, ending).unwrap();
        assert!(stopped.ended >= stopped.signalled);
        assert!(!arrives(&bench, (0, 1), 5, Duration::from_millis(100)));
        bench.restart_device(&spawner).unwrap();
        assert!(datagram_passes(&bench, 1, 0, 5), "{kind} after {ending:?}");
        bench.device_mut().check().unwrap();
        drop(bench);
        std::fs::remove_dir_all(directory).unwrap();
    }
}

#[test]
fn device_without_restart_support_refuses_a_restart() {
    let Some(mut bench) = bench(DeviceKind::Forwarder) else {
        return;
    };
    let refused = bench.end_device(&Clock::start(), StopSignal::Term);
    assert_eq!(
        refused.unwrap_err().to_string(),
        "forwarder cannot be restarted in mode legacy"
    );
}

#[test]
fn unsupported_setup_is_refused_before_construction() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root makes namespaces");
        return;
    }
    let options = DeviceOptions {
        kind: DeviceKind::LinuxBridge,
        directory: PathBuf::from("."),
        cores: Vec::new(),
        comporta: PathBuf::from("comporta"),
    };
    let wrong = Setup {
        mode: Some(Mode::OpenFlow),
        ..Setup::default()
    };
    let spawner = Spawner::new().unwrap();
    let refused = Bench::build_as(&spawner, &Clock::start(), &options, &wrong).unwrap_err();
    assert_eq!(refused.to_string(), "linux-bridge has no mode openflow");
}
