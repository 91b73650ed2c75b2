//! What the database says of controllers, and of rules that outlive the switch.

use std::os::unix::fs::symlink;
use std::{fs, io};

use base::Instant;
use openflow::Version;
use testbed::Failure;

use crate::controllers::packet_in;
use crate::ground::{Ground, Outcome, Rule, rules};
use crate::peer::Desk;
use crate::rig::{Ran, Rig, binary};
use crate::site::{Site, TWO};

pub(crate) const RULES: &[Rule] = rules![
    a_controller_in_anothers_place_finds_the_rules,
    a_controller_is_sought_and_asked_as_often_as_the_database_says,
    a_controller_that_is_not_to_be_told_is_told_nothing,
    controllers_are_sent_as_many_frames_as_each_may_have,
    why_a_controller_is_not_there_is_said,
    frames_wait_for_rules_that_are_to_be_restored,
    ovs_ctl_restart_keeps_the_rules,
];

const RULE: &str = "priority=77,in_port=p1 actions=output:p2";

fn a_controller_in_anothers_place_finds_the_rules(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let (first, second) = (desks[0].target(), desks[1].target());
    site.vsctl(&format!(
        "{TWO} -- set-fail-mode br0 secure -- set-controller br0 {first}"
    ))?;
    let mut old = desks[0].meet(Version::V13)?;
    old.add("priority=77,in_port=1,actions=output:2")?;
    old.barrier();
    site.vsctl(&format!("set-controller br0 {second}"))?;
    let mut new = desks[1].meet(Version::V13)?;
    new.barrier();
    let told = site.tool("ovs-ofctl dump-flows br0")?;
    assert!(told.contains("priority=77"), "{told}");
    assert_eq!(told.matches("actions=").count(), 1, "{told}");
    // With the last one the rules go, as they came with the first.
    site.vsctl("del-controller br0")?;
    let told = site.tool("ovs-ofctl dump-flows br0")?;
    assert!(!told.contains("priority=77"), "{told}");
    Ok(())
}

fn a_controller_is_sought_and_asked_as_often_as_the_database_says(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let desk = Desk::open(ground)?;
    let target = desk.target();
    site.vsctl(&format!(
        "add-br br0 -- set-controller br0 {target} -- set Controller br0 max_backoff=1000 inactivity_probe=1000 other_config:dscp=8 controller_queue_size=9"
    ))?;
    let told = || site.vsctl("get Controller br0 status");
    ground.wait_until("what is not honoured", || {
        Ok(told()?.contains("controller_queue_size: not honoured"))
    })?;
    assert!(!told()?.contains("dscp"), "{}", told()?);
    // Somebody who says hello and no more is asked after a second, and left after two: before
    // a controller with the usual five seconds would be asked.
    let mut stream = desk.accept()?;
    io::Write::write_all(&mut stream, &[4, 0, 0, 8, 0, 0, 0, 1])?;
    let start: Instant = ground.clock.now();
    let mut said = Vec::new();
    io::Read::read_to_end(&mut stream, &mut said)?;
    let [.., version, kind, 0, 8, _, _, _, _] = said[..] else {
        return Err(format!("no echo request at the end: {said:02x?}").into());
    };
    assert_eq!((version, kind), (4, 2));
    let taken = ground.clock.now() - start;
    assert!(taken.as_millis() >= 1900, "{taken:?}");
    // A probe of zero: whoever is silent stays.
    site.vsctl("set Controller br0 inactivity_probe=0")?;
    let mut peer = desk.meet(Version::V13)?;
    peer.barrier();
    site.wait_for_column("get Controller br0 is_connected", "true")?;
    Ok(())
}

fn a_controller_that_is_not_to_be_told_is_told_nothing(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let (told, silent) = (desks[0].target(), desks[1].target());
    site.vsctl(&format!(
        "{TWO} -- --id=@a create Controller target=\"{told}\" -- --id=@b create Controller target=\"{silent}\" enable_async_messages=false -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut hears = desks[0].meet(Version::V13)?;
    let mut deaf = desks[1].meet(Version::V13)?;
    deaf.add("priority=0,actions=CONTROLLER:65535")?;
    deaf.barrier();
    rig.host(1).send(&["eth / arp"])?;
    hears.hear("a frame", packet_in)?;
    let heard = deaf.heard();
    assert!(
        heard.iter().all(|message| packet_in(message).is_none()),
        "{heard:?}"
    );
    Ok(())
}

fn controllers_are_sent_as_many_frames_as_each_may_have(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let desks = [Desk::open(ground)?, Desk::open(ground)?];
    let (all, few) = (desks[0].target(), desks[1].target());
    site.vsctl(&format!(
        "{TWO} -- --id=@a create Controller target=\"{all}\" -- --id=@b create Controller target=\"{few}\" controller_rate_limit=100 controller_burst_limit=25 -- set Bridge br0 controller=@a,@b fail_mode=secure"
    ))?;
    let mut hears_all = desks[0].meet(Version::V13)?;
    let mut hears_few = desks[1].meet(Version::V13)?;
    hears_all.add("priority=0,actions=CONTROLLER:65535")?;
    hears_all.barrier();
    rig.host(1).send(&["eth / arp"; 400])?;
    for _ in 0..400 {
        hears_all.hear("a frame", packet_in)?;
    }
    ground.wait_until("frames to be kept from the other", || {
        let told = site.tool("ovs-appctl comporta/counters br0")?;
        Ok(told.contains("packet_in_limited"))
    })?;
    let heard = hears_few.heard();
    let heard = heard.iter().filter(|message| packet_in(message).is_some());
    assert!(heard.count() < 400);
    Ok(())
}

fn why_a_controller_is_not_there_is_said(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl("add-br br0 -- set-controller br0 tcp:127.0.0.1:6653")?;
    ground.wait_until("the reason", || {
        let status = site.vsctl("get Controller br0 status")?;
        Ok(status.contains("Connection refused") && status.contains("state=BACKOFF"))
    })?;
    let peer = site.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let _peer = ground.spawner.start(peer)?;
    site.wait_for_column("get Controller br0 is_connected", "true")?;
    ground.wait_until("the connection", || {
        let status = site.vsctl("get Controller br0 status")?;
        Ok(status.contains("state=ACTIVE") && !status.contains("last_error"))
    })?;
    assert_eq!(site.vsctl("get Controller br0 role")?, "other");
    Ok(())
}

fn frames_wait_for_rules_that_are_to_be_restored(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let desk = Desk::open(ground)?;
    site.vsctl(&format!(
        "--no-wait {TWO} -- set-controller br0 {} -- set Open_vSwitch . other_config:flow-restore-wait=true",
        desk.target()
    ))?;
    let _daemon = site.daemon()?;
    site.wait_for_column("--bare --columns=ofport list Interface p2", "2")?;
    let (one, two) = rig.pair();
    assert!(!one.answers(two.address)?, "no rule, and no controller yet");
    site.tool("ovs-ofctl add-flow br0 priority=5,actions=normal")?;
    assert!(!one.answers(two.address)?, "not all rules are there");
    site.vsctl("remove Open_vSwitch . other_config flow-restore-wait")?;
    let mut peer = desk.meet(Version::V13)?;
    peer.barrier();
    one.reach(two.address)?;
    assert!(
        site.tool("ovs-ofctl dump-flows br0")?
            .contains("priority=5")
    );
    // It has a meaning at the start only.
    site.vsctl("set Open_vSwitch . other_config:flow-restore-wait=true")?;
    one.ping(two.address, 3)?;
    Ok(())
}

/// Where Debian has its scripts.
const SCRIPTS: &str = "/usr/share/openvswitch/scripts";

/// A place with the distribution's own scripts and programs, but for this switch in the place
/// of one, and for the module of the kernel, which is not needed.
fn scripts(site: &Site<'_, '_>) -> Result<(), Failure> {
    let lay = |from: &str, to: &str| {
        symlink(from, site.rundir.join(to)).map_err(Failure::to("lay a link"))
    };
    for directory in ["scripts", "sbin"] {
        fs::create_dir_all(site.rundir.join(directory)).map_err(Failure::to("make a directory"))?;
    }
    for script in ["ovs-ctl", "ovs-lib", "ovs-save"] {
        lay(&format!("{SCRIPTS}/{script}"), &format!("scripts/{script}"))?;
    }
    lay("/bin/true", "scripts/ovs-kmod-ctl")?;
    lay("/usr/sbin/ovsdb-server", "sbin/ovsdb-server")?;
    let switch = fs::canonicalize(binary()).map_err(Failure::to("find the switch"))?;
    lay(&switch.display().to_string(), "sbin/ovs-vswitchd")?;
    lay(
        "/usr/share/openvswitch/vswitch.ovsschema",
        "vswitch.ovsschema",
    )
}

fn ovs_ctl_restart_keeps_the_rules(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    site.kill_database()?;
    scripts(&site)?;
    let _ends = Ends(&site);
    let ctl = |command: &str| {
        let words = format!("{}/scripts/ovs-ctl", site.rundir.display());
        let program = site
            .program(&words)
            .args(command.split(' '))
            .arg("--system-id=1")
            .arg("--no-mlockall")
            .arg("--no-record-hostname")
            .env("OVS_SBINDIR", site.rundir.join("sbin"))
            .env("OVS_PKGDATADIR", &site.rundir)
            .env("OVS_SYSCONFDIR", &site.rundir);
        Ran::within(crate::ground::PATIENCE * 3, ground, program)?.good()
    };
    ctl("start")?;
    site.vsctl(&format!("{TWO} -- set-fail-mode br0 secure"))?;
    for rule in [RULE, "priority=77,in_port=p2 actions=group:5"] {
        if rule.contains("group") {
            site.tool("ovs-ofctl -O OpenFlow14 add-group br0 group_id=5,type=all,bucket=actions=output:p1")?;
        }
        let add = site
            .program("ovs-ofctl -O OpenFlow14 add-flow br0")
            .arg(rule);
        Ran::of(ground, add)?.good()?;
    }
    let (one, two) = rig.pair();
    one.reach(two.address)?;
    let pid = fs::read_to_string(site.rundir.join("ovs-vswitchd.pid"))?;
    ctl("restart")?;
    assert_ne!(
        fs::read_to_string(site.rundir.join("ovs-vswitchd.pid"))?,
        pid
    );
    let told = site.tool("ovs-ofctl -O OpenFlow14 dump-flows br0")?;
    assert_eq!(told.matches("priority=77").count(), 2, "{told}");
    one.reach(two.address)?;
    assert_eq!(site.vsctl("get Open_vSwitch . other_config")?, "{}");
    ctl("stop")?;
    Ok(())
}

/// Ends what `ovs-ctl` has started, which no test is the parent of.
struct Ends<'a>(&'a Site<'a, 'a>);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        for name in ["ovs-vswitchd", "ovsdb-server"] {
            let pidfile = self.0.rundir.join(format!("{name}.pid"));
            let pid = fs::read_to_string(pidfile).ok();
            let pid = pid.and_then(|text| text.trim().parse().ok());
            drop(pid.map(crate::site::Background));
        }
    }
}
