//! Open vSwitch as the subject of cases.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;
use std::{env, fs, process};

use base::PortNo;
use flow::{PortDesc, PortState};
use packet::Frame;
use pipeline::MissPolicy;
use testbed::{Clock, Failure, Namespace, OpenVswitch, Site, Spawner};
use testkit::case::{CaseEvent, CountQuery, Subject, notation};

use crate::Stage;
use crate::capture::Capture;
use crate::control::Control;
use crate::peers::{EffectLines, Peers, deletes};

/// Time limit for the daemon's sockets, and for a tool.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Disables the flow cache: every frame is looked up in the current rules.
const NO_CACHE: &str = "other_config:flow-limit=0";

/// Parses as many VLAN tags as Open vSwitch supports.
const TWO_TAGS: &str = "other_config:vlan-limit=2";

/// Step of the simulated clock in milliseconds: the daemon checks timeouts once a step.
const STEP_MS: &str = "500";

/// Running Open vSwitch and its connections.
pub(crate) struct OpenVswitchSubject {
    switch: OpenVswitch,
    control: Control,
    spawner: Spawner,
    clock: Clock,
    directory: PathBuf,
    peers: Peers,
    /// Frames sent by each port.
    ports: BTreeMap<PortNo, Capture>,
    /// Time to wait for messages after the removal of rules.
    linger: Duration,
    /// Number of bridges so far: each case has its own.
    bridges: usize,
    /// True if the event may remove rules.
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
        // Short, since the path of a Unix socket has 107 bytes at most.
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
        let mut control = clock.wait_for("the daemon's control socket", TIMEOUT, || {
            Ok(Control::connect(&socket).ok())
        })?;
        let stopped = control.execute("time/stop", &[]).map(drop);
        stopped.map_err(|what| Failure::to("stop its clock")(std::io::Error::other(what)))?;
        Ok(Self {
            switch,
            control,
            spawner: spawner.clone(),
            clock: *clock,
            directory,
            peers: Peers::to(PathBuf::new(), spawner, PathBuf::new()),
            ports: BTreeMap::new(),
            linger: Duration::ZERO,
            bridges: 0,
            deletes: false,
        })
    }

    fn bridge(&self) -> String {
        format!("b{}", self.bridges)
    }

    /// Returns the effects of the last event.
    fn effects(&mut self) -> EffectLines {
        let deletes = std::mem::take(&mut self.deletes);
        let mut lines = self.peers.asynchronous(deletes.then_some(self.linger))?;
        for (port, capture) in &mut self.ports {
            for bytes in capture.take().map_err(|error| error.to_string())? {
                lines.push(notation::output_line(
                    &port.to_string(),
                    &Frame::from_bytes(&bytes),
                ));
            }
        }
        Ok(lines)
    }

    /// Returns the capture file of a port.
    fn capture(&self, name: &str) -> PathBuf {
        self.directory.join(format!("{name}.pcap"))
    }

    fn vsctl(&mut self, words: &str) -> Result<(), String> {
        self.switch
            .vsctl(words)
            .map_err(|failure| failure.to_string())
    }

    /// Creates a port, or changes its configuration.
    fn set_port(&mut self, port: &PortDesc) -> Result<(), String> {
        let (name, bridge) = (self.name(port.number), self.bridge());
        if !self.ports.contains_key(&port.number) {
            let capture = self.capture(&name);
            self.ports
                .insert(port.number, Capture::new(capture.clone()));
            if port.number == PortNo::LOCAL {
                // Every bridge has this port; only a case that mentions it captures its frames.
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
        self.peers.configure(&name, port)
    }

    fn name(&self, port: PortNo) -> String {
        match port {
            PortNo::LOCAL => self.bridge(),
            port => format!("{}p{port}", self.bridge()),
        }
    }

    fn arrive(&mut self, port: PortNo, times: usize, frame: &Frame) -> EffectLines {
        if frame.offload != packet::Offload::default() {
            return Err("a link carries complete frames only".to_owned());
        }
        self.peers.listen()?;
        let name = self.name(port);
        let hex: String = frame
            .bytes()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        let mut lines = Vec::new();
        for _ in 0..times {
            self.control
                .execute("netdev-dummy/receive", &[&name, &hex])?;
            lines.extend(self.effects()?);
        }
        Ok(lines)
    }

    fn set_ports(&mut self, ports: &[PortDesc]) -> EffectLines {
        for port in ports {
            self.set_port(port)?;
        }
        self.effects()
    }

    fn remove_port(&mut self, port: PortNo) -> EffectLines {
        let name = self.name(port);
        self.ports.remove(&port);
        self.vsctl(&format!("del-port {name}"))?;
        self.effects()
    }

    fn set_miss(&self, miss: MissPolicy) -> EffectLines {
        let word = match miss {
            MissPolicy::Controller => "controller",
            MissPolicy::Drop => "drop",
        };
        let socket = self.peers.socket().display();
        self.peers
            .ofctl(&format!("-O OpenFlow11 mod-table {socket} all {word}"))?;
        Ok(Vec::new())
    }

    fn pass(&mut self, time: Duration) -> EffectLines {
        self.peers.listen()?;
        let millis = time.as_millis().to_string();
        self.control.execute("time/warp", &[&millis, STEP_MS])?;
        self.effects()
    }
}

impl Stage for OpenVswitchSubject {
    /// The daemon removes rules after the barrier reply, and sends flow-removed messages when none
    /// of its threads uses the rule any more.
    const LINGER: [Duration; 3] = [
        Duration::from_millis(20),
        Duration::from_millis(100),
        Duration::from_millis(500),
    ];
    const UNCERTAIN: &'static [&'static str] = &[];

    /// Replaces the bridge of the previous case by a new one.
    fn start_over(&mut self, linger: Duration) -> Result<(), Failure> {
        self.linger = linger;
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
        let socket = self.directory.join(format!("{bridge}.mgmt"));
        self.clock.wait_for("the bridge's socket", TIMEOUT, || {
            Ok(socket.exists().then_some(()))
        })?;
        let log = self.directory.join("ovs-ofctl.log");
        self.peers = Peers::to(socket, &self.spawner, log);
        Ok(())
    }
}

impl Subject for OpenVswitchSubject {
    fn play(&mut self, event: &CaseEvent) -> EffectLines {
        self.deletes = deletes(event);
        if let Some(lines) = self.peers.send_event(event) {
            let mut lines = lines?;
            lines.extend(self.effects()?);
            return Ok(lines);
        }
        match event {
            CaseEvent::Ports(ports) => self.set_ports(ports),
            CaseEvent::PortRemoved(port) => self.remove_port(*port),
            CaseEvent::Miss(miss) => self.set_miss(*miss),
            CaseEvent::Standalone(_) => Err("its fail mode is secure".to_owned()),
            CaseEvent::Resume(_) => Err("continuations are internal to Open vSwitch".to_owned()),
            CaseEvent::Receive { port, times, frame } => self.arrive(*port, *times, frame),
            CaseEvent::Time(time) => self.pass(*time),
            CaseEvent::Dump(request) => self.peers.dump(request.clone()),
            CaseEvent::Groups => self.peers.groups(),
            CaseEvent::Meters => self.peers.meters(),
            CaseEvent::Fragments(_)
            | CaseEvent::TableMiss(..)
            | CaseEvent::Flow(_)
            | CaseEvent::Group(_)
            | CaseEvent::Meter(_)
            | CaseEvent::TlvTable(_)
            | CaseEvent::PacketOut(_) => Err("handled as an OpenFlow message".to_owned()),
        }
    }

    fn count(&mut self, count: &CountQuery) -> Result<String, String> {
        self.peers.count(count)
    }
}
