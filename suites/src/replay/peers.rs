//! What speaks OpenFlow to a switch that cases happen to: a connection for each version
//! in which a case means something, and the words of a script for what is heard.

mod meaning;
mod statistics;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use base::{Instant, PortNo};
use flow::{FragmentHandling, PortConfig, PortDesc, SwitchConfig};
use openflow::{Message, NiciraSetting, Version};
use testbed::{Clock, Program, Spawner};
use testkit::case::{CaseEvent, notation};

use crate::peer::Peer;
use meaning::{unasked, version};

pub(crate) use meaning::deletes;

/// What came of something, or that it cannot be.
pub(crate) type Told = Result<Vec<String>, String>;

/// How long a tool may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// How long a connection may be silent.
const ANSWER: Duration = Duration::from_secs(1);

/// OpenFlow 1.3: a master is told of frames for any reason, and of all rules that go.
const SET_ASYNC: [u8; 32] = [
    4, 28, 0, 32, 0, 0, 0, 9, 0, 0, 0, 7, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 15, 0, 0, 0,
    15,
];

/// The bits of a port that `ovs-ofctl mod-port` sets, by its words.
const CONFIG: [(PortConfig, &str); 6] = [
    (PortConfig::DOWN, "down"),
    (PortConfig::NO_RECV, "no-receive"),
    (PortConfig::NO_RECV_STP, "no-receive-stp"),
    (PortConfig::NO_FLOOD, "no-flood"),
    (PortConfig::NO_FWD, "no-forward"),
    (PortConfig::NO_PACKET_IN, "no-packet-in"),
];

/// The connections to a bridge's socket, made when they are needed.
pub(crate) struct Peers {
    socket: PathBuf,
    by_version: BTreeMap<Version, Peer>,
    /// What was told unasked and is yet to be passed on.
    overheard: Vec<String>,
    /// Runs `ovs-ofctl`, for what is said with it.
    spawner: Spawner,
    log: PathBuf,
}

impl Peers {
    /// Those to the bridge at `socket`; what `ovs-ofctl` complains of goes to `log`.
    pub(crate) fn to(socket: PathBuf, spawner: &Spawner, log: PathBuf) -> Self {
        Self {
            socket,
            by_version: BTreeMap::new(),
            overheard: Vec::new(),
            spawner: spawner.clone(),
            log,
        }
    }

    pub(crate) fn socket(&self) -> &Path {
        &self.socket
    }

    /// The connection of this version. That of 1.3 is told what becomes of frames and rules.
    pub(crate) fn peer(&mut self, version: Version) -> Result<&mut Peer, String> {
        if !self.by_version.contains_key(&version) {
            let mut peer = Peer::visit(&self.socket, version)?;
            if version == Version::V13 {
                peer.ask(&[Message::SetConfig(SwitchConfig {
                    fragments: FragmentHandling::Normal,
                    miss_send_len: u16::MAX,
                })])?;
                peer.say(&SET_ASYNC)?;
            }
            if version == Version::V10 {
                peer.ask(&[Message::NiciraSetting(NiciraSetting::TableIds(true))])?;
            }
            self.by_version.insert(version, peer);
        }
        Ok(self.by_version.get_mut(&version).expect("it was just made"))
    }

    /// Makes the connection that is told what nobody asks for.
    pub(crate) fn listen(&mut self) -> Result<(), String> {
        self.peer(Version::V13).map(drop)
    }

    /// Says something and returns all that is heard until it is done.
    pub(crate) fn ask(
        &mut self,
        version: Version,
        messages: &[Message],
    ) -> Result<Vec<Message>, String> {
        let heard = self.peer(version)?.ask(messages)?;
        self.overheard.extend(heard.iter().filter_map(unasked));
        Ok(heard)
    }

    /// Says something in the version in which the case means it.
    pub(crate) fn mean(&mut self, message: Message) -> Told {
        self.say(version(&message), message)
    }

    /// Says something that may be refused, and tells whether it was.
    pub(crate) fn say(&mut self, version: Version, message: Message) -> Told {
        self.listen()?;
        let heard = self.ask(version, &[message])?;
        let refusals = heard.iter().filter_map(|heard| match heard {
            Message::Error(error) => Some(match error.code.refusal(version) {
                Some(refusal) => notation::refusal_line(refusal),
                None => notation::effect_line("!", &format!("refused {}", error.code)),
            }),
            _ => None,
        });
        Ok(refusals.collect())
    }

    /// Says what an event is in OpenFlow; nothing, if it is something else.
    pub(crate) fn convey(&mut self, event: &CaseEvent) -> Option<Told> {
        Some(match event {
            CaseEvent::Fragments(fragments) => {
                let config = SwitchConfig {
                    fragments: *fragments,
                    miss_send_len: u16::MAX,
                };
                self.say(Version::V13, Message::SetConfig(config))
            }
            CaseEvent::Flow(command) => self.mean(Message::FlowMod((**command).clone())),
            CaseEvent::Group(command) => self.mean(Message::GroupMod(command.clone())),
            CaseEvent::Meter(command) => self.mean(Message::MeterMod(command.clone())),
            CaseEvent::TlvTable(change) => self.mean(Message::TlvTableMod(change.clone())),
            CaseEvent::PacketOut(message) => self.mean(Message::PacketOut(message.clone())),
            _ => return None,
        })
    }

    /// What was told unasked, until all is told that was before.
    pub(crate) fn overheard(&mut self, linger: Option<Duration>) -> Told {
        // A switch may take a frame from each port before it looks at what controllers
        // want: before the second answer it has done with all that it was given before.
        for _ in 0..2 {
            self.ask(Version::V13, &[])?;
        }
        if let Some(linger) = linger {
            let heard = self.peer(Version::V13)?.linger(linger)?;
            self.overheard.extend(heard.iter().filter_map(unasked));
        }
        Ok(std::mem::take(&mut self.overheard))
    }

    /// Lets time pass until then. A switch leaves whoever does not answer meanwhile.
    pub(crate) fn wait_until(&mut self, then: Instant, clock: &Clock) -> Result<(), String> {
        loop {
            let now = clock.now();
            if now >= then {
                return Ok(());
            }
            clock.sleep_until(then.min(now + ANSWER));
            let versions: Vec<Version> = self.by_version.keys().copied().collect();
            for version in versions {
                self.ask(version, &[])?;
            }
        }
    }

    /// Has `ovs-ofctl` do something.
    pub(crate) fn ofctl(&self, words: &str) -> Result<(), String> {
        let program = Program::new("ovs-ofctl")
            .args(words.split_whitespace())
            .log(&self.log);
        let done = self.spawner.run(program, PATIENCE);
        done.map_err(|failure| failure.to_string())
    }

    /// Sets all bits of the port that the switch knows by this name.
    pub(crate) fn configure(&self, name: &str, port: &PortDesc) -> Result<(), String> {
        for (bit, word) in CONFIG {
            let word = match (port.config.0 & bit.0 != 0, word.strip_prefix("no-")) {
                (true, _) => word,
                (false, Some(word)) => word,
                (false, None) => "up",
            };
            let socket = self.socket.display();
            self.ofctl(&format!("mod-port {socket} {name} {word}"))?;
        }
        Ok(())
    }

    /// The ports that the switch has, as it describes them.
    pub(crate) fn ports(&mut self) -> Result<Vec<PortDesc>, String> {
        self.port_descs(PortNo::ANY)
    }
}
