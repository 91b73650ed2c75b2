//! Mininet, from Debian: its class for Open vSwitch uses Comporta in place of ovs-vswitchd, and the
//! class in `contrib/mininet` uses Comporta without a database.
//!
//! Mininet runs in its own pid namespace, so that its processes end with it and its `killall`
//! reaches only them, and with an overlay over `/tmp`, from which it removes all logs.

use std::time::Duration;

use testbed::{Failure, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, project_file};
use crate::support::context::{SystemTest, TestContext, TestError, TestResult, tests};
use crate::support::deployment::Deployment;
use crate::support::network::TestNetwork;

pub(crate) const TESTS: &[SystemTest] = tests![
    mininet_uses_comporta_as_open_vswitch_by_default,
    mininet_uses_comporta_in_tree_and_linear_topologies,
    mininet_rings_work_with_a_spanning_tree,
    mininet_limits_rates_and_cuts_links,
    mininet_class_of_comporta_needs_no_database,
    mininet_combines_comporta_and_open_vswitch,
];

const REQUIREMENTS: [Requirement; 1] = [Requirement::Program {
    program: "mn",
    package: "mininet",
}];

/// The Python of Debian's Mininet.
const PYTHON: &str = "/usr/bin/python3";

/// Longest duration of a network, from its creation to its removal.
const WAIT_LIMIT: Duration = Duration::from_secs(100);

/// Script that mounts the overlay in the new namespaces, and runs its arguments.
const NAMESPACE_SCRIPT: &str = r#"
mount -t tmpfs none /mnt && mkdir /mnt/run /mnt/upper /mnt/work && mount --bind "$OVS_RUNDIR" /mnt/run || exit 1
mount -t overlay overlay -o lowerdir=/tmp,upperdir=/mnt/upper,workdir=/mnt/work /tmp || exit 1
ip link set lo up
OVS_RUNDIR=/mnt/run exec "$@"
"#;

/// Runs a program in namespaces for Mininet, which must succeed, and returns standard output and
/// standard error.
fn run_in_namespaces(deployment: &Deployment<'_, '_>, words: &[&str]) -> Result<String, Failure> {
    let unshare = "unshare --mount --pid --fork --mount-proc --kill-child sh -c";
    let program = deployment
        .program(unshare)
        .arg(NAMESPACE_SCRIPT)
        .arg("mininet");
    let program = program
        .env("COMPORTA", comporta_binary())
        .args(words.iter().copied());
    let result = CommandOutput::run_within(WAIT_LIMIT, deployment.network.context, program)?;
    let errors = result.stderr.clone();
    Ok(result.expect_success()? + &errors)
}

/// Runs `mn --test pingall` with each of these arguments, and asserts that no ping is lost.
fn expect_pingall(deployment: &Deployment<'_, '_>, networks: &[&str]) -> Result<(), Failure> {
    for words in networks {
        let words: Vec<_> = "mn --wait --test pingall"
            .split(' ')
            .chain(words.split(' '))
            .collect();
        let output = run_in_namespaces(deployment, &words)?;
        assert!(
            output.contains("Results: 0% dropped"),
            "{words:?}: {output}"
        );
    }
    Ok(())
}

/// A network without hosts: Mininet creates its own.
fn hostless_network(context: &TestContext) -> Result<TestNetwork<'_>, TestError> {
    match testbed::check(&REQUIREMENTS) {
        Ok(()) => Ok(TestNetwork::new(context, 0)?),
        Err(missing) => Err(TestError::Skip(missing.to_string())),
    }
}

fn mininet_uses_comporta_as_open_vswitch_by_default(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    expect_pingall(
        &deployment,
        &[
            "--switch ovs",
            "--switch ovs,datapath=user",
            "--switch ovsbr",
        ],
    )?;
    // Mininet removes its bridges.
    assert_eq!(deployment.vsctl("list-br")?, "");
    Ok(())
}

fn mininet_uses_comporta_in_tree_and_linear_topologies(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    expect_pingall(
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

fn mininet_rings_work_with_a_spanning_tree(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    // Nine switches with four neighbours each. Mininet waits until all ports forward or block.
    expect_pingall(&deployment, &["--switch ovsbr,stp=1 --topo torus,3,3"])?;
    Ok(())
}

fn mininet_limits_rates_and_cuts_links(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let script = project_file("tests/apps/mininet_links.py");
    let output = run_in_namespaces(&deployment, &[PYTHON, &script.to_string_lossy(), "user"])?;
    for check in ["connected", "reached", "rate", "cut", "mended"] {
        assert!(output.contains(&format!("{check} True")), "{output}");
    }
    Ok(())
}

fn mininet_class_of_comporta_needs_no_database(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let class = project_file("contrib/mininet/comporta.py");
    let class = class.to_string_lossy();
    expect_pingall(
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

fn mininet_combines_comporta_and_open_vswitch(context: &TestContext) -> TestResult {
    let network = hostless_network(context)?;
    let deployment = Deployment::new(&network)?;
    let _daemon = deployment.start_daemon()?;
    let script = project_file("tests/apps/mininet_both.py");
    let class = project_file("contrib/mininet");
    let words = [
        PYTHON,
        &*script.to_string_lossy(),
        &*class.to_string_lossy(),
    ];
    let output = run_in_namespaces(&deployment, &words)?;
    for check in ["connected", "reached", "a rule of its own"] {
        assert!(output.contains(&format!("{check} True")), "{output}");
    }
    Ok(())
}
