//! A deployment with a database: a real `ovsdb-server`, its tools, and the daemon with one run
//! directory, as `ovs-ctl` starts them.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::{cell, fs};

use testbed::{Failure, Process, Program, Requirement};

use crate::support::command::{CommandOutput, comporta_binary, program};
use crate::support::context::TestError;
use crate::support::network::TestNetwork;

/// Arguments of `ovs-vsctl` for a bridge with two ports.
pub(crate) const TWO_PORTS: &str = "add-br br0 -- add-port br0 p1 -- add-port br0 p2";

/// Path of the schema in Debian.
pub(crate) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// Requirements in addition to those of all tests.
const REQUIREMENTS: [Requirement; 2] = [
    Requirement::Program {
        program: "ovsdb-server",
        package: "openvswitch-common",
    },
    Requirement::Program {
        program: "ovs-vsctl",
        package: "openvswitch-switch",
    },
];

/// A database server and its run directory.
pub(crate) struct Deployment<'r, 'g> {
    pub(crate) network: &'r TestNetwork<'g>,
    pub(crate) rundir: PathBuf,
    database: cell::RefCell<Option<Process>>,
}

impl<'r, 'g> Deployment<'r, 'g> {
    /// Creates a database in the directory `run`, and starts its server.
    pub(crate) fn new(network: &'r TestNetwork<'g>) -> Result<Self, TestError> {
        Self::in_directory(network, "run")
    }

    /// Creates a database in the given directory, and starts its server.
    pub(crate) fn in_directory(
        network: &'r TestNetwork<'g>,
        directory: &str,
    ) -> Result<Self, TestError> {
        if let Err(missing) = testbed::check(&REQUIREMENTS) {
            return Err(TestError::Skip(missing.to_string()));
        }
        let rundir = network.context.directory().join(directory);
        fs::create_dir_all(&rundir)?;
        let deployment = Self {
            network,
            rundir,
            database: cell::RefCell::default(),
        };
        let create = deployment.program("ovsdb-tool create conf.db").arg(SCHEMA);
        CommandOutput::run(network.context, create)?.expect_success()?;
        deployment.start_database()?;
        deployment.vsctl("--no-wait init")?;
        Ok(deployment)
    }

    /// A program in the run directory, with environment variables that name it.
    pub(crate) fn program(&self, words: &str) -> Program<'_> {
        let directories = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"];
        let program = program(words)
            .directory(&self.rundir)
            .inside(&self.network.switch_namespace);
        directories
            .iter()
            .fold(program, |program, name| program.env(*name, &self.rundir))
    }

    /// Starts the database server, and waits until it accepts connections.
    pub(crate) fn start_database(&self) -> Result<(), Failure> {
        self.start_database_with("")
    }

    /// Starts the database server with more options, and waits until it accepts connections.
    pub(crate) fn start_database_with(&self, options: &str) -> Result<(), Failure> {
        let words =
            format!("ovsdb-server conf.db --remote=punix:db.sock --unixctl=db.ctl {options}");
        let context = self.network.context;
        let socket = self.rundir.join("db.sock");
        let log = context.unique_path("ovsdb-server.log");
        let process = context.spawner.start(self.program(&words).log(log))?;
        *self.database.borrow_mut() = Some(process);
        // The socket's file exists shortly before the server listens.
        context.wait_until("the database to accept connections", || {
            Ok(UnixStream::connect(&socket).is_ok())
        })
    }

    /// Kills the database server, and removes its socket.
    pub(crate) fn kill_database(&self) -> Result<(), Failure> {
        if let Some(mut database) = self.database.take() {
            database.kill()?;
        }
        fs::remove_file(self.rundir.join("db.sock")).map_err(Failure::to("remove a socket"))
    }

    /// Starts `comporta vswitchd`, and waits until it is ready.
    pub(crate) fn start_daemon(&self) -> Result<VswitchdProcess<'_, 'g>, Failure> {
        let daemon = self.start_daemon_with("")?;
        daemon.wait_for_log("INFO ready")?;
        Ok(daemon)
    }

    /// Starts `comporta vswitchd` with more options. It accepts controller sockets outside of the
    /// run directory.
    pub(crate) fn start_daemon_with(
        &self,
        options: &str,
    ) -> Result<VswitchdProcess<'_, 'g>, Failure> {
        let context = self.network.context;
        let log = context.unique_path("comporta.log");
        let words = format!(
            "{} vswitchd --pidfile --overwrite-pidfile --no-self-confinement {options}",
            comporta_binary().display()
        );
        let process = context.spawner.start(self.program(&words).log(&log))?;
        Ok(VswitchdProcess {
            deployment: self,
            process,
            log,
        })
    }

    /// Runs `ovs-vsctl`, which must succeed, and returns its trimmed standard output.
    pub(crate) fn vsctl(&self, words: &str) -> Result<String, Failure> {
        Ok(self
            .vsctl_output(words)?
            .expect_success()?
            .trim()
            .to_owned())
    }

    /// Runs `ovs-vsctl`.
    pub(crate) fn vsctl_output(&self, words: &str) -> Result<CommandOutput, Failure> {
        let program = self.program("ovs-vsctl --timeout=30");
        CommandOutput::run(self.network.context, program.args(words.split(' ')))
    }

    /// Runs a tool, which must succeed, and returns its standard output.
    pub(crate) fn run_tool(&self, words: &str) -> Result<String, Failure> {
        CommandOutput::run(self.network.context, self.program(words))?.expect_success()
    }

    /// Value of a counter of `comporta/counters`, which omits zeros.
    pub(crate) fn counter(&self, name: &str) -> Result<u64, Failure> {
        let output = self.run_tool("ovs-appctl comporta/counters")?;
        let value = output
            .lines()
            .find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        Ok(value.unwrap_or(0))
    }

    /// Waits until `ovs-vsctl` with these arguments prints `value`.
    pub(crate) fn wait_for_column(&self, words: &str, value: &str) -> Result<(), Failure> {
        let condition = format!("'{words}' to be {value}");
        self.network
            .context
            .wait_until(&condition, || Ok(self.vsctl(words)? == value))
    }
}

/// A running `comporta vswitchd`.
pub(crate) struct VswitchdProcess<'s, 'g> {
    pub(crate) deployment: &'s Deployment<'s, 'g>,
    pub(crate) process: Process,
    pub(crate) log: PathBuf,
}

impl VswitchdProcess<'_, '_> {
    /// Waits until the log contains `text`.
    pub(crate) fn wait_for_log(&self, text: &str) -> Result<(), Failure> {
        let condition = format!("'{text}' in the log");
        let context = self.deployment.network.context;
        context.wait_until(&condition, || {
            let log = fs::read_to_string(&self.log).map_err(Failure::to("read the log"))?;
            // A line's fields are separated by bars.
            Ok(log.replace('|', " ").contains(text))
        })
    }
}

/// Process id of a daemon in the background, which is killed when this is dropped.
pub(crate) struct BackgroundDaemon(pub(crate) u32);

impl Drop for BackgroundDaemon {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // If the test succeeded, the daemon has already ended.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
