//! A lab: the switch under test, and the tester's own switch, joined by three
//! cables; and a judge that works off a queue of cases with them.
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
//! All of it is in one namespace, which vanishes with the lab: nothing but the
//! switches has a reason to speak at the cables' ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{
    Clock, DeviceOffload, Failure, Namespace, OpenVswitch, Process, Program, Site, Spawner,
};

use crate::verdict::{self, Verdict};

/// How long the switch may take to be ready.
const START: Duration = Duration::from_secs(20);

/// The judge, a program for `osken-manager`.
const JUDGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/os_ken/judge.py");

/// Open vSwitch answers a barrier before it has revised the flows that it caches, so
/// that the frame of a case may meet those of the case before. Without a cache its
/// barriers are as true as those of the switch under test have to be.
const NO_CACHE: &str = "other_config:flow-limit=0";

/// Without a cache it would lose a part of twenty thousand frames a second, which it has
/// to count. In half a minute the moment of an older flow is nothing; what the cache
/// has counted has to be told soon.
const FRESH_CACHE: &str = "other_config:max-revalidator=50";

/// What the tester's switch may be late for at each port: on a busy machine it sleeps
/// for tenths of a second, in which thousands of frames come that it has to count.
/// Each takes some 2,300 bytes of the kernel's memory.
const LATE: usize = 32 << 20;

/// What a lab is built of.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Its own directory, which must not be there yet.
    pub(crate) directory: PathBuf,
    /// The links to the files of cases, shared with other labs.
    pub(crate) queue: PathBuf,
    /// The version of OpenFlow, as the folder of its cases is called: `of13`.
    pub(crate) version: String,
    /// Whether its cases send for half a minute.
    pub(crate) streams: bool,
    /// The Python environment.
    pub(crate) environment: PathBuf,
    /// The switch's program.
    pub(crate) comporta: PathBuf,
    /// The core of the switch's worker.
    pub(crate) core: usize,
}

/// A lab at work.
pub(crate) struct Lab {
    // Dropped in this order: the judge first, who would complain of the rest.
    judge: Process,
    target: Process,
    _tester: OpenVswitch,
    _namespace: Namespace,
    directory: PathBuf,
}

impl Lab {
    /// Builds it and starts the judge.
    pub(crate) fn start(plan: &Plan, spawner: &Spawner, clock: &Clock) -> Result<Self, Failure> {
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

    /// Whether the judge ends within `limit`. It ends itself when the queue is empty.
    pub(crate) fn is_done_within(&mut self, limit: Duration) -> Result<bool, Failure> {
        match self.judge.wait(limit) {
            Ok(_) => Ok(true),
            Err(Failure::Timeout { .. }) => Ok(false),
            Err(failure) => Err(failure),
        }
    }

    /// The verdicts so far.
    pub(crate) fn verdicts(&self) -> Result<Vec<Verdict>, Failure> {
        verdict::read(&self.directory.join("verdicts.jsonl"))
            .map_err(Failure::to("read the verdicts"))
    }

    /// What is wrong with the switch under test, if it has ended.
    pub(crate) fn check(&mut self) -> Result<(), Failure> {
        if self.target.is_running() {
            return Ok(());
        }
        let status = self.target.wait(Duration::ZERO)?;
        Err(self.target.failed(status))
    }
}

/// Lays three cables, both ends of which are here. Checksums are finished before
/// they are sent: Open vSwitch would not finish them.
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
    plan: &Plan,
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
    plan: &Plan,
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
        let said = target.written()?;
        Ok(said.contains("INFO ready").then_some(()))
    })?;
    Ok(target)
}

/// The judge, yet to be started.
fn judge(plan: &Plan) -> Program<'static> {
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
