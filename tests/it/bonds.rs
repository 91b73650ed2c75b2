//! Ports that are several interfaces, as the database says them, with a real Open vSwitch at the
//! other end of their cables.

use std::collections::BTreeMap;

use testbed::{Failure, Process};

use crate::eye::Eye;
use crate::ground::{Ground, Outcome, Rule, Stop, rules};
use crate::host::Host;
use crate::rig::Rig;
use crate::site::{Daemon, Site};
use crate::unixctl::{asked, theirs};

pub(crate) const RULES: &[Rule] = rules![
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
    here: Rig<'g>,
    there: Rig<'g>,
}

impl<'g> Ends<'g> {
    fn new(ground: &'g Ground) -> Result<Self, Failure> {
        let (here, there) = (Rig::new(ground, 1)?, Rig::new(ground, 2)?);
        for cable in ["c1", "c2"] {
            here.home.join(cable, &there.home, cable)?;
            here.home.set_up(cable)?;
            there.home.set_up(cable)?;
        }
        Ok(Self { here, there })
    }

    fn pair(&self) -> (&Host<'g>, &Host<'g>) {
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
fn count(eye: &mut Eye<'_>, last: u16) -> Result<BTreeMap<u16, usize>, Failure> {
    let mut seen = BTreeMap::new();
    while !seen.contains_key(&last) {
        let frame = eye.next()?;
        let bytes = frame.bytes();
        if bytes.get(12..14) == Some(&EXPERIMENT) {
            let number = u16::from_be_bytes([bytes[14], bytes[15]]);
            *seen.entry(number).or_insert(0) += 1;
        }
    }
    Ok(seen)
}

/// Has one host send frames to many, and fails unless each comes once to the other.
fn come_once(from: &Host<'_>, to: &Host<'_>, by: impl Fn(u16) -> [u8; 6]) -> Result<(), Failure> {
    let mut eye = to.eye()?;
    from.send_bytes(&numbered([0xff; 6], by, MANY))?;
    // What comes by another cable may be late.
    for last in [MANY, MANY + 1] {
        let frames = numbered([0xff; 6], |_| from.mac, last + 1);
        from.send_bytes(&frames[usize::from(last)..])?;
        let seen = count(&mut eye, last)?;
        assert!(seen.values().all(|count| *count == 1), "{seen:?}");
        if last == MANY {
            assert_eq!(seen.len(), usize::from(MANY) + 1, "{seen:?}");
        }
    }
    Ok(())
}

/// Frames that a port of the other end has received.
fn received(site: &Site<'_, '_>, port: &str) -> Result<u64, Failure> {
    let told = site.tool(&format!("ovs-ofctl dump-ports br0 {port}"))?;
    let count = told.split_once("rx pkts=").map(|(_, rest)| rest);
    let count = count.and_then(|rest| rest.split(',').next()?.trim().parse().ok());
    Ok(count.unwrap_or(0))
}

/// Whether the other end knows the first host behind this port.
fn is_known(site: &Site<'_, '_>, port: &str) -> Result<bool, Failure> {
    let number = site.vsctl(&format!("get Interface {port} ofport"))?;
    let known = asked(site, "fdb/show br0")?;
    let mut lines = known.lines().map(str::split_whitespace);
    Ok(lines.any(|mut words| {
        words.next() == Some(number.as_str()) && words.any(|word| word == "02:00:00:00:00:01")
    }))
}

/// Waits until it does.
fn wait_until_known(site: &Site<'_, '_>, port: &str) -> Result<(), Failure> {
    let what = format!("the host to be known at {port}");
    site.rig.ground.wait_until(&what, || is_known(site, port))
}

/// Waits until what is told has this in it.
fn wait_for(site: &Site<'_, '_>, question: &str, part: &str) -> Result<(), Failure> {
    let what = format!("'{question}' to tell '{part}'");
    site.rig
        .ground
        .wait_until(&what, || Ok(asked(site, question)?.contains(part)))
}

/// Both daemons, told what stands behind the ports of their hosts.
fn start<'s, 'r, 'g>(
    ours: &'s Site<'r, 'g>,
    other: &'s Site<'r, 'g>,
    (here, there): (&str, &str),
) -> Result<(Daemon<'s, 'g>, Process), Stop> {
    let daemons = (ours.daemon()?, theirs(other, "")?);
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

fn bonds_are_told_of_as_by_open_vswitch(ground: &Ground) -> Outcome {
    let (here, there) = (Rig::new(ground, 3)?, Rig::new(ground, 3)?);
    let (ours, other) = (Site::at(&here, "ours")?, Site::at(&there, "theirs")?);
    let (_daemon, _theirs) = (ours.daemon()?, theirs(&other, "")?);
    for site in [&ours, &other] {
        let bond = "add-bond br0 bond0 p1 p2 \
                    -- set Interface p1 ofport_request=1 -- set Interface p2 ofport_request=2 \
                    -- set Interface p3 ofport_request=3";
        site.vsctl(&bridge("p3", bond))?;
        wait_for(site, "bond/show", "member p2: enabled")?;
        asked(site, "bond/set-active-member bond0 p1")?;
    }
    for (words, questions) in QUESTIONS {
        for site in [&ours, &other] {
            if !words.is_empty() {
                site.vsctl(words)?;
                asked(site, "bond/set-active-member bond0 p1")?;
            }
        }
        for question in questions {
            assert_eq!(
                lasting(&asked(&ours, question)?),
                lasting(&asked(&other, question)?),
                "{words}: {question}"
            );
        }
    }
    // What leads nowhere is not used, and is not made active.
    for (site, rig) in [(&ours, &here), (&other, &there)] {
        rig.host(2).namespace.set_down("eth0")?;
        wait_for(site, "bond/show", "member p2: disabled")?;
    }
    for question in ["bond/set-active-member bond0 p2", "bond/show"] {
        let told = lasting(&asked(&ours, question)?);
        assert_eq!(told, lasting(&asked(&other, question)?), "{question}");
    }
    // The database has who is active; a member that cannot be says why.
    let address = ours.vsctl("get Interface p1 mac_in_use")?;
    ours.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    ours.vsctl("add-bond br0 bond1 x1 x2 -- set Interface x1 type=patch options:peer=x2")?;
    let said = ours.vsctl("get Interface x1 error")?;
    assert!(said.contains("bonds are of interfaces"), "{said}");
    Ok(())
}

fn where_one_member_carries_all_another_takes_over(ground: &Ground) -> Outcome {
    let ends = Ends::new(ground)?;
    let (ours, other) = (
        Site::at(&ends.here, "ours")?,
        Site::at(&ends.there, "theirs")?,
    );
    let _daemons = start(&ours, &other, ("add-bond br0 bond0 c1 c2", APART))?;
    let (one, two) = ends.pair();
    one.reach(two.address)?;
    wait_until_known(&other, "c1")?;
    come_once(one, two, station)?;
    come_once(two, one, station)?;
    assert_eq!(received(&other, "c2")?, 0, "it is only there in case");
    // The host says nothing, and is known where it is reached now.
    ends.there.home.set_down("c1")?;
    wait_until_known(&other, "c2")?;
    // What the other end keeps of flows may be older than what it knows.
    one.reach(two.address)?;
    one.ping(two.address, 10)?;
    two.ping(one.address, 10)?;
    come_once(one, two, |_| one.mac)?;
    come_once(two, one, |_| two.mac)?;
    let address = ours.vsctl("get Interface c2 mac_in_use")?;
    ours.wait_for_column("get Port bond0 bond_active_slave", &address)?;
    // Who took over stays, but for one that is preferred.
    ends.there.home.set_up("c1")?;
    wait_for(&ours, "bond/show", "member c1: enabled\n  may_enable")?;
    ours.vsctl("set Port bond0 other_config:bond-primary=c1")?;
    wait_for(&ours, "bond/show", "member c1: enabled\n  active member")?;
    wait_until_known(&other, "c1")?;
    one.reach(two.address)?;
    one.ping(two.address, 10)?;
    // Two ports from now on: each is known for itself.
    ours.vsctl("del-port br0 bond0")?;
    assert_eq!(asked(&ours, "bond/show bond0")?, "no such bond\n");
    ours.vsctl("add-port br0 c1")?;
    one.reach(two.address)?;
    Ok(())
}

fn sources_are_shared_and_nothing_comes_twice_or_back(ground: &Ground) -> Outcome {
    let ends = Ends::new(ground)?;
    let (ours, other) = (
        Site::at(&ends.here, "ours")?,
        Site::at(&ends.there, "theirs")?,
    );
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-slb";
    let _daemons = start(&ours, &other, (bond, APART))?;
    let (one, two) = ends.pair();
    one.reach(two.address)?;
    two.reach(one.address)?;
    let mut back = one.eye()?;
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
    let counters = asked(&ours, "comporta/counters")?;
    assert!(counters.contains("normal_bond"), "{counters}");
    // A source is moved by hand.
    let hash = asked(&ours, "bond/hash 02:00:00:00:00:01")?;
    for cable in ["c1", "c2"] {
        let moved = asked(
            &ours,
            &format!("bond/migrate bond0 {} {cable}", hash.trim()),
        )?;
        assert_eq!(moved, "migrated\n");
        // The other end may count what came before by the other cable only now.
        ground.wait_until("the host to be known where it was moved to", || {
            one.answers(two.address)?;
            is_known(&other, cable)
        })?;
    }
    // What leads nowhere carries nothing.
    ends.there.home.set_down("c2")?;
    wait_for(&ours, "bond/show", "member c2: disabled")?;
    one.reach(two.address)?;
    one.ping(two.address, 10)?;
    wait_until_known(&other, "c1")?;
    come_once(one, two, |_| one.mac)?;
    Ok(())
}

/// Datagrams of many flows between the two hosts.
fn flows(from: &Host<'_>, to: &Host<'_>) -> Vec<String> {
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
fn tell_of_both_ends(ours: &Site<'_, '_>, other: &Site<'_, '_>) -> Result<(), Failure> {
    let told = asked(ours, "lacp/show bond0")?;
    let system = asked(other, "lacp/show bond0")?;
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
            shape(&asked(ours, question)?),
            shape(&asked(other, question)?)
        );
    }
    Ok(())
}

fn members_that_speak_lacp_share_flows(ground: &Ground) -> Outcome {
    let ends = Ends::new(ground)?;
    let (ours, other) = (
        Site::at(&ends.here, "ours")?,
        Site::at(&ends.there, "theirs")?,
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
    let (one, two) = ends.pair();
    one.reach(two.address)?;
    for cable in ["c1", "c2"] {
        ours.wait_for_column(&format!("get Interface {cable} lacp_current"), "true")?;
    }
    for (from, to, site) in [(one, two, &other), (two, one, &ours)] {
        from.ping(to.address, 5)?;
        let before = ["c1", "c2"].map(|cable| received(site, cable));
        let flows = flows(from, to);
        from.send(&flows.iter().map(String::as_str).collect::<Vec<_>>())?;
        for (cable, before) in ["c1", "c2"].into_iter().zip(before) {
            let before = before?;
            ground.wait_until("both to carry flows", || {
                Ok(received(site, cable)? >= before + 10)
            })?;
        }
        come_once(from, to, |_| from.mac)?;
    }
    tell_of_both_ends(&ours, &other)?;
    // A cable that is cut is left out by both.
    ends.here.home.set_down("c1")?;
    wait_for(&other, "bond/show", "member c1: disabled")?;
    wait_for(&ours, "bond/show", "member c1: disabled")?;
    one.ping(two.address, 10)?;
    // The other begins.
    ours.vsctl("set Port bond0 lacp=passive")?;
    other.vsctl("set Port bond0 lacp=active")?;
    ends.here.home.set_up("c1")?;
    for site in [&ours, &other] {
        wait_for(site, "bond/show", "member c1: enabled")?;
        wait_for(site, "lacp/show", "negotiated")?;
    }
    one.ping(two.address, 10)?;
    come_once(one, two, |_| one.mac)?;
    Ok(())
}

fn without_a_partner_one_member_carries_all_if_that_is_wanted(ground: &Ground) -> Outcome {
    let ends = Ends::new(ground)?;
    let (ours, other) = (
        Site::at(&ends.here, "ours")?,
        Site::at(&ends.there, "theirs")?,
    );
    let bond = "add-bond br0 bond0 c1 c2 bond_mode=balance-tcp lacp=active \
                other_config:lacp-time=fast";
    let _daemons = start(&ours, &other, (bond, APART))?;
    let (one, two) = ends.pair();
    wait_for(&ours, "lacp/show", "member: c2: defaulted detached")?;
    assert!(!one.answers(two.address)?, "nothing is agreed");
    ours.wait_for_column("get Port bond0 bond_active_slave", "[]")?;
    ours.vsctl("set Port bond0 other_config:lacp-fallback-ab=true")?;
    wait_for(&ours, "bond/show", "active member\n")?;
    one.reach(two.address)?;
    one.ping(two.address, 5)?;
    come_once(one, two, |_| one.mac)?;
    come_once(two, one, |_| two.mac)?;
    let told = asked(&ours, "bond/show")?;
    assert!(told.contains("lacp_status: configured\n"), "{told}");
    ours.wait_for_column("get Interface c1 lacp_current", "false")?;
    Ok(())
}
