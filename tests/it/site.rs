//! A place of its own for a real `ovsdb-server`, its tools and the switch beside it, as
//! `ovs-ctl` would start them. No rules are here: those are with their themes.

use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::{cell, fs};

use testbed::{Failure, Process, Program, Requirement};

use crate::ground::Stop;
use crate::rig::{Ran, Rig, binary, program};

/// A bridge with two ports.
pub(crate) const TWO: &str = "add-br br0 -- add-port br0 p1 -- add-port br0 p2";

/// Where Debian has the schema.
pub(crate) const SCHEMA: &str = "/usr/share/openvswitch/vswitch.ovsschema";

/// What these tests need beside what all need.
const NEEDS: [Requirement; 2] = [
    Requirement::Program {
        program: "ovsdb-server",
        package: "openvswitch-common",
    },
    Requirement::Program {
        program: "ovs-vsctl",
        package: "openvswitch-switch",
    },
];

/// A database, and what lives in its run directory.
pub(crate) struct Site<'r, 'g> {
    pub(crate) rig: &'r Rig<'g>,
    pub(crate) rundir: PathBuf,
    database: cell::RefCell<Option<Process>>,
}

impl<'r, 'g> Site<'r, 'g> {
    pub(crate) fn new(rig: &'r Rig<'g>) -> Result<Self, Stop> {
        Self::at(rig, "run")
    }

    /// One of several: each has a directory of its own, of this name.
    pub(crate) fn at(rig: &'r Rig<'g>, directory: &str) -> Result<Self, Stop> {
        if let Err(missing) = testbed::check(&NEEDS) {
            return Err(Stop::Skip(missing.to_string()));
        }
        let rundir = rig.ground.directory().join(directory);
        fs::create_dir_all(&rundir)?;
        let site = Self {
            rig,
            rundir,
            database: cell::RefCell::default(),
        };
        let create = site.program("ovsdb-tool create conf.db").arg(SCHEMA);
        Ran::of(rig.ground, create)?.good()?;
        site.start_database()?;
        site.vsctl("--no-wait init")?;
        Ok(site)
    }

    /// A program in the run directory, whose environment names it.
    pub(crate) fn program(&self, words: &str) -> Program<'_> {
        let directories = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR"];
        let program = program(words)
            .directory(&self.rundir)
            .inside(&self.rig.home);
        directories
            .iter()
            .fold(program, |program, name| program.env(*name, &self.rundir))
    }

    /// Starts the database, and waits until it listens.
    pub(crate) fn start_database(&self) -> Result<(), Failure> {
        self.start_database_with("")
    }

    /// The same with more options.
    pub(crate) fn start_database_with(&self, options: &str) -> Result<(), Failure> {
        let words =
            format!("ovsdb-server conf.db --remote=punix:db.sock --unixctl=db.ctl {options}");
        let socket = self.rundir.join("db.sock");
        let log = self.rig.ground.file("ovsdb-server.log");
        let started = self
            .rig
            .ground
            .spawner
            .start(self.program(&words).log(log))?;
        *self.database.borrow_mut() = Some(started);
        // The socket's file is there a moment before anybody listens at it.
        self.rig
            .ground
            .wait_until("the database", || Ok(UnixStream::connect(&socket).is_ok()))
    }

    /// Kills the database, as if the machine had.
    pub(crate) fn kill_database(&self) -> Result<(), Failure> {
        if let Some(mut database) = self.database.take() {
            database.kill()?;
        }
        fs::remove_file(self.rundir.join("db.sock")).map_err(Failure::to("remove a socket"))
    }

    /// Starts the daemon, and waits until it is ready.
    pub(crate) fn daemon(&self) -> Result<Daemon<'_, 'g>, Failure> {
        let daemon = self.daemon_with("")?;
        daemon.says("INFO ready")?;
        Ok(daemon)
    }

    /// Starts a daemon with more options. Controllers of tests have their sockets anywhere.
    pub(crate) fn daemon_with(&self, options: &str) -> Result<Daemon<'_, 'g>, Failure> {
        let log = self.rig.ground.file("comporta.log");
        let words = format!(
            "{} vswitchd --pidfile --overwrite-pidfile --no-self-confinement {options}",
            binary().display()
        );
        let process = self
            .rig
            .ground
            .spawner
            .start(self.program(&words).log(&log))?;
        Ok(Daemon {
            site: self,
            process,
            log,
        })
    }

    /// What `ovs-vsctl` says; it must succeed.
    pub(crate) fn vsctl(&self, words: &str) -> Result<String, Failure> {
        Ok(self.vsctl_ran(words)?.good()?.trim().to_owned())
    }

    /// What it says, whether or not it succeeds.
    pub(crate) fn vsctl_ran(&self, words: &str) -> Result<Ran, Failure> {
        let program = self.program("ovs-vsctl --timeout=30");
        Ran::of(self.rig.ground, program.args(words.split(' ')))
    }

    /// What another tool says; it must succeed.
    pub(crate) fn tool(&self, words: &str) -> Result<String, Failure> {
        Ran::of(self.rig.ground, self.program(words))?.good()
    }

    /// Waits until this question to `ovs-vsctl` has this answer.
    pub(crate) fn wait_for_column(&self, words: &str, value: &str) -> Result<(), Failure> {
        let what = format!("'{words}' to be {value}");
        self.rig
            .ground
            .wait_until(&what, || Ok(self.vsctl(words)? == value))
    }
}

/// A daemon that runs.
pub(crate) struct Daemon<'s, 'g> {
    pub(crate) site: &'s Site<'s, 'g>,
    pub(crate) process: Process,
    pub(crate) log: PathBuf,
}

impl Daemon<'_, '_> {
    /// Waits until it has said this.
    pub(crate) fn says(&self, what: &str) -> Result<(), Failure> {
        self.site.rig.ground.wait_until(what, || {
            let said = fs::read_to_string(&self.log).map_err(Failure::to("read the log"))?;
            // What a line tells beside its words stands between bars.
            Ok(said.replace('|', " ").contains(what))
        })
    }
}

/// A daemon that no test is the parent of.
pub(crate) struct Background(pub(crate) u32);

impl Drop for Background {
    fn drop(&mut self) {
        let pid = i32::try_from(self.0)
            .ok()
            .and_then(rustix::process::Pid::from_raw);
        if let Some(pid) = pid {
            // Where all went well it has ended already.
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
    }
}
