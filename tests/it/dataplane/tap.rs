//! TAP ports, which the switch makes for whoever is behind them.

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::{TestHost, pseudo_random_bytes};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    a_tap_port_in_a_hosts_namespace_is_its_interface,
    processes_behind_two_tap_ports_talk_by_tcp,
    a_tap_port_comes_and_goes_with_the_switch,
];

fn a_tap_port_in_a_hosts_namespace_is_its_interface(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --port p1 --port tap:vm1=5")?;
    let guest = TestHost::with_interface(context, 5, &network.switch_namespace, "vm1")?;
    let host = network.host(1);
    // News from another namespace are looked for once a second.
    context.wait_until("the port to be up", || {
        let told = switch.ofctl("show br0")?;
        let (_, port) = told.split_once(" 5(vm1)").expect("port 5 is there");
        let (port, _) = port.split_once(" LOCAL(").expect("LOCAL comes last");
        Ok(!port.contains("DOWN"))
    })?;
    host.ping(guest.address, 10)?;
    guest.ping(host.address, 10)?;
    let file = pseudo_random_bytes(32 << 20);
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

fn processes_behind_two_tap_ports_talk_by_tcp(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let _switch = network.start_switch("--bridge br0 --port tap:vm1 --port tap:vm2")?;
    let one = TestHost::with_interface(context, 1, &network.switch_namespace, "vm1")?;
    let two = TestHost::with_interface(context, 2, &network.switch_namespace, "vm2")?;
    one.ping_until_reply(two.address)?;
    one.iperf(&two, "")?;
    one.iperf(&two, "--reverse")?;
    Ok(())
}

fn a_tap_port_comes_and_goes_with_the_switch(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let words = "--bridge br0 --port tap:vm1 --port tap:vm2=9";
    for _ in 0..2 {
        let mut switch = network.start_switch(words)?;
        let links = network.run("ip -br link")?.expect_success()?;
        assert!(links.contains("vm1") && links.contains("vm2"), "{links}");
        let shown = switch.ofctl("show br0")?;
        assert!(
            shown.contains(" 1(vm1)") && shown.contains(" 9(vm2)"),
            "{shown}"
        );
        assert!(switch.process.stop()?.success());
        let links = network.run("ip -br link")?.expect_success()?;
        assert!(!links.contains("vm") && !links.contains("br0"), "{links}");
    }
    Ok(())
}
