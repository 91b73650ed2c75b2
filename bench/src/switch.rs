//! The switch as a process in a namespace of its own, told what to do by `ovs-ofctl`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Clock, Namespace, Process, Program, Spawner, Usage};

use crate::{Failure, Programs};

/// How long it may take to come up, and a tool to end.
const START: Duration = Duration::from_secs(20);

/// Where things are started.
pub(crate) struct Site {
    pub(crate) spawner: Spawner,
    pub(crate) clock: Clock,
    /// The program `comporta`.
    comporta: PathBuf,
    /// For sockets and files.
    pub(crate) directory: PathBuf,
}

impl Site {
    /// Makes the directory, if it is not there.
    pub(crate) fn new(programs: &Programs) -> Result<Self, Failure> {
        std::fs::create_dir_all(&programs.directory)?;
        Ok(Self {
            spawner: Spawner::new()?,
            clock: Clock::start(),
            comporta: programs.comporta.clone(),
            directory: programs.directory.canonicalize()?,
        })
    }
}

/// A running switch with a bridge `br0`.
pub(crate) struct Switch<'a> {
    site: &'a Site,
    process: Process,
    directory: PathBuf,
    /// Where it and its ports are.
    _inside: Namespace,
}

/// What a port has sent, and when it was asked, by the switch's own clock.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    pub(crate) frames: f64,
    pub(crate) seconds: f64,
}

impl<'a> Switch<'a> {
    /// Starts it in `inside` with these arguments behind the bridge's, and waits until it answers.
    pub(crate) fn start(
        site: &'a Site,
        name: &str,
        inside: Namespace,
        arguments: &[String],
    ) -> Result<Self, Failure> {
        let directory = site.directory.join(name);
        std::fs::create_dir_all(&directory)?;
        let program = Program::new(&site.comporta)
            .args([
                "switch",
                "--bridge",
                "br0",
                "--fail-mode",
                "secure",
                "--rundir",
            ])
            .arg(&directory)
            .args(arguments)
            .inside(&inside)
            .log(directory.join("comporta.log"));
        let mut process = site.spawner.start(program)?;
        let socket = directory.join("br0.mgmt");
        site.clock.wait_for("the switch's socket", START, || {
            if !process.is_running() {
                let status = process.wait(Duration::ZERO)?;
                return Err(process.failed(status));
            }
            Ok(socket.exists().then_some(()))
        })?;
        Ok(Self {
            site,
            process,
            directory,
            _inside: inside,
        })
    }

    /// Adds flows.
    pub(crate) fn add_flows(&self, lines: &[String]) -> Result<(), Failure> {
        let file = self.directory.join("flows.txt");
        std::fs::write(&file, lines.join("\n"))?;
        self.ofctl("add-flows", &[&file.to_string_lossy()])
            .map(drop)
    }

    /// What the port of this number has sent.
    pub(crate) fn sent(&self, port: u32) -> Result<Sent, Failure> {
        let told = self.ofctl("dump-ports", &[&port.to_string()])?;
        let number = |key: &str| -> Option<f64> {
            let (_, rest) = told.split_once(key)?;
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            rest[..end.unwrap_or(rest.len())].parse().ok()
        };
        let sent = number("tx pkts=").zip(number("duration="));
        let (frames, seconds) = sent.ok_or_else(|| format!("these are no counts: {told}"))?;
        Ok(Sent { frames, seconds })
    }

    /// What the process has used.
    pub(crate) fn usage(&self) -> Result<Usage, Failure> {
        Ok(self.process.usage()?)
    }

    fn ofctl(&self, command: &str, arguments: &[&str]) -> Result<String, Failure> {
        let socket = self.directory.join("br0.mgmt");
        let program = Program::new("ovs-ofctl")
            .args(["-O", "OpenFlow13", command])
            .arg(format!("unix:{}", socket.display()))
            .args(arguments)
            .log(self.directory.join("ovs-ofctl.log"))
            .output(self.directory.join("ovs-ofctl.txt"));
        let mut process = self.site.spawner.start(program)?;
        let status = process.wait(START)?;
        if !status.success() {
            return Err(process.failed(status).into());
        }
        Ok(process.written()?)
    }
}

/// A path as an argument.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}
