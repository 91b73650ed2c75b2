//! Rules with the structure of Neutron's `openvswitch` firewall driver, for two instances of one
//! network. They are written by hand, not recorded from an agent.
//!
//! Register 5 has the port, register 6 the network, which is also the zone; mark 1 belongs to
//! connections that a later change of the security groups forbids.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use testbed::Failure;

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, copy_stream};
use crate::support::network::TestNetwork;
use crate::support::switch::{SECURE_2, SwitchProcess};

pub(crate) const TESTS: &[SystemTest] = tests![
    neutron_security_groups_filter_instances,
    neutron_ends_connections_of_removed_rules,
];

/// Tables of the driver.
const TRANSIENT_RULES: [&str; 9] = [
    "table=0,priority=0,actions=resubmit(,60)",
    "table=60,priority=3,actions=drop",
    "table=71,priority=0,actions=drop",
    "table=72,priority=0,actions=drop",
    "table=73,priority=0,actions=drop",
    "table=81,priority=0,actions=drop",
    "table=82,priority=0,actions=drop",
    "table=93,priority=0,actions=drop",
    "table=94,priority=1,actions=NORMAL",
];

/// Rules of one instance without its security groups: anti-spoofing, and connection tracking in
/// both directions.
fn instance_rules(port: usize, host: &TestHost<'_>) -> Vec<String> {
    let mac = host.mac.map(|byte| format!("{byte:02x}")).join(":");
    let address = host.address;
    let zone = "zone=NXM_NX_REG6[0..15]";
    let mark = "exec(load:0x1->NXM_NX_CT_MARK[])";
    let mut rules = vec![
        format!(
            "table=60,priority=100,in_port={port},actions=load:{port}->NXM_NX_REG5[],load:1->NXM_NX_REG6[],resubmit(,71)"
        ),
        // Only the instance's own addresses leave it.
        format!(
            "table=71,priority=95,arp,reg5={port},in_port={port},dl_src={mac},arp_spa={address},actions=resubmit(,94)"
        ),
        format!(
            "table=71,priority=65,ip,reg5={port},in_port={port},dl_src={mac},nw_src={address},actions=ct(table=72,{zone})"
        ),
        format!(
            "table=71,priority=10,ct_state=-trk,reg5={port},in_port={port},actions=resubmit(,93)"
        ),
        // All connections may leave.
        format!("table=72,priority=77,ct_state=+est-rel-rpl,ip,reg5={port},actions=resubmit(,73)"),
        format!("table=72,priority=77,ct_state=+new-est,ip,reg5={port},actions=resubmit(,73)"),
        // To an instance of the same switch, else to the network.
        format!(
            "table=73,priority=100,reg6=1,dl_dst={mac},actions=load:{port}->NXM_NX_REG5[],resubmit(,81)"
        ),
        format!(
            "table=73,priority=90,ct_state=+new-est,ip,reg5={port},actions=ct(commit,{zone}),resubmit(,94)"
        ),
        format!("table=73,priority=80,reg5={port},actions=resubmit(,94)"),
        format!("table=81,priority=100,arp,reg5={port},actions=output:{port}"),
        format!("table=81,priority=90,ct_state=-trk,ip,reg5={port},actions=ct(table=82,{zone})"),
        format!("table=81,priority=80,ct_state=+trk,reg5={port},actions=resubmit(,82)"),
    ];
    for (table, accept) in [
        (72, "resubmit(,73)".to_owned()),
        (82, format!("output:{port}")),
    ] {
        rules.extend([
            format!("table={table},priority=50,ct_state=+inv+trk,reg5={port},actions=resubmit(,93)"),
            format!("table={table},priority=50,ct_mark=0x1,reg5={port},actions=resubmit(,93)"),
            format!(
                "table={table},priority=50,ct_state=+est-rel+rpl,ct_zone=1,ct_mark=0,reg5={port},actions={accept}"
            ),
            format!(
                "table={table},priority=50,ct_state=-new-est+rel-inv,ct_zone=1,ct_mark=0,reg5={port},actions={accept}"
            ),
            format!("table={table},priority=40,ct_state=-est,reg5={port},actions=resubmit(,93)"),
            format!(
                "table={table},priority=40,ct_state=+est,ip,reg5={port},actions=ct(commit,{zone},{mark})"
            ),
        ]);
    }
    rules
}

/// Rules of a security group that permits SSH from everywhere to the instance at `port`.
fn ssh_rules(port: usize) -> [String; 2] {
    let zone = "zone=NXM_NX_REG6[0..15]";
    [
        format!(
            "table=82,priority=77,ct_state=+est-rel-rpl,tcp,reg5={port},tp_dst=22,actions=output:{port}"
        ),
        format!(
            "table=82,priority=77,ct_state=+new-est,tcp,reg5={port},tp_dst=22,actions=ct(commit,{zone}),output:{port}"
        ),
    ]
}

/// Rules of a security group that permits ICMP from members of a remote group, of which `member` is
/// one: a conjunction for each state.
fn remote_group_rules(port: usize, member: &TestHost<'_>) -> Vec<String> {
    let address = member.address;
    let mut rules = Vec::new();
    let zone = "zone=NXM_NX_REG6[0..15]";
    for (conjunction, state, actions) in [
        (18, "+est-rel-rpl", format!("output:{port}")),
        (19, "+new-est", format!("ct(commit,{zone}),output:{port}")),
    ] {
        rules.extend([
            format!(
                "table=82,priority=70,ct_state={state},icmp,reg6=1,nw_src={address},actions=conjunction({conjunction},1/2)"
            ),
            format!(
                "table=82,priority=70,ct_state={state},icmp,reg5={port},actions=conjunction({conjunction},2/2)"
            ),
            format!(
                "table=82,priority=70,conj_id={conjunction},ct_state={state},icmp,reg5={port},actions={actions}"
            ),
        ]);
    }
    rules
}

/// Starts a switch with two instances; the second accepts SSH, and ICMP from the first.
fn start<'g>(network: &TestNetwork<'g>) -> Result<SwitchProcess<'g>, Failure> {
    let switch = network.start_switch(SECURE_2)?;
    let mut rules: Vec<String> = TRANSIENT_RULES.map(str::to_owned).to_vec();
    for port in 1..=2 {
        rules.extend(instance_rules(port, network.host(port)));
    }
    rules.extend(ssh_rules(2));
    rules.extend(remote_group_rules(2, network.host(1)));
    for rule in rules {
        switch.ofctl(&format!("add-flow br0 {rule}"))?;
    }
    Ok(switch)
}

fn neutron_security_groups_filter_instances(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    let (first, second) = network.host_pair();
    first.ping_until_reply(second.address)?;
    first.ping(second.address, 5)?;
    assert!(
        !second.can_ping(first.address)?,
        "the first has no ingress rule"
    );
    let listener = second.listen(22)?;
    let stream = first.connect(second.address, 22)?;
    let (accepted, _) = listener
        .accept()
        .map_err(Failure::to("accept a TCP connection"))?;
    assert_eq!(copy_stream(b"request", &stream, &accepted)?, b"request");
    assert_eq!(copy_stream(b"reply", &accepted, &stream)?, b"reply");
    let _other = second.listen(23)?;
    assert!(!can_connect(first, second, 23)?, "port 23 has no rule");
    let _listener = first.listen(22)?;
    assert!(
        !can_connect(second, first, 22)?,
        "the first has no ingress rule"
    );
    // The address of another instance does not leave the first.
    let mut capture = second.capture_frames()?;
    let header = |src: &str| {
        format!("eth(src=02:00:00:00:00:01,dst=02:00:00:00:00:02) / ipv4(src={src},dst=10.1.0.2)")
    };
    let spoofed = format!("{} / icmp(type=8) / data(9)", header("10.1.0.77"));
    let own = format!("{} / icmp(type=8) / data(11)", header("10.1.0.1"));
    first.send(&[&spoofed, &own])?;
    loop {
        let frame = packet::build::Stack::dissect(&capture.next_frame()?).to_string();
        assert!(!frame.contains("10.1.0.77"), "{frame}");
        if frame.contains("data(11)") {
            break;
        }
    }
    let dump = switch.appctl("dpctl/dump-conntrack zone=1")?;
    assert!(
        dump.contains("dport=22") && !dump.contains("dport=23"),
        "{dump}"
    );
    Ok(())
}

fn neutron_ends_connections_of_removed_rules(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 2)?;
    let switch = start(&network)?;
    let (first, second) = network.host_pair();
    let listener = second.listen(22)?;
    let mut stream = first.connect(second.address, 22)?;
    let (mut accepted, _) = listener
        .accept()
        .map_err(Failure::to("accept a TCP connection"))?;
    assert_eq!(copy_stream(b"before", &stream, &accepted)?, b"before");
    switch.ofctl(
        "--strict del-flows br0 table=82,priority=77,ct_state=+est-rel-rpl,tcp,reg5=2,tp_dst=22",
    )?;
    switch.ofctl(
        "--strict del-flows br0 table=82,priority=77,ct_state=+new-est,tcp,reg5=2,tp_dst=22",
    )?;
    stream.write_all(b"after")?;
    switch.wait_until("the mark of a forbidden connection", |switch| {
        let dump = switch.appctl("dpctl/dump-conntrack zone=1")?;
        Ok(dump
            .lines()
            .any(|line| line.contains("dport=22") && line.contains("mark=1")))
    })?;
    accepted.set_read_timeout(Some(Duration::from_millis(300)))?;
    let mut received = [0; 5];
    assert!(accepted.read_exact(&mut received).is_err(), "data arrive");
    assert!(!can_connect(first, second, 22)?, "the rule is removed");
    Ok(())
}

/// True if a connection is established within 300 ms.
fn can_connect(from: &TestHost<'_>, to: &TestHost<'_>, port: u16) -> Result<bool, Failure> {
    let address = (to.address, port).into();
    let limit = Duration::from_millis(300);
    from.namespace
        .run(|| TcpStream::connect_timeout(&address, limit).is_ok())
}
