//! `NORMAL` beside that of Open vSwitch: both have the same hosts and are told the same, and
//! every frame must reach the same of them and look the same there.

use testbed::Failure;

use crate::support::comparison::{NetworkPair, SideBySide};
use crate::support::context::{SystemTest, TestContext, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::open_vswitch::appctl;

pub(crate) const TESTS: &[SystemTest] = tests![
    stations_put_in_by_hand_stay_where_they_are,
    frames_for_bridges_end_there,
    tags_for_priorities_leave_where_they_are_wanted,
];

fn stations_put_in_by_hand_stay_where_they_are(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
    let to = "eth(dst=02:00:00:00:01:77,src=02:00:00:00:01:01)/data(50)";
    let from = "eth(dst=02:00:00:00:01:01,src=02:00:00:00:01:77)/data(50)";
    assert_eq!(both.receivers(1, to)?, [2, 3, 4], "nobody knows it");
    both.appctl("fdb/add br0 p3 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [3]);
    // It stays there, wherever frames of its address come from, and whatever is flushed.
    assert_eq!(both.receivers(2, from)?, [1]);
    both.appctl("fdb/flush br0")?;
    assert_eq!(both.receivers(1, to)?, [3]);
    let by_hand = |deployment| {
        let shown = appctl(deployment, "fdb/show br0")?;
        let lines = shown.lines().filter(|line| line.ends_with("static"));
        Ok::<_, Failure>(lines.map(str::to_owned).collect::<Vec<_>>())
    };
    assert_eq!(by_hand(&ours)?, ["    3     0  02:00:00:00:01:77  static"]);
    assert_eq!(by_hand(&ours)?, by_hand(&other)?);
    // It goes with its port's VLAN, or by hand.
    both.vsctl("set Port p3 tag=7")?;
    assert_eq!(by_hand(&ours)?, by_hand(&other)?);
    assert!(by_hand(&ours)?.is_empty());
    both.appctl("fdb/add br0 p4 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [4]);
    both.appctl("fdb/del br0 0 02:00:00:00:01:77")?;
    assert_eq!(both.receivers(1, to)?, [2, 4]);
    // What cannot be is said.
    for words in [
        "fdb/add br0 p9 0 02:00:00:00:01:77",
        "fdb/add br0 p1 x 02:00:00:00:01:77",
        "fdb/add br0 p1 4096 02:00:00:00:01:77",
        "fdb/add br0 p1 0 01:00:5e:00:00:01",
    ] {
        assert_ne!(appctl(&ours, words)?, "", "{words}");
    }
    Ok(())
}

fn frames_for_bridges_end_there(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
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
    for (dst, ends) in addresses {
        let expected: &[u8] = if ends { &[] } else { &[2, 3, 4] };
        assert_eq!(both.receivers(1, &frame(dst))?, expected, "{dst}");
    }
    // They teach nothing either.
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

fn tags_for_priorities_leave_where_they_are_wanted(context: &TestContext) -> TestResult {
    let pair = NetworkPair::new(context)?;
    let (ours, other) = (
        Deployment::in_directory(&pair.comporta, "ours")?,
        Deployment::in_directory(&pair.ovs, "theirs")?,
    );
    let both = SideBySide::start(&ours, &other)?;
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
    // Ports of which nothing is said.
    let come = both.deliver(1, &stacks)?;
    let tagged = come.iter().filter(|line| line.starts_with('2'));
    let tagged = tagged.filter(|line| line.contains("vlan")).count();
    assert_eq!(
        tagged, 3,
        "{come:?}: one of VLAN 0 without a priority has no tag"
    );
    // What there is else.
    let modes = [
        "tag=0 vlan_mode=access",
        "tag=5 vlan_mode=access",
        "tag=0 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-untagged",
        "tag=5 vlan_mode=native-tagged",
        "trunks=0,5",
    ];
    for wanted in ["never", "if-nonzero", "always"] {
        for three in modes.chunks(3) {
            for (mode, port) in three.iter().zip(2..) {
                both.vsctl(&format!(
                    "clear Port p{port} tag trunks vlan_mode -- set Port p{port} {mode} \
                     other_config:priority-tags={wanted}"
                ))?;
            }
            both.deliver(1, &stacks)?;
            both.deliver(2, &stacks)?;
        }
    }
    Ok(())
}
