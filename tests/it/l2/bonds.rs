//! Ports that are several interfaces, as the database says them, with a real Open vSwitch at the
//! other end of their cables.

use std::collections::BTreeMap;

use testbed::{Failure, Process};

use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::{Deployment, VswitchdProcess};
use crate::support::frames::FrameCapture;
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;
use crate::support::open_vswitch::{appctl, start_ovs_vswitchd};

pub(crate) const TESTS: &[SystemTest] = tests![
    bonds_are_told_of_as_by_open_vswitch,
    where_one_member_carries_all_another_takes_over,
    sources_are_shared_and_nothing_comes_twice_or_back,
    members_that_speak_lacp_share_flows,
    without_a_partner_one_member_carries_all_if_that_is_wanted,
];

/// The type of frames that nobody else sends (IEEE 802, local experimental).
const EXPERIMENT: [u8; 2] = [0x88, 0xb5];

/// How many frames are sent at once.
const MANY: u16 = 64;

/// Two cables between a home with one host, the first, and another with one, the second.
struct Ends<'g> {
    here: TestNetwork<'g>,
    there: TestNetwork<'g>,
}

impl<'g> Ends<'g> {
    fn new(context: &'g TestContext) -> Result<Self, Failure> {
        let (here, there) = (TestNetwork::new(context, 1)?, TestNetwork::new(context, 2)?);
        for cable in ["c1", "c2"] {
            here.switch_namespace
                .join(cable, &there.switch_namespace, cable)?;
            here.switch_namespace.set_up(cable)?;
            there.switch_namespace.set_up(cable)?;
        }
        Ok(Self { here, there })
    }

    fn host_pair(&self) -> (&TestHost<'g>, &TestHost<'g>) {
        (self.here.host(1), self.there.host(2))
    }
}

/// The words that make a bridge of the port of a host and what is behind them.
fn bridge(port: &str, others: &str) -> String {
    format!("add-br br0 -- set Bridge br0 datapath_type=netdev -- add-port br0 {port} -- {others}")
}

/// The words for two ports that know nothing of each other.
const APART: &str = "add-port br0 c1 -- add-port br0 c2";

/// Frames with numbers, to `to` and from many stations or one.
fn numbered(to: [u8; 6], from: impl Fn(u16) -> [u8; 6], count: u16) -> Vec<Vec<u8>> {
    let frame = |number: u16| {
        let parts = [
            &to[..],
            &from(number),
            &EXPERIMENT,
            &number.to_be_bytes(),
            &[0; 44],
        ];
        parts.concat()
    };
    (0..count).map(frame).collect()
}

/// One of many stations that do not exist.
fn station(number: u16) -> [u8; 6] {
    let [high, low] = number.to_be_bytes();
    [2, 0, 0, 7, high, low]
}

/// How often each of the frames with numbers was seen, until one had all that stands last.
fn count(capture: &mut FrameCapture<'_>, last: u16) -> Result<BTreeMap<u16, usize>, Failure> {
    let mut seen = BTreeMap::new();
    while !seen.contains_key(&last) {
        let frame = capture.next_frame()?;
        let bytes = frame.bytes();
        if bytes.get(12..14) == Some(&EXPERIMENT) {
            let number = u16::from_be_bytes([bytes[14], bytes[15]]);
            *seen.entry(number).or_insert(0) += 1;
        }
    }
    Ok(seen)
}

/// Has one host send frames to many, and fails unless each comes once to the other.
fn come_once(
    from: &TestHost<'_>,
    to: &TestHost<'_>,
    by: impl Fn(u16) -> [u8; 6],
) -> Result<(), Failure> {
    let mut capture = to.capture_frames()?;
    from.send_bytes(&numbered([0xff; 6], by, MANY))?;
    // What comes by another cable may be late.
    for last in [MANY, MANY + 1] {
        let frames = numbered([0xff; 6], |_| from.mac, last + 1);
        from.send_bytes(&frames[usize::from(last)..])?;
        let seen = count(&mut capture, last)?;
        assert!(seen.values().all(|count| *count == 1), "{seen:?}");
        if last == MANY {
            assert_eq!(seen.len(), usize::from(MANY) + 1, "{seen:?}");
        }
    }
    Ok(())
}

/// Frames that a port of the other end has received.
fn received(deployment: &Deployment<'_, '_>, port: &str) -> Result<u64, Failure> {
    let told = deployment.run_tool(&format!("ovs-ofctl dump-ports br0 {port}"))?;
    let count = told.split_once("rx pkts=").map(|(_, rest)| rest);
    let count = count.and_then(|rest| rest.split(',').next()?.trim().parse().ok());
    Ok(count.unwrap_or(0))
}

/// Whether the other end knows the first host behind this port.
fn is_known(deployment: &Deployment<'_, '_>, port: &str) -> Result<bool, Failure> {
    let number = deployment.vsctl(&format!("get Interface {port} ofport"))?;
    let known = appctl(deployment, "fdb/show br0")?;
    let mut lines = known.lines().map(str::split_whitespace);
    Ok(lines.any(|mut words| {
        words.next() == Some(number.as_str()) && words.any(|word| word == "02:00:00:00:00:01")
    }))
}

/// Waits until it does.
fn wait_until_known(deployment: &Deployment<'_, '_>, port: &str) -> Result<(), Failure> {
    let what = format!("the host to be known at {port}");
    deployment
        .network
        .context
        .wait_until(&what, || is_known(deployment, port))
}

/// Waits until what is told has this in it.
fn wait_for(deployment: &Deployment<'_, '_>, question: &str, part: &str) -> Result<(), Failure> {
    let what = format!("'{question}' to tell '{part}'");
    deployment
        .network
        .context
        .wait_until(&what, || Ok(appctl(deployment, question)?.contains(part)))
}

/// Both daemons, told what stands behind the ports of their hosts.
fn start<'s, 'r, 'g>(
    ours: &'s Deployment<'r, 'g>,
    other: &'s Deployment<'r, 'g>,
    (here, there): (&str, &str),
) -> Result<(VswitchdProcess<'s, 'g>, Process), TestError> {
    let daemons = (ours.start_daemon()?, start_ovs_vswitchd(other, "")?);
    ours.vsctl(&bridge("p1", here))?;
    other.vsctl(&bridge("p2", there))?;
    Ok(daemons)
}

/// Questions to which both have the same answer, after words to their databases.
#[rustfmt::skip]
const QUESTIONS: [(&str, &[&str]); 4] = [
    ("", &[
        "bond/list", "bond/show", "bond/show bond0", "bond/show nope",
        "bond/set-active-member bond0 p1", "bond/set-active-member bond0 p2", "bond/set-active-slave bond0 p1",
        "bond/set-active-member bond0 nope", "bond/set-active-member nope p1",
        "bond/migrate bond0 1 p1", "bond/migrate nope 1 p1",
        "bond/enable-member bond0 nope", "bond/enable-slave nope p1", "bond/disable-slave nope p1",
        "bond/disable-member bond0 p2", "bond/enable-member bond0 p2",
        "bond/hash 00:00:00:00:00:01", "bond/hash 00:00:00:00:00:01 1", "bond/hash 00:00:00:00:00:01 1 1",
        "bond/hash foo", "bond/hash 00:00:00:00:00:01 x", "bond/hash 00:00:00:00:00:01 1 x",
        "lacp/show", "lacp/show bond0", "lacp/show-stats", "lacp/show-stats bond0",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:01,dl_dst=ff:ff:ff:ff:ff:ff -generate",
        "ofproto/trace br0 in_port=1,dl_type=0x88b5,dl_src=02:00:00:00:00:02,dl_dst=ff:ff:ff:ff:ff:ff -generate",
        "ofproto/trace br0 in_port=3,dl_type=0x88b5,dl_src=02:00:00:00:00:03,dl_dst=02:00:00:00:00:02 -generate",
        "fdb/show br0",
    ]),
    ("set Port bond0 bond_mode=balance-slb", &[
        "bond/list", "bond/show", "bond/migrate bond0 1 p1", "bond/migrate bond0 999 p2",
        "bond/migrate bond0 foo p2", "bond/migrate bond0 1 p9",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:03,dl_dst=02:00:00:00:00:09",
        "ofproto/trace br0 in_port=2,dl_type=0x88b5,dl_src=02:00:00:00:00:04,dl_dst=ff:ff:ff:ff:ff:ff",
    ]),
    ("set Port bond0 bond_mode=active-backup bond_updelay=200 bond_downdelay=100 other_config:bond-primary=p9", &["bond/show"]),
    ("set Port bond0 other_config:bond-primary=p1 other_config:bond-hash-basis=7 other_config:lacp-fallback-ab=true", &["bond/show"]),
];

/// What is told, without what is another at each moment or on each machine.
fn lasting(told: &str) -> String {
    let line = |line: &str| match line.split_once(": ") {
        Some(("next rebalance", _)) => "next rebalance".to_owned(),
        Some(("active member mac", member)) => {
            let (_, name) = member.split_once('(').unwrap_or_default();
            format!("active member ({name}")
        }
        Some(("Megaflow" | "Datapath actions", _)) => String::new(),
        // Stations behind a bond are told of by the number of any member, and grow old.
        _ if line.starts_with("    ") && line.contains("  02:00:00:00:00:") => {
            let mut words: Vec<_> = line.split_whitespace().take(3).collect();
            if words[0] == "1" {
                words[0] = "2";
            }
            words.join(" ")
        }
        // Members are listed in any order, and bonds have numbers for other uses.
        _ if line.starts_with("bond0\t") => {
            let words = line.split(['\t', ',', ' ']).enumerate();
            let words = words.filter(|(place, word)| *place != 2 && !word.is_empty());
            let mut words: Vec<_> = words.map(|(_, word)| word).collect();
            words.sort_unstable();
            words.join(" ")
        }
        _ => line.to_owned(),
    };
    told.lines().map(line).collect::<Vec<_>>().join("\n")
}

fn bonds_are_told_of_as_by_open_vswitch(context: &TestContext) -> TestResult {
    let (here, there) = (TestNetwork::new(context, 3)?, TestNetwork::new(context, 3)?);
    let (ours, other) = (
        Deployment::in_directory(&here, "ours")?,
        Deployment::in_directory(&there, "theirs")?,
    );
    let (_daemon, _theirs) = (ours.start_daemon()?, start_ovs_vswitchd(&other, "")?);
    for deployment in [&ours, &other] {
        let bond = "add-bond br0 bond0 p1 p2 \
                    -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2 \
                    -- set Interface p3 ofport_request=3";
        deployment.vsctl(&bridge("p3", bond))?;
        wait_for(deployment, "bond/show", "member p2: enabled")?;
        appctl(deployment, "bond/set-active-member bond0 p1")?;
    }
    for (words, questions) in QUESTIONS {
        for deployment in [&ours, &other] {
            if !words.is_empty() {
                deployment.vsctl(words)?;
                appctl(deployment, "bond/set-active-member bond0 p1")?;
            }
        }
        for question in questions {
            assert_eq!(
                lasting(&appctl(&ours, question)?),
                lasting(&appctl(&other, question)?),
                "{words}: {question}"
            );
        }
    }
    // What leads nowhere is not used, and is not made active.
    for (deployment, network) in [(&ours, &here), (&other, &there)] {
        network.host(2).namespace.set_down("eth0")?;
        wait_for(deployment, "bond/show", "member p2: disabled")?;
    }
    for question in ["bond/set-active-member bond0 p2", "bond/show"] {
        let told = lasting(&appctl(&ours, question)?);
        assert_eq!(told, lasting(&appctl(&other, question)?), "{question}");
    }
    // The database has who is active; a member that cannot be says why.
    let address = ours.vsctl("get Interface p1 mac_in_use")?;
    ours.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    ours.vsctl("add-bond br0 bond1 x1 x2 -- set Interface x1 type=patch options:peer=x2")?;
    let said = ours.vsctl("get Interface x1 error")?;
    assert!(said.contains("bonds are of interfaces"), "{said}");
    Ok(())
}

fn where_one_member_carries_all_another_takes_over(context: &TestContext) -> TestResult {
    let ends = Ends::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&ends.here, "ours")?,
        Deployment::in_directory(&ends.there, "theirs")?,
    );
    let _daemons = start(&ours, &other, ("add-bond br0 bond0 c1 c2", APART))?;
    let (one, two) = ends.host_pair();
    one.ping_until_reply(two.address)?;
    wait_until_known(&other, "c1")?;
    come_once(one, two, station)?;
    come_once(two, one, station)?;
    assert_eq!(received(&other, "c2")?, 0, "it is only there in case");
    // The host says nothing, and is known where it is reached now.
    ends.there.switch_namespace.set_down("c1")?;
    wait_until_known(&other, "c2")?;
    // What the other end keeps of flows may be older than what it knows.
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    two.ping(one.address, 10)?;
    come_once(one, two, |_| one.mac)?;
    come_once(two, one, |_| two.mac)?;
    let address = ours.vsctl("get Interface c2 mac_in_use")?;
    ours.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    // Who took over stays, but for one that is preferred.
    ends.there.switch_namespace.set_up("c1")?;
    wait_for(&ours, "bond/show", "member c1: enabled\n  may_enable")?;
    ours.vsctl("set Port bond0 other_config:bond-primary=c1")?;
    wait_for(&ours, "bond/show", "member c1: enabled\n  active member")?;
    wait_until_known(&other, "c1")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    // Two ports from now on: each is known for itself.
    ours.vsctl("del-port br0 bond0")?;
    assert_eq!(appctl(&ours, "bond/show bond0")?, "no such bond\n");
    ours.vsctl("add-port br0 c1")?;
    one.ping_until_reply(two.address)?;
    Ok(())
}

fn sources_are_shared_and_nothing_comes_twice_or_back(context: &TestContext) -> TestResult {
    let ends = Ends::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&ends.here, "ours")?,
        Deployment::in_directory(&ends.there, "theirs")?,
    );
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-slb";
    let _daemons = start(&ours, &other, (bond, APART))?;
    let (one, two) = ends.host_pair();
    one.ping_until_reply(two.address)?;
    two.ping_until_reply(one.address)?;
    let mut back = one.capture_frames()?;
    come_once(one, two, station)?;
    // The other end floods what is for many by all its ports: ours came back, and went no further.
    two.send_bytes(&numbered([0xff; 6], |_| two.mac, 1))?;
    let seen = count(&mut back, 0)?;
    assert_eq!(seen, BTreeMap::from([(0, 1)]));
    for cable in ["c1", "c2"] {
        assert!(received(&other, cable)? > 10, "{cable} carries its part");
    }
    come_once(two, one, |_| two.mac)?;
    one.ping(two.address, 20)?;
    two.ping(one.address, 20)?;
    let counters = appctl(&ours, "comporta/counters")?;
    assert!(counters.contains("normal_bond"), "{counters}");
    // A source is moved by hand.
    let hash = appctl(&ours, "bond/hash 02:00:00:00:00:01")?;
    for cable in ["c1", "c2"] {
        let moved = appctl(
            &ours,
            &format!("bond/migrate bond0 {} {cable}", hash.trim()),
        )?;
        assert_eq!(moved, "migrated\n");
        // The other end may count what came before by the other cable only now.
        context.wait_until("the host to be known where it was moved to", || {
            one.can_ping(two.address)?;
            is_known(&other, cable)
        })?;
    }
    // What leads nowhere carries nothing.
    ends.there.switch_namespace.set_down("c2")?;
    wait_for(&ours, "bond/show", "member c2: disabled")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 10)?;
    wait_until_known(&other, "c1")?;
    come_once(one, two, |_| one.mac)?;
    Ok(())
}

/// Datagrams of many flows between the two hosts.
fn flows(from: &TestHost<'_>, to: &TestHost<'_>) -> Vec<String> {
    let address = |mac: [u8; 6]| {
        let parts = mac.map(|part| format!("{part:02x}"));
        parts.join(":")
    };
    let link = format!("eth(dst={},src={})", address(to.mac), address(from.mac));
    let datagram = |port: u16| {
        let (src, dst) = (from.address, to.address);
        format!("{link}/ipv4(src={src},dst={dst})/udp(src={port},dst=9)")
    };
    (1..=MANY).map(datagram).collect()
}

/// Fails unless both tell of both ends, in the same words.
fn tell_of_both_ends(ours: &Deployment<'_, '_>, other: &Deployment<'_, '_>) -> Result<(), Failure> {
    let told = appctl(ours, "lacp/show bond0")?;
    let system = appctl(other, "lacp/show bond0")?;
    let system = system.lines().find(|line| line.contains("  sys_id: "));
    let system = system.unwrap_or_default().trim();
    assert!(told.contains(&format!("  partner {system}\n")), "{told}");
    let state = "activity timeout aggregation synchronized collecting distributing";
    assert!(
        told.contains(&format!("  actor state: {state}\n")),
        "{told}"
    );
    let shape = |told: &str| {
        let names = told
            .lines()
            .map(|line| line.split(": ").next().unwrap_or_default());
        names.map(str::to_owned).collect::<Vec<_>>()
    };
    for question in ["lacp/show", "lacp/show-stats"] {
        assert_eq!(
            shape(&appctl(ours, question)?),
            shape(&appctl(other, question)?)
        );
    }
    Ok(())
}

fn members_that_speak_lacp_share_flows(context: &TestContext) -> TestResult {
    let ends = Ends::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&ends.here, "ours")?,
        Deployment::in_directory(&ends.there, "theirs")?,
    );
    let bond = |lacp: &str| {
        format!(
            "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp={lacp} other_config:lacp-time=fast"
        )
    };
    let words = (bond("active"), bond("passive"));
    let _daemons = start(&ours, &other, (&words.0, &words.1))?;
    wait_for(&ours, "lacp/show", "status: active negotiated")?;
    wait_for(&other, "lacp/show", "status: passive negotiated")?;
    let (one, two) = ends.host_pair();
    one.ping_until_reply(two.address)?;
    for cable in ["c1", "c2"] {
        ours.wait_for_column(&format!("get Interface {cable} lacp_current"), "true")?;
    }
    for (from, to, deployment) in [(one, two, &other), (two, one, &ours)] {
        from.ping(to.address, 5)?;
        let before = ["c1", "c2"].map(|cable| received(deployment, cable));
        let flows = flows(from, to);
        from.send(&flows.iter().map(String::as_str).collect::<Vec<_>>())?;
        for (cable, before) in ["c1", "c2"].into_iter().zip(before) {
            let before = before?;
            context.wait_until("both to carry flows", || {
                Ok(received(deployment, cable)? >= before + 10)
            })?;
        }
        come_once(from, to, |_| from.mac)?;
    }
    tell_of_both_ends(&ours, &other)?;
    // A cable that is cut is left out by both.
    ends.here.switch_namespace.set_down("c1")?;
    wait_for(&other, "bond/show", "member c1: disabled")?;
    wait_for(&ours, "bond/show", "member c1: disabled")?;
    one.ping(two.address, 10)?;
    // The other begins.
    ours.vsctl("set Port bond0 lacp=passive")?;
    other.vsctl("set Port bond0 lacp=active")?;
    ends.here.switch_namespace.set_up("c1")?;
    for deployment in [&ours, &other] {
        wait_for(deployment, "bond/show", "member c1: enabled")?;
        wait_for(deployment, "lacp/show", "negotiated")?;
    }
    one.ping(two.address, 10)?;
    come_once(one, two, |_| one.mac)?;
    Ok(())
}

fn without_a_partner_one_member_carries_all_if_that_is_wanted(context: &TestContext) -> TestResult {
    let ends = Ends::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&ends.here, "ours")?,
        Deployment::in_directory(&ends.there, "theirs")?,
    );
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp=active \
                other_config:lacp-time=fast";
    let _daemons = start(&ours, &other, (bond, APART))?;
    let (one, two) = ends.host_pair();
    wait_for(&ours, "lacp/show", "member: c2: defaulted detached")?;
    assert!(!one.can_ping(two.address)?, "nothing is agreed");
    ours.wait_for_column("get Port bond0 bond_active_slave", "[]")?;
    ours.vsctl("set Port bond0 other_config:lacp-fallback-ab=true")?;
    wait_for(&ours, "bond/show", "active member\n")?;
    one.ping_until_reply(two.address)?;
    one.ping(two.address, 5)?;
    come_once(one, two, |_| one.mac)?;
    come_once(two, one, |_| two.mac)?;
    let told = appctl(&ours, "bond/show")?;
    assert!(told.contains("lacp_status: configured\n"), "{told}");
    ours.wait_for_column("get Interface c1 lacp_current", "false")?;
    Ok(())
}
