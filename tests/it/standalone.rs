//! Without a controller the switch is an ordinary switch.

use crate::ground::{Ground, Outcome, Rule, rules};
use crate::host::noise;
use crate::rig::Rig;

pub(crate) const RULES: &[Rule] = rules![
    hosts_ping_each_other,
    a_file_crosses_unharmed_both_ways,
    a_known_station_is_met_at_its_port_only,
];

const TWO: &str = "--bridge br0 --port p1 --port p2";
const THREE: &str = "--bridge br0 --port p1 --port p2 --port p3";

fn hosts_ping_each_other(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let _switch = rig.start(THREE)?;
    for (from, to) in [(1, 2), (2, 3), (3, 1)] {
        rig.host(from).ping(rig.host(to).address, 10)?;
    }
    Ok(())
}

fn a_file_crosses_unharmed_both_ways(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 2)?;
    let _switch = rig.start(TWO)?;
    let (one, two) = rig.pair();
    let file = noise(64 << 20);
    assert!(one.transfer(two, &file)? == file);
    assert!(two.transfer(one, &file)? == file);
    Ok(())
}

fn a_known_station_is_met_at_its_port_only(ground: &Ground) -> Outcome {
    let rig = Rig::new(ground, 3)?;
    let switch = rig.start(THREE)?;
    let (mut two, mut three) = (rig.host(2).eye()?, rig.host(3).eye()?);
    let unknown = "eth(dst=02:00:00:00:00:02,src=02:00:00:00:00:01) / data(50)";
    rig.host(1).send(&[unknown])?;
    two.sees(unknown);
    three.sees(unknown);
    rig.host(2)
        .send(&["eth(dst=02:00:00:00:00:01,src=02:00:00:00:00:02) / data(50)"])?;
    ground.wait_until("both to be learned", || {
        let shown = switch.appctl("fdb/show br0")?;
        Ok(shown.contains("    1     0  02:00:00:00:00:01")
            && shown.contains("    2     0  02:00:00:00:00:02"))
    })?;
    let last = "eth(dst=ff:ff:ff:ff:ff:ff) / data(60)";
    rig.host(1).send(&[unknown, last])?;
    two.sees(unknown);
    two.sees(last);
    three.sees(last);
    Ok(())
}
