//! Open vSwitch as something that cases happen to.

mod meaning;
mod statistics;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, process};

use base::PortNo;
use flow::{FragmentHandling, PortConfig, PortDesc, PortState, SwitchConfig};
use openflow::{Extension, Message, Version};
use packet::Frame;
use pipeline::MissPolicy;
use testbed::{Clock, Failure, Namespace, OpenVswitch, Program, Site, Spawner};
use testkit::case::{Count, Event, Subject, words};

use crate::capture::Capture;
use crate::control::Control;
use crate::peer::Peer;
use meaning::{deletes, unasked, version};

/// How long the daemon may take for its sockets, and a tool to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// Nothing is kept of what it decided for a frame: the next may find other rules.
const NO_CACHE: &str = "other_config:flow-limit=0";

/// It looks behind as many tags as it can.
const TWO_TAGS: &str = "other_config:vlan-limit=2";

/// How long to listen for what the daemon does behind a barrier: it frees rules, and
/// tells of them, when none of its threads may look at them any more.
const AFTERMATH: Duration = Duration::from_millis(20);

/// OpenFlow 1.3: a master is told of frames for any reason, and of all rules that go.
const SET_ASYNC: [u8; 32] = [
    4, 28, 0, 32, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0,
    15,
];

/// In steps of so many milliseconds: rules expire when it looks.
const STEP_MS: &str = "500";

/// The bits of a port that `ovs-ofctl mod-port` sets, by its words.
const CONFIG: [(PortConfig, &str); 6] = [
    (PortConfig::DOWN, "down"),
    (PortConfig::NO_RECV, "no-receive"),
    (PortConfig::NO_RECV_STP, "no-receive-stp"),
    (PortConfig::NO_FLOOD, "no-flood"),
    (PortConfig::NO_FWD, "no-forward"),
    (PortConfig::NO_PACKET_IN, "no-packet-in"),
];

type Told = Result<Vec<String>, String>;

/// A running Open vSwitch and what speaks to it.
pub(crate) struct OpenVswitchSubject {
    switch: OpenVswitch,
    control: Control,
    spawner: Spawner,
    clock: Clock,
    directory: PathBuf,
    /// Connections by version, made when they are needed.
    peers: BTreeMap<Version, Peer>,
    /// What ports have sent.
    ports: BTreeMap<PortNo, Capture>,
    /// Bridges so far: each case has one of its own.
    bridges: usize,
    /// Whether the event may be the end of rules.
    deletes: bool,
}

impl Drop for OpenVswitchSubject {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

impl OpenVswitchSubject {
    /// Starts the daemon, and stops its clock.
    pub(crate) fn start(
        spawner: &Spawner,
        inside: &Namespace,
        clock: &Clock,
    ) -> Result<Self, Failure> {
        // Short, for a path of a Unix socket has 107 bytes at most.
        let directory = env::temp_dir().join(format!("comporta-replay-{}", process::id()));
        fs::create_dir_all(&directory).map_err(Failure::to("make a directory"))?;
        let site = Site {
            spawner,
            inside,
            directory: &directory,
            cores: &[],
        };
        let switch = OpenVswitch::start_dummy(site, clock, &[NO_CACHE, TWO_TAGS])?;
        let socket = directory.join("vswitchd.ctl");
        let mut control = clock.wait_for("the daemon's control socket", PATIENCE, || {
            Ok(Control::connect(&socket).ok())
        })?;
        let stopped = control.ask("time/stop", &[]).map(drop);
        stopped.map_err(|what| Failure::to("stop its clock")(std::io::Error::other(what)))?;
        Ok(Self {
            switch,
            control,
            spawner: spawner.clone(),
            clock: *clock,
            directory,
            peers: BTreeMap::new(),
            ports: BTreeMap::new(),
            bridges: 0,
            deletes: false,
        })
    }

    /// A new bridge in place of the last, with nothing on it.
    pub(crate) fn start_over(&mut self) -> Result<(), Failure> {
        self.peers.clear();
        self.ports.clear();
        if self.bridges > 0 {
            self.switch.vsctl(&format!("del-br {}", self.bridge()))?;
        }
        self.bridges += 1;
        let bridge = self.bridge();

        self.switch.vsctl(&format!(
            "add-br {bridge} -- set bridge {bridge} datapath_type=dummy fail-mode=secure \
             protocols=OpenFlow10,OpenFlow11,OpenFlow12,OpenFlow13,OpenFlow14,OpenFlow15 \
             -- set interface {bridge} options:tx_pcap={}",
            self.capture(&bridge).display()
        ))?;
        let socket = self.socket();
        self.clock.wait_for("the bridge's socket", PATIENCE, || {
            Ok(socket.exists().then_some(()))
        })?;
        Ok(())
    }

    fn bridge(&self) -> String {
        format!("b{}", self.bridges)
    }

    fn socket(&self) -> PathBuf {
        self.directory.join(format!("{}.mgmt", self.bridge()))
    }

    /// The connection of this version. That of 1.3 is told what becomes of frames and rules.
    fn peer(&mut self, version: Version) -> Result<&mut Peer, String> {
        if !self.peers.contains_key(&version) {
            let mut peer = Peer::visit(&self.socket(), version)?;
            if version == Version::V13 {
                peer.ask(&[Message::SetConfig(SwitchConfig {
                    fragments: FragmentHandling::Normal,
                    miss_send_len: u16::MAX,
                })])?;
                peer.say(&SET_ASYNC)?;
            }
            if version == Version::V10 {
                peer.ask(&[Message::Extension(Extension::TableIds(true))])?;
            }
            self.peers.insert(version, peer);
        }
        Ok(self.peers.get_mut(&version).expect("it was just made"))
    }

    fn ask(&mut self, version: Version, messages: &[Message]) -> Result<Vec<Message>, String> {
        self.peer(version)?.ask(messages)
    }

    /// Says something in the version in which the case means it.
    fn mean(&mut self, message: Message) -> Told {
        self.say(version(&message), message)
    }

    /// Says something that may be refused, and tells all that comes of it.
    fn say(&mut self, version: Version, message: Message) -> Told {
        // What is told unasked is told to this one.
        self.peer(Version::V13)?;
        let heard = self.ask(version, &[message])?;
        let refusals = heard.iter().filter_map(|heard| match heard {
            Message::Error(error) => Some(match error.fault.refusal(version) {
                Some(refusal) => words::refused(refusal),
                None => words::indented("!", &format!("refused {}", error.fault)),
            }),
            _ => None,
        });
        let mut told: Vec<String> = refusals.collect();
        told.extend(heard.iter().filter_map(unasked));
        told.extend(self.seen()?);
        Ok(told)
    }

    /// What has come of what happened last.
    fn seen(&mut self) -> Told {
        let deletes = std::mem::take(&mut self.deletes);
        let peer = self.peer(Version::V13)?;
        // The daemon takes a frame from each port, and then looks at what controllers
        // want: before the second answer it has done with all that it was given before.
        let mut heard = peer.ask(&[])?;
        heard.extend(peer.ask(&[])?);
        if deletes {
            heard.extend(peer.linger(AFTERMATH)?);
        }
        let mut told: Vec<String> = heard.iter().filter_map(unasked).collect();
        for (port, capture) in &mut self.ports {
            for bytes in capture.take().map_err(|error| error.to_string())? {
                told.push(words::sent(&port.to_string(), &Frame::from_bytes(&bytes)));
            }
        }
        Ok(told)
    }

    /// Where what a port sends is kept.
    fn capture(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.pcap"))
    }

    fn vsctl(&mut self, words: &str) -> Result<(), String> {
        self.switch
            .vsctl(words)
            .map_err(|failure| failure.to_string())
    }

    fn ofctl(&self, words: &str) -> Result<(), String> {
        let program = Program::new("ovs-ofctl")
            .args(words.split_whitespace())
            .log(self.directory.join("ovs-ofctl.log"));
        let done = self.spawner.run(program, PATIENCE);
        done.map_err(|failure| failure.to_string())
    }

    /// Makes a port, or changes it.
    fn set_port(&mut self, port: &PortDesc) -> Result<(), String> {
        let (name, bridge) = (self.name(port.number), self.bridge());
        if !self.ports.contains_key(&port.number) {
            let capture = self.capture(&name);
            self.ports
                .insert(port.number, Capture::new(capture.clone()));
            if port.number == PortNo::LOCAL {
                // Its bridge has it anyway; a case that does not speak of it sees none of it.
                return Ok(());
            }
            self.vsctl(&format!(
                "add-port {bridge} {name} -- set interface {name} type=dummy mtu_request=9216 ofport_request={} \
                 options:tx_pcap={}",
                port.number,
                capture.display()
            ))?;
        }
        if port.state != PortState::default() {
            return Err("a dummy port's link cannot be taken down".to_owned());
        }
        let socket = self.socket();
        for (bit, word) in CONFIG {
            let word = match (port.config.0 & bit.0 != 0, word.strip_prefix("no-")) {
                (true, _) => word,
                (false, Some(word)) => word,
                (false, None) => "up",
            };
            self.ofctl(&format!("mod-port {} {name} {word}", socket.display()))?;
        }
        Ok(())
    }

    fn name(&self, port: PortNo) -> String {
        match port {
            PortNo::LOCAL => self.bridge(),
            port => format!("{}p{port}", self.bridge()),
        }
    }

    fn arrive(&mut self, port: PortNo, times: usize, frame: &Frame) -> Told {
        if frame.offload != packet::Offload::default() {
            return Err("a cable carries no frame that is to be finished".to_owned());
        }
        self.peer(Version::V13)?;
        let name = self.name(port);
        let hex: String = frame
            .bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut told = Vec::new();
        for _ in 0..times {
            self.control.ask("netdev-dummy/receive", &[&name, &hex])?;
            told.extend(self.seen()?);
        }
        Ok(told)
    }

    fn set_ports(&mut self, ports: &[PortDesc]) -> Told {
        for port in ports {
            self.set_port(port)?;
        }
        self.seen()
    }

    fn remove_port(&mut self, port: PortNo) -> Told {
        let name = self.name(port);
        self.ports.remove(&port);
        self.vsctl(&format!("del-port {name}"))?;
        self.seen()
    }

    fn set_miss(&self, miss: MissPolicy) -> Told {
        let word = match miss {
            MissPolicy::Controller => "controller",
            MissPolicy::Drop => "drop",
        };
        let socket = self.socket();
        self.ofctl(&format!(
            "-O OpenFlow11 mod-table {} all {word}",
            socket.display()
        ))?;
        Ok(Vec::new())
    }

    fn pass(&mut self, time: Duration) -> Told {
        self.peer(Version::V13)?;
        let millis = time.as_millis().to_string();
        self.control.ask("time/warp", &[&millis, STEP_MS])?;
        self.seen()
    }
}

impl Subject for OpenVswitchSubject {
    fn play(&mut self, event: &Event) -> Told {
        self.deletes = deletes(event);
        match event {
            Event::Ports(ports) => self.set_ports(ports),
            Event::PortGone(port) => self.remove_port(*port),
            Event::Miss(miss) => self.set_miss(*miss),
            Event::Fragments(fragments) => {
                let config = SwitchConfig {
                    fragments: *fragments,
                    miss_send_len: u16::MAX,
                };
                self.say(Version::V13, Message::SetConfig(config))
            }
            Event::Standalone(_) => Err("its fail mode is secure".to_owned()),
            Event::Flow(command) => self.mean(Message::FlowMod((**command).clone())),
            Event::Group(command) => self.mean(Message::GroupMod(command.clone())),
            Event::Meter(command) => self.mean(Message::MeterMod(command.clone())),
            Event::PacketOut(message) => self.mean(Message::PacketOut(message.clone())),
            Event::Resume(_) => Err("how a frame goes on is its own affair".to_owned()),
            Event::Arrive { port, times, frame } => self.arrive(*port, *times, frame),
            Event::Time(time) => self.pass(*time),
            Event::Dump(request) => self.dump(request.clone()),
            Event::Groups => self.groups(),
            Event::Meters => self.meters(),
        }
    }

    fn count(&mut self, count: &Count) -> Result<String, String> {
        let counts = match count {
            Count::Flow { rule, .. } => self.flow_counts(rule)?,
            Count::Table { table, .. } => self.table_counts(*table)?,
            Count::Group { group, .. } => self.group_counts(*group)?,
            Count::Meter { meter, .. } => self.meter_counts(*meter),
        };
        count.answer(&counts)
    }
}
