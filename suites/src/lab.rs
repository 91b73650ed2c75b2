//! Lab: the switch under test and the tester's own switch, connected by three links, and a judge
//! that runs a queue of cases on them.
//!
//! ```text
//!           judge (127.0.0.1:6653)
//!            |                |
//!     comporta `target`   Open vSwitch `tester`
//!      r1   r2   r3         t1   t2   t3
//!       |    |    +----------|----|----+
//!       |    +---------------|----+
//!       +--------------------+
//! ```
//!
//! The lab has one namespace, which the kernel removes with it. Only the switches send frames on
//! the links.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{
    Clock, DeviceOffload, Failure, Namespace, OpenVswitch, Process, Program, Site, Spawner,
};

use crate::verdict::{self, Verdict};

/// Time limit for the start of the switch.
const START: Duration = Duration::from_secs(20);

/// The judge, an application of `osken-manager`.
const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/os_ken/judge.py");

/// Disables the flow cache of Open vSwitch. With it, a barrier reply precedes the revalidation of
/// cached flows, so a frame could match those of the previous case.
const NO_CACHE: &str = "other_config:flow-limit=0";

/// Keeps the flow cache, which is necessary to count twenty thousand frames per second, and
/// revalidates often, so that counters of cached flows are soon reported. An outdated flow has no
/// effect on a stream of half a minute.
const FRESH_CACHE: &str = "other_config:max-revalidator=50";

/// Receive buffer of the tester's switch at each port, in bytes. On a busy machine the switch may
/// not run for tenths of a second, in which thousands of frames arrive that it must count. Each
/// takes about 2,300 bytes of kernel memory.
const LATE: usize = 32 << 20;

/// Parameters of a lab.
#[derive(Clone, Debug)]
pub(crate) struct LabPlan {
    /// Directory of the lab, which must not exist yet.
    pub(crate) directory: PathBuf,
    /// Links to the files of cases, shared with other labs.
    pub(crate) queue: PathBuf,
    /// OpenFlow version, as the name of the cases' directory: `of13`.
    pub(crate) version: String,
    /// True if the cases send for half a minute.
    pub(crate) streams: bool,
    /// Python environment.
    pub(crate) environment: PathBuf,
    /// Program of the switch under test.
    pub(crate) comporta: PathBuf,
    /// Core of the switch's worker.
    pub(crate) core: usize,
}

/// Running lab.
pub(crate) struct Lab {
    // Fields are dropped in this order: the judge first, which would report the end of the others.
    judge: Process,
    target: Process,
    _tester: OpenVswitch,
    _namespace: Namespace,
    directory: PathBuf,
}

impl Lab {
    /// Builds the lab and starts the judge.
    pub(crate) fn start(plan: &LabPlan, spawner: &Spawner, clock: &Clock) -> Result<Self, Failure> {
        fs::create_dir(&plan.directory).map_err(Failure::to("make a lab's directory"))?;
        let namespace = Namespace::new()?;
        lay_cables(&namespace)?;
        let tester = start_tester(plan, spawner, clock, &namespace)?;
        let target = start_target(plan, spawner, clock, &namespace)?;
        let judge = spawner.start(judge(plan).inside(&namespace))?;
        Ok(Self {
            judge,
            target,
            _tester: tester,
            _namespace: namespace,
            directory: plan.directory.clone(),
        })
    }

    /// Returns true if the judge ends within `limit`, which it does when the queue is empty.
    pub(crate) fn is_done_within(&mut self, limit: Duration) -> Result<bool, Failure> {
        match self.judge.wait(limit) {
            Ok(_) => Ok(true),
            Err(Failure::Timeout { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the verdicts so far.
    pub(crate) fn verdicts(&self) -> Result<Vec<Verdict>, Failure> {
        verdict::read(&self.directory.join("verdicts.jsonl"))
            .map_err(Failure::to("read the verdicts"))
    }

    /// Returns an error if the switch under test has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        if self.target.is_running() {
            return Ok(());
        }
        let status = self.target.wait(Duration::ZERO)?;
        Err(self.target.failed(status))
    }
}

/// Creates three links in one namespace. Checksums are complete before the frames are sent, since
/// Open vSwitch would not complete them.
fn lay_cables(namespace: &Namespace) -> Result<(), Failure> {
    for (tester, target) in [("t1", "r1"), ("t2", "r2"), ("t3", "r3")] {
        namespace.join(tester, namespace, target)?;
        for end in [tester, target] {
            namespace.set_offload(end, DeviceOffload::TxChecksum, false)?;
            namespace.set_up(end)?;
        }
    }
    Ok(())
}

fn start_tester(
    plan: &LabPlan,
    spawner: &Spawner,
    clock: &Clock,
    inside: &Namespace,
) -> Result<OpenVswitch, Failure> {
    let site = Site {
        spawner,
        inside,
        directory: &plan.directory,
        cores: &[],
    };
    let cache = if plan.streams { FRESH_CACHE } else { NO_CACHE };
    let mut tester = OpenVswitch::start(site, clock, &[cache])?;
    tester.vsctl(
        "add-br tester -- set bridge tester datapath_type=netdev fail-mode=secure \
         protocols=OpenFlow10,OpenFlow13,OpenFlow14 other-config:datapath-id=0000000000000002 \
         -- add-port tester t1 -- set interface t1 ofport_request=1 \
         -- add-port tester t2 -- set interface t2 ofport_request=2 \
         -- add-port tester t3 -- set interface t3 ofport_request=3 \
         -- set-controller tester tcp:127.0.0.1:6653",
    )?;
    tester.enlarge_receive_buffers(LATE)?;
    Ok(tester)
}

fn start_target(
    plan: &LabPlan,
    spawner: &Spawner,
    clock: &Clock,
    inside: &Namespace,
) -> Result<Process, Failure> {
    let words = "switch --bridge target --datapath-id 0000000000000001 --fail-mode secure \
                 --port r1=1 --port r2=2 --port r3=3 --controller tcp:127.0.0.1:6653";
    let log = plan.directory.join("comporta.log");
    let program = Program::new(&plan.comporta)
        .args(words.split_whitespace())
        .args(["--cores".to_owned(), plan.core.to_string()])
        .arg("--rundir")
        .arg(plan.directory.join("run"))
        .inside(inside)
        .log(&log);
    let mut target = spawner.start(program)?;
    clock.wait_for("the switch to be ready", START, || {
        if !target.is_running() {
            let status = target.wait(Duration::ZERO)?;
            return Err(target.failed(status));
        }
        let output = target.written()?;
        Ok(output.contains("INFO ready").then_some(()))
    })?;
    Ok(target)
}

/// Returns the program of the judge.
fn judge(plan: &LabPlan) -> Program<'static> {
    let version = match plan.version.as_str() {
        "of10" => "openflow10",
        "of13" => "openflow13",
        _ => "openflow14",
    };
    let words = "--ofp-listen-host 127.0.0.1 --ofp-tcp-listen-port 6653 \
                 --test-switch-target 1 --test-switch-tester 2 --test-switch-interval 0";
    let program = absolute(&plan.environment).join("bin/osken-manager");
    Program::new(program)
        .args(words.split_whitespace())
        .args(["--test-switch-target-version", version])
        .args(["--test-switch-tester-version", version])
        .arg("--test-switch-dir")
        .arg(&plan.queue)
        .arg(JUDGE)
        .directory(&plan.directory)
        .log(plan.directory.join("judge.log"))
}

fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}
