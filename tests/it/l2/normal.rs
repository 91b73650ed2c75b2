//! `NORMAL` compared with Open vSwitch: with equal hosts and configuration, each frame is delivered
//! to the same hosts in the same form.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    static_entries_stay_until_removed,
    reserved_addresses_are_not_forwarded,
    priority_tags_follow_the_port_setting,
];

fn static_entries_stay_until_removed(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    let to = "eth(dst=02:00:00:00:01:77,src=02:00:00:00:01:01)/data(50)";
    let from = "eth(dst=02:00:00:00:01:01,src=02:00:00:00:01:77)/data(50)";
    assert_eq!(
        both.receivers(1, to)?,
        [2, 3, 4],
        "an unknown address is flooded"
    );
    both.appctl("fdb/add br0 p3 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [3]);
    // Frames from its address at other ports and flushes do not change a static entry.
    assert_eq!(both.receivers(2, from)?, [1]);
    both.appctl("fdb/flush br0")?;
    assert_eq!(both.receivers(1, to)?, [3]);
    let static_entries = |deployment| {
        let output = appctl(deployment, "fdb/show br0")?;
        let lines = output.lines().filter(|line| line.ends_with("static"));
        Ok::<_, Failure>(lines.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(
        static_entries(&comporta)?,
        ["    3     0  02:00:00:00:01:77  static"]
    );
    assert_eq!(static_entries(&comporta)?, static_entries(&ovs)?);
    // A static entry is removed when its port leaves the VLAN, or by command.
    both.vsctl("set Port p3 tag=7")?;
    assert_eq!(static_entries(&comporta)?, static_entries(&ovs)?);
    assert!(static_entries(&comporta)?.is_empty());
    both.appctl("fdb/add br0 p4 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [4]);
    both.appctl("fdb/del br0 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [2, 4]);
    // Invalid entries are refused.
    for words in [
        "fdb/add br0 p9 0 02:00:00:00:01:77",
        "fdb/add br0 p1 x 02:00:00:00:01:77",
        "fdb/add br0 p1 4096 02:00:00:00:01:77",
        "fdb/add br0 p1 0 01:00:5e:00:00:01",
    ] {
        assert_ne!(appctl(&comporta, words)?, "", "{words}");
    }
    Ok(())
}

fn reserved_addresses_are_not_forwarded(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    let addresses = [
        ("01:80:c2:00:00:00", true),
        ("01:80:c2:00:00:0f", true),
        ("01:80:c2:00:00:10", false),
        ("01:00:0c:00:00:00", true),
        ("01:00:0c:cc:cc:c0", true),
        ("01:00:0c:cc:cc:c7", true),
        ("01:00:0c:cc:cc:c8", false),
        ("01:00:0c:cc:cc:cc", true),
        ("01:00:0c:cc:cc:cd", true),
        ("01:00:0c:cc:cc:ce", false),
        ("01:00:0c:cd:cd:cd", true),
        ("00:e0:2b:00:00:00", true),
        ("00:e0:2b:00:00:04", true),
        ("00:e0:2b:00:00:05", false),
        ("00:e0:2b:00:00:06", true),
    ];
    let frame = |dst| format!("eth(dst={dst},src=02:00:00:00:01:01)/data(50)");
    for (dst, is_reserved) in addresses {
        let expected: &[u8] = if is_reserved { &[] } else { &[2, 3, 4] };
        assert_eq!(both.receivers(1, &frame(dst))?, expected, "{dst}");
    }
    // Reserved addresses are not learned from either.
    both.appctl("fdb/flush br0")?;
    both.receivers(1, &frame("01:00:0c:cc:cc:cd"))?;
    let to = "eth(dst=02:00:00:00:01:01,src=02:00:00:00:01:02)/data(50)";
    assert_eq!(both.receivers(2, to)?, [1, 3, 4]);
    both.vsctl("set Bridge br0 other_config:forward-bpdu=true")?;
    for (dst, _) in addresses {
        assert_eq!(both.receivers(1, &frame(dst))?, [2, 3, 4], "{dst}");
    }
    Ok(())
}

fn priority_tags_follow_the_port_setting(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let [comporta, ovs] = pair.deploy()?;
    let both = SideBySide::start(&comporta, &ovs)?;
    let frame = |tag| format!("eth(dst=ff:ff:ff:ff:ff:ff,src=02:00:00:00:01:01){tag}/data(50)");
    let tags = [
        "",
        "/vlan(vid=0)",
        "/vlan(pcp=3,vid=0)",
        "/vlan(vid=5)",
        "/vlan(pcp=3,vid=5)",
    ];
    let stacks = tags.map(frame);
    let stacks: Vec<_> = stacks.iter().map(String::as_str).collect();
    // Ports without a VLAN configuration.
    let lines = both.deliver(1, &stacks)?;
    let tagged = lines.iter().filter(|line| line.starts_with('2'));
    let tagged = tagged.filter(|line| line.contains("vlan")).count();
    assert_eq!(
        tagged, 3,
        "{lines:?}: a frame of VLAN 0 without a priority has no tag"
    );
    // The other VLAN modes.
    let modes = [
        "tag=0 vlan_mode=access",
        "tag=5 vlan_mode=access",
        "tag=0 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-tagged",
        "trunks=0,5",
    ];
    for priority_tags in ["never", "if-nonzero", "always"] {
        for three in modes.chunks(3) {
            for (mode, port) in three.iter().zip(2..) {
                both.vsctl(&format!(
                    "clear Port p{port} tag trunks vlan_mode -- set Port p{port} {mode} \
                     other_config:priority-tags={priority_tags}"
                ))?;
            }
            both.deliver(1, &stacks)?;
            both.deliver(2, &stacks)?;
        }
    }
    Ok(())
}
