//! In the place of ovs-vswitchd: a real `ovsdb-server` says what is to be, a real
//! `ovs-vsctl` says it to the database, and the switch does it and says what came of it.

use std::fs;
use std::os::unix::fs::symlink;

use testbed::Failure;

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::rig::{Ran, Rig, binary};
use crate::site::{Background, Site, TWO};

pub(crate) const RULES: &[Rule] = rules![
    bridges_ports_and_controllers_are_those_of_the_database,
    a_bridge_stays_while_its_mode_versions_and_id_change,
    a_bridge_that_goes_leaves_nothing_and_can_come_again_at_once,
    ovs_vsctl_waits_and_hears_what_cannot_be,
    while_one_port_comes_and_goes_the_others_frames_pass,
    a_database_that_is_gone_stops_nothing,
    a_second_daemon_waits_until_the_first_is_gone,
    it_is_ovs_vswitchd_by_name_in_the_background,
];

fn bridges_ports_and_controllers_are_those_of_the_database(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(&format!("{TWO} -- set Interface p2 ofport_request=7"))?;
    let (one, two) = rig.pair();
    one.ping(two.address, 3)?;
    let shown = site.tool("ovs-ofctl show br0")?;
    assert!(
        shown.contains(" 1(p1): ") && shown.contains(" 7(p2): "),
        "{shown}"
    );
    assert_eq!(site.vsctl("get Interface p2 ofport")?, "7");
    // Controllers come and go, and with them the rules of a bridge on its own.
    site.vsctl("set-controller br0 tcp:127.0.0.1:6653 ptcp:6654")?;
    assert!(!site.tool("ovs-ofctl dump-flows br0")?.contains("actions="));
    let listed = site.tool("ovs-ofctl show tcp:127.0.0.1:6654")?;
    assert!(listed.contains("(p1)"), "{listed}");
    let peer = site.program("ovs-testcontroller ptcp:6653:127.0.0.1");
    let peer = rig.ground.spawner.start(peer)?;
    ground.wait_until("a controller", || {
        let told = site.vsctl("--columns=is_connected --bare list Controller")?;
        Ok(told.contains("true"))
    })?;
    drop(peer);
    site.vsctl("del-port p2")?;
    let shown = site.tool("ovs-ofctl show br0")?;
    assert!(!shown.contains("(p2)"), "{shown}");
    Ok(())
}

fn a_bridge_stays_while_its_mode_versions_and_id_change(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(&format!("{TWO} -- set-controller br0 tcp:127.0.0.1:6653"))?;
    let (one, two) = rig.pair();
    let index = || {
        let link = rig.ran("ip -o link show br0")?.good()?;
        Ok::<_, Failure>(link.split(':').next().map(str::to_owned))
    };
    let before = index()?;
    site.vsctl(
        "set-fail-mode br0 secure -- del-controller br0 -- set Bridge br0 protocols=OpenFlow13",
    )?;
    assert_eq!(index()?, before);
    assert!(!one.answers(two.address)?, "secure");
    assert!(
        Ran::of(ground, site.program("ovs-ofctl -O OpenFlow10 show br0"))?
            .bad()
            .is_ok()
    );
    site.vsctl("set Bridge br0 other_config:datapath-id=00000000000000cd")?;
    let shown = site.tool("ovs-ofctl -O OpenFlow13 show br0")?;
    assert!(shown.contains("dpid:00000000000000cd"), "{shown}");
    assert_eq!(
        site.vsctl("get Bridge br0 datapath_id")?,
        "\"00000000000000cd\""
    );
    site.vsctl("del-fail-mode br0")?;
    one.ping(two.address, 3)?;
    assert_eq!(index()?, before);
    Ok(())
}

fn a_bridge_that_goes_leaves_nothing_and_can_come_again_at_once(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let mut daemon = site.daemon()?;
    site.vsctl(TWO)?;
    let (one, two) = rig.pair();
    for _ in 0..5 {
        site.vsctl("del-br br0")?;
        let refused = site.vsctl_ran(TWO)?;
        assert_eq!(refused.errors, "");
    }
    one.ping(two.address, 3)?;
    site.vsctl("del-br br0")?;
    let links = rig.ran("ip -o link")?.good()?;
    assert!(!links.contains("br0"), "{links}");
    assert!(daemon.process.stop()?.success());
    let left: Vec<_> = fs::read_dir(&site.rundir)?
        .map(|entry| entry.map(|entry| entry.file_name()))
        .collect::<Result<_, _>>()?;
    assert!(
        !left
            .iter()
            .any(|name| name.to_string_lossy().starts_with("ovs-vswitchd")),
        "{left:?}"
    );
    Ok(())
}

fn ovs_vsctl_waits_and_hears_what_cannot_be(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(TWO)?;
    assert_eq!(
        site.vsctl("get Open_vSwitch . cur_cfg")?,
        site.vsctl("get Open_vSwitch . next_cfg")?
    );
    let refused = [
        ("add-port br0 p9", "there is no interface p9"),
        (
            "add-port br0 v1 -- set Interface v1 type=erspan options:remote_ip=10.0.0.9",
            "type erspan: not there",
        ),
        (
            "add-port br0 i1 vlan_mode=dot1q-tunnel -- set Interface i1 type=internal",
            "vlan_mode: dot1q-tunnel needs a VLAN of its own",
        ),
    ];
    for (words, why) in refused {
        let said = site.vsctl_ran(words)?;
        assert!(
            said.errors.contains("Error detected while setting up") && said.errors.contains(why),
            "{said:?}"
        );
    }
    assert_eq!(site.vsctl("get Interface i1 ofport")?, "-1");
    assert!(
        !rig.ran("ip -o link")?.good()?.contains("i1"),
        "it would carry what it must not"
    );
    // What is no obstacle is said beside.
    site.vsctl("set Interface p1 bfd:enable=true -- set Bridge br0 auto_attach=@a -- --id=@a create AutoAttach system_name=dance")?;
    assert!(
        site.vsctl("get Interface p1 error")?
            .contains("bfd: not honoured")
    );
    assert!(
        site.vsctl("get Bridge br0 status:auto_attach")?
            .contains("no auto-attach")
    );
    rig.host(1).ping(rig.host(2).address, 3)?;
    // What was not there comes, and is a port at last.
    rig.ran("ip link add p9 type veth peer name q9")?.good()?;
    site.wait_for_column("get Interface p9 error", "[]")?;
    assert_ne!(site.vsctl("get Interface p9 ofport")?, "-1");
    rig.ran("ip link set p9 up")?.good()?;
    site.wait_for_column("get Interface p9 admin_state", "up")?;
    rig.ran("ip link delete p9")?.good()?;
    site.wait_for_column("get Interface p9 ofport", "-1")?;
    Ok(())
}

fn while_one_port_comes_and_goes_the_others_frames_pass(ground: &Ground) -> Outcome {
    const FRAME: &str = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    const ANSWER: &str = "eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / data(50)";
    let rig = Rig::new(ground, 3)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    site.vsctl(TWO)?;
    rig.host(1).send(&[FRAME])?;
    rig.host(2).send(&[ANSWER])?;
    let counted = |name: &str| {
        let told = site.tool("ovs-appctl comporta/counters br0")?;
        let value = told
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
        Ok::<_, Failure>(value.unwrap_or(0))
    };
    let both = || {
        Ok::<_, Failure>((
            counted("br0 port 1 rx_packets")?,
            counted("br0 port 2 tx_packets")?,
        ))
    };
    let before = both()?;
    let script = "for i in 1 2 3 4 5 6 7 8 9 10; do ovs-vsctl add-port br0 p3 && ovs-vsctl del-port p3 || exit 1; done";
    let changes = site.program("sh -c").arg(script);
    let mut changes = ground.spawner.start(changes)?;
    let mut sent = 0;
    while changes.is_running() {
        rig.host(1).send(&[FRAME; 100])?;
        sent += 100;
    }
    assert!(changes.wait(crate::ground::PATIENCE)?.success());
    assert!(sent > 0);
    ground.wait_until("all frames to be through", || {
        let after = both()?;
        Ok(after.1 - before.1 >= sent)
    })?;
    let after = both()?;
    assert!(
        after.0 - before.0 >= sent,
        "{sent} sent: {before:?} {after:?}"
    );
    assert_eq!(site.vsctl("list-ports br0")?, "p1\np2");
    Ok(())
}

fn a_database_that_is_gone_stops_nothing(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let site = Site::new(&rig)?;
    let daemon = site.daemon()?;
    site.vsctl(TWO)?;
    let (one, two) = rig.pair();
    one.ping(two.address, 3)?;
    site.kill_database()?;
    daemon.says("the database is gone")?;
    one.ping(two.address, 10)?;
    site.start_database()?;
    site.vsctl("add-port br0 p3")?;
    one.ping(rig.host(3).address, 3)?;
    Ok(())
}

fn a_second_daemon_waits_until_the_first_is_gone(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let mut first = site.daemon()?;
    site.vsctl(TWO)?;
    let (one, two) = rig.pair();
    one.ping(two.address, 3)?;
    let second = site.daemon()?;
    second.says("another switch has the lock")?;
    one.ping(two.address, 3)?;
    assert!(first.process.stop()?.success());
    second.says("br0: add port p2")?;
    one.reach(two.address)?;
    one.ping(two.address, 3)?;
    site.vsctl("del-port p2")?;
    Ok(())
}

fn it_is_ovs_vswitchd_by_name_in_the_background(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let site = Site::new(&rig)?;
    let name = site.rundir.join("ovs-vswitchd");
    symlink(fs::canonicalize(binary())?, &name)?;
    // As the distribution's script starts it.
    let words = format!(
        "{} unix:{}/db.sock -vconsole:emer -vsyslog:err -vfile:info --no-chdir --log-file --pidfile --detach",
        name.display(),
        site.rundir.display()
    );
    site.tool(&words)?;
    let pidfile = site.rundir.join("ovs-vswitchd.pid");
    let pid: u32 = fs::read_to_string(&pidfile)?.trim().parse()?;
    let _background = Background(pid);
    assert!(site.rundir.join(format!("ovs-vswitchd.{pid}.ctl")).exists());
    let again = Ran::of(ground, site.program(&words))?.bad()?;
    assert!(
        again.contains("another process that runs has it"),
        "{again}"
    );
    site.vsctl(TWO)?;
    rig.host(1).ping(rig.host(2).address, 3)?;
    assert!(
        site.tool("ovs-appctl version")?
            .starts_with("ovs-vswitchd (Comporta, ")
    );
    assert_eq!(site.tool("ovs-appctl ofproto/list")?, "br0\n");
    let flows = site.tool("ovs-appctl bridge/dump-flows br0")?;
    assert!(
        flows.contains("priority=0") && flows.contains("NORMAL"),
        "{flows}"
    );
    let unknown = Ran::of(ground, site.program("ovs-appctl dance"))?.bad()?;
    assert!(
        unknown.contains("\"dance\" is not a valid command"),
        "{unknown}"
    );
    let log = fs::read_to_string(site.rundir.join("ovs-vswitchd.log"))?;
    assert!(log.contains("add bridge br0"), "{log}");
    site.tool("ovs-appctl vlog/set file:warn")?;
    assert!(
        site.tool("ovs-appctl vlog/list")?
            .contains("EMER        ERR       WARN")
    );
    site.tool("ovs-appctl exit")?;
    ground.wait_until("the daemon to end", || Ok(!pidfile.exists()))?;
    Ok(())
}
