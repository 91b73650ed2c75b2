//! Under Mininet, as Debian has it: its own class for Open vSwitch finds this switch in the
//! place of ovs-vswitchd and knows no difference; and the class in `contrib/mininet`.
//!
//! Mininet runs in a process namespace of its own, so that what it starts ends with it, and what
//! it kills by name when something fails is its own; and with a layer over `/tmp`, where it removes
//! all logs then.

use std::time::Duration;

use testbed::{Failure, Requirement};

use crate::ground::{Ground, Outcome, Rule, Stop, rules};
use crate::rig::{Ran, Rig, binary, of_project};
use crate::site::Site;

pub(crate) const RULES: &[Rule] = rules![
    mininet_takes_it_for_open_vswitch_by_default,
    mininet_takes_it_for_open_vswitch_in_trees_and_rows,
    mininet_has_rings_where_there_is_a_spanning_tree,
    mininet_shapes_links_and_cuts_them,
    mininet_has_a_class_of_ours_without_a_database,
    mininet_has_both_in_one_network,
];

const NEEDS: [Requirement; 1] = [Requirement::Program {
    program: "mn",
    package: "mininet",
}];

/// The Python that Debian's Mininet is installed for.
const PYTHON: &str = "/usr/bin/python3";

/// How long a network may take, from its first cable to its last.
const PATIENCE: Duration = Duration::from_secs(100);

/// Sets the stage in namespaces that are made already, and plays there what its arguments say.
const STAGE: &str = r#"
mount -t tmpfs none /mnt && mkdir /mnt/run /mnt/upper /mnt/work && mount --bind "$OVS_RUNDIR" /mnt/run || exit 1
mount -t overlay overlay -o lowerdir=/tmp,upperdir=/mnt/upper,workdir=/mnt/work /tmp || exit 1
ip link set lo up
OVS_RUNDIR=/mnt/run exec "$@"
"#;

/// What `words` say on Mininet's stage, both ways of saying; they must succeed.
fn play(site: &Site<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let stage = "unshare --mount --pid --fork --mount-proc --kill-child sh -c";
    let program = site.program(stage).arg(STAGE).arg("stage");
    let program = program
        .env("COMPORTA", binary())
        .args(words.iter().copied());
    let ran = Ran::within(PATIENCE, site.rig.ground, program)?;
    let errors = ran.errors.clone();
    Ok(ran.good()? + &errors)
}

/// Has Mininet's own program build networks with these words, one after the other; all of their
/// pings must be answered.
fn pings(site: &Site<'_, '_>, networks: &[&str]) -> Result<(), Failure> {
    for words in networks {
        let words: Vec<_> = "mn --wait --test pingall"
            .split(' ')
            .chain(words.split(' '))
            .collect();
        let said = play(site, &words)?;
        assert!(said.contains("Results: 0% dropped"), "{words:?}: {said}");
    }
    Ok(())
}

/// Where Mininet plays: no hosts but its own.
fn stage(ground: &Ground) -> Result<Rig<'_>, Stop> {
    match testbed::check(&NEEDS) {
        Ok(()) => Ok(Rig::new(ground, 0)?),
        Err(missing) => Err(Stop::Skip(missing.to_string())),
    }
}

fn mininet_takes_it_for_open_vswitch_by_default(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    pings(
        &site,
        &[
            "--switch ovs",
            "--switch ovs,datapath=user",
            "--switch ovsbr",
        ],
    )?;
    // It leaves as it came.
    assert_eq!(site.vsctl("list-br")?, "");
    Ok(())
}

fn mininet_takes_it_for_open_vswitch_in_trees_and_rows(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    pings(
        &site,
        &[
            "--switch ovs,datapath=user --topo tree,2",
            "--switch ovs --topo linear,4",
            "--switch ovs,failMode=standalone,protocols=OpenFlow13 --controller none --topo single,6",
            "--switch ovs,batch=True --topo linear,3",
        ],
    )?;
    Ok(())
}

fn mininet_has_rings_where_there_is_a_spanning_tree(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    // Nine switches, each of which has four neighbours. It waits until all ports are settled.
    pings(&site, &["--switch ovsbr,stp=1 --topo torus,3,3"])?;
    Ok(())
}

fn mininet_shapes_links_and_cuts_them(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let script = of_project("tests/apps/mininet_links.py");
    let said = play(&site, &[PYTHON, &script.to_string_lossy(), "user"])?;
    for what in ["connected", "reached", "rate", "cut", "mended"] {
        assert!(said.contains(&format!("{what} True")), "{said}");
    }
    Ok(())
}

fn mininet_has_a_class_of_ours_without_a_database(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let class = of_project("contrib/mininet/comporta.py");
    let class = class.to_string_lossy();
    pings(
        &site,
        &[
            &format!("--custom {class} --switch comporta --topo tree,2"),
            &format!(
                "--custom {class} --switch comporta,failMode=standalone --controller none --topo linear,3"
            ),
        ],
    )?;
    Ok(())
}

fn mininet_has_both_in_one_network(ground: &Ground) -> Outcome {
    let rig = stage(ground)?;
    let site = Site::new(&rig)?;
    let _daemon = site.daemon()?;
    let script = of_project("tests/apps/mininet_both.py");
    let class = of_project("contrib/mininet");
    let words = [
        PYTHON,
        &*script.to_string_lossy(),
        &*class.to_string_lossy(),
    ];
    let said = play(&site, &words)?;
    for what in ["connected", "reached", "a rule of its own"] {
        assert!(said.contains(&format!("{what} True")), "{said}");
    }
    Ok(())
}
