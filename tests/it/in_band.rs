//! Control in band: a controller that is met only through the bridge that it controls. A real
//! `ovs-vswitchd` stands beside and is told the same.

use packet::build::Stack;
use testbed::{DeviceOffload, Failure};

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::queues::sent;
use crate::rig::{Ran, Rig};
use crate::site::Site;
use crate::unixctl::{THEIRS, theirs};

pub(crate) const RULES: &[Rule] = rules![
    a_controller_is_met_through_a_bridge_without_rules,
    a_manager_is_met_through_a_bridge_without_rules,
    what_a_dhcp_server_answers_comes_to_the_bridge_once_whatever_rules_say,
    out_of_band_nothing_leads_through_the_bridge,
];

/// The address of the bridge's own interface, in the network of the hosts.
const OWN: &str = "10.1.0.99/16";

/// A secure bridge that is to meet its controller at host 1, behind its port.
fn set_up(site: &Site<'_, '_>, is_disabled: bool) -> Result<(), Failure> {
    let controller = site.rig.host(1).address;
    site.vsctl(&format!(
        "add-br br0 -- add-port br0 p1 -- add-port br0 p2 \
         -- set Bridge br0 datapath_type=netdev fail_mode=secure \
         other_config:hwaddr=02:00:00:00:00:aa other_config:disable-in-band={is_disabled} \
         -- set-controller br0 tcp:{controller}:6653"
    ))?;
    site.rig
        .ran(&format!("ip address add {OWN} dev br0"))?
        .good()?;
    site.rig.ran("ip link set br0 up")?.good()?;
    Ok(())
}

/// The rules that controllers do not see, without how long they have been there and how often they
/// were used.
fn hidden(site: &Site<'_, '_>) -> Result<Vec<String>, Failure> {
    let told = site.tool("ovs-appctl bridge/dump-flows br0")?;
    let lines = told
        .lines()
        .filter_map(|line| line.find("priority=18").map(|at| &line[at..]));
    let mut lines: Vec<_> = lines.map(str::to_owned).collect();
    lines.sort();
    Ok(lines)
}

/// Has a bridge meet its controller, and answers what is hidden then.
fn meet(site: &Site<'_, '_>) -> Result<Vec<String>, Failure> {
    let rig = site.rig;
    set_up(site, false)?;
    let listed = site.tool("ovs-ofctl dump-flows br0")?;
    assert!(!listed.contains("actions="), "{listed}");
    // Open vSwitch's data path in userspace does not finish a checksum that a cable leaves open.
    let host = rig.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    // It listens, and says nothing of rules.
    let words = "ovs-testcontroller --mute ptcp:6653";
    let program = site.program(words).inside(&rig.host(1).namespace);
    let _controller = rig.ground.spawner.start(program)?;
    site.wait_for_column("--columns=is_connected --bare list Controller", "true")?;
    // What is hidden cannot be deleted, is not counted, and lets nobody else through.
    site.tool("ovs-ofctl del-flows br0")?;
    let aggregate = site.tool("ovs-ofctl dump-aggregate br0")?;
    assert!(aggregate.contains("flow_count=0"), "{aggregate}");
    assert!(!rig.host(2).answers(rig.host(1).address)?);
    let mac = rig.host(1).mac.map(|byte| format!("{byte:02x}")).join(":");
    let hop = format!("dl_src={mac}");
    rig.ground.wait_until("the next station to be known", || {
        Ok(hidden(site)?.iter().any(|rule| rule.contains(&hop)))
    })?;
    let told = site.tool("ovs-appctl bridge/dump-flows br0")?;
    let used = told
        .lines()
        .find(|line| line.contains("priority=180008,tcp"));
    assert!(
        used.is_some_and(|line| !line.contains("n_packets=0,")),
        "{told}"
    );
    hidden(site)
}

fn a_controller_is_met_through_a_bridge_without_rules(ground: &Ground) -> Outcome {
    let (here, there) = (Rig::new(ground, 2)?, Rig::new(ground, 2)?);
    let (ours, other) = (Site::at(&here, "ours")?, Site::at(&there, "theirs")?);
    let _ours = ours.daemon()?;
    let _theirs = theirs(&other, "")?;
    let (ours, other) = (meet(&ours)?, meet(&other)?);
    assert_eq!(ours, other, "{THEIRS}");
    assert_eq!(ours.len(), 9);
    Ok(())
}

/// Has the database meet its manager at host 1, and answers what is hidden then. Open vSwitch's data
/// path in userspace sends by no queues.
fn meet_manager(site: &Site<'_, '_>, has_queues: bool) -> Result<Vec<String>, Failure> {
    let rig = site.rig;
    let host = rig.host(1);
    host.namespace
        .set_offload(host.interface, DeviceOffload::TxChecksum, false)?;
    set_up(site, false)?;
    site.vsctl("del-controller br0")?;
    let control = site.rundir.join("db.ctl");
    let remote = "ovsdb-server/add-remote db:Open_vSwitch,Open_vSwitch,manager_options";
    site.tool(&format!("ovs-appctl -t {} {remote}", control.display()))?;
    assert_eq!(hidden(site)?, Vec::<String>::new());
    site.vsctl(&format!("set-manager tcp:{}:6640", host.address))?;
    rig.ground
        .wait_until("the ways to be there", || Ok(hidden(site)?.len() >= 7))?;
    // The manager waits until the database comes.
    let words = "ovs-vsctl --no-wait --timeout=25 --db=ptcp:6640 get Bridge br0 fail_mode";
    let manager = site.program(words).inside(&host.namespace);
    let told = Ran::of(rig.ground, manager)?.good()?;
    assert_eq!(told.trim(), "secure");
    assert!(!rig.host(2).answers(host.address)?);
    rig.ground.wait_until("the next station to be known", || {
        Ok(hidden(site)?.len() == 9)
    })?;
    let mut known = hidden(site)?;
    // By a queue of their own.
    site.vsctl("set Bridge br0 other_config:in-band-queue=3")?;
    let is_queued = || {
        Ok(hidden(site)?
            .iter()
            .all(|rule| rule.contains("set_queue:3")))
    };
    rig.ground.wait_until("a queue to be named", is_queued)?;
    known.extend(hidden(site)?);
    if has_queues {
        site.vsctl(
            "set Port p1 qos=@q -- --id=@q create QoS type=linux-htb queues:3=@three \
             -- --id=@three create Queue other_config:min-rate=1000000",
        )?;
        // The database goes on asking for its manager.
        rig.ground.wait_until("frames of the queue", || {
            let sent = sent(rig, "p1")?;
            Ok(sent.get("1:4").is_some_and(|[_, frames, _]| *frames > 0))
        })?;
    }
    site.vsctl("set Manager . connection_mode=out-of-band")?;
    rig.ground
        .wait_until("nothing to be hidden", || Ok(hidden(site)?.is_empty()))?;
    Ok(known)
}

fn a_manager_is_met_through_a_bridge_without_rules(ground: &Ground) -> Outcome {
    let (here, there) = (Rig::new(ground, 2)?, Rig::new(ground, 2)?);
    let (ours, other) = (Site::at(&here, "ours")?, Site::at(&there, "theirs")?);
    let _ours = ours.daemon()?;
    let _theirs = theirs(&other, "")?;
    let (ours, other) = (meet_manager(&ours, true)?, meet_manager(&other, false)?);
    assert_eq!(ours, other, "{THEIRS}");
    Ok(())
}

/// What DHCP servers answer, as much of it as matters, with this mark; and what else looks so.
fn answers(mark: u8) -> [String; 3] {
    let datagram = |of: u16, to: u16, mark: u8| {
        format!(
            "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51) / \
             ipv4(src=10.1.0.1,dst=255.255.255.255) / udp(src={of},dst={to}) / data({mark})"
        )
    };
    [
        datagram(68, 67, mark),
        datagram(67, 68, mark),
        datagram(67, 69, mark),
    ]
}

/// Such an answer as a flow.
const ANSWER: &str = "in_port=1,udp,udp_src=67,udp_dst=68,nw_src=10.1.0.1,nw_dst=255.255.255.255,\
                      dl_dst=ff:ff:ff:ff:ff:ff";

/// The last of several frames: rules have it everywhere.
const LAST: &str = "eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:00:51,type=0x88b6) / data(50)";

/// What of these answers of host 1 comes to the bridge's own interface and to host 2.
fn heard(site: &Site<'_, '_>) -> Result<[Vec<String>; 2], Failure> {
    let rig = site.rig;
    let mut eyes = [rig.eye("br0")?, rig.host(2).eye()?];
    let sent = [answers(100), answers(101)].concat();
    let sent: Vec<_> = sent.iter().map(String::as_str).collect();
    rig.host(1).send(&sent)?;
    rig.host(1).send(&[LAST])?;
    let mut heard = [Vec::new(), Vec::new()];
    for (eye, heard) in eyes.iter_mut().zip(&mut heard) {
        loop {
            let frame = Stack::dissect(&eye.next()?).to_string();
            if frame.contains("type=0x88b6") {
                break;
            }
            if frame.contains("src=02:00:00:00:00:51") {
                heard.push(frame);
            }
        }
        heard.sort();
    }
    Ok(heard)
}

fn what_a_dhcp_server_answers_comes_to_the_bridge_once_whatever_rules_say(
    ground: &Ground,
) -> Outcome {
    let (here, there) = (Rig::new(ground, 2)?, Rig::new(ground, 2)?);
    let (ours, other) = (Site::at(&here, "ours")?, Site::at(&there, "theirs")?);
    let _ours = ours.daemon()?;
    let _theirs = theirs(&other, "")?;
    for site in [&ours, &other] {
        set_up(site, false)?;
        site.rig
            .ground
            .wait_until("the ways to be there", || Ok(hidden(site)?.len() >= 7))?;
    }
    let rules = [
        ("", 2, 0),
        ("udp,actions=output:2", 2, 6),
        ("udp,actions=output:2,LOCAL", 6, 6),
        ("udp,actions=NORMAL", 6, 6),
    ];
    for (rule, here, second) in rules {
        for site in [&ours, &other] {
            site.tool("ovs-ofctl del-flows br0")?;
            for rule in [rule, "priority=65535,dl_type=0x88b6,actions=all"] {
                if !rule.is_empty() {
                    site.tool(&format!("ovs-ofctl add-flow br0 {rule}"))?;
                }
            }
        }
        let heard = heard(&ours)?;
        assert_eq!(heard.each_ref().map(Vec::len), [here, second], "{rule}");
        // Of all there are two.
        let answers = heard[0]
            .iter()
            .filter(|frame| frame.contains("udp(src=67,dst=68)"));
        assert_eq!(answers.count(), 2, "{rule}");
        // The other sends in an order of its own, and tells what it does.
        let told = other.tool(&format!("ovs-appctl ofproto/trace br0 {ANSWER}"))?;
        let is_beside = told.contains("outputting DHCP packet to local port");
        assert_eq!(is_beside, here == 2, "{rule}: {told}");
    }
    // Where nothing is in band, rules alone say.
    ours.vsctl("set Bridge br0 other_config:disable-in-band=true")?;
    ours.tool("ovs-ofctl del-flows br0 udp")?;
    assert_eq!(heard(&ours)?.map(|heard| heard.len()), [0, 0]);
    Ok(())
}

fn out_of_band_nothing_leads_through_the_bridge(ground: &Ground) -> Outcome {
    for is_disabled in [true, false] {
        let rig = Rig::new(ground, 2)?;
        let site = Site::at(&rig, if is_disabled { "bridge" } else { "column" })?;
        let _daemon = site.daemon()?;
        set_up(&site, is_disabled)?;
        if !is_disabled {
            assert_eq!(hidden(&site)?.len(), 7);
            site.vsctl("set Controller br0 connection_mode=out-of-band")?;
        }
        assert_eq!(hidden(&site)?, Vec::<String>::new());
        let home = rig.ran("ping -c 1 -W 1 -I br0 10.1.0.1")?;
        assert!(!home.status.success(), "{home:?}");
        site.vsctl("set Controller br0 connection_mode=in-band -- set Bridge br0 other_config:disable-in-band=false")?;
        assert!(!hidden(&site)?.is_empty());
    }
    Ok(())
}
