//! The switch as a process in a separate namespace, configured with `ovs-ofctl`.

use std::path::{Path, PathBuf};
use std::time::Duration;

use testbed::{Clock, Namespace, Process, Program, Spawner, Usage};

use crate::{Failure, Programs};

/// Maximum time of its start.
const START: Duration = Duration::from_secs(20);

/// Maximum time of a tool: a hundred thousand flows take seconds on an idle core.
const TOOL: Duration = Duration::from_secs(120);

/// The control socket of an Open vSwitch in its directory.
pub(crate) const PEER_SOCKET: &str = "vswitchd.ctl";

/// Version of the protocol: rules of OVN need 1.5.
const VERSION: &str = "OpenFlow15";

/// The Geneve option in which OVN carries the logical ports.
const OVN_OPTION: &str = "{class=0x102,type=0x80,len=4}->tun_metadata0";

/// The environment of the started programs.
pub(crate) struct Site {
    pub(crate) spawner: Spawner,
    pub(crate) clock: Clock,
    /// The program `comporta`.
    pub(crate) comporta: PathBuf,
    /// The directory for sockets and files.
    pub(crate) directory: PathBuf,
}

impl Site {
    /// Creates the directory if it does not exist.
    pub(crate) fn new(programs: &Programs) -> Result<Self, Failure> {
        std::fs::create_dir_all(&programs.directory)?;
        Ok(Self {
            spawner: Spawner::new()?,
            clock: Clock::start(),
            // Absolute, because the program is started in another directory.
            comporta: programs.comporta.canonicalize()?,
            directory: programs.directory.canonicalize()?,
        })
    }
}

/// A running switch with a bridge `br0`.
pub(crate) struct BenchSwitch<'a> {
    process: Process,
    /// The bridge.
    pub(crate) bridge: BridgeTarget<'a>,
    /// The namespace of the switch and its ports.
    _inside: Namespace,
}

/// A bridge `br0`, which `ovs-ofctl` reaches through a socket in the switch's directory.
pub(crate) struct BridgeTarget<'a> {
    pub(crate) site: &'a Site,
    pub(crate) directory: PathBuf,
}

/// The transmit counter of a port, and its age, by the switch's own clock.
#[derive(Clone, Copy)]
struct PortSample {
    frames: f64,
    seconds: f64,
}

/// The counters of a meter, and its age, by the switch's own clock.
#[derive(Clone, Copy)]
pub(crate) struct MeterSample {
    /// All frames that the meter received.
    pub(crate) frames: f64,
    /// The frames to which its one band applied.
    exceeding: f64,
    pub(crate) seconds: f64,
}

impl MeterSample {
    /// The frames to which no band applied.
    pub(crate) fn passed(self) -> f64 {
        self.frames - self.exceeding
    }
}

impl<'a> BenchSwitch<'a> {
    /// Starts the switch in `inside` with these additional arguments, and waits until it responds.
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
            process,
            bridge: BridgeTarget { site, directory },
            _inside: inside,
        })
    }

    /// Returns the resource usage of the process.
    pub(crate) fn usage(&self) -> Result<Usage, Failure> {
        Ok(self.process.usage()?)
    }
}

impl BridgeTarget<'_> {
    /// Adds flows.
    pub(crate) fn add_flows(&self, lines: &[String]) -> Result<(), Failure> {
        let file = self.directory.join("flows.txt");
        std::fs::write(&file, lines.join("\n"))?;
        self.ofctl("add-flows", &[&file.to_string_lossy()])
            .map(drop)
    }

    /// Adds groups, and the tunnel option of OVN, which must exist before rules name it.
    pub(crate) fn add_groups(&self, lines: &[String]) -> Result<(), Failure> {
        self.ofctl("add-tlv-map", &[OVN_OPTION])?;
        let file = self.directory.join("groups.txt");
        std::fs::write(&file, lines.join("\n"))?;
        self.ofctl("add-groups", &[&file.to_string_lossy()])
            .map(drop)
    }

    /// Sets a port `up` or `down`.
    pub(crate) fn set_port(&self, port: u32, to: &str) -> Result<(), Failure> {
        self.ofctl("mod-port", &[&port.to_string(), to]).map(drop)
    }

    /// Returns the packets per second that ports 1 to 4 transmit during `time`, which begins
    /// after `pause`.
    pub(crate) fn rate(&self, pause: Duration, time: Duration) -> Result<f64, Failure> {
        let clock = &self.site.clock;
        let sleep = |time| clock.sleep_until(clock.now() + time);
        let sent = || -> Result<Vec<PortSample>, Failure> {
            (1..=4).map(|port| self.sent(port)).collect()
        };
        sleep(pause);
        let before = sent()?;
        sleep(time);
        let after = sent()?;
        let rates = before.iter().zip(&after);
        let rates = rates.map(|(before, after)| {
            (after.frames - before.frames) / (after.seconds - before.seconds)
        });
        Ok(rates.sum())
    }

    /// Reads the transmit counter of a port.
    fn sent(&self, port: u32) -> Result<PortSample, Failure> {
        let output = self.ofctl("dump-ports", &[&port.to_string()])?;
        let sent = number_after("tx pkts=", &output).zip(number_after("duration=", &output));
        let (frames, seconds) = sent.ok_or_else(|| format!("cannot parse counters: {output}"))?;
        Ok(PortSample { frames, seconds })
    }

    /// Adds a meter, in the syntax of `ovs-ofctl`.
    pub(crate) fn add_meter(&self, meter: &str) -> Result<(), Failure> {
        self.ofctl("add-meter", &[meter]).map(drop)
    }

    /// Reads the counters of a meter with one band.
    pub(crate) fn meter_sample(&self, meter: u32) -> Result<MeterSample, Failure> {
        let output = self.ofctl("meter-stats", &[&format!("meter={meter}")])?;
        let counted = || -> Option<MeterSample> {
            let (meter, band) = output.split_once("bands:")?;
            Some(MeterSample {
                frames: number_after("packet_in_count:", meter)?,
                exceeding: number_after("packet_count:", band)?,
                seconds: number_after("duration:", meter)?,
            })
        };
        Ok(counted().ok_or_else(|| format!("cannot parse counters: {output}"))?)
    }

    /// Returns the number of flows in the data path of the Open vSwitch that this bridge
    /// belongs to.
    pub(crate) fn cached_flows(&self) -> Result<Option<f64>, Failure> {
        let output = self.appctl(PEER_SOCKET, &["upcall/show"])?;
        Ok(number_after("(current ", &output))
    }

    /// Sets the limit of tracked connections, by a control socket of this name.
    pub(crate) fn set_connections_max(&self, socket: &str, limit: u32) -> Result<(), Failure> {
        self.appctl(socket, &["dpctl/ct-set-maxconns", &limit.to_string()])
            .map(drop)
    }

    fn appctl(&self, socket: &str, words: &[&str]) -> Result<String, Failure> {
        let program = Program::new("ovs-appctl")
            .args(["--target", &word(&self.directory.join(socket))])
            .args(words)
            .log(self.directory.join("ovs-appctl.log"))
            .output(self.directory.join("ovs-appctl.txt"));
        self.output_of(program)
    }

    fn ofctl(&self, command: &str, arguments: &[&str]) -> Result<String, Failure> {
        let socket = self.directory.join("br0.mgmt");
        let program = Program::new("ovs-ofctl")
            .args(["-O", VERSION, command])
            .arg(format!("unix:{}", socket.display()))
            .args(arguments)
            .log(self.directory.join("ovs-ofctl.log"))
            .output(self.directory.join("ovs-ofctl.txt"));
        self.output_of(program)
    }

    /// Runs a tool to its end.
    fn output_of(&self, program: Program<'_>) -> Result<String, Failure> {
        let mut process = self.site.spawner.start(program)?;
        let status = process.wait(TOOL)?;
        if !status.success() {
            return Err(process.failed(status).into());
        }
        Ok(process.written()?)
    }
}

/// Parses the number after `key`.
fn number_after(key: &str, output: &str) -> Option<f64> {
    let (_, rest) = output.split_once(key)?;
    let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
    rest[..end.unwrap_or(rest.len())].parse().ok()
}

/// Converts a path to an argument.
pub(crate) fn word(path: &Path) -> String {
    path.display().to_string()
}
