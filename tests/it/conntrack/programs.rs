//! Real programs through the three trackers: FTP, TFTP, traceroute, path MTU discovery, and TCP with
//! lost, repeated and reordered segments. Each test expects the same of all three.

use std::fs;
use std::net::Ipv4Addr;

use testbed::{Failure, Namespace};

use super::trackers::{FIREWALL, Tracker, TrackerKind, TrackerPolicy};
use crate::support::command::{CommandOutput, program};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, WAIT_LIMIT, tests};
use crate::support::host::{copy_stream, pseudo_random_bytes};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    tcp_survives_loss,
    ftp_passes_translation_actively_and_passively,
    tftp_replies_from_another_port_pass,
    traceroute_and_path_mtu_errors_pass_translation,
];

/// Address that servers see instead of the client's.
const TRANSLATED: Ipv4Addr = Ipv4Addr::new(10, 1, 0, 100);

/// Connections to the ports of FTP and TFTP, and their data, from a translated address.
const HELPERS: TrackerPolicy = TrackerPolicy {
    flows: &[
        "table=0,priority=100,ip,actions=ct(nat,table=1)",
        "table=1,priority=300,ct_state=+trk+inv,actions=drop",
        "table=1,priority=200,ct_state=+trk+est,actions=resubmit(,2)",
        "table=1,priority=200,ct_state=+trk+rel-new,actions=resubmit(,2)",
        "table=1,priority=150,ip,ct_state=+trk+new+rel,actions=ct(commit,nat),resubmit(,2)",
        "table=1,priority=100,tcp,in_port=1,tp_dst=21,ct_state=+trk+new,actions=ct(commit,alg=ftp,nat(src=10.1.0.100)),resubmit(,2)",
        "table=1,priority=100,udp,in_port=1,tp_dst=69,ct_state=+trk+new,actions=ct(commit,alg=tftp,nat(src=10.1.0.100)),resubmit(,2)",
        "table=2,in_port=1,actions=output:2",
        "table=2,in_port=2,actions=output:1",
    ],
    ruleset: "table inet firewall {
        ct helper ftp-standard { type \"ftp\" protocol tcp; l3proto ip; }
        ct helper tftp-standard { type \"tftp\" protocol udp; l3proto ip; }
        chain helpers {
            type filter hook prerouting priority filter;
            tcp dport 21 ct helper set \"ftp-standard\"
            udp dport 69 ct helper set \"tftp-standard\"
        }
        chain forward {
            type filter hook forward priority filter; policy drop;
            ct state invalid drop
            ct state established,related accept
            ct state new ip saddr 10.1.0.1 tcp dport 21 accept
            ct state new ip saddr 10.1.0.1 udp dport 69 accept
        }
        chain postrouting {
            type nat hook postrouting priority srcnat;
            ip saddr 10.1.0.1 snat ip to 10.1.0.100
        }
    }
    ",
};

/// All connections from port 1, from a translated address.
const TRANSLATION: TrackerPolicy = TrackerPolicy {
    flows: &[
        "table=0,priority=100,ip,actions=ct(nat,table=1)",
        "table=1,priority=300,ct_state=+trk+inv,actions=drop",
        "table=1,priority=200,ct_state=+trk+est,actions=resubmit(,2)",
        "table=1,priority=200,ct_state=+trk+rel-new,actions=resubmit(,2)",
        "table=1,priority=100,ip,in_port=1,ct_state=+trk+new,actions=ct(commit,nat(src=10.1.0.100)),resubmit(,2)",
        "table=2,in_port=1,actions=output:2",
        "table=2,in_port=2,actions=output:1",
    ],
    ruleset: "table inet firewall {
        chain forward {
            type filter hook forward priority filter; policy drop;
            ct state invalid drop
            ct state established,related accept
            ct state new ip saddr 10.1.0.1 accept
        }
        chain postrouting {
            type nat hook postrouting priority srcnat;
            ip saddr 10.1.0.1 snat ip to 10.1.0.100
        }
    }
    ",
};

/// Runs `test` with each tracker, and names the tracker in a failure.
fn with_each(
    context: &TestContext,
    policy: &TrackerPolicy,
    test: fn(&Tracker<'_, '_>) -> TestResult,
) -> TestResult {
    for kind in TrackerKind::ALL {
        let network = TestNetwork::new(context, 2)?;
        let tracker = Tracker::start(kind, &network, policy)?;
        let (client, server) = network.host_pair();
        server
            .namespace
            .add_neighbour(server.interface, TRANSLATED, client.mac)?;
        test(&tracker).map_err(|error| match error {
            TestError::Fail(text) => TestError::Fail(format!("{kind:?}: {text}")),
            skip @ TestError::Skip(_) => skip,
        })?;
    }
    Ok(())
}

/// States of all connections of TCP.
fn tcp_states(tracker: &Tracker<'_, '_>) -> Result<Vec<String>, Failure> {
    let connections = tracker.connections()?.into_iter();
    let tcp = connections.filter(|one| one.protocol == "tcp");
    Ok(tcp.map(|one| one.state).collect())
}

/// Rules of a host that lose one packet in fifty before they are sent, and as many after they are
/// received: trackers miss segments, and see segments twice and out of order.
const LOSS: &str = "table ip loss {
    chain output {
        type filter hook output priority filter;
        numgen random mod 50 < 1 drop
    }
    chain input {
        type filter hook input priority filter;
        numgen random mod 50 < 1 drop
    }
}
";

fn tcp_survives_loss(context: &TestContext) -> TestResult {
    with_each(context, &FIREWALL, |tracker| {
        let (client, server) = tracker.network.host_pair();
        for host in [client, server] {
            let file = tracker.network.context.unique_path("loss.nft");
            fs::write(&file, LOSS)?;
            host.run(&format!("nft -f {}", file.display()))?
                .expect_success()?;
        }
        let file = pseudo_random_bytes(300_000);
        assert!(client.transfer(server, &file)? == file, "the file differs");
        let context = tracker.network.context;
        context.wait_until("the connection to be closed", || {
            Ok(tcp_states(tracker)? == ["TIME_WAIT"])
        })?;
        Ok(())
    })
}

/// Configuration of vsftpd for anonymous users. It runs without its sandbox, since it is already in
/// a namespace of its own.
fn vsftpd_configuration(directory: &str) -> String {
    format!(
        "listen=YES\nbackground=NO\nanonymous_enable=YES\nlocal_enable=NO\nanon_root={directory}\n\
         no_anon_password=YES\nsecure_chroot_dir={directory}\nnopriv_user=nobody\n\
         ftp_username=ftp\nisolate=NO\nisolate_network=NO\nseccomp_sandbox=NO\n\
         connect_from_port_20=YES\nport_enable=YES\npasv_enable=YES\n"
    )
}

/// Content of the file that servers offer.
const CONTENT: &str = "served through a tracker\n";

fn serve_directory(context: &TestContext) -> Result<String, TestError> {
    // An anonymous user must be able to read it, and not to write.
    let directory = context.unique_path("served");
    fs::create_dir_all(&directory)?;
    fs::write(directory.join("file.txt"), CONTENT)?;
    Ok(directory.display().to_string())
}

fn ftp_passes_translation_actively_and_passively(context: &TestContext) -> TestResult {
    if let Err(missing) =
        testbed::check(&[requirement("vsftpd", "vsftpd"), requirement("curl", "curl")])
    {
        return Err(TestError::Skip(missing.to_string()));
    }
    with_each(context, &HELPERS, |tracker| {
        let context = tracker.network.context;
        let directory = serve_directory(context)?;
        let file = context.unique_path("vsftpd.conf");
        fs::write(&file, vsftpd_configuration(&directory))?;
        let _server = tracker.start_program(2, &format!("vsftpd {}", file.display()))?;
        let client = tracker.network.host(1);
        let fetch = |options: &str| {
            client.run(&format!(
                "curl --silent --show-error --noproxy * --max-time 10 {options} ftp://10.1.0.2/file.txt"
            ))
        };
        context.wait_until("a file by passive FTP", || {
            Ok(fetch("--disable-epsv")?.stdout == CONTENT)
        })?;
        // PORT names the client's untranslated address, which the helper replaces.
        let active = fetch("--ftp-port - --disable-eprt")?;
        assert_eq!(active.stdout, CONTENT, "{}", active.stderr);
        // Data connections of both kinds, and control connections.
        let connections = tracker.connections()?;
        let has = |part: &str| connections.iter().any(|one| one.original.contains(part));
        assert!(has("dport=21") && has("sport=20"), "{connections:?}");
        Ok(())
    })
}

fn requirement(program: &'static str, package: &'static str) -> testbed::Requirement {
    testbed::Requirement::Program { program, package }
}

fn tftp_replies_from_another_port_pass(context: &TestContext) -> TestResult {
    if let Err(missing) = testbed::check(&[
        requirement("in.tftpd", "tftpd-hpa"),
        requirement("tftp", "tftp-hpa"),
    ]) {
        return Err(TestError::Skip(missing.to_string()));
    }
    with_each(context, &HELPERS, |tracker| {
        let context = tracker.network.context;
        let directory = serve_directory(context)?;
        let words = format!("in.tftpd -L --ipv4 --user nobody --secure {directory}");
        let _server = tracker.start_program(2, &words)?;
        let client = tracker.network.host(1);
        context.wait_until("a file by TFTP", || {
            let file = context.unique_path("fetched");
            let words = format!(
                "tftp -4 10.1.0.2 -m octet -c get file.txt {}",
                file.display()
            );
            let words = program(&words).inside(&client.namespace);
            CommandOutput::run(context, words)?;
            Ok(fs::read_to_string(&file).is_ok_and(|content| content == CONTENT))
        })?;
        let connections = tracker.connections()?;
        // The server replies from a port of its own to the translated address.
        let is_related = |one: &&super::trackers::ListedConnection| {
            one.original.starts_with("src=10.1.0.2,dst=10.1.0.100")
        };
        assert!(
            connections.iter().any(|one| is_related(&one)),
            "{connections:?}"
        );
        Ok(())
    })
}

/// A station two hops behind host 2, with a link of 1,000 bytes between them.
struct FarStation {
    namespace: Namespace,
}

impl FarStation {
    const ADDRESS: Ipv4Addr = Ipv4Addr::new(10, 3, 0, 9);

    fn attach(tracker: &Tracker<'_, '_>) -> Result<Self, Failure> {
        let (client, router) = tracker.network.host_pair();
        let namespace = Namespace::new()?;
        router.namespace.join("eth1", &namespace, "eth0")?;
        for (namespace, interface, address) in [
            (&router.namespace, "eth1", Ipv4Addr::new(10, 3, 0, 1)),
            (&namespace, "eth0", Self::ADDRESS),
        ] {
            namespace.set_up(interface)?;
            namespace.add_address(interface, address, 24)?;
            namespace.set_mtu(interface, 1000)?;
        }
        router.namespace.set_sysctl("net/ipv4/ip_forward", "1")?;
        let context = tracker.network.context;
        let route = |words: &str, namespace: &Namespace| {
            CommandOutput::run(context, program(words).inside(namespace))?.expect_success()
        };
        route("ip route add 10.3.0.0/24 via 10.1.0.2", &client.namespace)?;
        route("ip route add default via 10.3.0.1", &namespace)?;
        Ok(Self { namespace })
    }
}

fn traceroute_and_path_mtu_errors_pass_translation(context: &TestContext) -> TestResult {
    if let Err(missing) = testbed::check(&[requirement("traceroute", "traceroute")]) {
        return Err(TestError::Skip(missing.to_string()));
    }
    with_each(context, &TRANSLATION, |tracker| {
        let far = FarStation::attach(tracker)?;
        let client = tracker.network.host(1);
        // Time exceeded from the router, then port unreachable from the station.
        let hops = client.run("traceroute -n -q 1 -w 2 -m 4 10.3.0.9")?.stdout;
        let hops: Vec<_> = hops.lines().skip(1).collect();
        assert_eq!(hops.len(), 2, "{hops:?}");
        assert!(
            hops[0].contains("10.1.0.2") && hops[1].contains("10.3.0.9"),
            "{hops:?}"
        );
        // Segments are longer than the router's second link: it reports that, or the transfer hangs.
        let listener = far
            .namespace
            .run(|| std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 7000)))?
            .map_err(Failure::to("listen for TCP connections"))?;
        // The station announces its own short segments; the reverse direction does not know them.
        let stream = client.connect(FarStation::ADDRESS, 7000)?;
        let (accepted, peer) = listener
            .accept()
            .map_err(Failure::to("accept a TCP connection"))?;
        accepted
            .set_read_timeout(Some(WAIT_LIMIT))
            .map_err(Failure::to("set a read timeout"))?;
        assert_eq!(peer.ip(), TRANSLATED);
        let file = pseudo_random_bytes(100_000);
        assert!(copy_stream(&file, &stream, &accepted)? == file);
        let output = client.run("ping -n -c 1 -W 2 -M do -s 1200 10.3.0.9")?;
        let text = format!("{}{}", output.stdout, output.stderr);
        assert!(
            text.contains("mtu = 1000") || text.contains("mtu=1000"),
            "{text}"
        );
        Ok(())
    })
}
