//! Hosts around a switch, each in a network namespace of its own: host `n` is
//! joined to the switch's namespace by a cable whose end there is called `pn`.
//!
//! Everything vanishes with the value. What a host can do is in [`Host`]; what is
//! made of it, in the themes.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use std::{env, fs};

use testbed::{Failure, Namespace, Process, Program};

use crate::eye::{self, Eye, frames};
use crate::ground::{Ground, PATIENCE};
use crate::host::Host;

/// Where to look for the binary, if not beside this program.
const VARIABLE: &str = "COMPORTA";

/// Hosts and the place for a switch between them.
pub(crate) struct Rig<'g> {
    pub(crate) ground: &'g Ground,
    /// Where the switch lives, with the ports `p1`, `p2` and so on.
    pub(crate) home: Namespace,
    /// The hosts, from 1 on.
    pub(crate) hosts: Vec<Host<'g>>,
}

impl<'g> Rig<'g> {
    /// Lays the cables of `count` hosts.
    pub(crate) fn new(ground: &'g Ground, count: u8) -> Result<Self, Failure> {
        let home = Namespace::new()?;
        let hosts = (1..=count).map(|number| Host::join(ground, number, &home));
        Ok(Self {
            ground,
            hosts: hosts.collect::<Result<_, _>>()?,
            home,
        })
    }

    /// Host `number`, from 1.
    pub(crate) fn host(&self, number: usize) -> &Host<'g> {
        &self.hosts[number - 1]
    }

    /// Two hosts, from 1.
    pub(crate) fn pair(&self) -> (&Host<'g>, &Host<'g>) {
        (self.host(1), self.host(2))
    }

    /// Tells two hosts where the other is, so that neither asks by ARP.
    pub(crate) fn introduce(&self, one: usize, two: usize) -> Result<(), Failure> {
        for (host, other) in [(one, two), (two, one)] {
            let (host, other) = (self.host(host), self.host(other));
            host.namespace
                .add_neighbour(host.interface, other.address, other.mac)?;
        }
        Ok(())
    }

    /// Starts a switch with these words after `comporta switch`, and waits until it is ready.
    pub(crate) fn start(&self, words: &str) -> Result<Switch<'g>, Failure> {
        self.start_in(&self.ground.directory().join("run"), words)
    }

    /// As [`Rig::start`], with another run directory.
    pub(crate) fn start_in(&self, rundir: &Path, words: &str) -> Result<Switch<'g>, Failure> {
        let log = self.ground.file("comporta.log");
        let program = self.program(rundir, words).log(&log);
        let mut process = self.ground.spawner.start(program)?;
        self.ground.wait_until("the switch to be ready", || {
            let said = fs::read_to_string(&log).map_err(Failure::to("read the log"))?;
            let ready = said.lines().any(|line| line.ends_with("INFO ready"));
            if !ready && !process.is_running() {
                let status = process.wait(PATIENCE)?;
                return Err(process.failed(status));
            }
            Ok(ready)
        })?;
        Ok(Switch {
            ground: self.ground,
            rundir: rundir.to_owned(),
            process,
            log,
        })
    }

    /// The switch as a program that is yet to be started.
    pub(crate) fn program(&self, rundir: &Path, words: &str) -> Program<'_> {
        Program::new(binary())
            .arg("switch")
            .args(words.split_whitespace())
            .arg("--rundir")
            .arg(rundir)
            .inside(&self.home)
    }

    /// Runs a switch that is expected to end by itself.
    pub(crate) fn run(&self, words: &str) -> Result<Ran, Failure> {
        let program = self.program(&self.ground.directory().join("run"), words);
        Ran::of(self.ground, program)
    }

    /// Opens an eye on what comes in by an interface of the switch's namespace.
    pub(crate) fn eye(&self, interface: &str) -> Result<Eye<'g>, Failure> {
        Eye::open(self.ground, &self.home, interface)
    }

    /// Sends frames out of an interface of the switch's namespace.
    pub(crate) fn send_from(&self, interface: &str, stacks: &[&str]) -> Result<(), Failure> {
        eye::send(self.ground, &self.home, interface, &frames(stacks))
    }

    /// Runs a program in the switch's namespace.
    pub(crate) fn ran(&self, words: &str) -> Result<Ran, Failure> {
        Ran::of(self.ground, program(words).inside(&self.home))
    }
}

/// A switch that runs.
pub(crate) struct Switch<'g> {
    pub(crate) ground: &'g Ground,
    rundir: PathBuf,
    log: PathBuf,
    /// The process.
    pub(crate) process: Process,
}

impl Switch<'_> {
    /// A file in its run directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.rundir.join(name)
    }

    /// What it has said.
    pub(crate) fn log(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.log).map_err(Failure::to("read the log"))
    }

    /// What `ovs-ofctl` says; it must succeed.
    pub(crate) fn ofctl(&self, words: &str) -> Result<String, Failure> {
        self.ofctl_ran(words)?.good()
    }

    /// The rows of a dump of flows, sorted, without their ages.
    pub(crate) fn flows(&self, words: &str) -> Result<Vec<String>, Failure> {
        let told = self.ofctl(words)?;
        let ages = ["duration=", "idle_age=", "hard_age="];
        let is_age = |part: &&str| ages.iter().any(|age| part.starts_with(age));
        let row = |row: &str| {
            let parts = row.trim_start().split(", ").filter(|part| !is_age(part));
            parts.collect::<Vec<_>>().join(", ")
        };
        let rows = told.lines().filter(|line| line.starts_with(' '));
        let mut rows: Vec<_> = rows.map(row).collect();
        rows.sort();
        Ok(rows)
    }

    /// What `ovs-ofctl` complains of; it must fail.
    pub(crate) fn ofctl_refused(&self, words: &str) -> Result<String, Failure> {
        self.ofctl_ran(words)?.bad()
    }

    /// `ovs-ofctl`, run to its end.
    pub(crate) fn ofctl_ran(&self, words: &str) -> Result<Ran, Failure> {
        Ran::of(self.ground, self.ofctl_program(words))
    }

    /// `ovs-ofctl`, yet to be started.
    pub(crate) fn ofctl_program(&self, words: &str) -> Program<'static> {
        program("ovs-ofctl")
            .args(words.split_whitespace())
            .env("OVS_RUNDIR", &self.rundir)
    }

    /// Starts `ovs-ofctl monitor` in this form, and waits until the switch tells it what happens.
    pub(crate) fn monitor(&self, form: &str) -> Result<Process, Failure> {
        self.monitor_with(form, "65534")
    }

    /// As [`Switch::monitor`], with these words behind the bridge.
    pub(crate) fn monitor_with(&self, form: &str, words: &str) -> Result<Process, Failure> {
        let program = self.ofctl_program(&format!("{form} monitor br0 {words}"));
        let monitor = self
            .ground
            .spawner
            .start(program.log(self.ground.file("monitor")))?;
        let frame = "ffffffffffff02000000007788b5";
        let (version, _) = form.split_once(" -P").unwrap_or((form, ""));
        let words = format!(
            "{version} packet-out br0 in_port=controller,packet={frame},actions=controller"
        );
        self.ground.wait_until("the monitor to hear", || {
            self.ofctl(&words)?;
            Ok(monitor.written()?.contains("_PACKET_IN"))
        })?;
        Ok(monitor)
    }

    /// What the switch answers at its control socket.
    pub(crate) fn appctl(&self, words: &str) -> Result<String, Failure> {
        let program = program("ovs-appctl -t")
            .arg(self.file("br0.ctl"))
            .args(words.split_whitespace());
        Ran::of(self.ground, program)?.good()
    }

    /// What the switch answers at its control socket to what it does not do.
    pub(crate) fn appctl_refused(&self, words: &str) -> Result<String, Failure> {
        let program = program("ovs-appctl -t")
            .arg(self.file("br0.ctl"))
            .args(words.split_whitespace());
        Ran::of(self.ground, program)?.bad()
    }

    /// A counter, by the name that `comporta/counters` gives it; zeros are not shown there.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, Failure> {
        let shown = self.appctl("comporta/counters")?;
        let value = shown
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(value.unwrap_or(0))
    }

    /// Waits until something holds of the switch.
    pub(crate) fn wait_until(
        &self,
        what: &str,
        mut holds: impl FnMut(&Self) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.ground.wait_until(what, || holds(self))
    }

    /// Waits until a counter has a value.
    pub(crate) fn wait_for_counter(&self, name: &str, value: u64) -> Result<(), Failure> {
        let what = format!("the counter '{name}' to be {value}");
        self.ground
            .wait_until(&what, || Ok(self.counter(name)? == value))
    }
}

/// Keeps what it counted, for the report of a failure.
impl Drop for Switch<'_> {
    fn drop(&mut self) {
        if self.process.is_running()
            && let Ok(counters) = self.appctl("comporta/counters")
        {
            let _ = fs::write(self.log.with_extension("counters"), counters);
        }
    }
}

/// A program that has run to its end.
#[derive(Debug)]
pub(crate) struct Ran {
    /// As one would type it.
    pub(crate) command: String,
    pub(crate) status: ExitStatus,
    pub(crate) output: String,
    pub(crate) errors: String,
}

impl Ran {
    /// Runs `program` to its end.
    pub(crate) fn of(ground: &Ground, program: Program<'_>) -> Result<Self, Failure> {
        Self::within(PATIENCE, ground, program)
    }

    /// The same, of one that may take so long.
    pub(crate) fn within(
        patience: Duration,
        ground: &Ground,
        program: Program<'_>,
    ) -> Result<Self, Failure> {
        let (output, errors) = (ground.file("out"), ground.file("err"));
        let read = |path: &Path| {
            let bytes = fs::read(path).map_err(Failure::to("read what a program said"))?;
            Ok::<_, Failure>(String::from_utf8_lossy(&bytes).into_owned())
        };
        let mut process = ground.spawner.start(program.output(&output).log(&errors))?;
        Ok(Self {
            status: process.wait(patience)?,
            command: process.command_line().to_owned(),
            output: read(&output)?,
            errors: read(&errors)?,
        })
    }

    /// What it said, if it succeeded.
    pub(crate) fn good(self) -> Result<String, Failure> {
        if self.status.success() {
            return Ok(self.output);
        }
        Err(self.unexpected())
    }

    /// What it complained of, if it failed.
    pub(crate) fn bad(self) -> Result<String, Failure> {
        if self.status.success() {
            return Err(self.unexpected());
        }
        Ok(self.errors)
    }

    fn unexpected(self) -> Failure {
        Failure::Program {
            program: self.command,
            status: self.status.to_string(),
            output: format!("{}{}", self.output, self.errors),
        }
    }
}

/// A program and its first arguments, as one would type them.
pub(crate) fn program(words: &str) -> Program<'static> {
    let mut words = words.split_whitespace();
    Program::new(words.next().unwrap_or_default()).args(words)
}

/// The binary: beside the folder of this program, where cargo puts it.
pub(crate) fn binary() -> PathBuf {
    let beside = || {
        let tests = env::current_exe().expect("a process knows its program");
        tests.with_file_name("..").join("comporta")
    };
    env::var_os(VARIABLE).map_or_else(beside, PathBuf::from)
}

/// A file of the project.
pub(crate) fn of_project(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}
