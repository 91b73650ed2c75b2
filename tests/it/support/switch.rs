//! A running `comporta switch` and the tools of Open vSwitch that control it.

use std::fs;
use std::path::PathBuf;

use testbed::{Failure, Process, Program};

use crate::support::command::{CommandOutput, comporta_program, program};
use crate::support::context::TestContext;

/// Arguments of a switch without a controller, with the ports `p1` and `p2`.
pub(crate) const STANDALONE_2: &str = "--bridge br0 --port p1 --port p2";

/// Arguments of a switch without a controller, with the ports `p1` to `p3`.
pub(crate) const STANDALONE_3: &str = "--bridge br0 --port p1 --port p2 --port p3";

/// Arguments of a secure switch with the ports `p1` and `p2`.
pub(crate) const SECURE_2: &str = "--bridge br0 --fail-mode secure --port p1 --port p2";

/// Arguments of a secure switch with the ports `p1` to `p3`.
pub(crate) const SECURE_3: &str = "--bridge br0 --fail-mode secure --port p1 --port p2 --port p3";

/// A running switch.
pub(crate) struct SwitchProcess<'g> {
    pub(crate) context: &'g TestContext,
    pub(crate) rundir: PathBuf,
    pub(crate) log: PathBuf,
    pub(crate) process: Process,
}

impl SwitchProcess<'_> {
    /// Path of a file in the run directory.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.rundir.join(name)
    }

    /// Text of the log.
    pub(crate) fn log(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.log).map_err(Failure::to("read the log"))
    }

    /// Runs `ovs-ofctl`, which must succeed, and returns its standard output.
    pub(crate) fn ofctl(&self, words: &str) -> Result<String, Failure> {
        self.ofctl_output(words)?.expect_success()
    }

    /// Rows of a flow dump, sorted, without duration and ages.
    pub(crate) fn flows(&self, words: &str) -> Result<Vec<String>, Failure> {
        let output = self.ofctl(words)?;
        let ages = ["duration=", "idle_age=", "hard_age="];
        let is_age = |part: &&str| ages.iter().any(|age| part.starts_with(age));
        let row = |row: &str| {
            let parts = row.trim_start().split(", ").filter(|part| !is_age(part));
            parts.collect::<Vec<_>>().join(", ")
        };
        let rows = output.lines().filter(|line| line.starts_with(' '));
        let mut rows: Vec<_> = rows.map(row).collect();
        rows.sort();
        Ok(rows)
    }

    /// Runs `ovs-ofctl`, which must fail, and returns its standard error.
    pub(crate) fn ofctl_failure(&self, words: &str) -> Result<String, Failure> {
        self.ofctl_output(words)?.expect_failure()
    }

    /// Runs `ovs-ofctl`.
    pub(crate) fn ofctl_output(&self, words: &str) -> Result<CommandOutput, Failure> {
        CommandOutput::run(self.context, self.ofctl_program(words))
    }

    /// Program `ovs-ofctl`, not yet started.
    pub(crate) fn ofctl_program(&self, words: &str) -> Program<'static> {
        program("ovs-ofctl")
            .args(words.split_whitespace())
            .env("OVS_RUNDIR", &self.rundir)
    }

    /// Runs a subcommand of `comporta` for this switch.
    pub(crate) fn run_comporta(&self, arguments: &[&str]) -> Result<CommandOutput, Failure> {
        let program = comporta_program()
            .args(arguments.iter().copied())
            .env("OVS_RUNDIR", &self.rundir);
        CommandOutput::run(self.context, program)
    }

    /// Starts `ovs-ofctl monitor` with these options, and waits until it receives events.
    pub(crate) fn start_monitor(&self, options: &str) -> Result<Process, Failure> {
        self.start_monitor_with(options, "65534")
    }

    /// Starts `ovs-ofctl monitor` with these options and these arguments after the bridge, and
    /// waits until it receives events.
    pub(crate) fn start_monitor_with(
        &self,
        options: &str,
        arguments: &str,
    ) -> Result<Process, Failure> {
        let program = self.ofctl_program(&format!("{options} monitor br0 {arguments}"));
        let log = self.context.unique_path("monitor");
        let monitor = self.context.spawner.start(program.log(log))?;
        let frame = "ffffffffffff02000000007788b5";
        let (version, _) = options.split_once(" -P").unwrap_or((options, ""));
        let words = format!(
            "{version} packet-out br0 in_port=controller,packet={frame},actions=controller"
        );
        self.context.wait_until("a packet-in at the monitor", || {
            self.ofctl(&words)?;
            Ok(monitor.written()?.contains("_PACKET_IN"))
        })?;
        Ok(monitor)
    }

    /// Sends a command to the control socket, which must succeed, and returns the reply.
    pub(crate) fn appctl(&self, words: &str) -> Result<String, Failure> {
        self.appctl_output(words)?.expect_success()
    }

    /// Sends a command to the control socket, which must fail, and returns the error.
    pub(crate) fn appctl_failure(&self, words: &str) -> Result<String, Failure> {
        self.appctl_output(words)?.expect_failure()
    }

    fn appctl_output(&self, words: &str) -> Result<CommandOutput, Failure> {
        let program = program("ovs-appctl -t")
            .arg(self.file("br0.ctl"))
            .args(words.split_whitespace());
        CommandOutput::run(self.context, program)
    }

    /// Value of a counter of `comporta/counters`, which omits zeros.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, Failure> {
        let output = self.appctl("comporta/counters")?;
        let value = output
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(value.unwrap_or(0))
    }

    /// Waits until a condition of the switch holds.
    pub(crate) fn wait_until(
        &self,
        condition: &str,
        mut holds: impl FnMut(&Self) -> Result<bool, Failure>,
    ) -> Result<(), Failure> {
        self.context.wait_until(condition, || holds(self))
    }

    /// Waits until a counter has a value.
    pub(crate) fn wait_for_counter(&self, name: &str, value: u64) -> Result<(), Failure> {
        let condition = format!("the counter '{name}' to be {value}");
        self.context
            .wait_until(&condition, || Ok(self.counter(name)? == value))
    }
}

/// Writes the last counters to a file, for the report of a failure.
impl Drop for SwitchProcess<'_> {
    fn drop(&mut self) {
        if self.process.is_running()
            && let Ok(counters) = self.appctl("comporta/counters")
        {
            let _ = fs::write(self.log.with_extension("counters"), counters);
        }
    }
}
