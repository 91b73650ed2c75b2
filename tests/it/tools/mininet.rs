//! Under Mininet, as Debian has it: its own class for Open vSwitch finds this switch in the
//! place of ovs-vswitchd and knows no difference; and the class in `contrib/mininet`.
//!
//! Mininet runs in a process namespace of its own, so that what it starts ends with it, and what
//! it kills by name when something fails is its own; and with a layer over `/tmp`, where it removes
//! all logs then.

use std::time::Duration;

use testbed::{Failure, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, project_file};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
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
const WAIT_LIMIT: Duration = Duration::from_secs(100);

/// Sets the stage in namespaces that are made already, and plays there what its arguments say.
const STAGE: &str = r#"
mount -t tmpfs none /mnt && mkdir /mnt/run /mnt/upper /mnt/work && mount --bind "$OVS_RUNDIR" /mnt/run || exit 1
mount -t overlay overlay -o lowerdir=/tmp,upperdir=/mnt/upper,workdir=/mnt/work /tmp || exit 1
ip link set lo up
OVS_RUNDIR=/mnt/run exec "$@"
"#;

/// What `words` say on Mininet's stage, both ways of saying; they must succeed.
fn play(deployment: &Deployment<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let stage = "unshare --mount --pid --fork --mount-proc --kill-child sh -c";
    let program = deployment.program(stage).arg(STAGE).arg("stage");
    let program = program
        .env("COMPORTA", comporta_binary())
        .args(words.iter().copied());
    let ran = CommandOutput::run_within(WAIT_LIMIT, deployment.network.context, program)?;
    let errors = ran.stderr.clone();
    Ok(ran.expect_success()? + &errors)
}

/// Has Mininet's own program build networks with these words, one after the other; all of their
/// pings must be answered.
fn pings(deployment: &Deployment<'_, '_>, networks: &[&str]) -> Result<(), Failure> {
    for words in networks {
        let words: Vec<_> = "mn --wait --test pingall"
            .split(' ')
            .chain(words.split(' '))
            .collect();
        let said = play(deployment, &words)?;
        assert!(said.contains("Results: 0% dropped"), "{words:?}: {said}");
    }
    Ok(())
}

/// Where Mininet plays: no hosts but its own.
fn stage(context: &TestContext) -> Result<TestNetwork<'_>, TestError> {
    match testbed::check(&NEEDS) {
        Ok(()) => Ok(TestNetwork::new(context, 0)?),
        Err(missing) => Err(TestError::Skip(missing.to_string())),
    }
}

fn mininet_takes_it_for_open_vswitch_by_default(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    pings(
        &deployment,
        &[
            "--switch ovs",
            "--switch ovs,datapath=user",
            "--switch ovsbr",
        ],
    )?;
    // It leaves as it came.
    assert_eq!(deployment.vsctl("list-br")?, "");
    Ok(())
}

fn mininet_takes_it_for_open_vswitch_in_trees_and_rows(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    pings(
        &deployment,
        &[
            "--switch ovs,datapath=user --topo tree,2",
            "--switch ovs --topo linear,4",
            "--switch ovs,failMode=standalone,protocols=OpenFlow13 --controller none --topo single,6",
            "--switch ovs,batch=True --topo linear,3",
        ],
    )?;
    Ok(())
}

fn mininet_has_rings_where_there_is_a_spanning_tree(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    // Nine switches, each of which has four neighbours. It waits until all ports are settled.
    pings(&deployment, &["--switch ovsbr,stp=1 --topo torus,3,3"])?;
    Ok(())
}

fn mininet_shapes_links_and_cuts_them(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let script = project_file("tests/apps/mininet_links.py");
    let said = play(&deployment, &[PYTHON, &script.to_string_lossy(), "user"])?;
    for what in ["connected", "reached", "rate", "cut", "mended"] {
        assert!(said.contains(&format!("{what} True")), "{said}");
    }
    Ok(())
}

fn mininet_has_a_class_of_ours_without_a_database(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let class = project_file("contrib/mininet/comporta.py");
    let class = class.to_string_lossy();
    pings(
        &deployment,
        &[
            &format!("--custom {class} --switch comporta --topo tree,2"),
            &format!(
                "--custom {class} --switch comporta,failMode=standalone --controller none --topo linear,3"
            ),
        ],
    )?;
    Ok(())
}

fn mininet_has_both_in_one_network(context: &TestContext) -> TestResult {
    let network = stage(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let script = project_file("tests/apps/mininet_both.py");
    let class = project_file("contrib/mininet");
    let words = [
        PYTHON,
        &*script.to_string_lossy(),
        &*class.to_string_lossy(),
    ];
    let said = play(&deployment, &words)?;
    for what in ["connected", "reached", "a rule of its own"] {
        assert!(said.contains(&format!("{what} True")), "{said}");
    }
    Ok(())
}
