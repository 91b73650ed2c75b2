//! Migration by packages from Open vSwitch to Comporta and back, under traffic: bridges, a bond,
//! patch ports, a tunnel, QoS and rules stay, and packets are lost only during the restarts.

use testbed::Failure;

use super::packages::{DebianPackages, OVS_CTL, Overlay};
use crate::support::command::program;
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] =
    tests![packages_migrate_to_comporta_and_back_under_traffic,];

/// Commands of `ovs-vsctl` for the configuration: host 1 on one bridge, the others on another.
const CONFIGURATION: [&str; 6] = [
    "add-br br0 -- set Bridge br0 datapath_type=netdev",
    "add-br br1 -- set Bridge br1 datapath_type=netdev",
    "add-port br0 p1 -- add-port br1 p2",
    "add-port br0 to1 -- set Interface to1 type=patch options:peer=to0 -- add-port br1 to0 -- set Interface to0 type=patch options:peer=to1",
    "add-bond br1 bond0 p3 p4 bond_mode=active-backup -- add-port br1 vx0 -- set Interface vx0 type=vxlan options:remote_ip=10.99.0.1 options:key=5",
    "set Port p1 qos=@q -- --id=@q create QoS type=linux-htb other_config:max-rate=1000000000",
];

/// A rule that must survive the restarts.
const RULE: &str = "priority=7,udp,in_port=1,tp_dst=9 actions=drop";

/// The address of the interface of a bridge, which Comporta takes over.
const ADDRESS: &str = "10.98.0.1/24";

/// Packets per swap, and the time between two of them in ms.
const PACKETS: u32 = 1_500;
const PERIOD: u32 = 10;

/// Sends packets from host 1 to host 2 while `swap` runs. Returns the number of lost packets.
fn lost_during(
    network: &TestNetwork<'_>,
    swap: impl FnOnce() -> Result<(), Failure>,
) -> Result<u32, Failure> {
    let (one, two) = network.host_pair();
    let words = format!("fping -q -c {PACKETS} -p {PERIOD} -t 1000 {}", two.address);
    let context = network.context;
    let log = context.unique_path("fping.log");
    let mut traffic = context
        .spawner
        .start(program(&words).inside(&one.namespace).log(log))?;
    swap()?;
    one.ping_until_reply(two.address)?;
    let limit = std::time::Duration::from_millis((PACKETS * PERIOD * 4).into());
    // fping fails if it has lost packets.
    let _ = traffic.wait(limit)?;
    let summary = traffic.written()?;
    let received = summary.split('/').nth(3).and_then(|word| word.parse().ok());
    let received: u32 = received.unwrap_or_else(|| panic!("{summary}"));
    Ok(PACKETS - received)
}

fn packages_migrate_to_comporta_and_back_under_traffic(context: &TestContext) -> TestResult {
    let packages = DebianPackages::build(context, "dist")?;
    let network = TestNetwork::new(context, 4)?;
    let (one, two) = network.host_pair();
    let overlay = Overlay::new(&network)?;
    overlay.run("update-alternatives --auto ovs-vswitchd")?;
    overlay.install(&packages.comporta)?;
    overlay.start_services()?;
    for words in CONFIGURATION {
        overlay.run(&format!("ovs-vsctl {words}"))?;
    }
    overlay.run(&format!(
        "ovs-ofctl add-flow br0 {}",
        RULE.replace(' ', ",")
    ))?;
    overlay.run(&format!("ip address add {ADDRESS} dev br0"))?;
    one.ping_until_reply(two.address)?;
    let restart =
        format!("{OVS_CTL} restart --system-id=random --no-record-hostname --no-mlockall");
    let check = |version: &str| -> Result<(), Failure> {
        let output = overlay.run("ovs-appctl version")?;
        assert!(output.starts_with(version), "{output}");
        let errors = overlay.run("ovs-vsctl --bare --columns=error list Interface")?;
        assert_eq!(errors.trim(), "");
        let rules = overlay.run("ovs-ofctl --no-stats dump-flows br0")?;
        assert!(rules.contains(RULE), "{rules}");
        let bond = overlay.run("ovs-appctl bond/show bond0")?;
        assert!(bond.contains("bond_mode: active-backup"), "{bond}");
        Ok(())
    };
    check("ovs-vswitchd (Open vSwitch)")?;
    let lost = lost_during(&network, || {
        overlay.install(&packages.vswitchd)?;
        overlay.run(&restart).map(|_| ())
    })?;
    check("ovs-vswitchd (Comporta,")?;
    let addresses = overlay.run("ip address show dev br0")?;
    assert!(addresses.contains(ADDRESS), "{addresses}");
    let lost_back = lost_during(&network, || {
        overlay.run("dpkg --no-triggers --remove comporta-vswitchd")?;
        overlay.run(&restart).map(|_| ())
    })?;
    check("ovs-vswitchd (Open vSwitch)")?;
    assert!(
        lost < PACKETS && lost_back < PACKETS,
        "lost {lost} and {lost_back} of {PACKETS}"
    );
    overlay.run(&format!("{OVS_CTL} stop"))?;
    Ok(())
}
