//! TAP ports, which the switch creates for a process or a namespace behind them.

use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::host::TestHost;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    tap_port_is_an_interface_of_a_host_namespace,
    processes_behind_tap_ports_communicate_by_tcp,
    tap_port_exists_while_the_switch_runs,
];

fn tap_port_is_an_interface_of_a_host_namespace(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 1)?;
    let switch = network.start_switch("--bridge br0 --port p1 --port tap:vm1=5")?;
    let guest = TestHost::with_interface(context, 5, &network.switch_namespace, "vm1")?;
    let host = network.host(1);
    // The switch polls once a second for changes in other namespaces.
    context.wait_until("the port to be up", || {
        let output = switch.ofctl("show br0")?;
        let (_, port) = output.split_once(" 5(vm1)").expect("port 5 is listed");
        let (port, _) = port.split_once(" LOCAL(").expect("LOCAL is listed last");
        Ok(!port.contains("DOWN"))
    })?;
    host.ping(guest.address, 10)?;
    guest.ping(host.address, 10)?;
    host.exchange_files(&guest, 32 << 20)?;
    Ok(())
}

fn processes_behind_tap_ports_communicate_by_tcp(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let _switch = network.start_switch("--bridge br0 --port tap:vm1 --port tap:vm2")?;
    let one = TestHost::with_interface(context, 1, &network.switch_namespace, "vm1")?;
    let two = TestHost::with_interface(context, 2, &network.switch_namespace, "vm2")?;
    one.ping_until_reply(two.address)?;
    one.iperf(&two, "")?;
    one.iperf(&two, "--reverse")?;
    Ok(())
}

fn tap_port_exists_while_the_switch_runs(context: &TestContext) -> TestResult {
    let network = TestNetwork::new(context, 0)?;
    let words = "--bridge br0 --port tap:vm1 --port tap:vm2=9";
    for _ in 0..2 {
        let mut switch = network.start_switch(words)?;
        let links = network.run("ip -br link")?.expect_success()?;
        assert!(links.contains("vm1") && links.contains("vm2"), "{links}");
        let output = switch.ofctl("show br0")?;
        assert!(
            output.contains(" 1(vm1)") && output.contains(" 9(vm2)"),
            "{output}"
        );
        assert!(switch.process.stop()?.success());
        let links = network.run("ip -br link")?.expect_success()?;
        assert!(!links.contains("vm") && !links.contains("br0"), "{links}");
    }
    Ok(())
}
