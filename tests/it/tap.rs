//! TAP ports, which the switch makes for whoever is behind them.

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::host::{Host, noise};
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    a_tap_port_in_a_hosts_namespace_is_its_interface,
    processes_behind_two_tap_ports_talk_by_tcp,
    a_tap_port_comes_and_goes_with_the_switch,
];

fn a_tap_port_in_a_hosts_namespace_is_its_interface(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 1)?;
    let switch = rig.start("--bridge br0 --port p1 --port tap:vm1=5")?;
    let guest = Host::behind(ground, 5, &rig.home, "vm1")?;
    let host = rig.host(1);
    // News from another namespace are looked for once a second.
    ground.wait_until("the port to be up", || {
        let told = switch.ofctl("show br0")?;
        let (_, port) = told.split_once(" 5(vm1)").expect("port 5 is there");
        let (port, _) = port.split_once(" LOCAL(").expect("LOCAL comes last");
        Ok(!port.contains("DOWN"))
    })?;
    host.ping(guest.address, 10)?;
    guest.ping(host.address, 10)?;
    let file = noise(32 << 20);
    assert!(
        host.transfer(&guest, &file)? == file,
        "harmed on the way there"
    );
    assert!(
        guest.transfer(host, &file)? == file,
        "harmed on the way back"
    );
    Ok(())
}

fn processes_behind_two_tap_ports_talk_by_tcp(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let _switch = rig.start("--bridge br0 --port tap:vm1 --port tap:vm2")?;
    let one = Host::behind(ground, 1, &rig.home, "vm1")?;
    let two = Host::behind(ground, 2, &rig.home, "vm2")?;
    one.reach(two.address)?;
    one.iperf(&two, "")?;
    one.iperf(&two, "--reverse")?;
    Ok(())
}

fn a_tap_port_comes_and_goes_with_the_switch(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 0)?;
    let words = "--bridge br0 --port tap:vm1 --port tap:vm2=9";
    for _ in 0..2 {
        let mut switch = rig.start(words)?;
        let links = rig.ran("ip -br link")?.good()?;
        assert!(links.contains("vm1") && links.contains("vm2"), "{links}");
        let shown = switch.ofctl("show br0")?;
        assert!(
            shown.contains(" 1(vm1)") && shown.contains(" 9(vm2)"),
            "{shown}"
        );
        assert!(switch.process.stop()?.success());
        let links = rig.ran("ip -br link")?.good()?;
        assert!(!links.contains("vm") && !links.contains("br0"), "{links}");
    }
    Ok(())
}
