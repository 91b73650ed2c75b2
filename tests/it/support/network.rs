//! Hosts around a switch. Each host has its own network namespace; host `n` is connected to the
//! switch's namespace by a veth pair, whose end there is `pn`.
//!
//! Namespaces and processes end when the value is dropped. Operations of a host are in
//! [`TestHost`].

use std::fs;
use std::path::Path;

use testbed::{Failure, Namespace, Program};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::{TestContext, WAIT_LIMIT};
use crate::support::frames::{FrameCapture, encode_frames, send_frames};
use crate::support::host::TestHost;
use crate::support::switch::SwitchProcess;

/// Hosts and the namespace of the switch between them.
pub(crate) struct TestNetwork<'g> {
    pub(crate) context: &'g TestContext,
    /// Namespace of the switch, with the ports `p1`, `p2` and so on.
    pub(crate) switch_namespace: Namespace,
    /// Hosts; the first is host 1.
    pub(crate) hosts: Vec<TestHost<'g>>,
}

impl<'g> TestNetwork<'g> {
    /// Creates the switch's namespace and `count` hosts connected to it.
    pub(crate) fn new(context: &'g TestContext, count: u8) -> Result<Self, Failure> {
        let switch_namespace = Namespace::new()?;
        let hosts = (1..=count).map(|number| TestHost::attach(context, number, &switch_namespace));
        Ok(Self {
            context,
            hosts: hosts.collect::<Result<_, _>>()?,
            switch_namespace,
        })
    }

    /// Host `number`, counted from 1.
    pub(crate) fn host(&self, number: usize) -> &TestHost<'g> {
        &self.hosts[number - 1]
    }

    /// Hosts 1 and 2.
    pub(crate) fn host_pair(&self) -> (&TestHost<'g>, &TestHost<'g>) {
        (self.host(1), self.host(2))
    }

    /// Adds static neighbour entries to two hosts, so that neither sends ARP requests for the
    /// other.
    pub(crate) fn add_static_neighbours(&self, one: usize, two: usize) -> Result<(), Failure> {
        for (host, other) in [(one, two), (two, one)] {
            let (host, other) = (self.host(host), self.host(other));
            host.namespace
                .add_neighbour(host.interface, other.address, other.mac)?;
        }
        Ok(())
    }

    /// Starts a switch with these arguments after `comporta switch`, and waits until it is ready.
    pub(crate) fn start_switch(&self, arguments: &str) -> Result<SwitchProcess<'g>, Failure> {
        self.start_switch_in(&self.context.directory().join("run"), arguments)
    }

    /// Starts a switch with the given run directory; otherwise as [`TestNetwork::start_switch`].
    pub(crate) fn start_switch_in(
        &self,
        rundir: &Path,
        arguments: &str,
    ) -> Result<SwitchProcess<'g>, Failure> {
        let log = self.context.unique_path("comporta.log");
        let program = self.switch_program(rundir, arguments).log(&log);
        let mut process = self.context.spawner.start(program)?;
        self.context.wait_until("the switch to be ready", || {
            let text = fs::read_to_string(&log).map_err(Failure::to("read the log"))?;
            let ready = text.lines().any(|line| line.ends_with("INFO ready"));
            if !ready && !process.is_running() {
                let status = process.wait(WAIT_LIMIT)?;
                return Err(process.failed(status));
            }
            Ok(ready)
        })?;
        Ok(SwitchProcess {
            context: self.context,
            rundir: rundir.to_owned(),
            process,
            log,
        })
    }

    /// Program of a switch, not yet started.
    pub(crate) fn switch_program(&self, rundir: &Path, arguments: &str) -> Program<'_> {
        Program::new(comporta_binary())
            .arg("switch")
            .args(arguments.split_whitespace())
            .arg("--rundir")
            .arg(rundir)
            .inside(&self.switch_namespace)
    }

    /// Runs a switch that ends on its own.
    pub(crate) fn run_switch(&self, arguments: &str) -> Result<CommandOutput, Failure> {
        let program = self.switch_program(&self.context.directory().join("run"), arguments);
        CommandOutput::run(self.context, program)
    }

    /// Starts to capture frames that an interface of the switch's namespace receives.
    pub(crate) fn capture_frames(&self, interface: &str) -> Result<FrameCapture<'g>, Failure> {
        FrameCapture::open(self.context, &self.switch_namespace, interface)
    }

    /// Sends frames by an interface of the switch's namespace.
    pub(crate) fn send_from(&self, interface: &str, stacks: &[&str]) -> Result<(), Failure> {
        let frames = encode_frames(stacks);
        send_frames(self.context, &self.switch_namespace, interface, &frames)
    }

    /// Runs a program in the switch's namespace.
    pub(crate) fn run(&self, words: &str) -> Result<CommandOutput, Failure> {
        CommandOutput::run(self.context, program(words).inside(&self.switch_namespace))
    }
}
